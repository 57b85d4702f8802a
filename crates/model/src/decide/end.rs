//! How attempts and executions end. One function makes the verdict, one writes the end; everything that ends goes through both.

use serde_json::json;

use super::lease::{Fenced, fenced, return_to_line, too_late};
use super::{Decision, gate, incident, job, lock, properties, refuse};
use crate::bound::{self, clipped};
use crate::command::{Answer, EndAttempt, ErrorMark, Outcome, Reap, Refusal};
use crate::event::EventType;
use crate::execution::{Execution, KillRequest};
use crate::id::ExecutionId;
use crate::incident::Incident;
use crate::job::{Payload, TaskRef};
use crate::retry::{Category, LONGEST_BACKOFF_MS, MAX_SERVER_DEATHS, backoff_ms, classify};
use crate::status::{EXIT_KILLED, EXIT_PLATFORM, EXIT_TIMEOUT, EndCode, EndReason, Status};
use crate::step::Step;
use crate::view::{View, Writes};

/// What is said of something whose spec is lost.
pub(super) const LOST: &str = "its command can no longer be read: submit it again";

/// What an outcome means for an execution.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub status: Status,
    pub exit_code: i32,
    pub reason: EndReason,
    pub category: Option<Category>,
}

/// What is known of an attempt beside its outcome.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub output: Option<Payload>,
    pub said: Option<ErrorMark>,
    pub usage: Option<serde_json::Value>,
    pub remark: Option<String>,
    pub log_end: Option<u64>,
    pub duration_ms: Option<u64>,
    pub process_id: Option<u32>,
    pub cost_micro_usd: u64,
}

pub(super) fn end_attempt<V: View>(view: &mut V, step: &Step, ended: &EndAttempt) -> Decision<V::Error> {
    let too_deep = |value: &serde_json::Value| bound::depth(value) > bound::MOST_DEPTH;
    let (output, left_out) = match &ended.output {
        // Nothing could read it again.
        Some(Payload::Inline(output)) if too_deep(output) => (None, Some(format!("the task has no output: {}", bound::TOO_DEEP))),
        output => (output.clone(), None),
    };
    let remark: Vec<String> = ended.remark.clone().into_iter().chain(left_out).collect();
    let facts = Facts {
        output,
        said: ended.said.clone(),
        usage: ended.usage.clone().filter(|usage| !too_deep(usage)),
        remark: (!remark.is_empty()).then(|| remark.join("; ")),
        log_end: Some(ended.log_end),
        duration_ms: Some(ended.duration_ms),
        process_id: ended.process_id,
        cost_micro_usd: ended.cost_micro_usd,
    };
    match fenced(view, ended.fence)? {
        Fenced::Unknown => refuse(Refusal::NotFound),
        Fenced::Valid(execution, lease) if lease.begun => {
            let verdict = heard(judge(&ended.outcome, execution.kill.as_ref()), ended.said.as_ref());
            let execution = Execution { server_deaths: 0, ..*execution };
            conclude(view, step, execution, &ended.outcome, verdict, facts)
        }
        Fenced::Valid(execution, _) | Fenced::Lapsed(execution) => Ok(keep_late(step, *execution, ended)),
    }
}

/// A task token does not expire, and whoever has an old one could tell ends without end: their events are kept while the chain is no longer than this, and
/// so much for each attempt.
const CHAIN_ROOM: u64 = 1_000;
const CHAINED_BY_ATTEMPT: u64 = 10;

/// A finish under a lapsed lease is kept as a late event, while there is room for one, and changes nothing.
fn keep_late(step: &Step, execution: Execution, ended: &EndAttempt) -> (Writes, Answer) {
    let mut writes = Writes::default();
    if execution.chain.count >= CHAIN_ROOM.saturating_add(u64::from(execution.attempt).saturating_mul(CHAINED_BY_ATTEMPT)) {
        return (writes, Answer::Refused(too_late(&execution)));
    }
    let verdict = judge(&ended.outcome, None);
    let late = json!({
        "attempt": ended.fence.attempt,
        "late": true,
        "exitCode": verdict.exit_code,
        "error": verdict.reason.message,
        "durationMs": ended.duration_ms,
    });
    writes.event(step, execution.id, event_type(&verdict), properties(&execution, late));
    let refusal = too_late(&execution);
    writes.put(execution, step);
    (writes, Answer::Refused(refusal))
}

