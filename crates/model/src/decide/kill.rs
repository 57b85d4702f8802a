//! Somebody wants an execution to end. What does not run yet ends at once; what runs is asked for through its lease.

use super::end::{Facts, finish, stopped};
use super::{Decision, audit, refuse};
use crate::command::{Answer, Kill, Outcome, Refusal};
use crate::execution::KillRequest;
use crate::id::ExecutionId;
use crate::status::Status;
use crate::step::Step;
use crate::view::{View, Writes};

pub(super) fn kill<V: View>(view: &mut V, step: &Step, kill: &Kill) -> Decision<V::Error> {
    let Some(mut execution) = view.execution(kill.execution)? else { return refuse(Refusal::NotFound) };
    if execution.status.is_terminal() {
        return refuse(Refusal::Ended(execution.status));
    }
    let request = KillRequest { by: step.actor.name(), at: step.at, force: kill.force };
    if matches!(execution.status, Status::Pending | Status::Starting) {
        let verdict = match execution.attempt {
            0 => stopped(&request, "it had not started"),
            attempts => stopped(&request, &format!("it was waiting for attempt {}", attempts + 1)),
        };
        execution.kill = Some(request);
        let outcome = Outcome::WorkerStopped;
        let (mut writes, answer) = finish(view, step, execution.clone(), &outcome, verdict, Facts::default())?;
        audit(&mut writes, step, &execution);
        return Ok((writes, as_changed(answer)));
    }
    let mut writes = Writes::default();
    execution.status = Status::Terminating;
    match &mut execution.kill {
        Some(earlier) => earlier.force |= kill.force,
        none => *none = Some(request),
    }
    audit(&mut writes, step, &execution);
    let execution = writes.put(execution, step);
    Ok((writes, Answer::Changed(execution)))
}

/// The worker has said nothing since the kill was asked for: the execution ends, and says so.
pub(super) fn confirm<V: View>(view: &mut V, step: &Step, id: ExecutionId, cost_micro_usd: u64) -> Decision<V::Error> {
    let Some(execution) = view.execution(id)? else { return refuse(Refusal::NotFound) };
    let Some(request) = execution.kill.clone().filter(|_| execution.status == Status::Terminating) else {
        return Ok((Writes::default(), Answer::Unchanged));
    };
    let verdict = stopped(&request, "its worker did not confirm the kill");
    let facts = Facts { cost_micro_usd, ..Facts::default() };
    let (writes, answer) = finish(view, step, execution, &Outcome::WorkerStopped, verdict, facts)?;
    Ok((writes, as_changed(answer)))
}

fn as_changed(answer: Answer) -> Answer {
    match answer {
        Answer::Ended(execution) => Answer::Changed(execution),
        other => other,
    }
}
