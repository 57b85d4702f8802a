//! One job: a look at it, and its end.

use runvoy_engine::Subject;
use runvoy_model::id::ExecutionId;
use runvoy_rpc::job::v1::{CancelJobRequest, CancelJobResponse, GetJobRequest, GetJobResponse};

use super::call::Call;
use super::error::RpcFault;
use super::job;
use crate::fault::shortened;

pub(super) async fn get(call: Call, request: GetJobRequest) -> Result<GetJobResponse, RpcFault> {
    let execution = call.engine().execution(&call.caller, &id(&request.job_id)?).await?;
    Ok(GetJobResponse { job: job::job(call.engine(), &execution).await?.into(), ..GetJobResponse::default() })
}

pub(super) async fn cancel(call: Call, request: CancelJobRequest) -> Result<CancelJobResponse, RpcFault> {
    call.is_about(Subject { target: Some(shortened(&request.job_id)).filter(|id| !id.is_empty()), ..Subject::default() });
    call.permit()?;
    let execution = call.engine().kill(&call.caller, &id(&request.job_id)?, request.force).await?;
    Ok(CancelJobResponse { job: job::job(call.engine(), &execution).await?.into(), ..CancelJobResponse::default() })
}

/// A whole id: a program has no use for parts of one.
pub(super) fn id(text: &str) -> Result<String, RpcFault> {
    let id = text.parse::<ExecutionId>().map_err(|_| RpcFault::NoJob(shortened(&text.escape_default().to_string())))?;
    Ok(id.to_string())
}
