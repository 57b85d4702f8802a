//! A store whose next answers can be made to fail.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_conformance::tap::{ExecutionTap, RecordTap, Tapped};
use runvoy_memory::MemoryStore;
use runvoy_model::execution::Execution;
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::{ExecutionStore, ListQuery, LockLine, StoreError};
use runvoy_ports::trouble;

/// What is wrong with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Away,
    Full,
    Damaged,
    Throttled,
    Faulty,
}

/// The store, with what is wrong with it.
pub type Faulty = Tapped<FaultyStore>;

pub struct FaultyStore {
    inner: MemoryStore,
    trouble: Mutex<Option<Trouble>>,
    identity_away: Mutex<bool>,
    remembered_locks: Mutex<Option<Vec<LockLine>>>,
    /// Every list query's limit, to see how much was read at once.
    pub list_limits: Mutex<Vec<usize>>,
    /// How many executions were looked up.
    pub gets: AtomicUsize,
    /// How often events were looked at for somebody.
    pub event_looks: AtomicUsize,
    /// How often what waits was counted by user.
    pub backlog_counts: AtomicUsize,
    record_reads: AtomicUsize,
}

impl FaultyStore {
    pub fn over(inner: MemoryStore) -> Faulty {
        let (trouble, identity_away, remembered_locks, list_limits) = Default::default();
        let (gets, event_looks, backlog_counts, record_reads) = Default::default();
        Tapped(Self { inner, trouble, identity_away, remembered_locks, list_limits, gets, event_looks, backlog_counts, record_reads })
    }

    /// Executions, locks and events fail like this from now on.
    pub fn set(&self, trouble: Option<Trouble>) {
        *self.trouble.lock() = trouble;
    }

    /// Users and keys cannot be read from now on.
    pub fn set_identity_away(&self, away: bool) {
        *self.identity_away.lock() = away;
    }

    /// From now on locks are shown as they are now, whatever becomes of them: a look that was taken a moment too early.
    pub async fn remember_locks(&self) {
        let locks = self.inner.locks().await.expect("a memory store");
        *self.remembered_locks.lock() = Some(locks);
    }

    /// How often what people manage was read.
    pub fn record_reads(&self) -> usize {
        self.record_reads.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), StoreError> {
        match *self.trouble.lock() {
            None => Ok(()),
            Some(Trouble::Away) => Err(StoreError::Unavailable("the disk is on fire".into())),
            Some(Trouble::Full) => Err(StoreError::NoSpace),
            Some(Trouble::Throttled) => Err(StoreError::Unavailable(trouble::Trouble::Throttled.mark("the disk is on fire"))),
            Some(Trouble::Faulty) => Err(StoreError::Unavailable(trouble::Trouble::Faulty.mark("the disk is on fire"))),
            Some(Trouble::Damaged) => Err(StoreError::Damaged("page 7 is torn".into())),
        }
    }

    fn check_identity(&self) -> Result<(), StoreError> {
        if *self.identity_away.lock() { Err(StoreError::Unavailable("the disk is on fire".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl ExecutionTap for FaultyStore {
    fn inner(&self) -> &dyn ExecutionStore {
        &self.inner
    }

    fn before(&self, call: &'static str) -> Result<(), StoreError> {
        // What agents ask goes on working.
        if matches!(call, "open_leases" | "waits_ended" | "next_ready" | "prune") {
            return Ok(());
        }
        self.check()?;
        match call {
            "get" => drop(self.gets.fetch_add(1, Ordering::Relaxed)),
            "backlogs" => drop(self.backlog_counts.fetch_add(1, Ordering::Relaxed)),
            "seen_events" => drop(self.event_looks.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
        Ok(())
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
        self.check()?;
        self.list_limits.lock().push(query.limit);
        self.inner.list(query).await
    }

    async fn locks(&self) -> Result<Vec<LockLine>, StoreError> {
        self.check()?;
        let remembered = self.remembered_locks.lock().clone();
        if let Some(locks) = remembered { Ok(locks) } else { self.inner.locks().await }
    }
}

#[async_trait]
impl RecordTap for FaultyStore {
    fn inner(&self) -> &dyn RecordStore {
        &self.inner
    }

    fn before(&self, call: &'static str) -> Result<(), StoreError> {
        match call {
            "record" => {
                self.check_identity()?;
                self.record_reads.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            "records" => self.check_identity(),
            _ => Ok(()),
        }
    }

    fn authority(&self) -> Option<u64> {
        // Without the store nothing that was remembered counts.
        if *self.identity_away.lock() { None } else { self.inner.authority() }
    }
}
