//! The trail of events as its keeper sees it: whether it is whole, and where its checkpoints are told to the world outside the store.

use async_trait::async_trait;
use runvoy_model::fold::Comparison;
use runvoy_model::verify::Verdict;
use runvoy_model::witness::Witness;

use crate::store::StoreError;

/// The events of a store, to be proved.
#[async_trait]
pub trait AuditTrail: Send + Sync {
    /// Looks at every event there is and at every checkpoint. Takes long with much data; also reads what the store itself would refuse to serve.
    async fn verify(&self) -> Result<Verdict, StoreError>;

    /// Compares all state that is kept beside the events with what they say. Takes long with much data, and gives no false alarm while it is
    /// written to.
    async fn compare_state(&self) -> Result<Comparison, StoreError>;
}

/// What checkpoints are told to. It only grows.
#[async_trait]
pub trait Witnesses: Send + Sync {
    /// The last one that was told.
    async fn last(&self) -> Result<Option<Witness>, WitnessError>;

    /// Tells further ones, in order. They are durable when this returns.
    async fn tell(&self, witnesses: Vec<Witness>) -> Result<(), WitnessError>;
}

/// Why a checkpoint was not told, or the last one cannot be known.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct WitnessError {
    /// What could not be done, and with what.
    pub message: String,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
