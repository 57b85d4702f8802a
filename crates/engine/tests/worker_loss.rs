//! Workers that vanish: the reaper acts only when it may, and every execution ends once.

mod stage;

use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_engine::{Config, Credential, FOREIGN_RUNNER, HealthWatch, Holder, LeaseAsk, Reaper, RunRequest, WorkerRequest};
use runvoy_model::command::{Extend, Worker};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::status::{EndCode, Status};
use runvoy_ports::lease::{Slot, Slots};
use runvoy_ports::store::{EventQuery, ExecutionStore};

use self::stage::{Stage, command, fence, worker};

const TTL_MS: u64 = 2_000;

fn config() -> Config {
    Config { reap_margin_ms: 1_000, ..Config::default() }
}

/// Lets seconds pass with the reaper looking at each of them.
async fn watch(stage: &Stage, reaper: &mut Reaper, seconds: usize) {
    for _ in 0..seconds {
        stage.clock.pass(1_000);
        reaper.look().await.expect("the store answers");
    }
}

#[tokio::test]
async fn promise_02_work_of_a_lost_worker_ends_exactly_once() {
    let cycles = if std::env::var_os("RUNVOY_PROVE").is_some() { 1_000 } else { 100 };
    let stage = Stage::new(config());
    let mut reaper = Reaper::new(stage.engine.clone());
    for cycle in 0..cycles {
        let mut request = command("true");
        request.retries = Some(1);
        let id = stage.run(request).await.id;
        let (lost, next) = (worker(2, false), worker(3, false));
        let first = stage.lease(&lost, TTL_MS).await.expect("it can be leased");
        assert_eq!(first.id, id);
        // The worker is killed here: it never extends. The watch sees the lease lapse within its length, the margin and a look.
        let mut looks = 0;
        while stage.store.get(id).await.expect("store").expect("there").status != Status::Pending {
            watch(&stage, &mut reaper, 1).await;
            looks += 1;
            assert!(looks <= 5, "not reaped within visibility and scan");
        }
        stage.clock.pass(5_000);
        reaper.look().await.expect("the store answers");
        let second = stage.lease(&next, TTL_MS).await.expect("it can be leased again");
        assert_eq!(second.id, id);
        // The lost worker comes back and reports: too late, whatever the order.
        if cycle % 2 == 0 {
            assert!(stage.finish(&lost, &first, 0).await.is_err());
            stage.finish(&next, &second, 0).await.expect("the holder may");
        } else {
            stage.finish(&next, &second, 0).await.expect("the holder may");
            assert!(stage.finish(&lost, &first, 1).await.is_err());
        }
        let execution = stage.store.get(id).await.expect("store").expect("there");
        assert_eq!((execution.status, execution.attempt), (Status::Succeeded, 2));
        let query = EventQuery { entity: Some(Entity::task(id)), limit: 100, ..EventQuery::default() };
        let events = stage.store.events(query).await.expect("store");
        let in_time = |kind| events.iter().filter(|e| e.event.kind == kind && e.event.properties.get("late").is_none()).count();
        assert_eq!((in_time(EventType::TaskCompleted), in_time(EventType::TaskFailed)), (1, 0));
    }
    println!("PROMISE 02 | work of a lost worker ends exactly once | {cycles} lost workers | 1 end each");
}

#[tokio::test]
async fn without_retries_a_lost_worker_is_the_end_reason() {
    let stage = Stage::new(config());
    let mut reaper = Reaper::new(stage.engine.clone());
    let id = stage.run(command("deploy")).await.id;
    stage.lease(&worker(2, false), TTL_MS).await.expect("it can be leased");
    watch(&stage, &mut reaper, 5).await;
    let execution = stage.store.get(id).await.expect("store").expect("there");
    assert_eq!((execution.status, execution.exit_code), (Status::Failed, Some(125)));
    assert_eq!(execution.end_reason.expect("a reason").code, EndCode::WorkerLost);
    assert!(stage.lease(&worker(3, false), TTL_MS).await.is_none(), "it must not run twice unasked");
}

/// Makes an account whose worker runs one more execution, and may be silent for ten minutes.
async fn run_with_account(stage: &Stage, account: &str, number: u8) -> ExecutionId {
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    let request = WorkerRequest { name: account.into(), ..WorkerRequest::default() };
    let key = stage.engine.create_worker(&ada, &request).await.expect("made").api_key.expect("a key");
    let caller = stage.engine.authenticate(Credential::Key(key), "10.0.0.9".into(), "r".into()).await.expect("it is known");
    stage.run(command("deploy")).await;
    let worker = worker(number, false);
    let holder = Holder { worker: worker.id, caller: Some(caller) };
    let queues = vec![Name::new("default").expect("a name")];
    let ask = LeaseAsk { worker, queues, max: 1, ttl_ms: TTL_MS, begin: true, lost_after_ms: Some(600_000) };
    stage.engine.lease(&holder, ask).await.expect("the store answers").pop().expect("a lease").id
}

