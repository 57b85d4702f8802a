//! `queues`: what waits, what runs, what was given up, and running that again.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::Client;
use runvoy_wire::{DeadLetter, Queue, RedriveRequest, RedriveResponse, Rfc3339};

use crate::complete;
use crate::duration::Human;
use crate::failure::Failure;
use crate::global::Format;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::table::{Cell, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy queues list
  runvoy queues dead default                           # what was given up after its last attempt
  runvoy queues redrive default --task 0192ab34
  runvoy queues redrive default --yes                  # all of them";

/// The largest page that is asked for at once.
const PAGE: u32 = 500;
/// So many may be named in one request.
const MOST_REDRIVEN: usize = 50;

/// Arguments of `queues`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct QueuesArgs {
    #[command(subcommand)]
    command: QueuesCommand,
}

/// What to do with queues.
#[derive(Debug, Clone, Subcommand)]
enum QueuesCommand {
    /// List the queues
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy queues list --json")]
    List,
    /// List the executions that were given up
    #[command(before_help = "Examples:\n  runvoy queues dead default\n  runvoy queues dead default -o name --limit 0")]
    Dead {
        #[command(flatten)]
        queue: QueueName,
        /// How many at most; 0 for all
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Run what was given up again, as new executions
    #[command(before_help = "Examples:\n  runvoy queues redrive default --task 0192ab34\n  runvoy queues redrive default --yes")]
    Redrive {
        #[command(flatten)]
        queue: QueueName,
        /// Only this execution; may be given several times
        #[arg(long = "task", value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
        tasks: Vec<String>,
    },
}

/// The queue that is meant.
#[derive(Debug, Clone, Args)]
struct QueueName {
    /// Name of the queue
    #[arg(value_name = "QUEUE", add = ArgValueCompleter::new(complete::queues))]
    queue: String,
}

impl QueuesArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            QueuesCommand::List => queues(session).await,
            QueuesCommand::Dead { queue, limit } => dead(session, &queue.queue, limit).await,
            QueuesCommand::Redrive { queue, tasks } => redrive(session, &queue.queue, &tasks).await,
        }
    }
}

async fn queues(session: &Session) -> Result<u8, Failure> {
    let queues = session.connect().await?.queues().await?;
    let now = session.now();
    let table = || {
        let rows: Vec<Vec<Cell>> = queues.iter().map(|queue| row(queue, now)).collect();
        list(&["QUEUE", "WAITING", "OLDEST", "IN FLIGHT", "DEAD"], &rows, session.terminal)
    };
    session.show(&queues, || queues.iter().map(|queue| queue.name.clone()).collect(), table)?;
    if queues.is_empty() {
        session.note(Tone::Dim, "every queue is empty");
    }
    Ok(0)
}

fn row(queue: &Queue, now: Rfc3339) -> Vec<Cell> {
    let oldest = queue.oldest.map_or_else(|| "-".to_owned(), |oldest| format!("{} ago", Human::from_ms(now.ms_since(oldest))));
    let dead = Cell::new(queue.dead.to_string(), if queue.dead > 0 { Tone::Bad } else { Tone::Plain });
    vec![(&queue.name).into(), queue.depth.to_string().into(), oldest.into(), queue.in_flight.to_string().into(), dead]
}

async fn dead(session: &Session, queue: &str, limit: u32) -> Result<u8, Failure> {
    let letters = collect(&session.connect().await?, queue, limit).await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = letters.iter().map(dead_row).collect();
        list(&["EXECUTION", "GIVEN UP AT", "ATTEMPTS", "TASK", "CATEGORY", "ERROR"], &rows, session.terminal)
    };
    session.show(&letters, || letters.iter().map(|letter| letter.execution_id.clone()).collect(), table)?;
    if letters.is_empty() {
        session.note(Tone::Dim, &format!("nothing was given up in {}", one_line(queue)));
    }
    Ok(0)
}

