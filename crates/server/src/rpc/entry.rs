//! What every RPC goes through, in this order: id, address, origin, credential, rule, handler, headers, one log line, metrics: the same as the routes of the
//! HTTP API. What is refused before its handler is answered in the caller's own protocol.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use runvoy_engine::{Caller, Credential, Subject};
use runvoy_model::role::Action;
use runvoy_rpc::connectrpc::{ConnectError, ConnectRpcService, DeadlinePolicy, Router};
use tower::Service as _;

use super::answered::Answered;
use super::call::Admitted;
use super::error::RpcFault;
use super::refusal;
use super::rule::{RULES, RpcRule};
use super::scale::Scale;
use super::unpack;
use super::upload::Upload;
use crate::address::Reached;
use crate::app::State;
use crate::body::{self, BODY_TIMEOUT, Unread};
use crate::drain;
use crate::entry::secure;
use crate::fault::{Fault, shortened};
use crate::meter::Meter;
use crate::peer::Connection;
use crate::request_line::RequestLine;
use crate::room::Load;
use crate::{credential, request_id};

const ALLOW: HeaderValue = HeaderValue::from_static("POST, OPTIONS");

/// Every RPC.
#[derive(Clone)]
pub(crate) struct RpcEntry(Arc<Inner>);

struct Inner {
    state: Arc<State>,
    service: ConnectRpcService<Router>,
    methods: HashMap<&'static str, (RpcRule, Meter)>,
    unknown: Meter,
}

impl RpcEntry {
    /// The services over this state.
    pub(crate) fn new(state: &Arc<State>) -> Self {
        // A deadline that a client asks for holds for its stream too: what it does not wait for goes to others.
        let deadlines = DeadlinePolicy::new().with_enforce_on_streams(true);
        let service = ConnectRpcService::new(super::router(state)).with_deadline_policy(deadlines).with_interceptor(Scale);
        let methods = RULES.iter().map(|rule| (rule.path, (*rule, Meter::new(rule.path)))).collect();
        Self(Arc::new(Inner { state: Arc::clone(state), service, methods, unknown: Meter::new("unknown") }))
    }

    /// The paths of the services, each with its methods as a parameter.
    pub(crate) fn paths() -> Vec<String> {
        let mut paths: Vec<String> =
            RULES.iter().filter_map(|rule| Some(format!("{}/{{method}}", rule.path.rsplit_once('/')?.0))).collect();
        paths.dedup();
        paths
    }
}

