//! The state as plain maps, and the one way a step changes it. Whatever can be derived is derived by looking at everything:
//! there is no index here that could disagree.

use std::collections::BTreeMap;
use std::convert::Infallible;

use runvoy_model::chain::AuditKey;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command, Receipt};
use runvoy_model::cost::{Cost, CostKey};
use runvoy_model::decide::{decide, replay};
use runvoy_model::event::Event;
use runvoy_model::execution::{Execution, LockClaim, ReadyKey};
use runvoy_model::id::{ExecutionId, JobId, StepId, WorkerId};
use runvoy_model::job::{Job, Node, Phase};
use runvoy_model::limit::StepLimits;
use runvoy_model::lock::Lock;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_model::view::{PassOver, Standing, View, Writes};
use runvoy_model::worker::Presence;

use crate::job::Jobs;

/// Everything that is stored.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub limits: StepLimits,
    /// By arrival.
    pub executions: BTreeMap<u64, Execution>,
    pub arrivals: BTreeMap<ExecutionId, u64>,
    pub locks: BTreeMap<Name, Lock>,
    pub jobs: Jobs,
    /// By place.
    pub events: BTreeMap<u64, Event>,
    pub last_place: u64,
    /// By user and key.
    pub submits: BTreeMap<(String, String), Kept<Submitted>>,
    pub receipts: BTreeMap<StepId, Kept<Receipt>>,
    /// By kind and name, also those that were removed.
    pub records: BTreeMap<(Kind, String), Record>,
    /// Rises with every change of what a record says.
    pub authority: u64,
    /// When keys were last used, by their hash.
    pub key_uses: BTreeMap<[u8; 32], UnixMs>,
    /// What workers last said of themselves.
    pub workers: BTreeMap<WorkerId, Presence>,
    /// The counters of costs.
    pub costs: BTreeMap<CostKey, Cost>,
    /// The place in the event log up to which they count.
    pub counted: u64,
}

/// What a key was used for: what it made and the fingerprint of the request.
pub(crate) type Submitted = (Made, [u8; 32]);

/// Something that may be forgotten after a while.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    pub since: UnixMs,
    pub value: T,
}

impl State {
    /// One step: answered as before if it was applied before, else decided and applied.
    pub fn apply(&mut self, audit_key: &AuditKey, step: &Step, command: &Command) -> Answer {
        if let Some(receipt) = self.receipts.get(&step.id).map(|kept| kept.value.clone()) {
            return sure(replay(self, &receipt));
        }
        let (mut writes, mut answer) = sure(decide(self, step, command));
        writes.seal(audit_key, &mut answer);
        if let Some(value) = writes.receipt.take() {
            self.receipts.insert(step.id, Kept { since: step.at, value });
        }
        let is_change = matches!(command, Command::Change(change, _) if !change.is_note());
        self.authority += u64::from(is_change && !writes.records.is_empty());
        self.write(step, writes);
        answer
    }

    fn write(&mut self, step: &Step, writes: Writes) {
        for execution in writes.executions {
            let next = self.arrivals.len() as u64;
            let arrival = *self.arrivals.entry(execution.id).or_insert(next);
            self.executions.insert(arrival, execution);
        }
        self.locks.extend(writes.locks.into_iter().map(|lock| (lock.name.clone(), lock)));
        for record in writes.records {
            let key = (record.kind, record.name.clone());
            if record.body.is_some() || record.kind.leaves_tombstone() {
                self.records.insert(key, record);
            } else {
                self.records.remove(&key);
            }
        }
        self.jobs.lower(&writes.lowered);
        self.jobs.write(writes.jobs, writes.nodes, writes.edges, &writes.told_edges);
        for job in writes.forgotten {
            self.jobs.forget(job, self.limits.forgotten);
        }
        for event in writes.events {
            self.last_place += 1;
            self.events.insert(self.last_place, event);
        }
        if let Some((key, made)) = writes.key {
            self.submits.insert((key.user, key.key), Kept { since: step.at, value: (made, key.fingerprint) });
        }
    }

