//! The whole record of an execution.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::status::{Reason, Status};
use crate::time::Rfc3339;

/// Answer to `GET /executions/{id}`, and an item of `GET /executions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Execution {
    /// Its id.
    pub execution_id: String,
    /// Who submitted it.
    #[serde(default)]
    pub created_by: String,
    /// Who else it belongs to.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub owned_by: Vec<String>,
    /// The command as stored.
    #[serde(default)]
    pub command: String,
    /// Arguments of the program, where it runs without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The image it runs in.
    #[serde(default)]
    pub image_id: String,
    /// When its command started; until then, when it was submitted.
    pub started_at: Rfc3339,
    /// When it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Rfc3339>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Rfc3339>,
    /// Where it is.
    pub status: Status,
    /// `null` until it ended.
    pub exit_code: Option<i32>,
    /// Whole seconds from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u64>,
    /// Where its log is mirrored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_stream_name: Option<String>,
    /// The request that made it.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The request that changed it last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// `LOCAL` or `AWS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
    /// The lock it holds, held or waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_name: Option<String>,
    /// The queue it went through.
    #[serde(default)]
    pub queue: String,
    /// How many attempts began.
    #[serde(default)]
    pub attempt: u32,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<Reason>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Reason>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Words of the user's own.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What a worker must have to take it.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_labels: BTreeMap<String, String>,
    /// It runs on a terminal of its own: its output is one stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// The job it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The task of that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// How it ran: `process`, `container`, `fargate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The worker that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The machine it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The ECS task it ran as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_arn: Option<String>,
    /// Its worker has not been heard of for longer than its lease lasts; the command may still run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worker_unreachable: bool,
    /// It was given up after its last attempt, and was not run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
    /// What it was run again as after it was given up; absent where its job makes that.
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
