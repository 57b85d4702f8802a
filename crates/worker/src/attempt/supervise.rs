//! The watch over one command: what it writes, its lease, its timeout, a kill.
//!
//! Nothing here waits for one thing alone: records on their way to the store, an extend on its way and the command itself are
//! watched together, so that a slow store delays neither a kill nor a timeout nor the next extend. While records are on their way the
//! pipes are not read, and the command waits instead of memory growing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::{Extend, Extended};
use runvoy_model::log::{Block, Stream};
use runvoy_model::spec::Needs;
use runvoy_ports::lease::LeaseError;
use runvoy_ports::runner::{Exit, ExitStatus, Output, Started};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Attempt, LAST_WORD_WITHIN, Moment, activity};
use crate::exchange::{ACTIVITY, ACTIVITY_LIMIT};
use crate::report::{Publisher, Unpublished};
use crate::running::{Cause, Running};
use crate::worker::{DiskStop, Stopping};

/// A command that writes no newline for this long has its line shown as it is.
const SILENCE: Duration = Duration::from_millis(200);
/// A pipe that somebody else holds open is read for this long after the command has ended. Time in which it cannot be read does not count.
const LINGER: Duration = Duration::from_secs(2);
/// A command that still runs is named to the server by then, and not only with the next extend: readers of events wait for that.
const NAME_PROCESS_AFTER: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 64 * 1024;
const SIGKILL: i32 = 9;

type Publishing = Pin<Box<dyn Future<Output = (Publisher, u64, Result<(), Unpublished>)> + Send>>;
pub(super) type Extending<'a> = Pin<Box<dyn Future<Output = Result<Extended, LeaseError>> + Send + 'a>>;
/// An extend with what the command says it does.
type Heartbeat<'a> = Pin<Box<dyn Future<Output = (activity::Read, Result<Extended, LeaseError>)> + Send + 'a>>;

impl<'a> Attempt<'a> {
    /// Sees a command through to its end.
    pub(super) async fn supervise(&mut self, started: Started, began: Instant) -> (Running, Option<Exit>) {
        let Started { stdout, stderr, exit, control, pid, .. } = started;
        let mut running = Running::new(control, pid, began);
        self.limit(&running);
        let exit = self.attend(&mut running, (stdout, stderr), exit).await;
        running.ended();
        (running, exit)
    }

