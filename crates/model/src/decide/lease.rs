//! The life of a lease: reserve, begin, extend, hand back. Every step of it is fenced by execution, attempt and lease id.

use serde_json::{Value, json};

use super::end::task_name;
use super::{Decision, job, properties, refuse};
use crate::bound;
use crate::command::{Answer, Extend, Extended, Fence, LeaseRequest, Refusal, Worker};
use crate::event::EventType;
use crate::execution::{Execution, Lease};
use crate::id::{JobId, LeaseId};
use crate::status::Status;
use crate::step::Step;
use crate::time::UnixMs;
use crate::view::{View, Writes};

/// Heartbeat events are written no more often than this.
const HEARTBEAT_EVERY_MS: i64 = 60_000;
/// So many in line are looked at for those that may run.
const MOST_LOOKED_AT: usize = 1_024;
/// Longer than any backoff: who seems to wait longer than this waits for a clock that was set back.
pub(super) const BEYOND_BACKOFF_MS: i64 = 10 * 60 * 1_000;

pub(super) fn lease<V: View>(view: &mut V, step: &Step, request: &LeaseRequest) -> Decision<V::Error> {
    let mut writes = Writes::default();
    let mut leased = Vec::new();
    let most = request.leases.len().min(view.limits().leases);
    let ready = ready(view, step, request, most)?;
    for (mut execution, lease) in ready.into_iter().zip(&request.leases) {
        grant(&mut execution, step, *lease, &request.worker, request.ttl_ms);
        if request.begin {
            start_attempt(&mut execution, step, &mut writes);
        }
        leased.push(*writes.put(execution, step));
    }
    Ok((writes, Answer::Leased(leased)))
}

/// The executions to lease, first in line first. What a clock that was set back has left in the future is not kept waiting for that
/// clock: an execution that was never tried has nothing to wait for, and no backoff is longer than the longest.
fn ready<V: View>(view: &mut V, step: &Step, request: &LeaseRequest, max: usize) -> Result<Vec<Execution>, V::Error> {
    let mut ready = in_line(view, step, request, max)?;
    if ready.len() < max {
        let beyond_backoff = step.at.plus_ms(BEYOND_BACKOFF_MS);
        let stranded =
            |execution: &Execution| execution.ready_at > step.at && (execution.attempt == 0 || execution.ready_at > beyond_backoff);
        for id in view.ready(&request.queues, &request.worker.serves, UnixMs(i64::MAX), max)? {
            let execution = view.execution(id)?.filter(|execution| execution.ready_key().is_some() && stranded(execution));
            if let Some(execution) = execution
                && !job::is_over(view, &execution)?
            {
                ready.push(execution);
            }
        }
    }
    Ok(ready)
}

/// Those whose time has come. What belongs to a job of which nothing runs again is passed by: an agent ends it, and until then it keeps nobody waiting.
fn in_line<V: View>(view: &mut V, step: &Step, request: &LeaseRequest, max: usize) -> Result<Vec<Execution>, V::Error> {
    let mut look_at = max;
    loop {
        let ids = view.ready(&request.queues, &request.worker.serves, step.at, look_at)?;
        let (found, mut over) = (ids.len(), Vec::new());
        let mut ready = Vec::with_capacity(max.min(64));
        for id in ids {
            let Some(execution) = view.execution(id)?.filter(|execution| execution.ready_key().is_some()) else { continue };
            if !is_over(view, &execution, &mut over)? && ready.len() < max {
                ready.push(execution);
            }
        }
        if ready.len() == max || found < look_at || look_at >= MOST_LOOKED_AT {
            return Ok(ready);
        }
        look_at = (4 * look_at).min(MOST_LOOKED_AT);
    }
}

/// Whether an execution is a task of a job of which nothing runs again; each job is looked at once.
fn is_over<V: View>(view: &mut V, execution: &Execution, seen: &mut Vec<(JobId, bool)>) -> Result<bool, V::Error> {
    let Some(task) = &execution.spec.task else { return Ok(false) };
    if let Some((_, is_over)) = seen.iter().find(|(job, _)| *job == task.job) {
        return Ok(*is_over);
    }
    let is_over = job::is_over(view, execution)?;
    seen.push((task.job, is_over));
    Ok(is_over)
}

pub(super) fn grant(execution: &mut Execution, step: &Step, lease: LeaseId, worker: &Worker, ttl_ms: u64) {
    execution.status = Status::Starting;
    execution.ran_on = Some(worker.ran_on());
    execution.lease = Some(Lease {
        id: lease,
        attempt: execution.attempt + 1,
        worker: worker.id,
        in_process: worker.in_process,
        ttl_ms,
        deadline: deadline(step, ttl_ms),
        begun: false,
        extensions: 0,
        heartbeat_at: None,
        heartbeats: 0,
    });
}

pub(super) fn start_attempt(execution: &mut Execution, step: &Step, writes: &mut Writes) {
    execution.status = Status::Running;
    execution.attempt += 1;
    execution.started_at.get_or_insert(step.at);
    execution.attempt_started_at = Some(step.at);
    let lease = execution.lease.as_mut().expect("an attempt is begun under its lease");
    lease.begun = true;
    let started = json!({
        "attempt": lease.attempt,
        "effectiveUntil": lease.deadline.seconds(),
        "startedAt": step.at,
        "workerId": lease.worker,
    });
    writes.event(step, execution.id, EventType::TaskProcessingStarted, properties(execution, started));
}

fn deadline(step: &Step, ttl_ms: u64) -> UnixMs {
    step.at.plus_ms(i64::try_from(ttl_ms).unwrap_or(i64::MAX))
}

