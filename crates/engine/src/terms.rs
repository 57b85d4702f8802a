//! The terms of queues: pausing them and limiting them, and what that means for who waits.

use runvoy_model::change::Change;
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::name::Name;
use runvoy_model::queue::{MOST_PERMITS, MOST_REASON_BYTES, Permit, QueueTerms, QueueUpdate};
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Action;
use runvoy_model::status::{Status, WaitCode, WaitingFor};
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;

const PUT: &str = "queues.put";

/// A queue's terms and how many of its places are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// What holds of it.
    pub terms: QueueTerms,
    /// What is with workers under its limit.
    pub permits: Vec<Permit>,
}

/// What holds up some executions, as it was looked at: the terms of queues with what is under way in them, and who holds which lock.
#[derive(Debug, Default)]
pub struct Bars {
    terms: Vec<(QueueTerms, Vec<Permit>)>,
    locks: Vec<(Name, String)>,
}

impl Bars {
    fn by_terms(&self, execution: &Execution) -> Option<WaitingFor> {
        let (terms, permits) = self.terms.iter().find(|(terms, _)| terms.name == execution.spec.queue)?;
        terms.waiting_for(permits, &execution.created_by)
    }

    fn by_lock(&self, execution: &Execution) -> Option<WaitingFor> {
        let wanted = execution.spec.lock.as_ref()?;
        let (lock, held_by) = self.locks.iter().find(|(lock, _)| lock == wanted)?;
        Some(WaitingFor { code: WaitCode::Lock, message: format!("lock {lock}, held by {held_by}") })
    }
}

impl Engine {
    /// The terms of every queue that has some, by name.
    pub async fn queue_terms(&self, caller: &Caller) -> Result<Vec<QueueState>, EngineError> {
        caller.may(Action::ReadQueues)?;
        let mut queues = Vec::new();
        for terms in self.all(Kind::Queue).await?.iter().filter_map(Record::queue) {
            queues.push(QueueState { terms: terms.clone(), permits: self.permits(terms).await? });
        }
        Ok(queues)
    }

    /// Changes the terms of a queue; what is absent stays.
    pub async fn put_queue(&self, caller: &Caller, update: QueueUpdate, key: Option<&str>) -> Result<QueueTerms, EngineError> {
        caller.may(Action::ManageQueues)?;
        for (field, limit) in [("concurrency", update.concurrency), ("per_user", update.per_user)] {
            if limit.flatten().is_some_and(|limit| !(1..=MOST_PERMITS).contains(&limit)) {
                return Err(EngineError::invalid(field, format!("must be from 1 to {MOST_PERMITS}; to hand out nothing, pause the queue")));
            }
        }
        if update.reason.as_ref().is_some_and(|reason| reason.len() > MOST_REASON_BYTES || reason.chars().any(char::is_control)) {
            return Err(EngineError::invalid("reason", format!("at most {MOST_REASON_BYTES} bytes, without control characters")));
        }
        if update.reason.is_some() && update.paused != Some(true) {
            return Err(EngineError::invalid("reason", "is for a pause"));
        }
        let asked = json!({
            "name": update.name,
            "paused": update.paused,
            "reason": update.reason,
            "concurrency": update.concurrency,
            "per_user": update.per_user,
        });
        let submit = submit_key(caller, key, PUT, &asked)?;
        let name = update.name.clone();
        let (record, _) = self.ports.store.change(self.user_step(caller, PUT), Change::PutQueue(update), submit).await?;
        // What was paused or full may hand something out now.
        self.hub.work();
        Ok(record.queue().cloned().unwrap_or_else(|| QueueTerms::none(name)))
    }

    /// Takes a queue's terms away: it hands out whatever it has.
    pub async fn remove_queue(&self, caller: &Caller, name: &str) -> Result<(), EngineError> {
        caller.may(Action::ManageQueues)?;
        let missing = || EngineError::NotFound { what: format!("limits of queue {}", name.escape_default()) };
        let change = Change::RemoveQueue(Name::new(name).map_err(|_| missing())?);
        self.ports.store.change(self.user_step(caller, "queues.remove"), change, None).await?;
        self.hub.work();
        Ok(())
    }

    /// What an execution waits for, also where that is the terms of its queue.
    pub async fn waits_for(&self, execution: &Execution) -> Option<WaitingFor> {
        let bars = self.bars(std::slice::from_ref(execution)).await;
        self.waits_behind(&bars, execution)
    }

    /// The same, behind what was looked at before.
    pub fn waits_behind(&self, bars: &Bars, execution: &Execution) -> Option<WaitingFor> {
        let waiting = self.waiting_for(execution)?;
        let known = match waiting.code {
            WaitCode::Lock => bars.by_lock(execution),
            WaitCode::Backoff => None,
            _ => bars.by_terms(execution),
        };
        known.or(Some(waiting))
    }

    /// The terms and locks that these wait for, each looked at once. Where they cannot be read, what else is known is told.
    pub async fn bars(&self, executions: &[Execution]) -> Bars {
        self.read_bars(executions).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what executions wait for cannot be read");
            Bars::default()
        })
    }

    async fn read_bars(&self, executions: &[Execution]) -> Result<Bars, EngineError> {
        let waits = |execution: &&Execution| execution.status == Status::Pending;
        let mut bars = Bars::default();
        if !executions.iter().any(|execution| waits(&execution)) {
            return Ok(bars);
        }
        for terms in self.all(Kind::Queue).await?.iter().filter_map(Record::queue) {
            if executions.iter().filter(waits).any(|execution| execution.spec.queue == terms.name) {
                bars.terms.push((terms.clone(), self.permits(terms).await?));
            }
        }
        if executions.iter().any(|execution| matches!(execution.lock, LockClaim::Waiting { .. })) {
            let held = self.ports.store.locks().await?.into_iter().filter_map(|line| Some((line.lock.name, line.lock.holder?.held_by)));
            bars.locks = held.collect();
        }
        Ok(bars)
    }

    async fn permits(&self, terms: &QueueTerms) -> Result<Vec<Permit>, EngineError> {
        let record = self.ports.records.record(Kind::Permits, terms.name.as_str()).await?;
        Ok(record.map(|record| record.permits().to_vec()).unwrap_or_default())
    }
}
