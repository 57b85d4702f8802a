//! A store that was used and closed, and the hand that changes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use runvoy_model::chain::AuditKey;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewKey, NewUser};
use runvoy_model::command::{EndAttempt, Fence, Kill, LeaseTo, Outcome, Submit, Worker};
use runvoy_model::event::{Entity, EntityType};
use runvoy_model::group::Group;
use runvoy_model::id::{ExecutionId, LeaseId, StepId, WorkerId};
use runvoy_model::merkle::Tree;
use runvoy_model::name::Name;
use runvoy_model::record::ONLY;
use runvoy_model::role::Role;
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::time::UnixMs;
use runvoy_model::verify::{Problem, Verdict};
use runvoy_model::witness::Witness;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use runvoy_ports::trail::Witnesses as _;
use runvoy_sqlite::{Options, SqliteStore, WitnessFile, verify};
use rusqlite::Connection;

pub const KEY: AuditKey = AuditKey::new([7; 32]);
pub const START: i64 = 1_767_453_739_640;

pub fn bytes() -> [u8; 16] {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(16, Ordering::Relaxed);
    let mut bytes = [1; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

pub fn step() -> Step {
    let id = StepId::from_bytes(bytes());
    Step {
        id,
        at: UnixMs(START),
        actor: Actor::User { email: "admin@example.com".into() },
        request_id: id.to_string(),
        audit: Some(Audit { action: "test".into(), from: "127.0.0.1".into(), ..Audit::default() }),
        authority: None,
    }
}

/// A store that was used and closed, with the file of its checkpoints beside it.
pub struct Used {
    pub dir: tempfile::TempDir,
}

impl Used {
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }

    pub fn exported(&self) -> PathBuf {
        self.dir.path().join("checkpoints.ndjson")
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path(), Options { reserve_bytes: 0, ..Options::new(KEY) }).expect("it opens")
    }

    /// Two rounds of work, each followed by a checkpoint.
    pub async fn new() -> Self {
        let used = Self { dir: tempfile::tempdir().expect("a directory") };
        let store = used.open();
        let admin = NewUser { email: "admin@example.com".into(), role: Role::Admin, key: key("admin") };
        store.change(step(), Change::CreateFirstAdmin(admin), None).await.expect("an admin");
        used.work(&store, "ana").await;
        used.checkpoint(&store).await;
        used.work(&store, "bob").await;
        used.checkpoint(&store).await;
        store.close().await.expect("a clean end");
        used
    }

    pub async fn work(&self, store: &SqliteStore, name: &str) {
        let email = format!("{name}@example.com");
        let by = InvitedBy::Key(key(name));
        let invitation = Invitation { email: email.clone(), role: Role::Developer, by };
        store.change(step(), Change::InviteUser(invitation), None).await.expect("a user");
        for role in [Role::Operator, Role::Viewer, Role::Developer] {
            store.change(step(), Change::SetRole(email.clone(), role), None).await.expect("a role");
        }
        let created_by = "admin@example.com".into();
        let group = Group { name: Name::new(name).expect("a name"), members: vec![email], created_at: UnixMs(START), created_by };
        store.change(step(), Change::PutGroup(group), None).await.expect("a group");
        for _ in 0..2 {
            let lease_to = Some(LeaseTo { lease: LeaseId::from_bytes(bytes()), worker: worker(), ttl_ms: 30_000 });
            let submit =
                Submit { id: ExecutionId::from_bytes(bytes()), spec: spec(), created_by: "admin@example.com".into(), key: None, lease_to };
            let (execution, _) = store.submit(step(), submit).await.expect("taken");
            store.kill(step(), Kill { execution: execution.id, force: false }).await.expect("a wish");
            let fence = Fence { execution: execution.id, attempt: 1, lease: execution.lease.expect("leased").id };
            let outcome = Outcome::Exited { code: 0, after_kill: false };
            let ended = EndAttempt {
                fence,
                outcome,
                log_end: 0,
                duration_ms: 1,
                process_id: None,
                cost_micro_usd: 0,
                output: None,
                said: None,
                usage: None,
                remark: None,
            };
            store.end_attempt(step(), ended).await.expect("ended");
        }
    }

    /// What the auditor does, from the beginning each time.
    pub async fn checkpoint(&self, store: &SqliteStore) {
        let (mut tree, mut up_to) = (Tree::default(), 0);
        for stored in store.events(EventQuery { limit: 10_000, ..EventQuery::default() }).await.expect("events") {
            if stored.event.kind.is_chained() {
                tree.append(stored.event.id, &stored.event.mac);
                up_to = stored.place;
            }
        }
        store.change(step(), Change::Checkpoint(tree.checkpoint(up_to)), None).await.expect("a checkpoint");
        let entity = Some(Entity { kind: EntityType::Ledger, id: ONLY.into() });
        let last = EventQuery { entity, descending: true, limit: 1, ..EventQuery::default() };
        let last = store.events(last).await.expect("events").pop().expect("a checkpoint");
        let (witness, _) = Witness::of(&last.event).expect("a checkpoint");
        WitnessFile::new(self.exported(), KEY).tell(vec![witness]).await.expect("told");
    }

    /// Changes it as `sqlite3` would: without the server's layer below, and so without its checksums.
    pub fn tamper(&self, sql: &str) {
        let conn = Connection::open(self.path()).expect("it opens");
        conn.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    pub fn verify(&self) -> Verdict {
        verify(&self.path(), &KEY, Some(&self.exported())).expect("it can be read")
    }

    /// What is found: entity, number, whether the event is named, problem.
    pub fn found(&self) -> (String, u64, bool, Problem) {
        let bad = self.verify().first_bad.expect("something is found");
        assert!(!bad.message.is_empty());
        (bad.entity, bad.number, bad.event_id.is_some(), bad.problem)
    }

    pub fn place(&self, name: &str, number: i64) -> i64 {
        let conn = Connection::open(self.path()).expect("it opens");
        let sql = "SELECT events.seq FROM events JOIN records ON records.seq = events.entity AND events.entity_kind > 0 \
                   WHERE records.name = ?1 AND number = ?2";
        conn.query_row(sql, rusqlite::params![name, number], |row| row.get(0)).expect("an event")
    }
}

fn key(of: &str) -> NewKey {
    let mut hash = [0; 32];
    hash[..of.len()].copy_from_slice(of.as_bytes());
    NewKey { hash, prefix: format!("rv_{of}"), name: None, expires_at: None }
}

fn worker() -> Worker {
    Worker {
        id: WorkerId::from_bytes([9; 16]),
        host: "host".into(),
        runner: "process".into(),
        in_process: true,
        serves: vec![Needs::Process],
        labels: Default::default(),
    }
}

pub fn spec() -> Spec {
    Spec {
        command: "true".into(),
        args: None,
        image: "local".into(),
        env: BTreeMap::new(),
        timeout_ms: None,
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
