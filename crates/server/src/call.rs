//! One admitted request as its handler sees it: who calls, the path's parameters, the query, the body.

use std::error::Error as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, RawPathParams};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, header};
use runvoy_engine::{Caller, Engine, EngineError};
use runvoy_model::execution::Execution;
use serde::de::DeserializeOwned;

use crate::address::Reached;
use crate::app::State;
use crate::attempt::SeenBody;
use crate::body::{self, BODY_TIMEOUT, MOST_OPENED_BYTES, Unread};
use crate::drain;
use crate::fault::Fault;
use crate::json_words;
use crate::query::Query;
use crate::room::Load;
use crate::slip;

/// The largest body that a route takes, unless it says otherwise.
pub(crate) const MOST_BODY_BYTES: usize = 1 << 20;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const MOST_KEY_CHARS: usize = 255;

/// The parameters of a path, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// The parameters that the router found.
    pub(crate) async fn of(parts: &mut Parts) -> Result<Self, Fault> {
        let found = RawPathParams::from_request_parts(parts, &()).await;
        let found = found.map_err(|_| Fault::invalid("path", "is not UTF-8 once decoded"))?;
        Ok(Self(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }

    /// A parameter; empty where the path has none of that name.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// One admitted request.
pub(crate) struct Call {
    pub(crate) state: Arc<State>,
    pub(crate) caller: Option<Caller>,
    pub(crate) parts: Parts,
    pub(crate) params: Params,
    pub(crate) reached: Reached,
    pub(crate) request_id: String,
    /// Taken by the first who reads it. What is not read of it is drained after the answer.
    pub(crate) body: drain::Unread,
    /// The body once it was read, for the audit event of a refused call.
    pub(crate) seen: SeenBody,
    /// What the body holds, for as long as the call lasts.
    pub(crate) load: Load,
}

impl Call {
    /// The engine.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.state.engine
    }

    /// Who calls. On a route that anyone may call nobody is known.
    pub(crate) fn caller(&self) -> Result<&Caller, Fault> {
        self.caller.as_ref().ok_or(Fault::Engine(EngineError::NoKey))
    }

    /// The path's parameter `id`: a whole id or a part of one.
    pub(crate) fn id(&self) -> &str {
        self.params.get("id")
    }

    /// The execution that the path names, if the caller may see it.
    pub(crate) async fn execution(&self) -> Result<Execution, Fault> {
        Ok(self.engine().execution(self.caller()?, self.id()).await?)
    }

    /// The query.
    pub(crate) fn query(&self) -> Result<Query, Fault> {
        Query::of(&self.parts.uri)
    }

    /// The client's own key for this request.
    pub(crate) fn idempotency_key(&self) -> Result<Option<String>, Fault> {
        let Some(value) = self.parts.headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        let text = value.to_str().unwrap_or_default();
        if text.is_empty() || text.len() > MOST_KEY_CHARS || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Fault::invalid("Idempotency-Key", format!("must have 1 to {MOST_KEY_CHARS} printable ASCII characters")));
        }
        Ok(Some(text.to_owned()))
    }

    /// The body as JSON, which must be there. `holds` says to a person what it is to hold.
    pub(crate) async fn body_of<T: DeserializeOwned>(&self, holds: &str) -> Result<T, Fault> {
        self.json().await?.ok_or_else(|| Fault::invalid("body", format!("must be a JSON object with {holds}")))
    }

    /// The body as JSON; `None` where there is none.
    pub(crate) async fn json<T: DeserializeOwned>(&self) -> Result<Option<T>, Fault> {
        self.json_within(MOST_BODY_BYTES).await
    }

    /// The same, where a field that looks like a slip of a known one, or like one of these parameters of the address, is refused.
    pub(crate) async fn json_without_slips<T: DeserializeOwned>(&self, parameters: &[&str]) -> Result<Option<T>, Fault> {
        let Some(body) = self.json_text(MOST_BODY_BYTES).await? else { return Ok(None) };
        slip::refuse_fields::<T>(&body, parameters)?;
        opened(&body).map(Some)
    }

    /// The body as JSON of at most this many bytes; `None` where there is none.
    pub(crate) async fn json_within<T: DeserializeOwned>(&self, most: usize) -> Result<Option<T>, Fault> {
        self.json_text(most).await?.map(|body| opened(&body)).transpose()
    }

    /// Reads the body of a call that is refused before its handler: the trail says what was wanted. What cannot be read is not said.
    pub(crate) async fn look_at_body(&self) {
        let _unread = self.json_text(MOST_BODY_BYTES).await;
    }

    /// The text of the body, which there is room to open.
    async fn json_text(&self, most: usize) -> Result<Option<Bytes>, Fault> {
        let mut body = self.body.take();
        let read = self.read(&mut body, most).await;
        self.body.put_back(body);
        let body = read?;
        if body.is_empty() {
            return Ok(None);
        }
        self.seen.get_or_init(|| body.clone());
        let content_type = self.parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        // A form or a plain-text body is what a foreign page can send without asking first.
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(Fault::invalid("Content-Type", "must be application/json"));
        }
        let opened = body::opened_bytes(&body);
        if opened > MOST_OPENED_BYTES {
            return Err(Fault::too_many_values(MOST_OPENED_BYTES));
        }
        self.load.set(opened)?;
        Ok(Some(body))
    }

    async fn read(&self, body: &mut Body, most: usize) -> Result<Bytes, Fault> {
        let declared = self.parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|length| length > most as u64) {
            return Err(Fault::too_large(most));
        }
        body::read(body, most, &self.load).await.map_err(|unread| match unread {
            Unread::TooLarge => Fault::too_large(most),
            Unread::BrokeOff => Fault::invalid("body", "is incomplete: the connection was closed"),
            Unread::Late => Fault::invalid("body", format!("did not arrive within {} s", BODY_TIMEOUT.as_secs())),
            Unread::NoRoom(full) => Fault::NoRoom(full),
        })
    }
}

/// What a text of JSON says.
fn opened<T: DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    // A list of values in the order of the fields would be read as an object.
    if text.trim_ascii_start().starts_with(b"[") {
        return Err(Fault::invalid("body", "must be a JSON object"));
    }
    match axum::Json::<T>::from_bytes(text) {
        Ok(axum::Json(value)) => Ok(value),
        // The cause names the field; the rejection itself only says that there is one.
        Err(rejection) => {
            let message = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
            let (field, message) = json_words::refusal(&message);
            Err(Fault::invalid(&field, message))
        }
    }
}
