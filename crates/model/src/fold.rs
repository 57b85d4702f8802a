//! The state of an execution derived from its events alone. It must equal the record kept beside them, where
//! pending and starting count as one.

use crate::event::{Event, EventType};
use crate::status::Status;

/// What the events of a task say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// Waiting or reserved.
    Pending,
    /// A worker runs it.
    Processing,
    /// It returned 0.
    Completed,
    /// It ended otherwise, or was killed.
    Failed,
}

impl TaskState {
    /// The word in job events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// An event that cannot follow the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("event {number} ({kind:?}) cannot follow state {state:?}")]
pub struct Impossible {
    /// Its number.
    pub number: u64,
    /// What it says.
    pub kind: EventType,
    /// The state before it.
    pub state: Option<TaskState>,
}

/// Folds the events of one task, in order. `None` if there are none.
pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Option<TaskState>, Impossible> {
    let mut state = None;
    for event in events {
        let late = event.properties.get("late").and_then(serde_json::Value::as_bool).unwrap_or(false);
        let next = match event.kind {
            _ if late => continue,
            EventType::TaskHeartbeat
            | EventType::TaskHealthCheck
            | EventType::JobCreated
            | EventType::JobTasksAdded
            | EventType::JobCompleted
            | EventType::JobFailureDetected
            | EventType::Audit
            | EventType::AuditCheckpoint => continue,
            EventType::TaskPending => TaskState::Pending,
            EventType::TaskProcessingStarted | EventType::TaskProcessingFailed => TaskState::Processing,
            EventType::TaskCompleted => TaskState::Completed,
            EventType::TaskFailed | EventType::TaskTimeout | EventType::TaskStopped => TaskState::Failed,
        };
        if matches!(state, Some(TaskState::Completed | TaskState::Failed)) {
            return Err(Impossible { number: event.number, kind: event.kind, state });
        }
        state = Some(next);
    }
    Ok(state)
}

/// What the events of an execution with this status must fold to.
pub const fn expected(status: Status) -> TaskState {
    match status {
        Status::Pending | Status::Starting => TaskState::Pending,
        Status::Running | Status::Terminating => TaskState::Processing,
        Status::Succeeded => TaskState::Completed,
        Status::Failed | Status::Stopped => TaskState::Failed,
    }
}
