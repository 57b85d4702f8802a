//! Every entity's events in order, against the head that its record keeps and against what they wrote of an execution or a job; and every record,
//! for events that it should have.

use runvoy_model::chain::{AuditKey, ChainHead};
use runvoy_model::digest::{self, DigestsSince};
use runvoy_model::event::{Entity, EntityType};
use runvoy_model::hex::hex;
use runvoy_model::id::{ExecutionId, Id, JobId};
use runvoy_model::record::Kind;
use runvoy_model::verify::{BadEvent, ChainCheck, Problem, Verdict, label};
use runvoy_ports::store::StoredEvent;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use serde_json::Value;

use super::state::digests_since;
use crate::event::{decode_about, entity_kind, kind_code};
use crate::fault::{Fault, Meaning};
use crate::record::text;
use crate::{job, record, registry};

/// How many events are read in one snapshot, or the rest of an entity's.
const ROWS_AT_ONCE: u64 = 20_000;
/// How many records are read in one snapshot.
const RECORDS_AT_ONCE: i64 = 50_000;

/// Checks every chain; returns how many chained events up to place `last` the index of entities has.
pub(super) fn check(conn: &Connection, key: &AuditKey, last: i64, verdict: &mut Verdict) -> Result<u64, Fault> {
    let mut walk = Walk { key, last, digests: digests_since(conn)?, verdict, linked: 0 };
    let mut after = (i64::MIN, i64::MIN);
    while let Some(next) = walk.stretch(conn, after)? {
        after = next;
    }
    walk.without_events(conn, LAST_EXECUTION, EXECUTIONS_WITHOUT, |row| {
        Ok((Entity::task(ExecutionId::from_bytes(row.get(1)?)), state_head(text(row, 2)?)?, true))
    })?;
    walk.without_events(conn, LAST_JOB, JOBS_WITHOUT, |row| {
        // A staged job has no event before it is opened.
        Ok((Entity::job(JobId::from_bytes(row.get(1)?)), state_head(text(row, 2)?)?, row.get::<_, i64>(3)? != STAGED))
    })?;
    walk.without_events(conn, LAST_RECORD, RECORDS_WITHOUT, |row| {
        let entity = record_entity(row.get(1)?, row.get(2)?).ok_or_else(|| Fault::Damaged("a record has no kind".into()))?;
        Ok((entity, record_head(row.get(3)?, row.get(4)?)?, false))
    })?;
    Ok(walk.linked)
}

const STRETCH: &str = "SELECT seq, entity_kind, entity, number, kind, at, id, mac, context, properties FROM events \
     INDEXED BY events_entity WHERE (entity_kind, entity) > (?1, ?2) ORDER BY entity_kind, entity, seq";
const EXECUTIONS_WITHOUT: &str = "SELECT seq, id, state FROM executions WHERE seq BETWEEN ?1 AND ?2 AND NOT EXISTS \
     (SELECT 1 FROM events INDEXED BY events_entity WHERE entity_kind = 0 AND entity = executions.seq) ORDER BY seq";
const RECORDS_WITHOUT: &str = "SELECT seq, kind, name, chain_count, chain_mac FROM records WHERE seq BETWEEN ?1 AND ?2 AND chain_count > 0 \
     AND NOT EXISTS (SELECT 1 FROM events INDEXED BY events_entity WHERE entity_kind IN (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12) AND entity = records.seq) \
     ORDER BY seq";
const JOBS_WITHOUT: &str = "SELECT seq, id, state, status FROM jobs WHERE seq BETWEEN ?1 AND ?2 AND NOT EXISTS \
     (SELECT 1 FROM events INDEXED BY events_entity WHERE entity_kind = 8 AND entity = jobs.seq) ORDER BY seq";
/// The status of a job that is not opened yet.
const STAGED: i64 = 0;
const LAST_EXECUTION: &str = "SELECT ifnull(max(seq), 0) FROM executions";
const LAST_JOB: &str = "SELECT ifnull(max(seq), 0) FROM jobs";
const LAST_RECORD: &str = "SELECT ifnull(max(seq), 0) FROM records";

struct Walk<'a> {
    key: &'a AuditKey,
    last: i64,
    digests: DigestsSince,
    verdict: &'a mut Verdict,
    linked: u64,
}

/// The entity whose events are being read.
struct Group {
    at: (i64, i64),
    /// `None` where what the events are about is gone: then they cannot be checked.
    known: Option<Known>,
}

/// What events are about, as its row keeps it, and what they say so far.
struct Known {
    entity: Entity,
    head: ChainHead,
    /// The digest of the row where it is an execution or a job; records are looked at apart.
    body: Option<String>,
    check: ChainCheck,
    /// The first event, which creates it.
    first: Option<Written>,
    /// The event that wrote the body.
    wrote: Option<(Written, String)>,
}

