//! Pages of events for somebody. One statement walks an index and says of every row whether it is seen, without a look at what it holds; only what is
//! seen is read. So a look costs what it looks at, never what is stored, and it ends where the sight does. Whoever has few events among many is served
//! from what is theirs instead of by a walk past everybody else's.

use runvoy_model::event::EventType;
use runvoy_ports::store::{EventPage, EventQuery, Sight, StoredEvent};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement, params};

use crate::event::{columns, decode, entity_code, entity_seq, kind_code};
use crate::fault::Fault;
use crate::span::{self, Track};

macro_rules! look_sql {
    ($source:literal, $driver:literal, $order:literal) => {
        concat!(
            "SELECT seq, at >= ?3 AND at < ?4 AND (?5 IS NULL OR kind = ?5) AND (?6 OR kind NOT IN (8, 9)) AND (?9 IS NULL OR ",
            "CASE entity_kind ",
            "WHEN 0 THEN EXISTS (SELECT 1 FROM executions INDEXED BY executions_created_by WHERE created_by = ?9 AND executions.seq = entity) ",
            "WHEN 8 THEN EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_created_by WHERE created_by = ?9 AND jobs.seq = entity) ",
            "ELSE 0 END) FROM events ",
            $source,
            " WHERE ",
            $driver,
            " AND seq BETWEEN ?1 AND ?2 ORDER BY seq ",
            $order
        )
    };
}

/// Executions and jobs of a user.
macro_rules! own {
    ($user:literal) => {
        concat!(
            "(SELECT 0 AS own_kind, seq AS own FROM executions INDEXED BY executions_created_by WHERE created_by = ",
            $user,
            " UNION ALL SELECT 8, seq FROM jobs INDEXED BY jobs_created_by WHERE created_by = ",
            $user,
            ")"
        )
    };
}

macro_rules! own_sql {
    ($order:literal) => {
        concat!(
            "SELECT events.seq, at >= ?3 AND at < ?4 AND (?5 IS NULL OR kind = ?5) AND (?6 OR kind NOT IN (8, 9)) FROM ",
            own!("?9"),
            " CROSS JOIN events INDEXED BY events_entity ON entity_kind = own_kind AND entity = own ",
            "WHERE events.seq BETWEEN ?1 AND ?2 ORDER BY events.seq ",
            $order
        )
    };
}

const COUNT_OWN: &str = concat!("SELECT count(*) FROM (SELECT 1 FROM ", own!("?1"), " LIMIT ?2)");
const COUNT_OWN_EVENTS: &str = concat!(
    "SELECT count(*) FROM (SELECT 1 FROM ",
    own!("?1"),
    " CROSS JOIN events INDEXED BY events_entity ON entity_kind = own_kind AND entity = own WHERE events.seq BETWEEN ?3 AND ?4 LIMIT ?2)"
);

const ONE: &str = concat!("SELECT ", columns!(), " FROM events WHERE seq = ?1");

/// The statement that walks what a query asks for.
const fn look_sql(by_entity: bool, by_kind: bool, descending: bool) -> &'static str {
    match (by_entity, by_kind, descending) {
        (true, _, false) => look_sql!("INDEXED BY events_entity", "entity_kind = ?7 AND entity = ?8", "ASC"),
        (true, _, true) => look_sql!("INDEXED BY events_entity", "entity_kind = ?7 AND entity = ?8", "DESC"),
        (false, true, false) => look_sql!("INDEXED BY events_kind", "kind = ?5", "ASC"),
        (false, true, true) => look_sql!("INDEXED BY events_kind", "kind = ?5", "DESC"),
        (false, false, false) => look_sql!("NOT INDEXED", "1", "ASC"),
        (false, false, true) => look_sql!("NOT INDEXED", "1", "DESC"),
    }
}

