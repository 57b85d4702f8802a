//! A store of version 4, which knows the terms of queues, what stands in the line of one that is limited, accounts of workers and who is there.

use std::collections::BTreeMap;
use std::path::Path;

use runvoy_model::change::{Change, NewWorker};
use runvoy_model::command::{LeaseRequest, LeaseTo, Submit, Worker};
use runvoy_model::id::{WorkerAccountId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::queue::QueueUpdate;
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Role;
use runvoy_model::spec::Labels;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::{Presence, WorkerKey};
use runvoy_ports::record::RecordStore;
use runvoy_ports::roster::Roster;
use runvoy_ports::store::{ExecutionStore, ListQuery};
use runvoy_sqlite::SqliteStore;

use crate::batch::read;
use crate::fixture::{START, end_of, lease_to, open, options, step, submit};
use crate::golden::{copy, first_admin, golden};
use crate::invariant;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn terms(queue: &str) -> QueueUpdate {
    QueueUpdate { name: name(queue), paused: None, reason: None, concurrency: None, per_user: None }
}

fn lease_of(queue: &str, labels: Labels) -> LeaseRequest {
    let LeaseTo { lease, worker, ttl_ms } = lease_to();
    let worker = Worker { labels, ..worker };
    LeaseRequest { worker, queues: vec![name(queue)], leases: vec![lease], ttl_ms, begin: true, lost_after_ms: None }
}

fn gpu() -> Labels {
    BTreeMap::from([("gpu".to_owned(), "a100".to_owned())])
}

fn account() -> Change {
    let key = WorkerKey::Secret { hash: [11; 32], prefix: "rv_11111111".into() };
    let id = WorkerAccountId::from_bytes([11; 16]);
    Change::CreateWorker(Box::new(NewWorker {
        name: name("gpu-1"),
        id,
        role: Role::Worker,
        may_submit: false,
        queues: vec![name("gpu")],
        key,
        description: None,
    }))
}

fn presence() -> Presence {
    Presence {
        worker: WorkerId::from_bytes([12; 16]),
        account: Some(name("gpu-1")),
        name: "gpu-1".into(),
        host: "a".into(),
        version: "0.1.0".into(),
        runner: "process".into(),
        queues: vec![name("gpu")],
        labels: gpu(),
        concurrency: 2,
        running: 1,
        in_process: false,
        draining: false,
        since: UnixMs(START),
        seen_at: UnixMs(START + 5_000),
        busy_until: None,
        place: None,
    }
}

/// Only for a version that has not been published yet: what is published stays as it is.
async fn write_version_4() {
    let path = golden(4);
    let _ = std::fs::remove_file(&path);
    let store = open(&path);
    store.change(step(), first_admin(), None).await.expect("taken");
    let limited = QueueUpdate { concurrency: Some(Some(1)), per_user: Some(Some(1)), ..terms("gpu") };
    store.change(step(), Change::PutQueue(limited), None).await.expect("taken");
    let paused = QueueUpdate { paused: Some(true), reason: Some("a new driver".into()), ..terms("default") };
    store.change(step(), Change::PutQueue(paused), None).await.expect("taken");
    for (queue, command, labels) in
        [("gpu", "train", gpu()), ("gpu", "test", gpu()), ("gpu", "plain", Labels::new()), ("default", "wait", Labels::new())]
    {
        let mut asked: Submit = submit(command);
        (asked.spec.queue, asked.spec.worker_labels) = (name(queue), labels);
        store.submit(step(), asked).await.expect("taken");
    }
    assert_eq!(store.lease(step(), lease_of("gpu", gpu())).await.expect("a lease").len(), 1);
    store.change(step(), account(), None).await.expect("taken");
    store.note(presence()).await.expect("noted");
    close(store, &path).await;
}

async fn close(store: SqliteStore, path: &Path) {
    store.close().await.expect("a clean end");
    drop(store);
    for beside in ["-wal", "-shm"] {
        // Empty by now; only the one file is kept.
        let _ = std::fs::remove_file(format!("{}{beside}", path.display()));
    }
}

/// One queue with one place, which is taken, and two that wait for it; and a queue that is paused.
#[tokio::test]
async fn a_store_of_version_4_is_read_and_goes_on() {
    if std::env::var_os("RUNVOY_WRITE_GOLDEN").is_some() {
        write_version_4().await;
    }
    let (_directory, path) = copy(4);
    assert_eq!(read(&path, "PRAGMA user_version"), 4);
    let store = open(&path);
    invariant::check(&store, &options().audit_key).await;
    assert_eq!(store.present().await.expect("a roster"), [presence()]);
    let worker = store.record(Kind::Worker, "gpu-1").await.expect("a read").expect("an account");
    assert!(worker.worker().is_some_and(|account| account.has_key(&[11; 32]) && account.queues == [name("gpu")]));
    let queues = store.records(Kind::Queue).await.expect("queues");
    let queues: Vec<_> =
        queues.iter().filter_map(Record::queue).map(|terms| (terms.name.as_str(), terms.concurrency, terms.paused.is_some())).collect();
    assert_eq!(queues, [("default", None, true), ("gpu", Some(1), false)]);
    let listed = store.list(ListQuery { queue: Some(name("gpu")), limit: 10, ..ListQuery::default() }).await.expect("a list");
    let statuses: Vec<_> = listed.iter().map(|execution| (execution.spec.command.as_str(), execution.status)).collect();
    assert_eq!(statuses, [("plain", Status::Pending), ("test", Status::Pending), ("train", Status::Running)]);
    let permits = store.record(Kind::Permits, "gpu").await.expect("a read").expect("a record");
    assert_eq!(permits.permits().iter().map(|permit| permit.execution).collect::<Vec<_>>(), [listed[2].id]);
    for (queue, labels) in [("gpu", gpu()), ("default", gpu())] {
        assert!(store.lease(step(), lease_of(queue, labels)).await.expect("a lease").is_empty(), "{queue}");
    }
    store.end_attempt(step(), end_of(&listed[2])).await.expect("an end");
    let plain = store.lease(step(), lease_of("gpu", Labels::new())).await.expect("a lease");
    assert_eq!(plain.first().map(|execution| execution.id), Some(listed[0].id), "what asks for a label is passed over");
    invariant::check(&store, &options().audit_key).await;
}
