//! One attempt from its begin to its recorded end: start the command, publish what it writes, keep its lease,
//! enforce its timeout, obey a kill, and say truthfully how it ended.
//!
//! Nothing here waits for one thing alone: records on their way to the store, an extend on its way and the command itself are
//! watched together, so that a slow store delays neither a kill nor a timeout nor the next extend. While records are on their way the pipes
//! are not read, and the command waits instead of memory growing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::{EndAttempt, Extend, Extended, Fence, Outcome};
use runvoy_model::execution::{Execution, KillRequest};
use runvoy_model::log::{Block, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::lease::LeaseError;
use runvoy_ports::runner::{Exit, ExitStatus, Start, StartError, Started};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::environment::environment;
use crate::output::Recorder;
use crate::report::{Publisher, Unpublished, report_end};
use crate::running::{Cause, Running};
use crate::worker::{Stopping, Worker};

/// A command that writes no newline for this long has its line shown as it is.
const SILENCE: Duration = Duration::from_millis(200);
/// A pipe that somebody else holds open is read for this long after the command has ended.
const LINGER: Duration = Duration::from_secs(2);
/// A runner that has not started a command by then has failed to.
const START_WITHIN: Duration = Duration::from_secs(15);
/// A shorter wait in the queue is not told.
const WAIT_WORTH_TELLING_MS: i64 = 1_000;
const READ_BYTES: usize = 64 * 1024;

pub(crate) struct Attempt<'a> {
    worker: &'a Worker,
    execution: Execution,
    fence: Fence,
    nudge: Arc<Notify>,
    stopping: watch::Receiver<Stopping>,
    recorder: Recorder,
    /// Taken while records are on their way.
    publisher: Option<Publisher>,
    unkept: Unkept,
    last_output_at: Option<UnixMs>,
}

/// Output that the log did not take.
#[derive(Default)]
struct Unkept {
    bytes: u64,
    /// The log is full: the command goes on, its output is counted.
    full: bool,
    /// The log failed: nothing more is sent to it.
    failed: bool,
}

type Publishing = Pin<Box<dyn Future<Output = (Publisher, u64, Result<(), Unpublished>)> + Send>>;
type Extending<'a> = Pin<Box<dyn Future<Output = Result<Extended, LeaseError>> + Send + 'a>>;

