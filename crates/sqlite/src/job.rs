//! Jobs as rows: the record as JSON and the few columns that are searched for. Their tasks are in [`crate::node`].

use runvoy_model::id::JobId;
use runvoy_model::job::{Job, JobStatus};
use runvoy_model::time::UnixMs;
use runvoy_ports::job::JobQuery;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::fault::Fault;
use crate::record::text;

/// A job and its place.
#[derive(Debug)]
pub(crate) struct Placed {
    pub seq: i64,
    pub job: Job,
}

/// The columns that a step may change. They are set only where they differ, because an index pays for every set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Columns {
    status: i64,
    attention: bool,
}

impl Columns {
    pub(crate) const fn of(job: &Job) -> Self {
        Self { status: status_code(job.status), attention: job.needs_attention() }
    }
}

/// The number of a status in the store. Part of the format.
const fn status_code(status: JobStatus) -> i64 {
    match status {
        JobStatus::Staged => 0,
        JobStatus::Running => 1,
        JobStatus::Failed => 2,
        JobStatus::Completed => 3,
        JobStatus::Cancelled => 4,
    }
}

/// The job with this id.
pub(crate) fn by_id(conn: &Connection, id: JobId) -> Result<Option<Placed>, Fault> {
    let mut statement = conn.prepare_cached("SELECT seq, id, status, state FROM jobs WHERE id = ?1")?;
    statement.query_row([id.as_bytes()], |row| Ok(decode(row))).optional()?.transpose()
}

/// The job at this place.
pub(crate) fn by_seq(conn: &Connection, seq: i64) -> Result<Option<Job>, Fault> {
    let mut statement = conn.prepare_cached("SELECT seq, id, status, state FROM jobs WHERE seq = ?1")?;
    let placed = statement.query_row([seq], |row| Ok(decode(row))).optional()?.transpose()?;
    Ok(placed.map(|placed| placed.job))
}

/// The place of the job with this id.
pub(crate) fn seq_of(conn: &Connection, id: JobId) -> Result<Option<i64>, Fault> {
    let mut statement = conn.prepare_cached("SELECT seq FROM jobs WHERE id = ?1")?;
    Ok(statement.query_row([id.as_bytes()], |row| row.get(0)).optional()?)
}

/// Jobs whose id begins or ends with these hex digits, newest first. Jobs are few beside executions: all of their ids are read.
pub(crate) fn find(conn: &Connection, digits: &str, max: usize) -> Result<Vec<JobId>, Fault> {
    let mut statement = conn.prepare_cached("SELECT id FROM jobs ORDER BY id DESC")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while found.len() < max {
        let Some(row) = rows.next()? else { break };
        let id = JobId::from_bytes(row.get(0)?);
        let text = id.to_string();
        if text.starts_with(digits) || text.ends_with(digits) {
            found.push(id);
        }
    }
    Ok(found)
}

/// Writes a new job and returns its place.
pub(crate) fn insert(conn: &Connection, job: &Job) -> Result<i64, Fault> {
    let mut statement =
        conn.prepare_cached("INSERT INTO jobs (id, status, attention, created_at, created_by, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let columns = Columns::of(job);
    statement.execute(params![job.id.as_bytes(), columns.status, columns.attention, job.created_at.0, job.created_by, json(job)])?;
    Ok(conn.last_insert_rowid())
}

/// Writes what changed of a job.
pub(crate) fn update(conn: &Connection, seq: i64, old: Columns, job: &Job) -> Result<(), Fault> {
    let new = Columns::of(job);
    let changed = if new == old {
        conn.prepare_cached("UPDATE jobs SET state = ?2 WHERE seq = ?1")?.execute(params![seq, json(job)])?
    } else if new.status == old.status {
        let mut statement = conn.prepare_cached("UPDATE jobs SET attention = ?2, state = ?3 WHERE seq = ?1")?;
        statement.execute(params![seq, new.attention, json(job)])?
    } else {
        let mut statement = conn.prepare_cached(
            "UPDATE jobs SET status = ?2, attention = ?3, created_at = ?4, created_by = ?5, state = ?6 WHERE seq = ?1 AND status < 3",
        )?;
        statement.execute(params![seq, new.status, new.attention, job.created_at.0, job.created_by, json(job)])?
    };
    if changed == 1 { Ok(()) } else { Err(Fault::Damaged(format!("job {} cannot be changed", job.id))) }
}

/// Forgets a job that has no tasks any more.
pub(crate) fn delete(conn: &Connection, seq: i64) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM jobs WHERE seq = ?1")?.execute([seq])?;
    Ok(())
}