    pub fn get(&self, id: ExecutionId) -> Option<&Execution> {
        self.executions.get(self.arrivals.get(&id)?)
    }

    /// Who waits for a lock, in the order of their arrival.
    pub fn waiters(&self, lock: &Name) -> Vec<ExecutionId> {
        let waits =
            |execution: &&Execution| matches!(execution.lock, LockClaim::Waiting { .. }) && execution.spec.lock.as_ref() == Some(lock);
        self.executions.values().filter(waits).map(|execution| execution.id).collect()
    }
}

impl View for State {
    type Error = Infallible;

    fn limits(&self) -> StepLimits {
        self.limits
    }

    fn execution(&mut self, id: ExecutionId) -> Result<Option<Execution>, Infallible> {
        Ok(self.get(id).cloned())
    }

    fn lock(&mut self, name: &Name) -> Result<Option<Lock>, Infallible> {
        Ok(self.locks.get(name).cloned())
    }

    fn first_waiter(&mut self, lock: &Name) -> Result<Option<ExecutionId>, Infallible> {
        Ok(self.waiters(lock).first().copied())
    }

    fn submitted(&mut self, user: &str, key: &str) -> Result<Option<Submitted>, Infallible> {
        Ok(self.submits.get(&(user.to_owned(), key.to_owned())).map(|kept| kept.value.clone()))
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Infallible> {
        Ok(self.jobs.get(id).cloned())
    }

    fn node(&mut self, job: JobId, task: &str) -> Result<Option<Node>, Infallible> {
        Ok(self.jobs.node(job, task).cloned())
    }

    fn phase(&mut self, job: JobId, task: &str) -> Result<Option<Phase>, Infallible> {
        Ok(self.jobs.node(job, task).map(|node| node.phase))
    }

    fn staged(&mut self, job: JobId, batch: u64) -> Result<u32, Infallible> {
        let staged = self.jobs.nodes(job).filter(|node| Standing::Staged(batch).fits(node)).count();
        Ok(u32::try_from(staged).unwrap_or(u32::MAX))
    }

    fn open_parents(&mut self, job: JobId, task: &str) -> Result<Option<u32>, Infallible> {
        Ok(self.jobs.node(job, task).map(|node| node.open_parents))
    }

    fn nodes(&mut self, job: JobId, standing: Standing, max: usize) -> Result<Vec<Node>, Infallible> {
        Ok(self.jobs.nodes(job).filter(|node| standing.fits(node)).take(max).cloned().collect())
    }

    fn children(&mut self, job: JobId, parent: &str, max: usize) -> Result<Vec<Name>, Infallible> {
        Ok(self.jobs.children(job, parent).take(max).cloned().collect())
    }

    fn phases(&mut self, job: JobId) -> Result<Vec<(Name, Phase)>, Infallible> {
        let joined = self.jobs.nodes(job).filter(|node| node.phase != Phase::Staged);
        Ok(joined.map(|node| (node.task.clone(), node.phase)).collect())
    }

    fn record(&mut self, kind: Kind, name: &str) -> Result<Option<Record>, Infallible> {
        Ok(self.records.get(&(kind, name.to_owned())).cloned())
    }

    fn ready(
        &mut self,
        queues: &[Name],
        serves: &[Needs],
        now: UnixMs,
        max: usize,
        pass: &PassOver,
    ) -> Result<Vec<ExecutionId>, Infallible> {
        let mut keys: Vec<_> = self.executions.values().filter(|one| !pass.passes(one)).filter_map(Execution::ready_key).collect();
        keys.retain(|key| queues.contains(&key.queue) && serves.contains(&key.needs) && key.ready_at <= now);
        keys.sort_by_key(ReadyKey::place);
        Ok(keys.into_iter().take(max).map(|key| key.id).collect())
    }
}

fn sure<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}
