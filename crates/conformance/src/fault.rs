//! The fault layer: between a caller and a store it loses answers after the commit, fails before it, and sends calls twice, driven by a
//! seed. [`Retrying`] is what a caller does about that: the same step again until it is answered. Through both together every
//! promise must hold as it does without them.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::cost::{Cost, Day};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId, WorkerId};
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::job::{Job, Node, Payload};
use runvoy_model::limit::StepLimits;
use runvoy_model::log::Chunk;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::cost::{CostFold, CostQuery, CostStore};
use runvoy_ports::job::{JobQuery, JobStore};
use runvoy_ports::log::{Append, Appended, Extent, Found, LogError, LogStore, Pruned, RawPlace, Search};
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use runvoy_ports::record::{IncidentMark, IncidentQuery, RecordStore};
use runvoy_ports::roster::Roster;
use runvoy_ports::store::{
    Counts, EventPage, EventQuery, ExecutionStore, Leaf, ListQuery, LockLine, OpenLease, Retention, Sight, StoreError, StoredEvent,
};

use crate::chance::Chance;
use crate::harness::{Harness, TransactionalStore};

/// A fault that was made on purpose.
#[derive(Debug, thiserror::Error)]
#[error("injected fault")]
struct Injected;

trait Fails {
    fn injected() -> Self;
    fn may_be_repeated(&self) -> bool;
}

impl Fails for StoreError {
    fn injected() -> Self {
        Self::Unavailable(Box::new(Injected))
    }

    fn may_be_repeated(&self) -> bool {
        self.is_retryable()
    }
}

impl Fails for LogError {
    fn injected() -> Self {
        Self::Storage(Box::new(Injected))
    }

    fn may_be_repeated(&self) -> bool {
        self.is_retryable()
    }
}

enum Fault {
    None,
    /// The call never arrives.
    Before,
    /// The call is carried out, its answer is lost.
    After,
    /// The call arrives twice; the second answer is the one that is seen.
    Twice,
}

/// A store behind faults.
pub struct Faulty<S: ?Sized> {
    inner: Arc<S>,
    chance: Mutex<Chance>,
}

impl<S: ?Sized> Faulty<S> {
    /// Puts a store behind the faults of this seed.
    pub fn new(inner: Arc<S>, seed: u64) -> Self {
        Self { inner, chance: Mutex::new(Chance::new(seed)) }
    }

    fn fault(&self) -> Fault {
        match self.chance.lock().below(100) {
            0..15 => Fault::Before,
            15..30 => Fault::After,
            30..40 => Fault::Twice,
            _ => Fault::None,
        }
    }

    /// A call that may be repeated: everything can happen to it.
    async fn repeatable<T, E: Fails, F: Future<Output = Result<T, E>>>(&self, call: impl Fn() -> F) -> Result<T, E> {
        match self.fault() {
            Fault::None => call().await,
            Fault::Before => Err(E::injected()),
            Fault::After => {
                let _lost = call().await;
                Err(E::injected())
            }
            Fault::Twice => {
                let _lost = call().await;
                call().await
            }
        }
    }

    /// A call that has no name of its own, so that a repeat would be another call: it can only fail to arrive.
    async fn single<T, E: Fails, F: Future<Output = Result<T, E>>>(&self, call: impl Fn() -> F) -> Result<T, E> {
        if matches!(self.fault(), Fault::Before) { Err(E::injected()) } else { call().await }
    }
}

/// A caller that repeats what was not answered, with the same step id.
pub struct Retrying<S: ?Sized> {
    inner: Arc<S>,
}

impl<S: ?Sized> Retrying<S> {
    /// Puts the patience in front of a store.
    pub const fn new(inner: Arc<S>) -> Self {
        Self { inner }
    }

    async fn repeatable<T, E: Fails, F: Future<Output = Result<T, E>>>(&self, call: impl Fn() -> F) -> Result<T, E> {
        // Far more often than chance can ask for, so that a store that never answers ends the test instead of hanging it.
        for _ in 0..1_000 {
            match call().await {
                Err(error) if error.may_be_repeated() => {}
                answer => return answer,
            }
        }
        call().await
    }

    /// The fault layer loses no answer of such a call, so that here too a failure means that it never arrived.
    async fn single<T, E: Fails, F: Future<Output = Result<T, E>>>(&self, call: impl Fn() -> F) -> Result<T, E> {
        self.repeatable(call).await
    }
}

