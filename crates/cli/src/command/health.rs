//! `health reconcile`: what does not fit on the server, and what was repaired.

use clap::{Args, Subcommand};
use runvoy_wire::{ReconcileIssue, ReconcileReport};

use crate::failure::{Failure, GENERAL};
use crate::session::Session;
use crate::table::{Cell, facts, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy health reconcile
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
    /// Look for what does not fit, and repair what can be repaired
    #[command(before_help = EXAMPLES)]
    Reconcile,
}

impl HealthArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let HealthCommand::Reconcile = self.command;
        let answer = session.connect().await?.reconcile().await?;
        let report = &answer.report;
        let names = || report.issues.iter().map(|issue| issue.resource_id.clone()).collect();
        let table = || {
            let issues = list(
                &["SEVERITY", "KIND", "WHAT", "ACTION", "FOUND"],
                &report.issues.iter().map(row).collect::<Vec<_>>(),
                session.terminal,
            );
            summary(&answer.status, report, session.terminal.stdout_colour) + &issues
        };
        session.show(&answer, names, table)?;
        Ok(if report.error_count == 0 { 0 } else { GENERAL })
    }
}

fn summary(status: &str, report: &ReconcileReport, colour: bool) -> String {
    let users = &report.authorizer_status;
    facts(
        [
            ("status", Some(status.to_owned())),
            (
                "executions and images",
                Some(format!("{} of {} as they should be", report.compute_status.verified_count, report.compute_status.total_resources)),
            ),
            (
                "secrets",
                Some(format!("{} of {} as they should be", report.secrets_status.verified_count, report.secrets_status.total_secrets)),
            ),
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
