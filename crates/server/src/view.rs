//! What the wire shows of the model. Pure: every value it needs comes in.

use runvoy_engine::Engine;
use runvoy_model::execution::Execution;
use runvoy_model::status::Status;
use runvoy_ports::store::LockLine;
use runvoy_wire as wire;

/// The whole record.
pub(crate) fn execution(engine: &Engine, execution: &Execution, cloud: &str) -> wire::Execution {
    let (spec, ran_on) = (&execution.spec, execution.ran_on.as_ref());
    wire::Execution {
        execution_id: execution.id.to_string(),
        created_by: execution.created_by.clone(),
        owned_by: execution.owned_by.clone(),
        command: spec.command.clone(),
        args: spec.args.clone(),
        image_id: spec.image.clone(),
        started_at: execution.started_at.unwrap_or(execution.submitted_at).into(),
        submitted_at: Some(execution.submitted_at.into()),
        completed_at: execution.completed_at.map(Into::into),
        status: status_word(execution.status),
        exit_code: exit_code(execution),
        duration_seconds: duration_seconds(execution),
        log_stream_name: None,
        created_by_request_id: execution.created_by_request_id.clone(),
        modified_by_request_id: execution.modified_by_request_id.clone(),
        cloud: Some(cloud.to_owned()),
        lock_name: spec.lock.as_ref().map(ToString::to_string),
        queue: spec.queue.to_string(),
        attempt: execution.attempt,
        end_reason: end_reason(execution),
        waiting_for: waiting_for(engine, execution),
        cost_usd: cost_usd(execution),
        labels: spec.labels.clone(),
        job_id: None,
        task_id: None,
        runner: ran_on.map(|ran_on| ran_on.runner.clone()),
        worker_id: ran_on.map(|ran_on| ran_on.worker.to_string()),
        host: ran_on.map(|ran_on| ran_on.host.clone()),
        task_arn: None,
    }
}

/// Where it is.
pub(crate) fn status(engine: &Engine, execution: &Execution) -> wire::StatusResponse {
    wire::StatusResponse {
        execution_id: execution.id.to_string(),
        status: status_word(execution.status),
        command: execution.spec.command.clone(),
        image_id: execution.spec.image.clone(),
        started_at: execution.started_at.unwrap_or(execution.submitted_at).into(),
        exit_code: exit_code(execution),
        completed_at: execution.completed_at.map(Into::into),
        submitted_at: Some(execution.submitted_at.into()),
        end_reason: end_reason(execution),
        waiting_for: waiting_for(engine, execution),
        duration_seconds: duration_seconds(execution),
        cost_usd: cost_usd(execution),
        attempt: execution.attempt,
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
fn exit_code(execution: &Execution) -> Option<i32> {
    execution.exit_code.filter(|_| execution.status.is_terminal())
}

fn duration_seconds(execution: &Execution) -> Option<u64> {
    let completed = execution.completed_at?;
    execution.duration_ms(completed).map(|ms| ms.unsigned_abs() / 1000)
}

fn cost_usd(execution: &Execution) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "an amount of dollars has far fewer than 52 bits of millionths")]
    execution.cost_micro_usd.map(|micro| micro as f64 / 1e6)
}

fn end_reason(execution: &Execution) -> Option<wire::Reason> {
    let reason = execution.end_reason.as_ref().filter(|_| execution.status.is_terminal())?;
    Some(wire::Reason { code: reason.code.as_str().to_owned(), message: reason.message.clone() })
}

fn waiting_for(engine: &Engine, execution: &Execution) -> Option<wire::Reason> {
    let waiting = engine.waiting_for(execution)?;
    Some(wire::Reason { code: waiting.code.as_str().to_owned(), message: waiting.message })
}
