//! What must hold of any store, however it came to be: whole chains, states that follow from events, locks with one live holder.

use std::collections::BTreeMap;

use runvoy_conformance::state::assert_follows;
use runvoy_model::chain::{AuditKey, ChainHead};
use runvoy_model::event::Entity;
use runvoy_model::execution::LockClaim;
use runvoy_model::id::ExecutionId;
use runvoy_model::job::{JobStatus, Phase};
use runvoy_model::record::{Body, Kind, owner_record};
use runvoy_ports::job::{JobQuery, JobStore};
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery};
use runvoy_sqlite::SqliteStore;

/// Checks everything there is, and returns the ids of all executions.
pub async fn check(store: &SqliteStore, key: &AuditKey) -> Vec<ExecutionId> {
    store.verify().await.expect("every page and index is sound");
    let executions = store.list(ListQuery { limit: usize::MAX, ..ListQuery::default() }).await.expect("a list");
    let mut holders = BTreeMap::new();
    for execution in &executions {
        check_chain(store, key, Entity::task(execution.id), execution.chain).await;
        if let (LockClaim::Held { fence }, Some(lock)) = (execution.lock, &execution.spec.lock) {
            assert!(!execution.status.is_terminal(), "{} has ended and holds its lock", execution.id);
            assert_eq!(holders.insert(lock.clone(), (execution.id, fence)), None, "lock {lock} is held twice");
        }
    }
    for line in store.locks().await.expect("locks") {
        let holder = line.lock.holder.as_ref().expect("a held lock").execution;
        assert_eq!(holders.remove(&line.lock.name), Some((holder, line.lock.fence)));
    }
    assert_eq!(holders, BTreeMap::new(), "locks that only their holders know of");
    check_records(store, key).await;
    check_jobs(store, key).await;
    assert_follows(store, "in the end").await;
    executions.into_iter().map(|execution| execution.id).collect()
}

/// Every record's events are the chain that it names, and every key is somebody's.
async fn check_records(store: &SqliteStore, key: &AuditKey) {
    for kind in Kind::ALL {
        for record in store.records(kind).await.expect("records") {
            if let Some(entity) = record.entity() {
                check_chain(store, key, entity, record.chain).await;
            }
            if let Some(Body::Key(owner)) = &record.body {
                let (kind, owner) = owner_record(owner);
                assert!(store.record(kind, owner).await.expect("a read").is_some(), "key {} is nobody's", record.name);
            }
        }
    }
}

/// Every job's events are the chain that it names, its counts are those of its tasks, and its active tasks are executions that have not ended.
async fn check_jobs(store: &SqliteStore, key: &AuditKey) {
    let query = JobQuery { statuses: JobStatus::ALL.to_vec(), limit: usize::MAX, ..JobQuery::default() };
    for job in store.jobs(query).await.expect("jobs") {
        check_chain(store, key, Entity::job(job.id), job.chain).await;
        let nodes = runvoy_conformance::dump::nodes(store, job.id).await;
        let count = |phase: Phase| u32::try_from(nodes.iter().filter(|node| node.phase == phase).count()).expect("few");
        if job.status != JobStatus::Staged {
            let counted = (count(Phase::Waiting), count(Phase::Ready), count(Phase::Active), count(Phase::Completed), count(Phase::Failed));
            let counts = job.counts;
            assert_eq!((counts.waiting, counts.ready, counts.active, counts.completed, counts.failed), counted, "job {}", job.id);
        }
        for node in nodes.iter().filter(|node| node.phase == Phase::Active) {
            let execution = store.get(node.execution.expect("an execution")).await.expect("a read").expect("an execution");
            assert!(!execution.status.is_terminal(), "task {} has ended and its job does not know", node.task);
        }
    }
}

async fn check_chain(store: &SqliteStore, key: &AuditKey, entity: Entity, named: ChainHead) {
    let query = EventQuery { entity: Some(entity.clone()), limit: usize::MAX, ..EventQuery::default() };
    let events: Vec<_> = store.events(query).await.expect("events").into_iter().map(|stored| stored.event).collect();
    let mut head = ChainHead::default();
    for event in events.iter().filter(|event| event.kind.is_chained()) {
        head = key.link(&head, &event.canonical());
        assert_eq!((event.number, event.mac), (head.count, head.mac), "the chain of {entity:?}");
    }
    assert_eq!(head, named, "the head of {entity:?}");
}
