//! Events as rows. Three orders serve every query: by place, by what they are about, by kind.

use runvoy_model::event::{Entity, EntityType, Event, EventType};
use runvoy_model::id::{ExecutionId, Id, JobId};
use runvoy_model::record::Kind;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, Leaf, StoredEvent};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::fault::Fault;
use crate::job;
use crate::record::text;
use crate::registry;
use crate::span::{self, Track};

/// Appends an event about the entity at this place.
pub(crate) fn insert(conn: &Connection, entity: i64, event: &Event) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO events (entity_kind, entity, number, kind, at, id, mac, context, properties) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    statement.execute(params![
        entity_code(event.entity.kind),
        entity,
        i64::try_from(event.number).map_err(|_| Fault::Damaged(format!("event {} has number {}", event.id, event.number)))?,
        kind_code(event.kind),
        event.at.0,
        event.id.as_bytes(),
        event.kind.is_chained().then_some(&event.mac),
        event.context.to_string(),
        event.properties.to_string(),
    ])?;
    Ok(())
}

/// What [`decode`] reads.
macro_rules! columns {
    () => {
        "seq, entity_kind, CASE entity_kind WHEN 0 THEN (SELECT id FROM executions WHERE executions.seq = entity) \
         WHEN 8 THEN (SELECT id FROM jobs WHERE jobs.seq = entity) \
         ELSE (SELECT name FROM records WHERE records.seq = entity) END, number, kind, at, id, mac, context, properties"
    };
}
pub(crate) use columns;

macro_rules! page_sql {
    ($source:literal, $driver:literal, $order:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM events ",
            $source,
            " WHERE ",
            $driver,
            " AND seq BETWEEN ?1 AND ?2 AND at >= ?3 AND at < ?4 ",
            "AND (?5 IS NULL OR (entity = ?5 AND entity_kind = ?8)) AND (?6 IS NULL OR kind = ?6) ORDER BY seq ",
            $order,
            " LIMIT ?7"
        )
    };
}

/// A page of events.
pub(crate) fn page(conn: &Connection, query: &EventQuery) -> Result<Vec<StoredEvent>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let entity = match &query.entity {
        None => None,
        Some(entity) => match entity_seq(&snapshot, entity)? {
            Some(seq) => Some(seq),
            None => return Ok(Vec::new()),
        },
    };
    let Some((first, last)) = span::places(&snapshot, Track::Events, query.from, query.to)? else { return Ok(Vec::new()) };
    let after = query.after.map(|place| i64::try_from(place).unwrap_or(i64::MAX));
    let (first, last) = match after {
        Some(after) if query.descending => (first, last.min(after.saturating_sub(1))),
        Some(after) => (first.max(after.saturating_add(1)), last),
        None => (first, last),
    };
    let code = query.entity.as_ref().map(|entity| entity_code(entity.kind));
    let kind = query.kind.map(kind_code);
    let sql = match (entity, kind, query.descending) {
        (Some(_), _, false) => page_sql!("INDEXED BY events_entity", "entity_kind = ?8 AND entity = ?5", "ASC"),
        (Some(_), _, true) => page_sql!("INDEXED BY events_entity", "entity_kind = ?8 AND entity = ?5", "DESC"),
        (None, Some(_), false) => page_sql!("INDEXED BY events_kind", "kind = ?6", "ASC"),
        (None, Some(_), true) => page_sql!("INDEXED BY events_kind", "kind = ?6", "DESC"),
        (None, None, false) => page_sql!("NOT INDEXED", "1", "ASC"),
        (None, None, true) => page_sql!("NOT INDEXED", "1", "DESC"),
    };
    let from = query.from.map_or(i64::MIN, |at| at.0);
    // The largest time is nobody's: an open end may leave it out.
    let to = query.to.map_or(i64::MAX, |at| at.0);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut statement = snapshot.prepare_cached(sql)?;
    let mut rows = statement.query(params![first, last, from, to, entity, kind, limit, code])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(decode(row)?);
    }
    Ok(events)
}

