//! `audit`: who did what, whether the record of it is intact, and the record itself for other systems.

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
use crate::listing::{self, Limit};
use crate::output::written;
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, facts, render};
use crate::terminal::{Terminal, Tone, paint};
use crate::times::Times;

const EXAMPLES: &str = "\
Examples:
  runvoy audit list --user ana@example.com --since 7d
  runvoy audit list --text terraform --since 30d --until 7d
  runvoy audit list --action executions.kill --json
  runvoy audit verify --state                # exit code 1 if it was altered
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
        before_help = "Examples:\n  runvoy audit list\n  runvoy audit list --user ana@example.com --since 7d --all\n  runvoy audit list --text terraform --since 30d --until 7d"
    )]
    List {
        #[command(flatten)]
        which: WhichArgs,
        /// Show at most this many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// Show all
        #[arg(long, conflicts_with = "limit")]
        all: bool,
    },
    /// Verify that the audit trail is intact
    #[command(
        before_help = "Examples:\n  runvoy audit verify\n  runvoy audit verify --state --json\n  runvoy audit verify --data-dir /var/lib/runvoy   # the server may be down"
    )]
    Verify {
        /// Also compare all records with the events
        #[arg(long)]
        state: bool,
    },
    /// Write all audit events as JSON lines, oldest first
    #[command(before_help = "Examples:\n  runvoy audit export > audit.ndjson\n  runvoy audit export --since 1d | jq -r .action")]
    Export {
        #[command(flatten)]
        which: WhichArgs,
    },
}

