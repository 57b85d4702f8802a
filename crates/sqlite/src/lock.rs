//! Locks as rows, and who stands in line for them.

use runvoy_model::id::ExecutionId;
use runvoy_model::lock::{Holder, Lock};
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::LockLine;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::fault::Fault;
use crate::record::id_column;

/// One lock.
pub(crate) fn by_name(conn: &Connection, name: &Name) -> Result<Option<Lock>, Fault> {
    let mut statement = conn.prepare_cached("SELECT name, fence, holder, held_by, since FROM locks WHERE name = ?1")?;
    statement.query_row([name.as_str()], |row| Ok(decode(row))).optional()?.transpose()
}

/// Every lock that is held, with its line.
pub(crate) fn held(conn: &Connection) -> Result<Vec<LockLine>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut statement = snapshot.prepare_cached(
        "SELECT name, fence, holder, held_by, since FROM locks INDEXED BY locks_held WHERE holder IS NOT NULL ORDER BY name",
    )?;
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let lock = decode(row)?;
        let waiters = line(&snapshot, &lock.name)?;
        lines.push(LockLine { lock, waiters });
    }
    Ok(lines)
}

/// The first that waits for a lock.
pub(crate) fn first_waiter(conn: &Connection, lock: &Name) -> Result<Option<ExecutionId>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT id FROM executions INDEXED BY executions_line WHERE lock = ?1 AND waiting_until IS NOT NULL ORDER BY seq LIMIT 1",
    )?;
    statement.query_row([lock.as_str()], |row| Ok(id_column(row, 0))).optional()?.transpose()
}

/// Executions whose wait ends at or before this time.
pub(crate) fn waits_ended(conn: &Connection, at: UnixMs) -> Result<Vec<ExecutionId>, Fault> {
    let mut statement =
        conn.prepare_cached("SELECT id FROM executions INDEXED BY executions_wait WHERE waiting_until <= ?1 ORDER BY waiting_until, seq")?;
    let mut rows = statement.query([at.0])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(id_column(row, 0)?);
    }
    Ok(ids)
}

/// Writes a lock as it is now.
pub(crate) fn put(conn: &Connection, lock: &Lock) -> Result<(), Fault> {
    let mut statement =
        conn.prepare_cached("INSERT OR REPLACE INTO locks (name, fence, holder, held_by, since) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let holder = lock.holder.as_ref();
    statement.execute(params![
        lock.name.as_str(),
        i64::try_from(lock.fence).map_err(|_| Fault::Damaged(format!("the fence of lock {} is {}", lock.name, lock.fence)))?,
        holder.map(|holder| holder.execution.as_bytes()),
        holder.map(|holder| holder.held_by.as_str()),
        holder.map(|holder| holder.since.0),
    ])?;
    Ok(())
}

fn line(conn: &Connection, lock: &Name) -> Result<Vec<ExecutionId>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT id FROM executions INDEXED BY executions_line WHERE lock = ?1 AND waiting_until IS NOT NULL ORDER BY seq",
    )?;
    let mut rows = statement.query([lock.as_str()])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(id_column(row, 0)?);
    }
    Ok(ids)
}

/// Reads a row of `name, fence, holder, held_by, since`.
pub(crate) fn decode(row: &Row<'_>) -> Result<Lock, Fault> {
    let name: String = row.get(0)?;
    let fence: i64 = row.get(1)?;
    let holder: Option<[u8; 16]> = row.get(2)?;
    let holder = match holder {
        None => None,
        Some(id) => Some(Holder { execution: ExecutionId::from_bytes(id), held_by: row.get(3)?, since: UnixMs(row.get(4)?) }),
    };
    let bad = |what: &str| Fault::Damaged(format!("the {what} of lock {name:?} cannot be read"));
    Ok(Lock { fence: u64::try_from(fence).map_err(|_| bad("fence"))?, name: Name::new(name.as_str()).map_err(|_| bad("name"))?, holder })
}
