//! The reference keeps every promise itself, plain and through faults, and the checks that use it can tell a broken store.

use std::collections::HashSet;
use std::sync::Arc;

use runvoy_conformance::dag::ends_as_it_must;
use runvoy_conformance::dump::Dump;
use runvoy_conformance::fault::ThroughFaults;
use runvoy_conformance::harness::{AUDIT_KEY, Opener, TransactionalStore};
use runvoy_conformance::history::agree_with_reference;
use runvoy_conformance::race;
use runvoy_memory::{MemoryLogStore, MemoryStore};
use runvoy_model::event::EventType;
use runvoy_model::limit::StepLimits;
use runvoy_model::status::Status;
use runvoy_ports::log::LogStore;
use runvoy_ports::store::ExecutionStore;

/// Opening again is a look at the same state.
async fn executions() -> Opener<dyn ExecutionStore> {
    let store = MemoryStore::new(AUDIT_KEY);
    Opener::new(move || {
        let opened: Arc<dyn ExecutionStore> = Arc::new(store.clone());
        async { opened }
    })
    .await
}

async fn records() -> Opener<dyn TransactionalStore> {
    let store = MemoryStore::new(AUDIT_KEY);
    Opener::new(move || {
        let opened: Arc<dyn TransactionalStore> = Arc::new(store.clone());
        async { opened }
    })
    .await
}

/// As much as a store takes whose step is one transaction of a hundred items.
const SMALL_STEPS: StepLimits = StepLimits { rows: 60, tasks: 20, bytes: 1 << 20, leases: 20, letters: 16, moves: 20, forgotten: 80 };

async fn in_small_steps() -> Opener<dyn TransactionalStore> {
    let store = MemoryStore::new(AUDIT_KEY).with_limits(SMALL_STEPS);
    Opener::new(move || {
        let opened: Arc<dyn TransactionalStore> = Arc::new(store.clone());
        async { opened }
    })
    .await
}

async fn logs() -> Opener<dyn LogStore> {
    let store = MemoryLogStore::default();
    Opener::new(move || {
        let opened: Arc<dyn LogStore> = Arc::new(store.clone());
        async { opened }
    })
    .await
}

mod plain {
    runvoy_conformance::execution_store_conformance!(super::executions().await);
    runvoy_conformance::record_store_conformance!(super::records().await);
    runvoy_conformance::roster_conformance!(super::records().await);
    runvoy_conformance::cost_store_conformance!(super::records().await);
    runvoy_conformance::job_store_conformance!(super::records().await);
    runvoy_conformance::log_store_conformance!(super::logs().await);
}

mod small_steps {
    runvoy_conformance::record_store_conformance!(super::in_small_steps().await);
    runvoy_conformance::roster_conformance!(super::in_small_steps().await);
    runvoy_conformance::cost_store_conformance!(super::in_small_steps().await);
    runvoy_conformance::job_store_conformance!(super::in_small_steps().await);
}

mod through_faults {
    use super::ThroughFaults;

    runvoy_conformance::execution_store_conformance!(ThroughFaults::new(super::executions().await, 0xfa17));
    runvoy_conformance::record_store_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::roster_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::cost_store_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::job_store_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::log_store_conformance!(ThroughFaults::new(super::logs().await, 0xfa17));
}

#[tokio::test]
async fn no_double_finish_in_the_reference() {
    race::no_double_finish(3, 1_000, &executions().await).await;
}

#[tokio::test]
async fn a_lock_of_the_reference_is_never_held_by_two() {
    race::a_lock_is_never_held_by_two(4, 1_500, &executions().await).await;
}

#[tokio::test]
async fn every_dag_ends_as_it_must_in_the_reference_and_reaches_every_end() {
    let mut ends = HashSet::new();
    for seed in 0..60 {
        ends.insert(ends_as_it_must(seed, 60, &records().await).await.end);
    }
    for seed in 60..75 {
        ends_as_it_must(seed, 200, &in_small_steps().await).await;
    }
    assert_eq!(ends.len(), 3, "{ends:?}");
}

#[tokio::test]
async fn histories_agree_with_themselves_and_reach_everything_there_is() {
    let (mut statuses, mut kinds) = (HashSet::new(), HashSet::new());
    let (mut late, mut dead, mut in_line) = (false, false, false);
    for seed in 0..80 {
        let reference = MemoryStore::new(AUDIT_KEY);
        agree_with_reference(seed, 150, &reference, &records().await).await;
        let end = Dump::of(&reference).await;
        statuses.extend(end.executions.iter().map(|execution| execution.status));
        kinds.extend(end.events.iter().map(|stored| stored.event.kind));
        late |= end.events.iter().any(|stored| stored.event.properties["late"] == true);
        dead |= end.executions.iter().any(|execution| execution.dead);
        in_line |= end.locks.iter().any(|line| line.waiters.len() > 1);
    }
    assert_eq!((statuses.len(), kinds.len()), (Status::ALL.len(), EventType::ALL.len()), "{statuses:?} {kinds:?}");
    assert!(late && dead && in_line, "{late} {dead} {in_line}");
}
