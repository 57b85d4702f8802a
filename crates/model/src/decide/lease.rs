//! The life of a lease: reserve, begin, extend, hand back. Every step of it is fenced by execution, attempt and lease id.

use serde_json::{Value, json};

use super::end::task_name;
use super::gate::Gate;
use super::{Decision, gate, job, properties, refuse};
use crate::bound;
use crate::command::{Answer, Extend, Extended, Fence, LeaseRequest, Refusal, Worker};
use crate::event::EventType;
use crate::execution::{Execution, Lease};
use crate::id::{ExecutionId, JobId, LeaseId};
use crate::name::Name;
use crate::status::Status;
use crate::step::Step;
use crate::time::UnixMs;
use crate::view::{PassOver, View, Writes};
use crate::worker::account_of;

/// Heartbeat events are written no more often than this.
const HEARTBEAT_EVERY_MS: i64 = 60_000;
/// Late ones are kept while an execution has changed less often than this and than extends alone would have changed it, until a day after its end: whoever has
/// lost a lease may go on asking for ever.
const LATE_ROOM: u64 = 100;
const CHANGES_A_MINUTE: u64 = 7;
const LATE_FOR_MS: i64 = 24 * 3600 * 1000;
/// So many in line are looked at for those that may run.
const MOST_LOOKED_AT: usize = 1_024;
/// Longer than any backoff: who seems to wait longer than this waits for a clock that was set back.
pub(super) const BEYOND_BACKOFF_MS: i64 = 10 * 60 * 1_000;

pub(super) fn lease<V: View>(view: &mut V, step: &Step, request: &LeaseRequest) -> Decision<V::Error> {
    let mut writes = Writes::default();
    let mut leased = Vec::new();
    let most = request.leases.len().min(view.limits().leases);
    let mut choice = Choice::new(step, request, most);
    choice.in_line(view)?;
    choice.stranded(view)?;
    choice.gate.write(&mut writes);
    for ((mut execution, permit), lease) in choice.taken.into_iter().zip(&request.leases) {
        let (ttl_ms, lost_after_ms) = (request.ttl_ms, request.lost_after_ms);
        let given = Grant { lease: *lease, ttl_ms, lost_after_ms, permit, account: account(step) };
        grant(&mut execution, step, &request.worker, &given);
        if request.begin {
            start_attempt(&mut execution, step, &mut writes);
            if let Some(lease) = &mut execution.lease {
                lease.at_once = !lease.in_process;
            }
        }
        leased.push(*writes.put(execution, step));
    }
    Ok((writes, Answer::Leased(leased)))
}

/// What a worker is given of what stands in line. What it cannot have keeps nobody waiting: a queue that hands nothing out is not looked at again, and
/// users who have their share and labels that the worker lacks are passed over by the store itself, as far as it looks.
struct Choice<'r> {
    step: &'r Step,
    request: &'r LeaseRequest,
    most: usize,
    gate: Gate,
    queues: Vec<Name>,
    pass: PassOver,
    /// Jobs that were looked at, and whether nothing of them runs again.
    jobs: Vec<(JobId, bool)>,
    /// In order, each with whether it holds a permit.
    taken: Vec<(Execution, bool)>,
}

impl<'r> Choice<'r> {
    fn new(step: &'r Step, request: &'r LeaseRequest, most: usize) -> Self {
        let pass = PassOver { labels: request.worker.labels.clone(), users: Vec::new() };
        let queues = request.queues.clone();
        Self { step, request, most, gate: Gate::default(), queues, pass, jobs: Vec::new(), taken: Vec::new() }
    }

    fn is_full(&self) -> bool {
        self.taken.len() >= self.most
    }

    fn look<V: View>(&self, view: &mut V, now: UnixMs, max: usize) -> Result<Vec<ExecutionId>, V::Error> {
        view.ready(&self.queues, &self.request.worker.serves, now, max, &self.pass)
    }

