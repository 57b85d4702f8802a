//! An execution as a job, in the words of the protocol: where it stands, and when. What it was asked to do is in [`super::params`].

use runvoy_engine::Engine;
use runvoy_model::execution::Execution;
use runvoy_model::status::{Status, WaitingFor};
use runvoy_model::time::UnixMs;
use runvoy_rpc::job::v1::{BatchingConfig, ExecutionConfig, Job, JobState};
use runvoy_rpc::protobuf::Timestamp;

use super::error::RpcFault;
use super::params::{References, params};
use crate::view;

/// A job, without the values of its environment.
pub(super) async fn job(engine: &Engine, execution: &Execution) -> Result<Job, RpcFault> {
    let references = References::of(engine, std::slice::from_ref(execution)).await?;
    Ok(shown(execution, &references, engine.waits_for(execution).await))
}

/// The same of several.
pub(super) async fn jobs(engine: &Engine, executions: &[Execution]) -> Result<Vec<Job>, RpcFault> {
    let references = References::of(engine, executions).await?;
    let bars = engine.bars(executions).await;
    Ok(executions.iter().map(|execution| shown(execution, &references, engine.waits_behind(&bars, execution))).collect())
}

fn shown(execution: &Execution, references: &References, waiting: Option<WaitingFor>) -> Job {
    Job {
        job_id: execution.id.to_string(),
        job_params: params(execution, references).into(),
        state: state(execution.status).into(),
        created_at: timestamp(execution.submitted_at).into(),
        updated_at: timestamp(moved_at(execution)).into(),
        execution_config: execution_config().into(),
        queue: execution.spec.queue.to_string(),
        attempt: execution.attempt,
        exit_code: view::exit_code(execution),
        status: execution.status.as_str().to_owned(),
        end_reason: view::ended(execution).map(|reason| reason.message.clone()).unwrap_or_default(),
        waiting_for: waiting.map(|waiting| waiting.message).unwrap_or_default(),
        ..Job::default()
    }
}

/// A time.
pub(super) fn timestamp(at: UnixMs) -> Timestamp {
    let nanos = i32::try_from(at.0.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
    Timestamp { seconds: at.0.div_euclid(1000), nanos, ..Timestamp::default() }
}

/// The time that a client says, where it says one.
pub(super) fn unix_ms(at: &Timestamp) -> UnixMs {
    UnixMs(at.seconds.saturating_mul(1000).saturating_add(i64::from(at.nanos / 1_000_000)))
}

/// Where a job stands.
pub(super) const fn state(status: Status) -> JobState {
    match status {
        Status::Pending => JobState::Scheduled,
        Status::Starting | Status::Running | Status::Terminating => JobState::Running,
        Status::Succeeded => JobState::Completed,
        Status::Failed => JobState::Failed,
        Status::Stopped => JobState::Cancelled,
    }
}

/// The statuses of a state; none for any.
pub(super) fn statuses(state: JobState) -> Vec<Status> {
    match state {
        JobState::Unspecified => Vec::new(),
        JobState::Scheduled => vec![Status::Pending],
        JobState::Running => vec![Status::Starting, Status::Running, Status::Terminating],
        JobState::Completed => vec![Status::Succeeded],
        JobState::Failed => vec![Status::Failed],
        JobState::Cancelled => vec![Status::Stopped],
    }
}

fn moved_at(execution: &Execution) -> UnixMs {
    execution.completed_at.or(execution.attempt_started_at).unwrap_or(execution.submitted_at)
}

/// What a worker should do unless it knows better: as our own does.
fn execution_config() -> ExecutionConfig {
    let batching =
        BatchingConfig { flush_interval_seconds: 2, max_batch_size: 50, max_batch_bytes: 256 << 10, ..BatchingConfig::default() };
    ExecutionConfig {
        batching: batching.into(),
        heartbeat_interval_seconds: 30,
        output_flush_interval_millis: 200,
        ..ExecutionConfig::default()
    }
}
