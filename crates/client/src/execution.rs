//! Calls about executions: submit, read, list, wait, kill, run again.

use std::time::Duration;

use http::Method;
use runvoy_wire::{DryRunResponse, Event, Execution, KillResponse, RunRequest, RunResponse, Status, StatusResponse, WaitResponse};

use crate::call::{ATTEMPT_LIMIT, Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

/// What to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// How many at most; `None` leaves it to the server.
    pub limit: Option<u32>,
    /// Only these statuses; empty: all.
    pub status: Vec<Status>,
    /// Only this user's.
    pub user: Option<String>,
    /// Only those with this lock.
    pub lock: Option<String>,
    /// Only those of this queue.
    pub queue: Option<String>,
    /// Only those submitted at or after this RFC 3339 time.
    pub since: Option<String>,
    /// Only those submitted before this RFC 3339 time.
    pub until: Option<String>,
    /// Go on where an earlier page ended.
    pub cursor: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next part begins; `None` after the last one.
    pub next_cursor: Option<String>,
}

/// A submit and the key that makes its repeats the same submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// What to run.
    pub request: RunRequest,
    /// Made once, before the first attempt.
    pub idempotency_key: String,
}

impl Submission {
    /// A submit with the user's own key, or a fresh one.
    pub fn new(request: RunRequest, idempotency_key: Option<String>) -> Self {
        Self { request, idempotency_key: idempotency_key.unwrap_or_else(fresh_id) }
    }
}

/// What came of a kill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Killed {
    /// It is being ended.
    Asked(KillResponse),
    /// It had ended before.
    AlreadyEnded,
}

fn execution(id: &str, rest: &[&str]) -> Target {
    Target::new(&[&["executions", id], rest].concat())
}

impl Client {
    /// Submits. Repeats after a lost connection carry the same key and never run the command twice.
    pub async fn run(&self, submission: &Submission) -> Result<RunResponse, ClientError> {
        let call = Call::new(Method::POST, Target::new(&["run"])).json(&submission.request).keyed(submission.idempotency_key.clone());
        self.fetch(&call).await
    }

    /// What a run would be, without one.
    pub async fn dry_run(&self, request: &RunRequest) -> Result<DryRunResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["run"]).with("dry_run", 1)).json(request)).await
    }

    /// Submits the same work again as a new execution.
    pub async fn rerun(&self, id: &str, idempotency_key: Option<String>) -> Result<RunResponse, ClientError> {
        let key = idempotency_key.unwrap_or_else(fresh_id);
        self.fetch(&Call::new(Method::POST, execution(id, &["rerun"])).keyed(key)).await
    }

    /// The whole record. `id` may be a unique prefix or suffix.
    pub async fn execution(&self, id: &str) -> Result<Execution, ClientError> {
        self.fetch(&Call::get(execution(id, &[]))).await
    }

    /// Where it is.
    pub async fn status(&self, id: &str) -> Result<StatusResponse, ClientError> {
        self.fetch(&Call::get(execution(id, &["status"]))).await
    }

    /// One part of the list of executions.
    pub async fn list(&self, query: &ListQuery) -> Result<Page<Execution>, ClientError> {
        let status = query.status.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",");
        let target = Target::new(&["executions"])
            .with_some("limit", query.limit)
            .with_some("status", (!status.is_empty()).then_some(status))
            .with_some("user", query.user.as_ref())
            .with_some("lock", query.lock.as_ref())
            .with_some("queue", query.queue.as_ref())
            .with_some("since", query.since.as_ref())
            .with_some("until", query.until.as_ref())
            .with_some("cursor", query.cursor.as_ref());
        self.page(&Call::get(target)).await
    }

    /// Waits on the server for the end, at most `limit`; the answer may still be an open status.
    pub async fn wait(&self, id: &str, limit: Duration) -> Result<WaitResponse, ClientError> {
        let target = execution(id, &["wait"]).with("timeout", limit.as_secs());
        self.fetch(&Call::get(target).limit(limit + ATTEMPT_LIMIT)).await
    }

    /// Ends it; `force` skips the time that it would get to end by itself.
    pub async fn kill(&self, id: &str, force: bool) -> Result<Killed, ClientError> {
        let target = execution(id, &[]).with_some("force", force.then_some(true));
        let answer = self.answer(&Call::new(Method::DELETE, target)).await?;
        if answer.status == 204 { Ok(Killed::AlreadyEnded) } else { self.decode(&answer).map(Killed::Asked) }
    }

    /// Its events, oldest first.
    pub async fn events(&self, id: &str) -> Result<Vec<Event>, ClientError> {
        self.fetch(&Call::get(execution(id, &["events"]))).await
    }
}
