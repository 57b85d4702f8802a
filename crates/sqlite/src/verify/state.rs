//! Everything that is kept beside the events against the events themselves: executions, jobs with their tasks, locks, records. What belongs together is read in
//! one snapshot, so that a store that is written to meanwhile gives no false alarm.

use runvoy_model::digest::{self, DigestsSince};
use runvoy_model::event::{Entity, EntityType};
use runvoy_model::execution::Execution;
use runvoy_model::fold::{Comparison, ExecutionFold, JobCheck, Mismatch, compare_lock};
use runvoy_model::id::JobId;
use runvoy_model::lock::Lock;
use runvoy_model::verify::label;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::event::{decode_about, entity_code};
use crate::fault::{Fault, Meaning};
use crate::job::Placed;
use crate::{job, lock, node, record};

/// So many places of executions are looked at in one snapshot.
const PLACES_AT_ONCE: i64 = 2_000;
/// A page of a job's tasks, and of locks.
const ROWS_AT_ONCE: usize = 500;

/// What is the task of a job is compared with its job, unless that is gone.
const ALONE: &str = "SELECT seq, id, status, state, spec FROM executions NOT INDEXED WHERE seq BETWEEN ?1 AND ?2 AND (job IS NULL OR NOT EXISTS \
     (SELECT 1 FROM jobs NOT INDEXED WHERE jobs.seq = executions.job)) ORDER BY seq";
const OF_JOB: &str = "SELECT seq, id, status, state, spec FROM executions INDEXED BY executions_job WHERE job = ?1 ORDER BY seq";
const NEXT_JOB: &str = "SELECT seq, id, status, state FROM jobs NOT INDEXED WHERE seq > ?1 ORDER BY seq LIMIT 1";
const HELD: &str = "SELECT name, fence, holder, held_by, since FROM locks INDEXED BY locks_held WHERE holder IS NOT NULL AND name > ?1 \
     ORDER BY name LIMIT ?2";
const EVENTS: &str = "SELECT seq, entity_kind, entity, number, kind, at, id, mac, context, properties FROM events \
     INDEXED BY events_entity WHERE entity_kind = ?1 AND entity = ?2 ORDER BY seq";

/// The events that may hold a digest, after a place.
const MAY_HOLD: &str =
    "SELECT seq, properties FROM events NOT INDEXED WHERE seq > ?1 AND instr(properties, '\"bod') > 0 ORDER BY seq LIMIT 1";

/// Since when the events of the store hold digests: with its first event, unless an older version
/// made it.
pub(super) fn digests_since(conn: &Connection) -> Result<DigestsSince, Fault> {
    let mut after = 0;
    loop {
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, serde_json::from_slice::<Value>(row.get_ref(1)?.as_bytes()?)));
        let Some((place, properties)) = conn.query_row(MAY_HOLD, [after], read).optional()? else { return Ok(DigestsSince::default()) };
        if properties.is_ok_and(|properties| digest::is_in(&properties)) {
            return Ok(DigestsSince::new(u64::try_from(place).ok()));
        }
        after = place;
    }
}

/// Compares all there is.
pub(super) fn check(conn: &Connection, found: &mut Comparison) -> Result<(), Fault> {
    let digests = digests_since(conn)?;
    let last: i64 = conn.query_row("SELECT ifnull(max(seq), 0) FROM executions", [], |row| row.get(0))?;
    let mut from = 0;
    while from <= last {
        let snapshot = conn.unchecked_transaction()?;
        executions(&snapshot, from, digests, found)?;
        from += PLACES_AT_ONCE;
    }
    let mut after = 0;
    loop {
        let snapshot = conn.unchecked_transaction()?;
        let Some(seq) = next_job(&snapshot, after, digests, found)? else { break };
        after = seq;
    }
    let mut after = String::new();
    loop {
        let snapshot = conn.unchecked_transaction()?;
        let Some(name) = locks(&snapshot, &after, found)? else { break };
        after = name;
    }
    let (records, bad) = super::record::check(conn)?;
    let first = bad.into_iter().next().map(Mismatch::from);
    found.join(Comparison { compared: records, first, ..Comparison::default() });
    Ok(())
}

