//! What every request goes through, in this order: id, address, method, origin, credential, rule, handler, headers, one log line, metrics. There
//! is no other middleware. A change that somebody may not make is kept as an event before they are told; if it cannot be kept, that is the answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Body;
use futures_util::FutureExt as _;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use runvoy_engine::{Caller, Credential, EngineError, Subject};
use runvoy_model::role::Action;

use crate::address::Reached;
use crate::app::State;
use crate::attempt::{self, SeenBody};
use crate::call::{Call, Params};
use crate::credential;
use crate::drain::Unread;
use crate::fault::{Fault, shortened};
use crate::link::looks_like_link;
use crate::meter::Meter;
use crate::peer::Connection;
use crate::request_id;
use crate::request_line::RequestLine;
use crate::route::{Route, Rule};
use crate::ticket::looks_like_ticket;

/// Tells a client of another release that it is one.
const VERSION: HeaderName = HeaderName::from_static("x-runvoy-version");

/// All methods of one path.
pub(crate) struct Entry {
    routes: Vec<Route>,
    allow: HeaderValue,
    meter: Meter,
    state: Arc<State>,
}

impl Entry {
    /// The entry of a path.
    pub(crate) fn new(path: &'static str, routes: Vec<Route>, state: Arc<State>) -> Self {
        let mut allow: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
        if allow.contains(&"GET") {
            allow.push("HEAD");
        }
        allow.push("OPTIONS");
        let allow = HeaderValue::from_str(&allow.join(", ")).expect("methods are ASCII");
        Self { routes, allow, meter: Meter::new(path), state }
    }

    /// The entry of every path that there is not.
    pub(crate) fn unknown(state: Arc<State>) -> Self {
        Self::new("unknown", Vec::new(), state)
    }

