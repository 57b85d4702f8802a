//! The status of an execution, and why it waits or ended.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::Rfc3339;

/// The status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Status {
    /// Queued; `waiting_for` says why.
    Pending,
    /// Leased by a worker; the command has not started.
    Starting,
    /// The command runs.
    Running,
    /// Being killed.
    Terminating,
    /// Finished with exit code 0.
    Succeeded,
    /// Finished otherwise; `end_reason` says why.
    Failed,
    /// Killed by a user.
    Stopped,
}

/// A word that is no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a status: expected PENDING, STARTING, RUNNING, TERMINATING, SUCCEEDED, FAILED or STOPPED")]
pub struct InvalidStatus;

impl Status {
    /// Every status, in the order of a life.
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Starting, Self::Running, Self::Terminating, Self::Succeeded, Self::Failed, Self::Stopped];

    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Terminating => "TERMINATING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Stopped => "STOPPED",
        }
    }

    /// Nothing changes it any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Stopped)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = InvalidStatus;

    fn from_str(word: &str) -> Result<Self, InvalidStatus> {
        Self::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(word)).ok_or(InvalidStatus)
    }
}

/// Why an execution finished, or why it is queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reason {
    /// The reason for programs, such as `exit`, `timeout` or `lock`.
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
}

/// The status of an execution, with its reasons and times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatusResponse {
    /// The execution's id.
    pub execution_id: String,
    /// The status.
    pub status: Status,
    /// The command as it was submitted.
    #[serde(default)]
    pub command: String,
    /// The id of the image.
    #[serde(default)]
    pub image_id: String,
    /// When the command started; until then, when it was submitted.
    pub started_at: Rfc3339,
    /// The exit code; null until it finishes.
    pub exit_code: Option<i32>,
    /// When it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Rfc3339>,
    /// When it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Rfc3339>,
    /// Why it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<Reason>,
    /// Why it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Reason>,
    /// Whole seconds from start to finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u64>,
    /// The cost in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How many attempts were started.
    #[serde(default)]
    pub attempt: u32,
    /// Whether its worker has been silent for longer than the lease; the command may still be
    /// running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worker_unreachable: bool,
    /// Further information about the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The status at the end of a wait.
pub type WaitResponse = StatusResponse;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_execution_has_a_null_exit_code_and_no_end() {
        let status = StatusResponse {
            execution_id: "0192ab".into(),
            status: Status::Pending,
            command: "make".into(),
            image_id: String::new(),
            started_at: Rfc3339(0),
            exit_code: None,
            completed_at: None,
            submitted_at: Some(Rfc3339(0)),
            end_reason: None,
            waiting_for: Some(Reason { code: "lock".into(), message: "lock prod is held".into() }),
            duration_seconds: None,
            cost_usd: None,
            attempt: 0,
            worker_unreachable: false,
            message: None,
        };
        insta::assert_json_snapshot!(status, @r#"
        {
          "execution_id": "0192ab",
          "status": "PENDING",
          "command": "make",
          "image_id": "",
          "started_at": "1970-01-01T00:00:00.000Z",
          "exit_code": null,
          "submitted_at": "1970-01-01T00:00:00.000Z",
          "waiting_for": {
            "code": "lock",
            "message": "lock prod is held"
          },
          "attempt": 0
        }
        "#);
    }

    #[test]
    fn a_status_is_read_in_any_case() {
        assert_eq!("running".parse(), Ok(Status::Running));
        assert_eq!("asleep".parse::<Status>(), Err(InvalidStatus));
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_string(&status).expect("a word"), format!("\"{status}\""));
        }
    }
}
