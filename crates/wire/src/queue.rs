//! Queues: what waits, what runs, and what was given up.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// A named line of executions. An item of `GET /queues`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// How many executions wait in it.
    #[serde(default)]
    pub depth: u64,
    /// Since when the oldest of them waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Rfc3339>,
    /// How many executions are with a worker.
    #[serde(default)]
    pub in_flight: u64,
    /// How many were given up and have not been run again.
    #[serde(default)]
    pub dead: u64,
    /// How many workers that are live serve it.
    #[serde(default)]
    pub workers: u64,
    /// Somebody has stopped it: it hands nothing out, what runs goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<QueuePause>,
    /// So many of it may be with workers at once; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// So many of each user's may be; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<u32>,
    /// How many are with workers under its limits; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places_taken: Option<u64>,
}

/// Who has stopped a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuePause {
    /// Who.
    pub by: String,
    /// When.
    pub at: Rfc3339,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Body of `PUT /queues/{name}`. What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutQueueRequest {
    /// Stop it, or let it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Why it is stopped, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// So many of it may be with workers at once, 1 to 1000; 0 takes the limit away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// So many of each user's may be, 1 to 1000; 0 takes the limit away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<u32>,
}

/// Answer to `PUT /queues/{name}` and `DELETE /queues/{name}`: the terms from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueTermsResponse {
    /// The queue.
    pub name: String,
    /// Somebody has stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<QueuePause>,
    /// So many of it may be with workers at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// So many of each user's may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<u32>,
    /// What happened, for a person.
    #[serde(default)]
    pub message: String,
}

/// An execution that was given up after its last attempt. An item of `GET /queues/{name}/dead`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// The execution.
    pub execution_id: String,
    /// Its queue.
    pub queue: String,
    /// Who submitted it.
    #[serde(default)]
    pub created_by: String,
    /// The command as stored.
    #[serde(default)]
    pub command: String,
    /// The job it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The task of that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// How many attempts there were.
    #[serde(default)]
    pub attempts: u32,
    /// What the last one failed of.
    #[serde(default)]
    pub error: String,
    /// What kind of failure that was: `network`, `timeout`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_category: Option<String>,
    /// When it was given up.
    pub failed_at: Rfc3339,
}

/// Body of `POST /queues/{name}/redrive`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedriveRequest {
    /// Only these, at most 50; absent: the oldest of all that were given up, as many as one request takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_ids: Option<Vec<String>>,
    /// Of all, those after the last that an earlier request looked at: `next` of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Answer to `POST /queues/{name}/redrive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedriveResponse {
    /// The queue.
    pub queue: String,
    /// What runs again.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub redriven: Vec<Redriven>,
    /// What does not run again, and stays given up.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<NotRedriven>,
    /// What can never run again, and is not listed as given up any more.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<NotRedriven>,
    /// How many given-up ones were not looked at, where there were more than one request takes. They are counted up to 10,000.
    #[serde(default)]
    pub left: u64,
    /// Where the next request goes on for those (`after`); absent where none are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What happened, for a person.
    #[serde(default)]
    pub message: String,
}

/// An execution that runs again as a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Redriven {
    /// The one that was given up.
    pub execution_id: String,
    /// The new one; absent where a job makes it when its turn comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_execution_id: Option<String>,
    /// The job that was resumed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

/// An execution that does not run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotRedriven {
    /// The one that was given up.
    pub execution_id: String,
    /// Why it does not.
    #[serde(default)]
    pub error: String,
}