    /// Those whose time has come. What belongs to a job of which nothing runs again is passed by: an agent ends it, and until then it keeps nobody waiting.
    fn in_line<V: View>(&mut self, view: &mut V) -> Result<(), V::Error> {
        let mut look_at = self.most;
        while !self.is_full() {
            let ids = self.look(view, self.step.at, look_at)?;
            let is_all = ids.len() < look_at;
            for id in ids {
                self.consider(view, id, |_| true)?;
            }
            if is_all {
                break;
            }
            // Who is barred is out of the way in the next look, so that it need not look further.
            if !self.narrow() {
                if look_at >= MOST_LOOKED_AT {
                    break;
                }
                look_at = (4 * look_at).min(MOST_LOOKED_AT);
            }
        }
        Ok(())
    }

    /// What a clock that was set back has left in the future is not kept waiting for that clock: an execution that was never tried has nothing to wait
    /// for, and no backoff is longer than the longest.
    fn stranded<V: View>(&mut self, view: &mut V) -> Result<(), V::Error> {
        if self.is_full() {
            return Ok(());
        }
        self.narrow();
        let (now, beyond_backoff) = (self.step.at, self.step.at.plus_ms(BEYOND_BACKOFF_MS));
        for id in self.look(view, UnixMs(i64::MAX), self.most)? {
            self.consider(view, id, |execution| {
                execution.ready_at > now && (execution.attempt == 0 || execution.ready_at > beyond_backoff)
            })?;
        }
        Ok(())
    }

    /// Takes an execution if it can be had and is asked for.
    fn consider<V: View>(&mut self, view: &mut V, id: ExecutionId, is_asked: impl Fn(&Execution) -> bool) -> Result<(), V::Error> {
        if self.is_full() || self.taken.iter().any(|(taken, _)| taken.id == id) {
            return Ok(());
        }
        let Some(execution) = view.execution(id)?.filter(|execution| execution.ready_key().is_some() && is_asked(execution)) else {
            return Ok(());
        };
        // A store may have looked before somebody else took the last place.
        if self.pass.passes(&execution) || self.gate.bar(view, &execution)?.is_some() || is_over(view, &execution, &mut self.jobs)? {
            return Ok(());
        }
        let permit = self.gate.enter(view, &execution)?;
        self.taken.push((execution, permit));
        Ok(())
    }