impl<'a> Attempt<'a> {
    pub(crate) fn new(worker: &'a Worker, execution: Execution, nudge: Arc<Notify>, stopping: watch::Receiver<Stopping>) -> Self {
        let lease = execution.lease.as_ref().expect("an attempt runs under its lease");
        let fence = Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id };
        let publisher = Some(Publisher::new(Arc::clone(&worker.leases), fence));
        let (recorder, unkept) = (Recorder::default(), Unkept::default());
        Self { worker, execution, fence, nudge, stopping, recorder, publisher, unkept, last_output_at: None }
    }

    pub(crate) async fn run(mut self) {
        let began = Instant::now();
        let (outcome, running) = match self.start().await {
            Err(error) => (Some(Outcome::StartFailed { message: error.message }), None),
            Ok(started) => {
                let (running, exit) = self.supervise(started, began).await;
                (self.judge(&running, exit), Some(running))
            }
        };
        if let Some(outcome) = outcome {
            self.conclude(outcome, running.as_ref(), began.elapsed()).await;
        }
        self.worker.runner.clean_up(self.execution.id, self.fence.attempt).await;
    }

    async fn start(&self) -> Result<Started, StartError> {
        let start = Start {
            execution: self.execution.id,
            attempt: self.fence.attempt,
            argv: self.execution.spec.argv(),
            env: environment(&self.execution, &self.worker.config.home),
            limits: self.worker.config.limits,
        };
        match timeout(START_WITHIN, self.worker.runner.start(start)).await {
            Ok(started) => started,
            Err(_) => Err(StartError { message: format!("the command was not started within {} s", START_WITHIN.as_secs()) }),
        }
    }

    /// Sees a command through to its end.
    async fn supervise(&mut self, started: Started, began: Instant) -> (Running, Option<Exit>) {
        let now = self.worker.clock.now();
        let mut line =
            format!("attempt {} started on {} ({} runner)", self.fence.attempt, self.worker.config.host, self.worker.runner.name());
        let waited_ms = now.ms_since(self.execution.ready_at);
        if waited_ms >= WAIT_WORTH_TELLING_MS {
            line.push_str(&format!(" after {} s in the queue", waited_ms / 1000));
        }
        self.recorder.platform(now, &line);
        let Started { stdout, stderr, exit, control, pid, .. } = started;
        let mut running = Running::new(control, pid, began);
        let pipes = pipe::Receiver::from_owned_fd(stdout).and_then(|out| Ok((out, pipe::Receiver::from_owned_fd(stderr)?)));
        let exit = match pipes {
            Ok(pipes) => self.attend(&mut running, pipes, exit).await,
            Err(error) => {
                running.end(Cause::OutputFailed(error.to_string()), None);
                exit.await.ok()
            }
        };
        running.ended();
        (running, exit)
    }

    async fn attend(
        &mut self,
        running: &mut Running,
        (mut stdout, mut stderr): (pipe::Receiver, pipe::Receiver),
        mut exit: tokio::sync::oneshot::Receiver<Exit>,
    ) -> Option<Exit> {
        let (mut from_stdout, mut from_stderr) = (Vec::with_capacity(READ_BYTES), Vec::with_capacity(READ_BYTES));
        let (mut stopping, nudge) = (self.stopping.clone(), Arc::clone(&self.nudge));
        let (mut stdout_open, mut stderr_open) = (true, true);
        let mut exited: Option<Option<Exit>> = None;
        let mut linger_until: Option<Instant> = None;
        let mut publishing: Option<Publishing> = None;
        let mut extending: Option<Extending<'_>> = None;
        let extend_every = self.worker.config.lease_ttl / 3;
        let mut extend_at = Instant::now() + extend_every;
        let mut timeout_at = self.execution.spec.timeout_ms.map(|ms| running.began + Duration::from_millis(ms));
        let mut release_at = Instant::now() + SILENCE;
        let mut stop_seen = false;
        loop {
            if publishing.is_none() && exited.is_some() && !stdout_open && !stderr_open {
                self.recorder.release(self.worker.clock.now());
                return exited.flatten();
            }
            let (alive, may_read) = (exited.is_none(), publishing.is_none());
            tokio::select! {
                // What the command did comes before what is done to it.
                biased;
                status = &mut exit, if alive => {
                    exited = Some(status.ok());
                    linger_until = Some(Instant::now() + LINGER);
                }
                (publisher, raw_len, published) = resolve(&mut publishing), if !may_read => {
                    publishing = None;
                    self.publisher = Some(publisher);
                    self.published(running, raw_len, published);
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
                extended = resolve(&mut extending), if extending.is_some() => {
                    extending = None;
                    self.extended(running, extended);
                }
                () = until(timeout_at), if alive => {
                    timeout_at = None;
                    running.end(Cause::Timeout, Some(self.worker.config.grace));
                }
                () = until(running.kill_at()), if alive => running.force(),
                () = told_to_end_all(&mut stopping), if alive && !stop_seen => {
                    stop_seen = true;
                    running.end(Cause::WorkerStop, Some(self.worker.config.grace));
                }
                () = nudge.notified(), if extending.is_none() => extending = Some(self.send_extend(running)),
                () = sleep_until(extend_at), if extending.is_none() => {
                    extend_at = Instant::now() + extend_every;
                    extending = Some(self.send_extend(running));
                }
                () = sleep_until(release_at), if may_read && self.recorder.has_news() => {
                    self.recorder.release(self.worker.clock.now());
                    publishing = self.publish_news();
                }
                () = until(linger_until), if may_read && (stdout_open || stderr_open) => {
                    (stdout_open, stderr_open) = (false, false);
                    self.recorder.platform(self.worker.clock.now(), "somebody else holds the output open; what is written from now on is not kept");
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
                self.recorder.write(stream, now, buffer);
                buffer.clear();
                true
            }
            Err(error) => {
                running.end(Cause::OutputFailed(error.to_string()), None);
                false
            }
        }
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

    fn send_extend(&self, running: &Running) -> Extending<'a> {
        let extend = self.extend_request(running.pid);
        Box::pin(self.worker.leases.extend(extend))
    }

    fn extend_request(&self, pid: Option<u32>) -> Extend {
        Extend {
            fence: self.fence,
            ttl_ms: u64::try_from(self.worker.config.lease_ttl.as_millis()).unwrap_or(u64::MAX),
            process_id: pid,
            rss_bytes: pid.and_then(resident_bytes),
            last_output_at: self.last_output_at,
        }
    }

    fn extended(&self, running: &mut Running, extended: Result<Extended, LeaseError>) {
        match extended {
            Ok(Extended { kill: Some(kill), .. }) => running.obey(kill, self.worker.config.grace),
            Ok(_) => {}
            Err(LeaseError::Lost(why)) => {
                tracing::warn!(execution = %self.execution.id, why, "the lease is lost: the command is ended");
                running.end(Cause::LeaseLost, None);
            }
            // The next extend tries again; the lease outlives two that fail.
            Err(error) => tracing::warn!(execution = %self.execution.id, %error, "a lease was not extended"),
        }
    }

    /// What the end means. `None` if the lease was lost: then nobody wants to hear of it.
    fn judge(&self, running: &Running, exit: Option<Exit>) -> Option<Outcome> {
        match running.cause() {
            Some(Cause::LeaseLost) => return None,
            Some(Cause::Timeout) => {
                let timeout_ms = self.execution.spec.timeout_ms.unwrap_or_default();
                return Some(Outcome::TimedOut { timeout_ms, forced: running.forced() });
            }
            Some(Cause::WorkerStop) => return Some(Outcome::WorkerStopped),
            Some(Cause::OutputFailed(why)) => {
                return Some(Outcome::OutputFailed { message: format!("its output could not be kept: {why}") });
            }
            Some(Cause::Kill) | None => {}
        }
        let after_kill = running.cause().is_some();
        Some(match exit {
            Some(exit) if exit.oom_killed && !after_kill && exit.status != ExitStatus::Code(0) => Outcome::OutOfMemory,
            Some(Exit { status: ExitStatus::Code(code), .. }) => Outcome::Exited { code, after_kill },
            Some(Exit { status: ExitStatus::Signal(signal), .. }) => Outcome::Signalled { signal, after_kill },
            None | Some(Exit { status: ExitStatus::Lost, .. }) => {
                Outcome::Lost { message: "the process that starts commands was lost, and this command with it".into() }
            }
        })
    }

    /// Writes the last lines of the log and records the end, keeping the lease until that is done.
    async fn conclude(&mut self, outcome: Outcome, running: Option<&Running>, ran: Duration) {
        let last_line = describe(&outcome, running.and_then(Running::kill_request), ran);
        self.publish_last_lines(&last_line).await;
        let pid = running.and_then(|running| running.pid);
        let ended = EndAttempt {
            fence: self.fence,
            outcome,
            log_end: 0,
            duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            process_id: pid,
            cost_micro_usd: 0,
        };
        report_end(&*self.worker.leases, ended, &self.extend_request(pid), self.worker.config.lease_ttl / 3).await;
    }
}

impl Attempt<'_> {
    /// Publishes what is left of the output and the platform's last lines. A full log takes only the latter.
    async fn publish_last_lines(&mut self, last_line: &str) {
        let Some(publisher) = self.publisher.as_mut().filter(|_| !self.unkept.failed) else { return };
        let now = self.worker.clock.now();
        if self.unkept.full {
            self.unkept.bytes += self.recorder.take().map_or(0, |block| block.raw_len);
        } else {
            self.recorder.platform(now, last_line);
            let block = self.recorder.take().expect("a line was just written");
            let raw_len = block.raw_len;
            match publisher.publish(block).await {
                Err(Unpublished::Full) => self.unkept.bytes += raw_len,
                Err(error) => return tracing::warn!(execution = %self.execution.id, ?error, "the last lines of a log were not stored"),
                Ok(()) => return,
            }
        }
        self.recorder.platform(now, &format!("the log is full: {} bytes of output were not kept", self.unkept.bytes));
        self.recorder.platform(now, last_line);
        if let Some(block) = self.recorder.take()
            && let Err(error) = publisher.publish(block).await
        {
            tracing::warn!(execution = %self.execution.id, ?error, "the last lines of a log were not stored");
        }
    }
}

