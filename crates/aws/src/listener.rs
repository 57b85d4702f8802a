//! Waits for wake-ups and passes them on as a hint. Each is judged by the record of its execution: one that can be leased keeps its message until
//! that has happened, so that another server finds it if this one does not; every other message is removed, and one that cannot be read goes to
//! where a person looks. Duplicates, old ones and a changed order are ordinary: nothing is decided by what a message says.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::Message;
use futures_util::future::join_all;
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::store::ExecutionStore;

use crate::fault::Fault;
use crate::line::{LONGEST_WAIT, Line};
use crate::message::WakeUp;
use crate::queue::{Count, Queues};

/// After a failure it is quiet for so long at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The agent.
pub struct Listener {
    queues: Queues,
    store: Arc<dyn ExecutionStore>,
    clock: Arc<dyn Clock>,
    hint: Arc<dyn Fn() + Send + Sync>,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its execution can be leased now.
    Keep,
    /// It can be later.
    Later(Duration),
    /// It cannot, or another message says so too.
    Delete,
}

impl Listener {
    /// `hint` is called when there may be something to lease. It must not block.
    pub fn new(queues: Queues, store: Arc<dyn ExecutionStore>, clock: Arc<dyn Clock>, hint: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { queues, store, clock, hint }
    }

    /// Listens to these queues until dropped.
    pub async fn run(&self, served: &[Name]) {
        join_all(served.iter().map(|queue| self.serve(queue))).await;
    }

    async fn serve(&self, queue: &Name) {
        let mut pause = Duration::ZERO;
        loop {
            match self.look(queue, LONGEST_WAIT).await {
                Ok(_) => pause = Duration::ZERO,
                Err(fault) => {
                    self.queues.failed(queue, &fault, "no wake-up could be received").await;
                    pause = (pause * 2).clamp(Duration::from_millis(200), LONGEST_PAUSE);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// Waits once for messages of a queue, for so long at most, and judges what comes; how many came.
    pub async fn look(&self, queue: &Name, wait: Duration) -> Result<usize, Fault> {
        let line = self.queues.line(queue).await?;
        let messages = line.receive(wait).await?;
        self.queues.succeeded();
        self.queues.count(Count::Received, messages.len());
        let count = messages.len();
        let kept = join_all(messages.into_iter().map(|message| self.take(&line, queue, message))).await;
        if kept.contains(&true) {
            (self.hint)();
        }
        Ok(count)
    }

    /// Does with a message what is to be done; whether there may be something to lease.
    async fn take(&self, line: &Line, queue: &Name, message: Message) -> bool {
        let (body, receipt) = (message.body.unwrap_or_default(), message.receipt_handle.unwrap_or_default());
        let wake_up = match WakeUp::parse(&body, queue) {
            Ok(wake_up) => wake_up,
            Err(why) => {
                self.bury(line, queue, &body, &receipt, &why).await;
                return false;
            }
        };
        let execution = match self.store.get(wake_up.execution).await {
            Ok(execution) => execution,
            Err(error) => {
                // The message comes again, when the store may answer.
                tracing::warn!(%queue, execution = %wake_up.execution, %error, "a wake-up could not be judged");
                return false;
            }
        };
        match judge(&wake_up, execution.as_ref(), self.clock.now()) {
            Fate::Delete => self.queues.drop_message(queue, receipt),
            Fate::Keep => {
                self.queues.hold(wake_up, receipt);
                return true;
            }
            Fate::Later(time) => {
                if let Err(fault) = line.hide(&receipt, time).await {
                    tracing::warn!(%queue, error = %fault, "a wake-up could not be put off");
                }
                self.queues.hold(wake_up, receipt);
            }
        }
        false
    }

    async fn bury(&self, line: &Line, queue: &Name, body: &str, receipt: &str, why: &str) {
        match line.bury(body, receipt).await {
            Ok(()) => {
                tracing::error!(%queue, %why, "a message is no wake-up: moved to the dead-letter queue");
                self.queues.count(Count::Poison, 1);
            }
            Err(fault) => self.queues.failed(queue, &fault, "a message that is no wake-up could not be moved").await,
        }
    }
}

/// What becomes of a wake-up, as its execution stands. One that waits for a lock is woken anew by the step that hands it on, and so is every later
/// attempt by the step that allows it.
fn judge(wake_up: &WakeUp, execution: Option<&Execution>, now: UnixMs) -> Fate {
    let Some(execution) = execution else { return Fate::Delete };
    let Some(ready) = execution.ready_key() else { return Fate::Delete };
    if wake_up.attempt != execution.attempt + 1 || ready.queue != wake_up.queue {
        return Fate::Delete;
    }
    match u64::try_from(ready.ready_at.ms_since(now)) {
        Ok(ms) if ms > 0 => Fate::Later(Duration::from_millis(ms)),
        _ => Fate::Keep,
    }
}
