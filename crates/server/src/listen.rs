//! Sockets: TCP, TLS and the Unix socket, each connection a task of its own. A listener knows connections and never requests; it bounds how
//! many there are, how long they may dawdle, and ends them in order.
//!
//! The order of a stop: no new connection; idle ones close; requests under way finish; streams say goodbye; at the deadline the rest is dropped.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::connections::{Connections, Slot};
use crate::peer::{Connection, ConnectionId, Peer};
use crate::preface::Prompt;
use crate::stall::Unstalled;
use crate::tls::{self, TlsError};
use crate::traffic::Answer;

/// A place that could not be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken, or not ours to take.
    #[error("cannot listen on {address}")]
    Bind {
        /// Which.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// What connections may do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// At so many connections an idle one of the address that has the most is closed for a new one; without an idle one, new ones wait to be accepted.
    pub max_connections: usize,
    /// One address may have so many of them. The Unix socket and trusted proxies are exempt.
    pub max_connections_per_address: usize,
    /// The same for the loopback address, which all clients of this machine share.
    pub max_connections_of_loopback: usize,
    /// A request's head must have come in by then; an idle connection of HTTP/1.1 is closed then, too.
    pub header_timeout: Duration,
    /// A connection on which nothing has been under way for so long is closed.
    pub idle_timeout: Duration,
    /// How long requests under way may take to finish once the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 16_000,
            max_connections_per_address: 2_000,
            max_connections_of_loopback: 12_000,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            drain: Duration::from_secs(10),
        }
    }
}

/// A handshake that takes longer is none.
const TLS_HANDSHAKE: Duration = Duration::from_secs(10);
/// A client that takes nothing of what is written to it for this long is gone.
const WRITE_STALL: Duration = Duration::from_secs(90);
/// The largest head of a request.
const MOST_HEAD_BYTES: usize = 64 * 1024;
/// An HTTP/2 connection is asked so often whether it is still there, and is given so long to answer. Streams may be silent for as long as they like.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Streams on one HTTP/2 connection. Many workers may share one.
const MOST_STREAMS: u32 = 2_000;
/// What a client may send on one stream, and on one connection, before the server has read it: HTTP/2 keeps that in memory.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// What of an answer waits in memory for a client that reads slowly, on each stream.
const MAX_SEND_BUFFER_BYTES: usize = 64 << 10;
/// A client that says nothing is asked below HTTP whether its machine is still there, first after the one, then after the other, so many times: one that
/// waits for a lease over HTTP/1.1 and is gone must not be sent one.
const PROBES: TcpKeepalive = TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5)).with_retries(4);
/// So many may wait to be accepted: a thousand followers come back at once when a server is there again.
const BACKLOG: u32 = 4_096;
/// How long to wait where the system has no more connections to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// A socket that connections come from.
pub struct Listener(Kind);

enum Kind {
    Tcp(TcpListener),
    Tls(TcpListener, TlsAcceptor),
    Unix { listener: UnixListener, path: PathBuf, beside: PathBuf, owner: u32 },
}

impl Listener {
    /// Plain TCP. Port 0 takes a free one.
    pub async fn tcp(address: SocketAddr) -> Result<Self, ListenError> {
        Ok(Self(Kind::Tcp(bind(address)?)))
    }

    /// TLS with a certificate chain and its key, both PEM files.
    pub async fn tls(address: SocketAddr, certificate: &Path, key: &Path) -> Result<Self, ListenError> {
        let acceptor = tls::acceptor(certificate, key)?;
        Ok(Self(Kind::Tls(bind(address)?, acceptor)))
    }

    /// A Unix socket that only its owner can open. What an earlier server left at the path is replaced; that no server lives there is for the
    /// caller to know.
    pub fn unix(path: &Path) -> Result<Self, ListenError> {
        let listener = Self::unix_hidden(path)?;
        listener.publish()?;
        Ok(listener)
    }

    /// As [`Listener::unix`], but nobody finds it until it is published: so that who can connect can be sure of a server that started.
    pub fn unix_hidden(path: &Path) -> Result<Self, ListenError> {
        let beside = beside(path);
        let (listener, owner) = bind_unix(&beside).map_err(|source| ListenError::Bind { address: path.display().to_string(), source })?;
        Ok(Self(Kind::Unix { listener, path: path.to_owned(), beside, owner }))
    }

    /// Moves a hidden Unix socket to its path. Others are where they belong already.
    pub fn publish(&self) -> Result<(), ListenError> {
        let Kind::Unix { path, beside, .. } = &self.0 else { return Ok(()) };
        std::fs::rename(beside, path).map_err(|source| ListenError::Bind { address: path.display().to_string(), source })
    }

    /// The address that TCP and TLS listen on.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Tcp(listener) | Kind::Tls(listener, _) => listener.local_addr().ok(),
            Kind::Unix { .. } => None,
        }
    }

    async fn accept(&self) -> io::Result<Accepted> {
        match &self.0 {
            Kind::Tcp(listener) => listener.accept().await.map(|(stream, peer)| Accepted::Tcp(stream, peer, None)),
            Kind::Tls(listener, acceptor) => {
                listener.accept().await.map(|(stream, peer)| Accepted::Tcp(stream, peer, Some(acceptor.clone())))
            }
            Kind::Unix { listener, owner, .. } => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred()?.uid();
                Ok(Accepted::Unix(stream, Peer::Unix { uid, owner: uid == *owner || uid == 0 }))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix { path, beside, .. } = &self.0 {
            // Whoever finds it afterwards finds nobody behind it; that is all a failure costs.
            let _ = std::fs::remove_file(path);
            let _ = std::fs::remove_file(beside);
        }
    }
}

