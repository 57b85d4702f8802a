//! `job list`: jobs, newest first.

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_client::{Client, JobsQuery};
use runvoy_wire::{Job, JobStatus, Rfc3339};

use crate::complete;
use crate::duration::{Human, Seconds};
use crate::failure::Failure;
use crate::progress;
use crate::session::Session;
use crate::table::{Cell, list};
use crate::terminal::Tone;

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy job list
  runvoy job list --status running,failed --since 1d
  runvoy job list -o name --status failed --limit 0   # the ids of all that failed";

/// The largest page that is asked for at once.
const PAGE: u32 = 500;

/// Arguments of `job list`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArgs {
    /// Only these statuses, separated by commas
    #[arg(short, long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<JobStatus>,
    /// Only this user's
    #[arg(short, long, value_name = "EMAIL", add = ArgValueCompleter::new(complete::users))]
    user: Option<String>,
    /// Only those submitted in this time before now
    #[arg(long, value_name = "DURATION")]
    since: Option<Seconds>,
    /// How many at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

impl ListArgs {
    pub(super) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let since = self.since.map(|since| session.ago(since));
        let query = JobsQuery { status: self.status, user: self.user, since, ..JobsQuery::default() };
        let (jobs, now) = (collect(&client, query, self.limit).await?, session.now());
        let table = || {
            let rows: Vec<Vec<Cell>> = jobs.iter().map(|job| row(job, now)).collect();
            list(
                &["ID", "STATUS", "AGE", "ELAPSED", "USER", "TASKS", "DONE", "RUNNING", "WAITING", "FAILED", "NAME"],
                &rows,
                session.terminal,
            )
        };
        session.show(&jobs, || jobs.iter().map(|job| job.job_id.clone()).collect(), table)?;
        if jobs.is_empty() {
            session.note(Tone::Dim, "no jobs");
        }
        Ok(0)
    }
}

async fn collect(client: &Client, mut query: JobsQuery, limit: u32) -> Result<Vec<Job>, Failure> {
    let mut jobs: Vec<Job> = Vec::new();
    loop {
        let missing = match limit {
            0 => PAGE,
            limit => (limit as usize).saturating_sub(jobs.len()).try_into().unwrap_or(PAGE).min(PAGE),
        };
        query.limit = Some(missing);
        let page = client.jobs(&query).await?;
        jobs.extend(page.items);
        // A page may be empty and not the last; but a server that does not move on would be asked for ever.
        let moves_on = page.next_cursor.is_some() && page.next_cursor != query.cursor;
        query.cursor = page.next_cursor;
        if !moves_on || limit > 0 && jobs.len() >= limit as usize {
            return Ok(jobs);
        }
    }
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
