//! One attempt from its begin to its recorded end: start the command, publish what it writes, keep its lease,
//! enforce its timeout, obey a kill, and say truthfully how it ended.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::{EndAttempt, Extend, Fence, Outcome};
use runvoy_model::execution::Execution;
use runvoy_model::log::{Block, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::lease::LeaseError;
use runvoy_ports::runner::{Control, Exit, ExitStatus, Start, Started};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::environment::environment;
use crate::output::Recorder;
use crate::report::{Publisher, Unpublished, report_end};
use crate::worker::{Stopping, Worker};

/// A command that writes no newline for this long has its line shown as it is.
const SILENCE: Duration = Duration::from_millis(200);
const READ_BYTES: usize = 64 * 1024;

pub(crate) struct Attempt<'a> {
    worker: &'a Worker,
    execution: Execution,
    fence: Fence,
    nudge: Arc<Notify>,
    stopping: watch::Receiver<Stopping>,
    recorder: Recorder,
    publisher: Publisher,
    /// Bytes of output that the full log did not take.
    discarded: u64,
    log_limit: Option<u64>,
    last_output_at: Option<UnixMs>,
}

/// Why the platform ended a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    Kill,
    Timeout,
    WorkerStop,
    LeaseLost,
    OutputFailed(String),
}

/// A command under way.
struct Running {
    control: Box<dyn Control>,
    pid: Option<u32>,
    began: Instant,
    /// What the platform ended it for, and when that becomes a `SIGKILL`.
    ending: Option<(Cause, Option<Instant>)>,
    forced: bool,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(worker: &'a Worker, execution: Execution, nudge: Arc<Notify>, stopping: watch::Receiver<Stopping>) -> Self {
        let lease = execution.lease.as_ref().expect("an attempt runs under its lease");
        let fence = Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id };
        let publisher = Publisher::new(Arc::clone(&worker.leases), fence);
        let recorder = Recorder::default();
        Self { worker, execution, fence, nudge, stopping, recorder, publisher, discarded: 0, log_limit: None, last_output_at: None }
    }

    pub(crate) async fn run(mut self) {
        let began = Instant::now();
        let start = Start {
            execution: self.execution.id,
            attempt: self.fence.attempt,
            argv: self.execution.spec.argv(),
            env: environment(&self.execution, &self.worker.config.home),
            limits: self.worker.config.limits,
        };
        let (outcome, pid) = match self.worker.runner.start(start).await {
            Err(error) => (Some(Outcome::StartFailed { message: error.message }), None),
            Ok(started) => {
                let pid = started.pid;
                (self.supervise(started, began).await, pid)
            }
        };
        if let Some(outcome) = outcome {
            self.conclude(outcome, pid, began.elapsed()).await;
        }
        self.worker.runner.clean_up(self.execution.id, self.fence.attempt).await;
    }

    /// Sees a command through to its end. `None` if the lease was lost: then nobody wants to hear of it.
    async fn supervise(&mut self, started: Started, began: Instant) -> Option<Outcome> {
        let line = format!("attempt {} started on {} ({} runner)", self.fence.attempt, self.worker.config.host, self.worker.runner.name());
        self.recorder.platform(self.worker.clock.now(), &line);
        let Started { stdout, stderr, exit, control, pid, .. } = started;
        let mut running = Running { control, pid, began, ending: None, forced: false };
        let pipes = pipe::Receiver::from_owned_fd(stdout).and_then(|out| Ok((out, pipe::Receiver::from_owned_fd(stderr)?)));
        let exit = match pipes {
            Ok((stdout, stderr)) => self.attend(&mut running, stdout, stderr, exit).await,
            Err(error) => {
                running.end(Cause::OutputFailed(error.to_string()), None);
                exit.await.ok()
            }
        };
        self.recorder.release(self.worker.clock.now());
        self.judge(&running, exit)
    }

    async fn attend(
        &mut self,
        running: &mut Running,
        mut stdout: pipe::Receiver,
        mut stderr: pipe::Receiver,
        mut exit: oneshot::Receiver<Exit>,
    ) -> Option<Exit> {
        let (mut from_stdout, mut from_stderr) = (Vec::with_capacity(READ_BYTES), Vec::with_capacity(READ_BYTES));
        let (mut stopping, nudge) = (self.stopping.clone(), Arc::clone(&self.nudge));
        let (mut stdout_open, mut stderr_open) = (true, true);
        let mut exited: Option<Option<Exit>> = None;
        let extend_every = self.worker.config.lease_ttl / 3;
        let mut extend_at = Instant::now() + extend_every;
        let mut timeout_at = self.execution.spec.timeout_ms.map(|ms| running.began + Duration::from_millis(ms));
        let mut release_at = Instant::now() + SILENCE;
        let mut stop_seen = false;
        while stdout_open || stderr_open || exited.is_none() {
            let kill_at = running.ending.as_ref().and_then(|(_, kill_at)| *kill_at);
            tokio::select! {
                read = stdout.read_buf(&mut from_stdout), if stdout_open => {
                    stdout_open = self.take(running, Stream::Stdout, read, &mut from_stdout).await;
                    release_at = Instant::now() + SILENCE;
                }
                read = stderr.read_buf(&mut from_stderr), if stderr_open => {
                    stderr_open = self.take(running, Stream::Stderr, read, &mut from_stderr).await;
                    release_at = Instant::now() + SILENCE;
                }
                status = &mut exit, if exited.is_none() => exited = Some(status.ok()),
                () = sleep_until(release_at), if self.recorder.has_news() => {
                    self.recorder.release(self.worker.clock.now());
                    self.flush(running).await;
                }
                () = nudge.notified() => self.extend(running).await,
                () = sleep_until(extend_at) => {
                    extend_at = Instant::now() + extend_every;
                    self.extend(running).await;
                }
                () = until(timeout_at) => {
                    timeout_at = None;
                    running.end(Cause::Timeout, Some(self.worker.config.grace));
                }
                () = until(kill_at) => running.force(),
                () = told_to_end_all(&mut stopping), if !stop_seen => {
                    stop_seen = true;
                    running.end(Cause::WorkerStop, Some(self.worker.config.grace));
                }
            }
        }
        exited.flatten()
    }

    /// Takes what was read; `false` at the end of the stream.
    async fn take(&mut self, running: &mut Running, stream: Stream, read: std::io::Result<usize>, buffer: &mut Vec<u8>) -> bool {
        match read {
            Ok(0) => false,
            Ok(_) => {
                let now = self.worker.clock.now();
                self.last_output_at = Some(now);
                self.recorder.write(stream, now, buffer);
                buffer.clear();
                self.flush(running).await;
                true
            }
            Err(error) => {
                running.end(Cause::OutputFailed(error.to_string()), None);
                false
            }
        }
    }

    async fn flush(&mut self, running: &mut Running) {
        let Some(block) = self.recorder.take() else { return };
        match self.publish(block).await {
            Ok(()) => {}
            Err(Unpublished::Lost) => running.end(Cause::LeaseLost, None),
            Err(Unpublished::Failed(why) | Unpublished::Full(_, why)) => running.end(Cause::OutputFailed(why), None),
        }
    }

    /// Publishes records, or counts what a full log does not take.
    async fn publish(&mut self, block: Block) -> Result<(), Unpublished> {
        if self.log_limit.is_some() {
            self.discarded += block.raw_len;
            return Ok(());
        }
        let raw_len = block.raw_len;
        match self.publisher.publish(block).await {
            Err(Unpublished::Full(limit, _)) => {
                self.log_limit = Some(limit);
                self.discarded += raw_len;
                Ok(())
            }
            other => other,
        }
    }

    async fn extend(&mut self, running: &mut Running) {
        let extend = Extend {
            fence: self.fence,
            ttl_ms: u64::try_from(self.worker.config.lease_ttl.as_millis()).unwrap_or(u64::MAX),
            process_id: running.pid,
            rss_bytes: running.pid.and_then(resident_bytes),
            last_output_at: self.last_output_at,
        };
        match self.worker.leases.extend(extend).await {
            Ok(extended) => {
                if let Some(kill) = extended.kill {
                    running.end(Cause::Kill, if kill.force { None } else { Some(self.worker.config.grace) });
                }
            }
            Err(LeaseError::Lost(why)) => {
                tracing::warn!(execution = %self.execution.id, why, "the lease is lost: the command is ended");
                running.end(Cause::LeaseLost, None);
            }
            // The next extend tries again; the lease outlives two that fail.
            Err(error) => tracing::warn!(execution = %self.execution.id, %error, "a lease was not extended"),
        }
    }

    fn judge(&self, running: &Running, exit: Option<Exit>) -> Option<Outcome> {
        let cause = running.ending.as_ref().map(|(cause, _)| cause);
        let after_kill = cause == Some(&Cause::Kill);
        match cause {
            Some(Cause::LeaseLost) => return None,
            Some(Cause::Timeout) => {
                let timeout_ms = self.execution.spec.timeout_ms.unwrap_or_default();
                return Some(Outcome::TimedOut { timeout_ms, forced: running.forced });
            }
            Some(Cause::WorkerStop) => return Some(Outcome::WorkerStopped),
            Some(Cause::OutputFailed(why)) => return Some(Outcome::OutputFailed { message: format!("its output could not be kept: {why}") }),
            Some(Cause::Kill) | None => {}
        }
        Some(match exit {
            None => Outcome::Lost { message: "the process that starts commands was lost".into() },
            Some(exit) if exit.oom_killed && exit.status != ExitStatus::Code(0) => Outcome::OutOfMemory,
            Some(Exit { status: ExitStatus::Code(code), .. }) => Outcome::Exited { code, after_kill },
            Some(Exit { status: ExitStatus::Signal(signal), .. }) => Outcome::Signalled { signal, after_kill },
            Some(Exit { status: ExitStatus::Lost, .. }) => Outcome::Lost { message: "the process that starts commands was lost".into() },
        })
    }

    /// Writes the last line of the log and records the end.
    async fn conclude(&mut self, outcome: Outcome, pid: Option<u32>, ran: Duration) {
        let now = self.worker.clock.now();
        if self.discarded > 0 {
            self.recorder.platform(now, &format!("the log is full: {} bytes of output were not kept", self.discarded));
        }
        self.recorder.platform(now, &describe(&outcome, ran));
        if let Some(block) = self.recorder.take()
            && let Err(error) = self.publisher.publish(block).await
        {
            tracing::warn!(execution = %self.execution.id, ?error, "the last lines of a log were not stored");
        }
        let ended = EndAttempt {
            fence: self.fence,
            outcome,
            log_end: 0,
            duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            process_id: pid,
            cost_micro_usd: 0,
        };
        report_end(&*self.worker.leases, ended).await;
    }
}

impl Running {
    /// Ends the command for a cause: with a grace period, or at once. The first cause is the one that is told,
    /// but a later one may take away the grace.
    fn end(&mut self, cause: Cause, grace: Option<Duration>) {
        let first = self.ending.is_none();
        let cause = self.ending.take().map_or(cause, |(earlier, _)| earlier);
        match grace {
            Some(grace) if first => {
                self.control.terminate();
                self.ending = Some((cause, Some(Instant::now() + grace)));
            }
            Some(_) => self.ending = Some((cause, Some(Instant::now()))),
            None => {
                self.ending = Some((cause, None));
                self.force();
            }
        }
    }

    fn force(&mut self) {
        self.forced = true;
        if let Some((_, kill_at)) = &mut self.ending {
            *kill_at = None;
        }
        self.control.kill();
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

fn describe(outcome: &Outcome, ran: Duration) -> String {
    let seconds = ran.as_secs_f64();
    match outcome {
        Outcome::Exited { code, .. } => format!("exit code {code} after {seconds:.3} s"),
        Outcome::Signalled { signal, .. } => format!("ended by signal {signal} after {seconds:.3} s"),
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
