//! Workers that vanish: the reaper acts only when it may, and every execution ends once.

mod stage;

use runvoy_engine::{Config, Reaper};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::status::{EndCode, Status};
use runvoy_ports::store::{EventQuery, ExecutionStore};

use self::stage::{Stage, command, worker};

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
