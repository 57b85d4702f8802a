//! One attempt from its begin to its recorded end: get what it needs, clone its repository, start the command, and say truthfully how
//! it ended. What happens while a command runs is the watch's.

mod activity;
mod cleaning;
mod gather;
mod image;
mod supervise;
mod wait;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::{EndAttempt, Fence, Outcome};
use runvoy_model::execution::{Execution, KillRequest};
use runvoy_model::git::GitSource;
use runvoy_model::retry::Category;
use runvoy_model::spec::Needs;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::lease::Materials;
use runvoy_ports::runner::{CONTAINER_WORK_DIR, Exit, ExitStatus, Start, Started, WorkDir, WorkFile};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use self::activity::Activity;
use self::cleaning::Cleaning;
use self::gather::{Gathered, without_output};
use self::wait::Bound;
use crate::checkout::Checkout;
use crate::dotenv::dotenv;
use crate::environment::environment;
use crate::exchange;
use crate::git_failure;
use crate::material::{GIVE_UP_AFTER, NotHad, Patience, fetch, mask};
use crate::output::Recorder;
use crate::own_key::OwnKey;
use crate::report::{Publisher, Unpublished};
use crate::running::{Cause, Running};
use crate::transcript::Transcript;
use crate::worker::{DiskStop, Place, Stopping, Worker};

/// A runner that has not started a command by then has failed to.
const START_WITHIN: Duration = Duration::from_secs(15);
/// The same for a container, where the daemon has more to do and other starts to wait for.
const START_CONTAINER_WITHIN: Duration = Duration::from_secs(60);
/// The last word of a worker that cannot reach the server has this long: what keeps it is on the worker's own disk, or it is lost.
const LAST_WORD_WITHIN: Duration = Duration::from_secs(1);
/// A shorter wait in the queue is not told.
const WAIT_WORTH_TELLING_MS: i64 = 1_000;

pub(crate) struct Attempt<'a> {
    worker: &'a Worker,
    execution: Execution,
    fence: Fence,
    nudge: Arc<Notify>,
    /// Why it is ended for what it wrote to disk.
    disk_stop: watch::Receiver<Option<DiskStop>>,
    cleaning: Arc<Cleaning>,
    /// A kill that came after its command had ended by itself, while what it left was waited for.
    killed_by: Option<KillRequest>,
    stopping: watch::Receiver<Stopping>,
    materials: Materials,
    /// What the log says about secrets that cannot be masked well.
    warnings: Vec<String>,
    recorder: Recorder,
    /// Takes what git writes while a repository is cloned.
    transcript: Option<Transcript>,
    /// Taken while records are on their way.
    publisher: Option<Publisher>,
    unkept: Unkept,
    last_output_at: Option<UnixMs>,
    activity: Activity,
    /// How far the pull of its image is, while that goes on.
    pull: Option<watch::Receiver<Option<String>>>,
    has_pulled: bool,
    extend_at: Instant,
    /// When the last extend was sent.
    extend_sent: Moment,
    /// When the last extend that was answered was sent: what the lease and everything else without the server is counted from.
    heard: Moment,
    /// The command was ended because of that.
    is_cut_off: bool,
}

/// A moment, by the clock that stands still while the machine sleeps, and how long it had slept by then.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at: Instant,
    asleep: Duration,
}

impl Moment {
    fn now(clock: &dyn Clock) -> Self {
        Self { at: Instant::now(), asleep: clock.asleep() }
    }

    /// When so much time will have passed since, where the machine has slept for so long by now.
    fn plus(self, time: Duration, asleep: Duration) -> Instant {
        self.at + time.saturating_sub(asleep.saturating_sub(self.asleep))
    }
}

/// Output that the log did not take.
#[derive(Default)]
struct Unkept {
    bytes: u64,
    /// The log is full: the command goes on, its output is counted.
    full: bool,
    /// The log failed: nothing more is sent to it.
    failed: bool,
    /// What came last was on its way when nobody waited for it any more.
    is_unsure: bool,
}

/// How an attempt ended, and what ran last. Without an outcome nobody wants to hear of it.
type Ended = (Option<Outcome>, Option<Running>);

