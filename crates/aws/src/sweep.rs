//! Sends a message again for executions that could be leased for a while and seem to have none: theirs was lost, or never sent. No flood comes of
//! it: a round sends no more than [`MOST`], none while as many can be received (those wake the same workers), and to each execution ever more
//! rarely. Messages that are hidden say nothing: they may be of executions that are long leased, or wait for their next attempt.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::store::StoreError;

use crate::queue::{Count, Queues};

/// How often it looks.
const TICK: Duration = Duration::from_secs(30);
/// What could be leased for less than this has its message on the way.
const PATIENCE: Duration = Duration::from_secs(60);
/// What got a message from us gets no other for so long, and twice as long each time.
const AGAIN_AFTER: Duration = Duration::from_secs(300);
/// Up to this.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// So many are sent in one round.
const MOST: usize = 200;
/// So many are looked at, so that those that nobody serves do not hide all others.
const MOST_LOOKED_AT: usize = 2000;

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
    sent: HashMap<ExecutionId, Sent>,
}

/// When an execution may get its next message, and how long that was put off.
#[derive(Debug, Clone, Copy)]
struct Sent {
    next: Duration,
    wait: Duration,
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
        // What was due and did not come up since is leased or ended.
        self.sent.retain(|_, sent| monotonic < sent.next + sent.wait);
        let before = self.clock.now().plus_ms(-i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX));
        let mut overdue: BTreeMap<Name, Vec<Waiting>> = BTreeMap::new();
        for waiting in self.source.ready_since(before, MOST_LOOKED_AT).await? {
            overdue.entry(waiting.queue.clone()).or_default().push(waiting);
        }
        let mut swept = 0;
        for (queue, waiting) in overdue {
            let depth = match self.queues.line(&queue).await {
                Ok(line) => line.depth().await,
                Err(fault) => Err(fault),
            };
            match depth {
                Ok(depth) => swept += self.send(waiting, depth, MOST - swept, monotonic),
                Err(fault) => self.queues.failed(&queue, &fault, "a queue could not be asked for its depth").await,
            }
        }
        self.queues.count(Count::Swept, swept);
        Ok(swept)
    }

    /// Sends for those of a queue that seem to have no message, so many at most.
    fn send(&mut self, waiting: Vec<Waiting>, depth: usize, most: usize, monotonic: Duration) -> usize {
        let missing = waiting.len().min(MOST).saturating_sub(depth).min(most);
        let is_due = |one: &Waiting| self.sent.get(&one.execution).is_none_or(|sent| sent.next <= monotonic);
        let due: Vec<_> = waiting.into_iter().filter(|one| is_due(one) && !self.queues.has_message(one.execution)).take(missing).collect();
        for one in &due {
            self.queues.wake(one.execution, &one.queue, one.attempt, Duration::ZERO);
            let wait = self.sent.get(&one.execution).map_or(AGAIN_AFTER, |sent| (sent.wait * 2).min(LONGEST));
            self.sent.insert(one.execution, Sent { next: monotonic + wait, wait });
        }
        due.len()
    }
}
