//! Every decision of the state machine, as pure functions from a [`View`] and a [`Command`] to [`Writes`] and an [`Answer`].
//!
//! All adapters ask the same function, so that they can differ only in how they keep things. What holds of it:
//! a terminal status never changes; at most one execution holds a lock and its fence only rises; whoever ends gives its lock to the
//! first that waits, in the same step; what comes from a lapsed lease is kept as a late event and changes nothing else.

mod authority;
mod end;
mod gate;
mod identity;
mod incident;
mod job;
mod kill;
mod lease;
mod lock;
mod redrive;
mod registry;
mod submit;
mod worker;

use serde_json::{Map, Value, json};

use crate::change::Made;
use crate::command::{Answer, Command, Receipt, Refusal, SubmitKey};
use crate::event::EventType;
use crate::execution::Execution;
use crate::id::ExecutionId;
use crate::step::Step;
use crate::time::UnixMs;
use crate::view::{View, Writes};

/// What a decision comes to.
pub type Decision<E> = Result<(Writes, Answer), E>;

/// Decides one step. The caller seals the writes ([`Writes::seal`]) and applies all of them, or none.
pub fn decide<V: View>(view: &mut V, step: &Step, command: &Command) -> Decision<V::Error> {
    if let Some(refusal) = authority::lost(view, step, command)? {
        return refuse(refusal);
    }
    match command {
        Command::Submit(submit) => submit::submit(view, step, submit),
        Command::Lease(request) => lease::lease(view, step, request),
        Command::Begin(fence) => lease::begin(view, step, *fence, false),
        Command::Send(fence) => lease::begin(view, step, *fence, true),
        Command::Extend(extend) => lease::extend(view, step, extend),
        Command::GiveBack(fence) => lease::give_back(view, step, *fence),
        Command::Unsend(fence) => lease::unsend(view, step, *fence),
        Command::EndAttempt(ended) => end::end_attempt(view, step, ended),
        Command::Reap(reap) => end::reap(view, step, reap),
        Command::Kill(kill) => kill::kill(view, step, kill),
        Command::ConfirmKill(id, cost_micro_usd) => kill::confirm(view, step, *id, *cost_micro_usd),
        Command::ExpireWait(id) => lock::expire_wait(view, step, *id),
        Command::GiveUp(id, why) => end::give_up(view, step, *id, why),
        Command::ReleaseLock(name) => lock::release_by_force(view, step, name),
        Command::StageTasks(stage) => job::stage(view, step, stage),
        Command::OpenJob(open) => job::open(view, step, open),
        Command::OpenTasks(open) => job::open_tasks(view, step, open),
        Command::AdvanceJob(id) => job::advance(view, step, *id),
        Command::ResumeJob(id, key) => job::resume(view, step, *id, key.as_ref(), &[]),
        Command::ReviseJob(revise) => job::resume(view, step, revise.job, revise.key.as_ref(), &revise.tasks),
        Command::CancelJob(id) => job::cancel(view, step, *id),
        Command::ForgetStaged(id) => job::forget_staged(view, *id),
        Command::Redrive(redrive) => redrive::redrive(view, step, redrive),
        Command::FreeLock(name, holder) => lock::free(view, step, name, *holder),
        Command::FreePermit(queue, holder) => gate::free(view, queue, *holder),
        Command::NoteLink(id, until, key) => note_link(view, step, *id, *until, key.as_ref()),
        Command::Change(change, key) => registry::change(view, step, change, key.as_ref()),
    }
}

