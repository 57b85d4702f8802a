//! The health of what runs, in the words of the event contract.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// The health of all running executions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskHealthResponse {
    /// When the check was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Rfc3339>,
    /// How many executions are in each state.
    pub summary: TaskHealthSummary,
    /// The executions, the worst first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub tasks: Vec<TaskHealth>,
}

/// How many running executions are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskHealthSummary {
    /// All running executions.
    #[serde(default)]
    pub total_processing: u64,
    /// Heard from recently.
    #[serde(default)]
    pub healthy: u64,
    /// Silent for a while.
    #[serde(default)]
    pub warning: u64,
    /// Silent for a long time.
    #[serde(default)]
    pub critical: u64,
    /// Running for a very long time.
    #[serde(default)]
    pub overtime: u64,
}

/// The health of a running execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskHealth {
    /// The execution's id.
    pub request_id: String,
    /// Its health.
    pub health: HealthWord,
    /// Milliseconds since it started.
    pub elapsed: u64,
    /// Milliseconds since its last event.
    pub time_since_last_event: u64,
    /// The type of that event.
    #[serde(default)]
    pub last_event_type: String,
    /// The worker that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The job that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The task in that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

/// The health of a running execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HealthWord {
    /// Heard from recently.
    Healthy,
    /// Silent for a while.
    Warning,
    /// Silent for a long time.
    Critical,
    /// Running for a very long time.
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
