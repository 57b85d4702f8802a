//! Waits for a lock that took longer than was asked for end here, and those of what nobody could run.

use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;

use crate::Engine;
use crate::error::EngineError;

/// No more than this are given up in one look: whatever else the reaper looks at must not wait for thousands.
const MOST_GIVEN_UP: usize = 10;

impl Engine {
    pub(crate) async fn expire_waits(&self) -> Result<(), EngineError> {
        let mut first_error = None;
        for id in self.ports.store.waits_ended(self.now()).await? {
            // One that cannot be ended must not keep the others waiting.
            if let Err(error) = self.expire_wait(id).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn expire_wait(&self, id: ExecutionId) -> Result<(), EngineError> {
        let Some(execution) = self.ports.store.expire_wait(self.system_step("reaper"), id).await? else { return Ok(()) };
        self.note(id, "the lock did not become free in time").await;
        self.ended(&execution).await;
        Ok(())
    }

    /// Gives up what waits and what leases could not read, however often they tried.
    pub(crate) async fn give_up_unreadable(&self) -> Result<(), EngineError> {
        let mut first_error = None;
        for (id, why) in self.ports.store.unreadable(MOST_GIVEN_UP) {
            // One that cannot be given up must not keep the others from it.
            if let Err(error) = self.give_up(id, why).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn give_up(&self, id: ExecutionId, why: String) -> Result<(), EngineError> {
        // Another server may have been faster, and then the log says why already; or it can be read again, and will run.
        let found = self.ports.store.get(id).await?;
        if found.is_none_or(|execution| execution.status != Status::Pending || !execution.spec.is_lost()) {
            return Ok(());
        }
        self.note(id, &format!("cannot run: its record cannot be read: {why}")).await;
        if let Some(execution) = self.ports.store.give_up(self.system_step("reaper"), id, why).await? {
            self.ended(&execution).await;
        }
        Ok(())
    }
}
