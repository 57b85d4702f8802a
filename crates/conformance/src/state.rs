//! Whether all that a store keeps follows from its events, asked through its ports.

use std::collections::HashMap;

use runvoy_model::digest::DigestsSince;
use runvoy_model::event::Entity;
use runvoy_model::execution::Execution;
use runvoy_model::fold::{Comparison, ExecutionFold, JobCheck, Mismatch, compare_lock};
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Job, Node};
use runvoy_model::lock::Lock;
use runvoy_model::name::Name;
use runvoy_ports::store::{EventQuery, ListQuery, StoredEvent};

use crate::dump::jobs;
use crate::harness::TransactionalStore;

/// Panics with the first thing that does not follow from the events; tells how many were compared. Nobody may write meanwhile.
pub async fn assert_follows(store: &dyn TransactionalStore, when: &str) -> u64 {
    let found = compare(store).await;
    assert_eq!(found.first, None, "{when}: what is kept does not follow from the events");
    found.compared
}

/// Compares everything there is.
pub async fn compare(store: &dyn TransactionalStore) -> Comparison {
    let mut found = Comparison::default();
    let digests = digests_since(store).await;
    let locks: HashMap<Name, Lock> =
        store.locks().await.expect("locks").into_iter().map(|line| (line.lock.name.clone(), line.lock)).collect();
    let mut executions = store.list(ListQuery { limit: usize::MAX, ..ListQuery::default() }).await.expect("a list");
    let (mut folds, mut begun) = (HashMap::new(), HashMap::new());
    for execution in &executions {
        let about = Entity::task(execution.id);
        let mut fold = ExecutionFold::default();
        let events = events_of(store, about.clone()).await;
        let folded = events.iter().try_for_each(|stored| fold.next(stored.place, &stored.event));
        let lock = execution.spec.lock.as_ref().and_then(|name| locks.get(name));
        let folded = folded.map_err(|impossible| Mismatch::of(&about, "events", impossible.to_string()));
        found.add(folded.and_then(|()| fold.compare(execution, lock, digests)));
        folds.insert(execution.id, fold);
        begun.insert(execution.id, events.first().map(|first| first.place));
    }
    // In the order of their release, which the log knows and a list may not.
    executions.sort_by_key(|execution| begun[&execution.id]);
    for (job, nodes) in jobs(store).await {
        let events = events_of(store, Entity::job(job.id)).await;
        found.join(compare_job((job, digests), &events, tasks_of(&executions, &folds), &nodes));
    }
    for lock in locks.values() {
        let id = lock.holder.as_ref().map(|holder| holder.execution);
        let holder = executions.iter().find(|execution| Some(execution.id) == id);
        found.add(compare_lock(lock, holder.map(|holder| (holder, &folds[&holder.id]))));
    }
    found
}

/// Since when events hold digests: with the first one, where no older version wrote it.
async fn digests_since(store: &dyn TransactionalStore) -> DigestsSince {
    let mut after = None;
    loop {
        let page = store.events(EventQuery { after, limit: 16, ..EventQuery::default() }).await.expect("events");
        let found = DigestsSince::among(page.iter().map(|stored| (stored.place, &stored.event.properties)));
        after = page.last().map(|last| last.place);
        if found != DigestsSince::default() || after.is_none() {
            return found;
        }
    }
}

fn tasks_of<'a>(
    executions: &'a [Execution],
    folds: &'a HashMap<ExecutionId, ExecutionFold>,
) -> impl Fn(JobId) -> Vec<(&'a Execution, &'a ExecutionFold)> {
    let is_task = |execution: &Execution, job| execution.spec.task.as_ref().is_some_and(|task| task.job == job);
    move |job| executions.iter().filter(|execution| is_task(execution, job)).map(|execution| (execution, &folds[&execution.id])).collect()
}

fn compare_job<'a>(
    (job, digests): (Job, DigestsSince),
    events: &[StoredEvent],
    tasks: impl Fn(JobId) -> Vec<(&'a Execution, &'a ExecutionFold)>,
    nodes: &[Node],
) -> Comparison {
    let id = job.id;
    let mut check = JobCheck::new(job, digests);
    events.iter().for_each(|stored| check.event(stored.place, &stored.event));
    tasks(id).into_iter().for_each(|(execution, fold)| check.execution(execution, fold));
    nodes.iter().for_each(|node| check.node(node));
    nodes.iter().for_each(|node| check.parents(node));
    check.finish()
}

async fn events_of(store: &dyn TransactionalStore, entity: Entity) -> Vec<StoredEvent> {
    store.events(EventQuery { entity: Some(entity), limit: usize::MAX, ..EventQuery::default() }).await.expect("events")
}
