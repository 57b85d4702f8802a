//! The worker: a number of slots, a loop that fills them with leased executions, and a way to stop that leaves
//! nothing running and nothing unsaid.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_ports::clock::Clock;
use runvoy_ports::lease::{LeaseError, Leases, Slot, Slots};
use runvoy_ports::memory::MemoryBudget;
use runvoy_ports::runner::{Limits, Runner};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::attempt::Attempt;
use crate::checkout::Git;
use crate::disk::{self, DiskLimits};
use crate::own_key::OwnKey;

/// What a worker can be told.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many executions run at once.
    pub concurrency: usize,
    /// How long its leases last.
    pub lease_ttl: Duration,
    /// Others may be given what this worker can no longer extend: what holds a lock or may be tried again is killed so long before its lease
    /// lapses. `None` where nobody else could be given it.
    pub yields_before: Option<Duration>,
    /// For so long the worker goes on without the server: what a lease says runs on, and tries to tell how attempts ended. `None` is without end, where
    /// the store is the worker's own.
    pub lost_after: Option<Duration>,
    /// Output that cannot be stored for so long ends the command.
    pub output_patience: Duration,
    /// How long a command has to end after `SIGTERM`.
    pub grace: Duration,
    /// The `HOME` of commands.
    pub home: String,
    /// Where the worker runs, for people.
    pub host: String,
    /// Limits of every command.
    pub limits: Limits,
    /// What may be cloned, and how.
    pub git: Git,
    /// The key that the worker shows its server; `None` where it shows none.
    pub own_key: Option<OwnKey>,
    /// What outputs take in memory together. The worker inside a server shares the server's.
    pub memory: MemoryBudget,
    /// How much of the disk commands may take.
    pub disk: DiskLimits,
}

/// How far a worker has been told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stopping {
    /// Not at all.
    No,
    /// It takes no new executions.
    Drain,
    /// It ends those that run.
    EndAll,
}

/// The most executions that are leased in one step.
const LEASE_AT_ONCE: usize = 32;

/// An attempt that runs here, and how to reach it.
#[derive(Debug)]
pub(crate) struct Place {
    attempt: u32,
    /// The server should be asked what it wants of it.
    pub(crate) nudge: Arc<Notify>,
    /// Why it is ended for what it wrote to disk.
    pub(crate) disk_stop: watch::Sender<Option<DiskStop>>,
}

/// Why an attempt is ended for what it wrote to disk, and since when.
#[derive(Debug)]
pub(crate) struct DiskStop {
    pub(crate) why: String,
    at: Instant,
}

impl Place {
    fn of(attempt: u32) -> Arc<Self> {
        Arc::new(Self { attempt, nudge: Arc::default(), disk_stop: watch::Sender::new(None) })
    }
}

/// What runs, and nudges that came before the attempt they are for.
#[derive(Default)]
struct Places {
    running: HashMap<ExecutionId, Arc<Place>>,
    early: HashSet<ExecutionId>,
}

impl Places {
    const MOST_EARLY: usize = 1_024;

    fn enter(&mut self, id: ExecutionId, place: &Arc<Place>) {
        self.running.insert(id, Arc::clone(place));
        if self.early.remove(&id) {
            place.nudge.notify_one();
        }
    }

    /// Leaves what another attempt of the same execution has entered since.
    fn leave(&mut self, id: ExecutionId, place: &Arc<Place>) {
        if self.running.get(&id).is_some_and(|entered| Arc::ptr_eq(entered, place)) {
            self.running.remove(&id);
        }
    }

    fn nudge(&mut self, id: ExecutionId) {
        match self.running.get(&id) {
            Some(place) => place.nudge.notify_one(),
            None => {
                if self.early.len() >= Self::MOST_EARLY {
                    // A lost nudge costs the time to the next extend.
                    self.early.clear();
                }
                self.early.insert(id);
            }
        }
    }
}

