//! Submitting, one by one or many at once. The same checks as everywhere: the engine's.

use futures_util::{StreamExt as _, stream};
use runvoy_engine::{EngineError, RunRequest, Subject};
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::spec::DEFAULT_QUEUE;
use runvoy_rpc::job::v1::{EnqueueJobRequest, EnqueueJobResponse, EnqueueJobsRequest, EnqueueJobsResponse, EnqueuedJob, ItemError};

use super::call::Call;
use super::error::RpcFault;
use super::refusal::ItemRefusals;
use super::{job, request};
use crate::fault::Fault;

/// So many in one call.
pub(super) const MOST_AT_ONCE: usize = 1_000;
/// So many of a call are under way at a time: enough to share a commit, not so many that others must wait.
pub(super) const UNDER_WAY: usize = 64;

pub(super) async fn enqueue(call: Call, request: EnqueueJobRequest) -> Result<EnqueueJobResponse, RpcFault> {
    if let Err(fault) = call.permit() {
        call.is_about(request::subject(std::iter::once(&request)));
        return Err(fault);
    }
    match submit(&call, request).await {
        Ok(execution) => Ok(made(&execution)),
        Err((fault, subject)) => {
            call.is_about(subject);
            Err(fault)
        }
    }
}

pub(super) async fn enqueue_many(call: Call, request: EnqueueJobsRequest) -> Result<EnqueueJobsResponse, RpcFault> {
    if let Err(fault) = call.permit() {
        call.is_about(request::subject(request.jobs.iter()));
        return Err(fault);
    }
    if request.jobs.len() > MOST_AT_ONCE {
        return Err(RpcFault::invalid("jobs", format!("must list at most {MOST_AT_ONCE} jobs")));
    }
    let refusals = ItemRefusals::default();
    let one = |request| async {
        match submit(&call, request).await {
            Ok(execution) => EnqueuedJob { job: made(&execution).into(), ..EnqueuedJob::default() },
            Err((fault, subject)) => {
                let error = item_error(fault, &call, &refusals, &subject).await;
                EnqueuedJob { error: error.into(), ..EnqueuedJob::default() }
            }
        }
    };
    let results = stream::iter(request.jobs).map(one).buffered(UNDER_WAY).collect().await;
    Ok(EnqueueJobsResponse { results, ..EnqueueJobsResponse::default() })
}

/// What the call alone would have failed with.
pub(super) async fn item_error(fault: RpcFault, call: &Call, refusals: &ItemRefusals, subject: &Subject) -> ItemError {
    let status = call.item_ended(refusals, fault, subject).await;
    let code = i32::try_from(status.code.grpc_code()).unwrap_or(i32::MAX);
    ItemError { code, message: status.message.unwrap_or_default(), ..ItemError::default() }
}

/// A refusal comes with what it is of.
async fn submit(call: &Call, request: EnqueueJobRequest) -> Result<Execution, (RpcFault, Subject)> {
    let request = request::run_request(request).map_err(|fault| (fault, Subject::default()))?;
    checked(call, &request).await.map_err(|fault| (fault, request::subject_of_run(&request)))
}

async fn checked(call: &Call, request: &RunRequest) -> Result<Execution, RpcFault> {
    let queue = request.queue.as_deref().unwrap_or(DEFAULT_QUEUE);
    let queue = Name::new(queue).map_err(|error| RpcFault::invalid("queue", error.to_string()))?;
    if let Err(unknown) = known(call, &queue).await {
        // A repeat is answered as the first one was, whoever has left in between.
        return call.engine().ran_before(&call.caller, request).await?.ok_or(unknown);
    }
    call.engine().run(&call.caller, request).await.map_err(|error| match error {
        EngineError::Invalid { field, message } => Fault::invalid(&request::field(&field), message).into(),
        error => error.into(),
    })
}

/// Refuses a queue that nobody has heard of: what is put there would wait for ever.
pub(super) async fn known(call: &Call, queue: &Name) -> Result<(), RpcFault> {
    if queue.as_str() == DEFAULT_QUEUE || call.engine().knows_queue(queue).await? {
        return Ok(());
    }
    Err(RpcFault::invalid("queue", format!("there is no queue {queue}")))
}

fn made(execution: &Execution) -> EnqueueJobResponse {
    EnqueueJobResponse {
        job_id: execution.id.to_string(),
        created_at: job::timestamp(execution.submitted_at).into(),
        state: job::state(execution.status).into(),
        ..EnqueueJobResponse::default()
    }
}
