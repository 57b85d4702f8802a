//! What a decision writes, as one transaction: every item that is written only if it is still as the decision saw it, and everything that was
//! only looked at checked in the same breath. So a step is as if nobody else had been there.

use std::collections::{BTreeMap, HashMap};

use runvoy_model::command::Command;
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::id::{ExecutionId, JobId, StepId};
use runvoy_model::job::Node;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record, owner_record};
use runvoy_model::step::Step;
use runvoy_model::view::Writes;

use crate::day::Day;
use crate::desk::{Desk, Found, Need};
use crate::dynamo::fill_random;
use crate::event::journal::{follow, journal_items};
use crate::fault::Fault;
use crate::item::s;
use crate::store::DynamoStore;
use crate::table::Table;
use crate::transaction::{Transaction, Was};
use crate::{execution, job, limit, lock, mark, node, record};

impl DynamoStore {
    /// Writes all of it, or nothing: `Conflict` if anything has changed since it was looked at.
    pub(crate) async fn commit(&self, step: &Step, command: &Command, desk: &Desk, writes: &Writes) -> Result<(), Fault> {
        let executions = last_by_id(writes);
        self.prepare(desk, &executions, writes).await?;
        let mut transaction = Transaction::new(&self.dynamo);
        let named = named(step, writes)?;
        let tickets = write_locks(&mut transaction, desk, &executions, writes)?;
        for execution in &executions {
            let mut item = execution::to_item(execution, &self.config);
            if let Some(lost) = desk.seen_execution(execution.id).and_then(|seen| seen.lost.as_ref()) {
                lost.keep(&mut item);
            }
            item.insert("step_id".to_owned(), s(named.to_string()));
            if let Some(ticket) = tickets.get(&execution.id) {
                item.insert("ticket".to_owned(), s(ticket));
            }
            transaction.put(Table::Executions, item, was_execution(desk, execution)?);
        }
        for record in &writes.records {
            write_record(&mut transaction, desk, record)?;
        }
        self.write_jobs(&mut transaction, desk, writes, named).await?;
        let mut journal = journal_items(named, step.at, &writes.events);
        follow(&mut journal, &desk.steps_before());
        for item in journal {
            transaction.put(Table::Events, item, Was::Absent);
        }
        if let Some((key, made)) = &writes.key {
            transaction.put(Table::Marks, mark::submitted_item(step.at, key, made), Was::Absent);
        }
        if let Some(receipt) = &writes.receipt {
            transaction.put(Table::Marks, mark::receipt_item(step.id, step.at, receipt), Was::Absent);
        }
        check_rest(&mut transaction, desk, step, command, writes);
        self.dynamo.transact(transaction.into_writes()).await
    }

    /// What must be there before the step is: what is too large for an item, and the days and queues that lists go by.
    async fn prepare(&self, desk: &Desk, executions: &[&Execution], writes: &Writes) -> Result<(), Fault> {
        for execution in executions.iter().filter(|execution| desk.seen_execution(execution.id).is_none()) {
            execution::store_large(execution, &*self.blobs).await?;
            self.lists.note_new(execution).await?;
        }
        for job in writes.jobs.iter().filter(|job| desk.seen_job(job.id).flatten().is_none()) {
            let day = Day::of_id(job.id.0);
            self.lists.known.add_day(&self.dynamo, job::list::DAYS, day, false).await?;
            self.lists.known.add_day(&self.dynamo, &job::list::user_days(&job.created_by), day, false).await?;
        }
        for written in &writes.records {
            record::store_large(written, &*self.blobs).await?;
        }
        for written in &writes.nodes {
            node::store_large(written, desk.seen_node(written.job, &written.task), &*self.blobs).await?;
        }
        Ok(())
    }

