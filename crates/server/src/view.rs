//! What the wire shows of the model. Pure: every value it needs comes in.

use std::collections::BTreeMap;

use runvoy_engine::{Bars, Engine};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::status::{EndReason, Status, WaitingFor};
use runvoy_ports::store::LockLine;
use runvoy_wire::{self as wire, Rfc3339};
use serde::Serialize;

/// The whole record as JSON, borrowed: [`wire::Execution`] without a copy of every text. Fields of that type that no execution of this
/// server has are left out.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    execution_id: ExecutionId,
    created_by: &'a str,
    owned_by: &'a [String],
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a [String]>,
    image_id: &'a str,
    started_at: Rfc3339,
    submitted_at: Rfc3339,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Rfc3339>,
    status: wire::Status,
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<u64>,
    created_by_request_id: &'a str,
    modified_by_request_id: &'a str,
    cloud: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_name: Option<&'a str>,
    queue: &'a str,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<ShownReason<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<wire::Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    labels: &'a BTreeMap<String, String>,
    worker_labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    terminal: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<WorkerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    worker_unreachable: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dead: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    redriven_as: Option<ExecutionId>,
}

#[derive(Serialize)]
struct ShownReason<'a> {
    code: &'static str,
    message: &'a str,
}

/// The whole record.
pub(crate) fn execution<'a>(engine: &Engine, bars: &Bars, execution: &'a Execution, cloud: &'a str) -> Shown<'a> {
    shown(execution, cloud, engine.waits_behind(bars, execution).map(reason), execution.worker_unreachable(engine.now()).is_some())
}

fn shown<'a>(execution: &'a Execution, cloud: &'a str, waiting_for: Option<wire::Reason>, worker_unreachable: bool) -> Shown<'a> {
    let (spec, ran_on) = (&execution.spec, execution.ran_on.as_ref());
    Shown {
        execution_id: execution.id,
        created_by: &execution.created_by,
        owned_by: &execution.owned_by,
        command: &spec.command,
        args: spec.args.as_deref(),
        image_id: &spec.image,
        started_at: execution.started_at.unwrap_or(execution.submitted_at).into(),
        submitted_at: execution.submitted_at.into(),
        completed_at: execution.completed_at.map(Into::into),
        status: stands(execution),
        exit_code: exit_code(execution),
        duration_seconds: duration_seconds(execution),
        created_by_request_id: &execution.created_by_request_id,
        modified_by_request_id: &execution.modified_by_request_id,
        cloud,
        lock_name: spec.lock.as_ref().map(Name::as_str),
        queue: spec.queue.as_str(),
        attempt: execution.attempt,
        end_reason: ended(execution).map(|reason| ShownReason { code: reason.code.as_str(), message: &reason.message }),
        waiting_for,
        cost_usd: cost_usd(execution),
        labels: &spec.labels,
        worker_labels: &spec.worker_labels,
        terminal: spec.terminal,
        job_id: spec.task.as_ref().map(|task| task.job),
        task_id: spec.task.as_ref().map(|task| task.task.as_str()),
        runner: ran_on.map(|ran_on| ran_on.runner.as_str()),
        worker_id: ran_on.map(|ran_on| ran_on.worker),
        host: ran_on.map(|ran_on| ran_on.host.as_str()),
        worker_unreachable,
        dead: execution.dead,
        redriven_as: execution.redriven.as_ref().and_then(|again| again.execution),
    }
}

/// Where it is.
pub(crate) fn status(engine: &Engine, execution: &Execution, waiting: Option<WaitingFor>) -> wire::StatusResponse {
    let unreachable = execution.worker_unreachable(engine.now());
    wire::StatusResponse {
        execution_id: execution.id.to_string(),
        status: stands(execution),
        command: execution.spec.command.clone(),
        image_id: execution.spec.image.clone(),
        started_at: execution.started_at.unwrap_or(execution.submitted_at).into(),
        exit_code: exit_code(execution),
        completed_at: execution.completed_at.map(Into::into),
        submitted_at: Some(execution.submitted_at.into()),
        end_reason: end_reason(execution),
        waiting_for: waiting.map(reason),
        duration_seconds: duration_seconds(execution),
        cost_usd: cost_usd(execution),
        attempt: execution.attempt,
        worker_unreachable: unreachable.is_some(),
        message: unreachable.map(|since| format!("worker unreachable since {}", Rfc3339::from(since))),
    }
}

/// A lock that is held; `None` for one that is free.
pub(crate) fn lock(line: &LockLine) -> Option<wire::Lock> {
    let holder = line.lock.holder.as_ref()?;
    Some(wire::Lock {
        lock_name: line.lock.name.to_string(),
        held_by: holder.held_by.clone(),
        since: holder.since.into(),
        execution_id: holder.execution.to_string(),
        waiters: line.waiters.len() as u64,
    })
}

/// The word for where it stands: while its image is pulled it is starting, although its attempt has begun.
pub(crate) fn stands(execution: &Execution) -> wire::Status {
    if execution.preparing().is_some() { wire::Status::Starting } else { status_word(execution.status) }
}