/// Runs leased executions.
pub struct Worker {
    pub(crate) leases: Arc<dyn Leases>,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Config,
    slots: Arc<Semaphore>,
    places: Mutex<Places>,
    stopping: watch::Sender<Stopping>,
    /// The disk is nearly full: nothing is started.
    is_disk_short: watch::Sender<bool>,
}

impl Worker {
    /// A worker with all its slots free.
    pub fn new(leases: Arc<dyn Leases>, runner: Arc<dyn Runner>, clock: Arc<dyn Clock>, config: Config) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(config.concurrency));
        let places = Mutex::default();
        let (stopping, is_disk_short) = (watch::Sender::new(Stopping::No), watch::Sender::new(false));
        Arc::new(Self { leases, runner, clock, config, slots, places, stopping, is_disk_short })
    }

    /// Its slots, for the engine in the same process.
    pub fn slots(self: &Arc<Self>) -> Arc<dyn Slots> {
        Arc::new(OwnSlots(Arc::clone(self)))
    }

    /// How many executions it runs now.
    pub fn running(&self) -> usize {
        self.places.lock().running.len()
    }

    /// The executions that it runs now.
    pub fn held(&self) -> Vec<ExecutionId> {
        self.places.lock().running.keys().copied().collect()
    }

    /// It takes no new executions.
    pub fn is_draining(&self) -> bool {
        *self.stopping.borrow() > Stopping::No
    }

    /// Leases and runs until it is told to stop.
    pub async fn run(self: Arc<Self>) {
        let mut stopping = self.stopping.subscribe();
        let mut disk = self.is_disk_short.subscribe();
        tokio::spawn(disk::watch(Arc::downgrade(&self)));
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping > Stopping::No) => return,
                () = self.leases.wait_for_work() => {}
            }
            let first = tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping > Stopping::No) => return,
                permit = Arc::clone(&self.slots).acquire_owned() => permit,
            };
            // The slots are closed when the worker has stopped.
            let Ok(first) = first else { return };
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping > Stopping::No) => return,
                _ = disk.wait_for(|is_short| !is_short) => {}
            }
            self.fill(first).await;
        }
    }

    async fn fill(self: &Arc<Self>, first: OwnedSemaphorePermit) {
        let mut permits = vec![first];
        while permits.len() < LEASE_AT_ONCE
            && let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned()
        {
            permits.push(permit);
        }
        match self.lease(permits.len()).await {
            Ok(executions) => {
                for (execution, permit) in executions.into_iter().zip(permits) {
                    self.start(execution, permit);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "nothing could be leased");
                let mut stopping = self.stopping.subscribe();
                tokio::select! {
                    _ = stopping.wait_for(|stopping| *stopping > Stopping::No) => {}
                    () = tokio::time::sleep(Duration::from_secs(1)) => {}
                }
            }
        }
    }

    /// Leases; a stop ends the wait for work. What was begun by then is run all the same: nobody else would.
    async fn lease(&self, max: usize) -> Result<Vec<Execution>, LeaseError> {
        let mut stopping = self.stopping.subscribe();
        let mut leasing = self.leases.lease(max);
        tokio::select! {
            biased;
            leased = &mut leasing => return leased,
            _ = stopping.wait_for(|stopping| *stopping > Stopping::No) => self.leases.close(),
        }
        leasing.await
    }

    fn start(self: &Arc<Self>, execution: Execution, permit: OwnedSemaphorePermit) {
        let worker = Arc::clone(self);
        let lease = execution.lease.as_ref().expect("an attempt runs under its lease");
        let (id, place) = (execution.id, Place::of(lease.attempt));
        self.places.lock().enter(id, &place);
        tokio::spawn(async move {
            // Dropped however the attempt ends, by a panic too: the slot is free and the execution no longer counts as running.
            let entry = Entry { worker: &worker, id, place: Arc::clone(&place) };
            Attempt::new(&worker, execution, &place, worker.stopping.subscribe()).run().await;
            drop((entry, permit));
        });
    }

    /// Stops: no new executions; those that run have `patience` to end by themselves, then they are ended. Comes
    /// back when every one of them has been recorded; of those that had to be ended it is enough, where others bring that to the server, that
    /// it is written down.
    pub async fn stop(&self, patience: Duration) {
        self.stopping.send_replace(Stopping::Drain);
        let all = u32::try_from(self.config.concurrency).unwrap_or(u32::MAX);
        if tokio::time::timeout(patience, self.slots.acquire_many(all)).await.is_err() {
            self.stopping.send_replace(Stopping::EndAll);
            let _all_done = self.slots.acquire_many(all).await;
        }
        self.slots.close();
    }
}