    async fn write_jobs(&self, transaction: &mut Transaction<'_>, desk: &Desk, writes: &Writes, named: StepId) -> Result<(), Fault> {
        let mut touched: BTreeMap<JobId, ()> = BTreeMap::new();
        let mut places = Places::new(desk, &writes.nodes);
        for new in &writes.nodes {
            touched.insert(new.job, ());
            let mut item = node::to_item(new);
            node::keep_lost(&self.dynamo, new, &mut item).await?;
            transaction.put(Table::Jobs, item, Was::Anything);
        }
        for (job, task, open_parents) in &writes.lowered {
            touched.insert(*job, ());
            transaction.set(Table::Jobs, node::key(*job, task), "open_parents", crate::item::n(open_parents));
        }
        for (job, parent, child) in &writes.edges {
            touched.insert(*job, ());
            transaction.put(Table::Jobs, node::edge_item(*job, parent, child, places.of(*job, child)?), Was::Anything);
        }
        for (job, parent, child) in &writes.told_edges {
            touched.insert(*job, ());
            transaction.delete(Table::Jobs, node::edge_key(*job, parent, places.of(*job, child)?), Was::Anything);
        }
        for id in &writes.forgotten {
            touched.insert(*id, ());
            let (keys, is_all) = node::first_keys(&self.dynamo, *id, limit::STEP.forgotten).await?;
            for key in keys {
                transaction.delete(Table::Jobs, key, Was::Anything);
            }
            if is_all {
                transaction.delete(Table::Jobs, job::key(*id), was_job(desk, *id)?);
            }
        }
        for written in &writes.jobs {
            let was = was_job(desk, written.id)?;
            let mut item = job::to_item(written, next_guard(was), &self.config);
            item.insert("step_id".to_owned(), s(named.to_string()));
            transaction.put(Table::Jobs, item, was);
        }
        // Whatever changes under a job raises its guard, so that whoever looked at it before looks again.
        for id in touched.into_keys() {
            let was = was_job(desk, id)?;
            if !transaction.holds(Table::Jobs, &job::key(id)) && was != Was::Absent {
                transaction.raise(Table::Jobs, job::key(id), "guard", was);
            }
        }
        Ok(())
    }
}

/// What the step's events are called in the journal. A step without a receipt may be taken again and write something else then, while the first is
/// still in the journal: it gets another name of the same time.
fn named(step: &Step, writes: &Writes) -> Result<StepId, Fault> {
    if writes.receipt.is_some() {
        return Ok(step.id);
    }
    let mut bytes = *step.id.as_bytes();
    fill_random(&mut bytes[8..])?;
    Ok(StepId::from_bytes(bytes))
}

/// Where tasks are, of those that the step touches.
struct Places<'d> {
    desk: &'d Desk,
    new: HashMap<(JobId, &'d Name), u32>,
}

impl<'d> Places<'d> {
    fn new(desk: &'d Desk, nodes: &'d [Node]) -> Self {
        Self { desk, new: nodes.iter().map(|node| ((node.job, &node.task), node.place)).collect() }
    }

    fn of(&mut self, job: JobId, task: &Name) -> Result<u32, Fault> {
        let known = self.new.get(&(job, task)).copied();
        let known = known.or_else(|| self.desk.seen_place(job, task));
        known.ok_or_else(|| Fault::Damaged(format!("task {task} of job {job} is named, and was not read")))
    }
}

/// Each execution once, as it is at the end of the step.
fn last_by_id(writes: &Writes) -> Vec<&Execution> {
    let mut last: BTreeMap<ExecutionId, &Execution> = BTreeMap::new();
    for execution in &writes.executions {
        last.insert(execution.id, execution);
    }
    last.into_values().collect()
}

fn was_execution(desk: &Desk, written: &Execution) -> Result<Was, Fault> {
    match desk.seen_execution(written.id) {
        Some(seen) => Ok(Was::At("version", seen.execution.version)),
        None if written.version == 1 => Ok(Was::Absent),
        None => Err(Fault::Damaged(format!("execution {} was changed without being read first", written.id))),
    }
}

fn was_job(desk: &Desk, id: JobId) -> Result<Was, Fault> {
    match desk.seen_job(id) {
        Some(Some(seen)) => Ok(Was::At("guard", seen.guard)),
        Some(None) => Ok(Was::Absent),
        None => Err(Fault::Damaged(format!("job {id} was changed without being read first"))),
    }
}

fn next_guard(was: Was) -> u64 {
    match was {
        Was::At(_, guard) => guard + 1,
        Was::Absent | Was::Anything => 1,
    }
}

/// Locks and tickets; gives the tickets of those who wait.
fn write_locks(
    transaction: &mut Transaction<'_>,
    desk: &Desk,
    executions: &[&Execution],
    writes: &Writes,
) -> Result<HashMap<ExecutionId, String>, Fault> {
    let mut tickets = HashMap::new();
    let mut lines: BTreeMap<&Name, usize> = BTreeMap::new();
    for execution in executions {
        let Some(name) = &execution.spec.lock else { continue };
        let held = desk.seen_execution(execution.id).and_then(|seen| seen.ticket.as_ref());
        let waits = matches!(execution.lock, LockClaim::Waiting { .. });
        match held {
            Some(ticket) if waits => {
                tickets.insert(execution.id, ticket.clone());
            }
            Some(ticket) => {
                lines.entry(name).or_default();
                transaction.delete(Table::Locks, lock::ticket_key(name, ticket), Was::Anything);
            }
            None if waits => {
                let Some(seen) = desk.seen_lock(name) else {
                    return Err(Fault::Damaged(format!("execution {} waits for a lock that was not looked at", execution.id)));
                };
                let index = lines.entry(name).or_default();
                let ticket = lock::ticket(seen.map_or(0, |seen| seen.guard) + 1, *index);
                *index += 1;
                transaction.put(Table::Locks, lock::ticket_item(name, &ticket, execution), Was::Absent);
                tickets.insert(execution.id, ticket);
            }
            None => {}
        }
    }
    let mut last: BTreeMap<&Name, &runvoy_model::lock::Lock> = BTreeMap::new();
    last.extend(writes.locks.iter().map(|written| (&written.name, written)));
    for (name, written) in &last {
        let was = was_lock(desk, name)?;
        transaction.put(Table::Locks, lock::encode(written, next_guard(was)), was);
    }
    for name in lines.into_keys().filter(|name| !last.contains_key(name)) {
        let was = desk.seen_lock(name).flatten().map_or(Was::Anything, |seen| Was::At("guard", seen.guard));
        transaction.raise(Table::Locks, lock::key(name), "guard", was);
    }
    Ok(tickets)
}

