//! What a worker elsewhere should look at now: executions of its own that somebody wants to end. A hint, like every wake-up: the worker also asks now and
//! then, and hears of it with its next extend.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, WorkerId};
use tokio::sync::Notify;

use crate::Engine;
use crate::error::EngineError;

/// The workers that listen.
#[derive(Default)]
pub(crate) struct Attention(Arc<Mutex<HashMap<WorkerId, Listening>>>);

#[derive(Default)]
struct Listening {
    ears: usize,
    told: BTreeSet<ExecutionId>,
    changed: Arc<Notify>,
}

impl Attention {
    /// So much is kept for a worker that does not listen; it hears of the rest when it asks.
    const MOST_TOLD: usize = 10_000;

    /// A worker should look at an execution; whether it listens.
    pub(crate) fn call(&self, worker: WorkerId, execution: ExecutionId) -> bool {
        let mut workers = self.0.lock();
        let Some(listening) = workers.get_mut(&worker) else { return false };
        if listening.told.len() < Self::MOST_TOLD {
            listening.told.insert(execution);
            listening.changed.notify_one();
        }
        true
    }

    fn listen(&self, worker: WorkerId) -> Ear {
        let mut workers = self.0.lock();
        let listening = workers.entry(worker).or_default();
        listening.ears += 1;
        Ear { worker, changed: Arc::clone(&listening.changed), workers: Arc::clone(&self.0) }
    }
}

/// A worker that listens, until dropped.
pub struct Ear {
    worker: WorkerId,
    changed: Arc<Notify>,
    workers: Arc<Mutex<HashMap<WorkerId, Listening>>>,
}

impl Ear {
    /// The executions to look at, as soon as there are some.
    pub async fn hear(&self) -> Vec<ExecutionId> {
        loop {
            let told = self.workers.lock().get_mut(&self.worker).map(|listening| std::mem::take(&mut listening.told)).unwrap_or_default();
            if !told.is_empty() {
                return told.into_iter().collect();
            }
            self.changed.notified().await;
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut workers = self.workers.lock();
        if let Some(listening) = workers.get_mut(&self.worker) {
            listening.ears -= 1;
            if listening.ears == 0 {
                workers.remove(&self.worker);
            }
        }
    }
}

impl Engine {
    /// Tells a worker of executions to look at, from now on.
    pub fn listen(&self, worker: WorkerId) -> Ear {
        self.hub.attention.listen(worker)
    }

    /// Which of these a worker should look at: those that somebody wants to end, and those that are no longer its own.
    pub async fn to_look_at(&self, worker: WorkerId, held: &[ExecutionId]) -> Result<Vec<ExecutionId>, EngineError> {
        let mut look_at = Vec::new();
        for id in held {
            let execution = self.ports.store.get(*id).await?;
            let is_calm =
                |execution: &Execution| execution.kill.is_none() && execution.lease.as_ref().is_some_and(|lease| lease.worker == worker);
            if !execution.as_ref().is_some_and(is_calm) {
                look_at.push(*id);
            }
        }
        Ok(look_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_hears_of_its_own_once_and_leaves_nothing_behind() {
        let attention = Attention::default();
        let (worker, execution) = (WorkerId::from_bytes([1; 16]), ExecutionId::from_bytes([2; 16]));
        assert!(!attention.call(worker, execution));
        let ear = attention.listen(worker);
        assert!(!attention.call(WorkerId::from_bytes([3; 16]), execution));
        assert!(attention.call(worker, execution) && attention.call(worker, execution));
        assert_eq!(ear.hear().await, [execution], "nobody listened the first time");
        drop(ear);
        assert!(attention.0.lock().is_empty());
    }
}
