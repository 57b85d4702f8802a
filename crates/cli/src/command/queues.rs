//! `queues`: what is queued and running, pausing and limits, dead letters and redriving them.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::Client;
use runvoy_wire::{DeadLetter, PutQueueRequest, Queue, RedriveRequest, RedriveResponse, Rfc3339};

use crate::complete;
use crate::duration::Human;
use crate::failure::Failure;
use crate::global::Format;
use crate::listing::{self, Limit};
use crate::sanitize::one_line;
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, facts, list};
use crate::terminal::Tone;
use crate::times::Times;

const EXAMPLES: &str = "\
Examples:
  runvoy queues list
  runvoy queues pause gpu --reason 'new driver'   # running executions continue
  runvoy queues set gpu --concurrency 4 --per-user 1
  runvoy queues dead default                      # its dead letters
  runvoy queues redrive default --task 4f2a9c     # queue one of them again";

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
    /// Show a queue: executions, workers and limits
    #[command(before_help = "Examples:\n  runvoy queues show gpu\n  runvoy queues show gpu --json")]
    Show {
        #[command(flatten)]
        queue: QueueName,
    },
    /// Pause a queue: start nothing new
    #[command(before_help = "Examples:\n  runvoy queues pause gpu --reason 'new driver'")]
    Pause {
        #[command(flatten)]
        queue: QueueName,
        /// Reason to show to waiting users
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a paused queue
    #[command(before_help = "Examples:\n  runvoy queues resume gpu")]
    Resume {
        #[command(flatten)]
        queue: QueueName,
    },
    /// Set the concurrency limits of a queue
    #[command(
        before_help = "Examples:\n  runvoy queues set gpu --concurrency 4 --per-user 1\n  runvoy queues set gpu --concurrency 0   # no limit"
    )]
    Set(SetArgs),
    /// Remove the limits of a queue, and resume it
    #[command(before_help = "Examples:\n  runvoy queues reset gpu")]
    Reset {
        #[command(flatten)]
        queue: QueueName,
    },
    /// List the dead letters of a queue
    #[command(before_help = "Examples:\n  runvoy queues dead default\n  runvoy queues dead default -o name --all")]
    Dead {
        #[command(flatten)]
        queue: QueueName,
        /// Show at most this many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// Show all
        #[arg(long, conflicts_with = "limit")]
        all: bool,
    },
    /// Queue dead letters again, as new executions
    #[command(before_help = "Examples:\n  runvoy queues redrive default --task 4f2a9c\n  runvoy queues redrive default --yes")]
    Redrive {
        #[command(flatten)]
        queue: QueueName,
        /// Only this execution; repeatable [default: all]
        #[arg(long = "task", value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
        tasks: Vec<String>,
    },
}

/// The limits of a queue.
#[derive(Debug, Clone, Args)]
struct SetArgs {
    #[command(flatten)]
    queue: QueueName,
    /// Executions at once, 1 to 1000; 0 for no limit
    #[arg(long, value_name = "N", required_unless_present = "per_user", value_parser = clap::value_parser!(u32).range(0..=1000))]
    concurrency: Option<u32>,
    /// Executions of one user at once, 1 to 1000; 0 for no limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    per_user: Option<u32>,
}

/// The queue that is meant.
#[derive(Debug, Clone, Args)]
struct QueueName {
    /// Name of the queue
    #[arg(value_name = "QUEUE", add = ArgValueCompleter::new(complete::queues))]
    queue: String,
}

impl QueuesArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            QueuesCommand::List | QueuesCommand::Show { .. } | QueuesCommand::Dead { .. } => false,
            QueuesCommand::Pause { .. }
            | QueuesCommand::Resume { .. }
            | QueuesCommand::Set(_)
            | QueuesCommand::Reset { .. }
            | QueuesCommand::Redrive { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            QueuesCommand::List => queues(session).await,
            QueuesCommand::Show { queue } => show(session, &queue.queue).await,
            QueuesCommand::Pause { queue, reason } => {
                put(session, &queue.queue, PutQueueRequest { paused: Some(true), reason, ..PutQueueRequest::default() }).await
            }
            QueuesCommand::Resume { queue } => {
                put(session, &queue.queue, PutQueueRequest { paused: Some(false), ..PutQueueRequest::default() }).await
            }
            QueuesCommand::Set(SetArgs { queue, concurrency, per_user }) => {
                put(session, &queue.queue, PutQueueRequest { concurrency, per_user, ..PutQueueRequest::default() }).await
            }
            QueuesCommand::Reset { queue } => {
                session.confirm(&format!("Remove all limits of queue {}", queue.queue))?;
                let answer = session.connect().await?.remove_queue_terms(&queue.queue).await?;
                session.report(&answer, &answer.name, &answer.message)
            }
            QueuesCommand::Dead { queue, limit, all } => dead(session, &queue.queue, Limit::new(limit, all)).await,
            QueuesCommand::Redrive { queue, tasks } => redrive(session, &queue.queue, &tasks).await,
        }
    }
}