pub(super) fn reap<V: View>(view: &mut V, step: &Step, reap: &Reap) -> Decision<V::Error> {
    let Some(mut execution) = view.execution(reap.execution)? else { return refuse(Refusal::NotFound) };
    let lease = execution.lease.clone().filter(|lease| lease.id == reap.lease && lease.extensions == reap.extensions);
    let Some(lease) = lease.filter(|_| !execution.status.is_terminal()) else {
        return Ok((Writes::default(), Answer::Unchanged));
    };
    if !lease.begun {
        return return_to_line(view, step, execution);
    }
    let mut message = reap.message.clone();
    if reap.with_server {
        execution.server_deaths = execution.server_deaths.saturating_add(1);
        if execution.server_deaths >= MAX_SERVER_DEATHS {
            message = format!(
                "{message}; {} attempts in a row ended with the server, so it is not retried: look for the cause in the server's own log, then run it again",
                execution.server_deaths
            );
        }
    } else {
        execution.server_deaths = 0;
    }
    let outcome = Outcome::Lost { message };
    let verdict = judge(&outcome, execution.kill.as_ref());
    let facts = Facts { log_end: Some(reap.log_end), cost_micro_usd: reap.cost_micro_usd, ..Facts::default() };
    conclude(view, step, execution, &outcome, verdict, facts)
}

/// Ends an execution that waits to run and whose spec is lost: whoever leased it could not start it. It is a dead letter, so that somebody looks;
/// whatever else stands in the line is passed by, for only the record itself says that it is lost.
pub(super) fn give_up<V: View>(view: &mut V, step: &Step, id: ExecutionId, why: &str) -> Decision<V::Error> {
    let Some(mut execution) = view.execution(id)? else { return refuse(Refusal::NotFound) };
    if execution.status != Status::Pending || !execution.spec.is_lost() {
        return Ok((Writes::default(), Answer::Unchanged));
    }
    let outcome = Outcome::StartFailed { message: format!("its command cannot be read: {why}"), exit_code: None };
    let verdict = judge(&outcome, execution.kill.as_ref());
    execution.dead = true;
    finish(view, step, execution, &outcome, verdict, Facts::default())
}

/// Writes the end of an execution in the step that makes it: nobody knows any more what its task was to run. It holds nothing yet.
pub(super) fn fail_unread(step: &Step, mut execution: Execution, writes: &mut Writes) {
    let outcome = Outcome::StartFailed { message: LOST.to_owned(), exit_code: None };
    let verdict = judge(&outcome, None);
    let ended = end_properties(&execution, step, &outcome, &verdict, &Facts::default());
    writes.event(step, execution.id, event_type(&verdict), properties(&execution, ended));
    (execution.status, execution.exit_code, execution.error_category) = (verdict.status, Some(verdict.exit_code), verdict.category);
    (execution.end_reason, execution.completed_at, execution.cost_micro_usd) = (Some(verdict.reason), Some(step.at), Some(0));
    writes.put(execution, step);
}

/// What an outcome means; `kill` is somebody's wish to end it, had before the outcome was known.
pub(super) fn judge(outcome: &Outcome, kill: Option<&KillRequest>) -> Verdict {
    let own = own_verdict(outcome);
    let ended_by_itself =
        matches!(outcome, Outcome::Exited { after_kill: false, .. } | Outcome::Signalled { after_kill: false, .. } | Outcome::OutOfMemory);
    match kill {
        Some(kill) if !ended_by_itself => stopped(kill, &own.reason.message),
        _ => own,
    }
}

/// What the command itself says about its failure goes before what its exit code could mean.
fn heard(mut verdict: Verdict, said: Option<&ErrorMark>) -> Verdict {
    if let (Some(said), Status::Failed, EndCode::Exit | EndCode::Signal) = (said, verdict.status, verdict.reason.code) {
        verdict.category = Some(said.category);
        verdict.reason.message = format!("{}: {}", verdict.reason.message, clipped(&said.message));
    }
    verdict
}

pub(super) fn stopped(kill: &KillRequest, how: &str) -> Verdict {
    let message = format!("killed by {}; {how}", kill.by);
    Verdict { status: Status::Stopped, exit_code: EXIT_KILLED, reason: EndReason { code: EndCode::Killed, message }, category: None }
}

