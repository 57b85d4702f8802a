//! `job`: DAGs of tasks. Submitting one, seeing how it gets on, and moving it.

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

use crate::complete;
use crate::document::Document;
use crate::failure::Failure;
use crate::job_file;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  runvoy job submit nightly.yaml --follow          # returns 0 only if the whole job completed
  runvoy job graph 0192ab34 --follow               # the tasks as a tree, live
  runvoy job logs 0192ab34 build                   # the log of one task
  runvoy job resume 0192ab34                       # failed and blocked tasks again

A job file is YAML or JSON:
  name: nightly
  concurrency: 8               # so many tasks at once
  defaults:                    # for every task that does not say otherwise
    image: terraform:1.9
    timeout: 10m
    retries: 2                 # further attempts after a passing failure; the default
  tasks:
    - taskId: fetch
      command: ./fetch.sh
      input: {store: 12}       # in the file that $RUNVOY_INPUT names
    - taskId: report
      dependsOn: [fetch]       # finds what fetch wrote to $RUNVOY_OUTPUT
      command: ./report.sh
Tasks take args, env, secrets, git_repo, git_ref, git_path, git_token, lock, lock_wait, queue,
priority, labels, worker_labels and terminal as well.";

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
    /// Submit a job
    #[command(before_help = submit::EXAMPLES)]
    Submit(submit::SubmitArgs),
    /// Show where a job and its tasks are
    #[command(
        before_help = "Examples:\n  runvoy job status 0192ab34\n  runvoy job status 0192ab34 --jq '.tasks[] | select(.status == \"FAILED\")'"
    )]
    Status(JobId),
    /// List jobs, newest first
    #[command(visible_alias = "ls", before_help = list::EXAMPLES)]
    List(list::ListArgs),
    /// Draw the tasks of a job as a tree
    #[command(before_help = graph::EXAMPLES)]
    Graph(graph::GraphArgs),
    /// Add tasks to a job that has not ended
    #[command(before_help = "Examples:\n  runvoy job add-tasks 0192ab34 more.yaml\n  runvoy job add-tasks 0192ab34 - < more.json")]
    AddTasks {
        #[command(flatten)]
        job: JobId,
        /// File with tasks; - is stdin
        file: PathBuf,
    },
    /// Run what failed, and what waited for it, again
    #[command(before_help = resume::EXAMPLES)]
    Resume(resume::ResumeArgs),
    /// End a job: what runs is killed, and nothing more begins
    #[command(before_help = "Examples:\n  runvoy job cancel 0192ab34 --yes")]
    Cancel(JobId),
    /// Show or follow the log of a task, or of all tasks
    #[command(before_help = logs::EXAMPLES)]
    Logs(logs::LogsArgs),
}

/// The job that is meant.
#[derive(Debug, Clone, Args)]
struct JobId {
    /// Job: its id, or six or more digits of its beginning or end
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
    if plain.len() == 32 && plain.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(plain);
    }
    if plain.len() < 6 {
        return Err(Failure::usage(format!("`{id}` is too short for an id")).why("at least six digits of its beginning or end are needed"));
    }
    Ok(client.job_counts(&plain).await?.job_id)
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
    let request = job_file::tasks(&Document::open(file)?)?;
    let client = session.connect().await?;
    let id = job.resolve(&client).await?;
    let answer = client.add_tasks(&id, &request).await?;
    let message = format!("{}: added {} tasks; it has {} now", answer.job_id, answer.added_tasks, answer.total_tasks);
    session.report(&answer, &answer.job_id, &message)
}

async fn cancel(session: &Session, job: &JobId) -> Result<u8, Failure> {
    session.confirm_at_terminal(&format!("cancel job {} and kill what runs of it", job.id))?;
    let client = session.connect().await?;
    let id = job.resolve(&client).await?;
    let answer = client.cancel_job(&id).await?;
    session.report(&answer, &answer.job_id, &format!("{}: {}", answer.job_id, answer.message))
}
