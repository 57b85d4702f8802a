//! Jobs: DAGs of tasks, as they are asked for and as they are shown. The fields of a job are camelCase.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::task::{Task, TaskChange, TaskDefaults, TaskRequest};
use crate::time::Rfc3339;

/// The shape of a job can be checked before it is sent.
pub use runvoy_model::dag::{DagError, check as check_shape};

/// A job to submit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateJobRequest {
    /// The job's name; need not be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A unique key of your choice; the same as the header `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Settings for every task that does not have its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<TaskDefaults>,
    /// How many of its tasks may run at the same time; default: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The tasks, from 1 to 20,000.
    pub tasks: Vec<TaskRequest>,
}

/// The job that was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateJobResponse {
    /// The job's id.
    pub job_id: String,
    /// How many tasks the job has.
    pub total_tasks: u64,
    /// How many tasks have no dependencies.
    pub root_tasks: u64,
}

/// Tasks to add to a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddTasksRequest {
    /// Settings for each of these tasks that does not have its own. The defaults of the job itself
    /// are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<TaskDefaults>,
    /// The tasks. They may depend on each other and on tasks of the job.
    pub tasks: Vec<TaskRequest>,
}

/// The result of adding tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddTasksResponse {
    /// The job's id.
    pub job_id: String,
    /// How many tasks were added.
    pub added_tasks: u64,
    /// How many tasks the job has now.
    pub total_tasks: u64,
}

/// Changes of tasks for a job that is resumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResumeJobRequest {
    /// Tasks that run something else from now on: failed ones, and those that wait for them.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskChange>,
}

/// The result of resuming or cancelling a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobResponse {
    /// The job's id.
    pub job_id: String,
    /// The job's status.
    pub status: JobStatus,
    /// The result as a sentence.
    pub message: String,
}

/// The status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum JobStatus {
    /// At least one task can still run.
    Running,
    /// A task failed and no other task can run. The job can be resumed.
    Failed,
    /// Every task has completed.
    Completed,
    /// A user cancelled it.
    Cancelled,
}

/// A word that is no status of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a status of a job: expected RUNNING, FAILED, COMPLETED or CANCELLED")]
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

/// A job. Lists of jobs, and `tasks=0`, leave out `tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    /// The job's id.
    pub job_id: String,
    /// The job's name; need not be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The idempotency key that it was submitted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The job's status.
    pub status: JobStatus,
    /// When it was submitted.
    pub created_at: Rfc3339,
    /// When it was completed or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Rfc3339>,
    /// The user who submitted it.
    #[serde(default)]
    pub created_by: String,
    /// How many of its tasks may run at the same time; default: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many tasks the job has.
    pub total_tasks: u64,
    /// How many tasks are in each state.
    #[serde(default)]
    pub task_counts: TaskCounts,
    /// The first task that failed since the last resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_task_id: Option<String>,
    /// The tasks, in the order in which they were submitted.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
}

/// How many tasks of a job are in each state. The sum is the number of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskCounts {
    /// Tasks that wait for other tasks, or for the job's concurrency.
    #[serde(default)]
    pub waiting: u64,
    /// Tasks that are queued or running.
    #[serde(default)]
    pub running: u64,
    /// Tasks that completed.
    #[serde(default)]
    pub completed: u64,
    /// Tasks that failed or were stopped.
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
