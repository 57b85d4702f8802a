//! Waits for a lock that took longer than was asked for end here, and those of what nobody could run.

use runvoy_model::status::Status;

use crate::Engine;
use crate::error::EngineError;

impl Engine {
    pub(crate) async fn expire_waits(&self) -> Result<(), EngineError> {
        for id in self.ports.store.waits_ended(self.now()).await? {
            self.note(id, "the lock was not free in time").await;
            if let Some(execution) = self.ports.store.expire_wait(self.system_step("reaper"), id).await? {
                self.ended(&execution).await;
            }
        }
        Ok(())
    }

    /// Gives up what waits and what leases could not read, however often they tried.
    pub(crate) async fn give_up_unreadable(&self) -> Result<(), EngineError> {
        for (id, why) in self.ports.store.unreadable() {
            // Another server may have been faster: then its log says why already.
            if self.ports.store.get(id).await?.is_none_or(|execution| execution.status != Status::Pending) {
                continue;
            }
            self.note(id, &format!("given up: what it was to run cannot be read: {why}")).await;
            if let Some(execution) = self.ports.store.give_up(self.system_step("reaper"), id, why).await? {
                self.ended(&execution).await;
            }
        }
        Ok(())
    }
}
