//! Workers that an admin drains: they finish what they run and are given nothing new, until an admin lets them go on. The wish is a record under the
//! worker's name, so that it outlives the worker and the server. What is looked at when work is handed out is remembered here, and read again with
//! every roll call: another server may have been told.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::change::Change;
use runvoy_model::id::WorkerId;
use runvoy_model::record::Kind;
use runvoy_model::role::Action;
use runvoy_model::worker::{Drain, Presence};
use tokio::sync::Notify;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;

/// How often a drained worker looks whether it may go on, where nobody on this server says so.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The drained workers by name; `None` until somebody looked.
#[derive(Default)]
pub(crate) struct Drains {
    known: Mutex<Option<HashMap<String, Drain>>>,
    changed: Notify,
}

impl Drains {
    fn set(&self, drains: HashMap<String, Drain>) {
        *self.known.lock() = Some(drains);
        self.changed.notify_waiters();
    }

    fn get(&self, name: &str) -> Option<Drain> {
        self.known.lock().as_ref()?.get(name).cloned()
    }

    fn is_known(&self) -> bool {
        self.known.lock().is_some()
    }
}

/// A worker that was told to drain, or to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainedWorker {
    /// Its name.
    pub name: String,
    /// How many executions workers of this name run now.
    pub running: u32,
}

impl Engine {
    /// Has a worker finish what it runs and take nothing new. It is named by its name or its id; several of one name are drained together.
    pub async fn drain_worker(&self, caller: &Caller, worker: &str, key: Option<&str>) -> Result<DrainedWorker, EngineError> {
        self.change_drain(caller, "workers.drain", worker, key, Change::DrainWorker).await
    }

    /// Has a drained worker take work again.
    pub async fn resume_worker(&self, caller: &Caller, worker: &str, key: Option<&str>) -> Result<DrainedWorker, EngineError> {
        let resumed = self.change_drain(caller, "workers.resume", worker, key, Change::ResumeWorker).await?;
        self.hub.work();
        Ok(resumed)
    }

    async fn change_drain(
        &self,
        caller: &Caller,
        action: &'static str,
        worker: &str,
        key: Option<&str>,
        change: fn(String) -> Change,
    ) -> Result<DrainedWorker, EngineError> {
        caller.may(Action::ManageWorkers)?;
        let workers = self.workers(caller).await?;
        let named = workers.iter().find(|known| known.name == worker || known.worker.to_string() == worker);
        let name = match named {
            Some(known) => known.name.clone(),
            // A worker that is not there now may have been drained before.
            None if self.drain_of(worker).is_some() => worker.to_owned(),
            None => return Err(EngineError::NotFound { what: format!("worker {}", worker.escape_default()) }),
        };
        let submit = submit_key(caller, key, action, &name)?;
        self.ports.store.change(self.user_step(caller, action), change(name.clone()), submit).await?;
        self.look_at_drains().await?;
        let running = workers.iter().filter(|known| known.name == name).map(|known| known.running).sum();
        Ok(DrainedWorker { name, running })
    }

    /// Whether an admin drains the worker of this name, who did, and since when. As was last looked at.
    pub fn drain_of(&self, name: &str) -> Option<Drain> {
        self.drains.get(name)
    }

    /// Every drained worker by name, also one that is not there now.
    pub async fn drained_workers(&self) -> Result<Vec<(String, Drain)>, EngineError> {
        let records = self.all(Kind::Drain).await?;
        Ok(records.iter().filter_map(|record| Some((record.name.clone(), record.drain()?.clone()))).collect())
    }

    /// Looks at which workers are drained.
    pub(crate) async fn look_at_drains(&self) -> Result<(), EngineError> {
        self.drains.set(self.drained_workers().await?.into_iter().collect());
        Ok(())
    }

    /// Whether this worker is given nothing new. Where that cannot be read, work goes on.
    pub async fn is_drained(&self, worker: WorkerId) -> bool {
        if !self.drains.is_known()
            && let Err(error) = self.look_at_drains().await
        {
            tracing::warn!(%error, "which workers are drained cannot be read");
        }
        self.worker_name(worker).is_some_and(|name| self.drain_of(&name).is_some())
    }

    /// Comes back when this worker may be given something.
    pub async fn while_drained(&self, worker: WorkerId) {
        loop {
            let changed = self.drains.changed.notified();
            if !self.is_drained(worker).await {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Says of workers whether they take nothing new because an admin drains them.
    pub(crate) fn tell_drains(&self, workers: &mut [Presence]) {
        workers.iter_mut().for_each(|worker| worker.draining |= self.drain_of(&worker.name).is_some());
    }
}
