//! Workers that an admin drains: given nothing new until they may go on, by name, also after a restart; and the names that tell workers apart.

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;

use runvoy_engine::{Config, EngineError, LocalLeases, RollCall};
use runvoy_model::id::WorkerId;
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::worker::Presence;
use runvoy_ports::clock::Clock as _;
use runvoy_ports::lease::{Leases as _, Slot, Slots};

use crate::stage::{Stage, command};

/// The worker inside the server.
struct Own;

impl Slots for Own {
    fn reserve(&self) -> Option<Box<dyn Slot>> {
        panic!("nothing is reserved for a drained worker")
    }

    fn nudge(&self, _: runvoy_model::id::ExecutionId) {}

    fn running(&self) -> usize {
        1
    }

    fn is_draining(&self) -> bool {
        false
    }

    fn runs(&self, _: runvoy_model::id::ExecutionId) -> bool {
        false
    }
}

/// A worker elsewhere, in a directory of its own.
fn remote(stage: &Stage, number: u8, place: &str) -> Presence {
    Presence {
        worker: WorkerId::from_bytes([number; 16]),
        account: None,
        name: "here".into(),
        host: "here".into(),
        version: "0".into(),
        runner: "process".into(),
        queues: vec![Name::new("default").expect("a name")],
        labels: BTreeMap::new(),
        concurrency: 1,
        running: 0,
        in_process: false,
        draining: false,
        since: stage.clock.now(),
        seen_at: stage.clock.now(),
        busy_until: None,
        place: Some(place.into()),
    }
}

#[tokio::test]
async fn the_own_worker_is_drained_across_a_restart_until_it_is_resumed() {
    let mut stage = Stage::new(Config { shares_uid: false, ..Config::default() });
    let (admin, operator) = (stage.admitted("root@x", Role::Admin).await, stage.admitted("op@x", Role::Operator).await);
    stage.engine.attach_worker(Arc::new(Own));
    RollCall::new(Arc::clone(&stage.engine)).call(false).await.expect("a look");
    let refused = stage.engine.drain_worker(&operator, "here", None).await;
    assert!(matches!(refused, Err(EngineError::Forbidden { .. })), "{refused:?}");
    let unknown = stage.engine.drain_worker(&admin, "elsewhere", None).await;
    assert!(matches!(unknown, Err(EngineError::NotFound { .. })), "{unknown:?}");
    let drained = stage.engine.drain_worker(&admin, "here", None).await.expect("drained");
    assert_eq!((drained.name.as_str(), drained.running), ("here", 1));
    let listed = stage.engine.workers(&admin).await.expect("workers");
    assert!(listed.iter().all(|worker| worker.draining));
    let waiting = stage.run(command("true")).await;
    assert!(LocalLeases::new(Arc::clone(&stage.engine)).lease(1).await.expect("an answer").is_empty());

    stage.restart(2);
    let leases = LocalLeases::new(Arc::clone(&stage.engine));
    assert!(leases.lease(1).await.expect("an answer").is_empty(), "the wish is kept");
    assert_eq!(stage.engine.waiting_for(&waiting).expect("it waits").message, "a worker: all workers of queue default are drained");
    let waits = async {
        leases.wait_for_work().await;
        leases.lease(1).await.expect("an answer")
    };
    let resumes = async { stage.engine.resume_worker(&admin, "here", None).await.expect("resumed") };
    let (leased, _) = tokio::join!(waits, resumes);
    assert_eq!(leased.iter().map(|execution| execution.id).collect::<Vec<_>>(), [waiting.id]);
}

#[tokio::test]
async fn a_repeat_with_the_same_key_is_answered_and_another_request_is_not() {
    let stage = Stage::new(Config { concurrency: 0, ..Config::default() });
    let admin = stage.admitted("root@x", Role::Admin).await;
    stage.engine.note_worker(remote(&stage, 8, "a")).await.expect("noted");
    let id = WorkerId::from_bytes([8; 16]).to_string();
    for worker in ["here", id.as_str(), "here"] {
        assert_eq!(stage.engine.drain_worker(&admin, worker, Some("k")).await.expect("drained").name, "here");
    }
    let reused = stage.engine.resume_worker(&admin, "here", Some("k")).await;
    assert!(matches!(reused, Err(EngineError::Conflict { .. })), "{reused:?}");
    assert!(stage.engine.is_drained(WorkerId::from_bytes([8; 16])).await);
    stage.engine.resume_worker(&admin, "here", None).await.expect("resumed");
    assert!(!stage.engine.is_drained(WorkerId::from_bytes([8; 16])).await);
}

#[tokio::test]
async fn workers_on_one_host_have_different_names_that_stay() {
    let stage = Stage::new(Config { concurrency: 0, ..Config::default() });
    let admin = stage.admitted("root@x", Role::Admin).await;
    let note = async |number: u8, place: &str| stage.engine.note_worker(remote(&stage, number, place)).await.expect("noted");
    assert_eq!((note(1, "a").await, note(2, "b").await, note(3, "c").await), ("here".into(), "here-2".into(), "here-3".into()));
    stage.engine.drain_worker(&admin, "here-2", None).await.expect("drained");
    stage.engine.worker_left(WorkerId::from_bytes([1; 16])).await.expect("it left");
    assert_eq!((note(2, "b").await, note(3, "c").await), ("here-2".into(), "here-3".into()), "while they are there");
    assert_eq!(note(4, "b").await, "here-2", "a later start in the same directory");
    assert!(stage.engine.is_drained(WorkerId::from_bytes([4; 16])).await, "and what was wished of it holds");
    assert_eq!(note(5, "d").await, "here", "a name is free again when its worker has left");
}

#[tokio::test]
async fn the_worker_inside_the_server_keeps_the_name_of_its_host() {
    let stage = Stage::new(Config::default());
    let admin = stage.admitted("root@x", Role::Admin).await;
    assert_eq!(stage.engine.note_worker(remote(&stage, 8, "a")).await.expect("noted"), "here-2", "also where it comes first");
    stage.engine.attach_worker(Arc::new(Own));
    RollCall::new(Arc::clone(&stage.engine)).call(false).await.expect("a look");
    let mut names: Vec<_> = stage.engine.workers(&admin).await.expect("workers").into_iter().map(|worker| worker.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["here", "here-2"]);
}
