//! What a queue's terms say to a lease: a paused one hands nothing out, a limited one no more than it has permits for. Permits are taken here and
//! given back here, and nowhere else, each in the step that makes or ends the lease it belongs to.
//!
//! What holds of it: no more permits are taken than the limits said when each was taken; an execution has one at most; and one that is not with a
//! worker has none.

use std::collections::BTreeMap;

use super::Decision;
use super::registry::look;
use crate::command::Answer;
use crate::execution::Execution;
use crate::id::ExecutionId;
use crate::name::Name;
use crate::queue::{Bar, Permit, QueueTerms};
use crate::record::{Body, Kind, Record};
use crate::view::{PassOver, View, Writes};

/// The queues that a step has looked at, with what it takes of each.
#[derive(Default)]
pub(super) struct Gate {
    queues: BTreeMap<Name, Terms>,
}

struct Terms {
    terms: QueueTerms,
    /// The record of its permits, where it is limited.
    record: Option<Record>,
    permits: Vec<Permit>,
    /// Something was taken.
    is_changed: bool,
}

impl Gate {
    fn terms<V: View>(&mut self, view: &mut V, queue: &Name) -> Result<&mut Terms, V::Error> {
        if !self.queues.contains_key(queue) {
            let found = view.record(Kind::Queue, queue.as_str())?;
            let terms = found.as_ref().and_then(Record::queue).cloned().unwrap_or_else(|| QueueTerms::none(queue.clone()));
            let record = if terms.is_limited() { Some(look(view, Kind::Permits, queue.as_str())?) } else { None };
            let permits = record.as_ref().map(|record| record.permits().to_vec()).unwrap_or_default();
            self.queues.insert(queue.clone(), Terms { terms, record, permits, is_changed: false });
        }
        Ok(self.queues.get_mut(queue).expect("just filled"))
    }

    /// Why an execution must wait though a worker is there for it.
    pub fn bar<V: View>(&mut self, view: &mut V, execution: &Execution) -> Result<Option<Bar>, V::Error> {
        let known = self.terms(view, &execution.spec.queue)?;
        Ok(known.terms.bar(&known.permits, &execution.created_by))
    }

    /// Lets an execution through that nothing bars; says whether it holds a permit from now on.
    pub fn enter<V: View>(&mut self, view: &mut V, execution: &Execution) -> Result<bool, V::Error> {
        let known = self.terms(view, &execution.spec.queue)?;
        let is_limited = known.terms.is_limited();
        if is_limited {
            known.permits.push(Permit { execution: execution.id, user: execution.created_by.clone() });
            known.is_changed = true;
        }
        Ok(is_limited)
    }

    /// Whether a queue has a limit.
    pub fn is_limited<V: View>(&mut self, view: &mut V, queue: &Name) -> Result<bool, V::Error> {
        Ok(self.terms(view, queue)?.terms.is_limited())
    }

    /// Of those queues that were looked at and hand nothing out, this is one.
    pub fn is_closed(&self, queue: &Name) -> bool {
        self.queues.get(queue).is_some_and(|known| {
            let full = known.terms.concurrency.is_some_and(|limit| known.permits.len() >= limit as usize);
            known.terms.paused.is_some() || full
        })
    }

    /// Adds every user who has as many of a queue as one user may, in those that were looked at; whether one was new.
    pub fn pass_users(&self, pass: &mut PassOver) -> bool {
        let before = pass.users.len();
        for (queue, known) in &self.queues {
            let Some(limit) = known.terms.per_user else { continue };
            let mut held: BTreeMap<&str, usize> = BTreeMap::new();
            for permit in &known.permits {
                *held.entry(&permit.user).or_default() += 1;
            }
            for (user, _) in held.into_iter().filter(|(_, held)| *held >= limit as usize) {
                if !pass.has_user(queue, user) {
                    pass.users.push((queue.clone(), user.to_owned()));
                }
            }
        }
        pass.users.len() > before
    }

    /// Writes what was taken.
    pub fn write(self, writes: &mut Writes) {
        for known in self.queues.into_values().filter(|known| known.is_changed) {
            let mut record = known.record.expect("what is limited has a record of its permits");
            record.body = Some(Body::Permits(known.permits));
            writes.put_record(record);
        }
    }
}

/// Ends an execution's lease. The permit that it held is free in the same step.
pub(super) fn end_lease<V: View>(view: &mut V, execution: &mut Execution, writes: &mut Writes) -> Result<(), V::Error> {
    if execution.lease.take().is_some_and(|lease| lease.permit) {
        give_back(view, &execution.spec.queue, execution.id, writes)?;
    }
    Ok(())
}

/// Frees a permit that somebody holds who is with no worker, or is not there. Between the look that found it and this step it may have been taken anew.
pub(super) fn free<V: View>(view: &mut V, queue: &Name, holder: ExecutionId) -> Decision<V::Error> {
    let execution = view.execution(holder)?;
    let is_held = execution.is_some_and(|execution| execution.lease.is_some_and(|lease| lease.permit) && execution.spec.queue == *queue);
    let mut writes = Writes::default();
    if is_held || !give_back(view, queue, holder, &mut writes)? {
        return Ok((Writes::default(), Answer::Unchanged));
    }
    let record = Box::new(writes.records.last().expect("just written").clone());
    Ok((writes, Answer::Record { record, repeated: false }))
}

/// Frees the permit of an execution; whether it had one. What this step wrote of the record before counts.
pub(super) fn give_back<V: View>(view: &mut V, queue: &Name, execution: ExecutionId, writes: &mut Writes) -> Result<bool, V::Error> {
    let without = |record: &Record| -> Option<Vec<Permit>> {
        let left: Vec<Permit> = record.permits().iter().filter(|permit| permit.execution != execution).cloned().collect();
        (left.len() < record.permits().len()).then_some(left)
    };
    let written = writes.records.iter_mut().find(|record| record.kind == Kind::Permits && record.name == queue.as_str());
    if let Some(written) = written {
        let left = without(written);
        let had = left.is_some();
        written.body = left.map(Body::Permits).or(written.body.take());
        return Ok(had);
    }
    let Some(mut record) = view.record(Kind::Permits, queue.as_str())? else { return Ok(false) };
    let Some(left) = without(&record) else { return Ok(false) };
    // It stays when it is empty: its version must go on rising, or a store that goes by it could take the next one for this.
    record.body = Some(Body::Permits(left));
    writes.put_record(record);
    Ok(true)
}
