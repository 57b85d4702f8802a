//! `list`: executions, newest first.

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_client::ListQuery;
use runvoy_wire::{Execution, Rfc3339, Status};

use super::status::{command_line, tone};
use crate::complete;
use crate::duration::{Age, Human, Seconds};
use crate::failure::Failure;
use crate::listing::{self, Limit};
use crate::sanitize::one_line;
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, cut, render};
use crate::terminal::{Tone, paint};

const EXAMPLES: &str = "\
Examples:
  runvoy list --status running,pending
  runvoy list --user ana@example.com --since 1d --limit 100
  runvoy list --text 'terraform apply' --status failed
  runvoy list -o wide                        # whole ids, all columns
  runvoy list -o name --status failed --all  # the ids of all that failed";

/// Arguments of `list`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct ListArgs {
    /// Only these statuses, comma-separated
    #[arg(short, long, value_name = "STATUS", value_delimiter = ',', ignore_case = true)]
    status: Vec<Status>,
    /// Only executions of this user
    #[arg(short, long, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    user: Option<String>,
    /// Only executions with this lock
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::locks))]
    lock: Option<String>,
    /// Search in command, labels, id and end reason
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Only executions of this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Only those submitted in the last 10m, 1h30m or 2d
    #[arg(long, value_name = "DURATION")]
    since: Option<Seconds>,
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Show all
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl ListArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let now = session.now();
        let mut query = self.query(now);
        let (executions, pager) = listing::collect(Limit::new(self.limit, self.all), async |limit, cursor| {
            (query.limit, query.cursor) = (Some(limit), cursor);
            client.list(&query).await
        })
        .await?;
        let names = || executions.iter().map(|execution| execution.execution_id.clone()).collect();
        let terminal = session.terminal;
        session.show(&executions, names, || table(&executions, now, terminal.width, terminal.stdout_colour))?;
        if executions.is_empty() {
            session.note(Tone::Dim, "No executions.");
        }
        pager.note_rest(session);
        Ok(0)
    }

    fn query(&self, now: Rfc3339) -> ListQuery {
        let since_ms = self.since.map(|since| i64::try_from(since.0.saturating_mul(1_000)).unwrap_or(i64::MAX));
        ListQuery {
            limit: None,
            status: self.status.clone(),
            user: self.user.clone(),
            lock: self.lock.clone(),
            text: self.text.clone().filter(|text| !text.is_empty()),
            queue: self.queue.clone(),
            since: since_ms.map(|ms| Rfc3339(now.0.saturating_sub(ms).max(0)).to_string()),
            until: None,
            cursor: None,
        }
    }
}

/// The table: on a terminal with short ids, and below each queued execution what it waits for; in a
/// pipe with everything in columns.
fn table(executions: &[Execution], now: Rfc3339, width: Option<usize>, colour: bool) -> String {
    if executions.is_empty() {
        return String::new();
    }
    let ids = ShortIds::of(width.is_some(), executions.iter().map(|execution| execution.execution_id.as_str()));
    let mut rows: Vec<Vec<Cell>> = executions.iter().map(|execution| row(execution, now, ids, width.is_some())).collect();
    let mut head = vec!["ID", "STATUS", "AGE", "DURATION", "USER", "EXIT", "COMMAND"];
    let Some(width) = width else {
        // The column is only there where something waits.
        if executions.iter().any(|execution| execution.waiting_for.is_some()) {
            head.insert(head.len() - 1, "WAITING FOR");
            for (row, execution) in rows.iter_mut().zip(executions) {
                let reason = execution.waiting_for.as_ref().map_or("-", |waiting| waiting.message.as_str());
                row.insert(row.len() - 1, reason.into());
            }
        }
        return render(&head, &rows, None, colour);
    };
    let table = render(&head, &rows, Some(width), colour);
    let (mut text, mut lines) = (String::new(), table.split_inclusive('\n'));
    text.extend(lines.next());
    for (line, execution) in lines.zip(executions) {
        text.push_str(line);
        if let Some(waiting) = &execution.waiting_for {
            let reason = format!("  waiting for {}", one_line(&waiting.message));
            text.push_str(&paint(&cut(&reason, width), Tone::Dim, colour));
            text.push('\n');
        }
    }
    text
}

fn row(execution: &Execution, now: Rfc3339, ids: ShortIds, is_compact: bool) -> Vec<Cell> {
    let submitted = now.ms_since(execution.submitted_at.unwrap_or(execution.started_at));
    let until = if execution.status.is_terminal() { execution.completed_at } else { Some(now) };
    let duration = match until {
        Some(until) if execution.attempt > 0 => Human::from_ms(until.ms_since(execution.started_at)).to_string(),
        _ => "-".to_owned(),
    };
    let age = if is_compact { Age::from_ms(submitted).to_string() } else { Human::from_ms(submitted).to_string() };
    vec![
        Cell::whole(ids.show(&execution.execution_id)),
        Cell::new(execution.status.as_str(), tone(execution.status)),
        age.into(),
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
        let mut waiting = execution("PENDING", "", "null", "make deploy ENV=production and a further target");
        waiting.attempt = 0;
        waiting.waiting_for = Some(Reason { code: "lock".into(), message: "lock prod, held by bo".into() });
        let rows = [executions[1].clone(), waiting];
        insta::assert_snapshot!(table(&rows, now, None, false), @r"
        ID                                STATUS   AGE     DURATION  USER  EXIT  WAITING FOR            COMMAND
        0192ab00000070008000000000000001  RUNNING  5m 00s  4m 55s    ana   -     -                      sleep 60
        0192ab00000070008000000000000001  PENDING  5m 00s  -         ana   -     lock prod, held by bo  make deploy ENV=production and a further target
        ");
        let mut rows = rows;
        rows[1].execution_id = "0192ab0000007000800000000034f2a9".to_owned();
        rows[1].created_by = "a.very.long.name@engineering.example.com".to_owned();
        insta::assert_snapshot!(table(&rows, now, Some(80), false), @r"
        ID      STATUS   AGE  DURATION  USER                  EXIT  COMMAND
        000001  RUNNING  5m   4m 55s    ana                   -     sleep 60
        34f2a9  PENDING  5m   -         a.very.long.name@en…  -     make deploy ENV=pro…
          waiting for lock prod, held by bo
        ");
    }
}
