//! The whole record of an execution.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::status::{Reason, Status};
use crate::time::Rfc3339;

/// An execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Execution {
    /// The execution's id.
    pub execution_id: String,
    /// The user who submitted it.
    #[serde(default)]
    pub created_by: String,
    /// The users that own it.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub owned_by: Vec<String>,
    /// The command as it was submitted.
    #[serde(default)]
    pub command: String,
    /// The program's arguments, if it runs without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The id of the image.
    #[serde(default)]
    pub image_id: String,
    /// When the command started; until then, when it was submitted.
    pub started_at: Rfc3339,
    /// When it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Rfc3339>,
    /// When it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Rfc3339>,
    /// Where it is.
    pub status: Status,
    /// The exit code; null until it finishes.
    pub exit_code: Option<i32>,
    /// Whole seconds from start to finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u64>,
    /// The CloudWatch log stream that the log is copied to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_stream_name: Option<String>,
    /// The id of the request that created it.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The id of the request that changed it last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// Where it runs: `LOCAL` or `AWS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
    /// The lock that it holds, held or waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_name: Option<String>,
    /// The queue.
    #[serde(default)]
    pub queue: String,
    /// How many attempts were started.
    #[serde(default)]
    pub attempt: u32,
    /// Why it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<Reason>,
    /// Why it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Reason>,
    /// The cost in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Labels to find it by.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The labels that a worker must have to run it.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub worker_labels: BTreeMap<String, String>,
    /// Whether it runs on a pseudo-terminal, with its output as one stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// The job that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The task in that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The runner: `process`, `container` or `fargate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The worker that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The machine that it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The ARN of the ECS task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_arn: Option<String>,
    /// Whether its worker has been silent for longer than the lease; the command may still be
    /// running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worker_unreachable: bool,
    /// Whether it is a dead letter: it failed for good and was not run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
    /// The execution that a redrive created; absent if its job creates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_as: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_other_servers_send_are_enough() {
        let text = r#"{"execution_id":"0192ab","created_by":"ana@example.com","owned_by":null,"command":"true",
            "started_at":"2026-01-03T14:22:19Z","status":"SUCCEEDED","exit_code":0}"#;
        let execution: Execution = serde_json::from_str(text).expect("the contract's own fields");
        assert_eq!((execution.status, execution.exit_code, execution.owned_by.len()), (Status::Succeeded, Some(0), 0));
    }
}