/// The status's word.
pub(crate) const fn status_word(status: Status) -> wire::Status {
    match status {
        Status::Pending => wire::Status::Pending,
        Status::Starting => wire::Status::Starting,
        Status::Running => wire::Status::Running,
        Status::Terminating => wire::Status::Terminating,
        Status::Succeeded => wire::Status::Succeeded,
        Status::Failed => wire::Status::Failed,
        Status::Stopped => wire::Status::Stopped,
    }
}

/// A retried attempt may have left a code; clients read one as the end.
pub(crate) fn exit_code(execution: &Execution) -> Option<i32> {
    execution.exit_code.filter(|_| execution.status.is_terminal())
}

fn duration_seconds(execution: &Execution) -> Option<u64> {
    let completed = execution.completed_at?;
    execution.duration_ms(completed).map(|ms| ms.unsigned_abs() / 1000)
}

fn cost_usd(execution: &Execution) -> Option<f64> {
    execution.cost_micro_usd.map(dollars)
}

/// Millionths of a dollar as dollars.
#[expect(clippy::cast_precision_loss, reason = "an amount of dollars has far fewer than 52 bits of millionths")]
pub(crate) fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

/// A retried attempt may have left a reason, too.
pub(crate) fn ended(execution: &Execution) -> Option<&EndReason> {
    execution.end_reason.as_ref().filter(|_| execution.status.is_terminal())
}

pub(crate) fn end_reason(execution: &Execution) -> Option<wire::Reason> {
    ended(execution).map(|reason| wire::Reason { code: reason.code.as_str().to_owned(), message: reason.message.clone() })
}

pub(crate) fn reason(waiting: WaitingFor) -> wire::Reason {
    wire::Reason { code: waiting.code.as_str().to_owned(), message: waiting.message }
}

#[cfg(test)]
mod tests {
    use runvoy_model::chain::ChainHead;
    use runvoy_model::execution::{LockClaim, RanOn};
    use runvoy_model::redrive::RedrivenAs;
    use runvoy_model::spec::Spec;
    use runvoy_model::status::EndCode;
    use runvoy_model::time::UnixMs;

    use super::*;

    /// An execution with everything in it, and one with nothing that can be absent.
    fn executions() -> [Execution; 2] {
        let name = |text| Name::new(text).expect("a name");
        let spec = Spec {
            command: "make \"all\"".into(),
            args: Some(vec!["-j".into()]),
            image: "local".into(),
            env: BTreeMap::new(),
            timeout_ms: None,
            lock: Some(name("prod")),
            lock_wait_ms: None,
            queue: name("default"),
            priority: 3,
            labels: BTreeMap::from([("team".into(), "x".into())]),
            worker_labels: BTreeMap::from([("gpu".into(), "a100".into())]),
            terminal: true,
            retries: 0,
            redeliveries: 0,
            secrets: Vec::new(),
            git: None,
            task: None,
            playbook: None,
            rpc: None,
            container: None,
        };
        let full = Execution {
            id: ExecutionId::from_bytes([0xab; 16]),
            spec,
            created_by: "ana@example.com".into(),
            owned_by: vec!["ben@example.com".into()],
            created_by_request_id: "r1".into(),
            modified_by_request_id: "r2".into(),
            submitted_at: UnixMs(1_000),
            status: Status::Failed,
            server_deaths: 0,
            attempt: 2,
            ready_at: UnixMs(0),
            started_at: Some(UnixMs(2_000)),
            attempt_started_at: None,
            completed_at: Some(UnixMs(4_500)),
            exit_code: Some(3),
            end_reason: Some(EndReason { code: EndCode::Exit, message: "exit 3".into() }),
            lease: None,
            ran_on: Some(RanOn { worker: WorkerId::from_bytes([1; 16]), host: "here".into(), runner: "process".into() }),
            kill: None,
            lock: LockClaim::None,
            log_end: Some(7),
            cost_micro_usd: Some(1_500_000),
            dead: true,
            error_category: None,
            redriven: Some(RedrivenAs {
                at: UnixMs(9_000),
                by: "ana@example.com".into(),
                execution: Some(ExecutionId::from_bytes([0xcd; 16])),
            }),
            chain: ChainHead::default(),
            version: 3,
        };
        let mut bare = full.clone();
        (bare.spec.args, bare.spec.lock, bare.spec.labels) = (None, None, BTreeMap::new());
        bare.spec.worker_labels.clear();
        bare.spec.terminal = false;
        (bare.status, bare.started_at, bare.completed_at) = (Status::Pending, None, None);
        (bare.ran_on, bare.cost_micro_usd, bare.owned_by) = (None, None, Vec::new());
        (bare.dead, bare.redriven) = (false, None);
        [full, bare]
    }

    #[test]
    fn what_is_shown_is_the_wire_s_own_type() {
        for execution in executions() {
            let waiting = (execution.status == Status::Pending).then(|| wire::Reason { code: "worker".into(), message: "a worker".into() });
            let text = serde_json::to_string(&shown(&execution, "LOCAL", waiting, execution.dead)).expect("plain data");
            let read: wire::Execution = serde_json::from_str(&text).expect("the wire's type");
            assert_eq!(serde_json::to_string(&read).expect("plain data"), text);
        }
    }
}
