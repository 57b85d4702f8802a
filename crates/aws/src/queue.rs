//! Wake-ups through SQS. One queue there for each of ours, made when it is first needed. What is to be sent or removed is noted at once and done a
//! moment later, in batches, by [`Queues::run`] or [`Queues::flush`]; a step never waits for it. Every message is a hint: which execution goes
//! first, and whether at all, is for the store to say, and losing all of them costs only time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use tokio::sync::Notify;

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;
use crate::line::{self, HIDDEN, Line, MOST_ENTRIES};
use crate::message::WakeUp;

/// So many wake-ups are noted at most; the sweep finds whatever came on top.
const MOST_NOTED: usize = 10_000;
/// So many calls are made at once.
const AT_ONCE: usize = 8;

/// The queues of one installation. A clone is the same.
#[derive(Debug, Clone)]
pub struct Queues {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sqs: aws_sdk_sqs::Client,
    config: Arc<Config>,
    lines: tokio::sync::Mutex<HashMap<Name, Arc<Line>>>,
    notes: Mutex<Notes>,
    noted: Notify,
    counts: [AtomicU64; 6],
    trouble: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// To be sent, and when to be seen.
    wake_ups: Vec<(WakeUp, Duration)>,
    /// To be put where a person looks.
    given_up: Vec<WakeUp>,
    /// Received messages to be removed.
    receipts: BTreeMap<Name, Vec<String>>,
    /// Received messages of executions that can be leased: each stays until that has happened, so that another finds it if we do not.
    held: HashMap<ExecutionId, Vec<Held>>,
}

#[derive(Debug)]
struct Held {
    queue: Name,
    receipt: String,
    since: Instant,
}

/// What happened to messages since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageCounts {
    /// Sent.
    pub sent: u64,
    /// Could not be sent; the sweep sends them again.
    pub unsent: u64,
    /// Received.
    pub received: u64,
    /// Removed.
    pub deleted: u64,
    /// Could not be read, or were of executions that could not, and were put where a person looks.
    pub poison: u64,
    /// Sent again by the sweep.
    pub swept: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    Sent,
    Unsent,
    Received,
    Deleted,
    Poison,
    Swept,
}