impl<'a> Attempt<'a> {
    pub(crate) fn new(worker: &'a Worker, execution: Execution, place: &Place, stopping: watch::Receiver<Stopping>) -> Self {
        let lease = execution.lease.as_ref().expect("an attempt runs under its lease");
        let fence = Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id };
        let heard_at = worker.leases.held_since(fence).map_or_else(Instant::now, Instant::from_std);
        let heard = Moment { at: heard_at, asleep: worker.clock.asleep() };
        Self {
            worker,
            execution,
            fence,
            nudge: Arc::clone(&place.nudge),
            disk_stop: place.disk_stop.subscribe(),
            cleaning: Arc::new(Cleaning::new()),
            killed_by: None,
            stopping,
            materials: Materials::default(),
            warnings: Vec::new(),
            recorder: Recorder::new(worker.config.own_key.as_ref().and_then(OwnKey::mask)),
            transcript: None,
            publisher: Some(Publisher::new(Arc::clone(&worker.leases), fence, worker.config.output_patience)),
            unkept: Unkept::default(),
            last_output_at: None,
            activity: Activity::default(),
            pull: None,
            has_pulled: false,
            extend_at: heard_at + worker.config.lease_ttl / 3,
            extend_sent: heard,
            heard,
            is_cut_off: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let (worker, fence, cleaning) = (self.worker, self.fence, Arc::clone(&self.cleaning));
        let mut cleaner = pin!(cleaning.run(worker, fence, self.disk_stop.clone()));
        let mut work = pin!(self.see_through());
        let is_clean = tokio::select! {
            biased;
            () = &mut work => false,
            () = &mut cleaner => {
                work.await;
                true
            }
        };
        worker.leases.leave(fence);
        if !is_clean {
            cleaning.begin();
            cleaner.await;
        }
    }

    async fn see_through(&mut self) {
        let began = Instant::now();
        let (outcome, running) = self.play(began).await;
        self.cleaning.note_over(true);
        match outcome {
            Some(outcome) => self.conclude(outcome, running.as_ref(), began.elapsed()).await,
            None => self.leave_word().await,
        }
    }

    async fn play(&mut self, began: Instant) -> Ended {
        if let Err(ended) = self.prepare().await {
            return ended;
        }
        let container = match self.fetch_image().await {
            Ok(container) => container,
            Err(ended) => return ended,
        };
        // A pull takes nothing of the command's own time.
        let began = if self.has_pulled { Instant::now() } else { began };
        let files = dotenv(&self.execution.spec.env, &self.materials.secrets);
        let files = files.map(|contents| WorkFile { name: ".env".to_owned(), contents });
        let files = files.into_iter().chain(exchange::files(&mut self.materials)).collect();
        let (work_dir, directory) = match self.execution.spec.git.clone() {
            Some(source) => match self.clone_repository(&source, files, began).await {
                Ok(directory) => (WorkDir::Kept, directory),
                Err(ended) => return ended,
            },
            None => (WorkDir::New(files), String::new()),
        };
        let (home, place) = match container {
            Some(_) => (CONTAINER_WORK_DIR.to_owned(), PathBuf::from(CONTAINER_WORK_DIR)),
            None => (self.worker.config.home.clone(), self.worker.runner.work_dir(self.execution.id, self.fence.attempt)),
        };
        let env = environment(&self.execution, &home, &place, &self.materials.secrets);
        let terminal = self.execution.spec.terminal;
        let start = Start { directory, work_dir, terminal, container, ..self.plain_start(self.execution.spec.argv(), env) };
        match self.start(start).await {
            Err(ended) => ended,
            Ok(started) => {
                if self.execution.spec.git.is_none() {
                    self.announce();
                }
                let (running, exit) = self.supervise(started, began).await;
                (self.judge(&running, exit), Some(running))
            }
        }
    }

