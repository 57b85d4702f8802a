//! Queues: what waits, what runs, and what was given up.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Queue {
    /// The queue's name.
    pub name: String,
    /// How many executions wait in it.
    #[serde(default)]
    pub depth: u64,
    /// When the oldest waiting execution was queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Rfc3339>,
    /// How many executions are leased by a worker.
    #[serde(default)]
    pub in_flight: u64,
    /// How many dead letters it has.
    #[serde(default)]
    pub dead: u64,
    /// How many online workers serve it.
    #[serde(default)]
    pub workers: u64,
    /// Present if the queue is paused: no worker leases from it; running executions go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<QueuePause>,
    /// How many of its executions may run at the same time; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many of its executions may run at the same time per user; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<u32>,
    /// How many executions count towards its limits now; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places_taken: Option<u64>,
}

/// Who paused a queue, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuePause {
    /// The user who paused it.
    pub by: String,
    /// When it was paused.
    pub at: Rfc3339,
    /// Why it was paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Settings of a queue to change. Absent settings are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutQueueRequest {
    /// Whether to pause the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Why it is paused; only together with `paused: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many of its executions may run at the same time, from 1 to 1000; 0 removes the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many of its executions may run at the same time per user, from 1 to 1000; 0 removes the
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<u32>,
}

/// The settings of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueTermsResponse {
    /// The queue's name.
    pub name: String,
    /// Present if the queue is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<QueuePause>,
    /// How many of its executions may run at the same time; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many of its executions may run at the same time per user; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<u32>,
    /// The result as a sentence.
    #[serde(default)]
    pub message: String,
}

/// A dead letter: an execution that failed for good after its last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// The execution's id.
    pub execution_id: String,
    /// The queue.
    pub queue: String,
    /// The user who submitted it.
    #[serde(default)]
    pub created_by: String,
    /// The command as it was submitted.
    #[serde(default)]
    pub command: String,
    /// The job that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The task in that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// How many attempts there were.
    #[serde(default)]
    pub attempts: u32,
    /// Why the last attempt failed.
    #[serde(default)]
    pub error: String,
    /// The kind of failure, such as `network` or `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_category: Option<String>,
    /// When it became a dead letter.
    pub failed_at: Rfc3339,
}

/// Which dead letters to run again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedriveRequest {
    /// The dead letters to run again, at most 50; default: the oldest ones, as many as fit in one
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_ids: Option<Vec<String>>,
    /// Continue after an earlier request: the `next` of its response. Not together with
    /// `execution_ids`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The result of a redrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedriveResponse {
    /// The queue's name.
    pub queue: String,
    /// The dead letters that run again.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub redriven: Vec<Redriven>,
    /// The dead letters that cannot run again now, and remain dead letters.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub refused: Vec<NotRedriven>,
    /// The dead letters that can never run again, and were removed from the list.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub dropped: Vec<NotRedriven>,
    /// How many dead letters are left for further requests, counted up to 10,000.
    #[serde(default)]
    pub left: u64,
    /// The `after` of the next request; absent if none are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The result as a sentence.
    #[serde(default)]
    pub message: String,
}

/// A dead letter that runs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Redriven {
    /// The dead letter's execution id.
    pub execution_id: String,
    /// The id of the new execution; absent if a job creates it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_execution_id: Option<String>,
    /// The job that was resumed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

/// A dead letter that does not run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotRedriven {
    /// The dead letter's execution id.
    pub execution_id: String,
    /// Why not.
    #[serde(default)]
    pub error: String,
}
