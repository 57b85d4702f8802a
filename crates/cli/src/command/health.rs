//! `health`: the health of running executions, and of the server's records.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_wire::{HealthWord, ReconcileIssue, ReconcileReport, TaskHealth, TaskHealthResponse};

use crate::complete;
use crate::duration::Human;
use crate::failure::{Failure, GENERAL};
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, facts, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy health tasks
  runvoy health reconcile --json | jq .report.issues";

/// Arguments of `health`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct HealthArgs {
    #[command(subcommand)]
    command: HealthCommand,
}

/// What to do about health.
#[derive(Debug, Clone, Subcommand)]
enum HealthCommand {
    /// Find inconsistent records, and repair them
    #[command(before_help = "Examples:\n  runvoy health reconcile\n  runvoy health reconcile --json | jq .report.issues")]
    Reconcile,
    /// Check running executions: unresponsive or overtime
    #[command(before_help = "Examples:\n  runvoy health tasks\n  runvoy health tasks 4f2a9c\n  runvoy health tasks --jq .summary")]
    Tasks {
        /// Only this execution; the last six digits are enough
        #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
        id: Option<String>,
    },
}

impl HealthArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            HealthCommand::Tasks { .. } => false,
            HealthCommand::Reconcile => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            HealthCommand::Reconcile => reconcile(session).await,
            HealthCommand::Tasks { id: None } => tasks(session).await,
            HealthCommand::Tasks { id: Some(id) } => task(session, &id).await,
        }
    }
}

async fn reconcile(session: &Session) -> Result<u8, Failure> {
    let answer = session.connect().await?.reconcile().await?;
    let report = &answer.report;
    let names = || report.issues.iter().map(|issue| issue.resource_id.clone()).collect();
    let table = || {
        let issues = list(
            &["SEVERITY", "KIND", "RESOURCE", "ACTION", "DETAILS"],
            &report.issues.iter().map(row).collect::<Vec<_>>(),
            session.terminal,
        );
        summary(&answer.status, report, session.terminal.stdout_colour) + &issues
    };
    session.show(&answer, names, table)?;
    Ok(if report.error_count == 0 { 0 } else { GENERAL })
}

async fn tasks(session: &Session) -> Result<u8, Failure> {
    let answer = session.connect().await?.task_health().await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = answer.tasks.iter().map(|task| health_row(session, task)).collect();
        told(&answer, session.terminal.stdout_colour) + &list(&HEALTH, &rows, session.terminal)
    };
    session.show(&answer, || answer.tasks.iter().map(|task| task.request_id.clone()).collect(), table)?;
    Ok(if answer.summary.critical + answer.summary.overtime == 0 { 0 } else { GENERAL })
}

async fn task(session: &Session, id: &str) -> Result<u8, Failure> {
    let client = session.connect().await?;
    let id = session.resolve(&client, id).await?;
    let task = client.health_of(&id).await?;
    session.show(&task, || vec![task.request_id.clone()], || list(&HEALTH, &[health_row(session, &task)], session.terminal))?;
    Ok(if matches!(task.health, HealthWord::Critical | HealthWord::Overtime) { GENERAL } else { 0 })
}

const HEALTH: [&str; 6] = ["EXECUTION", "HEALTH", "DURATION", "LAST SEEN", "LAST EVENT", "WORKER"];

fn told(answer: &TaskHealthResponse, colour: bool) -> String {
    let summary = answer.summary;
    let counts = match summary.total_processing {
        0 => "nothing".to_owned(),
        total => format!(
            "{total}: {} healthy · {} warning · {} critical · {} overtime",
            summary.healthy, summary.warning, summary.critical, summary.overtime
        ),
    };
    facts([("running", Some(counts)), ("checked at", answer.checked_at.map(|at| at.to_string()))], colour)
}

fn health_row(session: &Session, task: &TaskHealth) -> Vec<Cell> {
    let ids = ShortIds::of(session.is_compact(), [task.request_id.as_str()]);
    let tone = match task.health {
        HealthWord::Healthy => Tone::Good,
        HealthWord::Warning => Tone::Warning,
        HealthWord::Critical | HealthWord::Overtime => Tone::Bad,
    };
    vec![
        Cell::whole(ids.show(&task.request_id)),
        Cell::new(task.health.as_str(), tone),
        Human::from_ms(task.elapsed).to_string().into(),
        format!("{} ago", Human::from_ms(task.time_since_last_event)).into(),
        (&task.last_event_type).into(),
        ids.show(task.worker_id.as_deref().unwrap_or("-")).into(),
    ]
}

fn summary(status: &str, report: &ReconcileReport, colour: bool) -> String {
    let users = &report.authorizer_status;
    facts(
        [
            ("status", Some(status.to_owned())),
            (
                "executions and images",
                Some(format!("{} of {} consistent", report.compute_status.verified_count, report.compute_status.total_resources)),
            ),
            ("secrets", Some(format!("{} of {} consistent", report.secrets_status.verified_count, report.secrets_status.total_secrets))),
            ("users checked", Some(users.total_users_checked.to_string())),
            ("repaired", Some(report.reconciled_count.to_string())),
            ("not repaired", Some(report.error_count.to_string())),
        ],
        colour,
    )
}

fn row(issue: &ReconcileIssue) -> Vec<Cell> {
    let tone = if issue.severity == "error" { Tone::Bad } else { Tone::Warning };
    vec![
        Cell::new(&issue.severity, tone),
        (&issue.resource_type).into(),
        (&issue.resource_id).into(),
        (&issue.action).into(),
        (&issue.message).into(),
    ]
}
