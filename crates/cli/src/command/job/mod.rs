//! `job`: graphs of tasks. Submitting, watching, changing, resuming and cancelling one.

mod follow;
mod graph;
mod list;
mod logs;
mod resume;
mod status;
mod submit;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::Client;
use runvoy_wire::counted;

use crate::ambiguity;
use crate::complete;
use crate::document::Document;
use crate::failure::Failure;
use crate::job_file;
use crate::session::Session;
use crate::short_id::{self, MIN_DIGITS};

const EXAMPLES: &str = "\
Examples:
  runvoy job submit nightly.yaml --follow   # exit code 0 if it completes
  runvoy job graph 4f2a9c --follow          # the tasks as a tree, live
  runvoy job logs 4f2a9c build              # the log of one task
  runvoy job resume 4f2a9c                  # retry what failed or was blocked

The format of a job file: runvoy help job-file";

/// `help job-file`.
pub(crate) const JOB_FILE: &str = "\
Job file

  A job is a graph of tasks. Each task runs as an execution once the tasks in
  its dependsOn have succeeded. The file is YAML or JSON:

  name: nightly
  concurrency: 8               # tasks that run at the same time
  defaults:                    # for tasks that do not set these
    image: terraform:1.9
    timeout: 10m
    retries: 2                 # retries after a transient failure [default: 2]
  tasks:
    - taskId: fetch
      command: ./fetch.sh
      input: {store: 12}       # JSON in the file $RUNVOY_INPUT
    - taskId: report
      dependsOn: [fetch]       # reads what fetch wrote to $RUNVOY_OUTPUT
      command: ./report.sh

  Tasks also take args, env, secrets, git_repo, git_ref, git_path, git_token,
  lock, lock_wait, queue, priority, labels, worker_labels and terminal.

  Check and run it: runvoy job submit nightly.yaml --follow
";

/// Arguments of `job`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct JobArgs {
    #[command(subcommand)]
    command: JobCommand,
}

/// What to do with jobs.
#[derive(Debug, Clone, Subcommand)]
enum JobCommand {
    /// Submit a job file
    #[command(before_help = submit::EXAMPLES)]
    Submit(submit::SubmitArgs),
    /// Show the status of a job and its tasks
    #[command(
        before_help = "Examples:\n  runvoy job status 4f2a9c\n  runvoy job status 4f2a9c --jq '.tasks[] | select(.status == \"FAILED\")'"
    )]
    Status(JobId),
    /// List jobs, newest first
    #[command(visible_alias = "ls", before_help = list::EXAMPLES)]
    List(list::ListArgs),
    /// Show the tasks of a job as a tree
    #[command(before_help = graph::EXAMPLES)]
    Graph(graph::GraphArgs),
    /// Add tasks to a job that has not finished
    #[command(before_help = "Examples:\n  runvoy job add-tasks 4f2a9c more.yaml\n  runvoy job add-tasks 4f2a9c - < more.json")]
    AddTasks {
        #[command(flatten)]
        job: JobId,
        /// File with tasks; - reads stdin
        file: PathBuf,
    },
    /// Retry the failed and blocked tasks of a job, some of them changed
    #[command(before_help = resume::EXAMPLES)]
    Resume(resume::ResumeArgs),
    /// Cancel a job: kill running tasks, start no more
    #[command(before_help = "Examples:\n  runvoy job cancel 4f2a9c --yes")]
    Cancel(JobId),
    /// Show or follow the logs of one task or of all
    #[command(before_help = logs::EXAMPLES)]
    Logs(logs::LogsArgs),
}

/// The job that is meant.
#[derive(Debug, Clone, Args)]
struct JobId {
    /// Job id; the last six digits are enough
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::jobs))]
    id: String,
}

impl JobId {
    /// Its whole id.
    async fn resolve(&self, client: &Client) -> Result<String, Failure> {
        resolve(client, &self.id).await
    }
}

/// The whole id of a job that was named by it, or by a unique prefix or suffix.
pub(crate) async fn resolve(client: &Client, id: &str) -> Result<String, Failure> {
    let plain = id.replace('-', "").to_ascii_lowercase();
    if short_id::is_whole(&plain) {
        return Ok(plain);
    }
    if plain.len() < MIN_DIGITS {
        return Err(short_id::too_short(id));
    }
    match client.job_counts(&plain).await {
        Ok(job) => Ok(job.job_id),
        Err(error) => Err(ambiguity::explain_job(client, error).await),
    }
}

impl JobArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            JobCommand::Status(_) | JobCommand::List(_) | JobCommand::Graph(_) | JobCommand::Logs(_) => false,
            JobCommand::Submit(_) | JobCommand::AddTasks { .. } | JobCommand::Resume(_) | JobCommand::Cancel(_) => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            JobCommand::Submit(args) => args.execute(session).await,
            JobCommand::Status(job) => status::show(session, &job).await,
            JobCommand::List(args) => args.execute(session).await,
            JobCommand::Graph(args) => args.execute(session).await,
            JobCommand::AddTasks { job, file } => add_tasks(session, &job, &file).await,
            JobCommand::Resume(args) => args.execute(session).await,
            JobCommand::Cancel(job) => cancel(session, &job).await,
            JobCommand::Logs(args) => args.execute(session).await,
        }
    }
}

async fn add_tasks(session: &Session, job: &JobId, file: &std::path::Path) -> Result<u8, Failure> {
    let document = Document::open(file)?;
    let request = job_file::tasks(&document)?;
    let client = session.connect().await?;
    let id = job.resolve(&client).await?;
    let answer = client.add_tasks(&id, &request).await.map_err(|error| Failure::from(error).in_file(&document.name))?;
    let (added, total) = (counted(answer.added_tasks, "task"), counted(answer.total_tasks, "task"));
    let message = format!("Added {added} to job {}, which now has {total}.", answer.job_id);
    session.report(&answer, &answer.job_id, &message)
}

async fn cancel(session: &Session, job: &JobId) -> Result<u8, Failure> {
    session.confirm_at_terminal(&format!("Cancel job {} and kill its running tasks", job.id))?;
    let client = session.connect().await?;
    let id = job.resolve(&client).await?;
    let answer = client.cancel_job(&id).await?;
    session.report(&answer, &answer.job_id, &format!("{}: {}", answer.job_id, answer.message))
}
