//! The client itself: what it is made of. Its methods are beside what they are about.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use http::HeaderValue;

use crate::connection::Connector;
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::pool::Pool;
use crate::retry::Retry;
use crate::trace::{Detail, Trace};

/// Brings back a server that is not there. The error is for a person.
pub type Revive = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// Is told why a call is repeated: before its first repeat, and again where the reason is another one.
pub type OnRetry = Arc<dyn Fn(&ClientError) + Send + Sync>;

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
    /// Who is told that a call is repeated.
    pub on_retry: Option<OnRetry>,
    /// Who sees the requests.
    pub trace: Option<Trace>,
    /// Who is asked for the server while it was never seen and nobody listens at the endpoint.
    pub revive: Option<Revive>,
}

impl Options {
    /// A client of `endpoint` without a key.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, api_key: None, ca_file: None, retry: Retry::default(), on_retry: None, trace: None, revive: None }
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
    pub(crate) on_retry: Option<OnRetry>,
    trace: Option<Trace>,
    /// What the last answer said.
    pub(crate) server_version: Arc<Mutex<Option<String>>>,
}

impl Client {
    /// Makes a client; nothing is sent yet.
    pub fn new(options: Options) -> Result<Self, ClientError> {
        let api_key = options.api_key.as_deref().map(|key| secret_header("API key", key.trim())).transpose()?;
        let connector = Connector::new(options.endpoint.clone(), options.ca_file.as_deref(), options.revive.clone())?;
        let pool = Arc::new(Pool::new(connector));
        let (Options { retry, on_retry, trace, .. }, server_version) = (options, Arc::default());
        let inner = Inner { pool, api_key, retry, on_retry, trace, server_version };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The same server over the same connections, with another key.
    pub fn with_key(&self, api_key: &str) -> Result<Self, ClientError> {
        let api_key = Some(secret_header("API key", api_key.trim())?);
        let Inner { pool, retry, on_retry, trace, server_version, .. } = &*self.inner;
        let (pool, on_retry, trace, server_version) = (pool.clone(), on_retry.clone(), trace.clone(), server_version.clone());
        let inner = Inner { pool, api_key, retry: *retry, on_retry, trace, server_version };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where the server is.
    pub fn endpoint(&self) -> &Endpoint {
        self.inner.pool.connector().endpoint()
    }

    /// The server's version, once it has answered; none where it does not say.
    pub fn server_version(&self) -> Option<String> {
        self.inner.server_version.lock().expect("no panic holds it").clone()
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
