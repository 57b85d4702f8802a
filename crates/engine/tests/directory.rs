//! What the engine remembers of people is never older than what was acknowledged: a key that was revoked is refused, at once and for ever.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use runvoy_conformance::tap::{RecordTap, Tapped};
use runvoy_engine::{Caller, Config, Credential, EngineError, InviteRequest, Invited, JobRequest, Origin, SecretRequest, TaskRequest};
use runvoy_memory::{MemorySealKeys, MemoryStore};
use runvoy_model::change::{Change, Invitation, InvitedBy, NewKey, NewUser};
use runvoy_model::group::Group;
use runvoy_model::id::StepId;
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Role;
use runvoy_model::rule::{Effect, Rule};
use runvoy_model::seal::SealKey;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::record::RecordStore;
use runvoy_ports::seal::{SealKeys, SealKeysError};
use runvoy_ports::store::{ExecutionStore, StoreError};
use tokio::sync::Semaphore;

use self::stage::{Stage, command};

/// Records that are counted as they are read, that can be made to wait, and whose number of changes can be left out.
struct Watched {
    store: Arc<MemoryStore>,
    has_authority: bool,
    reads: AtomicUsize,
    /// Whoever has read a user waits here before they may go on with what they saw.
    gate: Semaphore,
}

impl Watched {
    fn over(store: Arc<MemoryStore>, has_authority: bool) -> Arc<Tapped<Self>> {
        Arc::new(Tapped(Self { store, has_authority, reads: AtomicUsize::new(0), gate: Semaphore::new(Semaphore::MAX_PERMITS) }))
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl RecordTap for Watched {
    fn inner(&self) -> &dyn RecordStore {
        &*self.store
    }

    async fn record(&self, kind: Kind, name: &str) -> Result<Option<Record>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let record = self.store.record(kind, name).await;
        if kind == Kind::User {
            let _passed = self.gate.acquire().await.expect("the gate is never closed");
        }
        record
    }

    async fn records(&self, kind: Kind) -> Result<Vec<Record>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.records(kind).await
    }

    fn authority(&self) -> Option<u64> {
        self.store.authority().filter(|_| self.has_authority)
    }
}

fn watched(has_authority: bool) -> (Stage, Arc<Tapped<Watched>>) {
    let mut records = None;
    let stage = Stage::with_records(Config { allow_shared_uid: true, ..Config::default() }, |store| {
        let watched = Watched::over(store, has_authority);
        records = Some(Arc::clone(&watched));
        watched
    });
    (stage, records.expect("just made"))
}

fn key(number: u8) -> String {
    key_text(&[number; 32])
}

fn new_key(number: u8) -> NewKey {
    NewKey { hash: key_hash(&key(number)), prefix: key_prefix(&key(number)), name: None, expires_at: None }
}

fn invited(email: &str, key: NewKey) -> Change {
    Change::InviteUser(Invitation { email: email.into(), role: Role::Developer, by: InvitedBy::Key(key) })
}

/// Changes the store beside the engine, as another process would.
async fn change(stage: &Stage, change: Change) {
    let step = Step::system(StepId(stage.ids.next_id()), stage.clock.now(), "test");
    stage.store.change(step, change, None).await.expect("it is taken");
}

/// A root admin with key 1 and a developer with key 2.
async fn two_people(stage: &Stage) {
    change(stage, Change::CreateFirstAdmin(NewUser { email: "root@x".into(), role: Role::Admin, key: new_key(1) })).await;
    change(stage, invited("bob@x", new_key(2))).await;
}

async fn enter(stage: &Stage, number: u8) -> Result<Caller, EngineError> {
    stage.engine.authenticate(Credential::Key(key(number)), "10.0.0.9".into(), "request".into()).await
}

async fn enter_again(stage: &Stage, email: &str, number: u8) -> Result<Caller, EngineError> {
    let origin = Origin { from: "10.0.0.9".into(), request_id: "request".into() };
    stage.engine.admit_again(email, Some(key_hash(&key(number))), None, origin).await
}

#[tokio::test]
async fn who_is_known_is_not_looked_up_again_while_nothing_changes() {
    let (stage, records) = watched(true);
    two_people(&stage).await;
    let caller = enter(&stage, 2).await.expect("the key works");
    assert_eq!((caller.email.as_str(), caller.role), ("bob@x", Role::Developer));
    let reads = records.reads();
    for _ in 0..10 {
        enter(&stage, 2).await.expect("the key works");
        enter_again(&stage, "bob@x", 2).await.expect("the key works");
    }
    assert_eq!(records.reads(), reads);
}

