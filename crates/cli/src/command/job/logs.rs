//! `job logs`: the log of one task as `logs` shows it, or those of all tasks, each line with its task before it.

use std::collections::HashSet;
use std::sync::Arc;

use clap::Args;
use runvoy_client::{Client, ClientError, Followed, Start};
use runvoy_wire::{Batch, Hit, Job, JobStatus, LogEvent, LogPosition, Record, Status, Stream, Task, TaskStatus};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::sleep;

use super::{JobId, follow};
use crate::attach::interrupts;
use crate::command::logs::{self, ShownArgs, line_of_tail, print_hits};
use crate::failure::{Failure, GENERAL, INTERRUPTED};
use crate::global::Format;
use crate::sanitize::{Filter, one_line};
use crate::session::Session;
use crate::terminal::{Tone, paint};

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy job logs 4f2a9c build          # one task
  runvoy job logs 4f2a9c build -f       # follow it
  runvoy job logs 4f2a9c                # all tasks, each line with its task
  runvoy job logs 4f2a9c --failed --tail 20
  runvoy job logs 4f2a9c --search 'error:'
  runvoy job logs 4f2a9c -f --json      # follow all, one object per line";

/// So many logs that nobody writes to any more are read at once. How many are written at once is the server's to say.
const AT_ONCE: usize = 16;
const WAITING_PIECES: usize = 64;

/// Arguments of `job logs`.
#[derive(Debug, Clone, Args)]
pub(super) struct LogsArgs {
    #[command(flatten)]
    job: JobId,
    /// Only this task
    task: Option<String>,
    /// Only tasks that failed
    #[arg(long, conflicts_with_all = ["task", "follow"])]
    failed: bool,
    #[command(flatten)]
    shown: ShownArgs,
}

/// A line of a task, for a program.
#[derive(Serialize)]
struct TaskLine<'a> {
    #[serde(rename = "taskId")]
    task_id: &'a str,
    #[serde(rename = "executionId")]
    execution_id: &'a str,
    #[serde(flatten)]
    event: LogEvent,
}

/// A line of a task that holds what was searched for, for a program.
#[derive(Serialize)]
struct TaskHit<'a> {
    #[serde(rename = "taskId")]
    task_id: &'a str,
    #[serde(rename = "executionId")]
    execution_id: &'a str,
    #[serde(flatten)]
    hit: &'a Hit,
}

/// What comes of one log: its task and execution, and what was read.
type Piece = (Arc<(String, String)>, Result<Followed, ClientError>);

