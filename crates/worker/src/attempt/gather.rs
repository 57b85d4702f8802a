//! What is left when a command has ended: the output of a task, or what the command says about its failure. Whatever cannot be used is
//! told in the log, and is never a reason to wait.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::{ErrorMark, Fence, Outcome};
use runvoy_model::job::{MOST_INLINE_BYTES, Payload, fits_inline};
use runvoy_model::json::{self, Checked};
use runvoy_ports::lease::LeaseError;
use runvoy_ports::memory::Reservation;
use runvoy_ports::runner::Unread;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::Attempt;
use super::supervise::told_to_free;
use super::wait::told_to_leave;
use crate::exchange::{self, ERROR, ERROR_LIMIT, OUTPUT, OUTPUT_LIMIT};
use crate::mask::Mask;
use crate::material::Patience;
use crate::worker::{DiskStop, Stopping, Worker};

/// The largest word about what was used.
const USAGE_LIMIT: usize = runvoy_model::bound::MOST_MESSAGE_BYTES;
/// An output is read with the smallest of these limits that it fits, so that one takes memory by its size.
const OUTPUT_LIMITS: [usize; 3] = [MOST_INLINE_BYTES, 2 << 20, OUTPUT_LIMIT];
/// How often an output is in memory at most: its file and its masked text, or that text and what is made of it to be sent.
const COPIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(250);
/// An output that cannot be kept for this long fails the attempt, where the worker is not told another time.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
/// A worker that is told to end everything waits no longer for it than this.
const LEAVE_AFTER: Duration = Duration::from_secs(5);

/// What an attempt leaves beside its outcome.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) output: Option<Payload>,
    pub(super) said: Option<ErrorMark>,
    /// What the command says it used, where the output itself is not carried.
    pub(super) usage: Option<Value>,
    /// What the log should say of it.
    pub(super) remarks: Vec<String>,
}

/// The output of a task and the memory that was reserved for it.
struct Output {
    checked: Checked,
    _reserved: Option<Reservation>,
}

/// What is needed to look at what a command left, apart from its attempt, which keeps the lease meanwhile.
pub(super) struct Leavings<'a> {
    worker: &'a Worker,
    fence: Fence,
    is_task: bool,
    mask: Option<Arc<Mask>>,
    stopping: watch::Receiver<Stopping>,
    disk_stop: watch::Receiver<Option<DiskStop>>,
}

/// The outcome where what a task gave was not kept; any other tells what it tells.
pub(super) fn without_output(outcome: Outcome, is_task: bool, instead: Outcome) -> Outcome {
    match outcome {
        Outcome::Exited { code: 0, after_kill: false } if is_task => instead,
        outcome => outcome,
    }
}

impl<'a> Attempt<'a> {
    pub(super) fn leavings(&self) -> Leavings<'a> {
        let (worker, fence, is_task) = (self.worker, self.fence, self.execution.spec.task.is_some());
        let (stopping, disk_stop) = (self.stopping.clone(), self.disk_stop.clone());
        Leavings { worker, fence, is_task, mask: self.recorder.mask(), stopping, disk_stop }
    }
}

