//! What the end of an attempt or of an execution means for its events: its lines are whole before anybody says how far they go, and both logs are sealed
//! together.

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_ports::log::LogError;

use super::standing::Standing;
use crate::Engine;

impl Engine {
    /// Makes the lines that a crash left out of what was published, before an attempt ends. Whatever is known here is whole already.
    pub(crate) async fn settle_events(&self, id: ExecutionId) {
        if !self.may_have_events(id) {
            return;
        }
        if let Err(error) = self.settle(id).await {
            tracing::warn!(execution = %id, %error, "lines of published output may be missing");
        }
    }

    async fn settle(&self, id: ExecutionId) -> Result<(), LogError> {
        if self.ports.logs.extent(id.event_log()).await?.next_line <= 1 {
            return Ok(());
        }
        let execution = self.ports.store.get(id).await.map_err(|error| LogError::Storage(Box::new(error)))?;
        let Some(execution) = execution else { return Ok(()) };
        let slot = self.desk.slot(id);
        let mut ledger = slot.lock().await;
        if ledger.as_ref().is_none_or(|ledger| ledger.attempt != execution.attempt) {
            let (attempt, late) = (execution.attempt, execution.status.is_terminal());
            self.load_ledger(&Standing { execution, attempt, late }).await?;
            // Without its masks it is not for use.
            *ledger = None;
        }
        Ok(())
    }

    /// Closes the log of an execution's events, if it has one.
    pub(crate) async fn seal_events(&self, execution: &Execution) -> Result<(), LogError> {
        let ran_here = execution.attempt <= 1 && execution.ran_on.as_ref().is_none_or(|ran_on| ran_on.worker == self.worker.id);
        if ran_here || !self.may_have_events(execution.id) {
            return Ok(());
        }
        self.desk.forget(execution.id);
        self.seal_events_left(execution.id).await
    }

    /// The same, for one that may have been left open by an earlier start.
    pub(crate) async fn seal_events_left(&self, id: ExecutionId) -> Result<(), LogError> {
        let log = id.event_log();
        let extent = self.ports.logs.extent(log).await?;
        if extent.next_line > 1 && !extent.sealed {
            self.ports.logs.seal(log, extent.next_line - 1).await?;
        }
        Ok(())
    }

    fn may_have_events(&self, id: ExecutionId) -> bool {
        self.config.shares_store() || self.desk.may_know(id)
    }
}
