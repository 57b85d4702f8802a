//! One job: a look at it, and its end.

use runvoy_model::id::ExecutionId;
use runvoy_rpc::job::v1::{CancelJobRequest, CancelJobResponse, GetJobRequest, GetJobResponse};

use super::call::Call;
use super::error::RpcFault;
use super::job;

pub(super) async fn get(call: Call, request: GetJobRequest) -> Result<GetJobResponse, RpcFault> {
    let execution = call.engine().job_seen(&call.caller, &id(&request.job_id)?).await?;
    Ok(GetJobResponse { job: job::job(call.engine(), &execution).into(), ..GetJobResponse::default() })
}

pub(super) async fn cancel(call: Call, request: CancelJobRequest) -> Result<CancelJobResponse, RpcFault> {
    let execution = call.engine().kill(&call.caller, &id(&request.job_id)?, request.force).await?;
    Ok(CancelJobResponse { job: job::job(call.engine(), &execution).into(), ..CancelJobResponse::default() })
}

/// A whole id: a program has no use for parts of one.
fn id(text: &str) -> Result<String, RpcFault> {
    let id = text.parse::<ExecutionId>().map_err(|_| RpcFault::invalid("job_id", "is no id of a job"))?;
    Ok(id.to_string())
}
