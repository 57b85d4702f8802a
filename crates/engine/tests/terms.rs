//! Queues that are paused, limited, or for workers with a label: who may say so, and what those who wait are told.

mod stage;

use std::sync::Arc;
use std::time::Duration;

use runvoy_engine::{Config, Engine, EngineError, LocalLeases, Reaper, RunRequest};
use runvoy_model::command::{LeaseRequest, Worker};
use runvoy_model::execution::Execution;
use runvoy_model::id::LeaseId;
use runvoy_model::name::Name;
use runvoy_model::queue::QueueUpdate;
use runvoy_model::role::Role;
use runvoy_model::rpc::RpcParams;
use runvoy_model::status::Status;
use runvoy_ports::clock::IdSource;
use runvoy_ports::lease::Leases;
use runvoy_ports::store::ExecutionStore;

use self::stage::{Stage, command, worker};

fn update() -> QueueUpdate {
    QueueUpdate { name: Name::new("default").expect("a name"), paused: None, reason: None, concurrency: None, per_user: None }
}

fn pause(reason: &str) -> QueueUpdate {
    QueueUpdate { paused: Some(true), reason: Some(reason.into()), ..update() }
}

async fn told(engine: &Engine, execution: &Execution) -> (String, String) {
    let waiting = engine.waits_for(execution).await.expect("it waits");
    (waiting.code.as_str().to_owned(), waiting.message)
}

#[tokio::test]
async fn admins_and_operators_change_the_terms_of_queues_and_nobody_else() {
    let stage = Stage::new(Config::default());
    for (role, may) in [(Role::Admin, true), (Role::Operator, true), (Role::Developer, false), (Role::Viewer, false)] {
        let caller = stage.admitted(&format!("{}@example.com", role.as_str()), role).await;
        let put = stage.engine.put_queue(&caller, pause("because"), None).await;
        assert_eq!(put.is_ok(), may, "{role:?}");
        assert_eq!(stage.engine.remove_queue(&caller, "default").await.is_ok(), may, "{role:?}");
        assert!(stage.engine.queue_terms(&caller).await.expect("anybody may look").is_empty());
    }
}

#[tokio::test]
async fn terms_that_cannot_be_are_refused_by_field() {
    let stage = Stage::new(Config::default());
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    let wrong = [
        ("concurrency", QueueUpdate { concurrency: Some(Some(0)), ..update() }),
        ("per_user", QueueUpdate { per_user: Some(Some(1_001)), ..update() }),
        ("reason", QueueUpdate { reason: Some("nobody paused it".into()), ..update() }),
        ("reason", pause("two\nlines")),
    ];
    for (expected, update) in wrong {
        match stage.engine.put_queue(&ada, update, None).await {
            Err(EngineError::Invalid { field, .. }) => assert_eq!(field, expected),
            other => panic!("expected a refusal of {expected}, got {other:?}"),
        }
    }
    assert!(matches!(stage.engine.remove_queue(&ada, "default").await, Err(error) if error.to_string().contains("default")));
}

#[tokio::test]
async fn what_is_absent_stays_and_a_key_makes_one_change() {
    let stage = Stage::new(Config::default());
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    stage.engine.put_queue(&ada, pause("a new driver"), Some("k1")).await.expect("taken");
    let terms = stage.engine.put_queue(&ada, QueueUpdate { concurrency: Some(Some(3)), ..update() }, None).await.expect("taken");
    assert_eq!((terms.paused.map(|pause| pause.by), terms.concurrency), (Some("ada@example.com".into()), Some(3)));
    let resumed = stage.engine.put_queue(&ada, QueueUpdate { paused: Some(false), ..update() }, None).await.expect("taken");
    assert_eq!(resumed.paused, None);
    let again = stage.engine.put_queue(&ada, pause("a new driver"), Some("k1")).await.expect("a repeat");
    assert_eq!(again.paused, None, "a repeat pauses nothing anew");
}