    async fn attend(
        &mut self,
        running: &mut Running,
        (mut stdout, mut stderr): (Output, Output),
        mut exit: tokio::sync::oneshot::Receiver<Exit>,
    ) -> Option<Exit> {
        let (mut from_stdout, mut from_stderr) = (Vec::with_capacity(READ_BYTES), Vec::with_capacity(READ_BYTES));
        let (mut stopping, nudge, mut disk_stop) = (self.stopping.clone(), Arc::clone(&self.nudge), self.disk_stop.clone());
        let (mut stdout_open, mut stderr_open) = (true, true);
        let mut exited: Option<Option<Exit>> = None;
        let mut linger_until: Option<Instant> = None;
        // Since when nothing of an ended command is read because records are on their way.
        let mut unread_since: Option<Instant> = None;
        let mut publishing: Option<Publishing> = None;
        let mut extending: Option<Heartbeat<'_>> = None;
        let extend_every = self.worker.config.lease_ttl / 3;
        let mut timeout_at = self.execution.spec.timeout_ms.map(|ms| running.began + Duration::from_millis(ms));
        let mut release_at = Instant::now() + SILENCE;
        self.extend_at = self.extend_at.min(Instant::now() + NAME_PROCESS_AFTER);
        let (mut stop_seen, mut disk_stop_seen, mut yielded, mut given_up) = (false, false, false, false);
        loop {
            // Whoever lost the lease, or has to take it for lost, does not wait for what nobody takes.
            let is_lost = running.cause() == Some(&Cause::LeaseLost);
            if exited.is_some()
                && ((publishing.is_none() && !stdout_open && !stderr_open) || (publishing.is_some() && (is_lost || given_up)))
            {
                self.end_of_output();
                if extending.is_some() {
                    // Its answer is not heard any more: whoever watches next asks again.
                    nudge.notify_one();
                }
                return exited.flatten();
            }
            let (alive, may_read) = (exited.is_none(), publishing.is_none());
            unread_since = if alive || may_read { None } else { unread_since.or_else(|| Some(Instant::now())) };
            let leave_at =
                unread_since.filter(|_| stop_seen && self.worker.config.lost_after.is_some()).map(|since| since + LAST_WORD_WITHIN);
            tokio::select! {
                // What the command did comes before what is done to it.
                biased;
                status = &mut exit, if alive => {
                    exited = Some(status.ok());
                    // The command follows a clone in the same directory.
                    self.cleaning.note_over(self.transcript.is_none());
                    if self.is_over_limit(exited.as_ref().and_then(Option::as_ref)) {
                        // This worker was frozen, and somebody else ended the command in its place.
                        self.is_cut_off = true;
                        running.end(Cause::LeaseLost, None);
                    }
                    linger_until = Some(Instant::now() + LINGER);
                }
                (publisher, raw_len, published) = resolve(&mut publishing), if !may_read => {
                    publishing = None;
                    self.publisher = Some(publisher);
                    self.published(running, raw_len, published);
                    // What is left of a terminal comes through the pipe only once that is read again.
                    linger_until = linger_until.map(|at| at + unread_since.map_or(Duration::ZERO, |since| since.elapsed()));
                }
                read = stdout.read_buf(&mut from_stdout), if stdout_open && may_read => {
                    stdout_open = self.take(running, Stream::Stdout, read, &mut from_stdout);
                    publishing = self.publish_news();
                    release_at = Instant::now() + SILENCE;
                }
                read = stderr.read_buf(&mut from_stderr), if stderr_open && may_read => {
                    stderr_open = self.take(running, Stream::Stderr, read, &mut from_stderr);
                    publishing = self.publish_news();
                    release_at = Instant::now() + SILENCE;
                }
                (read, extended) = resolve(&mut extending), if extending.is_some() => {
                    extending = None;
                    if let Some(remark) = self.activity.take(read) {
                        self.recorder.platform(self.worker.clock.now(), &remark);
                    }
                    self.extended(running, extended);
                }
                () = until(timeout_at), if alive => {
                    timeout_at = None;
                    running.end(Cause::Timeout, Some(self.worker.config.grace));
                }
                // Also in the grace period of a kill or a timeout, in which it could still fill the
                // disk.
                why = told_to_free(&mut disk_stop), if alive && !disk_stop_seen => {
                    disk_stop_seen = true;
                    running.end(Cause::OutOfDisk(why), None);
                }
                () = until(running.kill_at()), if alive => running.force(),
                // Once: what was ended for another reason keeps that reason, and may take a while to be gone.
                () = until(self.yield_at()), if alive && !yielded && running.cause() != Some(&Cause::LeaseLost) => {
                    yielded = true;
                    tracing::warn!(execution = %self.execution.id, "the lease expires and cannot be extended: killing the command");
                    self.is_cut_off = true;
                    running.end(Cause::LeaseLost, None);
                }
                () = until(self.give_up_at()), if !alive && !may_read => {
                    given_up = true;
                    tracing::warn!(execution = %self.execution.id, "the last output of a command could not be handed over in time");
                    running.end(Cause::LeaseLost, None);
                }
                () = told_to_end_all(&mut stopping), if !stop_seen => {
                    stop_seen = true;
                    if alive {
                        running.end(Cause::WorkerStop, Some(self.worker.config.grace));
                    }
                }
                () = until(leave_at), if !given_up => {
                    (given_up, self.unkept.is_unsure) = (true, true);
                    tracing::warn!(execution = %self.execution.id, "the last output of a command could not be handed over before the worker left");
                }
                () = nudge.notified(), if extending.is_none() => extending = Some(self.send_heartbeat(running)),
                () = sleep_until(self.extend_at), if extending.is_none() => {
                    self.extend_at = Instant::now() + extend_every;
                    extending = Some(self.send_heartbeat(running));
                }
                () = sleep_until(release_at), if may_read && self.recorder.has_news() => {
                    self.recorder.release(self.worker.clock.now());
                    publishing = self.publish_news();
                }
                () = until(linger_until), if may_read && (stdout_open || stderr_open) => {
                    (stdout_open, stderr_open) = (false, false);
                    self.recorder.platform(self.worker.clock.now(), "another process still holds the output open: what it writes from now on is not recorded");
                }
            }
        }
    }

