//! The seam between a worker and whoever hands out work: in-process inside the server, RPC elsewhere.

use async_trait::async_trait;
use runvoy_model::command::{EndAttempt, Extend, Extended, Fence};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::Block;

/// Why a worker's call was not answered as it hoped.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The lease is no longer this worker's: whatever it does for it must stop.
    #[error("the lease is lost: {0}")]
    Lost(String),
    /// The server waits for an earlier record.
    #[error("records are missing before this one: expected sequence {expected}")]
    Gap {
        /// Send from here on.
        expected: u64,
    },
    /// The log takes no more output.
    #[error("the log is full at {limit_bytes} bytes")]
    LogFull {
        /// The configured size.
        limit_bytes: u64,
    },
    /// Try again.
    #[error("the server cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Where work comes from and results go.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Comes back when there may be work: a hint, with a poll behind it.
    async fn wait_for_work(&self);

    /// Leases up to `max` executions and begins their attempts. May be none.
    async fn lease(&self, max: usize) -> Result<Vec<Execution>, LeaseError>;

    /// Keeps a lease alive; the answer carries a kill request.
    async fn extend(&self, extend: Extend) -> Result<Extended, LeaseError>;

    /// Publishes records of an attempt; returns the next sequence expected.
    async fn append(&self, fence: Fence, first_seq: u64, block: Block) -> Result<u64, LeaseError>;

    /// Ends an attempt whose records have all been published. `log_end` is filled in by whoever keeps the log.
    async fn finish(&self, ended: EndAttempt) -> Result<Execution, LeaseError>;
}

/// A place in a worker for one more execution.
pub trait Slot: Send {
    /// Runs an execution that was leased and begun for this worker.
    fn start(self: Box<Self>, execution: Execution);
}

/// The worker inside the server, as the engine sees it.
pub trait Slots: Send + Sync {
    /// A free place, if there is one. Dropping it gives it back.
    fn reserve(&self) -> Option<Box<dyn Slot>>;

    /// Something about this execution has changed (a kill was asked for): look now, not at the next extend.
    fn nudge(&self, execution: ExecutionId);

    /// Whether it runs this execution now: then it is alive, whatever the store could be told.
    fn runs(&self, execution: ExecutionId) -> bool;
}