/// Which events.
#[derive(Debug, Clone, Args)]
struct WhichArgs {
    /// Only actions of this user
    #[arg(short, long, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    user: Option<String>,
    /// Only this action or resource: executions[.kill]
    #[arg(long, value_name = "ACTION", add = ArgValueCompleter::new(complete::audit_actions))]
    action: Option<String>,
    /// Only actions of the last 10m, 1h30m or 2d
    #[arg(long, value_name = "DURATION")]
    since: Option<Seconds>,
    /// Only actions longer ago than this
    #[arg(long, value_name = "DURATION")]
    until: Option<Seconds>,
    /// Search in command, entity, request, address and reason
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
            AuditCommand::List { which, limit, all } => show_all(session, &client, which.query(session), Limit::new(limit, all)).await,
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

async fn show_all(session: &Session, client: &Client, mut query: AuditQuery, limit: Limit) -> Result<u8, Failure> {
    let (events, pager) = listing::collect(limit, async |limit, cursor| {
        (query.limit, query.cursor) = (Some(limit), cursor);
        client.audit(&query).await
    })
    .await?;
    let table = || listed(&events, session.times(), session.terminal);
    session.show(&events, || events.iter().map(|event| event.event_id.clone()).collect(), table)?;
    if events.is_empty() {
        session.note(Tone::Dim, "No audit events.");
    }
    pager.note_rest(session);
    Ok(0)
}

/// The events in columns: on a terminal with short ids, ages and no address. `trace` takes the short
/// ids of requests, too.
fn listed(events: &[AuditEvent], times: Times, terminal: Terminal) -> String {
    if events.is_empty() {
        return String::new();
    }
    let is_compact = times.is_compact;
    let entity_id = |event: &'_ AuditEvent| about(event).rsplit(':').next().unwrap_or_default().to_owned();
    let of_entities: Vec<String> = events.iter().map(entity_id).collect();
    let entities = ShortIds::of(is_compact, of_entities.iter().map(String::as_str));
    let requests = ShortIds::of(is_compact, events.iter().map(|event| event.request_id.as_str()));
    let row = |event: &AuditEvent| {
        let result = Cell::new(&event.result, if event.result == "ok" { Tone::Good } else { Tone::Bad });
        let command = event.command.as_deref().map_or_else(|| "-".to_owned(), first_line);
        let address = (!is_compact).then(|| event.address.as_deref().unwrap_or("-").into());
        let entity = entities.shorten(about(event));
        let before = [Cell::whole(times.show(event.at)), (&event.user).into(), Cell::whole(&event.action), entity.into(), result];
        let request = Cell::whole(requests.show(&event.request_id));
        before.into_iter().chain(address).chain([request, command.into()]).collect::<Vec<Cell>>()
    };
    let rows: Vec<Vec<Cell>> = events.iter().map(row).collect();
    let head = ["TIME", "USER", "ACTION", "ENTITY", "RESULT", "FROM", "REQUEST", "COMMAND"];
    let head: Vec<&str> = head.into_iter().filter(|name| !is_compact || *name != "FROM").collect();
    render(&head, &rows, terminal.width, terminal.stdout_colour)
}

/// What an event is about: a refusal is kept with its user, and says what was asked for.
fn about(event: &AuditEvent) -> &str {
    event.target.as_deref().filter(|_| event.result != "ok").unwrap_or(&event.entity)
}

/// The beginning of a command; `--json` has all of it.
fn first_line(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(SHOWN_COMMAND).collect();
    if shown.len() < command.len() { shown + "…" } else { shown }
}

fn verify(session: &Session, answer: &AuditVerification, with_state: bool) -> Result<u8, Failure> {
    session.print(&judged(session.format(), session.jq.as_deref(), answer, session.terminal.stdout_colour)?)?;
    let is_older = with_state && answer.compared.is_none();
    if is_older {
        session.note(Tone::Bad, "The server did not compare any records: its version is older than this command.");
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
    let word = if found.ok { "intact" } else { "broken" };
    written(format, jq, found, || vec![word.to_owned()], || verdict(found, colour))
}

fn verdict(answer: &AuditVerification, colour: bool) -> String {
    let (bad, mismatch) = (answer.first_bad.as_ref(), answer.first_mismatch.as_ref());
    let heading = match (bad, mismatch, answer.compared) {
        (None, None, None) => paint("The audit trail is intact.", Tone::Good, colour),
        (None, None, Some(_)) if answer.unverifiable > 0 => {
            paint("The audit trail is intact, and all records that can be compared agree with it.", Tone::Good, colour)
        }
        (None, None, Some(_)) => paint("The audit trail is intact, and all records agree with it.", Tone::Good, colour),
        (None, Some(_), _) => paint("The audit trail is intact, but the records do not agree with it.", Tone::Bad, colour),
        (Some(_), ..) => paint("The audit trail is NOT intact.", Tone::Bad, colour),
    };
    let described = facts(
        [
            ("events checked", Some(answer.checked.to_string())),
            ("last checkpoint", Some(answer.checkpoint_at.map_or_else(|| "none yet".to_owned(), |at| at.to_string()))),
            (
                "not exported",
                answer.unexported_from.map(|number| format!("since checkpoint {number}: the export fails, or its file was truncated")),
            ),
            (
                "unverifiable",
                (answer.unverifiable > 0).then(|| {
                    format!("{} executions and jobs: recorded before events had digests of commands and owners", answer.unverifiable)
                }),
            ),
            ("first bad event", bad.map(|bad| format!("{} number {}", bad.entity, bad.number))),
            ("event id", bad.and_then(|bad| bad.event_id.clone())),
            ("problem", bad.map(|bad| format!("{}: {}", bad.problem, bad.message))),
            ("records compared", answer.compared.map(|compared| compared.to_string())),
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
    use runvoy_wire::Rfc3339;

    use super::*;

    #[test]
    fn a_terminal_gets_what_fits_and_a_pipe_everything() {
        let text = r#"[{"event_id":"e","at":"2026-01-03T14:22:19Z","user":"ana@example.com","action":"executions.run","entity":"TASK:0192ab34c56d7e8f9a0b1c2d3e4f5a6b","number":1,"command":"make deploy\nmake test",
            "result":"ok","address":"192.0.2.17","request_id":"0192ab34c56d7e8f9a0b1c2d3e4f5a6b"}]"#;
        let events: Vec<AuditEvent> = serde_json::from_str(text).expect("the contract's fields");
        let now: Rfc3339 = "2026-01-03T14:25:19Z".parse().expect("a time");
        let listed =
            |width: Option<usize>| listed(&events, Times { now, is_compact: width.is_some() }, Terminal { width, ..Terminal::none() });
        let pipe = listed(None);
        for text in ["FROM", "192.0.2.17", "TASK:0192ab34c56d7e8f9a0b1c2d3e4f5a6b", "2026-01-03T14:22:19"] {
            assert!(pipe.contains(text), "{pipe}");
        }
        insta::assert_snapshot!(listed(Some(80)), @r"
        TIME    USER          ACTION          ENTITY       RESULT  REQUEST  COMMAND
        3m ago  ana@example…  executions.run  TASK:4f5a6b  ok      4f5a6b   make deploy…
        ");
    }

    #[test]
    fn the_first_bad_event_is_named() {
        let text = r#"{"ok":false,"checked":120,"first_bad":{"entity":"USER:ana@example.com","number":3,"event_id":"0192ab","problem":"altered",
            "message":"its seal does not fit"},"checkpoint_at":"2026-01-03T14:22:19Z"}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        The audit trail is NOT intact.
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
        The audit trail is intact, and all records that can be compared agree with it.
        events checked    120
        last checkpoint   none yet
        unverifiable      4 executions and jobs: recorded before events had digests of commands and owners
        records compared  31
        ");
    }

    #[test]
    fn the_first_mismatch_is_named_and_a_whole_trail_is_told_from_it() {
        let text = r#"{"ok":false,"checked":120,"compared":31,"first_mismatch":{"entity":"TASK:0192ab","field":"status","message":"is SUCCEEDED, but the events say FAILED"}}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        The audit trail is intact, but the records do not agree with it.
        events checked    120
        last checkpoint   none yet
        records compared  31
        first mismatch    TASK:0192ab: status is SUCCEEDED, but the events say FAILED
        ");
        let answer = AuditVerification { ok: true, first_mismatch: None, ..answer };
        let told = verdict(&answer, false);
        assert!(told.starts_with("The audit trail is intact, and all records agree with it."), "{told}");
    }

    #[test]
    fn checkpoints_that_are_not_exported_are_told_and_are_no_tampering() {
        let text = r#"{"ok":true,"checked":120,"checkpoint_at":"2026-01-03T14:22:19Z","unexported_from":7}"#;
        let answer: AuditVerification = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(verdict(&answer, false), @r"
        The audit trail is intact.
        events checked   120
        last checkpoint  2026-01-03T14:22:19.000Z
        not exported     since checkpoint 7: the export fails, or its file was truncated
        ");
    }
}
