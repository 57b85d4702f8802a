//! State derived from events alone, and its comparison with the state that is kept beside them: of an execution ([`ExecutionFold`]), of a job
//! and its tasks ([`JobCheck`]), of locks, of records ([`RecordCheck`]). Pending and starting count as one, for no event tells them apart. Fed one by one by whoever reads a
//! store; never reads one itself, and remembers one execution or one job at a time.

mod execution;
mod job;
mod mismatch;
mod record;
mod task;

pub use execution::{ExecutionFold, compare_lock};
pub use job::JobCheck;
pub use mismatch::{Comparison, Mismatch};
pub use record::RecordCheck;

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
    /// What an event of this kind makes of a task; `None` where it changes nothing.
    const fn after(kind: EventType) -> Option<Self> {
        match kind {
            EventType::TaskPending => Some(Self::Pending),
            EventType::TaskProcessingStarted | EventType::TaskProcessingFailed => Some(Self::Processing),
            EventType::TaskCompleted => Some(Self::Completed),
            EventType::TaskFailed | EventType::TaskTimeout | EventType::TaskStopped => Some(Self::Failed),
            EventType::TaskHeartbeat
            | EventType::TaskHealthCheck
            | EventType::JobCreated
            | EventType::JobTasksAdded
            | EventType::JobCompleted
            | EventType::JobFailureDetected
            | EventType::Audit
            | EventType::AuditCheckpoint => None,
        }
    }

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
#[error("event {number} ({}) cannot follow state {}", kind.as_str(), state.map_or("nothing", TaskState::as_str))]
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
    let mut fold = ExecutionFold::default();
    for event in events {
        fold.next(event.number, event)?;
    }
    Ok(fold.state())
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