async fn queues(session: &Session) -> Result<u8, Failure> {
    let queues = session.connect().await?.queues().await?;
    let now = session.now();
    let table = || {
        let rows: Vec<Vec<Cell>> = queues.iter().map(|queue| row(queue, now)).collect();
        list(&["QUEUE", "QUEUED", "OLDEST", "RUNNING", "DEAD", "WORKERS", "LIMITS"], &rows, session.terminal)
    };
    session.show(&queues, || queues.iter().map(|queue| queue.name.clone()).collect(), table)?;
    if queues.is_empty() {
        session.note(Tone::Dim, "No queues: nothing is queued, and no limit is set.");
    }
    Ok(0)
}

fn row(queue: &Queue, now: Rfc3339) -> Vec<Cell> {
    let oldest = queue.oldest.map_or_else(|| "-".to_owned(), |oldest| format!("{} ago", Human::from_ms(now.ms_since(oldest))));
    let dead = Cell::new(queue.dead.to_string(), if queue.dead > 0 { Tone::Bad } else { Tone::Plain });
    // Executions wait, and no worker serves their queue.
    let is_stuck = queue.workers == 0 && queue.depth > 0;
    let workers = Cell::new(queue.workers.to_string(), if is_stuck { Tone::Warning } else { Tone::Plain });
    let terms = match terms(queue) {
        text if text.is_empty() => "-".into(),
        text => Cell::new(text, if queue.paused.is_some() { Tone::Warning } else { Tone::Plain }),
    };
    vec![(&queue.name).into(), queue.depth.to_string().into(), oldest.into(), queue.in_flight.to_string().into(), dead, workers, terms]
}

/// The terms of a queue in a few words; nothing where it has none.
fn terms(queue: &Queue) -> String {
    let mut words = Vec::new();
    words.extend(queue.paused.as_ref().map(|_| "paused".to_owned()));
    words.extend(queue.concurrency.map(|limit| format!("max {limit}")));
    words.extend(queue.per_user.map(|limit| format!("max {limit} per user")));
    words.join(", ")
}

async fn show(session: &Session, name: &str) -> Result<u8, Failure> {
    let queues = session.connect().await?.queues().await?;
    let Some(queue) = queues.into_iter().find(|queue| queue.name == name) else {
        return Err(Failure::other(format!("no queue {}", one_line(name))).next("list the queues: runvoy queues list"));
    };
    session.show(&queue, || vec![queue.name.clone()], || describe(&queue, session.now(), session.terminal.stdout_colour))?;
    Ok(0)
}

fn describe(queue: &Queue, now: Rfc3339, colour: bool) -> String {
    let paused = queue.paused.as_ref().map(|pause| {
        let why = pause.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        format!("by {} {} ago{why}", pause.by, Human::from_ms(now.ms_since(pause.at)))
    });
    let limit = |limit: Option<u32>| Some(limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string()));
    facts(
        [
            ("queue", Some(queue.name.clone())),
            ("paused", paused),
            ("queued", Some(queue.depth.to_string())),
            ("oldest", queue.oldest.map(|oldest| format!("{} ago", Human::from_ms(now.ms_since(oldest))))),
            ("running", Some(queue.in_flight.to_string())),
            ("dead letters", Some(queue.dead.to_string())),
            ("workers", Some(queue.workers.to_string())),
            ("concurrency", limit(queue.concurrency)),
            ("per user", limit(queue.per_user)),
            ("slots in use", queue.places_taken.map(|taken| taken.to_string())),
        ],
        colour,
    )
}