impl LogsArgs {
    pub(super) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        session.check_stream()?;
        let client = session.connect().await?;
        let id = self.job.resolve(&client).await?;
        let Some(task) = &self.task else {
            let mut interrupts = interrupts()?;
            return tokio::select! {
                code = self.each(session, &client, &id), if !self.shown.follow => code,
                shown = self.all(session, &client, &id), if self.shown.follow => shown.map(|()| 0),
                _ = interrupts.recv() => Ok(INTERRUPTED),
            };
        };
        let execution = self.execution_of(&client, &id, task).await?;
        logs::LogsArgs::of_task(execution, &self.shown).execute(session).await
    }

    /// The newest execution of a task; one that has none yet is waited for, where that was asked for.
    async fn execution_of(&self, client: &Client, id: &str, task: &str) -> Result<String, Failure> {
        loop {
            let job = client.job(id).await?;
            let Some(found) = job.tasks.iter().find(|found| found.task_id == task) else {
                return Err(Failure::other(format!("job {id} has no task {task}")).next(format!("see its tasks: runvoy job graph {id}")));
            };
            if let Some(execution) = &found.execution_id {
                return Ok(execution.clone());
            }
            if !self.shown.follow || job.status != JobStatus::Running {
                let why = found.waiting_for.as_ref().map_or_else(|| "it has not started".to_owned(), |reason| reason.message.clone());
                return Err(Failure::other(format!("task {task} has no log yet"))
                    .why(why)
                    .next(format!("see its tasks: runvoy job graph {id}")));
            }
            sleep(follow::pause(&job)).await;
        }
    }

    /// All logs as they are, one after the other in the order of the job's tasks; gives the exit code.
    async fn each(&self, session: &Session, client: &Client, id: &str) -> Result<u8, Failure> {
        let mut is_found = false;
        for task in client.job(id).await?.tasks.into_iter().filter(|task| self.is_asked_for(task)) {
            let Some(execution) = task.execution_id else { continue };
            let whose = (task.task_id, execution);
            if let Some(text) = &self.shown.search {
                let line = |hit: &Hit| self.hit_line(session, &whose, hit);
                is_found |= print_hits(session, client, (&whose.1, text, self.shown.regex), line).await?;
                continue;
            }
            let from_line = first_line(client, &whose.1, self.shown.tail).await?;
            let mut log = client.follow(&whose.1, Start { from_line, websocket_url: None, live: false });
            while let Some(read) = log.next().await {
                self.show(session, &whose, read)?;
            }
        }
        Ok(if self.shown.search.is_some() && !is_found { GENERAL } else { 0 })
    }

    fn is_asked_for(&self, task: &Task) -> bool {
        !self.failed || task.status == Status::Failed.into()
    }

    fn hit_line(&self, session: &Session, (task, execution): &(String, String), hit: &Hit) -> Result<String, Failure> {
        if session.format() == Format::Json {
            return session.filtered(&TaskHit { task_id: task, execution_id: execution, hit });
        }
        let name = paint(&format!("{} │", one_line(task)), Tone::Dim, session.terminal.stdout_colour);
        let shown = if session.terminal.stdout_tty { one_line(&hit.message) } else { hit.message.clone() };
        Ok(format!("{name} {shown}\n"))
    }

    /// All logs as they are written. Each execution is read once; those that a resume makes are read as well.
    async fn all(&self, session: &Session, client: &Client, id: &str) -> Result<(), Failure> {
        let (sender, mut pieces) = mpsc::channel::<Piece>(WAITING_PIECES);
        let (permits, mut known) = (Arc::new(Semaphore::new(AT_ONCE)), HashSet::new());
        let (mut sender, mut pause) = (Some(sender), follow::ASK_EVERY);
        loop {
            if let Some(open) = &sender {
                let job = client.job(id).await?;
                let reading = Reading { client, tail: self.shown.tail, permits: &permits };
                reading.begin(&job, &mut known, open);
                pause = follow::pause(&job);
                if job.status != JobStatus::Running {
                    // The readers have it too: when the last of them is done, nothing more comes.
                    sender = None;
                }
            }
            let again = sleep(pause);
            tokio::pin!(again);
            loop {
                tokio::select! {
                    piece = pieces.recv() => match piece {
                        Some((whose, read)) => self.show(session, &whose, read)?,
                        None => return Ok(()),
                    },
                    () = &mut again, if sender.is_some() => break,
                }
            }
        }
    }

    fn show(&self, session: &Session, whose: &(String, String), read: Result<Followed, ClientError>) -> Result<(), Failure> {
        match read? {
            Followed::Batch(batch) => self.print(session, whose, &batch),
            Followed::Gap { from, to } => {
                let text =
                    format!("### runvoy: {}: lines {from} to {} are missing: the server no longer has them", one_line(&whose.0), to - 1);
                session.note(Tone::Warning, &text);
                Ok(())
            }
            Followed::Interrupted(error) => {
                session.note(Tone::Warning, &format!("### runvoy: connection lost ({error}), reconnecting"));
                Ok(())
            }
            Followed::Status(_) => Ok(()),
        }
    }

    fn print(&self, session: &Session, (task, execution): &(String, String), batch: &Batch) -> Result<(), Failure> {
        let mut out = String::new();
        for (line, record) in batch.records() {
            match session.format() {
                _ if record.stream == Stream::Platform && session.global.quiet > 0 => {}
                Format::Json => {
                    let event = LogEvent::from_record(
                        LogPosition { execution_id: execution, line, attempt: batch.attempt, late: batch.late },
                        &record,
                    );
                    out.push_str(&session.filtered(&TaskLine { task_id: task, execution_id: execution, event })?);
                }
                // What the platform says is no data.
                _ if record.stream == Stream::Platform => {
                    session.print(&std::mem::take(&mut out))?;
                    session.note(Tone::Dim, &one_line(&format!("{task} │ {}", String::from_utf8_lossy(record.bytes))));
                }
                _ => out.push_str(&self.line(session, task, &record)),
            }
        }
        session.print(&out)
    }

    /// A record is a line here, also where it is only a part of one: lines of other tasks may come between.
    fn line(&self, session: &Session, task: &str, record: &Record<'_>) -> String {
        let mut bytes = Vec::with_capacity(record.bytes.len());
        if session.terminal.stdout_tty {
            Filter::default().push(record.bytes, &mut bytes);
        } else {
            bytes.extend_from_slice(record.bytes);
        }
        let time = if self.shown.timestamps { format!("{} ", runvoy_wire::Rfc3339(record.at.0)) } else { String::new() };
        let name = paint(&format!("{} │", one_line(task)), Tone::Dim, session.terminal.stdout_colour);
        format!("{name} {time}{}\n", String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']))
    }
}

/// The line of a log to begin with.
async fn first_line(client: &Client, execution: &str, tail: Option<u64>) -> Result<u64, ClientError> {
    match tail {
        Some(tail) => line_of_tail(client, execution, tail, None).await,
        None => Ok(1),
    }
}

/// How logs are read side by side.
struct Reading<'a> {
    client: &'a Client,
    tail: Option<u64>,
    permits: &'a Arc<Semaphore>,
}

impl Reading<'_> {
    /// Begins to read the logs that have something to say and are not read yet.
    fn begin(&self, job: &Job, known: &mut HashSet<String>, sender: &mpsc::Sender<Piece>) {
        // What is in line would hold a connection and say nothing; when nothing moves any more, its log is as it stays.
        let speaks = |task: &&Task| job.status != JobStatus::Running || task.status != Status::Pending.into() || task.started_at.is_some();
        for task in job.tasks.iter().filter(speaks) {
            let Some(execution) = task.execution_id.as_ref().filter(|execution| known.insert((*execution).clone())) else { continue };
            let whose = Arc::new((task.task_id.clone(), execution.clone()));
            let is_live = matches!(task.status, TaskStatus::Execution(status) if !status.is_terminal());
            let (client, tail, permits, sender) = (self.client.clone(), self.tail, Arc::clone(self.permits), sender.clone());
            tokio::spawn(async move {
                // A log that is being written may take as long as its task does: nothing waits behind it.
                let _permit = if is_live { None } else { permits.acquire_owned().await.ok() };
                let from_line = match first_line(&client, &whose.1, tail).await {
                    Ok(line) => line,
                    Err(error) => {
                        // Whoever asked may have left.
                        let _ = sender.send((whose, Err(error))).await;
                        return;
                    }
                };
                let mut follow = client.follow(&whose.1, Start { from_line, websocket_url: None, live: true });
                while let Some(item) = follow.next().await {
                    if sender.send((Arc::clone(&whose), item)).await.is_err() {
                        return;
                    }
                }
            });
        }
    }
}
