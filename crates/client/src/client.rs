//! The client itself: what it is made of. Its methods are beside what they are about.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use http::HeaderValue;

use crate::connection::Connector;
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::pool::Pool;
use crate::retry::Retry;
use crate::trace::{Detail, Trace};

/// Brings back a server that is not there. The error is for a person.
pub type Revive = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// How to make a client.
#[derive(Clone)]
pub struct Options {
    /// Where the server is.
    pub endpoint: Endpoint,
    /// The key; a Unix socket needs none.
    pub api_key: Option<String>,
    /// A PEM file of certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// How long to repeat.
    pub retry: Retry,
    /// Who sees the requests.
    pub trace: Option<Trace>,
    /// Who is asked for the server while it was never seen and nobody listens at the endpoint.
    pub revive: Option<Revive>,
}

impl Options {
    /// A client of `endpoint` without a key.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, api_key: None, ca_file: None, retry: Retry::default(), trace: None, revive: None }
    }
}

/// A client of one server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) pool: Arc<Pool>,
    pub(crate) api_key: Option<HeaderValue>,
    pub(crate) retry: Retry,
    trace: Option<Trace>,
}

impl Client {
    /// Makes a client; nothing is sent yet.
    pub fn new(options: Options) -> Result<Self, ClientError> {
        let api_key = options.api_key.map(|key| secret_header("API key", key.trim())).transpose()?;
        let connector = Connector::new(options.endpoint, options.ca_file.as_deref(), options.revive)?;
        let inner = Inner { pool: Arc::new(Pool::new(connector)), api_key, retry: options.retry, trace: options.trace };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The same server over the same connections, with another key.
    pub fn with_key(&self, api_key: &str) -> Result<Self, ClientError> {
        let api_key = Some(secret_header("API key", api_key.trim())?);
        let inner = Inner { pool: self.inner.pool.clone(), api_key, retry: self.inner.retry, trace: self.inner.trace.clone() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where the server is.
    pub fn endpoint(&self) -> &Endpoint {
        self.inner.pool.connector().endpoint()
    }

    pub(crate) fn trace(&self, detail: Detail, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.inner.trace {
            trace(detail, &line());
        }
    }

    pub(crate) fn protocol(&self, what: impl Into<String>, request_id: &str) -> ClientError {
        ClientError::Protocol { endpoint: self.endpoint().to_string(), what: what.into(), request_id: request_id.to_owned() }
    }
}

/// A header that no debug form shows.
pub(crate) fn secret_header(what: &'static str, text: &str) -> Result<HeaderValue, ClientError> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| ClientError::Invalid { what, why: "it holds characters that none has".to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}
