//! A store in memory of which some cannot be read any more, and in which others write too.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_memory::MemoryStore;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, StepId};
use runvoy_model::limit::StepLimits;
use runvoy_model::name::Name;
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use runvoy_ports::store::{
    Counts, EventPage, EventQuery, ExecutionStore, Leaf, ListQuery, LockLine, OpenLease, Retention, Sight, StoreError, StoredEvent,
};

/// What others write right after a step.
pub type Others = Box<dyn Fn(&Command) -> Vec<Command> + Send + Sync>;

pub struct Torn {
    inner: Arc<MemoryStore>,
    pub others: OnceLock<Others>,
    /// What leases could not read.
    pub met: Mutex<Vec<ExecutionId>>,
    /// Those that cannot be given up or ended.
    pub stuck: Mutex<BTreeSet<ExecutionId>>,
    /// Those of whose specs only an outline is shown.
    pub outlined: Mutex<BTreeSet<ExecutionId>>,
}

impl Torn {
    pub fn new(inner: Arc<MemoryStore>) -> Arc<Self> {
        Arc::new(Self { inner, others: OnceLock::new(), met: Mutex::default(), stuck: Mutex::default(), outlined: Mutex::default() })
    }

    fn shown(&self, mut execution: Execution) -> Execution {
        if self.outlined.lock().contains(&execution.id) {
            let spec = execution.spec;
            execution.spec = Spec { task: spec.task, ..Spec::lost(spec.queue, spec.priority) };
        }
        execution
    }
}

#[async_trait]
impl ExecutionStore for Torn {
    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
        let ended = match &command {
            Command::GiveUp(id, _) => Some(id),
            Command::EndAttempt(ended) => Some(&ended.fence.execution),
            _ => None,
        };
        if ended.is_some_and(|id| self.stuck.lock().contains(id)) {
            return Err(StoreError::Damaged("its task is torn too".into()));
        }
        let others = self.others.get().map(|others| others(&command)).unwrap_or_default();
        let answer = self.inner.apply(step.clone(), command).await?;
        for (place, command) in others.into_iter().enumerate() {
            let mut id = *step.id.as_bytes();
            id[15] = 0xff - u8::try_from(place).expect("few");
            self.inner.apply(Step { id: StepId::from_bytes(id), ..step.clone() }, command).await?;
        }
        Ok(answer)
    }

    fn step_limits(&self) -> StepLimits {
        self.inner.step_limits()
    }

    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        Ok(self.inner.get(id).await?.map(|execution| self.shown(execution)))
    }

    async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
        self.inner.find(digits, max).await
    }

    async fn made_by(&self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, StoreError> {
        self.inner.made_by(user, key).await
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
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
        self.inner.locks().await
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.inner.events(query).await
    }

    async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, StoreError> {
        self.inner.seen_events(query, sight).await
    }

    async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, StoreError> {
        self.inner.leaves(after, max).await
    }

    async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError> {
        self.inner.queues().await
    }

    async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        self.inner.backlogs().await
    }

    async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError> {
        Ok(self.inner.dead(query).await?.into_iter().map(|execution| self.shown(execution)).collect())
    }

    async fn dead_count(&self, query: DeadQuery) -> Result<u64, StoreError> {
        self.inner.dead_count(query).await
    }

    fn unreadable(&self, max: usize) -> Vec<(ExecutionId, String)> {
        let mut met = self.met.lock();
        let some = met.len().min(max);
        met.drain(..some).map(|id| (id, "no blob".to_owned())).collect()
    }

    async fn prune(&self, retention: Retention) -> Result<usize, StoreError> {
        self.inner.prune(retention).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.inner.counts().await
    }
}