/// A page of what somebody may see.
pub(crate) fn page(conn: &Connection, query: &EventQuery, sight: &Sight) -> Result<EventPage, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut page = EventPage { looked: query.after.unwrap_or(0), ..EventPage::default() };
    let end: i64 = snapshot.prepare_cached("SELECT ifnull(max(seq), 0) FROM events")?.query_row([], |row| row.get(0))?;
    let places = span::places(&snapshot, Track::Events, query.from, query.to)?;
    let entity = query.entity.as_ref().map(|entity| entity_seq(&snapshot, entity)).transpose()?;
    // What is not there has no events; what is there may have been looked for by its kind alone.
    if let (Some((first, last)), None | Some(Some(_))) = (places, &entity) {
        let bounds = narrowed(query, first, last.min(end));
        let sql = match (query.descending, entity.is_none() && has_few(&snapshot, sight, bounds)?) {
            (false, true) => own_sql!("ASC"),
            (true, true) => own_sql!("DESC"),
            (descending, false) => look_sql(entity.is_some(), query.kind.is_some(), descending),
        };
        let look = Look { query, sight, bounds, entity: entity.flatten() };
        let (mut rows, mut one) = (snapshot.prepare_cached(sql)?, snapshot.prepare_cached(ONE)?);
        look.through(&mut rows, &mut one, &mut page)?;
    }
    if !page.more && !query.descending {
        page.looked = page.looked.max(u64::try_from(end).unwrap_or(0));
    }
    Ok(page)
}

/// The places that are left after the one to go on from.
fn narrowed(query: &EventQuery, first: i64, last: i64) -> (i64, i64) {
    match query.after.map(|place| i64::try_from(place).unwrap_or(i64::MAX)) {
        Some(after) if query.descending => (first, last.min(after.saturating_sub(1))),
        Some(after) => (first.max(after.saturating_add(1)), last),
        None => (first, last),
    }
}

/// Whether a user's events within bounds are few, and what lies between the bounds is not. Neither count goes further than one look would.
fn has_few(conn: &Connection, sight: &Sight, (first, last): (i64, i64)) -> Result<bool, Fault> {
    let most = i64::try_from(sight.most_looked_at).unwrap_or(i64::MAX - 1);
    let Some(owner) = sight.owner.as_ref().filter(|_| last.saturating_sub(first) >= most) else { return Ok(false) };
    let own: i64 = conn.prepare_cached(COUNT_OWN)?.query_row(params![owner, most + 1], |row| row.get(0))?;
    if own > most {
        return Ok(false);
    }
    let events: i64 = conn.prepare_cached(COUNT_OWN_EVENTS)?.query_row(params![owner, most + 1, first, last], |row| row.get(0))?;
    Ok(events <= most)
}

struct Look<'q> {
    query: &'q EventQuery,
    sight: &'q Sight,
    bounds: (i64, i64),
    entity: Option<i64>,
}

impl Look<'_> {
    fn through(&self, look: &mut Statement<'_>, one: &mut Statement<'_>, page: &mut EventPage) -> Result<(), Fault> {
        let Self { query, sight, bounds: (first, last), entity } = self;
        let mut rows = look.query(params![
            first,
            last,
            query.from.map_or(i64::MIN, |at| at.0),
            // The largest time is nobody's: an open end may leave it out.
            query.to.map_or(i64::MAX, |at| at.0),
            query.kind.map(kind_code),
            sight.trail,
            query.entity.as_ref().map(|entity| entity_code(entity.kind)),
            entity,
            sight.owner,
        ])?;
        let (mut looked_at, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            page.looked = u64::try_from(seq).map_err(|_| Fault::Damaged(format!("an event has place {seq}")))?;
            looked_at += 1;
            if row.get(1)? {
                let (stored, size) = read(one, seq)?;
                bytes += size;
                page.events.push(stored);
            }
            if page.events.len() >= query.limit || looked_at >= sight.most_looked_at || bytes >= sight.most_bytes {
                page.more = rows.next()?.is_some();
                break;
            }
        }
        Ok(())
    }
}

/// One event, and how large it is as it lies there.
fn read(one: &mut Statement<'_>, seq: i64) -> Result<(StoredEvent, usize), Fault> {
    let mut rows = one.query([seq])?;
    let row = rows.next()?.ok_or_else(|| Fault::Damaged(format!("an index names event {seq}, which is not there")))?;
    let size = |index| match row.get_ref(index) {
        Ok(ValueRef::Text(text)) => text.len(),
        _ => 0,
    };
    Ok((decode(row)?, size(8) + size(9)))
}

/// The numbers that the statement names.
const _: () = assert!(kind_code(EventType::Audit) == 8 && kind_code(EventType::AuditCheckpoint) == 9);