    /// Answers a request.
    pub(crate) async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let (state, version, headers, body) = (&self.state, parts.version, parts.headers.clone(), Unread::new(body));
        let connection = parts.extensions.get::<Connection>().copied().unwrap_or_default();
        let request_id = request_id::of(&parts.headers, &*state.engine.ports().ids);
        let reached = Reached::new(connection, &parts.headers, &state.config.trusted_proxies);
        let origin = parts.headers.get(header::ORIGIN).cloned();
        let mut line = RequestLine::begin(state, &self.meter, &parts.method, reached.connection.peer, request_id);
        let answered = self.dispatch(parts, body.clone(), &reached, &mut line).await;
        let mut response = answered.unwrap_or_else(|fault| fault.into_response(state, &reached, line.request_id()));
        body.drain(&headers, version, &mut response);
        secure(&mut response);
        response.headers_mut().insert(request_id::HEADER, request_id::value(line.request_id()));
        if let Some(origin) = origin {
            state.cors.admit(&origin, response.headers_mut());
        }
        line.end(response.status());
        response
    }

    async fn dispatch(&self, parts: Parts, body: Unread, reached: &Reached, line: &mut RequestLine<'_>) -> Result<Response<Body>, Fault> {
        if self.routes.is_empty() {
            return Err(Fault::no_route());
        }
        let wanted = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
        let Some(route) = self.routes.iter().find(|route| route.method == wanted) else {
            return if parts.method == Method::OPTIONS {
                Ok(self.options(&parts))
            } else {
                Err(Fault::MethodNotAllowed(self.allow.clone()))
            };
        };
        let (mut parts, state) = (parts, Arc::clone(&self.state));
        let params = Params::of(&mut parts).await?;
        let is_change = wanted != Method::GET;
        if is_change {
            state.cors.guard(&parts.headers, reached.host())?;
        }
        let caller = self.identify(route.rule, &parts, &params, reached, line).await?;
        line.user(caller.as_ref());
        if is_change && matches!(route.rule.action(), Action::Run | Action::Redrive) && state.refuses_work() {
            return Err(Fault::Stopping);
        }
        let asking = caller.clone().filter(|_| is_change).map(|caller| (caller, params.clone()));
        let (seen, permitted) = (SeenBody::default(), permit(route.rule, caller.as_ref(), reached));
        let load = state.load(&parts, reached, caller.as_ref())?;
        let (reached, request_id) = (reached.clone(), line.request_id().to_owned());
        let call = Call { state, caller, parts, params, reached, request_id, body, seen: seen.clone(), load };
        let answered = match permitted {
            Err(fault) => {
                if attempt::action_of(route.operation.id).is_some() {
                    call.look_at_body().await;
                }
                Err(fault)
            }
            Ok(()) => {
                let answering = (route.handler)(call);
                // A client that goes away must not leave a change half done, so changes run to their end on a task of their own.
                if is_change {
                    tokio::spawn(answering).await.unwrap_or_else(|_| Err(Fault::Panicked))
                } else {
                    AssertUnwindSafe(answering).catch_unwind().await.unwrap_or(Err(Fault::Panicked))
                }
            }
        };
        if let (Err(fault), Some((caller, params))) = (&answered, &asking) {
            self.note(route, caller, fault, &attempt::subject(params, &seen)).await?;
        }
        answered
    }

    /// Keeps a refusal in the trail, if it is one.
    async fn note(&self, route: &Route, caller: &Caller, fault: &Fault, subject: &Subject) -> Result<(), Fault> {
        let (Some(code), Fault::Engine(error)) = (fault.to_be_noted(), fault) else { return Ok(()) };
        let (action, why) = (attempt::action(route), shortened(&error.to_string()));
        Ok(self.state.engine.note_refused(caller, &action, (code.as_str(), &why), subject).await?)
    }

    /// Tells who calls; nobody, where anyone may. Whoever fails too often at that is told only to wait.
    async fn identify(
        &self,
        rule: Rule,
        parts: &Parts,
        params: &Params,
        reached: &Reached,
        line: &RequestLine<'_>,
    ) -> Result<Option<Caller>, Fault> {
        let open = match rule {
            Rule::Anyone => true,
            Rule::KeyUnlessPublic(_) => self.state.config.metrics_public,
            Rule::Key(_) | Rule::KeyOrTicket(_) | Rule::KeyOrLink(_) | Rule::Owner(_) => false,
        };
        if open {
            return Ok(None);
        }
        let (peer, clock, attempts) = (reached.connection.peer, &self.state.engine.ports().clock, &self.state.key_attempts);
        let shown = credential::shown(&parts.headers, peer);
        let key = if let Credential::Key(key) = &shown { Some(key.as_str()) } else { None };
        key.map_or(Ok(()), |key| attempts.check_key(peer, key, clock.monotonic()))?;
        let caller = self.recognise(rule, parts, params, reached, line).await;
        match (&caller, key) {
            (Ok(_), Some(key)) => attempts.worked(peer, key),
            (Err(fault), key) if fault.is_guess() => attempts.failed(peer, key, clock.monotonic())?,
            _ => {}
        }
        caller.map(Some)
    }

    async fn recognise(
        &self,
        rule: Rule,
        parts: &Parts,
        params: &Params,
        reached: &Reached,
        line: &RequestLine<'_>,
    ) -> Result<Caller, Fault> {
        let (peer, state, request_id) = (reached.connection.peer, &self.state, line.request_id());
        let from = peer.to_string();
        let shown = credential::shown(&parts.headers, peer);
        let (token, key) = match rule {
            Rule::KeyOrTicket(_) => credential::beside(parts, shown, looks_like_ticket)?,
            Rule::KeyOrLink(_) => credential::beside(parts, shown, looks_like_link)?,
            _ => (None, shown),
        };
        if let Some(token) = token {
            let admitted = match rule {
                Rule::KeyOrTicket(_) => credential::admit_ticket(state, &token, params, from.clone(), request_id).await,
                _ => credential::admit_link(state, &token, params, from.clone(), request_id).await,
            };
            // A link that ran out must not shut out who has a key too.
            let has_key = matches!(key, Credential::Key(_));
            if !(has_key && admitted.as_ref().is_err_and(Fault::is_no_credential)) {
                return admitted;
            }
        }
        Ok(state.engine.authenticate(key, from, request_id.to_owned()).await?)
    }

    fn options(&self, parts: &Parts) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().insert(header::ALLOW, self.allow.clone());
        self.state.cors.preflight(parts, response.headers_mut());
        response
    }
}

/// Applies the rule: whether who calls may.
fn permit(rule: Rule, caller: Option<&Caller>, reached: &Reached) -> Result<(), Fault> {
    let Some(caller) = caller else { return Ok(()) };
    caller.may(rule.action())?;
    if matches!(rule, Rule::Owner(_)) && !reached.connection.peer.is_owner() {
        return Err(EngineError::Forbidden { role: caller.role.as_str() }.into());
    }
    Ok(())
}

/// Headers of every answer: nothing of it is to be guessed, framed, run or kept by a browser.
pub(crate) fn secure(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(VERSION, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let csp = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(csp);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
