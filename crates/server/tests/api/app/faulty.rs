//! A store whose next answers can be made to fail.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_memory::MemoryStore;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use runvoy_ports::record::{IncidentMark, IncidentQuery, RecordStore};
use runvoy_ports::store::{
    Counts, EventPage, EventQuery, ExecutionStore, Leaf, ListQuery, LockLine, OpenLease, Retention, Sight, StoreError, StoredEvent,
};
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

pub struct Faulty {
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

impl Faulty {
    pub fn new(inner: MemoryStore) -> Self {
        let (trouble, identity_away, remembered_locks, list_limits) = Default::default();
        let (gets, event_looks, backlog_counts, record_reads) = Default::default();
        Self { inner, trouble, identity_away, remembered_locks, list_limits, gets, event_looks, backlog_counts, record_reads }
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
impl ExecutionStore for Faulty {
    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
        self.check()?;
        self.inner.apply(step, command).await
    }

    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        self.check()?;
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.inner.get(id).await
    }

    async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
        self.check()?;
        self.inner.find(digits, max).await
    }

    async fn made_by(&self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, StoreError> {
        self.check()?;
        self.inner.made_by(user, key).await
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
        self.check()?;
        self.list_limits.lock().push(query.limit);
        self.inner.list(query).await
    }

    async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
        self.inner.open_leases().await
    }

    async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError> {
        self.inner.waits_ended(at).await
    }

    async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError> {
        self.inner.next_ready(queues, serves).await
    }

    async fn locks(&self) -> Result<Vec<LockLine>, StoreError> {
        self.check()?;
        let remembered = self.remembered_locks.lock().clone();
        if let Some(locks) = remembered { Ok(locks) } else { self.inner.locks().await }
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.check()?;
        self.inner.events(query).await
    }

    async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, StoreError> {
        self.check()?;
        self.event_looks.fetch_add(1, Ordering::Relaxed);
        self.inner.seen_events(query, sight).await
    }

    async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, StoreError> {
        self.check()?;
        self.inner.leaves(after, max).await
    }

    async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError> {
        self.check()?;
        self.inner.queues().await
    }

    async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        self.check()?;
        self.backlog_counts.fetch_add(1, Ordering::Relaxed);
        self.inner.backlogs().await
    }

    async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError> {
        self.check()?;
        self.inner.dead(query).await
    }

    async fn dead_count(&self, query: DeadQuery) -> Result<u64, StoreError> {
        self.check()?;
        self.inner.dead_count(query).await
    }

    async fn prune(&self, retention: Retention) -> Result<usize, StoreError> {
        self.inner.prune(retention).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.check()?;
        self.inner.counts().await
    }
}

#[async_trait]
impl RecordStore for Faulty {
    async fn record(&self, kind: Kind, name: &str) -> Result<Option<Record>, StoreError> {
        self.check_identity()?;
        self.record_reads.fetch_add(1, Ordering::Relaxed);
        self.inner.record(kind, name).await
    }

    async fn records(&self, kind: Kind) -> Result<Vec<Record>, StoreError> {
        self.check_identity()?;
        self.inner.records(kind).await
    }

    async fn incidents(&self, query: IncidentQuery) -> Result<Vec<IncidentMark>, StoreError> {
        self.inner.incidents(query).await
    }

    async fn incident_counts(&self) -> Result<Vec<(Phase, IncidentKind, u64)>, StoreError> {
        self.inner.incident_counts().await
    }

    fn authority(&self) -> Option<u64> {
        // Without the store nothing that was remembered counts.
        if *self.identity_away.lock() { None } else { self.inner.authority() }
    }

    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError> {
        self.inner.touch_key(hash, at).await
    }

    async fn key_uses(&self, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, StoreError> {
        self.inner.key_uses(hashes).await
    }
}