impl Inner {
    async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let state = &self.state;
        let connection = parts.extensions.get::<Connection>().copied().unwrap_or_default();
        let request_id = request_id::of(&parts.headers, &*state.engine.ports().ids);
        let reached = Reached::new(connection, &parts.headers, &state.config.trusted_proxies);
        let origin = parts.headers.get(header::ORIGIN).cloned();
        let method = self.methods.get(parts.uri.path());
        let meter = method.map_or(&self.unknown, |(_, meter)| meter);
        let mut line = RequestLine::begin(state, meter, &parts.method, reached.connection.peer, request_id);
        let (mut response, status) = if parts.method == Method::OPTIONS {
            (self.options(&parts), StatusCode::NO_CONTENT)
        } else {
            self.answer(method.map(|(rule, _)| rule), parts, body, &reached, &mut line).await
        };
        secure(&mut response);
        response.headers_mut().insert(request_id::HEADER, request_id::value(line.request_id()));
        if let Some(origin) = origin {
            state.cors.admit(&origin, response.headers_mut());
        }
        line.end(status);
        response
    }

    /// The answer, and the HTTP status that comes nearest to what it says: over gRPC the answer's own says nothing.
    async fn answer(
        &self,
        rule: Option<&RpcRule>,
        parts: Parts,
        body: Body,
        reached: &Reached,
        line: &mut RequestLine<'_>,
    ) -> (Response<Body>, StatusCode) {
        let (headers, version, mut body) = (parts.headers.clone(), parts.version, Some(body));
        match self.admit(rule, parts, &mut body, reached, line).await {
            Ok((request, answered)) => match self.service.clone().call(request).await {
                Ok(response) => answered.answer(response.map(Body::new)),
                Err(never) => match never {},
            },
            Err(refused) => {
                let status = refused.http_status();
                let mut response = refused.into_http_response(&headers).map(Body::new);
                if let Some(body) = body {
                    drain::Unread::new(body).drain(&headers, version, &mut response);
                }
                (response, status)
            }
        }
    }

    async fn admit(
        &self,
        rule: Option<&RpcRule>,
        mut parts: Parts,
        body: &mut Option<Body>,
        reached: &Reached,
        line: &mut RequestLine<'_>,
    ) -> Result<(Request<Body>, Arc<Answered>), ConnectError> {
        let Some(rule) = rule else {
            return Err(ConnectError::unimplemented(shortened(&format!("there is no method {}", parts.uri.path()))));
        };
        let request_id = line.request_id().to_owned();
        let refused = |fault: RpcFault| fault.into_status(&request_id);
        self.state.cors.guard(&parts.headers, reached.host()).map_err(|fault| refused(fault.into()))?;
        let caller = self.identify(&parts, reached, &request_id).await.map_err(|fault| refused(fault.into()))?;
        line.user(Some(&caller));
        if rule.action == Action::Run && rule.is_change && self.state.refuses_work() {
            return Err(refused(RpcFault::Stopping));
        }
        if !rule.checked_by_handler {
            self.permit(rule, &caller).await.map_err(refused)?;
        }
        let load = self.state.load(&parts, reached, Some(&caller)).map_err(|full| refused(Fault::from(full).into()))?;
        let load = Arc::new(load);
        let upload = rule.is_upload.then(|| Upload::new(Arc::clone(&load)));
        let sent = match &upload {
            // An upload may take as long as it likes.
            Some(upload) => Arc::clone(upload).count(body.take().expect("it is taken once")),
            None => {
                let body = body.as_mut().expect("it is not taken");
                let (sent, most) = (read(body, super::most_bytes(rule.path), &load).await.map_err(refused)?, super::most_bytes(rule.path));
                Body::from(unpack::unpacked(&mut parts.headers, sent, most, &load).await.map_err(refused)?)
            }
        };
        let answered = Arc::new(Answered::default());
        parts.extensions.insert(Admitted { caller, rule: *rule, load, upload, answered: Arc::clone(&answered) });
        Ok((Request::from_parts(parts, sent), answered))
    }

    /// Tells who calls. Whoever fails too often at that is told only to wait.
    async fn identify(&self, parts: &Parts, reached: &Reached, request_id: &str) -> Result<Caller, Fault> {
        let (state, peer) = (&self.state, reached.connection.peer);
        let (attempts, clock) = (&state.key_attempts, &state.engine.ports().clock);
        let shown = credential::shown(&parts.headers, peer);
        let key = if let Credential::Key(key) = &shown { Some(key.clone()) } else { None };
        key.as_deref().map_or(Ok(()), |key| attempts.check_key(peer, key, clock.monotonic()))?;
        let caller = state.engine.authenticate(shown, peer.to_string(), request_id.to_owned()).await.map_err(Fault::from);
        match (&caller, key.as_deref()) {
            (Ok(_), Some(key)) => attempts.worked(peer, key),
            (Err(fault), key) if fault.is_guess() => attempts.failed(peer, key, clock.monotonic())?,
            _ => {}
        }
        caller
    }

    /// Applies the rule. That somebody tried what they may not is kept before they are told.
    async fn permit(&self, rule: &RpcRule, caller: &Caller) -> Result<(), RpcFault> {
        match caller.may(rule.action) {
            Ok(_) => Ok(()),
            Err(error) => Err(refusal::noted(&self.state, caller, rule, error.into(), &Subject::default()).await),
        }
    }

    fn options(&self, parts: &Parts) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().insert(header::ALLOW, ALLOW);
        self.state.cors.preflight(parts, response.headers_mut());
        response
    }
}

/// The whole of a call, before anything is done for it.
async fn read(body: &mut Body, most: usize, load: &Load) -> Result<Bytes, RpcFault> {
    // What frames a message takes a few bytes too.
    let status = match body::read(body, most + 64, load).await {
        Ok(whole) => return Ok(whole),
        Err(Unread::NoRoom(full)) => return Err(Fault::NoRoom(full).into()),
        Err(Unread::TooLarge) => ConnectError::resource_exhausted(format!("the message is too large: at most {most} bytes")),
        Err(Unread::BrokeOff) => ConnectError::invalid_argument("the message ended before it was complete"),
        Err(Unread::Late) => ConnectError::deadline_exceeded(format!("the message did not arrive within {} s", BODY_TIMEOUT.as_secs())),
    };
    Err(RpcFault::Received(status))
}

impl tower::Service<Request<Body>> for RpcEntry {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { Ok(inner.serve(request).await) })
    }
}