async fn collect(client: &Client, queue: &str, limit: u32) -> Result<Vec<DeadLetter>, Failure> {
    let (mut letters, mut cursor): (Vec<DeadLetter>, Option<String>) = (Vec::new(), None);
    loop {
        let missing = match limit {
            0 => PAGE,
            limit => (limit as usize).saturating_sub(letters.len()).try_into().unwrap_or(PAGE).min(PAGE),
        };
        let page = client.dead_letters(queue, Some(missing), cursor.as_deref()).await?;
        letters.extend(page.items);
        // A page may be empty and not the last; but a server that does not move on would be asked for ever.
        let moves_on = page.next_cursor.is_some() && page.next_cursor != cursor;
        cursor = page.next_cursor;
        if !moves_on || limit > 0 && letters.len() >= limit as usize {
            return Ok(letters);
        }
    }
}

fn dead_row(letter: &DeadLetter) -> Vec<Cell> {
    let task = letter.job_id.as_deref().zip(letter.task_id.as_deref()).map(|(job, task)| format!("{job}/{task}"));
    vec![
        (&letter.execution_id).into(),
        letter.failed_at.to_string().into(),
        letter.attempts.to_string().into(),
        task.as_deref().unwrap_or("-").into(),
        letter.error_category.as_deref().unwrap_or("-").into(),
        (&letter.error).into(),
    ]
}

async fn redrive(session: &Session, queue: &str, tasks: &[String]) -> Result<u8, Failure> {
    if tasks.is_empty() {
        session.confirm(&format!("run everything that was given up in {queue} again"))?;
    }
    let client = session.connect().await?;
    let mut ids = Vec::with_capacity(tasks.len());
    for task in tasks {
        ids.push(session.resolve(&client, task).await?);
    }
    let answer = if ids.is_empty() { redrive_all(&client, queue).await? } else { redrive_these(&client, queue, &ids).await? };
    let made = || answer.redriven.iter().filter_map(|redriven| redriven.new_execution_id.clone()).collect();
    match session.format() {
        Format::Table => {
            session.note(Tone::Plain, &one_line(&format!("{queue}: {} run again", answer.redriven.len())));
            for dropped in &answer.dropped {
                session
                    .note(Tone::Dim, &one_line(&format!("{} can never run again and is dropped: {}", dropped.execution_id, dropped.error)));
            }
            for refused in &answer.refused {
                session.note(Tone::Warning, &one_line(&format!("{}: {}", refused.execution_id, refused.error)));
            }
            if answer.left > 0 {
                session.note(Tone::Warning, &format!("{} are left: repeat the command", answer.left));
            }
        }
        _ => session.show(&answer, made, String::new)?,
    }
    Ok(u8::from(!answer.refused.is_empty()))
}

/// Asks until every one was looked at. A server that does not move on would be asked for ever.
async fn redrive_all(client: &Client, queue: &str) -> Result<RedriveResponse, Failure> {
    let mut all = client.redrive(queue, &RedriveRequest::default()).await?;
    while let Some(after) = all.next.take() {
        let next = client.redrive(queue, &RedriveRequest { execution_ids: None, after: Some(after.clone()) }).await?;
        let moves_on = next.next.as_ref() != Some(&after);
        add(&mut all, next);
        if !moves_on {
            break;
        }
    }
    Ok(all)
}

async fn redrive_these(client: &Client, queue: &str, ids: &[String]) -> Result<RedriveResponse, Failure> {
    let mut all: Option<RedriveResponse> = None;
    for part in ids.chunks(MOST_REDRIVEN) {
        let next = client.redrive(queue, &RedriveRequest { execution_ids: Some(part.to_vec()), after: None }).await?;
        match &mut all {
            Some(all) => add(all, next),
            None => all = Some(next),
        }
    }
    Ok(all.expect("at least one was named"))
}

fn add(all: &mut RedriveResponse, next: RedriveResponse) {
    all.redriven.extend(next.redriven);
    all.refused.extend(next.refused);
    all.dropped.extend(next.dropped);
    (all.left, all.next, all.message) = (next.left, next.next, next.message);
}
