//! `status`: the status of an execution and its reason.

use std::collections::BTreeMap;

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_wire::{Execution, Rfc3339, Status};

use crate::complete;
use crate::duration::Human;
use crate::failure::Failure;
use crate::reason;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::table::{Cell, render};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy status 4f2a9c
  runvoy status --json 4f2a9c | jq -r .status";

/// Arguments of `status`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct StatusArgs {
    /// Execution id; the last six digits are enough
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
    id: String,
}

impl StatusArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let id = session.resolve(&client, &self.id).await?;
        let execution = client.execution(&id).await?;
        session.show(&execution, || vec![execution.execution_id.clone()], || describe(&execution, session.terminal.stdout_colour))?;
        Ok(0)
    }
}

/// What a status feels like.
pub(crate) fn tone(status: Status) -> Tone {
    match status {
        Status::Succeeded => Tone::Good,
        Status::Failed => Tone::Bad,
        Status::Stopped | Status::Terminating => Tone::Warning,
        Status::Pending => Tone::Dim,
        Status::Starting | Status::Running => Tone::Busy,
    }
}

/// The command as a person would type it.
pub(crate) fn command_line(execution: &Execution) -> String {
    quoted(&execution.command, execution.args.as_deref())
}

/// A shell command as it is; a program with its arguments, quoted where need be.
pub(crate) fn quoted(command: &str, args: Option<&[String]>) -> String {
    match args {
        None => command.to_owned(),
        Some(args) => std::iter::once(command).chain(args.iter().map(String::as_str)).map(quote).collect::<Vec<_>>().join(" "),
    }
}

fn quote(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./=:@%+,".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn describe(execution: &Execution, colour: bool) -> String {
    let time = |at: Option<Rfc3339>| at.map(|at| at.to_string());
    let started = (execution.attempt > 0).then_some(execution.started_at);
    let duration = execution.completed_at.map(|ended| Human::from_ms(ended.ms_since(execution.started_at)).to_string());
    let pairs =
        |labels: &BTreeMap<String, String>| labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
    let facts = [
        ("execution", Some(execution.execution_id.clone())),
        ("status", Some(execution.status.to_string())),
        ("waiting for", execution.waiting_for.as_ref().map(|reason| reason.message.clone())),
        ("reason", execution.end_reason.as_ref().map(reason::told)),
        ("exit code", execution.exit_code.map(|code| code.to_string())),
        ("command", Some(command_line(execution))),
        ("user", Some(execution.created_by.clone())),
        ("submitted", time(execution.submitted_at)),
        ("started", time(started)),
        ("finished", time(execution.completed_at)),
        ("duration", duration.filter(|_| started.is_some())),
        ("attempt", (execution.attempt > 1).then(|| execution.attempt.to_string())),
        ("lock", execution.lock_name.clone()),
        ("queue", Some(execution.queue.clone())),
        ("image", Some(execution.image_id.clone())),
        ("labels", Some(pairs(&execution.labels))),
        ("worker labels", Some(pairs(&execution.worker_labels))),
        ("terminal", execution.terminal.then(|| "yes; its output is one stream".to_owned())),
        ("cost", execution.cost_usd.filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.4}"))),
        ("host", execution.host.clone()),
        ("worker", execution.worker_unreachable.then(|| "unreachable; the command may still run".to_owned())),
    ];
    let rows: Vec<Vec<Cell>> = facts
        .into_iter()
        .filter_map(|(name, fact)| Some((name, fact.filter(|fact| !fact.is_empty())?)))
        .map(|(name, fact)| {
            vec![
                Cell::new(name, Tone::Dim),
                Cell::new(one_line(&fact), if name == "status" { tone(execution.status) } else { Tone::Plain }),
            ]
        })
        .collect();
    render(&[], &rows, None, colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_what_matters_and_a_program_everything() {
        let text = r#"{"execution_id":"0192ab","created_by":"ana@example.com","owned_by":[],"command":"ls","args":["-l","my file"],"image_id":"",
            "started_at":"2026-01-03T14:22:19Z","submitted_at":"2026-01-03T14:22:18Z","completed_at":"2026-01-03T14:22:24.500Z","status":"FAILED",
            "exit_code":124,"end_reason":{"code":"timeout","message":"ran longer than 5 s"},"queue":"default","attempt":1,"terminal":true}"#;
        let execution: Execution = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(describe(&execution, false), @r"
        execution  0192ab
        status     FAILED
        reason     timeout: ran longer than 5 s
        exit code  124
        command    ls -l 'my file'
        user       ana@example.com
        submitted  2026-01-03T14:22:18.000Z
        started    2026-01-03T14:22:19.000Z
        finished   2026-01-03T14:22:24.500Z
        duration   5.5s
        queue      default
        terminal   yes; its output is one stream
        ");
    }
}