impl Queues {
    /// No call is made before there is something to send or to receive.
    pub fn new(clients: &Clients, config: Arc<Config>) -> Self {
        let shared = Shared {
            sqs: clients.sqs.clone(),
            config,
            lines: tokio::sync::Mutex::default(),
            notes: Mutex::default(),
            noted: Notify::new(),
            counts: Default::default(),
            trouble: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Notes what a step that has been written changed of an execution: one that can be leased now, and could not before, wakes; the messages of
    /// one that cannot have done what they are for.
    pub fn changed(&self, before: Option<&Execution>, after: &Execution, now: UnixMs) {
        match after.ready_key() {
            None => self.leased([after.id]),
            Some(key) if before.and_then(Execution::ready_key).as_ref() != Some(&key) => {
                let delay = u64::try_from(key.ready_at.ms_since(now)).unwrap_or(0);
                self.wake(after.id, &key.queue, after.attempt + 1, Duration::from_millis(delay));
            }
            Some(_) => {}
        }
    }

    /// Notes that an execution can be leased from a queue, after a delay, for this attempt. The step that made it so has been written.
    pub fn wake(&self, execution: ExecutionId, queue: &Name, attempt: u32, delay: Duration) {
        let wake_up = WakeUp { execution, queue: queue.clone(), attempt };
        {
            let mut notes = self.shared.notes.lock();
            if notes.wake_ups.len() >= MOST_NOTED {
                self.count(Count::Unsent, 1);
                return;
            }
            notes.wake_ups.push((wake_up, delay));
        }
        self.shared.noted.notify_one();
    }

    /// Notes that these were leased, by a step that has been written: their messages have done what they are for.
    pub fn leased(&self, executions: impl IntoIterator<Item = ExecutionId>) {
        let mut notes = self.shared.notes.lock();
        for execution in executions {
            for held in notes.held.remove(&execution).unwrap_or_default() {
                notes.receipts.entry(held.queue).or_default().push(held.receipt);
            }
        }
        if !notes.receipts.is_empty() {
            self.shared.noted.notify_one();
        }
    }

    /// Notes that an execution was given up, by a step that has been written, because nobody could read what it was to run: its message goes to
    /// where a person looks, whatever became of those that were sent for it.
    pub fn gave_up(&self, execution: &Execution) {
        let wake_up = WakeUp { execution: execution.id, queue: execution.spec.queue.clone(), attempt: execution.attempt + 1 };
        self.shared.notes.lock().given_up.push(wake_up);
        self.shared.noted.notify_one();
    }

    /// Does what is noted, as it comes, until dropped.
    pub async fn run(&self) {
        loop {
            self.shared.noted.notified().await;
            self.flush().await;
        }
    }

    /// Does what is noted now. What cannot be done is counted and forgotten: a message that is missing is swept, one that is left comes again.
    pub async fn flush(&self) {
        let (wake_ups, receipts, given_up) = {
            let mut notes = self.shared.notes.lock();
            (std::mem::take(&mut notes.wake_ups), std::mem::take(&mut notes.receipts), std::mem::take(&mut notes.given_up))
        };
        for wake_up in given_up {
            self.bury(&wake_up).await;
        }
        let mut by_queue: BTreeMap<Name, Vec<(String, Duration)>> = BTreeMap::new();
        for (wake_up, delay) in wake_ups {
            by_queue.entry(wake_up.queue.clone()).or_default().push((wake_up.to_body(), delay));
        }
        let sends = stream::iter(batches(by_queue));
        sends.for_each_concurrent(AT_ONCE, |(queue, batch)| async move { self.send(&queue, batch).await }).await;
        let deletes = stream::iter(batches(receipts));
        deletes.for_each_concurrent(AT_ONCE, |(queue, batch)| async move { self.delete(&queue, &batch).await }).await;
    }

    async fn send(&self, queue: &Name, mut left: Vec<(String, Duration)>) {
        // Single entries fail for reasons that pass: once more is worth it, and more is for the sweep.
        for _ in 0..2 {
            let line = match self.line(queue).await {
                Ok(line) => line,
                Err(fault) => {
                    self.failed(queue, &fault, "no wake-up could be sent").await;
                    break;
                }
            };
            match line.send(&left).await {
                Ok(failed) => {
                    self.succeeded();
                    self.count(Count::Sent, left.len() - failed.len().min(left.len()));
                    left = failed.into_iter().filter_map(|place| left.get(place).cloned()).collect();
                }
                Err(fault) => self.failed(queue, &fault, "no wake-up could be sent").await,
            }
            if left.is_empty() {
                return;
            }
        }
        self.count(Count::Unsent, left.len());
    }

    async fn bury(&self, wake_up: &WakeUp) {
        let buried = match self.line(&wake_up.queue).await {
            Ok(line) => line.send_dead(&wake_up.to_body()).await,
            Err(fault) => Err(fault),
        };
        match buried {
            Ok(()) => self.count(Count::Poison, 1),
            Err(fault) => self.failed(&wake_up.queue, &fault, "the message of a dead letter could not be stored").await,
        }
    }

    async fn delete(&self, queue: &Name, receipts: &[String]) {
        let deleted = match self.line(queue).await {
            Ok(line) => line.delete(receipts).await,
            Err(fault) => Err(fault),
        };
        match deleted {
            Ok(count) => self.count(Count::Deleted, count),
            Err(fault) => self.failed(queue, &fault, "messages that are done with could not be removed").await,
        }
    }

    /// The queue in SQS, made where it is missing.
    pub(crate) async fn line(&self, queue: &Name) -> Result<Arc<Line>, Fault> {
        let mut lines = self.shared.lines.lock().await;
        if let Some(line) = lines.get(queue) {
            return Ok(Arc::clone(line));
        }
        let line = Arc::new(Line::open(&self.shared.sqs, &self.shared.config, queue).await?);
        lines.insert(queue.clone(), Arc::clone(&line));
        Ok(line)
    }

    /// Notes that a call did not go well, and looks for the queue anew if it is gone.
    pub(crate) async fn failed(&self, queue: &Name, fault: &Fault, what: &str) {
        tracing::warn!(%queue, error = %fault, "{what}");
        *self.shared.trouble.lock() = Some(fault.to_string());
        if line::is_gone(fault) {
            self.shared.lines.lock().await.remove(queue);
        }
    }

    /// Notes that a call went well.
    pub(crate) fn succeeded(&self) {
        *self.shared.trouble.lock() = None;
    }

    /// Keeps the receipt of a message until its execution is leased, here or elsewhere.
    pub(crate) fn hold(&self, wake_up: WakeUp, receipt: String) {
        let held = Held { queue: wake_up.queue, receipt, since: Instant::now() };
        let mut notes = self.shared.notes.lock();
        // Behind that time others see the message, and whoever sees it judges it anew.
        notes.held.retain(|_, all| {
            all.retain(|held| held.since.elapsed() < HIDDEN);
            !all.is_empty()
        });
        notes.held.entry(wake_up.execution).or_default().push(held);
    }

    /// Removes a received message.
    pub(crate) fn drop_message(&self, queue: &Name, receipt: String) {
        self.shared.notes.lock().receipts.entry(queue.clone()).or_default().push(receipt);
        self.shared.noted.notify_one();
    }

    /// Whether a message of this execution is on its way out or in our hands.
    pub(crate) fn has_message(&self, execution: ExecutionId) -> bool {
        let notes = self.shared.notes.lock();
        notes.held.contains_key(&execution) || notes.wake_ups.iter().any(|(wake_up, _)| wake_up.execution == execution)
    }

    pub(crate) fn count(&self, what: Count, by: usize) {
        self.shared.counts[what as usize].fetch_add(by as u64, Ordering::Relaxed);
    }

    /// What happened to messages since the start.
    pub fn counts(&self) -> MessageCounts {
        let count = |what: Count| self.shared.counts[what as usize].load(Ordering::Relaxed);
        MessageCounts {
            sent: count(Count::Sent),
            unsent: count(Count::Unsent),
            received: count(Count::Received),
            deleted: count(Count::Deleted),
            poison: count(Count::Poison),
            swept: count(Count::Swept),
        }
    }

    /// What went wrong last, if nothing has gone well since.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().clone()
    }
}

/// What one call can take at a time.
fn batches<T>(all: BTreeMap<Name, Vec<T>>) -> Vec<(Name, Vec<T>)> {
    let mut batches = Vec::new();
    for (queue, mut entries) in all {
        while !entries.is_empty() {
            let rest = entries.split_off(entries.len().min(MOST_ENTRIES));
            batches.push((queue.clone(), std::mem::replace(&mut entries, rest)));
        }
    }
    batches
}
