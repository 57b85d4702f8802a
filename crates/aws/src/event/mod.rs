//! The log of events on DynamoDB. A step's transaction leaves its events in a *journal*, spread over partitions, so that steps never wait for each other. A *drain* moves them into
//! the log: one transaction gives them the next places, writes one *row* an event under its entity and one *segment* with what is to be known of all
//! of them by place, and removes them from the journal. Anybody drains, any time, many at once: the counter of places is a condition of every drain,
//! so that one wins and the others look again. Whoever reads drains first, and so sees everything that was committed before.
//!
//! What causes something is placed before it: events of an entity by their number, steps after those that they name ([`journal::follow`]).
//! The publisher walks the log behind all this, and tells the bus.

mod board;
mod consumer;
mod contract;
mod drain;
pub(crate) mod journal;
mod kind;
mod mark;
mod overflow;
mod owner;
mod period;
mod prune;
mod publisher;
mod query;
mod row;
mod segment;
#[cfg(test)]
mod tests;
pub(crate) mod trail;
mod walk;
mod witness;

use std::sync::Arc;

use crate::dynamo::Dynamo;
use crate::fault::Fault;

pub use consumer::Consumer;
pub use publisher::Publisher;
pub use witness::BucketWitnesses;

/// The log of one installation. A clone shares what is remembered.
#[derive(Debug, Clone)]
pub(crate) struct EventLog {
    dynamo: Dynamo,
    drains: Arc<drain::Drains>,
}

impl EventLog {
    /// The log in these tables.
    pub fn new(dynamo: Dynamo) -> Self {
        Self { dynamo, drains: Arc::default() }
    }

    /// The last place that was given; every event that was committed before the call has one.
    pub async fn last_place(&self) -> Result<u64, Fault> {
        self.drain().await?;
        Ok(mark::placed(&self.dynamo).await?.last)
    }
}
