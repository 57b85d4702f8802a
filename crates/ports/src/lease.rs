//! The seam between a worker and whoever hands out work: in-process inside the server, RPC elsewhere.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use runvoy_model::command::{EndAttempt, Extend, Extended, Fence};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::job::Payload;
use runvoy_model::log::Block;
use runvoy_model::name::Name;

use crate::memory::Reservation;

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
    /// The attempt cannot have what it needs, and will not later.
    #[error("{0}")]
    Refused(String),
    /// The log takes no more output.
    #[error("the log is full ({limit_bytes} bytes)")]
    LogFull {
        /// The configured size.
        limit_bytes: u64,
    },
    /// Try again.
    #[error("the server cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl LeaseError {
    /// What was wrong in the first place, for people who read a log.
    pub fn cause(&self) -> String {
        std::error::Error::source(self).map_or_else(|| self.to_string(), ToString::to_string)
    }
}

/// What an attempt needs beside its own record: the values of its secrets, for its own process only, and what other tasks gave.
#[derive(Clone, Default)]
pub struct Materials {
    /// Each secret by its name, with the environment variable that it becomes.
    pub secrets: Vec<Material>,
    /// What git shows to the repository's server.
    pub git_token: Option<Material>,
    /// The JSON that a task finds in the file that `RUNVOY_INPUT` names.
    pub input: Option<Vec<u8>>,
    /// The memory that was reserved for the input: held until the input is in its file, or on its way elsewhere.
    pub reserved: Option<Arc<Reservation>>,
}

/// One secret, opened.
#[derive(Clone)]
pub struct Material {
    /// The secret.
    pub name: Name,
    /// The environment variable that it becomes.
    pub key_name: String,
    /// Its value.
    pub value: String,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Material({})", self.name)
    }
}

impl std::fmt::Debug for Materials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.secrets.iter().chain(&self.git_token)).finish()
    }
}

/// Where work comes from and results go.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Comes back when there may be work: a hint, with a poll behind it.
    async fn wait_for_work(&self);

    /// Leases up to `max` executions and begins their attempts. May be none.
    async fn lease(&self, max: usize) -> Result<Vec<Execution>, LeaseError>;

    /// What an attempt was given; `Refused` where a secret is gone or may no longer be used. It may be large: whoever implements this knows how
    /// long that may take, and answers `Unavailable` after that.
    async fn materials(&self, fence: Fence) -> Result<Materials, LeaseError>;

    /// Keeps a lease alive; the answer carries a kill request.
    async fn extend(&self, extend: Extend) -> Result<Extended, LeaseError>;

    /// Publishes records of an attempt; returns the next sequence expected.
    async fn append(&self, fence: Fence, first_seq: u64, block: Block) -> Result<u64, LeaseError>;

    /// Keeps what a command gave and is too large to be carried by the end of its attempt. It has its time like [`Leases::materials`].
    async fn put_blob(&self, fence: Fence, bytes: Vec<u8>) -> Result<Payload, LeaseError>;

    /// Ends an attempt whose records have all been published. `log_end` is filled in by whoever keeps the log.
    async fn finish(&self, ended: EndAttempt) -> Result<Execution, LeaseError>;

    /// No more leases are wanted: a [`Leases::lease`] that waits for work comes back, and hands back what it has not begun.
    fn close(&self) {}

    /// Since when the lease of a new attempt is surely held, by the worker's own clock; `None` is now. Whoever hands out work over a network
    /// counts from before it was begun.
    fn held_since(&self, _fence: Fence) -> Option<Instant> {
        None
    }

    /// Whether the server said lately that it does not take this worker's key: then no lease is kept beyond its length, because none will be extended.
    fn is_denied(&self) -> bool {
        false
    }

    /// The worker says nothing more of this attempt. What was published and is on its way still goes there.
    fn leave(&self, _fence: Fence) {}
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

    /// How many executions it runs now.
    fn running(&self) -> usize;

    /// Whether it takes nothing new any more.
    fn is_draining(&self) -> bool;

    /// Whether it runs this execution now: then it is alive, whatever the store could be told.
    fn runs(&self, execution: ExecutionId) -> bool;
}