#[cfg(test)]
mod tests {
    use runvoy_model::event::{Entity, EntityType};
    use runvoy_model::id::ExecutionId;
    use runvoy_model::time::UnixMs;
    use rusqlite::StatementStatus;

    use super::*;
    use crate::span::Hour;

    const SHAPES: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

    fn store() -> Connection {
        let mut conn = Connection::open_in_memory().expect("a database in memory");
        crate::schema::migrate(&mut conn).expect("an empty store can be migrated");
        conn
    }

    fn id(execution: i64) -> ExecutionId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&execution.to_be_bytes());
        ExecutionId::from_bytes(bytes)
    }

    /// Executions of two users in turn, each with four events: a call, its wait, its start, its end.
    fn fill(conn: &Connection, executions: std::ops::Range<i64>) {
        let transaction = conn.unchecked_transaction().expect("a transaction");
        let mut hour = Hour::default();
        for execution in executions {
            let at = execution * 1_000;
            hour.enter(&transaction, UnixMs(at)).expect("a span");
            let user = ["ann@x", "bob@x"][usize::try_from(execution % 2).expect("0 or 1")];
            let mut statement = transaction
                .prepare_cached(
                    "INSERT INTO executions (seq, id, status, priority, submitted_at, queue, created_by, state, spec) \
                     VALUES (?1, ?2, 4, 3, ?3, 'default', ?4, '{}', '{}')",
                )
                .expect("a statement");
            statement.execute(params![execution + 1, id(execution).as_bytes(), at, user]).expect("an execution");
            for kind in [8, 0, 1, 3] {
                let mut statement = transaction
                    .prepare_cached(
                        "INSERT INTO events (entity_kind, entity, number, kind, at, id, context, properties) \
                         VALUES (0, ?1, 1, ?2, ?3, zeroblob(16), '{}', '{}')",
                    )
                    .expect("a statement");
                statement.execute(params![execution + 1, kind, at]).expect("an event");
            }
        }
        transaction.commit().expect("a commit");
    }

    fn query(by_entity: bool, by_kind: bool, descending: bool) -> EventQuery {
        EventQuery {
            entity: by_entity.then(|| Entity { kind: EntityType::Task, id: id(7).to_string() }),
            kind: by_kind.then_some(EventType::TaskCompleted),
            descending,
            limit: 5,
            ..EventQuery::default()
        }
    }

    fn sight(owner: Option<&str>) -> Sight {
        Sight { owner: owner.map(str::to_owned), trail: owner.is_none(), most_looked_at: 1_000, most_bytes: 1 << 20 }
    }

    #[test]
    fn every_shape_walks_an_index_in_order() {
        let conn = store();
        for (by_entity, by_kind) in SHAPES {
            for descending in [false, true] {
                let mut explain =
                    conn.prepare(&format!("EXPLAIN QUERY PLAN {}", look_sql(by_entity, by_kind, descending))).expect("a plan");
                let values = params![0, 0, 0, 0, 0, 0, 0, 0, "ann@x"];
                let rows = explain.query_map(values, |row| row.get::<_, String>(3)).expect("a plan");
                let plan: Vec<String> = rows.collect::<Result<_, _>>().expect("a plan");
                let expected = match (by_entity, by_kind) {
                    (true, _) => "USING INDEX events_entity (entity_kind=? AND entity=? AND rowid>? AND rowid<?)",
                    (false, true) => "USING INDEX events_kind (kind=? AND rowid>? AND rowid<?)",
                    (false, false) => "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
                };
                assert!(plan[0].starts_with("SEARCH events") && plan[0].ends_with(expected), "{plan:?}");
                let owners = ["executions_created_by (created_by=? AND rowid=?)", "jobs_created_by (created_by=? AND rowid=?)"];
                assert!(owners.iter().all(|owner| plan.iter().any(|line| line.ends_with(owner))), "{plan:?}");
                assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE") || line.starts_with("SCAN")), "{plan:?}");
            }
        }
    }

    /// How many steps of its machine SQLite takes for a page.
    fn steps(conn: &Connection, query: &EventQuery, sight: &Sight) -> i32 {
        let found = page(conn, query, sight).expect("a page");
        assert!(!found.events.is_empty(), "{query:?}");
        let sql = look_sql(query.entity.is_some(), query.kind.is_some(), query.descending);
        let statement = conn.prepare_cached(sql).expect("the statement of that page");
        statement.reset_status(StatementStatus::VmStep)
    }

    #[test]
    fn no_shape_costs_more_with_more_history() {
        let conn = store();
        fill(&conn, 0..100);
        let shapes = SHAPES.into_iter().flat_map(|(by_entity, by_kind)| [false, true].map(|descending| (by_entity, by_kind, descending)));
        let measured: Vec<_> = shapes.map(|(by_entity, by_kind, descending)| query(by_entity, by_kind, descending)).collect();
        let owner = Some("bob@x");
        let costs = |conn: &Connection| -> Vec<i32> {
            measured.iter().flat_map(|query| [steps(conn, query, &sight(None)), steps(conn, query, &sight(owner))]).collect()
        };
        let before = costs(&conn);
        fill(&conn, 100..20_000);
        let after = costs(&conn);
        for (before, after) in before.iter().zip(&after) {
            assert!(f64::from(*after) <= f64::from(*before) * 1.2, "{before:?} became {after:?}");
        }
    }

    #[test]
    fn whoever_has_few_of_many_finds_them_at_once_by_what_is_theirs() {
        let conn = store();
        fill(&conn, 0..3_000);
        for seq in [2, 1_500, 2_999] {
            conn.execute("UPDATE executions SET created_by = 'eve@x' WHERE seq = ?1", [seq]).expect("another owner");
        }
        for descending in [false, true] {
            let query = EventQuery { descending, limit: 100, ..EventQuery::default() };
            let found = page(&conn, &query, &sight(Some("eve@x"))).expect("a page");
            let mut expected: Vec<u64> =
                [1, 1_499, 2_998].into_iter().flat_map(|execution| (2..5).map(move |n| execution * 4 + n)).collect();
            if descending {
                expected.reverse();
            }
            assert_eq!(found.events.iter().map(|stored| stored.place).collect::<Vec<_>>(), expected);
            assert!(!found.more);
            let sql = if descending { own_sql!("DESC") } else { own_sql!("ASC") };
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
            let rows = explain.query_map(params![0, 0, 0, 0, 0, 0, 0, 0, "eve@x"], |row| row.get::<_, String>(3)).expect("a plan");
            let plan: Vec<String> = rows.collect::<Result<_, _>>().expect("a plan");
            assert!(!plan.iter().any(|line| line.starts_with("SCAN events") || line.starts_with("SCAN executions")), "{plan:?}");
            assert!(
                plan.iter().any(|line| line.contains("events_entity (entity_kind=? AND entity=? AND rowid>? AND rowid<?)")),
                "{plan:?}"
            );
        }
        let few = Sight { most_looked_at: 8, ..sight(Some("eve@x")) };
        assert!(!has_few(&conn, &few, (1, 12_000)).expect("a count"), "twelve are more than eight");
        assert!(!has_few(&conn, &sight(Some("eve@x")), (11_500, 12_000)).expect("a count"), "so little is looked through");
        assert!(!has_few(&conn, &sight(None), (1, 12_000)).expect("a count"));
    }

    #[test]
    fn whoever_has_many_is_told_how_far_they_looked() {
        let conn = store();
        fill(&conn, 0..1_000);
        conn.execute("UPDATE events SET kind = 8 WHERE seq > 10", []).expect("calls");
        let mut query = EventQuery { descending: true, limit: 5, ..EventQuery::default() };
        let sight = sight(Some("bob@x"));
        let mut pages = 0;
        loop {
            let found = page(&conn, &query, &sight).expect("a page");
            pages += 1;
            if !found.more {
                assert_eq!(found.events.len(), 3, "what is no call of their first one: {found:?}");
                break;
            }
            assert!(found.events.is_empty());
            query.after = Some(found.looked);
        }
        assert_eq!(pages, 3, "a thousand at a time, and what is theirs once that is no more than a thousand");
        let ascending = page(&conn, &EventQuery { after: Some(3_990), limit: 5, ..EventQuery::default() }, &sight).expect("a page");
        assert_eq!((ascending.looked, ascending.more), (4_000, false));
    }
}
