//! Jobs: DAGs of tasks. They change by steps of the same store as executions do; this port reads them.

use async_trait::async_trait;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Job, JobStatus, Node, Payload};
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;

use crate::store::StoreError;

/// About how large a page of tasks gets: what they are given and give may be large.
pub const PAGE_BYTES: usize = 1 << 20;

/// Which jobs to list, newest first: by when they were submitted, as [`ListQuery`](crate::store::ListQuery) says of executions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Only those that this user submitted.
    pub owner: Option<String>,
    /// Only these statuses; empty means all that were opened.
    pub statuses: Vec<JobStatus>,
    /// Go on after this one.
    pub after: Option<JobId>,
    /// At most this many.
    pub limit: usize,
}

impl JobQuery {
    /// Whether a job in this status is asked for.
    pub fn wants(&self, status: JobStatus) -> bool {
        if self.statuses.is_empty() { status != JobStatus::Staged } else { self.statuses.contains(&status) }
    }
}

/// The jobs of the transactional store.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// One job, also while it is staged.
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// Jobs whose id begins or ends with these hex digits, `max` at most.
    async fn find_jobs(&self, digits: &str, max: usize) -> Result<Vec<JobId>, StoreError>;

    /// A page of jobs, newest first.
    async fn jobs(&self, query: JobQuery) -> Result<Vec<Job>, StoreError>;

    /// A page of a job's tasks by place, after this one. Tasks of a batch that was not opened are not among them. It ends with the task that
    /// makes what is in it [`PAGE_BYTES`] large, however many were asked for; after the last task it is empty.
    async fn nodes(&self, job: JobId, after_place: Option<u32>, limit: usize) -> Result<Vec<Node>, StoreError>;

    /// Tasks of a job that are executions, with their places, after this one, `max` at most.
    async fn active(&self, job: JobId, after_place: Option<u32>, max: usize) -> Result<Vec<(u32, ExecutionId)>, StoreError>;

    /// One task of a job, also while it is staged.
    async fn node(&self, job: JobId, task: &str) -> Result<Option<Node>, StoreError>;

    /// What these tasks of a job gave, in the order they are asked for; `None` for one that gave nothing or is not there.
    async fn outputs(&self, job: JobId, tasks: &[Name]) -> Result<Vec<Option<Payload>>, StoreError>;

    /// Jobs that an agent has something to do for, oldest first, `max` at most.
    async fn attention(&self, max: usize) -> Result<Vec<JobId>, StoreError>;

    /// Jobs that were begun before this time and never opened, oldest first, `max` at most.
    async fn staged_before(&self, at: UnixMs, max: usize) -> Result<Vec<JobId>, StoreError>;
}
