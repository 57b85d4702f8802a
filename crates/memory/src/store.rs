//! Executions, locks, records and events behind one mutex. A clone shares the same state, as another connection would.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::chain::AuditKey;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::event::{Event, EventType};
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::id::ExecutionId;
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::limit::StepLimits;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::status::Status;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use runvoy_ports::record::{IncidentMark, IncidentQuery, RecordStore, incident_counts};
use runvoy_ports::store::{
    Counts, EventPage, EventQuery, ExecutionStore, Leaf, ListQuery, LockLine, OpenLease, Retention, Sight, StoreError, StoredEvent,
};

use crate::queue;
use crate::state::State;

/// The transactional store in memory.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    pub(crate) audit_key: AuditKey,
    pub(crate) state: Arc<Mutex<State>>,
}

impl MemoryStore {
    /// An empty store whose chains are made with this key.
    pub fn new(audit_key: AuditKey) -> Self {
        Self { audit_key, state: Arc::default() }
    }

    /// The same with steps as small as another store's, which it is compared with.
    #[must_use]
    pub fn with_limits(self, limits: StepLimits) -> Self {
        self.state.lock().limits = limits;
        self
    }

    /// Every record there is, also those that were removed.
    pub fn all_records(&self) -> Vec<Record> {
        self.state.lock().records.values().cloned().collect()
    }
}

#[async_trait]
impl ExecutionStore for MemoryStore {
    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
        Ok(self.state.lock().apply(&self.audit_key, &step, &command))
    }

    fn step_limits(&self) -> StepLimits {
        self.state.lock().limits
    }

    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        Ok(self.state.lock().get(id).cloned())
    }

    async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let digits = digits.to_ascii_lowercase();
        let matches = |id: &&ExecutionId| {
            let text = id.to_string();
            text.starts_with(&digits) || text.ends_with(&digits)
        };
        Ok(self.state.lock().arrivals.keys().filter(matches).take(max).copied().collect())
    }

    async fn made_by(&self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, StoreError> {
        Ok(self.state.lock().submits.get(&(user.to_owned(), key.to_owned())).map(|kept| kept.value.clone()))
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
        let state = self.state.lock();
        let end = query.after.map_or(u64::MAX, |after| state.arrivals.get(&after).copied().unwrap_or(0));
        let newest_first = state.executions.range(..end).rev().map(|(_, execution)| execution);
        Ok(newest_first.filter(|execution| listed(&query, execution)).take(query.limit).cloned().collect())
    }

    async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
        let open = |execution: &Execution| {
            let lease = execution.lease.clone()?;
            Some(OpenLease { execution: execution.id, status: execution.status, lease })
        };
        Ok(self.state.lock().executions.values().filter_map(open).collect())
    }

    async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError> {
        let ended = |execution: &&Execution| matches!(execution.lock, LockClaim::Waiting { until } if until <= at);
        Ok(self.state.lock().executions.values().filter(ended).map(|execution| execution.id).collect())
    }

    async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError> {
        let state = self.state.lock();
        let ready = state.executions.values().filter_map(Execution::ready_key);
        let mine = ready.filter(|key| queues.contains(&key.queue) && serves.contains(&key.needs));
        Ok(mine.map(|key| key.ready_at).min())
    }

    async fn locks(&self) -> Result<Vec<LockLine>, StoreError> {
        let state = self.state.lock();
        let held = state.locks.values().filter(|lock| lock.holder.is_some());
        Ok(held.map(|lock| LockLine { lock: lock.clone(), waiters: state.waiters(&lock.name) }).collect())
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError> {
        let state = self.state.lock();
        let stored = |(place, event): (&u64, &Event)| StoredEvent { place: *place, event: event.clone() };
        let matching = state.events.iter().filter(|(_, event)| asked_for(&query, event));
        Ok(if query.descending {
            let before = query.after.unwrap_or(u64::MAX);
            matching.rev().filter(|(place, _)| **place < before).take(query.limit).map(stored).collect()
        } else {
            let after = query.after.unwrap_or(0);
            matching.filter(|(place, _)| **place > after).take(query.limit).map(stored).collect()
        })
    }

    async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, StoreError> {
        Ok(crate::event::seen(&self.state.lock(), &query, &sight))
    }

    async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, StoreError> {
        let state = self.state.lock();
        let further = state.events.range(after.saturating_add(1)..).take(max);
        Ok(further.map(|(place, event)| Leaf { place: *place, id: event.id, kind: event.kind, mac: event.mac }).collect())
    }

    async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError> {
        Ok(queue::counts(self.state.lock().executions.values()))
    }

    async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        Ok(queue::backlogs(self.state.lock().executions.values()))
    }

    async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError> {
        Ok(queue::dead(self.state.lock().executions.values(), &query))
    }

    async fn dead_count(&self, query: DeadQuery) -> Result<u64, StoreError> {
        Ok(queue::dead(self.state.lock().executions.values(), &query).len() as u64)
    }

    async fn prune(&self, retention: Retention) -> Result<usize, StoreError> {
        let mut left = retention.max_rows;
        let mut take = |old: bool| {
            let taken = old && left > 0;
            left -= usize::from(taken);
            taken
        };
        let mut state = self.state.lock();
        state.events.retain(|_, event| !take(event.kind == EventType::TaskHeartbeat && event.at < retention.heartbeats_before));
        state.receipts.retain(|_, receipt| !take(receipt.since < retention.receipts_before));
        state.submits.retain(|_, submit| !take(submit.since < retention.receipts_before));
        Ok(retention.max_rows - left)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let state = self.state.lock();
        let count = |wanted: &dyn Fn(Status) -> bool| state.executions.values().filter(|execution| wanted(execution.status)).count() as u64;
        Ok(Counts {
            pending: count(&|status| status == Status::Pending),
            active: count(&|status| matches!(status, Status::Starting | Status::Running | Status::Terminating)),
            executions: count(&|_| true),
            events: state.events.len() as u64,
            bytes: 0,
        })
    }
}