/// What the proof of the log takes of the events after a place.
pub(crate) fn leaves(conn: &Connection, after: u64, max: usize) -> Result<Vec<Leaf>, Fault> {
    let mut statement = conn.prepare_cached("SELECT seq, id, kind, mac FROM events NOT INDEXED WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
    let mut rows = statement.query(params![i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(max).unwrap_or(i64::MAX)])?;
    let mut leaves = Vec::new();
    while let Some(row) = rows.next()? {
        let place: i64 = row.get(0)?;
        let bad = |what: &str| Fault::Damaged(format!("the {what} of event {place} cannot be read"));
        leaves.push(Leaf {
            place: u64::try_from(place).map_err(|_| bad("place"))?,
            id: Id::from_bytes(row.get(1)?),
            kind: kind_of(row.get(2)?).ok_or_else(|| bad("kind"))?,
            mac: row.get::<_, Option<[u8; 32]>>(3)?.unwrap_or([0; 32]),
        });
    }
    Ok(leaves)
}

/// The place of what events can be about; `None` if it is not there.
pub(crate) fn entity_seq(conn: &Connection, entity: &Entity) -> Result<Option<i64>, Fault> {
    if let Some(kind) = Kind::of(entity.kind) {
        return Ok(registry::find(conn, kind, &entity.id)?.map(|(seq, _)| seq));
    }
    if entity.kind == EntityType::Job {
        let Ok(id) = entity.id.parse::<JobId>() else { return Ok(None) };
        return job::seq_of(conn, id);
    }
    let Ok(id) = entity.id.parse::<ExecutionId>() else { return Ok(None) };
    let mut statement = conn.prepare_cached("SELECT seq FROM executions WHERE id = ?1")?;
    Ok(statement.query_row([id.as_bytes()], |row| row.get(0)).optional()?)
}

/// Reads a row of [`columns`].
pub(crate) fn decode(row: &Row<'_>) -> Result<StoredEvent, Fault> {
    let place: i64 = row.get(0)?;
    let bad = || Fault::Damaged(format!("the entity of event {place} cannot be read"));
    let entity = match (entity_kind(row.get(1)?).ok_or_else(bad)?, row.get_ref(2)?) {
        (EntityType::Task, ValueRef::Blob(id)) => id.try_into().ok().map(|id| Entity::task(ExecutionId::from_bytes(id))),
        (EntityType::Job, ValueRef::Blob(id)) => id.try_into().ok().map(|id| Entity::job(JobId::from_bytes(id))),
        (kind, ValueRef::Text(name)) => std::str::from_utf8(name).ok().map(|name| Entity { kind, id: name.to_owned() }),
        _ => None,
    };
    decode_about(row, entity.ok_or_else(bad)?)
}

/// Reads a row of `seq, _, _, number, kind, at, id, mac, context, properties` that is about this entity.
pub(crate) fn decode_about(row: &Row<'_>, entity: Entity) -> Result<StoredEvent, Fault> {
    let place: i64 = row.get(0)?;
    let bad = |what: &str| Fault::Damaged(format!("the {what} of event {place} cannot be read"));
    let kind: i64 = row.get(4)?;
    let mac: Option<[u8; 32]> = row.get(7)?;
    let json = |index, what| serde_json::from_slice::<Value>(text(row, index)?).map_err(|_| bad(what));
    let event = Event {
        id: Id::from_bytes(row.get(6)?),
        entity,
        number: u64::try_from(row.get::<_, i64>(3)?).map_err(|_| bad("number"))?,
        kind: kind_of(kind).ok_or_else(|| bad("kind"))?,
        at: UnixMs(row.get(5)?),
        context: json(8, "context")?,
        properties: json(9, "properties")?,
        mac: mac.unwrap_or([0; 32]),
    };
    Ok(StoredEvent { place: u64::try_from(place).map_err(|_| bad("place"))?, event })
}

fn kind_of(code: i64) -> Option<EventType> {
    EventType::ALL.into_iter().find(|kind| kind_code(*kind) == code)
}

/// The kind of an entity by its number in the store.
pub(crate) fn entity_kind(code: i64) -> Option<EntityType> {
    EntityType::ALL.into_iter().find(|kind| entity_code(*kind) == code)
}

/// The number of an entity's kind in the store. Part of the format.
pub(crate) const fn entity_code(kind: EntityType) -> i64 {
    match kind {
        EntityType::Task => 0,
        EntityType::User => 1,
        EntityType::Group => 2,
        EntityType::Rule => 3,
        EntityType::Image => 4,
        EntityType::Secret => 5,
        EntityType::Playbook => 6,
        EntityType::Ledger => 7,
        EntityType::Job => 8,
        EntityType::Health => 9,
        EntityType::Queue => 10,
        EntityType::Worker => 11,
        EntityType::Drain => 12,
    }
}

/// The number of an event's kind in the store. Part of the format.
pub(crate) const fn kind_code(kind: EventType) -> i64 {
    match kind {
        EventType::TaskPending => 0,
        EventType::TaskProcessingStarted => 1,
        EventType::TaskProcessingFailed => 2,
        EventType::TaskCompleted => 3,
        EventType::TaskFailed => 4,
        EventType::TaskTimeout => 5,
        EventType::TaskHeartbeat => 6,
        EventType::TaskStopped => 7,
        EventType::Audit => 8,
        EventType::AuditCheckpoint => 9,
        EventType::TaskHealthCheck => 10,
        EventType::JobCreated => 11,
        EventType::JobTasksAdded => 12,
        EventType::JobCompleted => 13,
        EventType::JobFailureDetected => 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_cannot_be_read_still_counts_in_the_proof_of_the_log() {
        let mut conn = Connection::open_in_memory().expect("a database in memory");
        crate::schema::migrate(&mut conn).expect("an empty store can be migrated");
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for (id, properties) in [(1_u8, "{}"), (2, &deep), (3, "{")] {
            conn.execute(
                "INSERT INTO events (entity_kind, entity, number, kind, at, id, mac, context, properties) VALUES (0, 1, 1, 3, 1, ?1, ?2, '{}', ?3)",
                params![[id; 16], [id; 32], properties],
            )
            .expect("an event");
        }
        assert!(page(&conn, &EventQuery { limit: 10, ..EventQuery::default() }).is_err());
        let leaf = |n: u8| Leaf { place: n.into(), id: Id::from_bytes([n; 16]), kind: EventType::TaskCompleted, mac: [n; 32] };
        assert_eq!(leaves(&conn, 0, 10).expect("leaves"), [leaf(1), leaf(2), leaf(3)]);
        assert_eq!(leaves(&conn, 1, 1).expect("leaves"), [leaf(2)]);
    }
}