/// The end of a future that may not be there; a branch that uses it checks that first.
async fn resolve<F: Future + Unpin>(pending: &mut Option<F>) -> F::Output {
    match pending {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn told_to_end_all(stopping: &mut watch::Receiver<Stopping>) {
    let told = stopping.wait_for(|stopping| *stopping == Stopping::EndAll).await.is_ok();
    if !told {
        // The worker is gone without a word; its runtime ends this task too.
        std::future::pending::<()>().await;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn describe(outcome: &Outcome, kill: Option<&KillRequest>, ran: Duration) -> String {
    let seconds = ran.as_secs_f64();
    let by = kill.map(|kill| format!("killed by {}: ", kill.by)).unwrap_or_default();
    match outcome {
        Outcome::Exited { code, .. } => format!("{by}exit code {code} after {seconds:.3} s"),
        Outcome::Signalled { signal, .. } => format!("{by}ended by signal {signal} after {seconds:.3} s"),
        Outcome::TimedOut { timeout_ms, .. } => format!("timeout: ended after {seconds:.3} s, {timeout_ms} ms were allowed"),
        Outcome::OutOfMemory => format!("out of memory after {seconds:.3} s"),
        Outcome::StartFailed { message } => format!("could not be started: {message}"),
        Outcome::OutputFailed { message } | Outcome::Lost { message } => message.clone(),
        Outcome::WorkerStopped => format!("the worker was stopped; the command was ended after {seconds:.3} s"),
    }
}

/// Resident memory of a process, where the system tells it cheaply.
fn resident_bytes(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
