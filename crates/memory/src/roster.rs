//! The roster of workers in memory.

use async_trait::async_trait;
use runvoy_model::id::WorkerId;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::roster::Roster;
use runvoy_ports::store::StoreError;

use crate::store::MemoryStore;

#[async_trait]
impl Roster for MemoryStore {
    async fn note(&self, presence: Presence) -> Result<(), StoreError> {
        let workers = &mut self.state.lock().workers;
        if workers.get(&presence.worker).is_none_or(|known| known.seen_at <= presence.seen_at) {
            workers.insert(presence.worker, presence);
        }
        Ok(())
    }

    async fn present(&self) -> Result<Vec<Presence>, StoreError> {
        let mut workers: Vec<Presence> = self.state.lock().workers.values().cloned().collect();
        workers.sort_by(|one, other| (&one.name, one.worker).cmp(&(&other.name, other.worker)));
        Ok(workers)
    }

    async fn leave(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.state.lock().workers.remove(&worker);
        Ok(())
    }

    async fn forget(&self, before: UnixMs) -> Result<usize, StoreError> {
        let workers = &mut self.state.lock().workers;
        let known = workers.len();
        workers.retain(|_, presence| presence.seen_at >= before);
        Ok(known - workers.len())
    }
}
