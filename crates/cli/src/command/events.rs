//! `events`: the event log, what is there or as it happens.

use clap::{Args, Subcommand, ValueEnum};
use runvoy_client::{Client, EventsQuery, Streamed};
use runvoy_wire::{Event, Rfc3339};
use serde_json::Value;

use super::job;
use crate::attach::interrupts;
use crate::failure::{Failure, INTERRUPTED};
use crate::global::Format;
use crate::moment::Moment;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::table::{Cell, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy events                                        # the newest of all
  runvoy events --type 'Task Failed' --from 1d
  runvoy events --entity TASK:0192ab34 --order asc     # the life of one execution
  runvoy events --entity JOB:0192ab34 --limit 0
  runvoy events follow --type 'Job Completed' --json";

/// The largest page that is asked for at once.
const PAGE: u32 = 500;
/// How much of the properties is shown.
const PROPERTIES: [&str; 9] = ["jobId", "taskId", "name", "attempt", "attemptNumber", "exitCode", "errorCategory", "error", "failedTaskId"];

/// Arguments of `events`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct EventsArgs {
    #[command(subcommand)]
    command: Option<EventsCommand>,
    #[command(flatten)]
    which: WhichArgs,
    /// Only before: so long ago, or a time
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,
    /// Which come first
    #[arg(long, value_enum, default_value_t = Order::Desc)]
    order: Order,
    /// How many at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

/// What else to do with events.
#[derive(Debug, Clone, Subcommand)]
enum EventsCommand {
    /// Print events as they happen
    #[command(before_help = "Examples:\n  runvoy events follow\n  runvoy events follow --entity JOB:0192ab34 --from 1h --json")]
    Follow {
        #[command(flatten)]
        which: WhichArgs,
    },
}

/// Which events.
#[derive(Debug, Clone, Args)]
struct WhichArgs {
    /// Only of this type, such as 'Task Failed'
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only of this execution or job: TASK:ID, JOB:ID
    #[arg(short, long, value_name = "KIND:ID", value_parser = entity)]
    entity: Option<String>,
    /// Only of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only of this app
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Only from then on: so long ago, or a time
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
}

/// Which come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// The oldest.
    Asc,
    /// The newest.
    Desc,
}

fn entity(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => Ok(format!("{}:{id}", kind.to_ascii_uppercase())),
        _ => Err("write KIND:ID, such as TASK:0192ab34 or JOB:0192ab34".to_owned()),
    }
}

impl EventsArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        if let Some(EventsCommand::Follow { which }) = self.command {
            let query = which.query(session, &client).await?;
            let mut interrupts = interrupts()?;
            return tokio::select! {
                followed = follow(session, &client, query) => followed,
                _ = interrupts.recv() => Ok(INTERRUPTED),
            };
        }
        let order = if self.order == Order::Asc { "asc" } else { "desc" };
        let mut query = self.which.query(session, &client).await?;
        (query.to, query.order) = (self.to.map(|to| to.text(session)), Some(order.to_owned()));
        if show(session, Pages::new(&client, query, self.limit)).await? == 0 {
            session.note(Tone::Dim, "no events");
        }
        Ok(0)
    }
}

/// Prints events page by page where the format can, for there may be more than fit into memory; tells how many there were.
async fn show(session: &Session, mut pages: Pages<'_>) -> Result<usize, Failure> {
    match session.format() {
        Format::Json if session.jq.is_none() => {
            while let Some(page) = pages.next().await? {
                session.print(&elements(&page, pages.count == page.len()))?;
            }
            session.print(if pages.count == 0 { "[]\n" } else { "\n]\n" })?;
        }
        Format::Name => {
            while let Some(page) = pages.next().await? {
                session.print(&page.iter().map(|event| id(event) + "\n").collect::<String>())?;
            }
        }
        Format::Table => {
            let mut rows: Vec<Vec<Cell>> = Vec::new();
            while let Some(page) = pages.next().await? {
                rows.extend(page.iter().map(row));
            }
            session.print(&list(&["TIME", "TYPE", "ENTITY", "MORE"], &rows, session.terminal))?;
        }
        Format::Json | Format::Yaml => {
            let mut events = Vec::new();
            while let Some(page) = pages.next().await? {
                events.extend(page);
            }
            session.show(&events, Vec::new, String::new)?;
        }
    }
    Ok(pages.count)
}

/// A part of an array of events, written as the whole would be.
fn elements(events: &[Event], first: bool) -> String {
    let mut text = String::new();
    for (at, event) in events.iter().enumerate() {
        text.push_str(if first && at == 0 { "[\n  " } else { ",\n  " });
        // No text in JSON has a line break in it: each is one of the layout.
        text.push_str(&serde_json::to_string_pretty(event).expect("wire types are plain data").replace('\n', "\n  "));
    }
    text
}

