//! Locks change hands here and nowhere else: whoever ends, or is made to let go, hands its lock to the first in line.

use super::end::{Facts, Verdict, finish, stopped};
use super::{Decision, audit, refuse};
use crate::command::{Answer, Outcome, Refusal};
use crate::execution::{Execution, KillRequest, LockClaim};
use crate::id::ExecutionId;
use crate::lock::{Holder, Lock};
use crate::name::Name;
use crate::status::{EXIT_PLATFORM, EndCode, EndReason, Status};
use crate::step::Step;
use crate::view::{View, Writes};

/// Ends an execution's claim. If it held the lock, the first in line holds it now.
pub(super) fn release<V: View>(view: &mut V, step: &Step, execution: &mut Execution, writes: &mut Writes) -> Result<(), V::Error> {
    let claim = std::mem::take(&mut execution.lock);
    let (LockClaim::Held { .. }, Some(name)) = (claim, &execution.spec.lock) else { return Ok(()) };
    // An admin may have given the lock away since: only the holder's release counts.
    if let Some(lock) = view.lock(name)?.filter(|lock| lock.is_held_by(execution.id)) {
        hand_on(view, step, lock, writes)?;
    }
    Ok(())
}

fn hand_on<V: View>(view: &mut V, step: &Step, mut lock: Lock, writes: &mut Writes) -> Result<Lock, V::Error> {
    lock.holder = None;
    let next = match view.first_waiter(&lock.name)? {
        Some(id) => view.execution(id)?,
        None => None,
    };
    if let Some(mut next) = next {
        lock.fence += 1;
        lock.holder = Some(Holder { execution: next.id, held_by: next.created_by.clone(), since: step.at });
        next.lock = LockClaim::Held { fence: lock.fence };
        writes.put(next, step);
    }
    writes.locks.push(lock.clone());
    Ok(lock)
}

/// Takes a lock from its holder. A holder that runs goes on without it, for only its worker can end it; one that has not started
/// ends here, for it must never run without the lock it asked for.
pub(super) fn release_by_force<V: View>(view: &mut V, step: &Step, name: &Name) -> Decision<V::Error> {
    let held = view.lock(name)?.and_then(|lock| lock.holder.clone().map(|holder| (lock, holder)));
    let Some((lock, holder)) = held else { return refuse(Refusal::NotFound) };
    let mut writes = Writes::default();
    match view.execution(holder.execution)? {
        Some(execution) if matches!(execution.status, Status::Pending | Status::Starting) => {
            let request = KillRequest { by: step.actor.name(), at: step.at, force: true };
            let verdict = stopped(&request, &format!("lock {name} was taken from it before it had started"));
            let ended = Execution { kill: Some(request), ..execution.clone() };
            let (mut writes, _) = finish(view, step, ended, &Outcome::WorkerStopped, verdict, Facts::default())?;
            audit(&mut writes, step, &execution);
            // Others of its job may have taken locks of their own in the same step.
            let lock = writes.locks.iter().find(|lock| lock.name == *name).expect("whoever holds a lock hands it on as it ends").clone();
            return Ok((writes, Answer::Lock(lock)));
        }
        Some(mut execution) => {
            execution.lock = LockClaim::None;
            audit(&mut writes, step, &execution);
            writes.put(execution, step);
        }
        None => {}
    }
    let lock = hand_on(view, step, lock, &mut writes)?;
    Ok((writes, Answer::Lock(lock)))
}

/// Hands on a lock that somebody holds who has ended, or is not there. Whoever else holds it by now keeps it: between the look that found the
/// holder and this step the lock may have changed hands.
pub(super) fn free<V: View>(view: &mut V, step: &Step, name: &Name, holder: ExecutionId) -> Decision<V::Error> {
    let Some(lock) = view.lock(name)?.filter(|lock| lock.is_held_by(holder)) else { return Ok((Writes::default(), Answer::Unchanged)) };
    let mut writes = Writes::default();
    match view.execution(holder)? {
        Some(execution) if !execution.status.is_terminal() => return Ok((Writes::default(), Answer::Unchanged)),
        Some(mut execution) if execution.lock != LockClaim::None => {
            execution.lock = LockClaim::None;
            writes.put(execution, step);
        }
        Some(_) | None => {}
    }
    let lock = hand_on(view, step, lock, &mut writes)?;
    Ok((writes, Answer::Lock(lock)))
}

pub(super) fn expire_wait<V: View>(view: &mut V, step: &Step, id: ExecutionId) -> Decision<V::Error> {
    let Some(execution) = view.execution(id)? else { return refuse(Refusal::NotFound) };
    match execution.lock {
        LockClaim::Waiting { until } if until <= step.at && !execution.status.is_terminal() => {}
        _ => return Ok((Writes::default(), Answer::Unchanged)),
    }
    let waited_s = step.at.ms_since(execution.submitted_at) / 1000;
    let lock = execution.spec.lock.as_ref().map_or("", Name::as_str);
    let message = format!("lock {lock} was not free within {waited_s} s");
    let verdict = Verdict {
        status: Status::Failed,
        exit_code: EXIT_PLATFORM,
        reason: EndReason { code: EndCode::StartFailed, message: message.clone() },
        category: None,
    };
    let (writes, answer) = finish(view, step, execution, &Outcome::StartFailed { message, exit_code: None }, verdict, Facts::default())?;
    Ok(match answer {
        Answer::Ended(execution) => (writes, Answer::Changed(execution)),
        other => (writes, other),
    })
}
