//! Following a job until it finishes. Only its counts are requested, so that a large job costs no
//! more than a small one. Ctrl-C leaves it running.

use std::io::Write as _;
use std::time::Duration;

use runvoy_client::Client;
use runvoy_wire::{Job, JobStatus};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::attach::interrupts;
use crate::failure::{Failure, GENERAL, INTERRUPTED};
use crate::global::Format;
use crate::progress;
use crate::session::Session;
use crate::spinner::{PERIOD, Spinner};
use crate::terminal::{Tone, paint};

/// How often the server is asked.
pub(super) const ASK_EVERY: Duration = Duration::from_millis(500);
/// A large job is asked for less often where all of its tasks come.
const PAUSE_PER_TASK: Duration = Duration::from_micros(500);

/// How long to wait before all tasks of a job are asked for again.
pub(super) fn pause(job: &Job) -> Duration {
    let tasks = u32::try_from(job.tasks.len()).unwrap_or(u32::MAX);
    ASK_EVERY.max(PAUSE_PER_TASK.saturating_mul(tasks))
}

/// Shows the progress of a job; 0 only if it completes.
pub(super) async fn to_the_end(session: &Session, client: &Client, id: &str) -> Result<u8, Failure> {
    let mut interrupts = interrupts()?;
    let job = tokio::select! {
        ended = watch(session, client, id) => ended?,
        _ = interrupts.recv() => {
            session.tell(&format!("{}{}", erase(session), detached(session.short(id), session.terminal.stderr_colour)));
            return Ok(INTERRUPTED);
        }
    };
    if session.format() != Format::Table {
        session.show(&job, || vec![job.job_id.clone()], String::new)?;
    }
    Ok(tell_end(session, &job))
}

/// Says how a job ended and gives the exit code.
pub(super) fn tell_end(session: &Session, job: &Job) -> u8 {
    session.tell(&progress::end(job, session.now(), session.terminal.stderr_colour));
    if job.status == JobStatus::Completed { 0 } else { GENERAL }
}

/// What is said when a user leaves a job that keeps running.
pub(super) fn detached(id: &str, colour: bool) -> String {
    let heading = paint("Detached. The job keeps running.", Tone::Warning, colour);
    format!("{heading}\n  follow it: runvoy job graph --follow {id}\n  cancel it: runvoy job cancel {id}")
}

async fn watch(session: &Session, client: &Client, id: &str) -> Result<Job, Failure> {
    let mut meter = Meter::new(session);
    loop {
        let job = meter.while_asking(client.job_counts(id)).await?;
        if job.status != JobStatus::Running {
            meter.clear();
            return Ok(client.job(id).await?);
        }
        meter.show(&job);
        meter
            .while_asking(async {
                sleep(ASK_EVERY).await;
                Ok(())
            })
            .await?;
    }
}

/// The progress as a person sees it: a line that changes on a terminal, elsewhere a line for every
/// change.
struct Meter<'a> {
    session: &'a Session,
    spinner: Option<Spinner>,
    started: std::time::Instant,
    shown: String,
}

impl<'a> Meter<'a> {
    fn new(session: &'a Session) -> Self {
        let spinner = (session.terminal.moves && session.global.quiet == 0).then(Spinner::new);
        Self { session, spinner, started: std::time::Instant::now(), shown: String::new() }
    }

    fn show(&mut self, job: &Job) {
        let counts = progress::counts(job);
        match &mut self.spinner {
            Some(spinner) => spinner.phase(&format!("{counts} ·")),
            None if counts != self.shown => {
                self.session.note(Tone::Dim, &format!("### runvoy: {counts} · {}", progress::elapsed(job, self.session.now())));
            }
            None => {}
        }
        self.shown = counts;
    }

    /// Turns while something is waited for.
    async fn while_asking<T>(&mut self, asked: impl Future<Output = Result<T, runvoy_client::ClientError>>) -> Result<T, Failure> {
        tokio::pin!(asked);
        let mut clock = interval(PERIOD);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                answer = &mut asked => return answer.map_err(|error| {
                    self.clear();
                    Failure::from(error).next("the job may still run; check it: runvoy job list")
                }),
                _ = clock.tick(), if self.spinner.is_some() => self.turn(),
            }
        }
    }

    fn turn(&mut self) {
        let elapsed = self.started.elapsed();
        if let Some(frame) = self.spinner.as_mut().and_then(|spinner| spinner.turn(elapsed, self.session.terminal.width)) {
            write_stderr(&frame);
        }
    }

    fn clear(&mut self) {
        if let Some(erase) = self.spinner.as_mut().and_then(Spinner::clear) {
            write_stderr(erase);
        }
    }
}

fn erase(session: &Session) -> &'static str {
    if session.terminal.moves { "\r\x1b[K" } else { "" }
}

fn write_stderr(text: &str) {
    let mut stderr = std::io::stderr();
    // A closed stderr cannot be reported anywhere.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
