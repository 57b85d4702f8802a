//! `job list`: jobs, newest first.

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_client::JobsQuery;
use runvoy_wire::{Job, JobStatus, Rfc3339};

use crate::complete;
use crate::duration::{Age, Human, Seconds};
use crate::failure::Failure;
use crate::listing::{self, Limit};
use crate::progress;
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, list};
use crate::terminal::{Terminal, Tone};

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy job list
  runvoy job list --status running,failed --since 1d
  runvoy job list -o name --status failed --all   # the ids of all that failed";

/// Arguments of `job list`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArgs {
    /// Only these statuses, comma-separated
    #[arg(short, long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<JobStatus>,
    /// Only jobs of this user
    #[arg(short, long, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    user: Option<String>,
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
    pub(super) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let since = self.since.map(|since| session.ago(since));
        let mut query = JobsQuery { status: self.status, user: self.user, since, ..JobsQuery::default() };
        let (jobs, pager) = listing::collect(Limit::new(self.limit, self.all), async |limit, cursor| {
            (query.limit, query.cursor) = (Some(limit), cursor);
            client.jobs(&query).await
        })
        .await?;
        let table = || table(&jobs, session.now(), session.terminal);
        session.show(&jobs, || jobs.iter().map(|job| job.job_id.clone()).collect(), table)?;
        if jobs.is_empty() {
            session.note(Tone::Dim, "No jobs.");
        }
        pager.note_rest(session);
        Ok(0)
    }
}

fn table(jobs: &[Job], now: Rfc3339, terminal: Terminal) -> String {
    let is_compact = terminal.width.is_some();
    let ids = ShortIds::of(is_compact, jobs.iter().map(|job| job.job_id.as_str()));
    if is_compact {
        let rows: Vec<Vec<Cell>> = jobs.iter().map(|job| short_row(job, now, ids)).collect();
        return list(&["ID", "STATUS", "AGE", "ELAPSED", "USER", "DONE", "FAILED", "NAME"], &rows, terminal);
    }
    let rows: Vec<Vec<Cell>> = jobs.iter().map(|job| row(job, now)).collect();
    let head = ["ID", "STATUS", "AGE", "ELAPSED", "USER", "TASKS", "DONE", "RUNNING", "WAITING", "FAILED", "NAME"];
    list(&head, &rows, terminal)
}

/// What fits a terminal of 80 columns.
fn short_row(job: &Job, now: Rfc3339, ids: ShortIds) -> Vec<Cell> {
    let (_, tone) = progress::mark(job.status);
    let counts = job.task_counts;
    vec![
        Cell::whole(ids.show(&job.job_id)),
        Cell::new(job.status.as_str(), tone),
        Age::from_ms(now.ms_since(job.created_at)).to_string().into(),
        progress::elapsed(job, now).to_string().into(),
        (&job.created_by).into(),
        format!("{}/{}", counts.completed, job.total_tasks).into(),
        counts.failed.to_string().into(),
        job.name.as_deref().unwrap_or("-").into(),
    ]
}

fn row(job: &Job, now: Rfc3339) -> Vec<Cell> {
    let (_, tone) = progress::mark(job.status);
    let counts = job.task_counts;
    let mut row = vec![
        (&job.job_id).into(),
        Cell::new(job.status.as_str(), tone),
        Human::from_ms(now.ms_since(job.created_at)).to_string().into(),
        progress::elapsed(job, now).to_string().into(),
        (&job.created_by).into(),
    ];
    row.extend([job.total_tasks, counts.completed, counts.running, counts.waiting, counts.failed].map(|count| count.to_string().into()));
    row.push(job.name.as_deref().unwrap_or("-").into());
    row
}
