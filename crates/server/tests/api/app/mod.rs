//! A test app: the whole edge over memory adapters with a clock that stands still, ids that count, switches for faults, and a worker that the
//! test itself plays.

mod faulty;
mod played;
mod socket;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use runvoy_engine::{Config, DigestKey, Engine, Ports};
use runvoy_memory::{MemoryBlobStore, MemoryLogStore, MemorySealKeys, MemorySigningKeys, MemoryStore};
use runvoy_model::chain::AuditKey;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewKey, NewUser, NewWorker};
use runvoy_model::command::Worker;
use runvoy_model::id::{Id, StepId, WorkerAccountId, WorkerId};
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::WorkerKey;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::store::ExecutionStore as _;
use runvoy_server::{App, BackupFault, Connection, Host, Limits, Listener, ServerConfig, ServerParts, serve};
use runvoy_wire::{Probe, ProbeStatus};
use serde_json::{Value, json};

use faulty::FaultyStore;
pub use faulty::{Faulty, Trouble};
pub use socket::Follow;

pub const NOW: i64 = 1_767_450_139_640;

/// A clock that moves only when told to.
pub struct StillClock {
    ms: AtomicI64,
    monotonic_ms: AtomicU64,
}

impl StillClock {
    pub fn advance(&self, ms: i64) {
        self.ms.fetch_add(ms, Ordering::Relaxed);
        self.monotonic_ms.fetch_add(ms.unsigned_abs(), Ordering::Relaxed);
    }
}

impl Clock for StillClock {
    fn now(&self) -> UnixMs {
        UnixMs(self.ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms.load(Ordering::Relaxed))
    }
}

/// Ids that count. The digits that differ stand at both ends, so that parts of ids tell them apart.
struct CountedIds(AtomicU64);

impl IdSource for CountedIds {
    fn next_id(&self) -> Id {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(0x0192_0000_0000_7000 + n).to_be_bytes());
        bytes[12..].copy_from_slice(&u32::try_from(n).expect("few").to_be_bytes());
        Id::from_bytes(bytes)
    }

    fn random(&self) -> [u8; 32] {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0x5a; 32];
        // The digits that differ come first: keys are told apart by how they begin.
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        bytes
    }
}

/// A machine whose dependencies stand like this.
#[derive(Default)]
pub struct Probes(pub Vec<Probe>);

impl Host for Probes {
    fn probes(&self) -> BoxFuture<'_, Vec<Probe>> {
        let probe = Probe { name: "disk".into(), status: ProbeStatus::Ok, detail: "plenty".into() };
        async move { vec![probe] }.boxed()
    }

    fn dependencies(&self) -> BoxFuture<'_, Vec<Probe>> {
        async move { self.0.clone() }.boxed()
    }

    fn key_ended<'a>(&'a self, prefix: &'a str, instead: Option<&'a str>) -> BoxFuture<'a, Option<String>> {
        let what = match instead {
            Some(key) => format!("{prefix} became {}", &key[..prefix.len()]),
            None => format!("{prefix} is removed"),
        };
        async move { Some(what) }.boxed()
    }

    fn backup(&self, destination: std::path::PathBuf) -> BoxFuture<'_, Result<(), BackupFault>> {
        let copied = match destination.to_str() {
            Some("/taken") => Err(BackupFault::Destination("exists already".to_owned())),
            Some("/cloud") => Err(BackupFault::Elsewhere("the store is on AWS".to_owned())),
            Some("/full") => Err(BackupFault::Failed("cannot copy the store".to_owned())),
            _ => Ok(()),
        };
        async move { copied }.boxed()
    }
}

pub struct TestApp {
    pub app: App,
    pub engine: Arc<Engine>,
    pub clock: Arc<StillClock>,
    pub store: Arc<Faulty>,
    pub logs: MemoryLogStore,
}

/// The key of a role's user; every role has one: `admin@example.com`, …
pub fn key_of(role: Role) -> String {
    key_text(&[role as u8 + 1; 32])
}

pub fn email_of(role: Role) -> String {
    format!("{}@example.com", role.as_str())
}

pub const ROLES: [Role; 4] = [Role::Admin, Role::Operator, Role::Developer, Role::Viewer];

