//! Submitting: what a client asks for, and the answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::status::Status;

/// Body of `POST /run`. Fields that are not known here are ignored, for other clients may send more; one that looks like a slip of a known one is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunRequest {
    /// A shell command, or a program where `args` is given.
    pub command: String,
    /// Arguments of the program, which then runs without a shell, also where the list is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// A registered image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Environment; names match `[A-Za-z_][A-Za-z0-9_]*`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Seconds until it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Names of secrets to put into the environment.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// A repository to check out first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo: Option<String>,
    /// Its branch, tag or commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<String>,
    /// The directory in it where the command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_path: Option<String>,
    /// The name of the secret that holds the token for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_token: Option<String>,
    /// A lock to hold while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Seconds to wait in line for the lock; absent: refuse at once where it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<u64>,
    /// The queue; absent: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// 1 (first) to 5 (last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Words of the user's own to find it by.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What a worker must have to take it, beside serving its queue.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_labels: BTreeMap<String, String>,
    /// Run it on a terminal of its own: its output is one stream, and nobody types. Only in the image `local`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// Further attempts after one that failed retryably.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

/// Answer to `POST /run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunResponse {
    /// The new execution.
    pub execution_id: String,
    /// The web page of this execution.
    pub log_url: String,
    /// Its status when the answer was made.
    pub status: Status,
    /// The command as stored.
    #[serde(default)]
    pub command: String,
    /// The image it runs in.
    #[serde(default)]
    pub image_id: String,
    /// Where its log can be followed, with a ticket for ten minutes.
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
