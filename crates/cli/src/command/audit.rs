//! `audit`: what was done by whom, whether the record of it is whole, and the record itself for other systems.

use std::io::{self, Write as _};

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::{AuditQuery, Client};
use runvoy_wire::{AuditEvent, AuditVerification};

use crate::complete;
use crate::duration::Seconds;
use crate::environment::Environment;
use crate::failure::{Failure, GENERAL};
use crate::global::{Format, GlobalArgs};
use crate::jq::Jq;
use crate::output::written;
use crate::session::Session;
use crate::table::{Cell, facts, render};
use crate::terminal::{Terminal, Tone, paint};

const EXAMPLES: &str = "\
Examples:
  runvoy audit list --user ana@example.com --since 7d
  runvoy audit list --text terraform --since 30d --until 7d
  runvoy audit list --action secrets --json       # or one of them, such as executions.kill
  runvoy audit verify --state                     # exit code 1 if it is not whole, and where
  runvoy audit export --since 30d > audit.ndjson";

/// What events are called. A server may know more.
pub(crate) const ACTIONS: [&str; 41] = [
    "admin.recover",
    "backup.create",
    "executions.kill",
    "executions.link",
    "executions.rerun",
    "executions.run",
    "groups.put",
    "groups.remove",
    "health.reconcile",
    "images.register",
    "images.unregister",
    "jobs.add-tasks",
    "jobs.cancel",
    "jobs.create",
    "jobs.resume",
    "keys.create",
    "keys.revoke",
    "keys.rotate",
    "locks.release",
    "playbooks.push",
    "playbooks.remove",
    "playbooks.run",
    "queues.put",
    "queues.remove",
    "rules.put",
    "rules.remove",
    "secrets.create",
    "secrets.delete",
    "secrets.reveal",
    "secrets.update",
    "users.claim",
    "users.create",
    "users.renew",
    "users.revoke",
    "users.role",
    "workers.create",
    "workers.drain",
    "workers.import",
    "workers.resume",
    "workers.revoke",
    "workers.rotate",
];

/// So many characters of a command are shown in the table.
const SHOWN_COMMAND: usize = 60;
/// The largest page that is asked for at once.
const PAGE: u32 = 500;

/// Arguments of `audit`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

/// What to do with the audit trail.
#[derive(Debug, Clone, Subcommand)]
enum AuditCommand {
    /// List audit events, newest first
    #[command(
        visible_alias = "ls",
        before_help = "Examples:\n  runvoy audit list\n  runvoy audit list --user ana@example.com --since 7d --limit 0\n  runvoy audit list --text terraform --since 30d --until 7d"
    )]
    List {
        #[command(flatten)]
        which: WhichArgs,
        /// How many at most; 0 for all
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Tell whether the audit trail is as it was written
    #[command(
        before_help = "Examples:\n  runvoy audit verify\n  runvoy audit verify --state --json\n  runvoy audit verify --data-dir /var/lib/runvoy   # also without its server"
    )]
    Verify {
        /// Also compare every record, execution, job, task and lock with what the events say
        #[arg(long)]
        state: bool,
    },
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
    #[arg(long, add = ArgValueCompleter::new(complete::audit_actions))]
    action: Option<String>,
    /// Only what was done in this time before now
    #[arg(long, value_name = "DURATION")]
    since: Option<Seconds>,
    /// Only what was done longer ago than this
    #[arg(long, value_name = "DURATION")]
    until: Option<Seconds>,
    /// Only events with this text, in any case of letters: in the command, the target, the reason of a refusal, the address, …
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

impl AuditArgs {
    /// It is the command that verifies the record, which the binary can also carry out without a server.
    pub fn is_verify(&self) -> bool {
        matches!(self.command, AuditCommand::Verify { .. })
    }

    /// All kept state is to be compared with the record, too.
    pub fn with_state(&self) -> bool {
        matches!(self.command, AuditCommand::Verify { state: true })
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        match self.command {
            AuditCommand::List { which, limit } => show_all(session, &client, which.query(session), limit).await,
            AuditCommand::Verify { state } => verify(session, &client.verify_audit(state).await?, state),
            AuditCommand::Export { which } => export(&client, &which.query(session)).await,
        }
    }
}

impl WhichArgs {
    fn query(self, session: &Session) -> AuditQuery {
        let since = self.since.map(|since| session.ago(since));
        let until = self.until.map(|until| session.ago(until));
        AuditQuery { user: self.user, action: self.action, text: self.text, since, until, ..AuditQuery::default() }
    }
}