fn own_verdict(outcome: &Outcome) -> Verdict {
    let category = classify(outcome);
    let failed = |exit_code, code, message: String| Verdict {
        status: Status::Failed,
        exit_code,
        reason: EndReason { code, message: clipped(&message) },
        category: Some(category),
    };
    match outcome {
        Outcome::Exited { code: 0, .. } => Verdict {
            status: Status::Succeeded,
            exit_code: 0,
            reason: EndReason { code: EndCode::Exit, message: "exit code 0".into() },
            category: None,
        },
        Outcome::Exited { code, .. } => failed(*code, EndCode::Exit, format!("exit code {code}")),
        Outcome::Signalled { signal, .. } => failed(128 + signal, EndCode::Signal, format!("ended by signal {}", signal_name(*signal))),
        Outcome::TimedOut { timeout_ms, .. } => {
            failed(EXIT_TIMEOUT, EndCode::Timeout, format!("ran longer than its timeout of {}", seconds(*timeout_ms)))
        }
        Outcome::OutOfMemory => failed(128 + 9, EndCode::Oom, "used more memory than its limit".into()),
        Outcome::OutOfDisk { message } => failed(128 + 9, EndCode::Killed, message.clone()),
        Outcome::StartFailed { message, exit_code } => failed(exit_code.unwrap_or(EXIT_PLATFORM), EndCode::StartFailed, message.clone()),
        Outcome::Refused { message, .. } => failed(EXIT_PLATFORM, EndCode::StartFailed, message.clone()),
        Outcome::ImageFailed { message, .. } => failed(EXIT_PLATFORM, EndCode::ImageFailed, message.clone()),
        Outcome::GitFailed { message, .. } => failed(EXIT_PLATFORM, EndCode::GitFailed, message.clone()),
        Outcome::OutputFailed { message } => failed(EXIT_PLATFORM, EndCode::OutputFailed, message.clone()),
        Outcome::WorkerStopped => failed(EXIT_PLATFORM, EndCode::WorkerLost, "its worker was stopped before the command ended".into()),
        Outcome::Lost { message } => failed(EXIT_PLATFORM, EndCode::WorkerLost, message.clone()),
    }
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 16] = [
        "", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2",
        "SIGPIPE", "SIGALRM", "SIGTERM",
    ];
    match usize::try_from(signal).ok().and_then(|number| NAMES.get(number)) {
        Some(name) if signal > 0 => format!("{signal} ({name})"),
        _ => signal.to_string(),
    }
}

/// Writes the end of an attempt: the end of the execution, or the wait for its next attempt.
fn conclude<V: View>(
    view: &mut V,
    step: &Step,
    mut execution: Execution,
    outcome: &Outcome,
    verdict: Verdict,
    facts: Facts,
) -> Decision<V::Error> {
    let retryable = verdict.category.is_some_and(Category::is_retryable) && execution.kill.is_none();
    // An admin may have taken its lock away while it ran: another attempt would run without it.
    let lost_its_lock = execution.spec.lock.is_some() && execution.lock.is_none();
    let may_end_servers = execution.server_deaths >= MAX_SERVER_DEATHS;
    let is_lost = verdict.reason.code == EndCode::WorkerLost;
    let budget = if is_lost { execution.spec.attempts_after_loss() } else { execution.spec.retries };
    if retryable && !lost_its_lock && !may_end_servers && execution.attempt <= budget {
        return retry(view, step, execution, &verdict, facts);
    }
    execution.dead = retryable && budget > 0;
    finish(view, step, execution, outcome, verdict, facts)
}

fn retry<V: View>(view: &mut V, step: &Step, mut execution: Execution, verdict: &Verdict, facts: Facts) -> Decision<V::Error> {
    let mut writes = Writes::default();
    attempt_failed(step, &execution, verdict, &mut writes);
    let asked_ms = facts.said.as_ref().and_then(|said| said.retry_after_ms).unwrap_or(0).min(LONGEST_BACKOFF_MS);
    let wait_ms = backoff_ms(execution.id, execution.attempt).max(asked_ms);
    execution.status = Status::Pending;
    gate::end_lease(view, &mut execution, &mut writes)?;
    execution.ready_at = step.at.plus_ms(i64::try_from(wait_ms).unwrap_or(i64::MAX));
    execution.cost_micro_usd = Some(execution.cost_micro_usd.unwrap_or(0).saturating_add(facts.cost_micro_usd));
    let again = json!({
        "name": task_name(&execution),
        "attempt": execution.attempt + 1,
        "queue": execution.spec.queue,
        "notBefore": execution.ready_at,
    });
    writes.event(step, execution.id, EventType::TaskPending, properties(&execution, again));
    let execution = writes.put(execution, step);
    Ok((writes, Answer::Ended(execution)))
}

/// An attempt failed of something that another one could have cured, whether there is another or not.
fn attempt_failed(step: &Step, execution: &Execution, verdict: &Verdict, writes: &mut Writes) {
    let failed = json!({
        "attemptNumber": execution.attempt,
        "error": verdict.reason.message,
        "errorCategory": verdict.category.map(Category::as_str),
    });
    writes.event(step, execution.id, EventType::TaskProcessingFailed, properties(execution, failed));
}