#[derive(Clone, Copy)]
struct Written {
    place: u64,
    number: u64,
    event: Id,
}

impl Known {
    fn next(&mut self, key: &AuditKey, stored: &StoredEvent) {
        let StoredEvent { place, event } = stored;
        self.check.next(key, *place, event);
        let written = Written { place: *place, number: event.number, event: event.id };
        self.first.get_or_insert(written);
        if let Some(body) = event.properties.get(digest::BODY).and_then(Value::as_str) {
            self.wrote = Some((written, body.to_owned()));
        }
    }

    /// What is wrong with it; and whether what it runs is older than digests, so that it cannot be
    /// compared.
    fn finish(self, digests: DigestsSince) -> (Option<BadEvent>, bool) {
        let altered = |written: Written, message: String| BadEvent {
            place: written.place,
            entity: label(&self.entity),
            number: written.number,
            event_id: Some(written.event),
            problem: Problem::Altered,
            message,
        };
        let (Some(kept), Some(first)) = (&self.body, self.first) else { return (self.check.finish(Some(self.head)), false) };
        let bad = match &self.wrote {
            Some((_, body)) if body == kept => None,
            Some((wrote, _)) => {
                let message = format!("its command or owner differs from what event {} recorded: it was altered", wrote.number);
                Some(altered(*wrote, message))
            }
            None if digests.binds(first.place) => {
                Some(altered(first, "it has no digest of what it recorded, although earlier events have one".to_owned()))
            }
            None => None,
        };
        let is_unverifiable = self.wrote.is_none() && bad.is_none();
        (self.check.finish(Some(self.head)).or(bad), is_unverifiable)
    }
}

/// Something that is there without an event that says what it is.
fn unbound(entity: String) -> BadEvent {
    let message = "no event wrote it: it was not added by the server".to_owned();
    BadEvent { place: u64::MAX, entity, number: 0, event_id: None, problem: Problem::Altered, message }
}

