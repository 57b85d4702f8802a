//! Opening a connection to an endpoint: TCP, TLS over TCP, or a Unix socket, all as one kind of stream.

use std::path::Path;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::endpoint::Endpoint;
use crate::error::{BoxError, ClientError};
use crate::tls;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Bytes in, bytes out.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An open connection.
pub(crate) type Connection = Box<dyn Duplex>;

/// Opens connections to one endpoint.
pub(crate) struct Connector {
    endpoint: Endpoint,
    tls: Option<TlsConnector>,
}

impl Connector {
    pub(crate) fn new(endpoint: Endpoint, ca_file: Option<&Path>) -> Result<Self, ClientError> {
        let tls = match &endpoint {
            Endpoint::Tcp { tls: true, .. } => Some(tls::connector(ca_file)?),
            Endpoint::Tcp { tls: false, .. } | Endpoint::Unix(_) => None,
        };
        Ok(Self { endpoint, tls })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection, ClientError> {
        match timeout(CONNECT_LIMIT, self.open()).await {
            Ok(opened) => opened,
            Err(_) => Err(self.unreachable(false, format!("no connection within {} s", CONNECT_LIMIT.as_secs()))),
        }
    }

    async fn open(&self) -> Result<Connection, ClientError> {
        let (host, port) = match &self.endpoint {
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| self.unreachable(false, error))?;
                return Ok(Box::new(stream));
            }
            Endpoint::Tcp { host, port, .. } => (host, *port),
        };
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| self.unreachable(false, error))?;
        // A request is one small write that waits for an answer; batching it up only costs time.
        stream.set_nodelay(true).map_err(|error| self.unreachable(false, error))?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let untrusted = |source: BoxError| ClientError::Tls { endpoint: self.endpoint.to_string(), source };
        let name = ServerName::try_from(host.clone()).map_err(|error| untrusted(error.into()))?;
        let stream = tls.connect(name, stream).await.map_err(|error| untrusted(error.into()))?;
        Ok(Box::new(stream))
    }

    pub(crate) fn unreachable(&self, connected: bool, source: impl Into<BoxError>) -> ClientError {
        ClientError::Unreachable { endpoint: self.endpoint.to_string(), connected, source: source.into() }
    }
}