/// Writes the end of an execution, gives its lock to the next in line and its permit back to its queue.
pub(super) fn finish<V: View>(
    view: &mut V,
    step: &Step,
    mut execution: Execution,
    outcome: &Outcome,
    verdict: Verdict,
    facts: Facts,
) -> Decision<V::Error> {
    let mut writes = Writes::default();
    if execution.dead {
        attempt_failed(step, &execution, &verdict, &mut writes);
    }
    let ended = end_properties(&execution, step, outcome, &verdict, &facts);
    writes.event(step, execution.id, event_type(&verdict), properties(&execution, ended));
    lock::release(view, step, &mut execution, &mut writes)?;
    execution.status = verdict.status;
    execution.exit_code = Some(verdict.exit_code);
    execution.error_category = verdict.category;
    execution.end_reason = Some(verdict.reason);
    execution.completed_at = Some(ended_at(&execution, step, &facts));
    gate::end_lease(view, &mut execution, &mut writes)?;
    execution.log_end = facts.log_end.or(execution.log_end);
    execution.cost_micro_usd = Some(execution.cost_micro_usd.unwrap_or(0).saturating_add(facts.cost_micro_usd));
    // Its job was cancelled while it ran: its retries were used up, and nobody can run it again.
    execution.dead = execution.dead && !job::is_over(view, &execution)?;
    if execution.dead {
        incident::begin(view, &Incident::dead(&execution, step.at), &mut writes)?;
    }
    let execution = writes.put(execution, step);
    if execution.spec.task.is_some() {
        job::task_ended(view, step, &execution, facts.output, &mut writes)?;
    }
    Ok((writes, Answer::Ended(execution)))
}

/// What a task is called in its events.
pub(super) fn task_name(execution: &Execution) -> &str {
    execution.spec.task.as_ref().map_or("run", TaskRef::title)
}

/// When the command ended, not when that could be written down.
fn ended_at(execution: &Execution, step: &Step, facts: &Facts) -> crate::time::UnixMs {
    match (execution.attempt_started_at, facts.duration_ms) {
        (Some(started), Some(ms)) => started.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX)).min(step.at.max(started)),
        _ => step.at,
    }
}

fn event_type(verdict: &Verdict) -> EventType {
    match (verdict.status, verdict.reason.code) {
        (Status::Succeeded, _) => EventType::TaskCompleted,
        (Status::Stopped, _) => EventType::TaskStopped,
        (_, EndCode::Timeout) => EventType::TaskTimeout,
        _ => EventType::TaskFailed,
    }
}

fn end_properties(execution: &Execution, step: &Step, outcome: &Outcome, verdict: &Verdict, facts: &Facts) -> serde_json::Value {
    let elapsed = execution.attempt_started_at.map_or(0, |at| step.at.ms_since(at));
    let duration_ms = facts.duration_ms.map_or(elapsed, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
    let mut ended = json!({"attempt": execution.attempt, "exitCode": verdict.exit_code, "durationMs": duration_ms});
    if let Some(pid) = facts.process_id {
        ended["processId"] = pid.into();
    }
    if let Some(remark) = &facts.remark {
        ended["remark"] = bound::clipped(remark).into();
    }
    match event_type(verdict) {
        EventType::TaskTimeout => {
            if let Outcome::TimedOut { timeout_ms, forced } = outcome {
                ended["timeoutMs"] = (*timeout_ms).into();
                ended["elapsedMs"] = duration_ms.into();
                ended["signal"] = if *forced { "SIGKILL" } else { "SIGTERM" }.into();
            }
            failure_properties(execution, verdict, &mut ended);
        }
        EventType::TaskFailed => failure_properties(execution, verdict, &mut ended),
        EventType::TaskCompleted => match &facts.output {
            Some(Payload::Inline(output)) => {
                ended["output"] = output.clone();
                // A larger one stands in the output alone.
                if let Some(usage) = output.get("usage").filter(|usage| bound::text(usage).len() <= bound::MOST_MESSAGE_BYTES) {
                    ended["usage"] = usage.clone();
                }
            }
            Some(Payload::Blob { key, bytes }) => {
                ended["_s3Overflow"] = json!({"key": key, "bytes": bytes, "fields": ["output"]});
                if let Some(usage) = facts.usage.as_ref().filter(|usage| bound::text(usage).len() <= bound::MOST_MESSAGE_BYTES) {
                    ended["usage"] = usage.clone();
                }
            }
            None => {}
        },
        EventType::TaskStopped => ended["error"] = verdict.reason.message.clone().into(),
        _ => {}
    }
    ended
}

fn failure_properties(execution: &Execution, verdict: &Verdict, ended: &mut serde_json::Value) {
    ended["error"] = verdict.reason.message.clone().into();
    ended["errorCategory"] = verdict.category.map(Category::as_str).into();
    ended["retryCount"] = execution.attempt.into();
    ended["source"] = if execution.dead { "dlq" } else { "worker" }.into();
    ended["reason"] = verdict.reason.code.as_str().into();
}
