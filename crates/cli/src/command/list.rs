//! `list`: executions, newest first.

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_client::{Client, ListQuery};
use runvoy_wire::{Execution, Rfc3339, Status};

use super::status::{command_line, tone};
use crate::complete;
use crate::duration::{Human, Seconds};
use crate::failure::Failure;
use crate::session::Session;
use crate::table::{Cell, cut, render};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy list
  runvoy list --status running,pending
  runvoy list --user ana@example.com --since 1d --limit 100
  runvoy list --text 'terraform apply' --status failed
  runvoy list -o name --status failed --limit 0   # the ids of all that failed";

/// A terminal shows so much of what an execution waits for.
const MAX_REASON_CHARS: usize = 40;
/// The largest page that is asked for at once.
const PAGE: u32 = 500;

/// Arguments of `list`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct ListArgs {
    /// Only these statuses, separated by commas
    #[arg(short, long, value_name = "STATUS", value_delimiter = ',', ignore_case = true)]
    status: Vec<Status>,
    /// Only this user's
    #[arg(short, long, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    user: Option<String>,
    /// Only those with this lock
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::locks))]
    lock: Option<String>,
    /// Only those with this text in their command, labels, id or end reason
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Only those of this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Only those submitted in this time before now
    #[arg(long, value_name = "DURATION")]
    since: Option<Seconds>,
    /// How many at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

impl ListArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let now = session.now();
        let executions = self.collect(&client, now).await?;
        let names = || executions.iter().map(|execution| execution.execution_id.clone()).collect();
        let terminal = session.terminal;
        session.show(&executions, names, || table(&executions, now, terminal.width, terminal.stdout_colour))?;
        if executions.is_empty() {
            session.note(Tone::Dim, "no executions");
        }
        Ok(0)
    }

    async fn collect(&self, client: &Client, now: Rfc3339) -> Result<Vec<Execution>, Failure> {
        let since_ms = self.since.map(|since| i64::try_from(since.0.saturating_mul(1_000)).unwrap_or(i64::MAX));
        let mut query = ListQuery {
            limit: None,
            status: self.status.clone(),
            user: self.user.clone(),
            lock: self.lock.clone(),
            text: self.text.clone().filter(|text| !text.is_empty()),
            queue: self.queue.clone(),
            since: since_ms.map(|ms| Rfc3339(now.0.saturating_sub(ms).max(0)).to_string()),
            until: None,
            cursor: None,
        };
        let mut executions: Vec<Execution> = Vec::new();
        loop {
            let missing = match self.limit {
                0 => PAGE,
                limit => (limit as usize).saturating_sub(executions.len()).try_into().unwrap_or(PAGE).min(PAGE),
            };
            query.limit = Some(missing);
            let page = client.list(&query).await?;
            executions.extend(page.items);
            query.cursor = page.next_cursor;
            // A page may be empty and not the last: the server looks through so many at once for a text.
            if query.cursor.is_none() || self.limit > 0 && executions.len() >= self.limit as usize {
                return Ok(executions);
            }
        }
    }
}

fn table(executions: &[Execution], now: Rfc3339, width: Option<usize>, colour: bool) -> String {
    if executions.is_empty() {
        return String::new();
    }
    let mut rows: Vec<Vec<Cell>> = executions.iter().map(|execution| row(execution, now)).collect();
    let mut head = vec!["ID", "STATUS", "AGE", "DURATION", "USER", "EXIT", "COMMAND"];
    // The column is only there where something waits. The command stays the last one, which a narrow terminal cuts.
    if executions.iter().any(|execution| execution.waiting_for.is_some()) {
        head.insert(head.len() - 1, "WAITS FOR");
        for (row, execution) in rows.iter_mut().zip(executions) {
            let reason = execution.waiting_for.as_ref().map_or("-", |waiting| waiting.message.as_str());
            let shown = width.map_or_else(|| reason.to_owned(), |_| cut(reason, MAX_REASON_CHARS));
            row.insert(row.len() - 1, shown.into());
        }
    }
    render(&head, &rows, width, colour)
}

fn row(execution: &Execution, now: Rfc3339) -> Vec<Cell> {
    let submitted = execution.submitted_at.unwrap_or(execution.started_at);
    let until = if execution.status.is_terminal() { execution.completed_at } else { Some(now) };
    let duration = match until {
        Some(until) if execution.attempt > 0 => Human::from_ms(until.ms_since(execution.started_at)).to_string(),
        _ => "-".to_owned(),
    };
    vec![
        (&execution.execution_id).into(),
        Cell::new(execution.status.as_str(), tone(execution.status)),
        Human::from_ms(now.ms_since(submitted)).to_string().into(),
        duration.into(),
        (&execution.created_by).into(),
        execution.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string()).into(),
        command_line(execution).into(),
    ]
}

#[cfg(test)]
mod tests {
    use runvoy_wire::Reason;

    use super::*;

    fn execution(status: &str, ended: &str, exit_code: &str, command: &str) -> Execution {
        let text = format!(
            r#"{{"execution_id":"0192ab00000070008000000000000001","created_by":"ana","owned_by":null,"command":"{command}","started_at":
            "2026-01-03T14:00:05Z","submitted_at":"2026-01-03T14:00:00Z",{ended}"status":"{status}","exit_code":{exit_code},"attempt":1}}"#
        );
        serde_json::from_str(&text).expect("the contract's fields")
    }

    #[test]
    fn a_terminal_cuts_the_command_and_a_pipe_does_not() {
        let executions = [
            execution("FAILED", r#""completed_at":"2026-01-03T14:00:08.3Z","#, "2", "make a-very-long-target-name"),
            execution("RUNNING", "", "null", "sleep 60"),
        ];
        let now = "2026-01-03T14:05:00Z".parse().expect("a time");
        insta::assert_snapshot!(table(&executions, now, None, false), @r"
        ID                                STATUS   AGE     DURATION  USER  EXIT  COMMAND
        0192ab00000070008000000000000001  FAILED   5m 00s  3.3s      ana   2     make a-very-long-target-name
        0192ab00000070008000000000000001  RUNNING  5m 00s  4m 55s    ana   -     sleep 60
        ");
        let mut waiting = execution("PENDING", "", "null", "make deploy");
        waiting.attempt = 0;
        waiting.waiting_for = Some(Reason { code: "lock".into(), message: "lock prod, held by bo".into() });
        insta::assert_snapshot!(table(&[executions[1].clone(), waiting], now, None, false), @r"
        ID                                STATUS   AGE     DURATION  USER  EXIT  WAITS FOR              COMMAND
        0192ab00000070008000000000000001  RUNNING  5m 00s  4m 55s    ana   -     -                      sleep 60
        0192ab00000070008000000000000001  PENDING  5m 00s  -         ana   -     lock prod, held by bo  make deploy
        ");
        assert!(table(&executions, now, Some(90), false).lines().all(|line| line.chars().count() <= 90));
    }
}
