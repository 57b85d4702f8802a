//! The whole edge as one value: state that every request shares, and the router over it. It owns no sockets; listeners and other entry
//! points hand it requests.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Body;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use parking_lot::Mutex;
use runvoy_engine::{Caller, Engine};
use runvoy_wire::Probe;
use tokio::sync::{Notify, watch};

use crate::address::Reached;
use crate::cors::Cors;
use crate::limit::{Attempts, network};
use crate::link::LinkKey;
use crate::peer::ConnectionId;
use crate::proxy::Network;
use crate::resource;
use crate::room::{Full, Holder, Load, Room};
use crate::route::TableRow;
use crate::rpc::{RpcEntry, RpcRule, TokenKey};
use crate::ticket::TicketKey;

/// What the edge can be told.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The server's own address, for answers to requests that do not show one: `http://127.0.0.1:56212`.
    pub own_url: String,
    /// The address under which clients know the server, where a proxy stands in front of it. Its pages may call.
    pub public_url: Option<String>,
    /// Origins of web pages elsewhere that may call; `*` means all.
    pub cors_origins: Vec<String>,
    /// Anyone may read the metrics; else who may is the role's matter.
    pub metrics_public: bool,
    /// What signs the tickets of log streams and links to logs, and signed task tokens before there was a ring of keys for them. It outlives a restart, so
    /// that a follower can resume.
    pub ticket_key: [u8; 32],
    /// A user may follow this many logs at once.
    pub max_streams_per_user: usize,
    /// Large requests may hold this many bytes together, over all connections.
    pub max_request_bytes: usize,
    /// So many wrong keys and tokens a minute are looked at, per address and per beginning of a key; 0 is any number.
    pub failed_keys_per_minute: u32,
    /// So many wrong claim tokens a minute are looked at, per address; 0 is any number.
    pub failed_claims_per_minute: u32,
    /// Proxies whose word about a client is taken: its address, and how it reached them.
    pub trusted_proxies: Vec<Network>,
    /// What the server stands on: `local` or `aws`.
    pub provider: String,
    /// The AWS region.
    pub region: Option<String>,
}

impl ServerConfig {
    /// The defaults of a server at this address that signs with this key.
    pub fn new(own_url: impl Into<String>, ticket_key: [u8; 32]) -> Self {
        Self {
            own_url: own_url.into(),
            public_url: None,
            cors_origins: Vec::new(),
            metrics_public: false,
            ticket_key,
            max_streams_per_user: 4_000,
            max_request_bytes: 256 << 20,
            failed_keys_per_minute: 60,
            failed_claims_per_minute: 20,
            trusted_proxies: Vec::new(),
            provider: "local".into(),
            region: None,
        }
    }
}

/// Renders the metrics as Prometheus text.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// What only the program around the edge can do, because it alone knows the files below.
pub trait Host: Send + Sync {
    /// Looks at the disk, the integrity of the store, the growth of its files.
    fn probes(&self) -> BoxFuture<'_, Vec<Probe>>;

    /// What the server stands on, by name: how each stands and, where it went wrong, the last error. Anybody may ask, as often as they like:
    /// it costs little, and tells nothing that only admins may know.
    fn dependencies(&self) -> BoxFuture<'_, Vec<Probe>>;

    /// A user's key has ended, and another may have taken its place. Where this server keeps the ended key in a file, the file gets the other one, or
    /// is removed. What became of it, for a person; nothing where the file holds another key.
    fn key_ended<'a>(&'a self, prefix: &'a str, instead: Option<&'a str>) -> BoxFuture<'a, Option<String>>;

    /// Copies the store, the logs and the keys to a directory that it makes.
    fn backup(&self, destination: PathBuf) -> BoxFuture<'_, Result<(), BackupFault>>;
}

/// Why there is no copy. The words are for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupFault {
    /// It cannot be made there; elsewhere it could.
    #[error("{0}")]
    Destination(String),
    /// It cannot be made now.
    #[error("{0}")]
    Failed(String),
    /// What this server keeps is not kept in files: there is another way, which the words name.
    #[error("{0}")]
    Elsewhere(String),
}

/// Everything the edge stands on.
pub struct ServerParts {
    /// What the program does.
    pub engine: Arc<Engine>,
    /// Settings.
    pub config: ServerConfig,
    /// The text of `/metrics`.
    pub metrics: MetricsText,
    /// The program around the edge.
    pub host: Arc<dyn Host>,
}

/// What every request shares.
pub(crate) struct State {
    pub(crate) engine: Arc<Engine>,
    pub(crate) config: ServerConfig,
    pub(crate) metrics: MetricsText,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) cors: Cors,
    pub(crate) room: Arc<Room>,
    pub(crate) key_attempts: Attempts,
    pub(crate) claim_attempts: Attempts,
    pub(crate) tickets: TicketKey,
    pub(crate) links: LinkKey,
    pub(crate) tokens: TokenKey,
    pub(crate) openapi: bytes::Bytes,
    /// New work is refused.
    leaves: AtomicBool,
    /// Listeners and streams end.
    stop: watch::Sender<bool>,
    /// Open streams by user; a user without one has no entry.
    streams: Mutex<HashMap<String, usize>>,
    connections: AtomicUsize,
    visits: AtomicUsize,
    streams_changed: Notify,
}