    /// Takes what was read; `false` at the end of the stream.
    fn take(&mut self, running: &mut Running, stream: Stream, read: std::io::Result<usize>, buffer: &mut Vec<u8>) -> bool {
        match read {
            Ok(0) => false,
            Ok(_) => {
                let now = self.worker.clock.now();
                self.last_output_at = Some(now);
                match &mut self.transcript {
                    Some(transcript) => transcript.push(stream, buffer).iter().for_each(|line| self.recorder.platform(now, line)),
                    None => self.recorder.write(stream, now, buffer),
                }
                buffer.clear();
                true
            }
            Err(error) => {
                running.end(Cause::OutputFailed(error.to_string()), None);
                false
            }
        }
    }

    /// Nothing more will be written: what was held back is recorded.
    fn end_of_output(&mut self) {
        let now = self.worker.clock.now();
        if let Some(transcript) = &mut self.transcript {
            transcript.finish().iter().for_each(|line| self.recorder.platform(now, line));
        }
        self.recorder.finish(now);
    }

    /// Sends what was recorded on its way, or counts what a full log does not take.
    fn publish_news(&mut self) -> Option<Publishing> {
        let block: Block = self.recorder.take()?;
        if self.unkept.full || self.unkept.failed {
            self.unkept.bytes += block.raw_len;
            return None;
        }
        let mut publisher = self.publisher.take().expect("one block is on its way at a time");
        Some(Box::pin(async move {
            let raw_len = block.raw_len;
            let published = publisher.publish(block).await;
            (publisher, raw_len, published)
        }))
    }

    fn published(&mut self, running: &mut Running, raw_len: u64, published: Result<(), Unpublished>) {
        match published {
            Ok(()) => {}
            Err(Unpublished::Lost) => running.end(Cause::LeaseLost, None),
            Err(Unpublished::Full) => {
                self.unkept.full = true;
                self.unkept.bytes += raw_len;
            }
            Err(Unpublished::Failed(why)) => {
                self.unkept.failed = true;
                self.unkept.bytes += raw_len;
                running.end(Cause::OutputFailed(why), None);
            }
        }
    }