macro_rules! layer {
    ($layer:ident) => {
        #[async_trait]
        impl<S: ExecutionStore + ?Sized> ExecutionStore for $layer<S> {
            async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
                self.repeatable(|| self.inner.apply(step.clone(), command.clone())).await
            }

            fn step_limits(&self) -> StepLimits {
                self.inner.step_limits()
            }

            async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
                self.repeatable(|| self.inner.get(id)).await
            }

            async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
                self.repeatable(|| self.inner.find(digits, max)).await
            }

            async fn made_by(&self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, StoreError> {
                self.repeatable(|| self.inner.made_by(user, key)).await
            }

            async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
                self.repeatable(|| self.inner.list(query.clone())).await
            }

            async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
                self.repeatable(|| self.inner.open_leases()).await
            }

            async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError> {
                self.repeatable(|| self.inner.waits_ended(at)).await
            }

            async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError> {
                self.repeatable(|| self.inner.next_ready(queues, serves)).await
            }

            async fn locks(&self) -> Result<Vec<LockLine>, StoreError> {
                self.repeatable(|| self.inner.locks()).await
            }

            async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError> {
                self.repeatable(|| self.inner.events(query.clone())).await
            }

            async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, StoreError> {
                self.repeatable(|| self.inner.seen_events(query.clone(), sight.clone())).await
            }

            async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, StoreError> {
                self.repeatable(|| self.inner.leaves(after, max)).await
            }

            async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError> {
                self.repeatable(|| self.inner.queues()).await
            }

            async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
                self.repeatable(|| self.inner.backlogs()).await
            }

            async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError> {
                self.repeatable(|| self.inner.dead(query.clone())).await
            }

            async fn dead_count(&self, query: DeadQuery) -> Result<u64, StoreError> {
                self.repeatable(|| self.inner.dead_count(query.clone())).await
            }

            async fn prune(&self, retention: Retention) -> Result<usize, StoreError> {
                self.single(|| self.inner.prune(retention)).await
            }

            async fn counts(&self) -> Result<Counts, StoreError> {
                self.repeatable(|| self.inner.counts()).await
            }
        }

        #[async_trait]
        impl<S: JobStore + ?Sized> JobStore for $layer<S> {
            async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
                self.repeatable(|| self.inner.job(id)).await
            }

            async fn find_jobs(&self, digits: &str, max: usize) -> Result<Vec<JobId>, StoreError> {
                self.repeatable(|| self.inner.find_jobs(digits, max)).await
            }

            async fn jobs(&self, query: JobQuery) -> Result<Vec<Job>, StoreError> {
                self.repeatable(|| self.inner.jobs(query.clone())).await
            }

            async fn nodes(&self, job: JobId, after_place: Option<u32>, limit: usize) -> Result<Vec<Node>, StoreError> {
                self.repeatable(|| self.inner.nodes(job, after_place, limit)).await
            }

            async fn active(&self, job: JobId, after_place: Option<u32>, max: usize) -> Result<Vec<(u32, ExecutionId)>, StoreError> {
                self.repeatable(|| self.inner.active(job, after_place, max)).await
            }

            async fn node(&self, job: JobId, task: &str) -> Result<Option<Node>, StoreError> {
                self.repeatable(|| self.inner.node(job, task)).await
            }

            async fn outputs(&self, job: JobId, tasks: &[Name]) -> Result<Vec<Option<Payload>>, StoreError> {
                self.repeatable(|| self.inner.outputs(job, tasks)).await
            }

            async fn attention(&self, max: usize) -> Result<Vec<JobId>, StoreError> {
                self.repeatable(|| self.inner.attention(max)).await
            }

            async fn staged_before(&self, at: UnixMs, max: usize) -> Result<Vec<JobId>, StoreError> {
                self.repeatable(|| self.inner.staged_before(at, max)).await
            }
        }

        #[async_trait]
        impl<S: RecordStore + ?Sized> RecordStore for $layer<S> {
            async fn record(&self, kind: Kind, name: &str) -> Result<Option<Record>, StoreError> {
                self.repeatable(|| self.inner.record(kind, name)).await
            }

            async fn records(&self, kind: Kind) -> Result<Vec<Record>, StoreError> {
                self.repeatable(|| self.inner.records(kind)).await
            }

            async fn incidents(&self, query: IncidentQuery) -> Result<Vec<IncidentMark>, StoreError> {
                self.repeatable(|| self.inner.incidents(query)).await
            }

            async fn incident_counts(&self) -> Result<Vec<(Phase, IncidentKind, u64)>, StoreError> {
                self.repeatable(|| self.inner.incident_counts()).await
            }

            fn authority(&self) -> Option<u64> {
                self.inner.authority()
            }

            async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError> {
                self.repeatable(|| self.inner.touch_key(hash, at)).await
            }

            async fn key_uses(&self, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, StoreError> {
                self.repeatable(|| self.inner.key_uses(hashes)).await
            }
        }

        #[async_trait]
        impl<S: Roster + ?Sized> Roster for $layer<S> {
            async fn note(&self, presence: Presence) -> Result<(), StoreError> {
                self.repeatable(|| self.inner.note(presence.clone())).await
            }

            async fn present(&self) -> Result<Vec<Presence>, StoreError> {
                self.repeatable(|| self.inner.present()).await
            }

            async fn leave(&self, worker: WorkerId) -> Result<(), StoreError> {
                self.repeatable(|| self.inner.leave(worker)).await
            }

            async fn forget(&self, before: UnixMs) -> Result<usize, StoreError> {
                self.single(|| self.inner.forget(before)).await
            }
        }

        #[async_trait]
        impl<S: CostStore + ?Sized> CostStore for $layer<S> {
            async fn counted(&self) -> Result<u64, StoreError> {
                self.repeatable(|| self.inner.counted()).await
            }

            async fn count(&self, fold: CostFold) -> Result<u64, StoreError> {
                self.repeatable(|| self.inner.count(fold.clone())).await
            }

            async fn costs(&self, query: CostQuery) -> Result<Vec<(Day, String, Cost)>, StoreError> {
                self.repeatable(|| self.inner.costs(query.clone())).await
            }
        }

        #[async_trait]
        impl<S: LogStore + ?Sized> LogStore for $layer<S> {
            async fn append(&self, id: ExecutionId, append: Append) -> Result<Appended, LogError> {
                match append.first_seq {
                    Some(_) => self.repeatable(|| self.inner.append(id, append.clone())).await,
                    None => self.single(|| self.inner.append(id, append.clone())).await,
                }
            }

            async fn sync(&self, id: ExecutionId) -> Result<Extent, LogError> {
                self.repeatable(|| self.inner.sync(id)).await
            }

            async fn seal(&self, id: ExecutionId, log_end: u64) -> Result<(), LogError> {
                self.repeatable(|| self.inner.seal(id, log_end)).await
            }

            async fn extent(&self, id: ExecutionId) -> Result<Extent, LogError> {
                self.repeatable(|| self.inner.extent(id)).await
            }

            async fn read(&self, id: ExecutionId, from_line: u64, max_bytes: usize) -> Result<Vec<Chunk>, LogError> {
                self.repeatable(|| self.inner.read(id, from_line, max_bytes)).await
            }

            async fn line_at(&self, id: ExecutionId, at: UnixMs) -> Result<u64, LogError> {
                self.repeatable(|| self.inner.line_at(id, at)).await
            }

            async fn raw_place(&self, id: ExecutionId, offset: u64) -> Result<Option<RawPlace>, LogError> {
                self.repeatable(|| self.inner.raw_place(id, offset)).await
            }

            async fn search(&self, id: ExecutionId, search: Search) -> Result<Found, LogError> {
                self.repeatable(|| self.inner.search(id, search.clone())).await
            }

            async fn prune(&self, before: UnixMs) -> Result<Pruned, LogError> {
                self.single(|| self.inner.prune(before)).await
            }
        }
    };
}

