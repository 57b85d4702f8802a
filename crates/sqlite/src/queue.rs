//! What queues hold: those who wait and those who run through the indexes that hold only them, and the dead letters through theirs. What has ended
//! otherwise is never looked at.

use std::collections::BTreeMap;

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use rusqlite::{Connection, Rows, Statement, params};

use crate::fault::Fault;
use crate::record;

/// Whoever can be leased, now or after a backoff.
const READY: &str =
    "SELECT queue, count(*), min(ready_at) FROM executions INDEXED BY executions_ready WHERE ready_at IS NOT NULL GROUP BY queue";
/// Whoever stands in line for a lock.
const IN_LINE: &str =
    "SELECT queue, count(*), min(submitted_at) FROM executions INDEXED BY executions_wait WHERE waiting_until IS NOT NULL GROUP BY queue";
const IN_FLIGHT: &str =
    "SELECT queue, count(*), NULL FROM executions INDEXED BY executions_status WHERE status BETWEEN 1 AND 3 GROUP BY queue";
/// Of each that waits its row is read: this is asked seldom.
const BACKLOGS: &str =
    "SELECT created_by, queue, count(*) FROM executions INDEXED BY executions_status WHERE status = 0 GROUP BY created_by, queue";
const DEAD: &str = "SELECT queue, count(*), NULL FROM executions INDEXED BY executions_dead WHERE dead_at IS NOT NULL GROUP BY queue";

/// Every queue that holds something, by name.
pub(crate) fn counts(conn: &Connection) -> Result<Vec<QueueCounts>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut queues = BTreeMap::new();
    for sql in [READY, IN_LINE] {
        each(&snapshot, sql, &mut queues, |counts, number, since| {
            counts.depth += number;
            counts.oldest = [counts.oldest, since].into_iter().flatten().min();
        })?;
    }
    each(&snapshot, IN_FLIGHT, &mut queues, |counts, number, _| counts.in_flight = number)?;
    each(&snapshot, DEAD, &mut queues, |counts, number, _| counts.dead = number)?;
    Ok(queues.into_values().collect())
}

fn each(
    conn: &Connection,
    sql: &str,
    queues: &mut BTreeMap<Name, QueueCounts>,
    add: impl Fn(&mut QueueCounts, u64, Option<UnixMs>),
) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name = name_of(&row.get::<_, String>(0)?)?;
        let number = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        let since = row.get::<_, Option<i64>>(2)?.map(UnixMs);
        add(queues.entry(name.clone()).or_insert_with(|| QueueCounts::empty(name)), number, since);
    }
    Ok(())
}

fn name_of(text: &str) -> Result<Name, Fault> {
    Name::new(text).map_err(|error| Fault::Damaged(format!("a queue has no name: {error}")))
}

/// What waits, by user and queue.
pub(crate) fn backlogs(conn: &Connection) -> Result<Vec<Backlog>, Fault> {
    let mut statement = conn.prepare_cached(BACKLOGS)?;
    let mut rows = statement.query([])?;
    let mut backlogs = Vec::new();
    while let Some(row) = rows.next()? {
        let (user, queue) = (row.get(0)?, name_of(&row.get::<_, String>(1)?)?);
        backlogs.push(Backlog { user, queue, count: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0) });
    }
    Ok(backlogs)
}

/// Where each page begins and ends among the entries of one index, whoever's they are.
macro_rules! page_sql {
    ($what:literal, $index:literal, $whose:literal, $side:literal, $order:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM executions INDEXED BY ",
            $index,
            " WHERE queue = ?1 AND dead_at IS NOT NULL AND ",
            $side,
            " ",
            $whose,
            " ORDER BY dead_at ",
            $order,
            ", id ",
            $order,
            " LIMIT ?5"
        )
    };
}

/// The same for what is read of each, and for how many there are.
macro_rules! page {
    ($index:literal, $whose:literal, $side:literal, $order:literal) => {
        Page {
            rows: page_sql!("seq, id, status, state, spec", $index, $whose, $side, $order),
            count: concat!("SELECT count(*) FROM (", page_sql!("1", $index, $whose, $side, $order), ")"),
        }
    };
}