#[tokio::test]
async fn a_revocation_that_was_acknowledged_is_seen_by_the_next_call() {
    let bob = || "bob@x".to_owned();
    let ways = [
        Change::RevokeUser(bob()),
        Change::RevokeKey(bob(), key_prefix(&key(2))),
        Change::RotateKey(bob(), key_prefix(&key(2)), new_key(3)),
    ];
    for (has_authority, way) in [true, false].into_iter().flat_map(|has| ways.clone().map(|way| (has, way))) {
        let (stage, _) = watched(has_authority);
        two_people(&stage).await;
        for _ in 0..3 {
            enter(&stage, 2).await.expect("the key works");
        }
        change(&stage, way.clone()).await;
        for _ in 0..3 {
            assert!(matches!(enter(&stage, 2).await, Err(EngineError::RevokedKey)), "{way:?}");
            assert!(matches!(enter_again(&stage, "bob@x", 2).await, Err(EngineError::RevokedKey)), "{way:?}");
        }
        enter(&stage, 1).await.expect("another one's key works");
    }
}

#[tokio::test]
async fn what_was_read_before_a_revocation_is_not_remembered_after_it() {
    let (stage, records) = watched(true);
    two_people(&stage).await;
    records.gate.forget_permits(Semaphore::MAX_PERMITS);
    let (entering, revoking) = tokio::join!(enter(&stage, 2), async {
        // The first read shows bob as he was; before it is made use of, he is revoked.
        while records.reads() < 2 {
            tokio::task::yield_now().await;
        }
        change(&stage, Change::RevokeUser("bob@x".into())).await;
        records.gate.add_permits(10);
    });
    assert!(entering.is_ok(), "he came before he was revoked");
    let () = revoking;
    for _ in 0..3 {
        assert!(matches!(enter(&stage, 2).await, Err(EngineError::RevokedKey)));
    }
}

#[tokio::test]
async fn where_others_change_the_records_too_nothing_is_remembered() {
    let (stage, records) = watched(false);
    two_people(&stage).await;
    enter(&stage, 2).await.expect("the key works");
    for _ in 0..5 {
        let reads = records.reads();
        enter(&stage, 2).await.expect("the key works");
        assert!(records.reads() >= reads + 2, "the key and its owner are looked up each time");
    }
    let reads = records.reads();
    let caller = enter(&stage, 2).await.expect("the key works");
    stage.engine.rules_for(&caller).await.expect("rules");
    let once = records.reads();
    stage.engine.rules_for(&caller).await.expect("rules");
    assert!(once > reads && records.reads() > once, "and so are rules");
}

#[tokio::test]
async fn a_key_that_expires_is_refused_then_though_it_was_remembered() {
    let (stage, _) = watched(true);
    two_people(&stage).await;
    let expires_at = Some(stage.clock.now().plus_ms(10_000));
    change(&stage, Change::AddKey("bob@x".into(), NewKey { expires_at, ..new_key(3) })).await;
    stage.clock.pass(9_999);
    assert_eq!(enter(&stage, 3).await.expect("it works until then").key_expires_at, expires_at);
    stage.clock.pass(1);
    assert!(matches!(enter(&stage, 3).await, Err(EngineError::RevokedKey)));
    enter(&stage, 2).await.expect("the other key works on");
}

const HOUR_MS: i64 = 3_600_000;

#[tokio::test]
async fn keys_expire_by_the_machine_clock_as_soon_as_it_is_set() {
    let (stage, _) = watched(true);
    two_people(&stage).await;
    let expires_at = Some(stage.clock.now().plus_ms(HOUR_MS));
    change(&stage, Change::AddKey("bob@x".into(), NewKey { expires_at, ..new_key(3) })).await;
    enter(&stage, 3).await.expect("it works for an hour");
    stage.clock.set_machine(HOUR_MS);
    assert!(matches!(enter(&stage, 3).await, Err(EngineError::RevokedKey)));
    stage.clock.set_machine(-2 * HOUR_MS);
    stage.clock.pass(HOUR_MS.unsigned_abs());
    enter(&stage, 3).await.expect("the machine's clock says that there is an hour left");
}

#[tokio::test]
async fn invitations_expire_by_the_machine_clock_as_soon_as_it_is_set() {
    let (stage, _) = watched(true);
    two_people(&stage).await;
    let admin = enter(&stage, 1).await.expect("the key works");
    let origin = || Origin { from: "10.0.0.9".into(), request_id: "request".into() };
    let invited = |email: &str| InviteRequest {
        email: email.into(),
        role: "viewer".into(),
        api_key: None,
        confirm: true,
        expires_in: Some(600),
        idempotency_key: None,
    };
    let token = |invited: Invited| invited.token.expect("a token");
    let late = token(stage.engine.invite(&admin, &invited("late@x")).await.expect("invited"));
    stage.clock.set_machine(HOUR_MS);
    assert!(matches!(stage.engine.claim(&late, origin()).await, Err(EngineError::NotFound { .. })));
    // A clock that is set back ends nothing early that is made then.
    stage.clock.set_machine(-2 * HOUR_MS);
    let in_time = token(stage.engine.invite(&admin, &invited("ada@x")).await.expect("invited"));
    stage.clock.pass(599_000);
    stage.engine.claim(&in_time, origin()).await.expect("it lives for ten minutes");
}