    /// Gets the attempt's secrets and its input, and makes the mask.
    async fn prepare(&mut self) -> Result<(), Ended> {
        let spec = &self.execution.spec;
        if spec.is_lost() {
            // An empty command would succeed.
            return Err((Some(Outcome::StartFailed { message: "its spec is lost".to_owned(), exit_code: None }), None));
        }
        if spec.task.is_none() && spec.secrets.is_empty() && spec.git.as_ref().is_none_or(|git| git.token.is_none()) {
            return Ok(());
        }
        let config = &self.worker.config;
        let patience = Patience { away: config.lost_after.unwrap_or(GIVE_UP_AFTER), denied: config.lease_ttl };
        let fetched = self.wait_for(fetch(&*self.worker.leases, self.fence, patience)).await?;
        let materials = fetched.map_err(|not_had| match not_had {
            NotHad::Lost => (None, None),
            NotHad::Refused(message) => (Some(Outcome::Refused { message, category: Category::Auth }), None),
            NotHad::Unavailable(message) => (Some(Outcome::StartFailed { message, exit_code: None }), None),
        })?;
        // A large secret takes a while, which no other task shall wait for.
        let own_key = self.worker.config.own_key.clone();
        let masking = tokio::task::spawn_blocking(move || (mask(&materials, own_key.as_ref().map(OwnKey::text)), materials));
        let (masked, materials) = self.wait_for(masking).await?.expect("masking does not panic");
        let (mask, warnings) = masked.map_err(|message| (Some(Outcome::Refused { message, category: Category::Validation }), None))?;
        (self.recorder, self.warnings, self.materials) = (Recorder::new(mask), warnings, materials);
        Ok(())
    }

    /// Clones the repository into the work directory and says where the command runs.
    async fn clone_repository(&mut self, source: &GitSource, files: Vec<WorkFile>, began: Instant) -> Result<String, Ended> {
        let (config, token) = (&self.worker.config, self.materials.git_token.clone());
        let checkout = Checkout::new(source, &config.git, &config.home, token.as_ref());
        let checkout = checkout.map_err(|message| (Some(Outcome::GitFailed { message, category: Category::Validation }), None))?;
        let env = checkout.env(&self.execution.spec.env);
        let started = self.start(Start { work_dir: WorkDir::New(files), ..self.plain_start(checkout.argv(), env) }).await?;
        self.announce();
        self.recorder.platform(self.worker.clock.now(), &checkout.announcement());
        self.transcript = Some(Transcript::default());
        let (running, exit) = self.supervise(started, began).await;
        let last_words = self.transcript.take().map(Transcript::last_words).unwrap_or_default();
        let by_itself = exit.filter(|_| running.cause().is_none());
        match by_itself.map(|exit| (exit.status, exit.oom_killed)) {
            // Whatever of it went over the limit, git did without.
            Some((ExitStatus::Code(0), _)) => self.ask_to_go_on().await.map(|()| checkout.directory()),
            Some((ExitStatus::Code(_) | ExitStatus::Signal(_), false)) => {
                let message = self.recorder.masked(&format!("{} could not be cloned: {last_words}", source.repo));
                Err((Some(Outcome::GitFailed { message, category: git_failure::category(&last_words) }), Some(running)))
            }
            _ => {
                let outcome = self.judge(&running, exit).map(|outcome| match outcome {
                    // The clone was whole all the same, but the command never ran.
                    Outcome::Exited { code: 0, .. } => {
                        Outcome::StartFailed { message: "it was stopped before its command started".to_owned(), exit_code: None }
                    }
                    outcome => outcome,
                });
                Err((outcome, Some(running)))
            }
        }
    }

    /// A program of this attempt, with pipes, in an empty work directory.
    fn plain_start(&self, argv: Vec<String>, env: BTreeMap<String, String>) -> Start {
        let (execution, attempt, limits) = (self.execution.id, self.fence.attempt, self.worker.config.limits);
        let (directory, work_dir) = (String::new(), WorkDir::New(Vec::new()));
        Start { execution, attempt, argv, env, limits, directory, work_dir, live_for: None, terminal: false, container: None }
    }

