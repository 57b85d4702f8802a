//! How much there is, without counting what has ended.

use std::path::Path;

use runvoy_ports::store::Counts;
use rusqlite::Connection;

use crate::fault::Fault;
use crate::open::beside;
use crate::retention::EVENTS_FORGOTTEN;

/// Counts the open executions through their index, and takes the rest from the places, which have no gaps.
pub(crate) fn count(conn: &Connection, path: &Path) -> Result<Counts, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let number = |sql: &str, params: &[&dyn rusqlite::ToSql]| -> Result<u64, Fault> {
        let value: i64 = snapshot.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
        Ok(u64::try_from(value).unwrap_or(0))
    };
    let forgotten = number("SELECT ifnull((SELECT value FROM tallies WHERE name = ?1), 0)", &[&EVENTS_FORGOTTEN])?;
    let placed = number("SELECT ifnull(max(seq), 0) FROM events", &[])?;
    Ok(Counts {
        pending: number("SELECT count(*) FROM executions INDEXED BY executions_status WHERE status = 0", &[])?,
        active: number("SELECT count(*) FROM executions INDEXED BY executions_status WHERE status BETWEEN 1 AND 3", &[])?,
        executions: number("SELECT ifnull(max(seq), 0) FROM executions", &[])?,
        events: placed.saturating_sub(forgotten),
        bytes: size(path) + size(&beside(path, "-wal")),
    })
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
