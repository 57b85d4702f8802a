//! Opening a connection to an endpoint: TCP, TLS over TCP, or a Unix socket, all as one kind of stream.
//!
//! Where the caller knows how to bring the server back, that is done while no answer was seen yet: a local server may leave between being
//! found and being asked. Afterwards it is not, for a server that answered and went was stopped by somebody.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::client::Revive;
use crate::endpoint::Endpoint;
use crate::error::{BoxError, ClientError};
use crate::tls;
use crate::tls_error::TlsTrouble;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How often the server is brought back for one connection.
const MAX_REVIVALS: u32 = 3;

/// Bytes in, bytes out.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An open connection.
pub(crate) type Connection = Box<dyn Duplex>;

/// Opens connections to one endpoint.
pub(crate) struct Connector {
    endpoint: Endpoint,
    tls: Option<TlsConnector>,
    revive: Option<Revive>,
    answered: AtomicBool,
}

impl Connector {
    pub(crate) fn new(endpoint: Endpoint, ca_file: Option<&Path>, revive: Option<Revive>) -> Result<Self, ClientError> {
        let tls = match &endpoint {
            Endpoint::Tcp { tls: true, .. } => Some(tls::connector(ca_file)?),
            Endpoint::Tcp { tls: false, .. } | Endpoint::Unix(_) => None,
        };
        Ok(Self { endpoint, tls, revive, answered: AtomicBool::new(false) })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The server is there and in service.
    pub(crate) fn note_answer(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection, ClientError> {
        for revivals in 0.. {
            let opened = timeout(CONNECT_LIMIT, self.open()).await;
            let late = |_| Err(self.unreachable(false, format!("no connection within {} s", CONNECT_LIMIT.as_secs())));
            let error = match opened.unwrap_or_else(late) {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            let wanted = revivals < MAX_REVIVALS && !self.answered.load(Ordering::Relaxed) && nobody_listens(&error);
            let Some(revive) = self.revive.as_ref().filter(|_| wanted) else {
                return Err(error);
            };
            revive().await.map_err(|why| self.unreachable(false, why))?;
        }
        unreachable!("revivals are bounded")
    }

    async fn open(&self) -> Result<Connection, ClientError> {
        let (host, port) = match &self.endpoint {
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| self.unreachable(false, error))?;
                self.check_peer(&stream)?;
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
        let untrusted = |error: io::Error| {
            let TlsTrouble { why, advice } = TlsTrouble::of_io(&error);
            ClientError::Tls { endpoint: self.endpoint.to_string(), advice, source: why.into() }
        };
        let name = ServerName::try_from(host.clone()).map_err(|error| untrusted(io::Error::other(error)))?;
        let stream = tls.connect(name, stream).await.map_err(untrusted)?;
        Ok(Box::new(stream))
    }

    /// Refuses a server of another user before anything is sent to it. Root can read and change what this user has, so its servers are trusted.
    fn check_peer(&self, stream: &UnixStream) -> Result<(), ClientError> {
        let peer = stream.peer_cred().map_err(|error| self.unreachable(false, error))?.uid();
        let own = own_uid();
        match is_trusted(peer, own) {
            true => Ok(()),
            false => Err(ClientError::ForeignServer { endpoint: self.endpoint.to_string(), peer, own }),
        }
    }

    pub(crate) fn unreachable(&self, connected: bool, source: impl Into<BoxError>) -> ClientError {
        ClientError::Unreachable { endpoint: self.endpoint.to_string(), connected, source: source.into() }
    }
}

/// Whether a server with this uid may be sent what the user with the other uid has to say.
const fn is_trusted(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}

#[expect(unsafe_code, reason = "geteuid has no safe form in std")]
fn own_uid() -> u32 {
    // SAFETY: it takes nothing, touches nothing and cannot fail.
    unsafe { libc::geteuid() }
}

fn nobody_listens(error: &ClientError) -> bool {
    let ClientError::Unreachable { source, .. } = error else { return false };
    let kind = source.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_the_same_user_and_of_root_are_trusted() {
        for (peer, own, trusted) in [(7, 7, true), (0, 0, true), (0, 7, true), (8, 7, false), (7, 0, false)] {
            assert_eq!(is_trusted(peer, own), trusted, "peer {peer}, own {own}");
        }
    }
}