fn listed(query: &ListQuery, execution: &Execution) -> bool {
    let owned = |owner: &String| execution.created_by == *owner || execution.owned_by.contains(owner);
    (query.statuses.is_empty() || query.statuses.contains(&execution.status))
        && query.owner.as_ref().is_none_or(owned)
        && query.created_by.as_ref().is_none_or(|user| execution.created_by == *user)
        && query.lock.as_ref().is_none_or(|lock| execution.spec.lock.as_ref() == Some(lock))
        && query.queue.as_ref().is_none_or(|queue| execution.spec.queue == *queue)
        && query.job.is_none_or(|job| execution.spec.task.as_ref().is_some_and(|task| task.job == job))
        && query.since.is_none_or(|since| execution.submitted_at >= since)
        && query.until.is_none_or(|until| execution.submitted_at < until)
}

pub(crate) fn asked_for(query: &EventQuery, event: &Event) -> bool {
    query.entity.as_ref().is_none_or(|entity| event.entity == *entity)
        && query.kind.is_none_or(|kind| event.kind == kind)
        && query.from.is_none_or(|from| event.at >= from)
        && query.to.is_none_or(|to| event.at < to)
}

#[async_trait]
impl RecordStore for MemoryStore {
    async fn record(&self, kind: Kind, name: &str) -> Result<Option<Record>, StoreError> {
        let record = self.state.lock().records.get(&(kind, name.to_owned())).cloned();
        Ok(record.filter(|record| record.body.is_some()))
    }

    async fn records(&self, kind: Kind) -> Result<Vec<Record>, StoreError> {
        let state = self.state.lock();
        let live = state.records.values().filter(|record| record.kind == kind && record.body.is_some());
        Ok(live.cloned().collect())
    }

    async fn incidents(&self, query: IncidentQuery) -> Result<Vec<IncidentMark>, StoreError> {
        Ok(query.marks(self.state.lock().records.values()))
    }

    async fn incident_counts(&self) -> Result<Vec<(Phase, IncidentKind, u64)>, StoreError> {
        Ok(incident_counts(self.state.lock().records.values()))
    }

    fn authority(&self) -> Option<u64> {
        Some(self.state.lock().authority)
    }

    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError> {
        let minute = UnixMs(at.0 - at.0.rem_euclid(60_000));
        self.state.lock().key_uses.entry(hash).and_modify(|known| *known = minute.max(*known)).or_insert(minute);
        Ok(())
    }

    async fn key_uses(&self, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, StoreError> {
        let state = self.state.lock();
        Ok(hashes.iter().map(|hash| state.key_uses.get(hash).copied()).collect())
    }
}