    async fn start(&mut self, start: Start) -> Result<Started, Ended> {
        if self.yield_at().is_some_and(|at| Instant::now() >= at) {
            tracing::warn!(execution = %self.execution.id, "the lease may have expired: the command is not started");
            return Err((None, None));
        }
        let start = Start { live_for: self.live_for(), ..start };
        // A runner that nobody waits for any more ends what it was asked for.
        let within = if start.container.is_some() { START_CONTAINER_WITHIN } else { START_WITHIN };
        let started = self.wait_for(timeout(within, self.worker.runner.start(start))).await;
        // The input is in its file by now, or of no use any more.
        self.materials.reserved = None;
        if !matches!(started, Ok(Ok(Ok(_)))) {
            let (runner, Fence { execution, attempt, .. }) = (Arc::clone(&self.worker.runner), self.fence);
            self.keep_lease_during(Bound::Own, runner.given_up(execution, attempt)).await;
        }
        let (message, exit_code) = match started? {
            Ok(Ok(started)) => return Ok(started),
            Ok(Err(error)) => (self.recorder.masked(&error.message), error.exit_code),
            Err(_) => (format!("the command was not started within {} s", within.as_secs()), None),
        };
        Err((Some(Outcome::StartFailed { message, exit_code }), None))
    }

    /// The first lines of an attempt's log.
    fn announce(&mut self) {
        let now = self.worker.clock.now();
        let runner = if self.execution.spec.needs() == Needs::Image { "container" } else { self.worker.runner.name() };
        let mut line = format!("attempt {} started on {} ({runner} runner)", self.fence.attempt, self.worker.config.host);
        let waited_ms = now.ms_since(self.execution.ready_at);
        if waited_ms >= WAIT_WORTH_TELLING_MS {
            line.push_str(&format!(" after {} s in the queue", waited_ms / 1000));
        }
        self.recorder.platform(now, &line);
        for warning in std::mem::take(&mut self.warnings) {
            self.recorder.platform(now, &warning);
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
                return Some(Outcome::OutputFailed { message: format!("the output could not be stored: {why}") });
            }
            Some(Cause::OutOfDisk(why)) => return Some(Outcome::OutOfDisk { message: why.clone() }),
            Some(Cause::Kill) | None => {}
        }
        let after_kill = running.cause().is_some();
        Some(match exit {
            Some(exit) if exit.oom_killed && !after_kill && exit.status != ExitStatus::Code(0) => Outcome::OutOfMemory,
            Some(Exit { status: ExitStatus::Code(code), .. }) => Outcome::Exited { code, after_kill },
            Some(Exit { status: ExitStatus::Signal(signal), .. }) => Outcome::Signalled { signal, after_kill },
            None | Some(Exit { status: ExitStatus::Lost, .. }) => {
                let message = match self.execution.spec.needs() {
                    Needs::Process => "the process that starts commands died, and the command was killed",
                    Needs::Image => "the container daemon ended or does not answer, and the command was killed",
                };
                Outcome::Lost { message: message.to_owned() }
            }
        })
    }

    /// Writes the last lines of the log and records the end, keeping the lease until that is done.
    async fn conclude(&mut self, outcome: Outcome, running: Option<&Running>, ran: Duration) {
        let Some((outcome, gathered)) = self.gather(outcome).await else { return };
        if self.worker.is_disk_short_now().await {
            // What it wrote may be what keeps its end from being recorded. A large tree takes longer to remove than a lease lasts.
            let cleaning = Arc::clone(&self.cleaning);
            cleaning.begin();
            if self.keep_lease_during(Bound::Own, cleaning.done()).await.is_none() {
                return;
            }
        }
        let mut remarks = gathered.remarks;
        let mut last_lines = remarks.clone();
        last_lines.push(describe(&outcome, running.and_then(Running::kill_request), ran));
        self.publish_last_lines(&last_lines).await;
        if self.unkept.is_unsure {
            remarks.push("the end of the log may be missing: the server did not take it in time".to_owned());
        }
        let remark = (!remarks.is_empty()).then(|| remarks.join("; "));
        let pid = running.and_then(|running| running.pid);
        let ended = EndAttempt {
            fence: self.fence,
            outcome,
            log_end: 0,
            duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            process_id: pid,
            cost_micro_usd: 0,
            output: gathered.output,
            said: gathered.said,
            usage: gathered.usage,
            remark,
        };
        self.report_end(ended).await;
    }
}

