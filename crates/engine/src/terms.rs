//! The terms of queues: pausing them and limiting them, and what that means for who waits.

use runvoy_model::change::Change;
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::queue::{MOST_PERMITS, MOST_REASON_BYTES, Permit, QueueTerms, QueueUpdate};
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Action;
use runvoy_model::status::{WaitCode, WaitingFor};
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
        let missing = || EngineError::NotFound { what: format!("terms of queue {}", name.escape_default()) };
        let change = Change::RemoveQueue(Name::new(name).map_err(|_| missing())?);
        self.ports.store.change(self.user_step(caller, "queues.remove"), change, None).await?;
        self.hub.work();
        Ok(())
    }

    /// What an execution waits for, also where that is the terms of its queue. Where these cannot be read, what else is known is told.
    pub async fn waits_for(&self, execution: &Execution) -> Option<WaitingFor> {
        let waiting = self.waiting_for(execution)?;
        if matches!(waiting.code, WaitCode::Lock | WaitCode::Backoff) {
            return Some(waiting);
        }
        match self.waits_by_terms(execution).await {
            Ok(by_terms) => by_terms.or(Some(waiting)),
            Err(error) => {
                tracing::warn!(execution = %execution.id, %error, "the terms of a queue cannot be read");
                Some(waiting)
            }
        }
    }

    async fn waits_by_terms(&self, execution: &Execution) -> Result<Option<WaitingFor>, EngineError> {
        let queues = self.all(Kind::Queue).await?;
        match queues.iter().filter_map(Record::queue).find(|terms| terms.name == execution.spec.queue) {
            Some(terms) => Ok(terms.waiting_for(&self.permits(terms).await?, &execution.created_by)),
            None => Ok(None),
        }
    }

    async fn permits(&self, terms: &QueueTerms) -> Result<Vec<Permit>, EngineError> {
        let record = self.ports.records.record(Kind::Permits, terms.name.as_str()).await?;
        Ok(record.map(|record| record.permits().to_vec()).unwrap_or_default())
    }
}