/// Something that should be there and cannot be read.
pub(super) fn unreadable(entity: String, fault: &Fault) -> Mismatch {
    Mismatch { entity, field: "record".to_owned(), message: format!("cannot be read: {fault}") }
}

/// Damage is a finding; whatever else goes wrong ends the look.
fn readable<T>(read: Result<T, Fault>, about: &Entity) -> Result<Result<T, Mismatch>, Fault> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(fault) if fault.meaning() == Meaning::Damaged => Ok(Err(unreadable(label(about), &fault))),
        Err(fault) => Err(fault),
    }
}

fn executions(snapshot: &Connection, from: i64, digests: DigestsSince, found: &mut Comparison) -> Result<(), Fault> {
    let mut statement = snapshot.prepare_cached(ALONE)?;
    let mut rows = statement.query(params![from, from + PLACES_AT_ONCE - 1])?;
    while let Some(row) = rows.next()? {
        let compared = execution(snapshot, row, digests)?;
        note(&compared, found);
        found.add(compared.map(|_| ()));
    }
    Ok(())
}

/// An execution that is what its events say.
type Compared = Result<(Execution, ExecutionFold), Mismatch>;

fn note(compared: &Compared, found: &mut Comparison) {
    found.unverifiable += u64::from(compared.as_ref().is_ok_and(|(_, fold)| fold.is_unverifiable()));
}

/// Compares the execution of a row with its events and its lock; gives back both.
fn execution(snapshot: &Connection, row: &Row<'_>, digests: DigestsSince) -> Result<Compared, Fault> {
    let about = Entity::task(record::id_column(row, 1)?);
    let record = match readable(record::decode(row), &about)? {
        Ok(record) => record,
        Err(mismatch) => return Ok(Err(mismatch)),
    };
    let job = match &record.execution.spec.task {
        Some(task) => job::seq_of(snapshot, task.job)?,
        None => None,
    };
    if let Some(column) = record::differing_column(snapshot, &record, job)? {
        return Ok(Err(Mismatch::of(&about, column, "differs between the row and the execution in it")));
    }
    let kept = record.execution;
    let fold = match folded(snapshot, row.get(0)?, &about)? {
        Ok(fold) => fold,
        Err(mismatch) => return Ok(Err(mismatch)),
    };
    let lock = match &kept.spec.lock {
        Some(name) => readable(lock::by_name(snapshot, name), &about)?,
        None => Ok(None),
    };
    Ok(lock.and_then(|lock| fold.compare(&kept, lock.as_ref(), digests)).map(|()| (kept, fold)))
}

/// What the events of the execution at this place say.
fn folded(snapshot: &Connection, seq: i64, about: &Entity) -> Result<Result<ExecutionFold, Mismatch>, Fault> {
    let mut statement = snapshot.prepare_cached(EVENTS)?;
    let mut rows = statement.query(params![entity_code(EntityType::Task), seq])?;
    let mut fold = ExecutionFold::default();
    while let Some(row) = rows.next()? {
        let stored = match readable(decode_about(row, about.clone()), about)? {
            Ok(stored) => stored,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        if let Err(impossible) = fold.next(stored.place, &stored.event) {
            return Ok(Err(Mismatch::of(about, "events", impossible.to_string())));
        }
    }
    Ok(Ok(fold))
}

/// Compares the job after a place; tells its own.
fn next_job(snapshot: &Connection, after: i64, digests: DigestsSince, found: &mut Comparison) -> Result<Option<i64>, Fault> {
    let mut statement = snapshot.prepare_cached(NEXT_JOB)?;
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, JobId::from_bytes(row.get(1)?), job::decode(row)));
    let Some((seq, id, decoded)) = statement.query_row([after], read).optional()? else { return Ok(None) };
    match readable(decoded, &Entity::job(id))? {
        Ok(placed) => {
            if let Some(column) = job::differing_column(snapshot, &placed)? {
                found.add(Err(Mismatch::of(&Entity::job(id), column, "differs between the row and the job in it")));
            }
            let compared = readable(compare_job(snapshot, placed, digests, found), &Entity::job(id))?;
            compared.unwrap_or_else(|mismatch| found.add(Err(mismatch)));
        }
        Err(mismatch) => found.add(Err(mismatch)),
    }
    Ok(Some(seq))
}

