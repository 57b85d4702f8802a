//! Forgets what may be forgotten, a little at a time, so that the writer is never held up.

use std::sync::Arc;
use std::time::Duration;

use runvoy_ports::store::Retention;

use crate::Engine;
use crate::error::EngineError;

const DAY_MS: i64 = 24 * 3600 * 1000;
/// How long a repeat of a step or of a submit is recognised.
const RECEIPTS_MS: i64 = DAY_MS;
const EVERY: Duration = Duration::from_secs(600);
const ROWS_AT_ONCE: usize = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// The agent.
pub struct Pruner {
    engine: Arc<Engine>,
}

impl Pruner {
    /// A pruner for this engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Prunes every ten minutes until dropped.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            if let Err(error) = self.prune().await {
                tracing::warn!(%error, "pruning did not finish");
            }
        }
    }

    /// Prunes everything that is due now.
    pub async fn prune(&self) -> Result<(), EngineError> {
        let (ports, retention) = (&self.engine.ports, self.engine.config.retention);
        let now = self.engine.now();
        let due = Retention {
            heartbeats_before: now.plus_ms(-i64::from(retention.heartbeat_days) * DAY_MS),
            receipts_before: now.plus_ms(-RECEIPTS_MS),
            max_rows: ROWS_AT_ONCE,
        };
        while ports.store.prune(due).await? > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let logs = ports.logs.prune(now.plus_ms(-i64::from(retention.log_days) * DAY_MS)).await?;
        if logs.logs > 0 {
            tracing::info!(logs = logs.logs, bytes = logs.bytes, "old logs were removed");
        }
        Ok(())
    }
}
