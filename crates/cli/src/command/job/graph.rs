//! `job graph`: the tasks of a job as a tree, once or live. Where there is no terminal to draw on, following says each change in a line.

use std::collections::HashMap;

use clap::Args;
use runvoy_client::Client;
use runvoy_wire::{Job, JobStatus, Task, TaskStatus};
use tokio::time::sleep;

use super::{JobId, follow};
use crate::attach::interrupts;
use crate::failure::{Failure, INTERRUPTED};
use crate::global::Format;
use crate::graph::{Look, draw};
use crate::progress;
use crate::sanitize::one_line;
use crate::session::Session;

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy job graph 4f2a9c
  runvoy job graph 4f2a9c --follow          # redraw until the job finishes
  runvoy job graph 4f2a9c --follow --json   # one line per change of a task";

/// What a terminal is taken for that does not tell its height.
const ROWS: usize = 24;

/// Arguments of `job graph`.
#[derive(Debug, Clone, Args)]
pub(super) struct GraphArgs {
    #[command(flatten)]
    job: JobId,
    /// Follow it until it finishes; exit code 0 only if it completes
    #[arg(short, long)]
    follow: bool,
}

impl GraphArgs {
    pub(super) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let id = self.job.resolve(&client).await?;
        if !self.follow {
            let job = client.job(&id).await?;
            let look = Look { now: session.now(), width: session.terminal.width, height: None, colour: session.terminal.stdout_colour };
            session.show(&job, || job.tasks.iter().map(|task| task.task_id.clone()).collect(), || draw(&job.tasks, look))?;
            return Ok(0);
        }
        let mut interrupts = interrupts()?;
        let job = tokio::select! {
            watched = watch(session, &client, &id) => watched?,
            _ = interrupts.recv() => {
                session.tell(&follow::detached(session.short(&id), session.terminal.stderr_colour));
                return Ok(INTERRUPTED);
            }
        };
        Ok(follow::tell_end(session, &job))
    }
}

async fn watch(session: &Session, client: &Client, id: &str) -> Result<Job, Failure> {
    let mut screen = Screen::new(session);
    loop {
        let job = client.job(id).await?;
        screen.show(&job)?;
        if job.status != JobStatus::Running {
            return Ok(job);
        }
        sleep(follow::pause(&job)).await;
    }
}

/// What was shown so far.
struct Screen<'a> {
    session: &'a Session,
    /// Lines of the tree that stands on the terminal; `None` where nothing can be drawn over.
    drawn: Option<usize>,
    known: HashMap<String, (TaskStatus, Option<String>)>,
}

impl<'a> Screen<'a> {
    fn new(session: &'a Session) -> Self {
        let terminal = session.terminal;
        let draws = terminal.stdout_tty && terminal.moves && session.format() == Format::Table;
        Self { session, drawn: draws.then_some(0), known: HashMap::new() }
    }

    fn show(&mut self, job: &Job) -> Result<(), Failure> {
        match self.drawn {
            Some(before) => {
                let (text, lines) = self.tree(job);
                let up = if before > 0 { format!("\x1b[{before}A\r\x1b[J") } else { String::new() };
                self.drawn = Some(lines);
                self.session.print(&format!("{up}{text}"))
            }
            None => {
                let text: String =
                    job.tasks.iter().filter(|task| self.is_new(task)).map(|task| self.change(task)).collect::<Result<_, _>>()?;
                for task in &job.tasks {
                    self.known.insert(task.task_id.clone(), (task.status, task.execution_id.clone()));
                }
                self.session.print(&text)
            }
        }
    }

    fn tree(&self, job: &Job) -> (String, usize) {
        let size = terminal_size::terminal_size();
        let (columns, rows) =
            size.map_or((self.session.terminal.width.unwrap_or(80), ROWS), |(columns, rows)| (columns.0.into(), rows.0.into()));
        // One row for the counts, and one for the cursor.
        let look = Look {
            now: self.session.now(),
            width: Some(columns),
            height: Some(rows.saturating_sub(2).max(2)),
            colour: self.session.terminal.stdout_colour,
        };
        let text = format!("{}{} · {}\n", draw(&job.tasks, look), progress::counts(job), progress::elapsed(job, self.session.now()));
        let lines = text.lines().count();
        (text, lines)
    }

    fn is_new(&self, task: &Task) -> bool {
        self.known.get(&task.task_id) != Some(&(task.status, task.execution_id.clone()))
    }

    fn change(&self, task: &Task) -> Result<String, Failure> {
        match self.session.format() {
            Format::Table => Ok(format!("{}  {}\n", one_line(&task.task_id), task.status)),
            Format::Name => Ok(format!("{}\n", one_line(&task.task_id))),
            Format::Json | Format::Yaml => self.session.filtered(task),
        }
    }
}
