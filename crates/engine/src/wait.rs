//! Waits for a lock that took longer than was asked for end here.

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
}
