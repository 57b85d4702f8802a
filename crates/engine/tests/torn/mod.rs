//! A store in memory of which some cannot be read any more, and in which others write too.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_conformance::tap::{ExecutionTap, Tapped};
use runvoy_memory::MemoryStore;
use runvoy_model::command::{Answer, Command};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, StepId};
use runvoy_model::spec::Spec;
use runvoy_model::step::Step;
use runvoy_ports::queue::DeadQuery;
use runvoy_ports::store::{ExecutionStore, StoreError};

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
    pub fn over(inner: Arc<MemoryStore>) -> Arc<Tapped<Self>> {
        let (met, stuck, outlined) = Default::default();
        Arc::new(Tapped(Self { inner, others: OnceLock::new(), met, stuck, outlined }))
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
impl ExecutionTap for Torn {
    fn inner(&self) -> &dyn ExecutionStore {
        &*self.inner
    }

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

    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        Ok(self.inner.get(id).await?.map(|execution| self.shown(execution)))
    }

    async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError> {
        Ok(self.inner.dead(query).await?.into_iter().map(|execution| self.shown(execution)).collect())
    }

    fn unreadable(&self, max: usize) -> Vec<(ExecutionId, String)> {
        let mut met = self.met.lock();
        let some = met.len().min(max);
        met.drain(..some).map(|id| (id, "no blob".to_owned())).collect()
    }
}
