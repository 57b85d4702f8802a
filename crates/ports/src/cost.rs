//! Counters of costs by day, and how far the event log was added to them. They are derived from executions that have ended, so that totals of a month
//! need not read its executions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use runvoy_model::cost::{Cost, CostKey, Day, Dimension};

use crate::store::StoreError;

/// No fold changes more counters: a store may hold a hundred items in one step, and one is the cursor.
pub const MAX_COUNTERS: usize = 90;

/// What a stretch of the event log adds to the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostFold {
    /// The place in the event log up to which everything was counted before.
    pub after: u64,
    /// The place up to which everything is counted with this.
    pub up_to: u64,
    /// What is added, [`MAX_COUNTERS`] at most.
    pub added: BTreeMap<CostKey, Cost>,
}

/// Which counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostQuery {
    /// Those of this user's executions; `None` for those of everybody's.
    pub owner: Option<String>,
    /// What they sum up by.
    pub dimension: Dimension,
    /// From this day on.
    pub since: Day,
}

/// The counters.
#[async_trait]
pub trait CostStore: Send + Sync {
    /// The place in the event log up to which everything was counted; zero at the beginning.
    async fn counted(&self) -> Result<u64, StoreError>;

    /// Adds to the counters and moves the place from `after` to `up_to`, in one atomic step. Changes nothing where the place is another one. Returns
    /// the place as it is now, so that a repeat after a lost answer counts nothing twice.
    async fn count(&self, fold: CostFold) -> Result<u64, StoreError>;

    /// The counters, by day and then by name.
    async fn costs(&self, query: CostQuery) -> Result<Vec<(Day, String, Cost)>, StoreError>;
}
