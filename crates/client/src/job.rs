//! Calls about jobs: submit, read, list, extend, resume, cancel.

use std::time::Duration;

use http::Method;
use runvoy_wire::{
    AddTasksRequest, AddTasksResponse, CreateJobRequest, CreateJobResponse, Event, Job, JobResponse, JobStatus, ResumeJobRequest,
};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::execution::Page;
use crate::query::Target;

/// Writing twenty thousand tasks takes longer than an ordinary call.
const SUBMIT_LIMIT: Duration = Duration::from_secs(180);

/// Which jobs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobsQuery {
    /// How many at most; `None` leaves it to the server.
    pub limit: Option<u32>,
    /// Only these statuses; empty: all.
    pub status: Vec<JobStatus>,
    /// Only this user's.
    pub user: Option<String>,
    /// Only those submitted at or after this RFC 3339 time.
    pub since: Option<String>,
    /// Go on where an earlier page ended.
    pub cursor: Option<String>,
}

fn job(id: &str, rest: &[&str]) -> Target {
    Target::new(&[&["jobs", id], rest].concat())
}

impl Client {
    /// Submits a job. Its `request_id`, or else a fresh key, makes repeats the same submit.
    pub async fn submit_job(&self, request: &CreateJobRequest) -> Result<CreateJobResponse, ClientError> {
        let key = request.request_id.clone().unwrap_or_else(fresh_id);
        self.fetch(&Call::new(Method::POST, Target::new(&["jobs"])).json(request).keyed(key).limit(SUBMIT_LIMIT)).await
    }

    /// One part of the list of jobs, without their tasks.
    pub async fn jobs(&self, query: &JobsQuery) -> Result<Page<Job>, ClientError> {
        let status = query.status.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",");
        let target = Target::new(&["jobs"])
            .with_some("limit", query.limit)
            .with_some("status", (!status.is_empty()).then_some(status))
            .with_some("user", query.user.as_ref())
            .with_some("since", query.since.as_ref())
            .with_some("cursor", query.cursor.as_ref());
        self.page(&Call::get(target)).await
    }

    /// A job with all its tasks. `id` may be a unique prefix or suffix.
    pub async fn job(&self, id: &str) -> Result<Job, ClientError> {
        self.fetch(&Call::get(job(id, &[]))).await
    }

    /// A job without its tasks: a small answer, however large it is.
    pub async fn job_counts(&self, id: &str) -> Result<Job, ClientError> {
        self.fetch(&Call::get(job(id, &[]).with("tasks", 0))).await
    }

    /// Adds tasks to an open job. A repeat after a lost answer is the same call.
    pub async fn add_tasks(&self, id: &str, request: &AddTasksRequest) -> Result<AddTasksResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, job(id, &["tasks"])).json(request).keyed(fresh_id()).limit(SUBMIT_LIMIT)).await
    }

    /// Runs what failed, and what waited for it, again.
    pub async fn resume_job(&self, id: &str, request: &ResumeJobRequest) -> Result<JobResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, job(id, &["resume"])).json(request).keyed(fresh_id())).await
    }

    /// Ends a job: what runs is killed, and nothing more begins.
    pub async fn cancel_job(&self, id: &str) -> Result<JobResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, job(id, &["cancel"]))).await
    }

    /// The events of a task, of all its executions, oldest first.
    pub async fn task_events(&self, id: &str, task_id: &str) -> Result<Vec<Event>, ClientError> {
        Ok(self.fetch::<Option<Vec<Event>>>(&Call::get(job(id, &["tasks", task_id, "events"]))).await?.unwrap_or_default())
    }
}