macro_rules! page_sql {
    ($source:literal, $driver:literal) => {
        concat!(
            "SELECT seq, id, status, state FROM jobs ",
            $source,
            " WHERE ",
            $driver,
            " AND seq < ?1 AND (?2 IS NULL OR created_by = ?2) AND (?3 >> status) & 1 ORDER BY seq DESC LIMIT ?4"
        )
    };
}

const EVERY: &str = page_sql!("NOT INDEXED", "1");
const BY_USER: &str = page_sql!("INDEXED BY jobs_created_by", "created_by = ?2");
const BY_STATUS: &str = page_sql!("INDEXED BY jobs_status", "status = ?5");

/// A page of jobs, newest first. Whoever asks for some statuses of everybody's jobs finds them by status, for those that run are few among many.
pub(crate) fn list(conn: &Connection, query: &JobQuery) -> Result<Vec<Job>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let before = match query.after {
        None => i64::MAX,
        Some(after) => match seq_of(&snapshot, after)? {
            Some(seq) => seq,
            None => return Ok(Vec::new()),
        },
    };
    let wanted: Vec<i64> = JobStatus::ALL.into_iter().filter(|status| query.wants(*status)).map(status_code).collect();
    let mask = wanted.iter().fold(0, |mask, code| mask | 1_i64 << code);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    if query.owner.is_none() && !query.statuses.is_empty() {
        let mut statement = snapshot.prepare_cached(BY_STATUS)?;
        for code in wanted {
            read(statement.query(params![before, query.owner, mask, limit, code])?, &mut found)?;
        }
        found.sort_unstable_by_key(|placed| std::cmp::Reverse(placed.seq));
        found.truncate(query.limit);
    } else {
        let mut statement = snapshot.prepare_cached(if query.owner.is_some() { BY_USER } else { EVERY })?;
        read(statement.query(params![before, query.owner, mask, limit])?, &mut found)?;
    }
    Ok(found.into_iter().map(|placed| placed.job).collect())
}

fn read(mut rows: rusqlite::Rows<'_>, found: &mut Vec<Placed>) -> Result<(), Fault> {
    while let Some(row) = rows.next()? {
        found.push(decode(row)?);
    }
    Ok(())
}

/// Jobs that have more to do than one step could, oldest first.
pub(crate) fn attention(conn: &Connection, max: usize) -> Result<Vec<JobId>, Fault> {
    let mut statement = conn.prepare_cached("SELECT id FROM jobs INDEXED BY jobs_attention WHERE attention = 1 ORDER BY seq LIMIT ?1")?;
    ids(statement.query([i64::try_from(max).unwrap_or(i64::MAX)])?)
}

/// Jobs that were begun before this time and never opened, oldest first.
pub(crate) fn staged_before(conn: &Connection, at: UnixMs, max: usize) -> Result<Vec<JobId>, Fault> {
    let mut statement =
        conn.prepare_cached("SELECT id FROM jobs INDEXED BY jobs_status WHERE status = 0 AND created_at < ?1 ORDER BY seq LIMIT ?2")?;
    ids(statement.query(params![at.0, i64::try_from(max).unwrap_or(i64::MAX)])?)
}

fn ids(mut rows: rusqlite::Rows<'_>) -> Result<Vec<JobId>, Fault> {
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(JobId::from_bytes(row.get(0)?));
    }
    Ok(ids)
}

/// Reads a row of `seq, id, status, state`.
pub(crate) fn decode(row: &Row<'_>) -> Result<Placed, Fault> {
    let id = JobId::from_bytes(row.get(1)?);
    let job: Job = serde_json::from_slice(text(row, 3)?).map_err(|error| Fault::Damaged(format!("job {id} cannot be read: {error}")))?;
    if job.id != id || status_code(job.status) != row.get::<_, i64>(2)? {
        return Err(Fault::Damaged(format!("job {id} is not what its row says")));
    }
    Ok(Placed { seq: row.get(0)?, job })
}

/// The first column that does not say what the job itself says.
pub(crate) fn differing_column(conn: &Connection, placed: &Placed) -> Result<Option<&'static str>, Fault> {
    let mut statement = conn.prepare_cached("SELECT attention, created_at, created_by FROM jobs WHERE seq = ?1")?;
    let job = &placed.job;
    Ok(statement
        .query_row([placed.seq], |row| {
            Ok([
                ("attention", row.get::<_, bool>(0)? == job.needs_attention()),
                ("created_at", row.get::<_, i64>(1)? == job.created_at.0),
                ("created_by", row.get::<_, String>(2)? == job.created_by),
            ])
        })?
        .into_iter()
        .find(|(_, is_same)| !is_same)
        .map(|(name, _)| name))
}

fn json(job: &Job) -> String {
    serde_json::to_string(job).expect("a job can be written as JSON")
}
