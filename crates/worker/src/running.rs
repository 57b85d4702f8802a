//! A command under way, and what the platform does to it: whoever ends it first is told as the cause, a later cause may only
//! take time away from it.

use std::time::Duration;

use runvoy_model::execution::KillRequest;
use runvoy_ports::runner::Control;
use tokio::time::Instant;

/// Why the platform ended a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    Kill,
    Timeout,
    WorkerStop,
    LeaseLost,
    OutputFailed(String),
    /// It wrote too much.
    OutOfDisk(String),
}

pub(crate) struct Running {
    control: Box<dyn Control>,
    pub(crate) pid: Option<u32>,
    pub(crate) began: Instant,
    cause: Option<Cause>,
    /// When `SIGTERM` becomes `SIGKILL`.
    kill_at: Option<Instant>,
    kill_request: Option<KillRequest>,
    forced: bool,
    alive: bool,
}

impl Running {
    pub(crate) fn new(control: Box<dyn Control>, pid: Option<u32>, began: Instant) -> Self {
        Self { control, pid, began, cause: None, kill_at: None, kill_request: None, forced: false, alive: true }
    }

    pub(crate) fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    pub(crate) fn kill_at(&self) -> Option<Instant> {
        self.kill_at
    }

    pub(crate) fn kill_request(&self) -> Option<&KillRequest> {
        self.kill_request.as_ref()
    }

    /// `SIGTERM` was not enough.
    pub(crate) fn forced(&self) -> bool {
        self.forced
    }

    /// Ends the command for a cause: with a grace period, or at once.
    pub(crate) fn end(&mut self, cause: Cause, grace: Option<Duration>) {
        if !self.alive {
            return;
        }
        if self.cause.is_none() {
            self.cause = Some(cause);
            if grace.is_some() {
                self.control.terminate();
            }
        }
        match grace {
            None => self.force(),
            Some(grace) if !self.forced => {
                let at = Instant::now() + grace;
                self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
            }
            Some(_) => {}
        }
    }

    /// Obeys somebody's wish. Every extend repeats it: only what is new in it counts.
    pub(crate) fn obey(&mut self, request: KillRequest, grace: Duration) {
        let known = self.kill_request.as_ref().is_some_and(|known| known.force == request.force);
        if !known {
            let grace = (!request.force).then_some(grace);
            self.kill_request = Some(request);
            self.end(Cause::Kill, grace);
        }
    }

    /// Ends every process of the command now.
    pub(crate) fn force(&mut self) {
        self.forced = true;
        self.kill_at = None;
        self.control.kill();
    }

    /// It is ended after this time unless this is said again, even if nobody here can do it then.
    pub(crate) fn live_for(&self, time: Duration) {
        self.control.live_for(time);
    }

    /// The memory that all of it takes now, where its runner knows.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.control.memory_bytes()
    }

    /// Every process of the command is gone.
    pub(crate) fn ended(&mut self) {
        self.alive = false;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever watched it is gone, by a bug or with the runtime: nobody would ever end it.
        if self.alive {
            self.control.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use runvoy_model::time::UnixMs;

    use super::*;

    #[derive(Clone, Default)]
    struct Signals(Arc<Mutex<Vec<&'static str>>>);

    impl Control for Signals {
        fn terminate(&self) {
            self.0.lock().push("TERM");
        }

        fn kill(&self) {
            self.0.lock().push("KILL");
        }
    }

    fn running() -> (Running, Signals) {
        let signals = Signals::default();
        (Running::new(Box::new(signals.clone()), None, Instant::now()), signals)
    }

    fn request(force: bool) -> KillRequest {
        KillRequest { by: "ada".into(), at: UnixMs(1), force }
    }

    const GRACE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_repeated_wish_takes_no_time_away() {
        let (mut running, signals) = running();
        running.obey(request(false), GRACE);
        let deadline = running.kill_at();
        tokio::time::advance(Duration::from_secs(10)).await;
        running.obey(request(false), GRACE);
        assert_eq!(running.kill_at(), deadline);
        assert_eq!(*signals.0.lock(), ["TERM"]);
        running.obey(request(true), GRACE);
        assert_eq!(*signals.0.lock(), ["TERM", "KILL"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_cause_is_told_and_a_later_one_may_only_shorten() {
        let (mut running, _signals) = running();
        running.end(Cause::Timeout, Some(GRACE));
        let first = running.kill_at().expect("a deadline");
        running.end(Cause::WorkerStop, Some(Duration::from_secs(1)));
        assert!(running.kill_at().expect("a deadline") < first);
        running.end(Cause::Kill, Some(GRACE));
        assert!(running.kill_at().expect("a deadline") < first);
        assert_eq!(running.cause(), Some(&Cause::Timeout));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_watches_any_more_is_killed() {
        let (running, signals) = running();
        drop(running);
        assert_eq!(*signals.0.lock(), ["KILL"]);
        let (mut running, signals) = self::running();
        running.ended();
        running.end(Cause::Kill, None);
        drop(running);
        assert!(signals.0.lock().is_empty(), "it had ended by itself");
    }
}
