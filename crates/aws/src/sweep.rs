//! Sends a message again for executions that could be leased for a while and seem to have none: theirs was lost, or never sent. It never sends
//! more in one round than [`MOST`], nor while a queue holds as many messages as it has such executions: those wake the same workers.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::store::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::queue::{Count, Queues};

/// How often it looks.
const TICK: Duration = Duration::from_secs(30);
/// What could be leased for less than this has its message on the way.
const PATIENCE: Duration = Duration::from_secs(60);
/// What got a message from us gets no other for so long.
const AGAIN_AFTER: Duration = Duration::from_secs(300);
/// In one round.
pub const MOST: usize = 200;

/// An execution that can be leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Which.
    pub execution: ExecutionId,
    /// Where it waits.
    pub queue: Name,
    /// The attempt that it waits for, from 1.
    pub attempt: u32,
}

/// Who knows what could be leased.
#[async_trait]
pub trait ReadySource: Send + Sync {
    /// Executions of any queue that could be leased at this time already, the longest waiting first where that is known; `max` at most.
    async fn ready_since(&self, before: UnixMs, max: usize) -> Result<Vec<Waiting>, StoreError>;
}

/// The agent.
pub struct Sweep {
    queues: Queues,
    source: Arc<dyn ReadySource>,
    clock: Arc<dyn Clock>,
    sent: HashMap<ExecutionId, Duration>,
}

impl Sweep {
    /// One that has sent nothing yet.
    pub fn new(queues: Queues, source: Arc<dyn ReadySource>, clock: Arc<dyn Clock>) -> Self {
        Self { queues, source, clock, sent: HashMap::new() }
    }

    /// Looks twice a minute until dropped.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(TICK).await;
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the sweep of wake-ups could not look");
            }
        }
    }

    /// Looks once; how many messages are sent again.
    pub async fn look(&mut self) -> Result<usize, StoreError> {
        let monotonic = self.clock.monotonic();
        self.sent.retain(|_, at| monotonic.saturating_sub(*at) < AGAIN_AFTER);
        let before = self.clock.now().plus_ms(-i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX));
        let mut overdue: BTreeMap<Name, Vec<Waiting>> = BTreeMap::new();
        for waiting in self.source.ready_since(before, MOST).await? {
            overdue.entry(waiting.queue.clone()).or_default().push(waiting);
        }
        let mut swept = 0;
        for (queue, waiting) in overdue {
            let depth = match self.queues.line(&queue).await {
                Ok(line) => line.depth().await,
                Err(fault) => Err(fault),
            };
            let missing = match depth {
                Ok(depth) => waiting.len().saturating_sub(depth),
                Err(fault) => {
                    self.queues.failed(&queue, &fault, "a queue could not be asked for its depth").await;
                    continue;
                }
            };
            let without =
                waiting.into_iter().filter(|one| !self.sent.contains_key(&one.execution) && !self.queues.has_message(one.execution));
            for one in without.take(missing).collect::<Vec<_>>() {
                self.queues.wake(one.execution, &one.queue, one.attempt, Duration::ZERO);
                self.sent.insert(one.execution, monotonic);
                swept += 1;
            }
        }
        self.queues.count(Count::Swept, swept);
        Ok(swept)
    }
}