    /// Leaves out what turned out to be barred; whether there is less to look at now.
    fn narrow(&mut self) -> bool {
        let queues = self.queues.len();
        let gate = &self.gate;
        self.queues.retain(|queue| !gate.is_closed(queue));
        self.gate.pass_users(&mut self.pass) || self.queues.len() < queues
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

/// A lease as it is given.
pub(super) struct Grant {
    pub lease: LeaseId,
    pub ttl_ms: u64,
    pub lost_after_ms: Option<u64>,
    pub permit: bool,
    pub account: Option<Name>,
}

/// The account whose key whoever asks for a lease has shown.
fn account(step: &Step) -> Option<Name> {
    Name::new(account_of(&step.authority.as_ref()?.email)?).ok()
}

pub(super) fn grant(execution: &mut Execution, step: &Step, worker: &Worker, given: &Grant) {
    execution.status = Status::Starting;
    execution.ran_on = Some(worker.ran_on(execution.spec.needs()));
    let attempt = execution.attempt + 1;
    // Nobody waits for a worker that may come back, but where something depends on knowing: a lock, or an attempt that could begin elsewhere.
    let is_last = execution.spec.lock.is_none() && attempt > execution.spec.attempts_after_loss();
    execution.lease = Some(Lease {
        id: given.lease,
        attempt,
        worker: worker.id,
        in_process: worker.in_process,
        ttl_ms: given.ttl_ms,
        deadline: deadline(step, given.ttl_ms),
        begun: false,
        at_once: false,
        extensions: 0,
        heartbeat_at: None,
        heartbeats: 0,
        permit: given.permit,
        account: given.account.clone(),
        lost_after_ms: given.lost_after_ms.filter(|_| is_last),
        preparing: None,
    });
}

pub(super) fn start_attempt(execution: &mut Execution, step: &Step, writes: &mut Writes) {
    execution.status = Status::Running;
    execution.attempt += 1;
    execution.started_at.get_or_insert(step.at);
    execution.attempt_started_at = Some(step.at);
    let lease = execution.lease.as_mut().expect("an attempt is begun under its lease");
    lease.begun = true;
    // Its worker counts from when it read the offer, which is later than the grant: whoever watches must not be earlier.
    lease.extensions += 1;
    lease.deadline = deadline(step, lease.ttl_ms);
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

/// A worker that begins what it was sent as begun has heard of it.
pub(super) fn begin<V: View>(view: &mut V, step: &Step, fence: Fence, at_once: bool) -> Decision<V::Error> {
    match fenced(view, fence)? {
        Fenced::Unknown => refuse(Refusal::NotFound),
        Fenced::Lapsed(execution) => refuse(too_late(&execution)),
        Fenced::Valid(execution, lease) if lease.begun && (at_once || !lease.at_once) => Ok((Writes::default(), Answer::Begun(execution))),
        Fenced::Valid(execution, _) if job::is_over(view, &execution)? => refuse(Refusal::Lapsed),
        Fenced::Valid(mut execution, lease) => {
            let mut writes = Writes::default();
            if !lease.begun {
                start_attempt(&mut execution, step, &mut writes);
            }
            if let Some(lease) = &mut execution.lease {
                lease.at_once = at_once;
            }
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
            if !keeps_late(&execution, step.at) {
                return refuse(refusal);
            }
            let late = json!({"attempt": extend.fence.attempt, "late": true});
            writes.event(step, execution.id, EventType::TaskHeartbeat, properties(&execution, late));
            writes.put(*execution, step);
            Ok((writes, Answer::Refused(refusal)))
        }
        Fenced::Valid(mut execution, mut lease) => {
            lease.deadline = deadline(step, extend.ttl_ms);
            lease.ttl_ms = extend.ttl_ms;
            lease.extensions += 1;
            lease.preparing = extend.preparing.as_deref().map(bound::clipped);
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

/// Whether there is room for one more late heartbeat.
fn keeps_late(execution: &Execution, now: UnixMs) -> bool {
    let until = execution.completed_at.map_or(now, |ended| now.min(ended.plus_ms(LATE_FOR_MS)));
    let minutes = until.ms_since(execution.submitted_at) / HEARTBEAT_EVERY_MS;
    execution.version < LATE_ROOM.saturating_add(minutes.unsigned_abs().saturating_mul(CHANGES_A_MINUTE))
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
        Fenced::Valid(execution, lease) if !lease.begun => return_to_line(view, step, *execution),
        Fenced::Valid(execution, _) | Fenced::Lapsed(execution) => refuse(too_late(&execution)),
    }
}

/// An attempt that was begun without a word of its worker, who was never told or wants none of it, is as if it had not begun: nobody runs
/// it. Whoever extends does. What was killed meanwhile, or has lost its lock, ends otherwise.
pub(super) fn unsend<V: View>(view: &mut V, step: &Step, fence: Fence) -> Decision<V::Error> {
    match fenced(view, fence)? {
        Fenced::Unknown => refuse(Refusal::NotFound),
        Fenced::Valid(mut execution, lease)
            if lease.at_once
                && lease.extensions == 1
                && execution.status == Status::Running
                && (execution.spec.lock.is_none() || !execution.lock.is_none()) =>
        {
            execution.attempt -= 1;
            execution.attempt_started_at = None;
            execution.started_at = execution.started_at.filter(|_| execution.attempt > 0);
            return_to_line(view, step, *execution)
        }
        Fenced::Valid(execution, _) | Fenced::Lapsed(execution) => refuse(too_late(&execution)),
    }
}

/// An attempt that never began is not counted: the execution goes back to its place.
pub(super) fn return_to_line<V: View>(view: &mut V, step: &Step, mut execution: Execution) -> Decision<V::Error> {
    let mut writes = Writes::default();
    execution.status = Status::Pending;
    gate::end_lease(view, &mut execution, &mut writes)?;
    execution.ran_on = None;
    let again = json!({"name": task_name(&execution), "attempt": execution.attempt + 1, "queue": execution.spec.queue, "handedBack": true});
    writes.event(step, execution.id, EventType::TaskPending, properties(&execution, again));
    let execution = writes.put(execution, step);
    Ok((writes, Answer::Changed(execution)))
}
