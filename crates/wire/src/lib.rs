//! What travels between server and clients: the JSON of `/api/v1`, the frames of its WebSocket and the binary log batches of our own
//! clients. Types and their encodings only; it does no IO and decides nothing.

pub mod access;
pub mod alert;
pub mod audit;
pub mod backup;
pub mod batch;
pub mod claim;
pub mod cost;
pub mod doctor;
pub mod dry_run;
pub mod error;
pub mod event;
pub mod execution;
pub mod frame;
pub mod group;
pub mod health;
pub mod image;
pub mod job;
pub mod key;
pub mod kill;
pub mod link;
pub mod lock;
pub mod logs;
pub mod playbook;
pub mod queue;
pub mod reconcile;
pub mod recovery;
pub mod rule;
pub mod run;
pub mod search;
pub mod secret;
pub mod sensitive;
pub mod status;
pub mod task;
pub mod task_health;
pub mod time;
pub mod trace;
pub mod user;
pub mod whoami;
pub mod worker;

pub use access::Explanation;
pub use alert::AlertTestResponse;
pub use audit::{AuditEvent, AuditVerification, BadEvent, Mismatch};
pub use backup::{BackupRequest, BackupResponse};
pub use batch::{Batch, InvalidBatch};
pub use claim::ClaimResponse;
pub use cost::{CostItem, CostResponse};
pub use doctor::{DoctorResponse, Probe, ProbeStatus};
pub use dry_run::{DryRunLimits, DryRunResponse, DryRunSecret};
pub use error::{Code, ErrorBody};
pub use event::Event;
pub use execution::Execution;
pub use frame::Control;
pub use group::{Group, GroupResponse, GroupsResponse, PutGroupRequest};
pub use health::Health;
pub use image::{Image, ImageResponse, ImagesResponse, RegisterImageRequest};
pub use job::{
    AddTasksRequest, AddTasksResponse, CreateJobRequest, CreateJobResponse, DagError, InvalidJobStatus, Job, JobResponse, JobStatus,
    ResumeJobRequest, TaskCounts, check_shape,
};
pub use key::{CreateKeyRequest, CreateKeyResponse, Key, KeysResponse, RevokeKeyResponse};
pub use kill::KillResponse;
pub use link::{LinkResponse, LinkedLog};
pub use lock::{Lock, LockHeld};
pub use logs::{LogEvent, LogPosition, LogsResponse, line_of_event_id};
pub use playbook::{
    Parameter, ParameterAllowance, ParameterType, Playbook, PlaybookTerms, PlaybooksResponse, PutPlaybookResponse, RemovePlaybookResponse,
    RunPlaybookRequest,
};
pub use queue::{
    DeadLetter, NotRedriven, PutQueueRequest, Queue, QueuePause, QueueTermsResponse, RedriveRequest, RedriveResponse, Redriven,
};
pub use reconcile::{AuthorizerStatus, ComputeStatus, IdentityStatus, ReconcileIssue, ReconcileReport, ReconcileResponse, SecretsStatus};
pub use recovery::{RecoverRequest, RecoverResponse};
pub use rule::{Effect, Rule, RuleResponse, RulesResponse, Verdict};
pub use run::{RunRequest, RunResponse};
pub use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
pub use runvoy_model::phrase::{counted, one_of, unknown};
pub use runvoy_model::time::UnixMs;
pub use search::{Hit, SearchResponse};
pub use secret::{
    CreateSecretRequest, DeleteSecretResponse, RotateSealingKeyResponse, SaveSecretResponse, Secret, SecretResponse, SecretsResponse,
    UpdateSecretRequest,
};
pub use sensitive::Sensitive;
pub use status::{Reason, Status, StatusResponse, WaitResponse};
pub use task::{Task, TaskChange, TaskDefaults, TaskRequest, TaskRevision, TaskStatus};
pub use task_health::{HealthWord, TaskHealth, TaskHealthResponse, TaskHealthSummary};
pub use time::Rfc3339;
pub use trace::{RelatedResources, TraceLog, TraceResponse};
pub use user::{
    CreateUserRequest, CreateUserResponse, RenewInvitationRequest, RevokeUserRequest, RevokeUserResponse, SetRoleRequest, SetRoleResponse,
    User, UsersResponse,
};
pub use whoami::Whoami;
pub use worker::{
    CreateWorkerRequest, CreateWorkerResponse, DrainWorkerResponse, RevokeWorkerResponse, RotateSigningKeyResponse, Worker, WorkerAccount,
};

/// Reads a field that Go clients send as `null` where it is empty.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de> + Default,
{
    Ok(<Option<T> as serde::Deserialize>::deserialize(deserializer)?.unwrap_or_default())
}
