//! One structured log line and one measurement per request, also for one whose client went away before the answer. It names the route's
//! template, never the path or the query, for those can hold tokens; and never a key.

use std::time::Duration;

use http::{Method, StatusCode};
use runvoy_engine::Caller;

use crate::app::State;
use crate::meter::Meter;
use crate::peer::Peer;

/// What is noted where the client went away before there was an answer.
const CLIENT_GONE: u16 = 499;

/// A request under way.
pub(crate) struct RequestLine<'a> {
    state: &'a State,
    meter: &'a Meter,
    method: &'static str,
    peer: Peer,
    request_id: String,
    user: Option<String>,
    began: Duration,
    status: u16,
}

impl<'a> RequestLine<'a> {
    /// Begins to measure.
    pub(crate) fn begin(state: &'a State, meter: &'a Meter, method: &Method, peer: Peer, request_id: String) -> Self {
        let began = state.engine.ports().clock.monotonic();
        Self { state, meter, method: word(method), peer, request_id, user: None, began, status: CLIENT_GONE }
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Says who calls, once that is known.
    pub(crate) fn user(&mut self, caller: Option<&Caller>) {
        self.user = caller.map(|caller| caller.email.clone());
    }

    /// There is an answer.
    pub(crate) fn end(mut self, status: StatusCode) {
        self.status = status.as_u16();
    }
}

impl Drop for RequestLine<'_> {
    fn drop(&mut self) {
        let took = self.state.engine.ports().clock.monotonic().saturating_sub(self.began);
        self.meter.measure(self.method, self.status, took);
        tracing::info!(
            method = self.method,
            route = self.meter.route(),
            status = self.status,
            duration_ms = took.as_secs_f64() * 1000.0,
            request_id = self.request_id,
            user = self.user,
            from = %self.peer,
            "request"
        );
    }
}

/// The method as a word of a fixed set: a client must not be able to invent label values.
fn word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "OTHER",
    }
}
