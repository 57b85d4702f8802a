//! The counters of costs in memory.

use async_trait::async_trait;
use runvoy_model::cost::{Cost, Day};
use runvoy_ports::cost::{CostFold, CostQuery, CostStore};
use runvoy_ports::store::StoreError;

use crate::store::MemoryStore;

#[async_trait]
impl CostStore for MemoryStore {
    async fn counted(&self) -> Result<u64, StoreError> {
        Ok(self.state.lock().counted)
    }

    async fn count(&self, fold: CostFold) -> Result<u64, StoreError> {
        let mut state = self.state.lock();
        if state.counted == fold.after {
            state.counted = fold.up_to;
            for (key, added) in fold.added {
                let counter = state.costs.entry(key).or_default();
                *counter = counter.plus(added);
            }
        }
        Ok(state.counted)
    }

    async fn costs(&self, query: CostQuery) -> Result<Vec<(Day, String, Cost)>, StoreError> {
        let state = self.state.lock();
        let fits =
            state.costs.iter().filter(|(key, _)| key.owner == query.owner && key.dimension == query.dimension && key.day >= query.since);
        Ok(fits.map(|(key, cost)| (key.day, key.name.clone(), *cost)).collect())
    }
}