fn compare_job(snapshot: &Connection, placed: Placed, digests: DigestsSince, found: &mut Comparison) -> Result<(), Fault> {
    let Placed { seq, job } = placed;
    let (id, opening, about) = (job.id, job.opening, Entity::job(job.id));
    let mut check = JobCheck::new(job, digests);
    let mut statement = snapshot.prepare_cached(EVENTS)?;
    let mut rows = statement.query(params![entity_code(EntityType::Job), seq])?;
    while let Some(row) = rows.next()? {
        let stored = decode_about(row, about.clone())?;
        check.event(stored.place, &stored.event);
    }
    let mut statement = snapshot.prepare_cached(OF_JOB)?;
    let mut rows = statement.query([seq])?;
    while let Some(row) = rows.next()? {
        let compared = execution(snapshot, row, digests)?;
        note(&compared, found);
        if let Ok((execution, fold)) = &compared {
            check.execution(execution, fold);
        }
        found.add(compared.map(|_| ()));
    }
    let mut lost = None;
    each_node(snapshot, (seq, id), opening, |node| {
        // This store never loses what a task runs.
        lost = lost.take().or_else(|| (node.spec.is_lost() || node.runs().is_lost()).then(|| node.task.clone()));
        check.node(node);
    })?;
    if let Some(task) = lost {
        found.add(Err(Mismatch::of(&about, format!("tasks.{task}.spec"), "is empty")));
    }
    each_node(snapshot, (seq, id), opening, |node| check.parents(node))?;
    found.join(check.finish());
    Ok(())
}

fn each_node(
    snapshot: &Connection,
    job: (i64, JobId),
    opening: Option<u64>,
    mut see: impl FnMut(&runvoy_model::job::Node),
) -> Result<(), Fault> {
    let mut after = None;
    loop {
        let page = node::page(snapshot, job, opening, after, ROWS_AT_ONCE)?;
        page.iter().for_each(&mut see);
        match page.last() {
            Some(last) if page.len() == ROWS_AT_ONCE => after = Some(last.place),
            _ => return Ok(()),
        }
    }
}

/// Compares some locks after a name; tells the last of them.
fn locks(snapshot: &Connection, after: &str, found: &mut Comparison) -> Result<Option<String>, Fault> {
    let mut statement = snapshot.prepare_cached(HELD)?;
    let mut rows = statement.query(params![after, i64::try_from(ROWS_AT_ONCE).expect("a small number")])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        match lock::decode(row) {
            Ok(lock) => found.add(compare_holder(snapshot, &lock)?),
            Err(fault) if fault.meaning() == Meaning::Damaged => found.add(Err(unreadable(format!("LOCK:{name}"), &fault))),
            Err(fault) => return Err(fault),
        }
        last = Some(name);
    }
    Ok(last)
}

fn compare_holder(snapshot: &Connection, lock: &Lock) -> Result<Result<(), Mismatch>, Fault> {
    let Some(id) = lock.holder.as_ref().map(|holder| holder.execution) else { return Ok(Ok(())) };
    let about = Entity::task(id);
    let holder = match readable(record::by_id(snapshot, id), &about)? {
        Ok(holder) => holder,
        Err(mismatch) => return Ok(Err(mismatch)),
    };
    let Some(holder) = holder else { return Ok(compare_lock(lock, None)) };
    let fold = folded(snapshot, holder.seq, &about)?;
    Ok(fold.and_then(|fold| compare_lock(lock, Some((&holder.execution, &fold)))))
}