layer!(Faulty);
layer!(Retrying);

/// A port that faults can be put before.
pub trait Breakable: Send + Sync {
    /// The store behind the faults of this seed and a caller with patience.
    fn through_faults(store: Arc<Self>, seed: u64) -> Arc<Self>;

    /// The store behind a caller with patience alone: what fails is under it.
    fn with_patience(store: Arc<Self>) -> Arc<Self>;
}

macro_rules! breakable {
    ($port:ident) => {
        impl Breakable for dyn $port {
            fn through_faults(store: Arc<Self>, seed: u64) -> Arc<Self> {
                let faulty: Arc<Self> = Arc::new(Faulty::new(store, seed));
                Arc::new(Retrying::new(faulty))
            }

            fn with_patience(store: Arc<Self>) -> Arc<Self> {
                Arc::new(Retrying::new(store))
            }
        }
    };
}

breakable!(ExecutionStore);
breakable!(TransactionalStore);
breakable!(LogStore);

/// A harness whose store is met through faults.
pub struct ThroughFaults<H> {
    inner: H,
    seeds: Mutex<Chance>,
}

impl<H> ThroughFaults<H> {
    /// Puts faults before every handle that a harness gives out.
    pub fn new(inner: H, seed: u64) -> Self {
        Self { inner, seeds: Mutex::new(Chance::new(seed)) }
    }
}

#[async_trait]
impl<S: ?Sized + Breakable, H: Harness<S>> Harness<S> for ThroughFaults<H> {
    fn store(&self) -> Arc<S> {
        S::through_faults(self.inner.store(), self.seeds.lock().number())
    }

    async fn reopen(&self) {
        self.inner.reopen().await;
    }
}

/// A harness whose callers repeat what was not answered: for a store that fails by itself.
pub struct Patient<H> {
    inner: H,
}

impl<H> Patient<H> {
    /// Puts the patience before every handle that a harness gives out.
    pub const fn new(inner: H) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl<S: ?Sized + Breakable, H: Harness<S>> Harness<S> for Patient<H> {
    fn store(&self) -> Arc<S> {
        S::with_patience(self.inner.store())
    }

    async fn reopen(&self) {
        self.inner.reopen().await;
    }
}