#[tokio::test]
async fn whoever_waits_is_told_for_what() {
    let stage = Stage::new(Config { concurrency: 1, ..Config::default() });
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    stage.engine.put_queue(&ada, QueueUpdate { concurrency: Some(Some(1)), ..update() }, None).await.expect("taken");
    stage.run(command("true")).await;
    let running = stage.lease(&worker(2, false), 30_000).await.expect("a place");
    let waiting = stage.run(command("true")).await;
    assert!(stage.lease(&worker(2, false), 30_000).await.is_none());
    assert_eq!(told(&stage.engine, &waiting).await, ("limit".into(), "the only slot of queue default".into()));
    let held = stage.engine.queue_terms(&ada).await.expect("terms").remove(0);
    assert_eq!(held.permits.iter().map(|permit| permit.execution).collect::<Vec<_>>(), [running.id]);
    stage.engine.put_queue(&ada, pause("a new driver"), None).await.expect("taken");
    assert_eq!(
        told(&stage.engine, &waiting).await,
        ("paused".into(), "queue default, which ada@example.com has paused: a new driver".into())
    );
    stage.engine.remove_queue(&ada, "default").await.expect("taken");
    assert_eq!(told(&stage.engine, &waiting).await.0, "worker");
    let mut request = command("true");
    request.worker_labels.insert("gpu".into(), "a100".into());
    let labelled = stage.run(request).await;
    assert_eq!(
        told(&stage.engine, &labelled).await,
        ("worker".into(), "a free worker of queue default with gpu=a100: no worker of queue default has these labels".into())
    );
    let rpc = RpcParams { working_directory: Some("/srv".into()), ..RpcParams::default() };
    let mut request = RunRequest { rpc: Some(Box::new(rpc)), ..command("true") };
    request.worker_labels.insert("gpu".into(), "a100".into());
    let foreign = stage.run(request).await;
    assert_eq!(
        told(&stage.engine, &foreign).await,
        ("worker".into(), "a worker of queue default that speaks job.v1 with gpu=a100".into()),
        "whoever speaks it need not be on the roster"
    );
}

#[tokio::test]
async fn a_worker_that_is_given_nothing_waits_before_it_asks_again() {
    let poll = Duration::from_millis(50);
    let stage = Stage::new(Config { poll, ..Config::default() });
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    stage.engine.put_queue(&ada, pause("a new driver"), None).await.expect("taken");
    stage.run(command("true")).await;
    let leases = LocalLeases::new(Arc::clone(&stage.engine));
    let mut asked = 0;
    let until = tokio::time::Instant::now() + 10 * poll;
    while tokio::time::Instant::now() < until {
        leases.wait_for_work().await;
        assert!(leases.lease(1).await.expect("the store answers").is_empty());
        asked += 1;
    }
    assert!(asked <= 15, "asked {asked} times");
    stage.engine.put_queue(&ada, QueueUpdate { paused: Some(false), ..update() }, None).await.expect("taken");
    leases.wait_for_work().await;
    assert_eq!(leases.lease(1).await.expect("the store answers").len(), 1);
}

async fn lease_patiently(stage: &Stage, by: &Worker) -> Execution {
    let request = LeaseRequest {
        worker: by.clone(),
        queues: vec![Name::new("default").expect("a name")],
        leases: vec![LeaseId(stage.ids.next_id())],
        ttl_ms: 2_000,
        begin: true,
        lost_after_ms: Some(60_000),
    };
    stage.store.lease(stage.step(by), request).await.expect("the store answers").pop().expect("something to lease")
}

#[tokio::test]
async fn a_silent_worker_is_out_of_reach_before_it_is_lost_and_its_late_end_counts() {
    let stage = Stage::new(Config { reap_margin_ms: 1_000, ..Config::default() });
    let mut reaper = Reaper::new(Arc::clone(&stage.engine));
    let (patient, by) = (stage.run(command("true")).await.id, worker(2, false));
    let leased = lease_patiently(&stage, &by).await;
    for _ in 0..40 {
        stage.clock.pass(1_000);
        reaper.look().await.expect("the store answers");
    }
    let silent = stage.store.get(patient).await.expect("a read").expect("there");
    assert_eq!(silent.status, Status::Running);
    assert_eq!(silent.worker_unreachable(stage.engine.now()), silent.lease.as_ref().map(|lease| lease.deadline));
    let ended = stage.finish(&by, &leased, 0).await.expect("it came back in time");
    assert_eq!(ended.status, Status::Succeeded);

    let mut request = command("true");
    request.retries = Some(1);
    let impatient = stage.run(request).await.id;
    lease_patiently(&stage, &by).await;
    for _ in 0..5 {
        stage.clock.pass(1_000);
        reaper.look().await.expect("the store answers");
    }
    assert_eq!(
        stage.store.get(impatient).await.expect("a read").expect("there").status,
        Status::Pending,
        "another attempt can begin elsewhere"
    );
}

#[tokio::test]
async fn a_place_that_is_somebodys_is_left_to_them_by_a_look_at_everything() {
    let stage = Stage::new(Config::default());
    let ada = stage.admitted("ada@example.com", Role::Admin).await;
    stage.engine.put_queue(&ada, QueueUpdate { concurrency: Some(Some(1)), ..update() }, None).await.expect("taken");
    stage.run(command("true")).await;
    stage.lease(&worker(2, false), 30_000).await.expect("a place");
    let report = stage.engine.reconcile(&ada).await.expect("a look");
    assert!(report.findings.iter().all(|finding| finding.what != "queue"), "{report:?}");
}