async fn show_all(session: &Session, client: &Client, query: AuditQuery, limit: u32) -> Result<u8, Failure> {
    let events = collect(client, query, limit).await?;
    let table = || listed(&events, session.terminal.width, session.terminal.stdout_colour);
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

/// The events in columns. The request's id is what `trace` takes, and is never cut: where there is no room, the address is left out.
fn listed(events: &[AuditEvent], width: Option<usize>, colour: bool) -> String {
    let rows = |with_address| events.iter().map(|event| row(event, with_address)).collect::<Vec<_>>();
    let whole =
        |headings: &[&str], rows: &[Vec<Cell>], colour| if rows.is_empty() { String::new() } else { render(headings, rows, None, colour) };
    let headings = ["TIME", "USER", "ACTION", "ENTITY", "RESULT", "FROM", "REQUEST", "COMMAND"];
    let plain = whole(&headings, &rows(true), false);
    let fits = |width: usize| plain.lines().all(|line| line.chars().count() <= width);
    if width.is_none_or(fits) {
        whole(&headings, &rows(true), colour)
    } else {
        let narrow: Vec<&str> = headings.into_iter().filter(|heading| *heading != "FROM").collect();
        whole(&narrow, &rows(false), colour)
    }
}

/// The beginning of a command; `--json` has all of it.
fn first_line(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(SHOWN_COMMAND).collect();
    if shown.len() < command.len() { shown + "…" } else { shown }
}

fn row(event: &AuditEvent, with_address: bool) -> Vec<Cell> {
    let result = Cell::new(&event.result, if event.result == "ok" { Tone::Good } else { Tone::Bad });
    let address = with_address.then(|| event.address.as_deref().unwrap_or("-").into());
    let before = [event.at.to_string().into(), (&event.user).into(), (&event.action).into(), (&event.entity).into(), result];
    let command = event.command.as_deref().map_or_else(|| "-".to_owned(), first_line);
    before.into_iter().chain(address).chain([(&event.request_id).into(), (&command).into()]).collect()
}

fn verify(session: &Session, answer: &AuditVerification, with_state: bool) -> Result<u8, Failure> {
    session.print(&judged(session.format(), session.jq.as_deref(), answer, session.terminal.stdout_colour)?)?;
    let is_older = with_state && answer.compared.is_none();
    if is_older {
        session.note(Tone::Bad, "the server did not compare any state: it is older than this command");
    }
    Ok(if answer.ok && !is_older { 0 } else { GENERAL })
}

/// Writes what was found in the files of a data directory, which no server was asked about, as `audit verify` writes a server's answer; gives
/// the exit code of the process.
pub fn tell(global: &GlobalArgs, found: &AuditVerification) -> u8 {
    let terminal = Terminal::of_process(global.color, &Environment::from_process());
    let written = || {
        global.check()?;
        let jq = global.jq.as_deref().map(Jq::new).transpose()?;
        let text = judged(global.format(), jq.as_ref(), found, terminal.stdout_colour)?;
        Ok::<_, Failure>(io::stdout().write_all(text.as_bytes())?)
    };
    match written() {
        Ok(()) => u8::from(!found.ok),
        Err(failure) => failure.tell(global.format() == Format::Json, terminal.stderr_colour, GENERAL),
    }
}

fn judged(format: Format, jq: Option<&Jq>, found: &AuditVerification, colour: bool) -> Result<String, Failure> {
    let word = if found.ok { "whole" } else { "broken" };
    written(format, jq, found, || vec![word.to_owned()], || verdict(found, colour))
}

fn verdict(answer: &AuditVerification, colour: bool) -> String {
    let (bad, mismatch) = (answer.first_bad.as_ref(), answer.first_mismatch.as_ref());
    let heading = match (bad, mismatch, answer.compared) {
        (None, None, None) => paint("the audit trail is whole", Tone::Good, colour),
        (None, None, Some(_)) if answer.unverifiable > 0 => {
            paint("the audit trail is whole, and all kept state that can be compared follows from it", Tone::Good, colour)
        }
        (None, None, Some(_)) => paint("the audit trail is whole, and all kept state follows from it", Tone::Good, colour),
        (None, Some(_), _) => paint("the audit trail is whole, and kept state does not follow from it", Tone::Bad, colour),
        (Some(_), ..) => paint("the audit trail is not whole", Tone::Bad, colour),
    };
    let described = facts(
        [
            ("events checked", Some(answer.checked.to_string())),
            ("last checkpoint", Some(answer.checkpoint_at.map_or_else(|| "none yet".to_owned(), |at| at.to_string()))),
            (
                "not exported",
                answer.unexported_from.map(|number| format!("since checkpoint {number}: exporting fails, or its file was cut")),
            ),
            (
                "unverifiable",
                (answer.unverifiable > 0).then(|| {
                    format!("{} executions and jobs: written before events held digests of what runs and whose it is", answer.unverifiable)
                }),
            ),
            ("first bad event", bad.map(|bad| format!("{} number {}", bad.entity, bad.number))),
            ("event id", bad.and_then(|bad| bad.event_id.clone())),
            ("problem", bad.map(|bad| format!("{}: {}", bad.problem, bad.message))),
            ("states compared", answer.compared.map(|compared| compared.to_string())),
            ("first mismatch", mismatch.map(|first| format!("{}: {} {}", first.entity, first.field, first.message))),
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
    fn a_narrow_terminal_loses_the_address_and_never_the_request() {
        let text = r#"[{"event_id":"e","at":"2026-01-03T14:22:19Z","user":"ana@example.com","action":"executions.run","entity":"TASK:0192","number":1,"command":"make deploy\nmake test",
            "result":"ok","address":"192.0.2.17","request_id":"0192ab34c56d7e8f9a0b1c2d3e4f5a6b"}]"#;
        let events: Vec<AuditEvent> = serde_json::from_str(text).expect("the contract's fields");
        let wide = listed(&events, Some(160), false);
        assert_eq!(wide, listed(&events, None, false));
        assert!(wide.contains("FROM") && wide.contains("192.0.2.17"), "{wide}");
        insta::assert_snapshot!(listed(&events, Some(80), false), @r"
        TIME                      USER             ACTION          ENTITY     RESULT  REQUEST                           COMMAND
        2026-01-03T14:22:19.000Z  ana@example.com  executions.run  TASK:0192  ok      0192ab34c56d7e8f9a0b1c2d3e4f5a6b  make deploy…
        ");
        assert_eq!(listed(&[], Some(80), false), "");
    }

    #[test]
    fn the_first_bad_event_is_named() {
        let text = r#"{"ok":false,"checked":120,"first_bad":{"entity":"USER:ana@example.com","number":3,"event_id":"0192ab","problem":"altered",
            "message":"its seal does not fit"},"checkpoint_at":"2026-01-03T14:22:19Z"}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        the audit trail is not whole
        events checked   120
        last checkpoint  2026-01-03T14:22:19.000Z
        first bad event  USER:ana@example.com number 3
        event id         0192ab
        problem          altered: its seal does not fit
        ");
    }

    #[test]
    fn what_cannot_be_compared_is_counted_in_a_line_of_its_own() {
        let text = r#"{"ok":true,"checked":120,"compared":31,"unverifiable":4}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        the audit trail is whole, and all kept state that can be compared follows from it
        events checked   120
        last checkpoint  none yet
        unverifiable     4 executions and jobs: written before events held digests of what runs and whose it is
        states compared  31
        ");
    }

    #[test]
    fn the_first_mismatch_is_named_and_a_whole_trail_is_told_from_it() {
        let text = r#"{"ok":false,"checked":120,"compared":31,"first_mismatch":{"entity":"TASK:0192ab","field":"status","message":"is SUCCEEDED, and the events say FAILED"}}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        the audit trail is whole, and kept state does not follow from it
        events checked   120
        last checkpoint  none yet
        states compared  31
        first mismatch   TASK:0192ab: status is SUCCEEDED, and the events say FAILED
        ");
        let answer = AuditVerification { ok: true, first_mismatch: None, ..answer };
        let told = verdict(&answer, false);
        assert!(told.starts_with("the audit trail is whole, and all kept state follows from it"), "{told}");
    }

    #[test]
    fn checkpoints_that_are_not_exported_are_told_and_are_no_tampering() {
        let text = r#"{"ok":true,"checked":120,"checkpoint_at":"2026-01-03T14:22:19Z","unexported_from":7}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        the audit trail is whole
        events checked   120
        last checkpoint  2026-01-03T14:22:19.000Z
        not exported     since checkpoint 7: exporting fails, or its file was cut
        ");
    }
}
