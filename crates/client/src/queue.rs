//! Calls about queues and what was given up in them, and about the health of what runs.

use http::Method;
use runvoy_wire::{
    DeadLetter, PutQueueRequest, Queue, QueueTermsResponse, RedriveRequest, RedriveResponse, TaskHealth, TaskHealthResponse,
};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::execution::Page;
use crate::query::Target;

impl Client {
    /// Every queue that holds something, by name.
    pub async fn queues(&self) -> Result<Vec<Queue>, ClientError> {
        Ok(self.fetch::<Option<Vec<Queue>>>(&Call::get(Target::new(&["queues"]))).await?.unwrap_or_default())
    }

    /// Stops a queue, lets it go on, or limits it.
    pub async fn put_queue(&self, name: &str, request: &PutQueueRequest) -> Result<QueueTermsResponse, ClientError> {
        self.fetch(&Call::new(Method::PUT, Target::new(&["queues", name])).json(request).keyed(fresh_id())).await
    }

    /// Takes the terms of a queue away.
    pub async fn remove_queue_terms(&self, name: &str) -> Result<QueueTermsResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, Target::new(&["queues", name]))).await
    }

    /// One part of what was given up in a queue, newest first.
    pub async fn dead_letters(&self, queue: &str, limit: Option<u32>, cursor: Option<&str>) -> Result<Page<DeadLetter>, ClientError> {
        let target = Target::new(&["queues", queue, "dead"]).with_some("limit", limit).with_some("cursor", cursor);
        self.page(&Call::get(target)).await
    }

    /// Runs what was given up again, as new executions, a part of it; `next` of the answer says where the next call goes on. A repeat after a lost
    /// answer is the same call.
    pub async fn redrive(&self, queue: &str, request: &RedriveRequest) -> Result<RedriveResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["queues", queue, "redrive"])).json(request).keyed(fresh_id())).await
    }

    /// How everything that runs is.
    pub async fn task_health(&self) -> Result<TaskHealthResponse, ClientError> {
        self.fetch(&Call::get(Target::new(&["health", "tasks"]))).await
    }

    /// How one execution is.
    pub async fn health_of(&self, id: &str) -> Result<TaskHealth, ClientError> {
        self.fetch(&Call::get(Target::new(&["health", "tasks", id]))).await
    }
}