/// The statements for one way to go through dead letters.
struct Page {
    rows: &'static str,
    count: &'static str,
}

const OLDEST_FIRST: Page = page!("executions_dead", "", "(dead_at, id) > (?2, ?3) AND dead_at <= ?4", "ASC");
const NEWEST_FIRST: Page = page!("executions_dead", "", "(dead_at, id) < (?2, ?3)", "DESC");
// Nobody can be made a co-owner yet: whoever owns an execution has submitted it.
const OWN_OLDEST_FIRST: Page = page!("executions_dead_own", "AND created_by = ?6", "(dead_at, id) > (?2, ?3) AND dead_at <= ?4", "ASC");
const OWN_NEWEST_FIRST: Page = page!("executions_dead_own", "AND created_by = ?6", "(dead_at, id) < (?2, ?3)", "DESC");

impl Page {
    const fn of(query: &DeadQuery) -> &'static Self {
        match (query.oldest_first, query.owner.is_some()) {
            (true, false) => &OLDEST_FIRST,
            (false, false) => &NEWEST_FIRST,
            (true, true) => &OWN_OLDEST_FIRST,
            (false, true) => &OWN_NEWEST_FIRST,
        }
    }
}

fn asked<'s>(statement: &'s mut Statement<'_>, query: &DeadQuery) -> Result<Rows<'s>, Fault> {
    let until = query.until.unwrap_or(UnixMs(i64::MAX));
    let (at, id) = if query.oldest_first {
        query.after.unwrap_or((UnixMs(i64::MIN), ExecutionId::from_bytes([0; 16])))
    } else {
        // One bound above, or the index would be entered at the wrong one.
        let last = (until, ExecutionId::from_bytes([0xff; 16]));
        query.after.map_or(last, |after| after.min(last))
    };
    let (queue, limit) = (query.queue.as_str(), i64::try_from(query.limit).unwrap_or(i64::MAX));
    Ok(match &query.owner {
        None => statement.query(params![queue, at.0, id.as_bytes(), until.0, limit])?,
        Some(owner) => statement.query(params![queue, at.0, id.as_bytes(), until.0, limit, owner])?,
    })
}

/// A page of dead letters.
pub(crate) fn dead(conn: &Connection, query: &DeadQuery) -> Result<Vec<Execution>, Fault> {
    let mut statement = conn.prepare_cached(Page::of(query).rows)?;
    let mut rows = asked(&mut statement, query)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(record::decode(row)?.execution);
    }
    Ok(found)
}

/// How many are on such a page.
pub(crate) fn dead_count(conn: &Connection, query: &DeadQuery) -> Result<u64, Fault> {
    let mut statement = conn.prepare_cached(Page::of(query).count)?;
    let mut rows = asked(&mut statement, query)?;
    let count: i64 = rows.next()?.map_or(Ok(0), |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many dead letters others have, a page of one's own is found at its place.
    #[test]
    fn each_page_begins_at_its_place_in_an_index() {
        let mut conn = Connection::open_in_memory().expect("a store");
        crate::schema::migrate(&mut conn).expect("a schema");
        for (page, entered) in [
            (OLDEST_FIRST, "executions_dead (queue=? AND (dead_at,id)>(?,?) AND dead_at<?)"),
            (NEWEST_FIRST, "executions_dead (queue=? AND dead_at>? AND (dead_at,id)<(?,?))"),
            (OWN_OLDEST_FIRST, "executions_dead_own (created_by=? AND queue=? AND (dead_at,id)>(?,?) AND dead_at<?)"),
            (OWN_NEWEST_FIRST, "executions_dead_own (created_by=? AND queue=? AND dead_at>? AND (dead_at,id)<(?,?))"),
        ] {
            for sql in [page.rows, page.count] {
                let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
                let values = rusqlite::params_from_iter(vec![rusqlite::types::Null; explain.parameter_count()]);
                let steps = explain.query_map(values, |row| row.get::<_, String>(3)).expect("steps");
                let steps: Vec<String> = steps.map(|step| step.expect("a step")).collect();
                assert!(steps.iter().any(|step| step.contains(entered)), "{sql}: {steps:?}");
                assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}: {steps:?}");
            }
        }
    }
}
