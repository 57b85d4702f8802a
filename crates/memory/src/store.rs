//! Executions, locks, events, users and keys behind one mutex. A clone shares the same state, as another connection would.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::chain::AuditKey;
use runvoy_model::command::{Answer, Command};
use runvoy_model::event::{Event, EventType};
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::identity::{IdentityStore, Key, NewUser, User};
use runvoy_ports::store::{Counts, EventQuery, ExecutionStore, ListQuery, LockLine, OpenLease, Retention, StoreError, StoredEvent};

use crate::state::State;

/// The transactional store in memory.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    audit_key: AuditKey,
    state: Arc<Mutex<State>>,
}

impl MemoryStore {
    /// An empty store whose chains are made with this key.
    pub fn new(audit_key: AuditKey) -> Self {
        Self { audit_key, state: Arc::default() }
    }
}

#[async_trait]
impl ExecutionStore for MemoryStore {
    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
        Ok(self.state.lock().apply(&self.audit_key, &step, &command))
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

    async fn next_ready(&self, queues: &[Name]) -> Result<Option<UnixMs>, StoreError> {
        let state = self.state.lock();
        let ready = state.executions.values().filter_map(Execution::ready_key);
        Ok(ready.filter(|key| queues.contains(&key.queue)).map(|key| key.ready_at).min())
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
        && query.since.is_none_or(|since| execution.submitted_at >= since)
        && query.until.is_none_or(|until| execution.submitted_at < until)
}

fn asked_for(query: &EventQuery, event: &Event) -> bool {
    query.entity.as_ref().is_none_or(|entity| event.entity == *entity)
        && query.kind.is_none_or(|kind| event.kind == kind)
        && query.from.is_none_or(|from| event.at >= from)
        && query.to.is_none_or(|to| event.at < to)
}

#[async_trait]
impl IdentityStore for MemoryStore {
    async fn create_first_user(&self, step: Step, user: NewUser) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        Ok(if state.users.is_empty() { create(&mut state, &step, user) } else { made_before(&state, &user) })
    }

    async fn create_user(&self, step: Step, user: NewUser) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        Ok(if state.users.contains_key(&user.email) { made_before(&state, &user) } else { create(&mut state, &step, user) })
    }

    async fn key(&self, hash: [u8; 32]) -> Result<Option<(Key, User)>, StoreError> {
        let state = self.state.lock();
        let key = state.keys.get(&hash);
        Ok(key.and_then(|key| Some((key.clone(), state.users.get(&key.email)?.clone()))))
    }

    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError> {
        if let Some(key) = self.state.lock().keys.get_mut(&hash) {
            key.last_used = Some(UnixMs(at.0 - at.0.rem_euclid(60_000)));
        }
        Ok(())
    }

    async fn users(&self) -> Result<Vec<User>, StoreError> {
        Ok(self.state.lock().users.values().cloned().collect())
    }
}

fn create(state: &mut State, step: &Step, user: NewUser) -> bool {
    let NewUser { email, role, key_hash, key_prefix } = user;
    let key = Key {
        hash: key_hash,
        prefix: key_prefix,
        email: email.clone(),
        created_at: step.at,
        revoked: false,
        expires_at: None,
        last_used: None,
    };
    state.keys.insert(key_hash, key);
    state.users.insert(email.clone(), User { email, role, created_at: step.at, revoked: false });
    true
}

/// A repeat of the step that made this very user with this very key is answered as before: a key's hash names one call.
fn made_before(state: &State, user: &NewUser) -> bool {
    state.keys.get(&user.key_hash).is_some_and(|key| key.email == user.email)
}