impl Walk<'_> {
    /// Checks the entities after one, some thousand events of them; returns the last of them, or `None` at the end.
    fn stretch(&mut self, conn: &Connection, after: (i64, i64)) -> Result<Option<(i64, i64)>, Fault> {
        let snapshot = conn.unchecked_transaction()?;
        let mut statement = snapshot.prepare_cached(STRETCH)?;
        let mut rows = statement.query(params![after.0, after.1])?;
        let (mut group, mut read): (Option<Group>, u64) = (None, 0);
        while let Some(row) = rows.next()? {
            let at = (row.get(1)?, row.get(2)?);
            if group.as_ref().is_none_or(|group| group.at != at) {
                let ended = group.take().map(|group| self.end(group));
                if read >= ROWS_AT_ONCE {
                    return Ok(ended);
                }
                group = Some(self.begin(&snapshot, at, row)?);
            }
            read += 1;
            self.event(row, group.as_mut().expect("just filled"))?;
        }
        group.map(|group| self.end(group));
        Ok(None)
    }

    fn begin(&mut self, snapshot: &Connection, at: (i64, i64), row: &Row<'_>) -> Result<Group, Fault> {
        let found = match head(snapshot, at) {
            Err(fault) if fault.meaning() == Meaning::Damaged => {
                self.found(row, &raw_label(at), Problem::Unreadable, format!("its record cannot be read: {fault}"));
                None
            }
            Ok(None) => {
                self.found(row, &raw_label(at), Problem::Removed, "its record is gone, and perhaps other events of that record".to_owned());
                None
            }
            found => found?,
        };
        let known = found.map(|Kept { entity, head, body }| {
            let check = ChainCheck::new(&entity);
            Known { entity, head, body, check, first: None, wrote: None }
        });
        Ok(Group { at, known })
    }

    fn event(&mut self, row: &Row<'_>, group: &mut Group) -> Result<(), Fault> {
        let seq: i64 = row.get(0)?;
        let is_chained = row.get::<_, i64>(4)? != kind_code(runvoy_model::event::EventType::TaskHeartbeat);
        self.linked += u64::from(is_chained && seq <= self.last);
        self.verdict.checked += u64::from(is_chained);
        let Some(known) = &mut group.known else { return Ok(()) };
        match decode_about(row, known.entity.clone()) {
            Ok(stored) => known.next(self.key, &stored),
            Err(fault) if fault.meaning() == Meaning::Damaged => {
                let entity = label(&known.entity);
                self.found(row, &entity, Problem::Unreadable, fault.to_string());
                group.known = None;
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// All events of an entity were seen; tells which it was.
    fn end(&mut self, group: Group) -> (i64, i64) {
        if let Some(known) = group.known {
            let (bad, is_unverifiable) = known.finish(self.digests);
            self.verdict.unverifiable += u64::from(is_unverifiable);
            bad.into_iter().for_each(|bad| self.verdict.note(bad));
        }
        group.at
    }

    /// Notes what is wrong with the event of a row, of which as much is named as can be read.
    fn found(&mut self, row: &Row<'_>, entity: &str, problem: Problem, message: String) {
        let number = |index| row.get::<_, i64>(index).ok().and_then(|number| u64::try_from(number).ok());
        self.verdict.note(BadEvent {
            place: number(0).unwrap_or(u64::MAX),
            entity: entity.to_owned(),
            number: number(3).unwrap_or(0),
            event_id: row.get(6).ok().map(Id::from_bytes),
            problem,
            message,
        });
    }

    /// Finds what has no event at all although its head says that there were some, or although it cannot be there without one.
    fn without_events(
        &mut self,
        conn: &Connection,
        last: &str,
        sql: &str,
        read: impl Fn(&Row<'_>) -> Result<(Entity, ChainHead, bool), Fault>,
    ) -> Result<(), Fault> {
        let last: i64 = conn.query_row(last, [], |row| row.get(0))?;
        let mut from = 0;
        while from <= last {
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(params![from, from + RECORDS_AT_ONCE - 1])?;
            while let Some(row) = rows.next()? {
                let (entity, head, needs_events) = read(row)?;
                let bad = ChainCheck::new(&entity).finish(Some(head)).map(|bad| BadEvent { place: u64::MAX, ..bad });
                if let Some(bad) = bad.or_else(|| needs_events.then(|| unbound(label(&entity)))) {
                    self.verdict.note(bad);
                }
            }
            from += RECORDS_AT_ONCE;
        }
        Ok(())
    }
}

/// What events are about, as its row keeps it.
struct Kept {
    entity: Entity,
    head: ChainHead,
    body: Option<String>,
}

/// What the events at this place are about.
fn head(conn: &Connection, (kind, seq): (i64, i64)) -> Result<Option<Kept>, Fault> {
    let kind = entity_kind(kind).ok_or_else(|| Fault::Damaged("the kind of its record is unknown".into()))?;
    if kind == EntityType::Task {
        let Some(record) = record::by_seq(conn, seq)? else { return Ok(None) };
        let execution = record.execution;
        let body = Some(digest::of_execution(&execution));
        return Ok(Some(Kept { entity: Entity::task(execution.id), head: execution.chain, body }));
    }
    if kind == EntityType::Job {
        let Some(job) = job::by_seq(conn, seq)? else { return Ok(None) };
        return Ok(Some(Kept { entity: Entity::job(job.id), head: job.chain, body: Some(digest::of_job(&job)) }));
    }
    let mut statement = conn.prepare_cached("SELECT kind, name, chain_count, chain_mac FROM records WHERE seq = ?1")?;
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, Vec<u8>>(3)?));
    let Some((code, name, count, mac)) = statement.query_row([seq], read).optional()? else { return Ok(None) };
    let entity = record_entity(code, name).filter(|entity| entity.kind == kind);
    entity.map(|entity| Ok(Kept { entity, head: record_head(count, mac)?, body: None })).transpose()
}

fn state_head(state: &[u8]) -> Result<ChainHead, Fault> {
    #[derive(Deserialize)]
    struct State {
        chain: ChainHead,
    }
    let state: State = serde_json::from_slice(state).map_err(|error| Fault::Damaged(error.to_string()))?;
    Ok(state.chain)
}

fn record_head(count: i64, mac: Vec<u8>) -> Result<ChainHead, Fault> {
    let bad = || Fault::Damaged(format!("the head of its chain is {count} {}", hex(&mac)));
    let count_read = u64::try_from(count).map_err(|_| bad())?;
    let mac = mac.as_slice().try_into().map_err(|_| bad())?;
    Ok(ChainHead { count: count_read, mac })
}

fn record_entity(code: i64, name: String) -> Option<Entity> {
    let kind = Kind::ALL.into_iter().find(|kind| registry::kind_code(*kind) == code)?;
    kind.entity().map(|kind| Entity { kind, id: name })
}

/// The name of what cannot be named.
fn raw_label((kind, seq): (i64, i64)) -> String {
    format!("{}:#{seq}", entity_kind(kind).map_or("UNKNOWN", EntityType::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::entity_code;

    #[test]
    fn the_events_of_every_kind_of_record_are_looked_for() {
        let (_, after) = RECORDS_WITHOUT.split_once("entity_kind IN (").expect("it names kinds");
        let (named, _) = after.split_once(')').expect("a list");
        let mut expected: Vec<i64> = Kind::ALL.into_iter().filter_map(Kind::entity).map(entity_code).collect();
        expected.sort_unstable();
        assert_eq!(named, expected.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
}
