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
    pub(crate) pool: Pool,
    pub(crate) api_key: Option<HeaderValue>,
    pub(crate) retry: Retry,
    trace: Option<Trace>,
}

impl Client {
    /// Makes a client; nothing is sent yet.
    pub fn new(options: Options) -> Result<Self, ClientError> {
        let api_key = options.api_key.map(|key| header(&key)).transpose()?;
        let connector = Connector::new(options.endpoint, options.ca_file.as_deref(), options.revive)?;
        let inner = Inner { pool: Pool::new(connector), api_key, retry: options.retry, trace: options.trace };
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

fn header(key: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(key.trim())
        .map_err(|_| ClientError::Invalid { what: "API key", why: "it holds characters that no key has".to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}
