//! An engine on memory adapters with a clock and ids that the test holds in its hand.
#![expect(dead_code, reason = "each test file uses its own part of this")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use runvoy_engine::{Caller, Config, DigestKey, Engine, Ports, Predecessors, RunRequest, Seen};
use runvoy_memory::{MemoryBlobStore, MemoryLogStore, MemorySealKeys, MemorySigningKeys, MemoryStore};
use runvoy_model::chain::AuditKey;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewKey};
use runvoy_model::command::{EndAttempt, Fence, LeaseRequest, Outcome, Worker};
use runvoy_model::execution::Execution;
use runvoy_model::id::{Id, LeaseId, StepId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::record::Kind;
use runvoy_model::role::Role;
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::log::LogStore;
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::{ExecutionStore, StoreError};

/// Both clocks; they move only when told to.
#[derive(Default)]
pub struct HandClock {
    wall_ms: AtomicI64,
    /// How far the machine's wall clock is from that.
    machine_ms: AtomicI64,
    monotonic_ms: AtomicU64,
}

impl HandClock {
    /// Lets time pass.
    pub fn pass(&self, ms: u64) {
        self.wall_ms.fetch_add(i64::try_from(ms).expect("small"), Ordering::Relaxed);
        self.monotonic_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Sets the machine's wall clock by so much, which no wait and no duration sees.
    pub fn set_machine(&self, ms: i64) {
        self.machine_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> UnixMs {
        UnixMs(1_700_000_000_000 + self.wall_ms.load(Ordering::Relaxed))
    }

    fn machine_now(&self) -> UnixMs {
        self.now().plus_ms(self.machine_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms.load(Ordering::Relaxed))
    }
}

/// Ids that count up.
#[derive(Default)]
pub struct CountedIds(AtomicU64);

impl IdSource for CountedIds {
    fn next_id(&self) -> Id {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(self.0.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes());
        Id::from_bytes(bytes)
    }

    fn random(&self) -> [u8; 32] {
        [u8::try_from(self.0.fetch_add(1, Ordering::Relaxed) % 251).expect("small"); 32]
    }
}

/// An engine and everything under it.
pub struct Stage {
    pub engine: Arc<Engine>,
    pub store: Arc<MemoryStore>,
    pub clock: Arc<HandClock>,
    pub ids: Arc<CountedIds>,
    ports: Ports,
    config: Config,
}

impl Stage {
    pub fn new(config: Config) -> Self {
        Self::with_records(config, |store| store)
    }

    /// An engine that meets the records of its store through something else.
    pub fn with_records(config: Config, records: impl FnOnce(Arc<MemoryStore>) -> Arc<dyn RecordStore>) -> Self {
        let store = Arc::new(MemoryStore::new(AuditKey::new([7; 32])));
        let (clock, ids) = (Arc::new(HandClock::default()), Arc::new(CountedIds::default()));
        let ports = Ports {
            store: Arc::clone(&store) as _,
            jobs: Arc::clone(&store) as _,
            blobs: Arc::new(MemoryBlobStore::default()),
            records: records(Arc::clone(&store)),
            roster: Arc::clone(&store) as _,
            costs: Arc::clone(&store) as _,
            trail: Arc::clone(&store) as _,
            seal_keys: Arc::new(MemorySealKeys::new([6; 32])),
            signing_keys: Arc::new(MemorySigningKeys::new([4; 32])),
            digest_key: DigestKey::new(&[5; 32]),
            logs: Arc::new(MemoryLogStore::default()),
            clock: Arc::clone(&clock) as _,
            ids: Arc::clone(&ids) as _,
        };
        let engine = Engine::new(ports.clone(), config.clone(), worker(1, true));
        Self { engine, store, clock, ids, ports, config }
    }

    /// The engine is dropped and another one started over the same stores, as after a crash.
    pub fn restart(&mut self, worker_number: u8) {
        self.engine = Engine::new(self.ports.clone(), self.config.clone(), worker(worker_number, true));
    }

    /// Another server on the same stores, whose own earlier starts had these workers.
    pub fn beside(&self, worker_number: u8, predecessors: &[u8], change: impl FnOnce(&mut Ports)) -> Arc<Engine> {
        let gone = predecessors.iter().map(|number| worker(*number, true).id).collect();
        let config = Config { predecessors: Predecessors::These(gone), ..self.config.clone() };
        let mut ports = self.ports.clone();
        change(&mut ports);
        Engine::new(ports, config, worker(worker_number, true))
    }

    /// The engine as it would start now, over ports that are not all its own.
    pub fn started(&self, worker_number: u8, change: impl FnOnce(&mut Ports)) -> Arc<Engine> {
        let mut ports = self.ports.clone();
        change(&mut ports);
        Engine::new(ports, self.config.clone(), worker(worker_number, true))
    }

    pub fn logs(&self) -> Arc<dyn LogStore> {
        Arc::clone(&self.ports.logs)
    }

    pub fn step(&self, by: &Worker) -> Step {
        Step::worker(StepId(self.ids.next_id()), self.clock.now(), by.id)
    }

    /// Leases one execution for a worker and begins it.
    pub async fn lease(&self, by: &Worker, ttl_ms: u64) -> Option<Execution> {
        let request = LeaseRequest {
            worker: by.clone(),
            queues: vec![Name::new("default").expect("a name")],
            leases: vec![LeaseId(self.ids.next_id())],
            ttl_ms,
            begin: true,
            lost_after_ms: None,
        };
        self.store.lease(self.step(by), request).await.expect("the store answers").pop()
    }

    pub async fn finish(&self, by: &Worker, execution: &Execution, code: i32) -> Result<Execution, StoreError> {
        let ended = EndAttempt {
            fence: fence(execution),
            outcome: Outcome::Exited { code, after_kill: false },
            log_end: 0,
            duration_ms: 1,
            process_id: None,
            cost_micro_usd: 0,
            output: None,
            said: None,
            usage: None,
            remark: None,
        };
        self.store.end_attempt(self.step(by), ended).await
    }

    pub async fn run(&self, request: RunRequest) -> Execution {
        let ada = self.admitted("ada@example.com", Role::Admin).await;
        self.engine.run(&ada, &request).await.expect("it is taken")
    }

    /// A caller whom the store knows too.
    pub async fn admitted(&self, email: &str, role: Role) -> Caller {
        if self.store.record(Kind::User, email).await.expect("the store answers").is_none() {
            let id = self.ids.next_id();
            let mut hash = [0; 32];
            hash[..16].copy_from_slice(id.as_bytes());
            let key = NewKey { hash, prefix: format!("rv_{id}"), name: None, expires_at: None };
            let invitation = Invitation { email: email.into(), role, by: InvitedBy::Key(key) };
            let step = Step::system(StepId(id), self.clock.now(), "test");
            self.store.change(step, Change::InviteUser(invitation), None).await.expect("the store takes it");
        }
        caller(email, role)
    }
}

pub fn worker(number: u8, in_process: bool) -> Worker {
    Worker {
        id: WorkerId::from_bytes([number; 16]),
        host: "here".into(),
        runner: "process".into(),
        in_process,
        serves: vec![Needs::Process],
        labels: Default::default(),
    }
}

pub fn fence(execution: &Execution) -> Fence {
    let lease = execution.lease.as_ref().expect("leased");
    Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id }
}

pub fn caller(email: &str, role: Role) -> Caller {
    Caller {
        email: email.into(),
        account: email.into(),
        role,
        may_submit: false,
        groups: Vec::new(),
        key_prefix: None,
        key_expires_at: None,
        key_hash: None,
        queues: None,
        from: "test".into(),
        request_id: "request".into(),
        seen: Seen::default(),
    }
}

pub fn command(text: &str) -> RunRequest {
    RunRequest { command: text.into(), ..RunRequest::default() }
}
