//! The RPC edge: `job.v1` and `principal.v1` over Connect, gRPC and gRPC-Web, one file per resource. This file is the list of what there is; what every call
//! goes through is in [`entry`], who may call what in [`rule`].

mod answered;
mod call;
mod complete;
mod credential;
mod dequeue;
mod enqueue;
mod entry;
mod error;
mod event;
mod execution;
pub(crate) mod fuzz;
mod job;
mod lease;
mod list;
mod params;
mod refusal;
mod request;
mod rule;
mod scale;
mod token;
mod unpack;
mod upload;
mod worker;

use std::sync::Arc;

use runvoy_rpc::connectrpc::{InboundStream, Limits, RequestContext, Router, ServiceRequest, ServiceResult, ServiceStream};
use runvoy_rpc::job::v1 as j;
use runvoy_rpc::principal::v1 as p;

use self::call::Rpc;
pub(crate) use self::entry::RpcEntry;
pub(crate) use self::rule::RULES;
pub use self::rule::RpcRule;
pub(crate) use self::token::TokenKey;
use crate::app::State;

/// What a call may bring at most, unless it is made for more.
const MOST_BYTES: usize = 4 << 20;
/// What many submits or ends together may bring.
const MOST_BATCH_BYTES: usize = 16 << 20;
/// What a command may give, with what the message around it takes.
const MOST_BLOB_BYTES: usize = (64 << 20) + 4096;

/// The size of the largest message of a method.
pub(crate) fn most_bytes(path: &str) -> usize {
    match path {
        path if path == j::JOB_SERVICE_STORE_BLOB_SPEC.procedure => MOST_BLOB_BYTES,
        path if path == j::JOB_SERVICE_ENQUEUE_JOBS_SPEC.procedure || path == j::JOB_SERVICE_COMPLETE_JOBS_SPEC.procedure => {
            MOST_BATCH_BYTES
        }
        path if path == j::JOB_EVENTS_SERVICE_PUBLISH_JOB_EVENTS_SPEC.procedure => event::MOST_MESSAGE_BYTES,
        _ => MOST_BYTES,
    }
}

/// Every service over this state.
pub(crate) fn router(state: &Arc<State>) -> Router {
    let rpc = Arc::new(Rpc::new(Arc::clone(state)));
    let router = Router::new();
    let router = j::JobServiceExt::register(Arc::clone(&rpc), router);
    let router = j::JobEventsServiceExt::register(Arc::clone(&rpc), router);
    let mut router = p::CredentialServiceExt::register(rpc, router);
    for rule in RULES.iter().filter(|rule| router_has(&router, rule.path)).collect::<Vec<_>>() {
        let most = most_bytes(rule.path);
        router = router.with_route_limits(rule.path, Limits::default().with_max_request_body_size(most).with_max_message_size(most));
    }
    router
}

fn router_has(router: &Router, path: &str) -> bool {
    router.has_method(path.trim_start_matches('/'))
}

#[expect(refining_impl_trait, reason = "whoever implements a service answers with its own messages")]
impl j::JobService for Rpc {
    async fn enqueue_job(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::EnqueueJobRequest>,
    ) -> ServiceResult<j::EnqueueJobResponse> {
        self.change(context, request.to_owned_message(), enqueue::enqueue).await
    }

    async fn enqueue_jobs(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::EnqueueJobsRequest>,
    ) -> ServiceResult<j::EnqueueJobsResponse> {
        self.change(context, request.to_owned_message(), enqueue::enqueue_many).await
    }

    async fn dequeue_job(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::DequeueJobRequest>,
    ) -> ServiceResult<ServiceStream<j::DequeueJobResponse>> {
        self.stream(context, request.to_owned_message(), dequeue::dequeue).await
    }

    async fn begin_job(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::BeginJobRequest>,
    ) -> ServiceResult<j::BeginJobResponse> {
        self.change(context, request.to_owned_message(), lease::begin).await
    }

    async fn update_job(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::UpdateJobRequest>,
    ) -> ServiceResult<j::UpdateJobResponse> {
        self.change(context, request.to_owned_message(), lease::update).await
    }

    async fn release_job(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::ReleaseJobRequest>,
    ) -> ServiceResult<j::ReleaseJobResponse> {
        self.change(context, request.to_owned_message(), lease::release).await
    }

    async fn complete_job(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::CompleteJobRequest>,
    ) -> ServiceResult<j::CompleteJobResponse> {
        self.change(context, request.to_owned_message(), complete::complete).await
    }

    async fn complete_jobs(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::CompleteJobsRequest>,
    ) -> ServiceResult<j::CompleteJobsResponse> {
        self.change(context, request.to_owned_message(), complete::complete_many).await
    }

    async fn fetch_materials(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::FetchMaterialsRequest>,
    ) -> ServiceResult<j::FetchMaterialsResponse> {
        self.read(context, request.to_owned_message(), lease::materials).await
    }

    async fn store_blob(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::StoreBlobRequest>,
    ) -> ServiceResult<j::StoreBlobResponse> {
        self.change(context, request.to_owned_message(), lease::store_blob).await
    }

    async fn append_output(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::AppendOutputRequest>,
    ) -> ServiceResult<j::AppendOutputResponse> {
        self.change(context, request.to_owned_message(), lease::append).await
    }

    async fn list_jobs(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::ListJobsRequest>,
    ) -> ServiceResult<j::ListJobsResponse> {
        self.read(context, request.to_owned_message(), list::list).await
    }

    async fn get_job(&self, context: RequestContext, request: ServiceRequest<'_, j::GetJobRequest>) -> ServiceResult<j::GetJobResponse> {
        self.read(context, request.to_owned_message(), execution::get).await
    }

    async fn cancel_job(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::CancelJobRequest>,
    ) -> ServiceResult<j::CancelJobResponse> {
        self.change(context, request.to_owned_message(), execution::cancel).await
    }

    async fn report_worker(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::ReportWorkerRequest>,
    ) -> ServiceResult<j::ReportWorkerResponse> {
        self.change(context, request.to_owned_message(), worker::report).await
    }

    async fn attend_worker(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::AttendWorkerRequest>,
    ) -> ServiceResult<ServiceStream<j::AttendWorkerResponse>> {
        self.stream(context, request.to_owned_message(), worker::attend).await
    }
}

#[expect(refining_impl_trait, reason = "whoever implements a service answers with its own messages")]
impl j::JobEventsService for Rpc {
    async fn stream_job_events(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, j::StreamJobEventsRequest>,
    ) -> ServiceResult<ServiceStream<j::StreamJobEventsResponse>> {
        self.stream(context, request.to_owned_message(), event::stream).await
    }

    async fn publish_job_events(
        &self,
        context: RequestContext,
        requests: InboundStream<j::PublishJobEventsRequest>,
    ) -> ServiceResult<j::PublishJobEventsResponse> {
        self.read(context, requests, event::publish).await
    }
}

#[expect(refining_impl_trait, reason = "whoever implements a service answers with its own messages")]
impl p::CredentialService for Rpc {
    async fn import_credential(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, p::ImportCredentialRequest>,
    ) -> ServiceResult<p::ImportCredentialResponse> {
        self.change(context, request.to_owned_message(), credential::import).await
    }

    async fn list_credentials(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, p::ListCredentialsRequest>,
    ) -> ServiceResult<p::ListCredentialsResponse> {
        self.read(context, request.to_owned_message(), credential::list).await
    }

    async fn revoke_credential(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, p::RevokeCredentialRequest>,
    ) -> ServiceResult<p::RevokeCredentialResponse> {
        self.change(context, request.to_owned_message(), credential::revoke).await
    }
}
