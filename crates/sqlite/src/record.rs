//! An execution as a row: the record as JSON, what never changes of it apart, and the few columns that are searched for.

use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::fault::Fault;

/// An execution and its place.
#[derive(Debug)]
pub(crate) struct Record {
    pub seq: i64,
    pub execution: Execution,
}

/// The columns that a step may change. An index is touched only where one of its columns is set, so they are set only where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Columns {
    status: i64,
    ready_at: Option<i64>,
    waiting_until: Option<i64>,
    dead_at: Option<i64>,
}

impl Columns {
    pub(crate) fn of(execution: &Execution) -> Self {
        let waiting_until = match execution.lock {
            LockClaim::Waiting { until } if !execution.status.is_terminal() => Some(until.0),
            _ => None,
        };
        Self {
            status: status_code(execution.status),
            ready_at: execution.ready_key().map(|key| key.ready_at.0),
            waiting_until,
            dead_at: execution.dead_since().map(|since| since.0),
        }
    }

    /// Whether it stands in line where it stood before.
    pub(crate) fn stands_like(self, old: Self) -> bool {
        self.ready_at == old.ready_at
    }
}

/// The number of a status in the store. Part of the format.
pub(crate) const fn status_code(status: Status) -> i64 {
    match status {
        Status::Pending => 0,
        Status::Starting => 1,
        Status::Running => 2,
        Status::Terminating => 3,
        Status::Succeeded => 4,
        Status::Failed => 5,
        Status::Stopped => 6,
    }
}

/// The execution with this id.
pub(crate) fn by_id(conn: &Connection, id: ExecutionId) -> Result<Option<Record>, Fault> {
    let statement = conn.prepare_cached("SELECT seq, id, status, state, spec FROM executions WHERE id = ?1")?;
    one(statement, params![id.as_bytes()])
}

/// The execution at this place.
pub(crate) fn by_seq(conn: &Connection, seq: i64) -> Result<Option<Record>, Fault> {
    let statement = conn.prepare_cached("SELECT seq, id, status, state, spec FROM executions WHERE seq = ?1")?;
    one(statement, params![seq])
}

/// Writes a new execution, which may be a task of the job at that place, and returns its own place.
pub(crate) fn insert(conn: &Connection, execution: &Execution, job: Option<i64>) -> Result<i64, Fault> {
    let columns = Columns::of(execution);
    let mut statement = conn.prepare_cached(
        "INSERT INTO executions (id, status, priority, submitted_at, ready_at, waiting_until, queue, created_by, lock, state, spec, job) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    statement.execute(params![
        execution.id.as_bytes(),
        columns.status,
        crate::ready::class(&execution.spec),
        execution.submitted_at.0,
        columns.ready_at,
        columns.waiting_until,
        execution.spec.queue.as_str(),
        execution.created_by,
        execution.spec.lock.as_ref().map(Name::as_str),
        json(execution),
        json(&execution.spec),
        job,
    ])?;
    Ok(conn.last_insert_rowid())
}

/// Writes what changed of an execution. A terminal status never changes, whatever was decided.
pub(crate) fn update(conn: &Connection, seq: i64, old: Columns, execution: &Execution) -> Result<(), Fault> {
    let new = Columns::of(execution);
    let state = json(execution);
    let changed = if new == old {
        conn.prepare_cached("UPDATE executions SET state = ?2 WHERE seq = ?1")?.execute(params![seq, state])?
    } else if new.dead_at != old.dead_at {
        let mut statement = conn.prepare_cached(
            "UPDATE executions SET status = ?2, ready_at = ?3, waiting_until = ?4, dead_at = ?5, state = ?6 \
             WHERE seq = ?1 AND (status < 4 OR status = ?2)",
        )?;
        statement.execute(params![seq, new.status, new.ready_at, new.waiting_until, new.dead_at, state])?
    } else {
        let mut statement = conn.prepare_cached(
            "UPDATE executions SET status = ?2, ready_at = ?3, waiting_until = ?4, state = ?5 \
             WHERE seq = ?1 AND (status < 4 OR status = ?2)",
        )?;
        statement.execute(params![seq, new.status, new.ready_at, new.waiting_until, state])?
    };
    if changed == 1 { Ok(()) } else { Err(Fault::Damaged(format!("execution {} cannot be changed", execution.id))) }
}

/// The bytes of an id column.
pub(crate) fn id_column(row: &Row<'_>, index: usize) -> Result<ExecutionId, Fault> {
    Ok(ExecutionId::from_bytes(row.get(index)?))
}

/// Text that is parsed where it lies.
pub(crate) fn text<'r>(row: &'r Row<'_>, index: usize) -> Result<&'r [u8], Fault> {
    match row.get_ref(index)? {
        ValueRef::Text(text) => Ok(text),
        other => Err(Fault::Damaged(format!("column {index} is {}", other.data_type()))),
    }
}

fn one(mut statement: CachedStatement<'_>, params: impl rusqlite::Params) -> Result<Option<Record>, Fault> {
    statement.query_row(params, |row| Ok(decode(row))).optional()?.transpose()
}

/// Reads a row of `seq, id, status, state, spec`.
pub(crate) fn decode(row: &Row<'_>) -> Result<Record, Fault> {
    let id = id_column(row, 1)?;
    let unreadable = |error: serde_json::Error| Fault::Damaged(format!("execution {id} cannot be read: {error}"));
    // Judged once as a whole, which costs less than string by string.
    let whole =
        |index| std::str::from_utf8(text(row, index)?).map_err(|error| Fault::Damaged(format!("execution {id} is no text: {error}")));
    let mut execution: Execution = serde_json::from_str(whole(3)?).map_err(unreadable)?;
    execution.spec = serde_json::from_str(whole(4)?).map_err(unreadable)?;
    if execution.id != id || status_code(execution.status) != row.get::<_, i64>(2)? {
        return Err(Fault::Damaged(format!("execution {id} is not what its row says")));
    }
    Ok(Record { seq: row.get(0)?, execution })
}

/// The first column that does not say what the execution itself says; `job` is the place of the job that it is a task of.
pub(crate) fn differing_column(conn: &Connection, record: &Record, job: Option<i64>) -> Result<Option<&'static str>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT priority, submitted_at, ready_at, waiting_until, queue, created_by, lock, dead_at, job FROM executions WHERE seq = ?1",
    )?;
    let (execution, columns) = (&record.execution, Columns::of(&record.execution));
    let spec = &execution.spec;
    let compared = statement.query_row([record.seq], |row| {
        Ok([
            ("priority", row.get::<_, i64>(0)? == crate::ready::class(spec)),
            ("submitted_at", row.get::<_, i64>(1)? == execution.submitted_at.0),
            ("ready_at", row.get::<_, Option<i64>>(2)? == columns.ready_at),
            ("waiting_until", row.get::<_, Option<i64>>(3)? == columns.waiting_until),
            ("queue", row.get::<_, String>(4)? == spec.queue.as_str()),
            ("created_by", row.get::<_, String>(5)? == execution.created_by),
            ("lock", row.get::<_, Option<String>>(6)?.as_deref() == spec.lock.as_ref().map(Name::as_str)),
            ("dead_at", row.get::<_, Option<i64>>(7)? == columns.dead_at),
            ("job", row.get::<_, Option<i64>>(8)? == job),
        ])
    })?;
    Ok(compared.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("model types can be written as JSON")
}