fn edge(ports: Ports, config: Config, server: ServerConfig) -> (Arc<Engine>, App) {
    let worker = Worker {
        id: WorkerId::from_bytes([9; 16]),
        host: "host".into(),
        runner: "process".into(),
        in_process: true,
        serves: vec![Needs::Process],
        labels: Default::default(),
    };
    let engine = Engine::new(ports, config, worker);
    let metrics = Arc::new(|| "runvoy_up 1\n".to_owned());
    let app = App::new(ServerParts { engine: Arc::clone(&engine), config: server, metrics, host: Arc::<Probes>::default() });
    (engine, app)
}

impl TestApp {
    pub async fn new() -> Self {
        Self::with(|_| {}, |_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Config), change_server: impl FnOnce(&mut ServerConfig)) -> Self {
        let clock = Arc::new(StillClock { ms: AtomicI64::new(NOW), monotonic_ms: AtomicU64::new(0) });
        let ids = Arc::new(CountedIds(AtomicU64::new(1)));
        let memory = MemoryStore::new(AuditKey::new([3; 32]));
        let store = Arc::new(FaultyStore::over(memory.clone()));
        let logs = MemoryLogStore::default();
        for role in ROLES {
            let (email, key) = (email_of(role), key_of(role));
            let key = NewKey { hash: key_hash(&key), prefix: key_prefix(&key), name: None, expires_at: None };
            let change = match role {
                Role::Admin => Change::CreateFirstAdmin(NewUser { email, role, key }),
                _ => Change::InviteUser(Invitation { email, role, by: InvitedBy::Key(key) }),
            };
            let step = Step::system(StepId(ids.next_id()), clock.now(), "test");
            store.change(step, change, None).await.expect("a memory store");
        }
        let mut config = Config { shares_uid: false, ..Config::default() };
        change(&mut config);
        let mut server = ServerConfig::new("http://127.0.0.1:56212", [5; 32]);
        change_server(&mut server);
        let ports = Ports {
            store: Arc::clone(&store) as _,
            jobs: Arc::new(memory.clone()),
            blobs: Arc::new(MemoryBlobStore::default()),
            records: Arc::clone(&store) as _,
            roster: Arc::new(memory.clone()),
            costs: Arc::new(memory.clone()),
            trail: Arc::new(memory),
            seal_keys: Arc::new(MemorySealKeys::new([6; 32])),
            signing_keys: Arc::new(MemorySigningKeys::new(server.ticket_key)),
            digest_key: DigestKey::new(&[5; 32]),
            logs: Arc::new(logs.clone()),
            clock: Arc::clone(&clock) as _,
            ids: Arc::clone(&ids) as _,
        };
        let (engine, app) = edge(ports, config, server);
        Self { app, engine, clock, store, logs }
    }

    /// Changes what people manage, past the API.
    pub async fn change(&self, change: Change) {
        let step = Step::system(StepId(self.engine.ports().ids.next_id()), self.clock.now(), "test");
        self.store.change(step, change, None).await.expect("a memory store");
    }

    /// Makes an account of workers, whose key is that of the role.
    pub async fn with_worker(&self) {
        let text = key_of(Role::Worker);
        let key = WorkerKey::Secret { hash: key_hash(&text), prefix: key_prefix(&text) };
        let name = Name::new("gpu-1").expect("a name");
        let id = WorkerAccountId::from_bytes([4; 16]);
        self.change(Change::CreateWorker(Box::new(NewWorker {
            name,
            id,
            role: Role::Worker,
            may_submit: false,
            queues: Vec::new(),
            key,
            description: None,
        })))
        .await;
    }

    /// A worker of this name reports itself: it runs two executions.
    pub async fn with_present_worker(&self, name: &str) {
        let presence = serde_json::from_value(json!({
            "worker": "07070707070707070707070707070707", "name": name, "host": "a", "version": "0", "runner": "process",
            "queues": ["gpu"], "concurrency": 4, "running": 2, "since": NOW, "seen_at": NOW,
        }));
        self.engine.note_worker(presence.expect("a presence")).await.expect("noted");
    }

    /// Takes a user's keys away.
    pub async fn revoke(&self, role: Role) {
        self.change(Change::RevokeUser(email_of(role))).await;
    }

    /// The same records over a log store that knows nothing of their logs.
    pub fn without_logs(&self) -> Self {
        let logs = MemoryLogStore::default();
        let ports = Ports { logs: Arc::new(logs.clone()), ..self.engine.ports().clone() };
        let (engine, app) = edge(ports, self.engine.config().clone(), ServerConfig::new("http://127.0.0.1:56212", [5; 32]));
        Self { app, engine, clock: Arc::clone(&self.clock), store: Arc::clone(&self.store), logs }
    }

