//! `events`: the event log, what is there or as it happens.

use clap::{Args, Subcommand, ValueEnum};
use runvoy_client::{Client, EventsQuery, Streamed};
use runvoy_wire::{Event, Rfc3339};
use serde_json::Value;

use super::job;
use crate::attach::interrupts;
use crate::failure::{Failure, INTERRUPTED};
use crate::global::Format;
use crate::listing::{Limit, Pager};
use crate::moment::Moment;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy events --type 'Task Failed' --from 1d
  runvoy events --entity TASK:4f2a9c --order asc   # oldest first
  runvoy events --entity JOB:4f2a9c --all
  runvoy events follow --type 'Job Completed' --json";

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
    /// Only before this time: 10m ago, or a date and time
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,
    /// Order: asc (oldest first) or desc
    #[arg(long, value_enum, default_value_t = Order::Desc, hide_possible_values = true)]
    order: Order,
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Show all
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// What else to do with events.
#[derive(Debug, Clone, Subcommand)]
enum EventsCommand {
    /// Print events as they happen
    #[command(before_help = "Examples:\n  runvoy events follow\n  runvoy events follow --entity JOB:4f2a9c --from 1h --json")]
    Follow {
        #[command(flatten)]
        which: WhichArgs,
    },
}

/// Which events.
#[derive(Debug, Clone, Args)]
struct WhichArgs {
    /// Only events of this type, such as 'Task Failed'
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only events of this execution or job
    #[arg(short, long, value_name = "KIND:ID", value_parser = entity)]
    entity: Option<String>,
    /// Only events of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only events of this app
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Only since this time: 10m ago, or a date and time
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
}

/// Which come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    Asc,
    Desc,
}

fn entity(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => Ok(format!("{}:{id}", kind.to_ascii_uppercase())),
        _ => Err("use KIND:ID, such as TASK:4f2a9c or JOB:4f2a9c".to_owned()),
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
        let mut pages = Pages { client: &client, query, pager: Pager::new(Limit::new(self.limit, self.all)) };
        show(session, &mut pages).await?;
        if pages.pager.shown() == 0 {
            session.note(Tone::Dim, "No events.");
        }
        pages.pager.note_rest(session);
        Ok(0)
    }
}

/// Prints events page by page where the format can: there may be more than fit into memory.
async fn show(session: &Session, pages: &mut Pages<'_>) -> Result<(), Failure> {
    match session.format() {
        Format::Json if session.jq.is_none() => {
            while let Some(page) = pages.next().await? {
                session.print(&elements(&page, pages.pager.shown() == page.len()))?;
            }
            session.print(if pages.pager.shown() == 0 { "[]\n" } else { "\n]\n" })?;
        }
        Format::Name => {
            while let Some(page) = pages.next().await? {
                session.print(&page.iter().map(|event| id(event) + "\n").collect::<String>())?;
            }
        }
        Format::Table => {
            let mut events = Vec::new();
            while let Some(page) = pages.next().await? {
                events.extend(page);
            }
            session.print(&table(session, &events))?;
        }
        Format::Json | Format::Yaml => {
            let mut events = Vec::new();
            while let Some(page) = pages.next().await? {
                events.extend(page);
            }
            session.show(&events, Vec::new, String::new)?;
        }
    }
    Ok(())
}

fn table(session: &Session, events: &[Event]) -> String {
    let ids = ShortIds::of(session.is_compact(), events.iter().map(|event| event.text("entityId")));
    let row = |event: &Event| {
        let [_, kind, entity, details] = parts(event);
        let time = session.times().show(Rfc3339(event.timestamp()));
        vec![Cell::whole(time), kind.into(), Cell::from(ids.shorten(&entity)), ids.shorten(&details).into()]
    };
    let rows: Vec<Vec<Cell>> = events.iter().map(row).collect();
    list(&["TIME", "TYPE", "ENTITY", "DETAILS"], &rows, session.terminal)
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
    pager: Pager,
}

impl Pages<'_> {
    /// The next page that is not empty.
    async fn next(&mut self) -> Result<Option<Vec<Event>>, Failure> {
        while let Some((limit, cursor)) = self.pager.next() {
            (self.query.limit, self.query.cursor) = (Some(limit), cursor);
            let events = self.pager.take(self.client.query_events(&self.query).await?);
            if !events.is_empty() {
                return Ok(Some(events));
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
            Streamed::Interrupted(error) => session.note(Tone::Warning, &format!("### runvoy: connection lost ({error}), reconnecting")),
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
