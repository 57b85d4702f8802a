//! The waits of an attempt before something of it runs: its lease is kept meanwhile, and a kill, a
//! disk stop and the worker's stop end them. An attempt that was ended here ran no command. Also
//! the waits after its command has ended: a kill cuts short only the one for what the command left
//! ([`Bound::Wanted`]), because the end itself must be told.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::{EndAttempt, Extended, Outcome};
use runvoy_ports::lease::LeaseError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::supervise::{Extending, resolve, told_to_end_all, told_to_free, until};
use super::{Attempt, Ended, LAST_WORD_WITHIN};
use crate::report::report_end;
use crate::worker::{Stopping, Worker};

/// What else than a lost lease ends the wait for something that is done for a command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// A kill, which is kept for the outcome.
    Wanted,
    /// It has a bound of its own.
    Own,
    /// The execution counts as lost by now, or the worker is told to end everything.
    Patience,
}

impl<'a> Attempt<'a> {
    /// Waits for something; a kill, a disk stop, a lost lease or the worker's stop ends the wait,
    /// and what was waited for is dropped.
    pub(super) async fn wait_for<T>(&mut self, work: impl Future<Output = T> + Send) -> Result<T, Ended> {
        let mut work = pin!(work);
        let (mut stopping, mut disk_stop, nudge) = (self.stopping.clone(), self.disk_stop.clone(), Arc::clone(&self.nudge));
        let mut extending: Option<Extending<'a>> = None;
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    if extending.is_some() {
                        // Its answer is not heard any more: whoever watches next asks again.
                        nudge.notify_one();
                    }
                    return Ok(done);
                }
                extended = resolve(&mut extending), if extending.is_some() => {
                    extending = None;
                    self.is_wanted(extended).map_err(|outcome| (outcome, None))?;
                }
                message = told_to_free(&mut disk_stop) => return Err((Some(Outcome::OutOfDisk { message }), None)),
                () = told_to_end_all(&mut stopping) => return Err((Some(Outcome::WorkerStopped), None)),
                () = nudge.notified(), if extending.is_none() => extending = Some(self.send_extend()),
                () = sleep_until(self.extend_at), if extending.is_none() => {
                    self.extend_at = Instant::now() + self.extend_every();
                    extending = Some(self.send_extend());
                }
            }
        }
    }

    /// Keeps the lease while something is done for a command that has ended; `None` if the lease is lost meanwhile, or the bound is reached.
    pub(super) async fn keep_lease_during<T>(&mut self, bound: Bound, work: impl Future<Output = T> + Send) -> Option<T> {
        let mut work = pin!(work);
        let mut leaving = pin!(told_to_leave(self.worker, self.stopping.clone(), LAST_WORD_WITHIN));
        let nudge = Arc::clone(&self.nudge);
        let mut extending: Option<Extending<'a>> = None;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                extended = resolve(&mut extending), if extending.is_some() => {
                    extending = None;
                    self.note_held(&extended);
                    match extended {
                        Ok(Extended { kill: Some(kill), .. }) if bound == Bound::Wanted => {
                            self.killed_by = Some(kill);
                            return None;
                        }
                        Ok(_) => {}
                        Err(LeaseError::Lost(why)) => {
                            tracing::warn!(execution = %self.execution.id, why, "the lease is lost before the end was recorded");
                            return None;
                        }
                        Err(error) => tracing::warn!(execution = %self.execution.id, error = error.cause(), "a lease was not extended"),
                    }
                }
                () = nudge.notified(), if bound == Bound::Wanted && extending.is_none() => extending = Some(self.send_extend()),
                () = sleep_until(self.extend_at), if extending.is_none() => {
                    self.extend_at = Instant::now() + self.worker.config.lease_ttl / 3;
                    extending = Some(self.send_extend());
                }
                () = &mut leaving, if bound == Bound::Patience => return None,
                () = until(self.give_up_at()), if bound == Bound::Patience => return None,
            }
        }
    }

    /// Tells the end of the attempt until somebody has heard it, keeping the lease meanwhile. Gives up when the server was away for so long that
    /// the execution counts as lost there, and when the worker is told to end everything: what was told once is written down, and others bring it.
    pub(super) async fn report_end(&mut self, ended: EndAttempt) {
        let mut reporting = pin!(report_end(&*self.worker.leases, ended));
        let mut leaving = pin!(told_to_leave(self.worker, self.stopping.clone(), Duration::ZERO));
        let mut extending: Option<Extending<'a>> = None;
        let mut is_lost = false;
        loop {
            tokio::select! {
                biased;
                () = &mut reporting => return,
                extended = resolve(&mut extending), if extending.is_some() => {
                    extending = None;
                    self.note_held(&extended);
                    // The end itself may be what ended the lease: its own answer says so.
                    is_lost = matches!(extended, Err(LeaseError::Lost(_)));
                }
                () = sleep_until(self.extend_at), if extending.is_none() && !is_lost => {
                    self.extend_at = Instant::now() + self.worker.config.lease_ttl / 3;
                    extending = Some(self.send_extend());
                }
                () = until(self.give_up_at()) => {
                    return tracing::warn!(execution = %self.execution.id, "the end of an attempt could not be reported in time");
                }
                () = &mut leaving => return tracing::info!(execution = %self.execution.id, "the end of an attempt is on its way"),
            }
        }
    }

    /// Asks once whether the attempt shall go on. Where nobody answers it does: the next extend asks again.
    pub(super) async fn ask_to_go_on(&mut self) -> Result<(), Ended> {
        let every = self.worker.config.lease_ttl / 3;
        self.extend_at = Instant::now() + every;
        let extending = self.send_extend();
        match timeout(every, extending).await {
            Ok(extended) => self.is_wanted(extended).map_err(|outcome| (outcome, None)),
            Err(_) => Ok(()),
        }
    }

    /// Whether the attempt shall go on; otherwise how it ended, if anybody wants to hear of it.
    fn is_wanted(&mut self, extended: Result<Extended, LeaseError>) -> Result<(), Option<Outcome>> {
        self.note_held(&extended);
        match extended {
            Ok(Extended { kill: Some(kill), .. }) => {
                Err(Some(Outcome::StartFailed { message: format!("{} killed it before its command started", kill.by), exit_code: None }))
            }
            Ok(_) => Ok(()),
            Err(LeaseError::Lost(why)) => {
                tracing::warn!(execution = %self.execution.id, why, "the lease is lost before the command was started");
                Err(None)
            }
            Err(error) => {
                tracing::warn!(execution = %self.execution.id, error = error.cause(), "a lease was not extended");
                Ok(())
            }
        }
    }
}

/// Comes back so long after the worker was told to end everything, where somebody else brings what an attempt has to tell. Where the store is the worker's own,
/// nobody else would.
pub(super) async fn told_to_leave(worker: &Worker, mut stopping: watch::Receiver<Stopping>, after: Duration) {
    if worker.config.lost_after.is_none() {
        std::future::pending::<()>().await;
    }
    told_to_end_all(&mut stopping).await;
    sleep(after).await;
}
