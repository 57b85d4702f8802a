//! What the tests of the store share: ids and steps that need no clock, and one worker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use runvoy_model::chain::AuditKey;
use runvoy_model::command::{EndAttempt, Fence, LeaseTo, Outcome, Submit, Worker};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, LeaseId, StepId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{ExecutionStore, StoreError};
use runvoy_sqlite::{Options, SqliteStore};

/// When the tests begin.
pub const START: i64 = 1_767_453_739_640;

pub fn options() -> Options {
    Options { reserve_bytes: 0, ..Options::new(AuditKey::new([7; 32])) }
}

pub fn open(path: &std::path::Path) -> SqliteStore {
    SqliteStore::open(path, options()).expect("the store opens")
}

/// 16 bytes that rise, like a `UUIDv7` of a process of its own.
pub fn bytes() -> [u8; 16] {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&(START + (number / 1000) as i64).to_be_bytes()[2..]);
    bytes[6..8].copy_from_slice(&[0x70, (std::process::id() & 0xff) as u8]);
    bytes[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    // A step's events count up from its id, so ids are a few apart.
    bytes[12..].copy_from_slice(&((number * 16) as u32).to_be_bytes());
    bytes
}

pub fn step_at(at: i64) -> Step {
    let audit = Some(Audit { action: "executions.run".into(), from: "127.0.0.1".into(), ..Audit::default() });
    let id = StepId::from_bytes(bytes());
    Step { id, at: UnixMs(at), actor: Actor::User { email: "ana@example.com".into() }, request_id: id.to_string(), audit, authority: None }
}

pub fn step() -> Step {
    step_at(START)
}

pub fn spec(command: &str) -> Spec {
    Spec {
        command: command.into(),
        args: None,
        image: "local".into(),
        env: BTreeMap::from([("TF_VAR_region".into(), "eu-west-1".into())]),
        timeout_ms: Some(60_000),
        lock: None,
        lock_wait_ms: None,
        queue: Name::new("default").expect("a name"),
        priority: 3,
        labels: BTreeMap::new(),
        worker_labels: Default::default(),
        terminal: false,
        retries: 0,
        redeliveries: 0,
        secrets: Vec::new(),
        git: None,
        task: None,
        playbook: None,
        rpc: None,
        container: None,
    }
}

pub fn submit(command: &str) -> Submit {
    Submit { id: ExecutionId::from_bytes(bytes()), spec: spec(command), created_by: "ana@example.com".into(), key: None, lease_to: None }
}

pub fn worker() -> Worker {
    Worker {
        id: WorkerId::from_bytes([9; 16]),
        host: "host-1".into(),
        runner: "process".into(),
        in_process: true,
        serves: vec![Needs::Process],
        labels: Default::default(),
    }
}

pub fn lease_to() -> LeaseTo {
    LeaseTo { lease: LeaseId::from_bytes(bytes()), worker: worker(), ttl_ms: 30_000 }
}

/// What the worker of a begun execution says at its end.
pub fn end_of(execution: &Execution) -> EndAttempt {
    let lease = execution.lease.as_ref().expect("it is leased");
    EndAttempt {
        fence: Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id },
        outcome: Outcome::Exited { code: 0, after_kill: false },
        log_end: 12,
        duration_ms: 40,
        process_id: Some(4242),
        cost_micro_usd: 0,
        output: None,
        said: None,
        usage: None,
        remark: None,
    }
}

/// One whole life: submitted, leased and begun in one step, ended in a second.
pub async fn cycle(store: &SqliteStore, command: &str) -> Result<Execution, StoreError> {
    let (execution, _) = store.submit(step(), Submit { lease_to: Some(lease_to()), ..submit(command) }).await?;
    store.end_attempt(step(), end_of(&execution)).await
}

/// A submit that was acknowledged.
pub async fn submitted(store: &SqliteStore, command: &str) -> Execution {
    let (execution, repeated) = store.submit(step(), submit(command)).await.expect("the submit is taken");
    assert!(!repeated);
    execution
}

/// Full counts where the promises are proved, reduced ones elsewhere.
pub fn count(reduced: usize, full: usize) -> usize {
    if std::env::var_os("RUNVOY_PROVE").is_some() { full } else { reduced }
}