    fn send_heartbeat(&mut self, running: &Running) -> Heartbeat<'a> {
        self.extend_sent = Moment::now(&*self.worker.clock);
        let (worker, mask, mut extend) = (self.worker, self.recorder.mask(), self.extend_request(Some(running)));
        Box::pin(async move {
            let read = worker.runner.read(extend.fence.execution, extend.fence.attempt, ACTIVITY, ACTIVITY_LIMIT).await;
            let read = activity::understood(read, mask.as_ref());
            if let Ok(said) = &read {
                extend.activity = said.clone();
            }
            let extended = worker.leases.extend(extend).await;
            (read, extended)
        })
    }

    pub(super) fn send_extend(&mut self) -> Extending<'a> {
        self.extend_sent = Moment::now(&*self.worker.clock);
        let extend = self.extend_request(None);
        Box::pin(self.worker.leases.extend(extend))
    }

    pub(super) fn extend_request(&self, running: Option<&Running>) -> Extend {
        let pid = running.and_then(|running| running.pid);
        Extend {
            fence: self.fence,
            ttl_ms: u64::try_from(self.worker.config.lease_ttl.as_millis()).unwrap_or(u64::MAX),
            process_id: pid,
            rss_bytes: running.and_then(Running::memory_bytes).or_else(|| pid.and_then(resident_bytes)),
            last_output_at: self.last_output_at,
            activity: self.activity.last(),
            preparing: self.preparing(),
        }
    }

    /// Remembers when the server was last heard. Where it was not, the next extend does not wait for its turn: the server may be back soon.
    pub(super) fn note_held(&mut self, extended: &Result<Extended, LeaseError>) {
        match extended {
            Ok(_) => self.heard = self.extend_sent,
            Err(LeaseError::Lost(_)) => {}
            Err(_) => self.extend_at = self.extend_at.min(Instant::now() + self.worker.config.lease_ttl / 15),
        }
    }

    /// When the command is killed because the server was not heard for too long: its lease says how long nobody else is given its lock or its
    /// next attempt. A worker whose key is refused waits for no longer than that. Where a lease says nothing, what neither has a lock nor may be tried
    /// again runs on: nobody else will ever run it.
    pub(super) fn yield_at(&self) -> Option<Instant> {
        let (config, spec) = (&self.worker.config, &self.execution.spec);
        let length = match self.execution.lease.as_ref().and_then(|lease| lease.lost_after_ms) {
            _ if self.worker.leases.is_denied() => config.lease_ttl,
            Some(ms) => config.lease_ttl.max(Duration::from_millis(ms)),
            None if config.lost_after.is_some() || spec.lock.is_some() || spec.attempts_after_loss() >= self.fence.attempt => {
                config.lease_ttl
            }
            None => return None,
        };
        Some(self.heard.plus(length.saturating_sub(config.yields_before?), self.worker.clock.asleep()))
    }

    /// When the end of an attempt, and what it wrote last, is told to nobody any more: the execution counts as lost by then.
    pub(super) fn give_up_at(&self) -> Option<Instant> {
        let config = &self.worker.config;
        let after = if self.worker.leases.is_denied() { config.lease_ttl } else { config.lost_after? };
        Some(self.heard.plus(after, self.worker.clock.asleep()))
    }

    /// How long the runner lets a command live if this worker cannot end it: a little longer than it would itself.
    pub(super) fn live_for(&self) -> Option<Duration> {
        let (at, before) = (self.yield_at()?, self.worker.config.yields_before?);
        Some(at.saturating_duration_since(Instant::now()) + before / 2)
    }

    /// Tells the runner that time.
    fn limit(&self, running: &Running) {
        if let Some(time) = self.live_for() {
            running.live_for(time);
        }
    }

    /// Whether a command that was killed may have been killed for that.
    fn is_over_limit(&self, exit: Option<&Exit>) -> bool {
        let is_killed = exit.is_some_and(|exit| match exit.status {
            ExitStatus::Signal(SIGKILL) => !exit.oom_killed,
            // What ends a container from outside is told by its exit code alone.
            ExitStatus::Code(137) | ExitStatus::Lost => self.execution.spec.needs() == Needs::Image && !exit.oom_killed,
            _ => false,
        });
        is_killed && self.yield_at().is_some_and(|at| at <= Instant::now())
    }

    fn extended(&mut self, running: &mut Running, extended: Result<Extended, LeaseError>) {
        self.note_held(&extended);
        self.limit(running);
        match extended {
            Ok(Extended { kill: Some(kill), .. }) => running.obey(kill, self.worker.config.grace),
            Ok(_) => {}
            Err(LeaseError::Lost(why)) => {
                tracing::warn!(execution = %self.execution.id, why, "the lease is lost: killing the command");
                running.end(Cause::LeaseLost, None);
            }
            // The next extend tries again; the lease outlives two that fail.
            Err(error) => tracing::warn!(execution = %self.execution.id, error = error.cause(), "a lease was not extended"),
        }
    }
}

/// The end of a future that may not be there; a branch that uses it checks that first.
pub(super) async fn resolve<F: Future + Unpin>(pending: &mut Option<F>) -> F::Output {
    match pending {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

pub(super) async fn told_to_end_all(stopping: &mut watch::Receiver<Stopping>) {
    let told = stopping.wait_for(|stopping| *stopping == Stopping::EndAll).await.is_ok();
    if !told {
        // The worker is gone without a word; its runtime ends this task too.
        std::future::pending::<()>().await;
    }
}

/// Why the attempt is ended for what it wrote to disk; comes back only where it is.
pub(super) async fn told_to_free(disk_stop: &mut watch::Receiver<Option<DiskStop>>) -> String {
    let told = disk_stop.wait_for(Option::is_some).await.ok().and_then(|stop| stop.as_ref().map(|stop| stop.why.clone()));
    match told {
        Some(why) => why,
        None => std::future::pending().await,
    }
}

pub(super) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Resident memory of a process, where the system tells it cheaply.
fn resident_bytes(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