impl Leavings<'_> {
    /// Reads what the command left, unless the attempt is told to free space: then its directory is
    /// removed.
    pub(super) async fn gather(mut self, outcome: Outcome) -> (Outcome, Gathered) {
        let (is_task, mut disk_stop) = (self.is_task, self.disk_stop.clone());
        tokio::select! {
            // The stop first: what is read after it may be half removed.
            biased;
            message = told_to_free(&mut disk_stop) => {
                (without_output(outcome.clone(), is_task, Outcome::OutOfDisk { message }), Gathered::default())
            }
            gathered = self.read(outcome.clone()) => gathered,
        }
    }

    /// Reads what the command left, as far as its end gives it a meaning. An output that the server cannot keep makes another outcome.
    async fn read(&mut self, outcome: Outcome) -> (Outcome, Gathered) {
        let mut gathered = Gathered::default();
        match outcome {
            Outcome::Exited { code: 0, after_kill: false } if self.is_task => match self.output().await {
                Ok(Some(output)) => match self.keep(output, &mut gathered).await {
                    Ok(output) => gathered.output = Some(output),
                    Err(why) => {
                        let message = format!("the task's output could not be stored: {why}");
                        return (Outcome::OutputFailed { message }, gathered);
                    }
                },
                // Most tasks need none.
                Ok(None) => {}
                Err(why) => gathered.remarks.push(format!("the task has no output: RUNVOY_OUTPUT was ignored: {why}")),
            },
            Outcome::Exited { code: 0, .. } => {}
            Outcome::Exited { after_kill: false, .. } | Outcome::Signalled { after_kill: false, .. } => {
                let said = self.failure().await.and_then(|said| said.as_ref().map(exchange::error_mark).transpose());
                match said {
                    Ok(said) => gathered.said = said,
                    Err(why) => gathered.remarks.push(format!("RUNVOY_ERROR was ignored: {why}")),
                }
            }
            _ => {}
        }
        (outcome, gathered)
    }

    /// What the command says about its failure, masked; `None` where it says nothing.
    async fn failure(&self) -> Result<Option<Value>, String> {
        match self.worker.runner.read(self.fence.execution, self.fence.attempt, ERROR, ERROR_LIMIT).await {
            Ok(bytes) => {
                let mask = self.mask.clone();
                off_the_runtime(move || exchange::value(&bytes, mask.as_ref()).map(Some)).await
            }
            Err(Unread::Missing) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The output of the task, checked and masked; `None` where it left none. What is not small waits for memory, by its size.
    async fn output(&self) -> Result<Option<Output>, String> {
        for limit in OUTPUT_LIMITS {
            let reserved = match limit > MOST_INLINE_BYTES {
                true => Some(self.worker.config.memory.reserve(limit * COPIES).await),
                false => None,
            };
            match self.worker.runner.read(self.fence.execution, self.fence.attempt, OUTPUT, limit).await {
                Ok(bytes) => {
                    let mask = self.mask.clone();
                    let checked = off_the_runtime(move || json::check(&bytes, mask.as_ref())).await?;
                    return Ok(Some(Output { checked, _reserved: reserved }));
                }
                Err(Unread::TooLarge { .. }) if limit < OUTPUT_LIMIT => {}
                Err(Unread::Missing) => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(None)
    }

    /// Makes an output something that can be carried. What it says of usage is carried in any case, or the log says why not.
    async fn keep(&self, output: Output, gathered: &mut Gathered) -> Result<Payload, String> {
        let Checked { text, opened_bytes, usage } = output.checked;
        if fits_inline(text.len(), opened_bytes) {
            return serde_json::from_slice(&text).map(Payload::Inline).map_err(|error| error.to_string());
        }
        match usage.map(|place| &text[place]) {
            Some(usage) if usage.len() <= USAGE_LIMIT => gathered.usage = serde_json::from_slice(usage).ok(),
            Some(_) => gathered.remarks.push(format!("`usage` in RUNVOY_OUTPUT was ignored: it is larger than {USAGE_LIMIT} bytes")),
            None => {}
        }
        let began = Instant::now();
        let config = &self.worker.config;
        let patience = Patience { away: config.lost_after.unwrap_or(GIVE_UP_AFTER), denied: config.lease_ttl };
        let mut leaving = pin!(told_to_leave(self.worker, self.stopping.clone(), LEAVE_AFTER));
        loop {
            let put = tokio::select! {
                biased;
                put = self.worker.leases.put_blob(self.fence, text.clone()) => put,
                () = &mut leaving => return Err("the worker stopped before the server had taken it".to_owned()),
            };
            let error = match put {
                Ok(payload) => return Ok(payload),
                Err(LeaseError::Unavailable(error)) => error.to_string(),
                Err(error) => return Err(error.to_string()),
            };
            if patience.is_over(&*self.worker.leases, began) {
                return Err(error);
            }
            tracing::warn!(execution = %self.fence.execution, error, "the output of a task waits to be stored");
            sleep(PAUSE).await;
        }
    }
}

/// An output may be large: no other task waits while it is read.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}