/// The execution under a fence, if the fence still holds.
pub(super) enum Fenced {
    Valid(Box<Execution>, Lease),
    Lapsed(Box<Execution>),
    Unknown,
}

pub(super) fn fenced<V: View>(view: &mut V, fence: Fence) -> Result<Fenced, V::Error> {
    let Some(execution) = view.execution(fence.execution)? else { return Ok(Fenced::Unknown) };
    let lease = execution.lease.clone().filter(|lease| lease.id == fence.lease && lease.attempt == fence.attempt);
    Ok(match lease {
        Some(lease) if !execution.status.is_terminal() => Fenced::Valid(Box::new(execution), lease),
        _ => Fenced::Lapsed(Box::new(execution)),
    })
}

/// The word for whoever comes with a fence that no longer holds.
pub(super) fn too_late(execution: &Execution) -> Refusal {
    if execution.status.is_terminal() { Refusal::Ended(execution.status) } else { Refusal::Lapsed }
}

pub(super) fn begin<V: View>(view: &mut V, step: &Step, fence: Fence) -> Decision<V::Error> {
    match fenced(view, fence)? {
        Fenced::Unknown => refuse(Refusal::NotFound),
        Fenced::Lapsed(execution) => refuse(too_late(&execution)),
        Fenced::Valid(execution, lease) if lease.begun => Ok((Writes::default(), Answer::Begun(execution))),
        Fenced::Valid(execution, _) if job::is_over(view, &execution)? => refuse(Refusal::Lapsed),
        Fenced::Valid(mut execution, _) => {
            let mut writes = Writes::default();
            start_attempt(&mut execution, step, &mut writes);
            let execution = writes.put(*execution, step);
            Ok((writes, Answer::Begun(execution)))
        }
    }
}

pub(super) fn extend<V: View>(view: &mut V, step: &Step, extend: &Extend) -> Decision<V::Error> {
    let mut writes = Writes::default();
    match fenced(view, extend.fence)? {
        Fenced::Unknown => refuse(Refusal::NotFound),
        Fenced::Lapsed(execution) => {
            let refusal = too_late(&execution);
            let late = json!({"attempt": extend.fence.attempt, "late": true});
            writes.event(step, execution.id, EventType::TaskHeartbeat, properties(&execution, late));
            writes.put(*execution, step);
            Ok((writes, Answer::Refused(refusal)))
        }
        Fenced::Valid(mut execution, mut lease) => {
            lease.deadline = deadline(step, extend.ttl_ms);
            lease.ttl_ms = extend.ttl_ms;
            lease.extensions += 1;
            // A clock that was set back must not silence the heartbeat until it has caught up.
            let due = lease.heartbeat_at.is_none_or(|at| step.at < at || step.at.ms_since(at) >= HEARTBEAT_EVERY_MS);
            if lease.begun && due {
                lease.heartbeat_at = Some(step.at);
                lease.heartbeats += 1;
                writes.event(step, execution.id, EventType::TaskHeartbeat, heartbeat(&execution, &lease, step, extend));
            }
            execution.lease = Some(lease);
            let answer = Extended { ttl_ms: extend.ttl_ms, kill: execution.kill.clone() };
            writes.put(*execution, step);
            Ok((writes, Answer::Extended(answer)))
        }
    }
}

fn heartbeat(execution: &Execution, lease: &Lease, step: &Step, extend: &Extend) -> Value {
    let mut more = json!({
        "attempt": lease.attempt,
        "effectiveUntil": lease.deadline.seconds(),
        "heartbeatNumber": lease.heartbeats,
        "elapsedMs": execution.attempt_started_at.map_or(0, |at| step.at.ms_since(at)),
        "workerId": lease.worker,
    });
    if let Some(pid) = extend.process_id {
        more["processId"] = pid.into();
    }
    if let Some(rss) = extend.rss_bytes {
        more["memoryUsage"] = json!({"rss": rss});
    }
    if let Some(activity) = last_activity(step, extend) {
        more["lastActivity"] = activity;
    }
    properties(execution, more)
}

/// What the command says it does, else when it last wrote something.
fn last_activity(step: &Step, extend: &Extend) -> Option<Value> {
    // Nothing could read again what is nested deeper.
    match extend.activity.as_ref().filter(|said| bound::depth(said) <= bound::MOST_DEPTH) {
        Some(Value::Object(said)) => {
            let mut said = said.clone();
            said.entry("timestamp").or_insert_with(|| step.at.seconds().into());
            Some(Value::Object(said))
        }
        Some(said) if !said.is_null() => Some(json!({"type": "said", "said": said, "timestamp": step.at.seconds()})),
        _ => extend.last_output_at.map(|at| json!({"type": "output", "timestamp": at.seconds()})),
    }
}

pub(super) fn give_back<V: View>(view: &mut V, step: &Step, fence: Fence) -> Decision<V::Error> {
    match fenced(view, fence)? {
        Fenced::Unknown => refuse(Refusal::NotFound),
        Fenced::Valid(execution, lease) if !lease.begun => Ok(return_to_line(step, *execution)),
        Fenced::Valid(execution, _) | Fenced::Lapsed(execution) => refuse(too_late(&execution)),
    }
}

/// An attempt that never began is not counted: the execution goes back to its place.
pub(super) fn return_to_line(step: &Step, mut execution: Execution) -> (Writes, Answer) {
    let mut writes = Writes::default();
    execution.status = Status::Pending;
    execution.lease = None;
    execution.ran_on = None;
    let again = json!({"name": task_name(&execution), "attempt": execution.attempt + 1, "queue": execution.spec.queue, "handedBack": true});
    writes.event(step, execution.id, EventType::TaskPending, properties(&execution, again));
    let execution = writes.put(execution, step);
    (writes, Answer::Changed(execution))
}