enum Accepted {
    Tcp(TcpStream, SocketAddr, Option<TlsAcceptor>),
    Unix(UnixStream, Peer),
}

impl Accepted {
    const fn peer(&self) -> Peer {
        match self {
            Self::Tcp(_, address, _) => Peer::Tcp(*address),
            Self::Unix(_, peer) => *peer,
        }
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        // What comes from it is like it.
        SockRef::from(&listener).set_tcp_keepalive(&PROBES)?;
        Ok(listener)
    };
    open().map_err(|source| ListenError::Bind { address: address.to_string(), source })
}

/// Where a Unix socket is until it is published: it is bound there and closed to others, so that it is never open to them at its path.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

/// Binds and closes the socket to others. Its owner is this process's user.
fn bind_unix(path: &Path) -> io::Result<(UnixListener, u32)> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    let owner = std::fs::metadata(path)?.uid();
    Ok((listener, owner))
}

/// Serves connections until `shutdown`, then ends as the file's head says. Returns when the last one is gone.
pub async fn serve(listener: Listener, app: App, limits: Limits, shutdown: impl Future<Output = ()>) {
    let slots = Connections::new(limits, app.trusted_proxies().to_vec());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.as_mut() => break,
            () = app.stopping() => break,
            // Ended connections are collected as they come, so that their number is that of the open ones.
            Some(_) = connections.join_next() => continue,
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                slots.evict();
                sleep(EXHAUSTED_PAUSE).await;
                continue;
            }
        };
        let place = tokio::select! {
            place = slots.place() => place,
            () = shutdown.as_mut() => break,
            () = app.stopping() => break,
        };
        let Some(slot) = slots.open(accepted.peer(), place) else {
            tracing::debug!(peer = %accepted.peer(), "an address has as many connections as it may");
            continue;
        };
        // Counted before its task has its turn: whoever counts clients misses none that could be answered.
        let (app, open) = (app.clone(), app.open_connection());
        connections.spawn(async move {
            tokio::select! {
                () = connect(accepted, app, limits, &slot) => {}
                () = slot.evicted() => tracing::debug!("an idle connection was closed for a new one"),
            }
            drop((open, slot));
        });
    }
    drop(listener);
    app.stop();
    let drained = async {
        while connections.join_next().await.is_some() {}
        app.streams_closed().await;
    };
    if timeout(limits.drain, drained).await.is_err() {
        tracing::warn!(open = connections.len(), "connections were dropped at the deadline");
        connections.shutdown().await;
    }
}

async fn connect(accepted: Accepted, app: App, limits: Limits, slot: &Slot) {
    match accepted {
        Accepted::Unix(stream, peer) => {
            speak(Unstalled::new(stream, WRITE_STALL), Connection { peer, tls: false }, app, limits, slot).await
        }
        Accepted::Tcp(stream, address, acceptor) => {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "small frames may be delayed");
            }
            let peer = Peer::Tcp(address);
            // Below TLS, where every byte that the client takes is seen.
            let stream = Unstalled::new(stream, WRITE_STALL);
            match acceptor {
                None => speak(stream, Connection { peer, tls: false }, app, limits, slot).await,
                Some(acceptor) => match timeout(TLS_HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => speak(stream, Connection { peer, tls: true }, app, limits, slot).await,
                    Ok(Err(error)) => tracing::debug!(%error, %peer, "no TLS handshake"),
                    Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
                },
            }
        }
    }
}

/// HTTP on one connection: 1.1, or 2 for whoever begins so, whether TLS agreed on it or not.
async fn speak<S>(stream: S, connection: Connection, app: App, limits: Limits, slot: &Slot)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (answering, traffic, id) = (app.clone(), slot.traffic(), ConnectionId(slot.id()));
    let requests = Arc::clone(&traffic);
    let service = service_fn(move |request: Request<Incoming>| {
        let (app, underway) = (answering.clone(), requests.begin());
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(connection);
            request.extensions_mut().insert(id);
            name_host(&mut request);
            Ok::<_, Infallible>(app.answer(request).await.map(|body| Answer::new(body, underway)))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header_timeout).max_buf_size(MOST_HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(MAX_SEND_BUFFER_BYTES)
        .max_header_list_size(u32::try_from(MOST_HEAD_BYTES).expect("a constant"));
    let stream = Prompt::new(stream, limits.header_timeout);
    let mut serving = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        served = serving.as_mut() => Some(served),
        () = app.stopping() => None,
        // An answered ping is no request: who only answers those is idle.
        () = traffic.ceased(limits.idle_timeout) => None,
    };
    let served = match ended {
        Some(served) => served,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = %error, peer = %connection.peer, "a connection ended early");
    }
}

/// HTTP/2 names the host in the address alone; everything here looks for it where HTTP/1.1 has it.
fn name_host(request: &mut Request<Body>) {
    if request.headers().contains_key(header::HOST) {
        return;
    }
    let host = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
}
