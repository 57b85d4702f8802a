//! Ends of attempts, one by one or many at once: by our own worker as it saw them, by others as the protocol lets them say it.

use futures_util::{StreamExt as _, stream};
use runvoy_engine::Subject;
use runvoy_model::command::{EndAttempt, ErrorMark, Outcome};
use runvoy_model::retry::classify;
use runvoy_model::time::UnixMs;
use runvoy_rpc::job::v1::{CompleteJobRequest, CompleteJobResponse, CompleteJobsRequest, CompleteJobsResponse, CompletedJob, JobResult};

use super::call::{Call, of_execution};
use super::enqueue::{MOST_AT_ONCE, UNDER_WAY, item_error};
use super::error::RpcFault;
use super::job;
use super::lease::json;
use super::refusal::ItemRefusals;
use super::token::Task;
use crate::body::opened_bytes;

/// What our own worker tells of an end takes no more: outputs that are larger are blobs.
const MOST_END_BYTES: usize = 1 << 20;
/// What it may take once it is read: an output that is kept inline, and a little around it.
const MAX_OPENED_END_BYTES: usize = 8 << 20;

pub(super) async fn complete(call: Call, request: CompleteJobRequest) -> Result<CompleteJobResponse, RpcFault> {
    end(&call, request).await
}

pub(super) async fn complete_many(call: Call, request: CompleteJobsRequest) -> Result<CompleteJobsResponse, RpcFault> {
    if request.jobs.len() > MOST_AT_ONCE {
        return Err(RpcFault::invalid("jobs", format!("must list at most {MOST_AT_ONCE} jobs")));
    }
    let refusals = ItemRefusals::default();
    let one = |request: CompleteJobRequest| async {
        let token = request.task_token.clone();
        match end(&call, request).await {
            Ok(job) => CompletedJob { job: job.into(), ..CompletedJob::default() },
            Err(fault) => {
                // Of a token that proves nothing nothing is known.
                let subject = call.task(&token).await.map_or_else(|_| Subject::default(), |task| of_execution(task.fence.execution));
                let error = item_error(fault, &call, &refusals, &subject).await;
                CompletedJob { error: error.into(), ..CompletedJob::default() }
            }
        }
    };
    let results = stream::iter(request.jobs).map(one).buffered(UNDER_WAY).collect().await;
    Ok(CompleteJobsResponse { results, ..CompleteJobsResponse::default() })
}

async fn end(call: &Call, request: CompleteJobRequest) -> Result<CompleteJobResponse, RpcFault> {
    let task = call.task(&request.task_token).await?;
    let is_own = !request.end.is_empty();
    let ended = if is_own {
        told(&task, &request.end)?
    } else {
        let result = request.job_result.into_option().ok_or_else(|| RpcFault::invalid("job_result", "is missing"))?;
        let known = Known::of(call, &task, &result).await?;
        let ended = judged(call, &task, &result, &known)?;
        call.note_holder(&task).await;
        ended
    };
    let execution = call.under(&task, call.engine().finish(&call.holder(task.worker), ended).await).await?;
    let execution = if is_own { json(&execution) } else { bytes::Bytes::new() };
    Ok(CompleteJobResponse { execution, ..CompleteJobResponse::default() })
}

/// An end as our own worker tells it.
fn told(task: &Task, end: &[u8]) -> Result<EndAttempt, RpcFault> {
    if end.len() > MOST_END_BYTES {
        return Err(RpcFault::invalid("end", format!("must have at most {MOST_END_BYTES} bytes: store larger outputs as blobs")));
    }
    if opened_bytes(end) > MAX_OPENED_END_BYTES {
        return Err(RpcFault::invalid("end", "holds too many values: store larger outputs as blobs"));
    }
    let ended: EndAttempt = serde_json::from_slice(end).map_err(|error| RpcFault::invalid("end", error.to_string()))?;
    if ended.fence == task.fence { Ok(ended) } else { Err(RpcFault::invalid("end", "belongs to another lease than the token")) }
}

/// What an end may depend on beside what is said of it.
#[derive(Default)]
struct Known {
    /// Somebody wanted it to end.
    is_killed: bool,
    attempt_started_at: Option<UnixMs>,
}

impl Known {
    /// What ended well and says when it began tells all by itself, which spares a look at the store.
    async fn of(call: &Call, task: &Task, result: &JobResult) -> Result<Self, RpcFault> {
        if result.exit_code == 0 && result.started_at.as_option().is_some() {
            return Ok(Self::default());
        }
        let execution = call.engine().ports().store.get(task.fence.execution).await.map_err(runvoy_engine::EngineError::from)?;
        let execution = execution.ok_or_else(|| RpcFault::NoJob(task.fence.execution.to_string()))?;
        Ok(Self { is_killed: execution.kill.is_some(), attempt_started_at: execution.attempt_started_at })
    }
}

/// An end as the protocol says it: well only with exit code 0. A failure after somebody wanted it to end is that end.
fn judged(call: &Call, task: &Task, result: &JobResult, known: &Known) -> Result<EndAttempt, RpcFault> {
    if !result.job_id.is_empty() && result.job_id != task.fence.execution.to_string() {
        return Err(RpcFault::invalid("job_result.job_id", "differs from the job of the token"));
    }
    let message = result.error_message.trim();
    let outcome = match (result.success, result.exit_code) {
        (false, 0) if message.is_empty() => Outcome::StartFailed { message: "its worker says that it failed".into(), exit_code: None },
        (false, 0) => Outcome::StartFailed { message: message.to_owned(), exit_code: None },
        (_, code) => Outcome::Exited { code, after_kill: known.is_killed && code != 0 },
    };
    let is_said = matches!(outcome, Outcome::Exited { code, .. } if code != 0) && !message.is_empty();
    let said = is_said.then(|| ErrorMark { category: classify(&outcome), message: message.to_owned(), retry_after_ms: None });
    let now = call.engine().now();
    let began = result.started_at.as_option().map(job::unix_ms).or(known.attempt_started_at).unwrap_or(now);
    let over = result.completed_at.as_option().map_or(now, job::unix_ms);
    let duration_ms = u64::try_from(over.ms_since(began)).unwrap_or(0);
    Ok(EndAttempt { duration_ms, said, ..EndAttempt::of(task.fence, outcome) })
}
