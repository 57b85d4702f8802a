//! What asks for labels that a worker lacks is looked at once, hides nobody who stands behind it, and nobody who comes before it later.

use std::sync::Arc;

use runvoy_model::change::Change;
use runvoy_model::command::{EndAttempt, Fence, LeaseRequest, LeaseTo, Outcome, Submit, Worker};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::queue::QueueUpdate;
use runvoy_model::spec::Labels;
use runvoy_ports::store::ExecutionStore;
use runvoy_sqlite::SqliteStore;

use crate::fixture::{START, end_of, lease_to, open, step, step_at, submit};

const HOUR: i64 = 3_600_000;

fn gpu(kind: &str) -> Labels {
    Labels::from([("gpu".to_owned(), kind.to_owned())])
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn asking(kind: &str) -> Submit {
    let mut asked = submit("true");
    (asked.spec.worker_labels, asked.spec.retries) = (gpu(kind), 1);
    asked
}

async fn submitted_at(store: &SqliteStore, at: i64, kind: &str) -> ExecutionId {
    store.submit(step_at(at), asking(kind)).await.expect("taken").0.id
}

async fn leased(store: &SqliteStore, at: i64, kind: &str, begin: bool) -> Vec<Execution> {
    let LeaseTo { lease, worker, ttl_ms } = lease_to();
    let worker = Worker { labels: gpu(kind), ..worker };
    let request = LeaseRequest { worker, queues: vec![name("default")], leases: vec![lease], ttl_ms, begin, lost_after_ms: None };
    store.lease(step_at(at), request).await.expect("an answer")
}

async fn found(store: &SqliteStore, at: i64, kind: &str) -> Option<ExecutionId> {
    leased(store, at, kind, true).await.first().map(|execution| execution.id)
}

async fn wait_in_vain(store: &Arc<SqliteStore>, count: usize) {
    const AT_ONCE: usize = 200;
    let submitters = (0..AT_ONCE).map(|_| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for _ in 0..count / AT_ONCE {
                submitted_at(&store, START, "h100").await;
            }
        })
    });
    for submitter in submitters.collect::<Vec<_>>() {
        submitter.await.expect("no panic");
    }
}

#[tokio::test]
async fn whoever_fits_is_reached_behind_any_number_that_do_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(&directory.path().join("store.db")));
    wait_in_vain(&store, 21_000).await;
    let fits = submitted_at(&store, START + 1, "t4").await;
    assert_eq!(found(&store, START + 1, "t4").await, None, "a lease looks at no more than 20,000");
    assert_eq!(found(&store, START + 1, "t4").await, Some(fits), "and the next one goes on");
    let other = submitted_at(&store, START + 1, "a100").await;
    assert_eq!(found(&store, START + 1, "a100").await, None, "who has other labels looks for itself");
    assert_eq!(found(&store, START + 1, "a100").await, Some(other));
    let next = submitted_at(&store, START + 2, "t4").await;
    assert_eq!(found(&store, START + 2, "t4").await, Some(next), "nobody is looked at twice");
    assert!(found(&store, START + 2, "h100").await.is_some(), "what one passes by is for another");
}

/// A look that passes by everybody, also those whose time has not come.
async fn pass_by(store: &SqliteStore, at: i64) {
    submitted_at(store, at, "h100").await;
    assert_eq!(found(store, START, "t4").await, None);
}

#[tokio::test]
async fn whoever_comes_before_those_passed_by_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let new = submitted_at(&store, START, "t4").await;
    let held = leased(&store, START, "t4", false).await.remove(0);
    pass_by(&store, START + HOUR).await;
    let lease = held.lease.as_ref().expect("it is leased");
    let fence = Fence { execution: held.id, attempt: lease.attempt, lease: lease.id };
    store.give_back(step(), fence).await.expect("it goes back");
    let mut again = leased(&store, START, "t4", true).await;
    assert_eq!(again.first().map(|execution| execution.id), Some(new), "handed back");

    pass_by(&store, START + HOUR).await;
    let failed = EndAttempt { outcome: Outcome::Exited { code: 1, after_kill: false }, ..end_of(&again.remove(0)) };
    let waits = store.end_attempt(step(), failed).await.expect("an end");
    assert!(waits.ready_key().is_some_and(|key| key.ready_at.0 > START && key.ready_at.0 < START + HOUR), "in backoff: {waits:?}");
    assert_eq!(found(&store, START, "t4").await, None);
    assert_eq!(found(&store, START + HOUR / 2, "t4").await, Some(new), "after its backoff");

    pass_by(&store, START + HOUR).await;
    let earlier = submitted_at(&store, START - HOUR, "t4").await;
    assert_eq!(found(&store, START, "t4").await, Some(earlier), "submitted by a clock that was set back");
}

#[tokio::test]
async fn whoever_waits_for_a_lock_is_found_when_it_is_theirs() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let with_lock = || {
        let mut asked = asking("t4");
        (asked.spec.lock, asked.spec.lock_wait_ms, asked.spec.retries) = (Some(name("infra")), Some(HOUR.unsigned_abs()), 0);
        asked
    };
    let (holds, _) = store.submit(step(), with_lock()).await.expect("taken");
    let (waits, _) = store.submit(step(), with_lock()).await.expect("taken");
    let running = leased(&store, START, "t4", true).await.remove(0);
    assert_eq!(running.id, holds.id);
    pass_by(&store, START).await;
    store.end_attempt(step(), end_of(&running)).await.expect("an end");
    assert_eq!(found(&store, START, "t4").await, Some(waits.id));
}

#[tokio::test]
async fn whoever_has_their_share_is_found_when_they_have_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let terms = QueueUpdate { name: name("default"), paused: None, reason: None, concurrency: None, per_user: Some(Some(1)) };
    store.change(step(), Change::PutQueue(terms), None).await.expect("taken");
    submitted_at(&store, START, "h100").await;
    submitted_at(&store, START, "t4").await;
    let second = submitted_at(&store, START, "t4").await;
    let running = leased(&store, START, "t4", true).await.remove(0);
    pass_by(&store, START).await;
    pass_by(&store, START).await;
    store.end_attempt(step(), end_of(&running)).await.expect("an end");
    assert_eq!(found(&store, START, "t4").await, Some(second));
}
