//! Who may call which RPC: the one table. A method that is not in it is not there, and one that is registered without a row fails a test.

use runvoy_model::role::Action;
use runvoy_rpc::{job, principal};

use job::v1 as j;
use principal::v1 as p;

/// One RPC and its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpcRule {
    /// Its path: `/job.v1.JobService/EnqueueJob`.
    pub path: &'static str,
    /// The action that the caller's role must allow.
    pub action: Action,
    /// It does more than look: a refusal of it is kept in the trail.
    pub is_change: bool,
    /// The client sends more than one message, for as long as it likes.
    pub is_upload: bool,
    /// Its handler applies the rule, before anything else: the trail says what was asked for, which is known only once the request is read.
    pub checked_by_handler: bool,
}

impl RpcRule {
    /// Its action in the trail: what runs or ends something has the same name as over HTTP.
    pub(super) fn audit_action(&self) -> String {
        match self.action {
            Action::Run => "executions.run".to_owned(),
            Action::Kill => "executions.kill".to_owned(),
            _ => format!("POST {}", self.path),
        }
    }
}

const fn rule(spec: runvoy_rpc::connectrpc::Spec, action: Action) -> RpcRule {
    RpcRule { path: spec.procedure, action, is_change: true, is_upload: false, checked_by_handler: false }
}

const fn look(spec: runvoy_rpc::connectrpc::Spec, action: Action) -> RpcRule {
    RpcRule { is_change: false, ..rule(spec, action) }
}

const fn told(spec: runvoy_rpc::connectrpc::Spec, action: Action) -> RpcRule {
    RpcRule { checked_by_handler: true, ..rule(spec, action) }
}

/// Every RPC there is.
pub(crate) const RULES: [RpcRule; 21] = [
    told(j::JOB_SERVICE_ENQUEUE_JOB_SPEC, Action::Run),
    told(j::JOB_SERVICE_ENQUEUE_JOBS_SPEC, Action::Run),
    look(j::JOB_SERVICE_LIST_JOBS_SPEC, Action::Read),
    look(j::JOB_SERVICE_GET_JOB_SPEC, Action::Read),
    told(j::JOB_SERVICE_CANCEL_JOB_SPEC, Action::Kill),
    rule(j::JOB_SERVICE_DEQUEUE_JOB_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_BEGIN_JOB_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_UPDATE_JOB_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_COMPLETE_JOB_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_COMPLETE_JOBS_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_RELEASE_JOB_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_FETCH_MATERIALS_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_STORE_BLOB_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_APPEND_OUTPUT_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_REPORT_WORKER_SPEC, Action::Lease),
    rule(j::JOB_SERVICE_ATTEND_WORKER_SPEC, Action::Lease),
    look(j::JOB_EVENTS_SERVICE_STREAM_JOB_EVENTS_SPEC, Action::Read),
    RpcRule { is_upload: true, ..rule(j::JOB_EVENTS_SERVICE_PUBLISH_JOB_EVENTS_SPEC, Action::Lease) },
    rule(p::CREDENTIAL_SERVICE_IMPORT_CREDENTIAL_SPEC, Action::ManageWorkers),
    look(p::CREDENTIAL_SERVICE_LIST_CREDENTIALS_SPEC, Action::ManageWorkers),
    rule(p::CREDENTIAL_SERVICE_REVOKE_CREDENTIAL_SPEC, Action::ManageWorkers),
];