fn was_lock(desk: &Desk, name: &Name) -> Result<Was, Fault> {
    match desk.seen_lock(name) {
        Some(Some(seen)) => Ok(Was::At("guard", seen.guard)),
        Some(None) => Ok(Was::Absent),
        None => Err(Fault::Damaged(format!("lock {name} was changed without being read first"))),
    }
}

fn write_record(transaction: &mut Transaction<'_>, desk: &Desk, written: &Record) -> Result<(), Fault> {
    let seen = desk.seen_record(written.kind, &written.name);
    let was = match seen {
        Some(Some(seen)) => Was::At("version", seen.record.version),
        Some(None) => Was::Absent,
        None if written.version == 1 => Was::Absent,
        None => return Err(Fault::Damaged(format!("{} {} was changed without being read first", written.kind.as_str(), written.name))),
    };
    let table = record::table(written.kind);
    if written.body.is_some() || written.kind.leaves_tombstone() {
        let last_used = seen.flatten().and_then(|seen| seen.last_used);
        transaction.put(table, record::encode(written, last_used), was);
    } else {
        transaction.delete(table, record::key(written.kind, &written.name), was);
    }
    Ok(())
}

/// Everything that was looked at and is not written must still be so.
fn check_rest(transaction: &mut Transaction<'_>, desk: &Desk, step: &Step, command: &Command, writes: &Writes) {
    // A lease may pass by whatever it likes; only what it takes, and the jobs of that, must be as they were.
    let is_lease = matches!(command, Command::Lease(_));
    let is_of = |job: JobId| writes.executions.iter().any(|execution| execution.spec.task.as_ref().is_some_and(|task| task.job == job));
    for (need, found) in desk.looked_at() {
        match (need, found) {
            (Need::Execution(id), Found::Execution(seen)) if !is_lease => {
                let was = seen.as_ref().map_or(Was::Absent, |seen| Was::At("version", seen.execution.version));
                transaction.check(Table::Executions, execution::key(*id), was);
            }
            (Need::Lock(name), Found::Lock(seen)) => {
                let was = seen.as_ref().map_or(Was::Absent, |seen| Was::At("guard", seen.guard));
                transaction.check(Table::Locks, lock::key(name), was);
            }
            (Need::Job(id), Found::Job(seen)) if !is_lease || is_of(*id) => {
                let was = seen.as_ref().map_or(Was::Absent, |seen| Was::At("guard", seen.guard));
                transaction.check(Table::Jobs, job::key(*id), was);
            }
            (Need::Record(kind, name), Found::Record(seen)) if is_checked(*kind, name, step, command) => {
                let was = seen.as_ref().map_or(Was::Absent, |seen| Was::At("version", seen.record.version));
                transaction.check(record::table(*kind), record::key(*kind, name), was);
            }
            (Need::Submitted(user, key), Found::Submitted(None)) => {
                transaction.check(Table::Marks, mark::key(&mark::submit_mark(user, key)), Was::Absent);
            }
            _ => {}
        }
    }
}

/// The record of whoever asks is read as it is when the step is decided. Checking it once more in the transaction would set all steps of one
/// user against each other; only where people and what they manage change is that worth it. So it is with the terms of a queue and its leases; how
/// many places are taken is checked with the record of those, which is written. And what a lease passes by need not stay as it was.
fn is_checked(kind: Kind, name: &str, step: &Step, command: &Command) -> bool {
    let is_asker = step.authority.as_ref().is_some_and(|authority| owner_record(&authority.email) == (kind, name));
    let is_passed_by = kind == Kind::Permits && matches!(command, Command::Lease(_) | Command::Submit(_));
    matches!(command, Command::Change(..)) || !(is_asker || kind == Kind::Queue || is_passed_by)
}
