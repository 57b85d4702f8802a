//! A user who has their share keeps nobody waiting, however many of theirs stand in line, and is served in order once there is room.

use std::path::Path;

use runvoy_model::change::Change;
use runvoy_model::command::{Fence, LeaseRequest, LeaseTo, Submit};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::queue::QueueUpdate;
use runvoy_ports::store::ExecutionStore;
use runvoy_sqlite::SqliteStore;
use rusqlite::{Connection, OpenFlags, params};

use crate::fixture::{START, bytes, end_of, lease_to, open, step, step_at, submit};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

async fn limit_per_user(store: &SqliteStore, limit: u32) {
    let terms = QueueUpdate { name: name("default"), paused: None, reason: None, concurrency: None, per_user: Some(Some(limit)) };
    store.change(step(), Change::PutQueue(terms), None).await.expect("taken");
}

async fn submitted(store: &SqliteStore, at: i64, user: &str) -> ExecutionId {
    let asked = Submit { created_by: user.into(), ..submit("true") };
    store.submit(step_at(at), asked).await.expect("taken").0.id
}

/// Has their share from now on.
async fn run(store: &SqliteStore, user: &str) -> Execution {
    let asked = Submit { created_by: user.into(), lease_to: Some(lease_to()), ..submit("true") };
    let (execution, _) = store.submit(step(), asked).await.expect("taken");
    assert!(execution.lease.is_some(), "{user} has room");
    execution
}

async fn leased(store: &SqliteStore, at: i64, most: usize, begin: bool) -> Vec<Execution> {
    let LeaseTo { worker, ttl_ms, .. } = lease_to();
    let leases = (0..most).map(|_| lease_to().lease).collect();
    let request = LeaseRequest { worker, queues: vec![name("default")], leases, ttl_ms, begin, lost_after_ms: None };
    store.lease(step_at(at), request).await.expect("an answer")
}

async fn found(store: &SqliteStore, at: i64, most: usize) -> Vec<ExecutionId> {
    leased(store, at, most, true).await.iter().map(|execution| execution.id).collect()
}

async fn end(store: &SqliteStore, id: ExecutionId) {
    let execution = store.get(id).await.expect("a read").expect("an execution");
    store.end_attempt(step(), end_of(&execution)).await.expect("an end");
}

/// So many more like the last one in line, behind it; with a step each this would take minutes.
async fn repeat(store: SqliteStore, path: &Path, last: ExecutionId, count: usize) -> (SqliteStore, Vec<ExecutionId>) {
    store.close().await.expect("a clean end");
    drop(store);
    // Through the store's own layer, which sums up its pages.
    let mut conn = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), "runvoy-checked").expect("a connection");
    let copies = conn.transaction().expect("a transaction");
    let ids: Vec<ExecutionId> = (0..count).map(|_| ExecutionId::from_bytes(bytes())).collect();
    for id in &ids {
        let mut copy = copies
            .prepare_cached(
                "INSERT INTO executions (id, status, priority, submitted_at, ready_at, queue, created_by, state, spec) \
                 SELECT ?2, status, priority, submitted_at, ready_at, queue, created_by, replace(state, ?3, ?4), spec \
                 FROM executions WHERE id = ?1",
            )
            .expect("a statement");
        copy.execute(params![last.as_bytes(), id.as_bytes(), last.to_string(), id.to_string()]).expect("a copy");
    }
    copies.commit().expect("a commit");
    drop(conn);
    (open(path), ids)
}

#[tokio::test]
async fn whoever_stands_behind_any_number_of_a_user_with_their_share_is_reached() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    limit_per_user(&store, 1).await;
    let running = run(&store, "ana@x").await;
    let mut ana = vec![submitted(&store, START, "ana@x").await];
    let (store, more) = repeat(store, &path, ana[0], 220_000).await;
    ana.extend(more);
    let bob = submitted(&store, START + 1, "bob@x").await;
    assert_eq!(found(&store, START + 1, 3).await, [], "a lease passes over no more than 200,000");
    assert_eq!(found(&store, START + 1, 3).await, [bob], "and the next one goes on");
    let carl = submitted(&store, START + 2, "carl@x").await;
    assert_eq!(found(&store, START + 2, 3).await, [carl], "nobody is passed over twice");
    end(&store, running.id).await;
    let dora = submitted(&store, START + 3, "dora@x").await;
    assert_eq!(found(&store, START + 3, 3).await, [ana[0], dora], "whoever has room again is first where they stood first");
    end(&store, ana[0]).await;
    let eve = submitted(&store, START + 4, "eve@x").await;
    assert_eq!(found(&store, START + 4, 1).await, ana[1..2]);
    assert_eq!(found(&store, START + 4, 1).await, [eve]);
}

#[tokio::test]
async fn of_several_who_have_their_share_each_is_found_when_they_have_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    limit_per_user(&store, 1).await;
    let (ana_runs, bob_runs) = (run(&store, "ana@x").await.id, run(&store, "bob@x").await.id);
    let mut ana = vec![submitted(&store, START, "ana@x").await];
    let (store, more) = repeat(store, &path, ana[0], 110_000).await;
    ana.extend(more);
    let bob = submitted(&store, START, "bob@x").await;
    let (store, _) = repeat(store, &path, ana[0], 110_000).await;
    let bob_last = submitted(&store, START + 1, "bob@x").await;
    let carl = submitted(&store, START + 1, "carl@x").await;
    for _ in 0..2 {
        assert!(found(&store, START + 1, 1).await.iter().all(|id| *id == carl));
    }
    assert!(store.get(carl).await.expect("a read").is_some_and(|carl| carl.lease.is_some()), "behind both");
    end(&store, bob_runs).await;
    assert_eq!(found(&store, START + 1, 2).await, [bob], "among many of another");
    end(&store, ana_runs).await;
    end(&store, bob).await;
    assert_eq!(found(&store, START + 1, 5).await, [ana[0], bob_last], "both");
}

#[tokio::test]
async fn whoever_comes_before_those_passed_over_is_found() {
    const HOUR: i64 = 3_600_000;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    limit_per_user(&store, 1).await;
    run(&store, "ana@x").await;
    let bob = submitted(&store, START, "bob@x").await;
    let ana = submitted(&store, START, "ana@x").await;
    let (store, _) = repeat(store, &path, ana, 1_000).await;
    submitted(&store, START + HOUR, "ana@x").await;
    let held = leased(&store, START, 1, false).await.remove(0);
    assert_eq!((held.id, found(&store, START, 5).await), (bob, vec![]), "all are passed over, also whose time has not come");
    let lease = held.lease.as_ref().expect("it is leased");
    let fence = Fence { execution: bob, attempt: lease.attempt, lease: lease.id };
    store.give_back(step(), fence).await.expect("it goes back");
    assert_eq!(found(&store, START, 5).await, [bob], "handed back");
    let carl = submitted(&store, START + HOUR / 2, "carl@x").await;
    let dora = submitted(&store, START - HOUR, "dora@x").await;
    assert_eq!(found(&store, START, 1).await, [dora], "by a clock that was set back");
    assert_eq!(found(&store, START + HOUR / 2, 5).await, [carl], "before the last");
}