    /// The same records over other blobs.
    pub fn with_blobs(&self, blobs: Arc<dyn BlobStore>) -> Self {
        let ports = Ports { blobs, ..self.engine.ports().clone() };
        let (engine, app) = edge(ports, self.engine.config().clone(), ServerConfig::new("http://127.0.0.1:56212", [5; 32]));
        Self { app, engine, clock: Arc::clone(&self.clock), store: Arc::clone(&self.store), logs: self.logs.clone() }
    }

    /// The same stores, with something else in the place of others.
    pub fn rewired(&self, change: impl FnOnce(&mut Ports)) -> Self {
        let mut ports = self.engine.ports().clone();
        change(&mut ports);
        let (engine, app) = edge(ports, self.engine.config().clone(), ServerConfig::new("http://127.0.0.1:56212", [5; 32]));
        Self { app, engine, clock: Arc::clone(&self.clock), store: Arc::clone(&self.store), logs: self.logs.clone() }
    }

    /// The same stores, started again with other settings.
    pub fn restarted(&self, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = self.engine.config().clone();
        change(&mut config);
        let (engine, app) = edge(self.engine.ports().clone(), config, ServerConfig::new("http://127.0.0.1:56212", [5; 32]));
        Self { app, engine, clock: Arc::clone(&self.clock), store: Arc::clone(&self.store), logs: self.logs.clone() }
    }

    pub fn get(&self, path: &str) -> Ask<'_> {
        Ask::new(self, Method::GET, path)
    }

    pub fn post(&self, path: &str) -> Ask<'_> {
        Ask::new(self, Method::POST, path)
    }

    pub fn delete(&self, path: &str) -> Ask<'_> {
        Ask::new(self, Method::DELETE, path)
    }

    pub fn ask(&self, method: Method, path: &str) -> Ask<'_> {
        Ask::new(self, method, path)
    }

    /// Submits as a role and returns the id.
    pub async fn submit_as(&self, role: Role, body: Value) -> String {
        let answer = self.post("/api/v1/run").role(role).json(&body).send().await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
        answer.json()["execution_id"].as_str().expect("an id").to_owned()
    }

    pub async fn submit(&self, command: &str) -> String {
        self.submit_as(Role::Admin, serde_json::json!({ "command": command })).await
    }

    /// Serves on a free port of the loopback until the guard is dropped.
    pub async fn listen(&self) -> Served {
        self.serve(Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port"), Limits::default())
    }

    pub fn serve(&self, listener: Listener, limits: Limits) -> Served {
        let address = listener.address().map(|address| address.to_string()).unwrap_or_default();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let app = self.app.clone();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let task = tokio::spawn(async move { serve(listener, app, limits, shutdown).await });
        Served { address, stop: Some(stop), task }
    }
}

pub struct Served {
    pub address: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    /// Stops and waits until it has.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        (&mut self.task).await.expect("serving does not panic");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct Ask<'a> {
    app: &'a TestApp,
    request: http::request::Builder,
    connection: Connection,
    body: Body,
}

impl<'a> Ask<'a> {
    fn new(app: &'a TestApp, method: Method, path: &str) -> Self {
        let request = Request::builder().method(method).uri(path);
        Self { app, request, connection: Connection::default(), body: Body::empty() }
    }

    pub fn role(self, role: Role) -> Self {
        self.header("x-api-key", &key_of(role))
    }

    pub fn admin(self) -> Self {
        self.role(Role::Admin)
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub fn connection(mut self, connection: Connection) -> Self {
        self.connection = connection;
        self
    }

    pub fn json(self, body: &Value) -> Self {
        self.text("application/json", body.to_string())
    }

    pub fn text(mut self, content_type: &str, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self.header("content-type", content_type)
    }

    pub async fn send(self) -> Answer {
        let mut request = self.request.body(self.body).expect("a request");
        request.extensions_mut().insert(self.connection);
        let response = self.app.app.answer(request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// Status and code of an error, which must have the whole error body.
    pub fn code(&self) -> (u16, String) {
        let body = self.json();
        assert!(body["error"].as_str().is_some_and(|error| !error.is_empty()) && body["details"].is_string(), "{body}");
        assert!(self.status != StatusCode::CONFLICT || body["details"] != "", "what to do about a clash: {body}");
        assert_eq!(self.header(header::CONTENT_TYPE.as_str()), "application/json");
        (self.status.as_u16(), body["code"].as_str().expect("a code").to_owned())
    }
}
