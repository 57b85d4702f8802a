//! Whether an attempt may still publish. One that has lost its lease may, for a day, and what it says is marked late.

use runvoy_model::command::Fence;
use runvoy_model::execution::Execution;
use runvoy_ports::lease::LeaseError;

use crate::Engine;
use crate::lease::holds;

/// A lapsed attempt may publish for so long.
const LATE_FOR_MS: i64 = 24 * 3600 * 1000;

/// An attempt that publishes.
pub(super) struct Standing {
    pub(super) execution: Execution,
    pub(super) attempt: u32,
    /// Its lease is gone.
    pub(super) late: bool,
}

impl Engine {
    /// The execution under a fence and whether the fence still holds. Whose the fence is was proved by the token it came from.
    pub(super) async fn standing(&self, fence: Fence) -> Result<Standing, LeaseError> {
        let found = self.ports.store.get(fence.execution).await.map_err(|error| LeaseError::Unavailable(Box::new(error)))?;
        let execution = found.ok_or_else(|| LeaseError::Lost(format!("there is no execution {}", fence.execution)))?;
        let late = !holds(&execution, fence)? || execution.status.is_terminal();
        let lapsed_by = match execution.completed_at {
            Some(completed_at) => Some(completed_at),
            None if execution.attempt > fence.attempt => execution.attempt_started_at,
            None => None,
        };
        if late && lapsed_by.is_some_and(|at| self.now().ms_since(at) > LATE_FOR_MS) {
            return Err(LeaseError::Lost("it expired more than a day ago".into()));
        }
        Ok(Standing { execution, attempt: fence.attempt, late })
    }
}
