//! Jobs: DAGs of tasks, as they are asked for and as they are shown. The fields of a job are camelCase.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::task::{Task, TaskChange, TaskDefaults, TaskRequest};
use crate::time::Rfc3339;

/// The shape of a job can be checked before it is sent.
pub use runvoy_model::dag::{DagError, check as check_shape};

/// Body of `POST /jobs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateJobRequest {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client's own key: two submits with the same one are one job. The same thing as the header `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What holds for every task that does not say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<TaskDefaults>,
    /// So many of its tasks may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The tasks, 1 to 20,000.
    pub tasks: Vec<TaskRequest>,
}

/// Answer to `POST /jobs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateJobResponse {
    /// The new job.
    pub job_id: String,
    /// How many tasks it has.
    pub total_tasks: u64,
    /// How many of them wait for no other.
    pub root_tasks: u64,
}

/// Body of `POST /jobs/{id}/tasks`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddTasksRequest {
    /// What holds for every one of these tasks that does not say otherwise; the defaults that the job began with are not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<TaskDefaults>,
    /// The tasks; they may depend on each other and on those that are there.
    pub tasks: Vec<TaskRequest>,
}

/// Answer to `POST /jobs/{id}/tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddTasksResponse {
    /// The job.
    pub job_id: String,
    /// How many tasks came with this request.
    pub added_tasks: u64,
    /// How many it has now.
    pub total_tasks: u64,
}

/// Body of `POST /jobs/{id}/resume`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResumeJobRequest {
    /// Tasks that run something else from now on: those that failed, and those that wait for them.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskChange>,
}

/// Answer to `POST /jobs/{id}/resume` and `POST /jobs/{id}/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobResponse {
    /// The job.
    pub job_id: String,
    /// Where it is now.
    pub status: JobStatus,
    /// What happened, for a person.
    pub message: String,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum JobStatus {
    /// Something of it can still move.
    Running,
    /// A task failed and nothing more can move. It can be resumed.
    Failed,
    /// Every task is done.
    Completed,
    /// Somebody ended it.
    Cancelled,
}

/// A word that is no status of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a status of a job: expected one of RUNNING FAILED COMPLETED CANCELLED")]
pub struct InvalidJobStatus;

impl JobStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Running, Self::Failed, Self::Completed, Self::Cancelled];

    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Failed => "FAILED",
            Self::Completed => "COMPLETED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for JobStatus {
    type Err = InvalidJobStatus;

    fn from_str(word: &str) -> Result<Self, InvalidJobStatus> {
        Self::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(word)).ok_or(InvalidJobStatus)
    }
}

/// Answer to `GET /jobs/{id}`, and an item of `GET /jobs`, where `tasks` is absent. `GET /jobs/{id}?tasks=0` leaves the tasks out as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    /// Its id.
    pub job_id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client's own key for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Where it is.
    pub status: JobStatus,
    /// When it was submitted.
    pub created_at: Rfc3339,
    /// When it was completed or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Rfc3339>,
    /// Who submitted it.
    #[serde(default)]
    pub created_by: String,
    /// So many of its tasks may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many tasks it has.
    pub total_tasks: u64,
    /// How many of them are where.
    #[serde(default)]
    pub task_counts: TaskCounts,
    /// The first task that failed since the last resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_task_id: Option<String>,
    /// Its tasks, in the order they were given.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
}

/// How many tasks of a job are where. Together they are all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskCounts {
    /// Waiting for other tasks, or for their turn.
    #[serde(default)]
    pub waiting: u64,
    /// Executions that have not ended.
    #[serde(default)]
    pub running: u64,
    /// Done.
    #[serde(default)]
    pub completed: u64,
    /// Ended otherwise.
    #[serde(default)]
    pub failed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_list_of_the_event_contract_is_a_job() {
        let text = r#"{"requestId":"req-789","tasks":[{"taskId":"task-A","name":"scrape-store","dependsOn":[],"input":{"storeId":"store-123"},"command":"true"},
            {"taskId":"task-C","name":"color-tags","dependsOn":["task-A"],"input":{"style":"modern"},"command":"true"}]}"#;
        let request: CreateJobRequest = serde_json::from_str(text).expect("a job");
        assert_eq!((request.tasks.len(), request.tasks[1].depends_on.as_slice()), (2, &["task-A".to_owned()][..]));
        assert!(serde_json::from_str::<CreateJobRequest>(r#"{"taks":[],"tasks":[]}"#).is_err());
    }

    #[test]
    fn a_job_is_camel_case_and_says_nothing_of_what_is_absent() {
        let text = r#"{"jobId":"0192","status":"FAILED","createdAt":"2026-01-03T14:22:19.000Z","createdBy":"ana","totalTasks":2,"taskCounts":{"waiting":1,"running":0,"completed":0,"failed":1},"failedTaskId":"a"}"#;
        let job: Job = serde_json::from_str(text).expect("a job");
        assert_eq!(serde_json::to_string(&job).expect("plain data"), text);
        assert_eq!("cancelled".parse(), Ok(JobStatus::Cancelled));
    }
}
