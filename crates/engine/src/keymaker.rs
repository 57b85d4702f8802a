//! Looks after the keys that sign task tokens: learns of those that other servers made, well within the time that a token of the key before is still believed,
//! and makes another when the newest is old.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use crate::Engine;
use crate::error::EngineError;

const EVERY: Duration = Duration::from_secs(600);

/// The agent.
pub struct Keymaker {
    engine: Arc<Engine>,
}

impl Keymaker {
    /// A keymaker for this engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Looks at once and then every ten minutes, until dropped.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.turn().await {
                let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
                tracing::warn!(%error, cause, "the keys of task tokens were not checked");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Looks once.
    pub async fn turn(&self) -> Result<(), EngineError> {
        self.engine.keep_signing_keys().await
    }
}
