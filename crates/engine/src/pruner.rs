//! Forgets what may be forgotten, a little at a time, so that the writer is never held up.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::change::Change;
use runvoy_model::execution::Execution;
use runvoy_model::record::{Kind, Record};
use runvoy_model::status::Status;
use runvoy_ports::store::{ListQuery, Retention, StoreError};

use crate::Engine;
use crate::error::EngineError;

const DAY_MS: i64 = 24 * 3600 * 1000;
/// How long a repeat of a step or of a submit is recognised.
const RECEIPTS_MS: i64 = DAY_MS;
const FIRST_AFTER: Duration = Duration::from_secs(5);
const EVERY: Duration = Duration::from_secs(600);
/// Those that were left open are among the newest.
const LEFT_OPEN_AMONG: usize = 200;
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

    /// Prunes soon after the start and then every ten minutes, until dropped.
    pub async fn run(self) {
        // A server that the command line started lives for seconds: it prunes too.
        tokio::time::sleep(FIRST_AFTER).await;
        if let Err(error) = self.seal_left_open().await {
            tracing::warn!(%error, "logs that an earlier start left open were not sealed");
        }
        loop {
            if let Err(error) = self.prune().await {
                tracing::warn!(%error, "pruning did not finish");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Seals the logs of executions that ended right before an earlier start did: an unsealed log is never packed or pruned.
    async fn seal_left_open(&self) -> Result<(), EngineError> {
        let statuses = Status::ALL.into_iter().filter(|status| status.is_terminal()).collect();
        let query = ListQuery { statuses, limit: LEFT_OPEN_AMONG, ..ListQuery::default() };
        for execution in self.engine.ports.store.list(query).await? {
            // One that cannot be read must not keep the others open.
            if let Err(error) = self.seal_if_open(&execution).await {
                tracing::warn!(execution = %execution.id, %error, "a log that was left open was not sealed");
            }
        }
        Ok(())
    }

    async fn seal_if_open(&self, execution: &Execution) -> Result<(), EngineError> {
        let extent = self.engine.log_extent(execution).await?;
        if !extent.sealed && extent.next_line > 1 {
            self.engine.seal(execution).await?;
        }
        Ok(self.engine.seal_events_left(execution.id).await?)
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
        self.forget_unclaimed().await
    }

    /// Forgets invitations that nobody answered in time. They were hidden from the moment they lapsed.
    async fn forget_unclaimed(&self) -> Result<(), EngineError> {
        let now = self.engine.now();
        let users = self.engine.all(Kind::User).await?;
        for user in users.iter().filter_map(Record::user).filter(|user| !user.exists(now)) {
            let change = Change::ForgetUnclaimed(user.email.clone());
            match self.engine.ports.store.change(self.engine.system_step("pruner"), change, None).await {
                // Whoever was invited again since is not forgotten.
                Ok(_) | Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