async fn put(session: &Session, name: &str, request: PutQueueRequest) -> Result<u8, Failure> {
    let answer = session.connect().await?.put_queue(name, &request).await?;
    session.report(&answer, &answer.name, &answer.message)
}

async fn dead(session: &Session, queue: &str, limit: Limit) -> Result<u8, Failure> {
    let client = session.connect().await?;
    let (letters, pager) =
        listing::collect(limit, async |limit, cursor| client.dead_letters(queue, Some(limit), cursor.as_deref()).await).await?;
    let table = || {
        let ids = ShortIds::of(session.is_compact(), letters.iter().map(|letter| letter.execution_id.as_str()));
        let rows: Vec<Vec<Cell>> = letters.iter().map(|letter| dead_row(letter, ids, session.times())).collect();
        list(&["EXECUTION", "FAILED", "ATTEMPTS", "TASK", "CATEGORY", "ERROR"], &rows, session.terminal)
    };
    session.show(&letters, || letters.iter().map(|letter| letter.execution_id.clone()).collect(), table)?;
    if letters.is_empty() {
        session.note(Tone::Dim, &format!("No dead letters in queue {}.", one_line(queue)));
    }
    pager.note_rest(session);
    Ok(0)
}

fn dead_row(letter: &DeadLetter, ids: ShortIds, times: Times) -> Vec<Cell> {
    let task = letter.job_id.as_deref().zip(letter.task_id.as_deref()).map(|(job, task)| format!("{}/{task}", ids.show(job)));
    vec![
        Cell::whole(ids.show(&letter.execution_id)),
        Cell::whole(times.show(letter.failed_at)),
        letter.attempts.to_string().into(),
        task.as_deref().unwrap_or("-").into(),
        letter.error_category.as_deref().unwrap_or("-").into(),
        (&letter.error).into(),
    ]
}

async fn redrive(session: &Session, queue: &str, tasks: &[String]) -> Result<u8, Failure> {
    if tasks.is_empty() {
        session.confirm(&format!("Queue all dead letters of {queue} again"))?;
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
            session.note(Tone::Plain, &one_line(&format!("Queued {} again in {queue}.", counted(answer.redriven.len(), "execution"))));
            for dropped in &answer.dropped {
                session.note(Tone::Dim, &one_line(&format!("{} cannot run again and is dropped: {}", dropped.execution_id, dropped.error)));
            }
            for refused in &answer.refused {
                session.note(Tone::Warning, &one_line(&format!("{}: {}", refused.execution_id, refused.error)));
            }
            if answer.left > 0 {
                session.note(Tone::Warning, &format!("{} left: repeat the command.", counted(answer.left as usize, "dead letter")));
            }
        }
        _ => session.show(&answer, made, String::new)?,
    }
    Ok(u8::from(!answer.refused.is_empty()))
}

/// `1 execution`, `2 executions`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_a_queue_are_told() {
        let text = r#"[{"name":"default","depth":2,"in_flight":1,"workers":1},
            {"name":"gpu","depth":3,"oldest":"2026-01-03T14:00:00Z","in_flight":2,"dead":1,"concurrency":2,"per_user":1,"places_taken":2,
             "paused":{"by":"ana@example.com","at":"2026-01-03T14:30:00Z","reason":"a new driver"}}]"#;
        let queues: Vec<Queue> = serde_json::from_str(text).expect("the fields of the API");
        let now = "2026-01-03T14:35:00Z".parse().expect("a time");
        let rows: Vec<Vec<Cell>> = queues.iter().map(|queue| row(queue, now)).collect();
        let head = ["QUEUE", "WAITING", "OLDEST", "IN FLIGHT", "DEAD", "WORKERS", "TERMS"];
        insta::assert_snapshot!(crate::table::render(&head, &rows, None, false), @r"
        QUEUE    WAITING  OLDEST       IN FLIGHT  DEAD  WORKERS  TERMS
        default  2        -            1          0     1        -
        gpu      3        35m 00s ago  2          1     0        paused, max 2, max 1 per user
        ");
        insta::assert_snapshot!(describe(&queues[1], now, false), @r"
        queue         gpu
        paused        by ana@example.com 5m 00s ago: a new driver
        queued        3
        oldest        35m 00s ago
        running       2
        dead letters  1
        workers       0
        concurrency   2
        per user      1
        slots in use  2
        ");
    }
}