impl WhichArgs {
    /// The query, with whole ids.
    async fn query(self, session: &Session, client: &Client) -> Result<EventsQuery, Failure> {
        let entity = match self.entity.as_deref().and_then(|entity| entity.split_once(':')) {
            Some(("TASK", id)) => Some(format!("TASK:{}", session.resolve(client, id).await?)),
            Some(("JOB", id)) => Some(format!("JOB:{}", job::resolve(client, id).await?)),
            _ => self.entity,
        };
        let from = self.from.map(|from| from.text(session));
        Ok(EventsQuery { kind: self.kind, tenant: self.tenant, app: self.app, entity, from, ..EventsQuery::default() })
    }
}

/// Events, page by page, as many as were asked for.
struct Pages<'c> {
    client: &'c Client,
    query: EventsQuery,
    /// 0 for all.
    limit: u32,
    /// How many there were.
    count: usize,
    ended: bool,
}

impl<'c> Pages<'c> {
    fn new(client: &'c Client, query: EventsQuery, limit: u32) -> Self {
        Self { client, query, limit, count: 0, ended: false }
    }

    /// The next page that is not empty.
    async fn next(&mut self) -> Result<Option<Vec<Event>>, Failure> {
        while !self.ended {
            let missing = match self.limit {
                0 => PAGE,
                limit => (limit as usize).saturating_sub(self.count).try_into().unwrap_or(PAGE).min(PAGE),
            };
            self.query.limit = Some(missing);
            let page = self.client.query_events(&self.query).await?;
            self.count += page.items.len();
            // A page may be empty and not the last; but a server that does not move on would be asked for ever.
            let moves_on = page.next_cursor.is_some() && page.next_cursor != self.query.cursor;
            self.query.cursor = page.next_cursor;
            self.ended = !moves_on || self.limit > 0 && self.count >= self.limit as usize;
            if !page.items.is_empty() {
                return Ok(Some(page.items));
            }
        }
        Ok(None)
    }
}

async fn follow(session: &Session, client: &Client, query: EventsQuery) -> Result<u8, Failure> {
    let mut stream = client.follow_events(query);
    loop {
        match stream.next().await? {
            Streamed::Event(event) => session.print(&match session.format() {
                Format::Json | Format::Yaml => session.filtered(&event)?,
                Format::Name => format!("{}\n", id(&event)),
                Format::Table => line(&event),
            })?,
            Streamed::Interrupted(error) => session.note(Tone::Warning, &format!("### runvoy: connection lost ({error}), trying again")),
        }
    }
}

/// The id in the sort key, which every event has.
fn id(event: &Event) -> String {
    event.text("SK").rsplit('#').next().unwrap_or_default().to_owned()
}

fn parts(event: &Event) -> [String; 4] {
    let time = Rfc3339(event.timestamp()).to_string();
    let entity = format!("{}:{}", event.text("entityType"), event.text("entityId"));
    [time, event.text("eventType").to_owned(), entity, more(event.properties())].map(|part| one_line(&part))
}

fn row(event: &Event) -> Vec<Cell> {
    parts(event).into_iter().map(Cell::from).collect()
}

fn line(event: &Event) -> String {
    let [time, kind, entity, more] = parts(event);
    format!("{time}  {kind:<23}  {entity}  {more}").trim_end().to_owned() + "\n"
}

/// What matters of the properties.
fn more(properties: &Value) -> String {
    let shown = |name: &&str| {
        let value = properties.get(*name)?;
        Some(format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
    };
    PROPERTIES.iter().filter_map(shown).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_array_are_the_array() {
        let events: Vec<Event> = (0..5).map(|n| Event(serde_json::json!({"n": n, "properties": {"text": "a\nb", "none": {}}}))).collect();
        let whole = serde_json::to_string_pretty(&events).expect("plain data");
        for split in 1..5 {
            assert_eq!(elements(&events[..split], true) + &elements(&events[split..], false) + "\n]", whole);
        }
    }

    #[test]
    fn an_event_is_shown_in_a_line() {
        let event = Event(
            serde_json::json!({"SK": "TIMESTAMP#1000#EVENT#0192ab", "entityType": "TASK", "entityId": "0192", "eventType": "Task Failed",
            "timestamp": 1000, "properties": {"jobId": "j1", "error": "exit code 2", "errorCategory": "network", "requestId": "0192"}}),
        );
        assert_eq!(
            line(&event),
            "1970-01-01T00:00:01.000Z  Task Failed              TASK:0192  jobId=j1 errorCategory=network error=exit code 2\n"
        );
        assert_eq!(id(&event), "0192ab");
        assert_eq!(entity("task:01"), Ok("TASK:01".to_owned()));
        assert!(entity("0192").is_err() && entity("TASK:").is_err());
    }
}
