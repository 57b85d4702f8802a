//! Forgetting, a little at a time: the oldest rows first, found through an index, never more than a step may write.

use runvoy_model::event::EventType;
use runvoy_ports::store::Retention;
use rusqlite::{Connection, params};

use crate::event::kind_code;
use crate::fault::Fault;
use crate::receipt;
use crate::span::{self, Track};

/// No step writes more rows than this, so that nobody waits long behind it.
const MAX_ROWS: usize = 500;

/// Name of the tally of events that were forgotten.
pub(crate) const EVENTS_FORGOTTEN: &str = "events_forgotten";

/// Forgets at most so many rows; returns how many.
pub(crate) fn prune(conn: &Connection, retention: &Retention) -> Result<usize, Fault> {
    let max = retention.max_rows.min(MAX_ROWS);
    let mut rows = prune_heartbeats(conn, retention, max)?;
    rows += receipt::prune(conn, retention.receipts_before, room(max, rows))?;
    rows += receipt::prune_keys(conn, retention.receipts_before, room(max, rows))?;
    Ok(rows)
}

fn room(max: usize, rows: usize) -> i64 {
    i64::try_from(max - rows).expect("a small number")
}

/// The newest event always stays: its place must not be given twice.
fn prune_heartbeats(conn: &Connection, retention: &Retention, max: usize) -> Result<usize, Fault> {
    let before = retention.heartbeats_before;
    let Some((_, last)) = span::places(conn, Track::Events, None, Some(before))? else { return Ok(0) };
    let mut statement = conn.prepare_cached(
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events INDEXED BY events_kind \
         WHERE kind = ?1 AND seq <= ?2 AND seq < (SELECT max(seq) FROM events) AND at < ?3 ORDER BY seq LIMIT ?4)",
    )?;
    let rows = statement.execute(params![kind_code(EventType::TaskHeartbeat), last, before.0, room(max, 0)])?;
    if rows > 0 {
        let mut tally = conn.prepare_cached(
            "INSERT INTO tallies (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        )?;
        tally.execute(params![EVENTS_FORGOTTEN, i64::try_from(rows).expect("a small number")])?;
    }
    Ok(rows)
}