#[tokio::test]
async fn what_a_worker_ran_whose_key_has_ended_is_reaped_when_its_lease_lapses() {
    let stage = Stage::new(config());
    let mut reaper = Reaper::new(stage.engine.clone());
    let mut ran = Vec::new();
    for (number, account) in [(2, "revoked"), (3, "rotated"), (4, "stands")] {
        ran.push(run_with_account(&stage, account, number).await);
    }
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    stage.clock.pass(10);
    stage.engine.revoke_worker(&ada, "revoked").await.expect("revoked");
    stage.engine.rotate_worker(&ada, "rotated", None).await.expect("another key");
    let found = async |id| stage.store.get(id).await.expect("store").expect("there");
    watch(&stage, &mut reaper, 3).await;
    for id in &ran {
        assert_eq!(found(*id).await.status, Status::Running, "its lease has not lapsed");
    }
    watch(&stage, &mut reaper, 3).await;
    for id in &ran[..2] {
        let reason = found(*id).await.end_reason.expect("a reason");
        assert!(reason.code == EndCode::WorkerLost && reason.message.contains("key"), "{reason:?}");
    }
    assert_eq!(found(ran[2]).await.status, Status::Running, "it may come back");
}

#[tokio::test]
async fn what_a_foreign_worker_lets_run_beyond_its_timeout_is_ended() {
    let stage = Stage::new(Config { kill_confirm_ms: 10_000, ..config() });
    let mut reaper = Reaper::new(stage.engine.clone());
    let timed = || RunRequest { timeout: Some(20), ..command("sleep 1000") };
    let (theirs, ours) = (stage.run(timed()).await.id, stage.run(timed()).await.id);
    let stranger = Worker { runner: FOREIGN_RUNNER.into(), ..worker(2, false) };
    let leased = stage.lease(&stranger, 3_600_000).await.expect("it can be leased");
    stage.lease(&worker(3, false), 3_600_000).await.expect("it can be leased");
    let found = async |id| stage.store.get(id).await.expect("store").expect("there");
    watch(&stage, &mut reaper, 30).await;
    assert_eq!((found(theirs).await.status, found(ours).await.status), (Status::Running, Status::Running), "its worker has time to tell");
    watch(&stage, &mut reaper, 5).await;
    let ended = found(theirs).await;
    assert_eq!((leased.id, ended.status, ended.exit_code), (theirs, Status::Failed, Some(124)));
    assert_eq!(ended.end_reason.expect("a reason").code, EndCode::Timeout);
    assert_eq!(found(ours).await.status, Status::Running, "our own workers end theirs");
    assert!(stage.finish(&stranger, &leased, 0).await.is_err(), "it is over");
}

#[tokio::test]
async fn a_new_start_reaps_its_predecessor_at_once_and_nobody_else() {
    let mut stage = Stage::new(config());
    let (own, remote) = (stage.run(command("a")).await.id, stage.run(command("b")).await.id);
    stage.lease(&worker(1, true), TTL_MS).await.expect("it can be leased");
    stage.lease(&worker(9, false), TTL_MS).await.expect("it can be leased");
    stage.restart(2);
    assert_eq!(stage.engine.recover().await.expect("the store answers"), 1);
    assert_eq!(stage.store.get(own).await.expect("store").expect("there").status, Status::Failed);
    assert_eq!(stage.store.get(remote).await.expect("store").expect("there").status, Status::Running);
}

#[tokio::test]
async fn on_a_shared_store_a_start_reaps_its_own_predecessors_and_no_other_server() {
    let stage = Stage::new(config());
    let (own, others, remote) = (stage.run(command("a")).await.id, stage.run(command("b")).await.id, stage.run(command("c")).await.id);
    for (worker, id) in [(worker(2, true), own), (worker(3, true), others), (worker(9, false), remote)] {
        assert_eq!(stage.lease(&worker, TTL_MS).await.expect("it can be leased").id, id);
    }
    let engine = stage.beside(4, &[1, 2], |_| {});
    assert_eq!(engine.recover().await.expect("the store answers"), 1);
    let status = async |id| stage.store.get(id).await.expect("store").expect("there").status;
    assert_eq!((status(own).await, status(others).await, status(remote).await), (Status::Failed, Status::Running, Status::Running));
    // Nor does a look at everything take the others for gone, however late their clocks say it is.
    stage.clock.pass(60_000);
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    engine.reconcile(&ada).await.expect("the store answers");
    assert_eq!((status(others).await, status(remote).await), (Status::Running, Status::Running));
}

