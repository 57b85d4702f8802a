//! A container from its start to its removal: how it ends, what it takes, and how it is stopped. The end is told once the container is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::WaitContainerOptions;
use futures_util::StreamExt;
use runvoy_ports::runner::{Control, Exit, ExitStatus};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::daemon::{Daemon, is_answer};
use crate::guard::Guard;
use crate::init::Init;
use crate::usage::Gauges;

/// A signal that the daemon does not take is sent again for this long.
const SIGNAL_WITHIN: Duration = Duration::from_secs(20);
/// A container that could not be removed is tried again for this long.
const REMOVE_WITHIN: Duration = Duration::from_secs(600);
/// The end does not wait longer than this for a removal.
pub(crate) const REMOVED_WITHIN: Duration = Duration::from_secs(30);
/// How often the daemon is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// What a killed command wrote and nobody takes is let go of.
const LAST_OUTPUT_WITHIN: Duration = Duration::from_secs(5);
/// A daemon tells of an end at once; one that has not by then hangs.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
/// How long a process may take to end once it was killed.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AT_USAGE_EVERY: Duration = Duration::from_millis(500);
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// A container that runs.
pub(crate) struct Follow {
    pub(crate) daemon: Daemon,
    pub(crate) guard: Arc<Guard>,
    pub(crate) name: String,
    pub(crate) gauges: Gauges,
    pub(crate) init: Init,
    pub(crate) stopped: Arc<Stopped>,
    /// Hands its output on.
    pub(crate) output: JoinHandle<std::io::Result<()>>,
}

/// Which signal the platform sent last.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    signal: AtomicI32,
    killed: Notify,
}

impl Follow {
    /// Sees it to its end, removes it, and tells how it ended.
    pub(crate) async fn run(mut self, exit: oneshot::Sender<Exit>) {
        let (mut cpu_ms, mut max_rss_bytes) = (0, 0);
        let mut code = Box::pin(wait(self.daemon.clone(), self.name.clone()));
        let mut ended_at: Option<Instant> = None;
        let code = loop {
            tokio::select! {
                biased;
                code = &mut code => break code,
                () = sleep(LOOK_AT_USAGE_EVERY) => {
                    if self.init.has_ended() && ended_at.get_or_insert_with(Instant::now).elapsed() > TOLD_WITHIN {
                        break None;
                    }
                    cpu_ms = self.gauges.cpu_ms().unwrap_or(cpu_ms).max(cpu_ms);
                    max_rss_bytes = self.gauges.peak_bytes().unwrap_or(0).max(max_rss_bytes);
                }
            }
        };
        // Without the daemon the command is ended here: what is told as lost does not run on.
        let is_ended = code.is_some() || self.init.end(KILLED_WITHIN).await;
        let is_whole = self.end_of_output(code.is_some()).await;
        let oom_killed = match code {
            Some(_) => self.oom_killed().await,
            None => false,
        };
        let removal = tokio::spawn(remove(self.daemon.clone(), Arc::clone(&self.guard), self.name.clone()));
        if code.is_some() {
            timeout(REMOVED_WITHIN, removal).await.ok();
        } else if !is_ended {
            // It may still run, out of sight: it has ended once the daemon has removed it.
            removal.await.ok();
        }
        let is_killed = self.stopped.is_killed();
        let status = match code {
            Some(code) if is_whole || is_killed => self.stopped.status(code),
            None if is_ended && is_killed => ExitStatus::Signal(SIGKILL),
            _ => ExitStatus::Lost,
        };
        // Whoever does not wait for the end does not want it.
        let _ = exit.send(Exit { status, oom_killed, cpu_ms, max_rss_bytes });
    }

    /// Waits for the end of its output; without bound while the command's end is told by the daemon and nobody killed it. `false` if the
    /// daemon broke off the stream.
    async fn end_of_output(&mut self, is_told: bool) -> bool {
        let stopped = Arc::clone(&self.stopped);
        let bound = async {
            if is_told && !stopped.is_killed() {
                stopped.killed.notified().await;
            }
            sleep(LAST_OUTPUT_WITHIN).await;
        };
        let whole = tokio::select! {
            ended = &mut self.output => ended.is_ok_and(|ended| ended.is_ok()),
            () = bound => true,
        };
        self.output.abort();
        whole
    }