/// Answers a step that was applied before.
pub fn replay<V: View>(view: &mut V, receipt: &Receipt) -> Result<Answer, V::Error> {
    let found = |execution: Option<Execution>, answer: fn(Box<Execution>) -> Answer| {
        execution.map_or(Answer::Refused(Refusal::NotFound), |execution| answer(Box::new(execution)))
    };
    Ok(match receipt {
        Receipt::Submitted(id) => found(view.execution(*id)?, |execution| Answer::Submitted { execution, repeated: true }),
        Receipt::Ended(id) => found(view.execution(*id)?, Answer::Ended),
        Receipt::Changed(id) => found(view.execution(*id)?, Answer::Changed),
        Receipt::Leased(leases) => {
            let mut executions = Vec::with_capacity(leases.len());
            for (id, lease) in leases {
                let execution = view.execution(*id)?;
                executions.extend(execution.filter(|execution| execution.lease.as_ref().is_some_and(|own| own.id == *lease)));
            }
            Answer::Leased(executions)
        }
        Receipt::Lock(name) => match view.lock(name)? {
            Some(lock) => Answer::Lock(lock),
            None => Answer::Refused(Refusal::NotFound),
        },
        Receipt::Job(id) => match view.job(*id)? {
            Some(job) => Answer::Job { job: Box::new(job), repeated: true },
            None => Answer::Refused(Refusal::NotFound),
        },
        Receipt::Redriven(letters) => Answer::Redriven { letters: letters.clone(), repeated: true },
        Receipt::Record(kind, name) => match view.record(*kind, name)? {
            Some(record) => Answer::Record { record: Box::new(record), repeated: true },
            None => Answer::Refused(Refusal::NotFound),
        },
        Receipt::Late(id) => {
            let execution = view.execution(*id)?;
            Answer::Refused(execution.map_or(Refusal::NotFound, |execution| lease::too_late(&execution)))
        }
    })
}

fn refuse<E>(refusal: Refusal) -> Decision<E> {
    Ok((Writes::default(), Answer::Refused(refusal)))
}

/// The properties that every event of an execution has, and more.
fn properties(execution: &Execution, more: Value) -> Value {
    let mut map = Map::new();
    map.insert("requestId".into(), Value::String(execution.id.to_string()));
    if let Some(task) = &execution.spec.task {
        map.insert("jobId".into(), Value::String(task.job.to_string()));
        map.insert("taskId".into(), Value::String(task.task.to_string()));
    }
    if let Value::Object(more) = more {
        map.extend(more);
    }
    Value::Object(map)
}

/// Leaves a mark of the link, and changes nothing else. A link is what its time and its key make it, so that the key for it keeps the time.
fn note_link<V: View>(view: &mut V, step: &Step, id: ExecutionId, until: UnixMs, key: Option<&SubmitKey>) -> Decision<V::Error> {
    let Some(execution) = view.execution(id)? else { return refuse(Refusal::NotFound) };
    if let Some(key) = key
        && let Some((made, fingerprint)) = view.submitted(&key.user, &key.key)?
    {
        let is_repeat = fingerprint == key.fingerprint && matches!(made, Made::Link(..));
        return if is_repeat { Ok((Writes::default(), Answer::Changed(Box::new(execution)))) } else { refuse(Refusal::KeyReused(made)) };
    }
    let mut writes = Writes { key: key.cloned().map(|key| (key, Made::Link(id, step.at))), ..Writes::default() };
    audit_change(&mut writes, step, &execution, Some(json!({"linkUntil": until})));
    let execution = writes.put(execution, step);
    Ok((writes, Answer::Changed(execution)))
}

/// Leaves a mark of the call that asked for this step.
fn audit(writes: &mut Writes, step: &Step, execution: &Execution) {
    audit_change(writes, step, execution, None);
}

fn audit_change(writes: &mut Writes, step: &Step, execution: &Execution, change: Option<Value>) {
    if let Some(audit) = &step.audit {
        let mut about = json!({
            "user": step.actor.name(),
            "action": audit.action,
            "from": audit.from,
            "result": "ok",
            "apiRequestId": step.request_id,
            "target": audit.target.clone().unwrap_or_else(|| execution.id.to_string()),
        });
        if let Some(command) = &audit.command {
            about["command"] = command.as_str().into();
        }
        if let Some(change) = change {
            about["change"] = change;
        }
        writes.event(step, execution.id, EventType::Audit, properties(execution, about));
    }
}

#[cfg(test)]
mod tests;