#[tokio::test]
async fn on_a_shared_store_another_server_is_judged_by_the_watch() {
    let stage = Stage::new(config());
    let (lives, dies) = (stage.run(command("a")).await.id, stage.run(command("b")).await.id);
    let (alive, dead) = (worker(2, true), worker(3, true));
    let held = stage.lease(&alive, TTL_MS).await.expect("it can be leased");
    stage.lease(&dead, TTL_MS).await.expect("it can be leased");
    let mut reaper = Reaper::new(stage.beside(4, &[], |_| {}));
    for _ in 0..5 {
        let extend = Extend {
            fence: fence(&held),
            ttl_ms: TTL_MS,
            process_id: None,
            rss_bytes: None,
            last_output_at: None,
            activity: None,
            preparing: None,
        };
        stage.store.extend(stage.step(&alive), extend).await.expect("it is the holder's");
        watch(&stage, &mut reaper, 1).await;
    }
    let status = async |id| stage.store.get(id).await.expect("store").expect("there").status;
    assert_eq!((status(lives).await, status(dies).await), (Status::Running, Status::Failed));
}

/// The slots of a worker that runs everything and remembers what it was reminded of.
#[derive(Default)]
struct Nudged(Mutex<Vec<ExecutionId>>);

impl Slots for Nudged {
    fn reserve(&self) -> Option<Box<dyn Slot>> {
        None
    }

    fn nudge(&self, id: ExecutionId) {
        self.0.lock().push(id);
    }

    fn running(&self) -> usize {
        0
    }

    fn is_draining(&self) -> bool {
        false
    }

    fn runs(&self, _: ExecutionId) -> bool {
        true
    }
}

#[tokio::test]
async fn a_kill_that_another_server_took_reaches_the_worker_at_the_next_look() {
    let stage = Stage::new(config());
    let here = stage.beside(2, &[], |_| {});
    let slots = Arc::new(Nudged::default());
    here.attach_worker(Arc::clone(&slots) as _);
    let mut reaper = Reaper::new(Arc::clone(&here));
    let (killed, goes_on) = (stage.run(command("a")).await.id, stage.run(command("b")).await.id);
    for id in [killed, goes_on] {
        assert_eq!(stage.lease(&worker(2, true), TTL_MS).await.expect("it can be leased").id, id);
    }
    reaper.look().await.expect("the store answers");
    assert!(slots.0.lock().is_empty());
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    stage.beside(3, &[], |_| {}).kill(&ada, &killed.to_string(), false).await.expect("it is taken");
    watch(&stage, &mut reaper, 3).await;
    assert_eq!(*slots.0.lock(), [killed], "once, and of no other");
}

#[tokio::test]
async fn a_kill_that_another_server_took_reaches_a_worker_that_listens_here_at_the_next_look() {
    let stage = Stage::new(config());
    let here = stage.beside(2, &[], |_| {});
    let elsewhere = worker(9, false);
    let ear = here.listen(elsewhere.id);
    let mut reaper = Reaper::new(Arc::clone(&here));
    let (killed, goes_on) = (stage.run(command("a")).await.id, stage.run(command("b")).await.id);
    for id in [killed, goes_on] {
        assert_eq!(stage.lease(&elsewhere, TTL_MS).await.expect("it can be leased").id, id);
    }
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    stage.beside(3, &[], |_| {}).kill(&ada, &killed.to_string(), false).await.expect("it is taken");
    watch(&stage, &mut reaper, 1).await;
    assert_eq!(ear.hear().await, [killed]);
    watch(&stage, &mut reaper, 3).await;
    assert!(futures_util::FutureExt::now_or_never(ear.hear()).is_none(), "once, and of no other");
}

#[tokio::test]
async fn a_wait_for_a_lock_ends_when_it_took_too_long() {
    let stage = Stage::new(config());
    let mut reaper = Reaper::new(stage.engine.clone());
    let mut holds = command("a");
    holds.lock = Some("prod".into());
    stage.run(holds.clone()).await;
    holds.lock_wait = Some(3);
    let waits = stage.run(holds).await.id;
    watch(&stage, &mut reaper, 2).await;
    assert_eq!(stage.store.get(waits).await.expect("store").expect("there").status, Status::Pending);
    watch(&stage, &mut reaper, 2).await;
    let execution = stage.store.get(waits).await.expect("store").expect("there");
    assert_eq!(execution.status, Status::Failed);
    let reason = execution.end_reason.expect("a reason");
    assert!(reason.code == EndCode::StartFailed && reason.message.contains("prod"), "{reason:?}");
}

#[tokio::test]
async fn of_several_servers_that_look_at_what_runs_one_leaves_an_event_in_each_interval() {
    let stage = Stage::new(config());
    stage.run(command("a")).await;
    stage.lease(&worker(2, true), TTL_MS).await.expect("it can be leased");
    let mut watches = [3, 4].map(|number| HealthWatch::new(stage.beside(number, &[], |_| {})));
    for interval in 1..=3 {
        for watch in &mut watches {
            assert_eq!(watch.check().await.expect("the store answers").tasks.len(), 1);
            stage.clock.pass(1_000);
        }
        let query = EventQuery { kind: Some(EventType::TaskHealthCheck), limit: 100, ..EventQuery::default() };
        assert_eq!(stage.store.events(query).await.expect("store").len(), interval);
        stage.clock.pass(Config::default().health.every.as_millis() as u64);
    }
}