    async fn oom_killed(&self) -> bool {
        let state = self.daemon.inspect(&self.name).await.ok().and_then(|found| found.state);
        state.and_then(|state| state.oom_killed).unwrap_or(false)
    }
}

impl Stopped {
    fn is_killed(&self) -> bool {
        self.signal.load(Ordering::SeqCst) == SIGKILL
    }

    /// What an exit code means: the daemon tells a signal as a shell does.
    fn status(&self, code: i64) -> ExitStatus {
        let code = i32::try_from(code).unwrap_or(-1);
        let sent = self.signal.load(Ordering::SeqCst);
        match code - 128 {
            SIGKILL if sent == SIGKILL => ExitStatus::Signal(SIGKILL),
            SIGTERM if sent != 0 => ExitStatus::Signal(SIGTERM),
            _ => ExitStatus::Code(code),
        }
    }
}

/// The exit code of a container; `None` if it, or the daemon, is gone. A daemon that comes back has ended it, and the rest of its output is lost.
async fn wait(daemon: Daemon, name: String) -> Option<i64> {
    let options = WaitContainerOptions { condition: "not-running".to_owned() };
    let mut waiting = Box::pin(daemon.docker.wait_container(&name, Some(options)));
    match waiting.next().await {
        Some(Ok(ended)) => Some(ended.status_code),
        Some(Err(Error::DockerContainerWaitError { code, .. })) => Some(code),
        Some(Err(_)) | None => None,
    }
}

/// Removes a container as soon as the daemon can be asked.
pub(crate) async fn remove(daemon: Daemon, guard: Arc<Guard>, name: String) {
    let began = Instant::now();
    while let Err(error) = daemon.remove(&name).await {
        if began.elapsed() > REMOVE_WITHIN {
            tracing::error!(%error, name, "a container could not be removed: the next start of this worker tries again");
            return;
        }
        sleep(ASK_AGAIN_AFTER).await;
    }
    guard.over(&name);
}

/// Stops a container.
pub(crate) struct Stop {
    pub(crate) daemon: Daemon,
    pub(crate) guard: Arc<Guard>,
    pub(crate) name: String,
    pub(crate) gauges: Gauges,
    pub(crate) init: Init,
    pub(crate) stopped: Arc<Stopped>,
    pub(crate) runtime: Handle,
}

impl Stop {
    fn send(&self, number: i32, signal: &'static str) {
        if number == SIGKILL {
            self.stopped.signal.store(SIGKILL, Ordering::SeqCst);
            self.stopped.killed.notify_one();
            self.init.kill();
        } else {
            // Whatever was sent before is stronger.
            self.stopped.signal.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst).ok();
        }
        let (daemon, name) = (self.daemon.clone(), self.name.clone());
        self.runtime.spawn(async move {
            let began = Instant::now();
            while let Err(error) = daemon.signal(&name, signal).await {
                // An answer says that it does not run any more, which is as good.
                if is_answer(&error) || began.elapsed() > SIGNAL_WITHIN {
                    return;
                }
                sleep(ASK_AGAIN_AFTER).await;
            }
        });
    }
}

impl Control for Stop {
    fn terminate(&self) {
        self.send(SIGTERM, "SIGTERM");
    }

    fn kill(&self) {
        self.send(SIGKILL, "SIGKILL");
    }

    fn live_for(&self, time: Duration) {
        self.guard.live(&self.name, time);
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.gauges.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signal_of_the_platform_is_told_as_one() {
        let stopped = Stopped::default();
        assert_eq!((stopped.status(0), stopped.status(137)), (ExitStatus::Code(0), ExitStatus::Code(137)));
        stopped.signal.store(SIGTERM, Ordering::SeqCst);
        assert_eq!((stopped.status(143), stopped.status(137)), (ExitStatus::Signal(SIGTERM), ExitStatus::Code(137)));
        stopped.signal.store(SIGKILL, Ordering::SeqCst);
        assert_eq!((stopped.status(137), stopped.status(3)), (ExitStatus::Signal(SIGKILL), ExitStatus::Code(3)));
    }
}
