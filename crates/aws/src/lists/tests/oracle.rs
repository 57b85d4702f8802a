//! What is asked, answered by looking at every execution. Each is the in-memory reference's own definition; they come by id.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::Needs;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_model::view::PassOver;
use runvoy_ports::queue::{DeadQuery, QueueCounts};
use runvoy_ports::store::{ListQuery, OpenLease};

pub(super) fn list(all: &[Execution], query: &ListQuery) -> Vec<Execution> {
    let owned = |execution: &Execution, owner: &String| execution.created_by == *owner || execution.owned_by.contains(owner);
    let before = all.iter().rev().filter(|execution| query.after.is_none_or(|after| execution.id < after));
    let fits = before
        .filter(|execution| query.statuses.is_empty() || query.statuses.contains(&execution.status))
        .filter(|execution| query.owner.as_ref().is_none_or(|owner| owned(execution, owner)))
        .filter(|execution| query.created_by.as_ref().is_none_or(|user| execution.created_by == *user))
        .filter(|execution| query.lock.as_ref().is_none_or(|lock| execution.spec.lock.as_ref() == Some(lock)))
        .filter(|execution| query.queue.as_ref().is_none_or(|queue| execution.spec.queue == *queue))
        .filter(|execution| query.job.is_none_or(|job| execution.spec.task.as_ref().is_some_and(|task| task.job == job)))
        .filter(|execution| query.since.is_none_or(|since| execution.submitted_at >= since))
        .filter(|execution| query.until.is_none_or(|until| execution.submitted_at < until));
    fits.take(query.limit).cloned().collect()
}

pub(super) fn find(all: &[Execution], digits: &str, max: usize) -> Vec<ExecutionId> {
    let digits = digits.to_ascii_lowercase();
    let matches = |id: &ExecutionId| {
        let text = id.to_string();
        text.starts_with(&digits) || text.ends_with(&digits)
    };
    all.iter().map(|execution| execution.id).filter(matches).take(max).collect()
}

/// Those that can be leased, and when the next one can be.
pub(super) fn ready(
    all: &[Execution],
    queues: &[Name],
    serves: &[Needs],
    now: UnixMs,
    max: usize,
    pass: Option<&PassOver>,
) -> (Vec<Execution>, Option<UnixMs>) {
    let ready = all.iter().filter_map(|execution| Some((execution.ready_key()?, execution)));
    let mut mine: Vec<_> = ready.filter(|(key, _)| queues.contains(&key.queue) && serves.contains(&key.needs)).collect();
    let earliest = mine.iter().map(|(key, _)| key.ready_at).min();
    mine.retain(|(key, execution)| key.ready_at <= now && !pass.is_some_and(|pass| pass.passes(execution)));
    mine.sort_by_key(|(key, _)| key.place());
    (mine.into_iter().take(max).map(|(_, execution)| execution.clone()).collect(), earliest)
}

pub(super) fn open_leases(all: &[Execution]) -> Vec<OpenLease> {
    let open = |execution: &Execution| {
        let lease = execution.lease.clone()?;
        Some(OpenLease { execution: execution.id, status: execution.status, lease })
    };
    all.iter().filter_map(open).collect()
}

pub(super) fn waits_ended(all: &[Execution], at: UnixMs) -> Vec<ExecutionId> {
    let ended = |execution: &&Execution| matches!(execution.lock, LockClaim::Waiting { until } if until <= at);
    all.iter().filter(ended).map(|execution| execution.id).collect()
}

pub(super) fn queues(all: &[Execution]) -> Vec<QueueCounts> {
    let mut queues: BTreeMap<Name, QueueCounts> = BTreeMap::new();
    for execution in all {
        let name = &execution.spec.queue;
        let waits = execution.status == Status::Pending;
        let in_flight = is_active(execution.status);
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

pub(super) fn dead(all: &[Execution], query: &DeadQuery) -> Vec<Execution> {
    let place = |execution: &Execution| execution.dead_since().map(|since| (since, execution.id));
    let beyond = |execution: &Execution| match (query.after, query.oldest_first) {
        (None, _) => true,
        (after, true) => place(execution) > after,
        (after, false) => place(execution) < after,
    };
    let owned = |execution: &Execution, owner: &String| execution.created_by == *owner || execution.owned_by.contains(owner);
    let mut found: Vec<Execution> = all
        .iter()
        .filter(|execution| place(execution).is_some() && execution.spec.queue == query.queue && beyond(execution))
        .filter(|execution| query.until.is_none_or(|until| execution.dead_since() <= Some(until)))
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

/// Those that wait, those that run, and all.
pub(super) fn counts(all: &[Execution]) -> (u64, u64, u64) {
    let count = |wanted: fn(Status) -> bool| all.iter().filter(|execution| wanted(execution.status)).count() as u64;
    (count(|status| status == Status::Pending), count(is_active), count(|_| true))
}

fn is_active(status: Status) -> bool {
    matches!(status, Status::Starting | Status::Running | Status::Terminating)
}