impl Worker {
    /// The attempts that run here, and how long ago each was told to end for what it wrote.
    pub(crate) fn attempts(&self) -> Vec<(ExecutionId, u32, Option<Duration>)> {
        let stopped_for = |place: &Place| place.disk_stop.borrow().as_ref().map(|stop| stop.at.elapsed());
        self.places.lock().running.iter().map(|(id, place)| (*id, place.attempt, stopped_for(place))).collect()
    }

    /// Ends an execution for what it wrote.
    pub(crate) fn stop_for_disk(&self, id: ExecutionId, why: String) {
        if let Some(place) = self.places.lock().running.get(&id) {
            place.disk_stop.send_replace(Some(DiskStop { why, at: Instant::now() }));
        }
    }

    /// Starts nothing while the disk is nearly full.
    pub(crate) fn note_disk(&self, is_short: bool) {
        let changed = self.is_disk_short.send_if_modified(|known| std::mem::replace(known, is_short) != is_short);
        match (changed, is_short) {
            (true, true) => tracing::error!("disk full: commands are started again when there is space under the work directories"),
            (true, false) => tracing::info!("there is disk space for commands again"),
            (false, _) => {}
        }
    }

    /// Looks at the disk now: a command may have filled it in an instant.
    pub(crate) async fn is_disk_short_now(&self) -> bool {
        self.runner.disk_space().await.is_some_and(|space| self.config.disk.is_short(space))
    }
}

/// An execution's place among those that run.
struct Entry<'a> {
    worker: &'a Worker,
    id: ExecutionId,
    place: Arc<Place>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.worker.places.lock().leave(self.id, &self.place);
    }
}

struct OwnSlots(Arc<Worker>);

struct OwnSlot {
    worker: Arc<Worker>,
    permit: OwnedSemaphorePermit,
}

impl Slots for OwnSlots {
    fn reserve(&self) -> Option<Box<dyn Slot>> {
        if self.0.is_draining() || *self.0.is_disk_short.borrow() {
            return None;
        }
        let permit = Arc::clone(&self.0.slots).try_acquire_owned().ok()?;
        Some(Box::new(OwnSlot { worker: Arc::clone(&self.0), permit }))
    }

    fn nudge(&self, execution: ExecutionId) {
        self.0.places.lock().nudge(execution);
    }

    fn running(&self) -> usize {
        self.0.running()
    }

    fn is_draining(&self) -> bool {
        self.0.is_draining()
    }

    fn runs(&self, execution: ExecutionId) -> bool {
        self.0.places.lock().running.contains_key(&execution)
    }
}

impl Slot for OwnSlot {
    fn start(self: Box<Self>, execution: Execution) {
        self.worker.start(execution, self.permit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_ends_late_leaves_the_place_of_the_next_one() {
        let (mut places, id) = (Places::default(), ExecutionId::from_bytes([1; 16]));
        let (first, second) = (Place::of(1), Place::of(2));
        places.enter(id, &first);
        places.enter(id, &second);
        places.leave(id, &first);
        assert!(places.running.contains_key(&id));
        places.leave(id, &second);
        assert!(places.running.is_empty());
    }
}
