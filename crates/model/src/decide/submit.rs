//! A new execution: its record, its lock or its place in the line, its first events, and, where a worker has a
//! free slot, its first lease.

use serde_json::json;

use super::gate::Gate;
use super::lease::{Grant, grant, start_attempt};
use super::{Decision, audit, properties, refuse};
use crate::chain::ChainHead;
use crate::change::Made;
use crate::command::{Answer, LockHeld, Refusal, Submit, Worker};
use crate::event::EventType;
use crate::execution::{Execution, LockClaim};
use crate::lock::{Holder, Lock};
use crate::status::Status;
use crate::step::Step;
use crate::view::{PassOver, View, Writes};

pub(super) fn submit<V: View>(view: &mut V, step: &Step, submit: &Submit) -> Decision<V::Error> {
    if let Some(key) = &submit.key
        && let Some((made, fingerprint)) = view.submitted(&key.user, &key.key)?
    {
        let Made::Execution(id) = made else { return refuse(Refusal::KeyReused(made)) };
        if fingerprint != key.fingerprint {
            return refuse(Refusal::KeyReused(made));
        }
        return match view.execution(id)? {
            Some(execution) => Ok((Writes::default(), Answer::Submitted { execution: Box::new(execution), repeated: true })),
            None => refuse(Refusal::NotFound),
        };
    }
    if view.execution(submit.id)?.is_some() {
        return refuse(Refusal::Exists(submit.id));
    }
    let mut writes = Writes::default();
    let mut execution = new_execution(step, submit);
    match claim_lock(view, step, &execution, &writes)? {
        Err(held) => return refuse(Refusal::LockHeld(Box::new(held))),
        Ok((claim, lock)) => {
            execution.lock = claim;
            writes.locks.extend(lock);
        }
    }
    audit(&mut writes, step, &execution);
    let pending = json!({"name": "run", "attempt": 1, "queue": execution.spec.queue});
    writes.event(step, execution.id, EventType::TaskPending, properties(&execution, pending));
    if let Some(to) = &submit.lease_to {
        let mut gate = Gate::default();
        if is_open(view, step, &mut gate, &execution, &to.worker)? {
            let permit = gate.enter(view, &execution)?;
            gate.write(&mut writes);
            let given = Grant { lease: to.lease, ttl_ms: to.ttl_ms, lost_after_ms: None, permit, account: None };
            grant(&mut execution, step, &to.worker, &given);
            start_attempt(&mut execution, step, &mut writes);
        }
    }
    writes.key = submit.key.clone().map(|key| (key, Made::Execution(execution.id)));
    let execution = writes.put(execution, step);
    Ok((writes, Answer::Submitted { execution, repeated: false }))
}

/// Whether a new execution may begin at once. Where places are few, it does not go before those who wait for one.
fn is_open<V: View>(view: &mut V, step: &Step, gate: &mut Gate, execution: &Execution, worker: &Worker) -> Result<bool, V::Error> {
    let can = execution.ready_key().is_some_and(|key| worker.serves.contains(&key.needs)) && execution.spec.fits(&worker.labels);
    if !can || gate.bar(view, execution)?.is_some() {
        return Ok(false);
    }
    let queue = &execution.spec.queue;
    if !gate.is_limited(view, queue)? {
        return Ok(true);
    }
    let mut pass = PassOver { labels: worker.labels.clone(), users: Vec::new() };
    gate.pass_users(&mut pass);
    Ok(view.ready(std::slice::from_ref(queue), &worker.serves, step.at, 1, &pass)?.is_empty())
}

pub(super) fn new_execution(step: &Step, submit: &Submit) -> Execution {
    Execution {
        id: submit.id,
        spec: submit.spec.clone(),
        created_by: submit.created_by.clone(),
        owned_by: vec![submit.created_by.clone()],
        created_by_request_id: step.request_id.clone(),
        modified_by_request_id: step.request_id.clone(),
        submitted_at: step.at,
        status: Status::Pending,
        attempt: 0,
        ready_at: step.at,
        started_at: None,
        attempt_started_at: None,
        completed_at: None,
        exit_code: None,
        end_reason: None,
        lease: None,
        ran_on: None,
        kill: None,
        lock: LockClaim::None,
        log_end: None,
        cost_micro_usd: None,
        dead: false,
        error_category: None,
        server_deaths: 0,
        redriven: None,
        chain: ChainHead::default(),
        version: 0,
    }
}

pub(super) type Claim = Result<(LockClaim, Option<Lock>), LockHeld>;

/// What this step wrote of the lock before counts: several executions may begin in one.
pub(super) fn claim_lock<V: View>(view: &mut V, step: &Step, execution: &Execution, writes: &Writes) -> Result<Claim, V::Error> {
    let Some(name) = &execution.spec.lock else { return Ok(Ok((LockClaim::None, None))) };
    let written = writes.locks.iter().rev().find(|lock| lock.name == *name).cloned();
    let mut lock = match written {
        Some(lock) => lock,
        None => view.lock(name)?.unwrap_or_else(|| Lock::free(name.clone())),
    };
    if let Some(holder) = lock.holder {
        return Ok(match execution.spec.lock_wait_ms {
            Some(wait_ms) => {
                let until = step.at.plus_ms(i64::try_from(wait_ms).unwrap_or(i64::MAX));
                Ok((LockClaim::Waiting { until }, None))
            }
            None => Err(LockHeld { name: name.clone(), holder }),
        });
    }
    lock.fence += 1;
    lock.holder = Some(Holder { execution: execution.id, held_by: execution.created_by.clone(), since: step.at });
    Ok(Ok((LockClaim::Held { fence: lock.fence }, Some(lock))))
}
