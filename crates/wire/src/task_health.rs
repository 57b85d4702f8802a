//! The health of what runs, in the words of the event contract.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// Answer to `GET /health/tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskHealthResponse {
    /// When was looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Rfc3339>,
    /// How many are how.
    pub summary: TaskHealthSummary,
    /// Each of them, the worst first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub tasks: Vec<TaskHealth>,
}

/// How many running executions are how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskHealthSummary {
    /// All that run.
    #[serde(default)]
    pub total_processing: u64,
    /// Heard of a short while ago.
    #[serde(default)]
    pub healthy: u64,
    /// Quiet for a while.
    #[serde(default)]
    pub warning: u64,
    /// Quiet for long.
    #[serde(default)]
    pub critical: u64,
    /// Running for very long.
    #[serde(default)]
    pub overtime: u64,
}

/// How one execution is. Answer to `GET /health/tasks/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskHealth {
    /// The execution.
    pub request_id: String,
    /// How it is.
    pub health: HealthWord,
    /// Milliseconds since it began.
    pub elapsed: u64,
    /// Milliseconds since its last event.
    pub time_since_last_event: u64,
    /// What that event was.
    #[serde(default)]
    pub last_event_type: String,
    /// The worker that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The job it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The task of that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

/// How an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HealthWord {
    /// Heard of a short while ago.
    Healthy,
    /// Quiet for a while.
    Warning,
    /// Quiet for long.
    Critical,
    /// Running for very long.
    Overtime,
}

impl HealthWord {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Warning => "warning",
            Self::Critical => "critical",
            Self::Overtime => "overtime",
        }
    }
}

impl fmt::Display for HealthWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_the_event_contract_is_read() {
        let text = r#"{"summary":{"totalProcessing":4,"healthy":2,"warning":1,"critical":0,"overtime":1},"tasks":[{"requestId":"req-456",
            "health":"overtime","elapsed":3800000,"timeSinceLastEvent":20000,"lastEventType":"Task Heartbeat","workerId":"worker-i-002"}]}"#;
        let answer: TaskHealthResponse = serde_json::from_str(text).expect("the contract's fields");
        assert_eq!((answer.summary.total_processing, answer.tasks[0].health), (4, HealthWord::Overtime));
    }
}
