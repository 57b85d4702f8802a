//! The line of executions that can be leased: by priority, then by since when they can be, over all queues asked for.

use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::Needs;
use runvoy_model::time::UnixMs;
use rusqlite::{Connection, OptionalExtension, params};

use crate::fault::Fault;
use crate::record::id_column;

/// No lease step takes more than this, so that none writes more than 500 rows.
const MAX_LEASES: usize = 200;

/// The first executions that can be leased now. What is in backoff is passed over, not waited for.
pub(crate) fn first(conn: &Connection, queues: &[Name], serves: &[Needs], now: UnixMs, max: usize) -> Result<Vec<ExecutionId>, Fault> {
    let max = max.min(MAX_LEASES);
    let mut found = Vec::new();
    for queue in distinct(queues) {
        for needs in Needs::ALL.into_iter().filter(|needs| serves.contains(needs)) {
            let mut of_queue = 0;
            let mut after = rank(needs, 0);
            while of_queue < max {
                let Some(next) = next_rank(conn, queue, after, needs)? else { break };
                after = next;
                of_queue += take(conn, queue, next, now, max - of_queue, &mut found)?;
            }
        }
    }
    found.sort_unstable();
    found.truncate(max);
    Ok(found.into_iter().map(|(_, _, id)| id).collect())
}

/// When the next execution of these queues can be leased.
pub(crate) fn next(conn: &Connection, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut earliest = None;
    for queue in distinct(queues) {
        for needs in Needs::ALL.into_iter().filter(|needs| serves.contains(needs)) {
            let mut after = rank(needs, 0);
            while let Some(next) = next_rank(&snapshot, queue, after, needs)? {
                after = next;
                let mut statement = snapshot.prepare_cached(
                    "SELECT min(ready_at) FROM executions INDEXED BY executions_ready \
                     WHERE queue = ?1 AND priority = ?2 AND ready_at IS NOT NULL",
                )?;
                let at: Option<i64> = statement.query_row(params![queue.as_str(), next], |row| row.get(0))?;
                earliest = [earliest, at].into_iter().flatten().min();
            }
        }
    }
    Ok(earliest.map(UnixMs))
}

fn take(
    conn: &Connection,
    queue: &Name,
    rank: i64,
    now: UnixMs,
    max: usize,
    found: &mut Vec<(i64, i64, ExecutionId)>,
) -> Result<usize, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT id, ready_at FROM executions INDEXED BY executions_ready \
         WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 ORDER BY ready_at, id LIMIT ?4",
    )?;
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![queue.as_str(), rank, now.0, limit])?;
    let before = found.len();
    while let Some(row) = rows.next()? {
        found.push((rank % RANKS, row.get(1)?, id_column(row, 0)?));
    }
    Ok(found.len() - before)
}

/// Ranks of one need.
const RANKS: i64 = 16;

/// What the `priority` column holds: those who need the same stand together, in the order of their priority.
pub(crate) const fn rank(needs: Needs, priority: u8) -> i64 {
    let class = match needs {
        Needs::Process => 0,
        Needs::Image => 1,
    };
    class * RANKS + priority as i64
}

fn next_rank(conn: &Connection, queue: &Name, after: i64, needs: Needs) -> Result<Option<i64>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT priority FROM executions INDEXED BY executions_ready \
         WHERE queue = ?1 AND priority > ?2 AND priority < ?3 AND ready_at IS NOT NULL ORDER BY priority LIMIT 1",
    )?;
    let end = rank(needs, 0) + RANKS;
    Ok(statement.query_row(params![queue.as_str(), after, end], |row| row.get(0)).optional()?)
}

fn distinct(queues: &[Name]) -> impl Iterator<Item = &Name> {
    queues.iter().enumerate().filter(|(i, queue)| !queues[..*i].contains(queue)).map(|(_, queue)| queue)
}
