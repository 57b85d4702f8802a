//! What queues hold: those who wait and those who run through the indexes that hold only them, and the dead letters through theirs. What has ended
//! otherwise is never looked at.

use std::collections::BTreeMap;

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{DeadQuery, QueueCounts};
use rusqlite::{Connection, params};

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
        let text: String = row.get(0)?;
        let name = Name::new(&text).map_err(|error| Fault::Damaged(format!("a queue has no name: {error}")))?;
        let number = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        let since = row.get::<_, Option<i64>>(2)?.map(UnixMs);
        add(queues.entry(name.clone()).or_insert_with(|| QueueCounts::empty(name)), number, since);
    }
    Ok(())
}

macro_rules! page_sql {
    ($side:literal, $order:literal) => {
        concat!(
            "SELECT seq, id, status, state, spec FROM executions INDEXED BY executions_dead ",
            "WHERE queue = ?1 AND dead_at IS NOT NULL AND (dead_at, id) ",
            $side,
            " (?2, ?3) AND (?4 IS NULL OR created_by = ?4) ORDER BY dead_at ",
            $order,
            ", id ",
            $order,
            " LIMIT ?5"
        )
    };
}

const OLDEST_FIRST: &str = page_sql!(">", "ASC");
const NEWEST_FIRST: &str = page_sql!("<", "DESC");

/// A page of dead letters.
pub(crate) fn dead(conn: &Connection, query: &DeadQuery) -> Result<Vec<Execution>, Fault> {
    let (sql, beyond_all) = match query.oldest_first {
        true => (OLDEST_FIRST, (UnixMs(i64::MIN), ExecutionId::from_bytes([0; 16]))),
        false => (NEWEST_FIRST, (UnixMs(i64::MAX), ExecutionId::from_bytes([0xff; 16]))),
    };
    let (at, id) = query.after.unwrap_or(beyond_all);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(sql)?;
    // Nobody can be made a co-owner yet: whoever owns an execution has submitted it.
    let mut rows = statement.query(params![query.queue.as_str(), at.0, id.as_bytes(), query.owner, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(record::decode(row)?.execution);
    }
    Ok(found)
}

/// How many dead letters a queue has, of one user or of all.
pub(crate) fn dead_count(conn: &Connection, queue: &Name, owner: Option<&str>) -> Result<u64, Fault> {
    let count: i64 = match owner {
        None => {
            let mut statement =
                conn.prepare_cached("SELECT count(*) FROM executions INDEXED BY executions_dead WHERE queue = ?1 AND dead_at IS NOT NULL")?;
            statement.query_row([queue.as_str()], |row| row.get(0))?
        }
        Some(owner) => {
            let mut statement = conn.prepare_cached(
                "SELECT count(*) FROM executions INDEXED BY executions_dead WHERE queue = ?1 AND dead_at IS NOT NULL AND created_by = ?2",
            )?;
            statement.query_row(params![queue.as_str(), owner], |row| row.get(0))?
        }
    };
    Ok(u64::try_from(count).unwrap_or(0))
}
