//! Who works here: what every worker last said of itself. It is no state that anything is decided by: no step, no receipt and no event stands behind it, and
//! losing all of it costs a few seconds.

use async_trait::async_trait;
use runvoy_model::id::WorkerId;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;

use crate::store::StoreError;

/// The roster of workers.
#[async_trait]
pub trait Roster: Send + Sync {
    /// Remembers what a worker says of itself, in place of what it said before. What is older than what is known changes nothing.
    async fn note(&self, presence: Presence) -> Result<(), StoreError>;

    /// Everybody who was heard of and has neither left nor been forgotten, by name and then by id.
    async fn present(&self) -> Result<Vec<Presence>, StoreError>;

    /// A worker has left. One that is not there has left already.
    async fn leave(&self, worker: WorkerId) -> Result<(), StoreError>;

    /// Forgets those who were last heard of before this time; returns how many.
    async fn forget(&self, before: UnixMs) -> Result<usize, StoreError>;
}