#[tokio::test]
async fn whoever_comes_back_comes_with_new_keys_only() {
    let (stage, _) = watched(true);
    two_people(&stage).await;
    enter(&stage, 2).await.expect("the key works");
    change(&stage, Change::RevokeUser("bob@x".into())).await;
    change(&stage, invited("bob@x", new_key(3))).await;
    enter(&stage, 3).await.expect("the new key works");
    assert!(enter(&stage, 2).await.is_err());
    assert!(enter_again(&stage, "bob@x", 2).await.is_err());
}

#[tokio::test]
async fn role_groups_and_rules_are_those_of_the_last_change() {
    let (stage, _) = watched(true);
    two_people(&stage).await;
    let caller = enter(&stage, 2).await.expect("the key works");
    assert_eq!((caller.role, caller.groups.len()), (Role::Developer, 0));
    assert!(stage.engine.rules_for(&caller).await.expect("rules").is_empty());
    let name = Name::new("ops").expect("a name");
    let group = |members| Group { name: name.clone(), members, created_at: UnixMs(0), created_by: "root@x".into() };
    change(&stage, Change::PutGroup(group(vec!["bob@x".into()]))).await;
    change(&stage, Change::SetRole("bob@x".into(), Role::Operator)).await;
    let rule = Rule { groups: vec!["ops".into()], locks: vec!["prod".into()], ..Rule::new("no-prod", Effect::Deny) };
    change(&stage, Change::PutRule(Box::new(rule))).await;
    let caller = enter(&stage, 2).await.expect("the key works");
    assert_eq!((caller.role, caller.groups.as_slice()), (Role::Operator, &["ops".to_owned()][..]));
    assert_eq!(stage.engine.rules_for(&caller).await.expect("rules"), ["no-prod"]);
    change(&stage, Change::PutGroup(group(Vec::new()))).await;
    let caller = enter(&stage, 2).await.expect("the key works");
    assert!(caller.groups.is_empty() && stage.engine.rules_for(&caller).await.expect("rules").is_empty());
}

fn job(tasks: usize) -> JobRequest {
    let task = |number| TaskRequest { task_id: format!("t{number}"), run: command("true"), ..TaskRequest::default() };
    JobRequest { tasks: (0..tasks).map(task).collect(), ..JobRequest::default() }
}

#[tokio::test]
async fn a_request_reads_what_it_is_judged_by_once_and_the_next_one_anew() {
    let (stage, records) = watched(false);
    two_people(&stage).await;
    let mut reads = Vec::new();
    for tasks in [1, 20] {
        let bob = enter(&stage, 2).await.expect("the key works");
        let before = records.reads();
        stage.engine.submit_job(&bob, job(tasks)).await.expect("it is taken");
        reads.push(records.reads() - before);
    }
    assert_eq!(reads[0], reads[1], "however many tasks there are");
    let deny = Rule { commands: vec!["*".into()], ..Rule::new("no", Effect::Deny) };
    change(&stage, Change::PutRule(Box::new(deny))).await;
    let bob = enter(&stage, 2).await.expect("the key works");
    assert!(matches!(stage.engine.submit_job(&bob, job(1)).await, Err(EngineError::Denied { .. })));
}

/// A ring that answers only after something else has happened on the runtime.
struct Slow {
    ring: MemorySealKeys,
    go_on: std::sync::mpsc::Receiver<()>,
}

/// Only ever one thread asks at a time.
struct Waits(parking_lot::Mutex<Slow>);

impl SealKeys for Waits {
    fn current(&self) -> Result<SealKey, SealKeysError> {
        self.0.lock().ring.current()
    }

    fn by_id(&self, id: &str) -> Result<SealKey, SealKeysError> {
        let slow = self.0.lock();
        slow.go_on.recv().expect("somebody says so");
        slow.ring.by_id(id)
    }

    fn rotate(&self) -> Result<SealKey, SealKeysError> {
        self.0.lock().ring.rotate()
    }

    fn retire_all_but(&self, ids: &[String]) -> Result<(), SealKeysError> {
        self.0.lock().ring.retire_all_but(ids)
    }
}

/// On a runtime of one thread whoever waits for the key would wait for ever if it held that thread.
#[tokio::test]
async fn whoever_waits_for_a_sealing_key_holds_nobody_up() {
    let stage = Stage::new(Config::default());
    two_people(&stage).await;
    let (say, go_on) = std::sync::mpsc::channel();
    let slow = Waits(parking_lot::Mutex::new(Slow { ring: MemorySealKeys::new([6; 32]), go_on }));
    let engine = stage.beside(2, &[], |ports| ports.seal_keys = Arc::new(slow));
    let root = engine.authenticate(Credential::Key(key(1)), "10.0.0.9".into(), "request".into()).await.expect("the key works");
    let request = SecretRequest {
        name: "db".into(),
        key_name: "DB".into(),
        value: "hunter2".to_owned().into(),
        description: None,
        use_by: Vec::new(),
        idempotency_key: None,
    };
    engine.create_secret(&root, request).await.expect("made");
    let (read, ()) = tokio::join!(engine.secret(&root, "db"), async { say.send(()).expect("somebody waits") });
    assert_eq!(read.expect("read").1.expect("a value").as_str(), "hunter2");
}