impl Attempt<'_> {
    /// What the command left; `None` if the lease was lost meanwhile. A kill, or a stop for what it
    /// wrote, ends the wait for it.
    async fn gather(&mut self, outcome: Outcome) -> Option<(Outcome, Gathered)> {
        let leavings = self.leavings();
        let gathered = self.keep_lease_during(Bound::Wanted, leavings.gather(outcome.clone())).await;
        gathered.or_else(|| {
            let kill = self.killed_by.take()?;
            let message = format!("{} killed it before its output was stored", kill.by);
            let is_task = self.execution.spec.task.is_some();
            Some((without_output(outcome, is_task, Outcome::OutputFailed { message }), Gathered::default()))
        })
    }

    /// A cut-off worker has ended the command: whoever reads the log later is told why.
    async fn leave_word(&mut self) {
        if self.is_cut_off {
            let why = if self.worker.leases.is_denied() {
                "the server no longer accepts the worker's key"
            } else {
                "the server could not be reached for too long"
            };
            let line = format!("{why}: the command was killed");
            timeout(LAST_WORD_WITHIN, self.publish_last_lines(&[line])).await.ok();
        }
    }

    /// Publishes what is left of the output and the platform's last lines, keeping the lease. A full log takes only the latter.
    async fn publish_last_lines(&mut self, last_lines: &[String]) {
        let Some(mut publisher) = self.publisher.take().filter(|_| !self.unkept.failed) else { return };
        let now = self.worker.clock.now();
        if self.unkept.full {
            self.unkept.bytes += self.recorder.take().map_or(0, |block| block.raw_len);
        } else {
            last_lines.iter().for_each(|line| self.recorder.platform(now, line));
            let block = self.recorder.take().expect("a line was just written");
            let raw_len = block.raw_len;
            match self.keep_lease_during(Bound::Patience, publisher.publish(block)).await {
                Some(Err(Unpublished::Full)) => self.unkept.bytes += raw_len,
                published => return self.note_last_lines(published),
            }
        }
        self.recorder.platform(now, &format!("the log is full: {} bytes of output were not recorded", self.unkept.bytes));
        last_lines.iter().for_each(|line| self.recorder.platform(now, line));
        if let Some(block) = self.recorder.take() {
            let published = self.keep_lease_during(Bound::Patience, publisher.publish(block)).await;
            self.note_last_lines(published);
        }
    }

    fn note_last_lines(&mut self, published: Option<Result<(), Unpublished>>) {
        match published {
            Some(Ok(())) => {}
            None => self.unkept.is_unsure = true,
            Some(Err(error)) => tracing::warn!(execution = %self.execution.id, ?error, "the last lines of a log were not stored"),
        }
    }
}

fn describe(outcome: &Outcome, kill: Option<&KillRequest>, ran: Duration) -> String {
    let seconds = ran.as_secs_f64();
    let by = kill.map(|kill| format!("killed by {}: ", kill.by)).unwrap_or_default();
    match outcome {
        Outcome::Exited { code, .. } => format!("{by}exit code {code} after {seconds:.3} s"),
        Outcome::Signalled { signal, .. } => format!("{by}ended by signal {signal} after {seconds:.3} s"),
        Outcome::TimedOut { timeout_ms, .. } => {
            let timeout = Duration::from_millis(*timeout_ms).as_secs_f64();
            format!("timed out: stopped after {seconds:.3} s (timeout {timeout} s)")
        }
        Outcome::OutOfMemory => format!("out of memory after {seconds:.3} s"),
        Outcome::StartFailed { message, .. } | Outcome::Refused { message, .. } | Outcome::ImageFailed { message, .. } => {
            format!("could not start: {message}")
        }
        Outcome::OutOfDisk { message }
        | Outcome::GitFailed { message, .. }
        | Outcome::OutputFailed { message }
        | Outcome::Lost { message } => message.clone(),
        Outcome::WorkerStopped => format!("the worker stopped, and killed the command after {seconds:.3} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_passes_while_the_machine_sleeps() {
        let s = Duration::from_secs;
        let heard = Moment { at: Instant::now(), asleep: s(100) };
        assert_eq!(heard.plus(s(25), s(100)), heard.at + s(25));
        assert_eq!(heard.plus(s(25), s(110)), heard.at + s(15));
        assert_eq!(heard.plus(s(25), s(4_000)), heard.at, "it is over, whatever the other clock says");
        assert_eq!(heard.plus(s(25), s(99)), heard.at + s(25), "nobody sleeps backwards");
    }
}
