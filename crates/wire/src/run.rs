//! Submitting: what a client asks for, and the answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::status::Status;

/// A command to run. Unknown fields are ignored, except those that look like a misspelled one: they
/// are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunRequest {
    /// The shell command to run; with `args`, the program to run.
    pub command: String,
    /// The program's arguments. With them, even with an empty list, no shell is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The image; default: the default image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Environment variables.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The timeout of an attempt in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// The names of the secrets to add to the environment.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo: Option<String>,
    /// The branch, tag or commit; default: the repository's default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<String>,
    /// The directory in the repository in which the command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_path: Option<String>,
    /// The name of the secret that holds the access token of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_token: Option<String>,
    /// A lock to hold while the command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// How many seconds to wait for the lock; default: fail at once if it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<u64>,
    /// The queue; default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority, from 1 (first) to 5 (last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Labels to find it by.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The labels that a worker must have to run it.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_labels: BTreeMap<String, String>,
    /// Run it on a pseudo-terminal without input; its output is one stream. Only with the image
    /// `local`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// How many times to retry after a failure that a retry may fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

/// The execution that was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunResponse {
    /// The execution's id.
    pub execution_id: String,
    /// The address of the execution's web page.
    pub log_url: String,
    /// The status at the time of the response.
    pub status: Status,
    /// The command as it was submitted.
    #[serde(default)]
    pub command: String,
    /// The id of the image.
    #[serde(default)]
    pub image_id: String,
    /// The WebSocket address to follow the log at, with a ticket that is valid for ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket_url: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_not_sent() {
        let request = RunRequest { command: "true".into(), ..RunRequest::default() };
        assert_eq!(serde_json::to_string(&request).expect("plain data"), r#"{"command":"true"}"#);
    }

    #[test]
    fn a_go_client_may_send_null_and_fields_of_its_own() {
        let text = r#"{"command":"true","env":null,"secrets":null,"labels":null,"image":null,"theirs":{"x":1}}"#;
        let request: RunRequest = serde_json::from_str(text).expect("tolerant");
        assert_eq!(request, RunRequest { command: "true".into(), ..RunRequest::default() });
    }
}