impl State {
    /// Comes back when the server begins to stop.
    pub(crate) async fn stopping(&self) {
        let mut stop = self.stop.subscribe();
        // The sender lives in this very state, so that the wait cannot fail.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// Whether the server has begun to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Whether new work is refused because the server was told to stop.
    pub(crate) fn refuses_work(&self) -> bool {
        self.leaves.load(Ordering::SeqCst)
    }

    /// Counts a request against the memory budget: its head now, its body as it comes.
    pub(crate) fn load(&self, parts: &Parts, reached: &Reached, caller: Option<&Caller>) -> Result<Load, Full> {
        let connection = parts.extensions.get::<ConnectionId>().map(|id| Holder::Connection(id.0));
        // All clients of this machine, and those of a proxy on it that is not trusted, share the loopback address.
        let address = network(reached.connection.peer).filter(|address| !address.is_loopback()).map(Holder::Address);
        let user = caller.map(|caller| Holder::User(caller.email.clone()));
        self.room.load([connection, address, user].into_iter().flatten().collect(), head_bytes(parts))
    }

    /// Counts a user's stream until the guard is dropped; `None` where they have as many as they may.
    pub(crate) fn open_stream(self: &Arc<Self>, email: &str) -> Option<OpenStream> {
        let mut streams = self.streams.lock();
        let open = streams.get(email).copied().unwrap_or(0);
        if open >= self.config.max_streams_per_user {
            return None;
        }
        streams.insert(email.to_owned(), open + 1);
        metrics::gauge!("runvoy_streams_active").increment(1);
        Some(OpenStream { state: Arc::clone(self), email: email.to_owned() })
    }
}

/// What the head of a request takes in memory, about.
fn head_bytes(parts: &Parts) -> usize {
    let uri = parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    uri + parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
}

/// One open stream.
pub(crate) struct OpenStream {
    state: Arc<State>,
    email: String,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.state.streams.lock();
        if let Some(open) = streams.get_mut(&self.email) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.email);
            }
        }
        metrics::gauge!("runvoy_streams_active").decrement(1);
        self.state.streams_changed.notify_waiters();
    }
}

/// One open connection.
pub(crate) struct OpenConnection(Arc<State>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The edge. Cheap to clone.
#[derive(Clone)]
pub struct App {
    state: Arc<State>,
    router: axum::Router,
}

impl App {
    /// The edge over these parts.
    pub fn new(parts: ServerParts) -> Self {
        let routes = resource::all();
        let openapi = crate::openapi::document(&routes);
        let state = Arc::new(State {
            cors: Cors::new(&parts.config.cors_origins, parts.config.public_url.as_deref()),
            room: Room::new(parts.config.max_request_bytes),
            key_attempts: Attempts::new(parts.config.failed_keys_per_minute),
            claim_attempts: Attempts::new(parts.config.failed_claims_per_minute),
            tickets: TicketKey::new(parts.config.ticket_key),
            links: LinkKey::new(&parts.config.ticket_key),
            tokens: TokenKey::new(parts.config.ticket_key),
            openapi: openapi.into(),
            engine: parts.engine,
            config: parts.config,
            metrics: parts.metrics,
            host: parts.host,
            leaves: AtomicBool::new(false),
            stop: watch::channel(false).0,
            streams: Mutex::default(),
            connections: AtomicUsize::new(0),
            visits: AtomicUsize::new(0),
            streams_changed: Notify::new(),
        });
        let mut router = routes.into_router(&state);
        let rpc = RpcEntry::new(&state);
        for path in RpcEntry::paths() {
            router = router.route_service(&path, rpc.clone());
        }
        Self { state, router }
    }

    /// Answers one request. Never fails: whatever goes wrong is an answer too.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        match tower::Service::call(&mut self.router.clone(), request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// How many connections and streams are open.
    pub fn clients(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed) + self.state.streams.lock().values().sum::<usize>()
    }

    /// How many connections there have ever been.
    pub fn visits(&self) -> usize {
        self.state.visits.load(Ordering::Relaxed)
    }

    /// The proxies whose clients share one address.
    pub(crate) fn trusted_proxies(&self) -> &[Network] {
        &self.state.config.trusted_proxies
    }

    /// Counts an open connection until the guard is dropped.
    pub(crate) fn open_connection(&self) -> OpenConnection {
        self.state.visits.fetch_add(1, Ordering::Relaxed);
        self.state.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(&self.state))
    }

    /// Every route with its rule.
    pub fn table() -> Vec<TableRow> {
        resource::all().table()
    }

    /// Every RPC with its rule.
    pub fn rpc_table() -> Vec<RpcRule> {
        crate::rpc::RULES.to_vec()
    }

    /// The paths of all RPCs that are served.
    pub fn served_rpcs(&self) -> Vec<String> {
        crate::rpc::router(&self.state).methods().map(|path| format!("/{}", path.trim_start_matches('/'))).collect()
    }

    /// Refuses new work from now on, and denies readiness; everything else is answered as before. For a server that was told to stop and lets
    /// commands end first. One that leaves because it is idle does not call it: it comes back for the work that a late client brings.
    pub fn refuse_work(&self) {
        self.state.leaves.store(true, Ordering::SeqCst);
    }

    /// Ends the listeners: streams are closed, waits answered, readiness denied. What was begun is finished.
    pub fn stop(&self) {
        self.state.stop.send_replace(true);
    }

    /// Takes a stop back, for a server that found out while leaving that it is still needed. Its listeners must have ended.
    pub fn resume(&self) {
        self.state.stop.send_replace(false);
    }

    /// Comes back when [`App::stop`] was called.
    pub(crate) async fn stopping(&self) {
        self.state.stopping().await;
    }

    /// Comes back when no stream is open.
    pub(crate) async fn streams_closed(&self) {
        loop {
            let changed = self.state.streams_changed.notified();
            if self.state.streams.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }
}
