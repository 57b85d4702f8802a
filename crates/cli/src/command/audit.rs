//! `audit`: what was done by whom, whether the record of it is whole, and the record itself for other systems.

use std::io::{self, Write as _};

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::{AuditQuery, Client};
use runvoy_wire::{AuditEvent, AuditVerification};

use crate::complete;
use crate::duration::Seconds;
use crate::failure::{Failure, GENERAL};
use crate::session::Session;
use crate::table::{Cell, facts, list};
use crate::terminal::{Tone, paint};

const EXAMPLES: &str = "\
Examples:
  runvoy audit list --user ana@example.com --since 7d
  runvoy audit list --action secrets --json       # or one of them, such as executions.kill
  runvoy audit verify                             # exit code 1 if it was tampered with, and where
  runvoy audit export --since 30d > audit.ndjson";

/// The largest page that is asked for at once.
const PAGE: u32 = 500;

/// Arguments of `audit`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

/// What to do with the audit record.
#[derive(Debug, Clone, Subcommand)]
enum AuditCommand {
    /// List audit events, newest first
    #[command(
        visible_alias = "ls",
        before_help = "Examples:\n  runvoy audit list\n  runvoy audit list --user ana@example.com --since 7d --limit 0"
    )]
    List {
        #[command(flatten)]
        which: WhichArgs,
        /// How many at most; 0 for all
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Tell whether the audit record is as it was written
    #[command(before_help = "Examples:\n  runvoy audit verify\n  runvoy audit verify --json")]
    Verify,
    /// Write audit events to stdout, one JSON object a line, oldest first
    #[command(before_help = "Examples:\n  runvoy audit export > audit.ndjson\n  runvoy audit export --since 1d | jq -r .action")]
    Export {
        #[command(flatten)]
        which: WhichArgs,
    },
}

/// Which events.
#[derive(Debug, Clone, Args)]
struct WhichArgs {
    /// Only what this user did
    #[arg(short, long, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    user: Option<String>,
    /// Only this action, or all of a resource: executions.kill, or executions
    #[arg(long)]
    action: Option<String>,
    /// Only what was done in this time before now
    #[arg(long, value_name = "DURATION")]
    since: Option<Seconds>,
}

impl AuditArgs {
    /// It is the command that verifies the record, which the binary can also carry out without a server.
    pub fn is_verify(&self) -> bool {
        matches!(self.command, AuditCommand::Verify)
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        match self.command {
            AuditCommand::List { which, limit } => show_all(session, &client, which.query(session), limit).await,
            AuditCommand::Verify => verify(session, &client.verify_audit().await?),
            AuditCommand::Export { which } => export(&client, &which.query(session)).await,
        }
    }
}

impl WhichArgs {
    fn query(self, session: &Session) -> AuditQuery {
        let since = self.since.map(|since| session.ago(since));
        AuditQuery { user: self.user, action: self.action, since, ..AuditQuery::default() }
    }
}

async fn show_all(session: &Session, client: &Client, query: AuditQuery, limit: u32) -> Result<u8, Failure> {
    let events = collect(client, query, limit).await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = events.iter().map(row).collect();
        list(&["TIME", "USER", "ACTION", "ENTITY", "RESULT", "FROM", "REQUEST"], &rows, session.terminal)
    };
    session.show(&events, || events.iter().map(|event| event.event_id.clone()).collect(), table)?;
    if events.is_empty() {
        session.note(Tone::Dim, "no audit events");
    }
    Ok(0)
}

async fn collect(client: &Client, mut query: AuditQuery, limit: u32) -> Result<Vec<AuditEvent>, Failure> {
    let mut events: Vec<AuditEvent> = Vec::new();
    loop {
        let missing = match limit {
            0 => PAGE,
            limit => (limit as usize).saturating_sub(events.len()).try_into().unwrap_or(PAGE).min(PAGE),
        };
        query.limit = Some(missing);
        let page = client.audit(&query).await?;
        events.extend(page.items);
        // A page may be empty and not the last; but a server that does not move on would be asked for ever.
        let moves_on = page.next_cursor.is_some() && page.next_cursor != query.cursor;
        query.cursor = page.next_cursor;
        if !moves_on || limit > 0 && events.len() >= limit as usize {
            return Ok(events);
        }
    }
}

fn row(event: &AuditEvent) -> Vec<Cell> {
    let result = Cell::new(&event.result, if event.result == "ok" { Tone::Good } else { Tone::Bad });
    let address = event.address.as_deref().unwrap_or("-");
    vec![
        event.at.to_string().into(),
        (&event.user).into(),
        (&event.action).into(),
        (&event.entity).into(),
        result,
        address.into(),
        (&event.request_id).into(),
    ]
}

fn verify(session: &Session, answer: &AuditVerification) -> Result<u8, Failure> {
    let word = if answer.ok { "whole" } else { "broken" };
    session.show(answer, || vec![word.to_owned()], || verdict(answer, session.terminal.stdout_colour))?;
    Ok(if answer.ok { 0 } else { GENERAL })
}

fn verdict(answer: &AuditVerification, colour: bool) -> String {
    let heading = match answer.ok {
        true => paint("the audit record is whole", Tone::Good, colour),
        false => paint("the audit record was tampered with", Tone::Bad, colour),
    };
    let bad = answer.first_bad.as_ref();
    let described = facts(
        [
            ("events checked", Some(answer.checked.to_string())),
            ("last checkpoint", answer.checkpoint_at.map(|at| at.to_string())),
            ("first bad event", bad.map(|bad| format!("{} number {}", bad.entity, bad.number))),
            ("event id", bad.and_then(|bad| bad.event_id.clone())),
            ("problem", bad.map(|bad| format!("{}: {}", bad.problem, bad.message))),
        ],
        colour,
    );
    format!("{heading}\n{described}")
}

async fn export(client: &Client, query: &AuditQuery) -> Result<u8, Failure> {
    let mut download = client.export_audit(query).await?;
    let mut stdout = io::stdout().lock();
    while let Some(chunk) = download.chunk().await? {
        stdout.write_all(&chunk)?;
    }
    stdout.flush()?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_event_is_named() {
        let text = r#"{"ok":false,"checked":120,"first_bad":{"entity":"USER:ana@example.com","number":3,"event_id":"0192ab","problem":"altered",
            "message":"its seal does not fit"},"checkpoint_at":"2026-01-03T14:22:19Z"}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        the audit record was tampered with
        events checked   120
        last checkpoint  2026-01-03T14:22:19.000Z
        first bad event  USER:ana@example.com number 3
        event id         0192ab
        problem          altered: its seal does not fit
        ");
    }
}
