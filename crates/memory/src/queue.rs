//! What queues hold, found by looking at every execution.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};

/// Every queue that holds something, by name.
pub(crate) fn counts<'e>(executions: impl Iterator<Item = &'e Execution>) -> Vec<QueueCounts> {
    let mut queues: BTreeMap<Name, QueueCounts> = BTreeMap::new();
    for execution in executions {
        let name = &execution.spec.queue;
        let waits = execution.status == Status::Pending;
        let in_flight = matches!(execution.status, Status::Starting | Status::Running | Status::Terminating);
        if !waits && !in_flight && execution.dead_since().is_none() {
            continue;
        }
        let counts = queues.entry(name.clone()).or_insert_with(|| QueueCounts::empty(name.clone()));
        counts.depth += u64::from(waits);
        counts.in_flight += u64::from(in_flight);
        counts.dead += u64::from(execution.dead_since().is_some());
        if waits {
            let since = if matches!(execution.lock, LockClaim::Waiting { .. }) { execution.submitted_at } else { execution.ready_at };
            counts.oldest = Some(counts.oldest.map_or(since, |oldest| oldest.min(since)));
        }
    }
    queues.into_values().collect()
}

/// What waits, by user and queue.
pub(crate) fn backlogs<'e>(executions: impl Iterator<Item = &'e Execution>) -> Vec<Backlog> {
    let mut counts: BTreeMap<(&str, &Name), u64> = BTreeMap::new();
    for execution in executions.filter(|execution| execution.status == Status::Pending) {
        *counts.entry((&execution.created_by, &execution.spec.queue)).or_default() += 1;
    }
    counts.into_iter().map(|((user, queue), count)| Backlog { user: user.to_owned(), queue: queue.clone(), count }).collect()
}

/// A page of dead letters.
pub(crate) fn dead<'e>(executions: impl Iterator<Item = &'e Execution>, query: &DeadQuery) -> Vec<Execution> {
    let place = |execution: &Execution| execution.dead_since().map(|since| (since, execution.id));
    let beyond = |execution: &Execution| match (query.after, query.oldest_first) {
        (None, _) => true,
        (after, true) => place(execution) > after,
        (after, false) => place(execution) < after,
    };
    let in_time = |execution: &Execution| query.until.is_none_or(|until| execution.dead_since() <= Some(until));
    let owned = |execution: &Execution, owner: &String| execution.created_by == *owner || execution.owned_by.contains(owner);
    let mut found: Vec<Execution> = executions
        .filter(|execution| place(execution).is_some() && execution.spec.queue == query.queue && beyond(execution))
        .filter(|execution| in_time(execution))
        .filter(|execution| query.owner.as_ref().is_none_or(|owner| owned(execution, owner)))
        .cloned()
        .collect();
    if query.oldest_first {
        found.sort_by_key(place);
    } else {
        found.sort_by_key(|execution| Reverse(place(execution)));
    }
    found.truncate(query.limit);
    found
}
