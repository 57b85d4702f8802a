//! Finding executions by a part of their id, and the pages of lists.

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use runvoy_ports::store::{ListQuery, OpenLease};
use rusqlite::{Connection, OptionalExtension, params};

use crate::fault::Fault;
use crate::job;
use crate::record::{self, Record, id_column, status_code};
use crate::span::{self, Track};

/// Executions whose id begins or ends with these hex digits.
pub(crate) fn find(conn: &Connection, digits: &str, max: usize) -> Result<Vec<ExecutionId>, Fault> {
    if digits.is_empty() || digits.len() > 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(Vec::new());
    }
    let snapshot = conn.unchecked_transaction()?;
    let bound = |fill: &str| -> ExecutionId {
        let text = digits.to_owned() + &fill.repeat(32 - digits.len());
        text.parse().expect("32 hex digits are an id")
    };
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut prefix = snapshot.prepare_cached("SELECT id FROM executions WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3")?;
    let mut rows = prefix.query(params![bound("0").as_bytes(), bound("f").as_bytes(), limit])?;
    while let Some(row) = rows.next()? {
        found.push(id_column(row, 0)?);
    }
    if digits.len() < 32 {
        find_by_end(&snapshot, digits, max, &mut found)?;
    }
    Ok(found)
}

/// No index has ids by their end, but the one by their beginning is small enough to be read through.
fn find_by_end(conn: &Connection, digits: &str, max: usize, found: &mut Vec<ExecutionId>) -> Result<(), Fault> {
    let padded: ExecutionId = ("0".repeat(32 - digits.len()) + digits).parse().expect("32 hex digits are an id");
    let wanted = u128::from_be_bytes(*padded.as_bytes());
    let mask = (1u128 << (4 * digits.len())) - 1;
    let mut statement = conn.prepare_cached("SELECT id FROM executions INDEXED BY executions_id ORDER BY id DESC")?;
    let mut rows = statement.query([])?;
    while found.len() < max {
        let Some(row) = rows.next()? else { break };
        let id = id_column(row, 0)?;
        if u128::from_be_bytes(*id.as_bytes()) & mask == wanted && !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(())
}

/// Every lease that somebody holds.
pub(crate) fn open_leases(conn: &Connection) -> Result<Vec<OpenLease>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut statement = snapshot.prepare_cached("SELECT seq FROM executions INDEXED BY executions_status WHERE status BETWEEN 1 AND 3")?;
    let mut rows = statement.query([])?;
    let mut leases = Vec::new();
    while let Some(row) = rows.next()? {
        let execution = at(&snapshot, row.get(0)?)?;
        let (id, status) = (execution.id, execution.status);
        leases.extend(execution.lease.map(|lease| OpenLease { execution: id, status, lease }));
    }
    Ok(leases)
}

macro_rules! page_sql {
    ($source:literal, $driver:literal, $statuses:literal) => {
        concat!(
            "SELECT seq, id, status, state, spec FROM executions ",
            $source,
            " WHERE ",
            $driver,
            " AND seq BETWEEN ?1 AND ?2 ",
            "AND submitted_at >= ?3 AND submitted_at < ?4 AND (?5 IS NULL OR created_by = ?5) AND (?6 IS NULL OR lock = ?6) ",
            "AND (?9 IS NULL OR job = ?9) AND (?10 IS NULL OR queue = ?10) AND ",
            $statuses,
            " ORDER BY seq DESC LIMIT ?8"
        )
    };
}

const EVERY: &str = page_sql!("NOT INDEXED", "1", "(?7 >> status) & 1");
const BY_USER: &str = page_sql!("INDEXED BY executions_created_by", "created_by = ?5", "(?7 >> status) & 1");
const BY_LOCK: &str = page_sql!("INDEXED BY executions_lock", "lock = ?6", "(?7 >> status) & 1");
const BY_JOB: &str = page_sql!("INDEXED BY executions_job", "job = ?9", "(?7 >> status) & 1");
const BY_QUEUE: &str = page_sql!("INDEXED BY executions_queue", "queue = ?10", "(?7 >> status) & 1");
const BY_STATUS: &str = page_sql!("INDEXED BY executions_status", "status = ?7", "1");

/// Room for no more records than this is made before they are found.
const MOST_RESERVED: usize = 32;

/// Whether a page takes no longer than a few single rows do: it is small, and its one filter, if any, is served by an index.
pub(crate) fn is_short(query: &ListQuery) -> bool {
    let user = query.owner.is_some() || query.created_by.is_some();
    let filters = [user, query.lock.is_some(), query.job.is_some(), query.queue.is_some(), !query.statuses.is_empty()];
    query.limit <= 20 && filters.into_iter().filter(|is_set| *is_set).count() <= 1 && query.since.is_none() && query.until.is_none()
}

/// A page of executions, newest first. One filter is served by its index, the others are applied to what it finds.
pub(crate) fn list(conn: &Connection, query: &ListQuery) -> Result<Vec<Execution>, Fault> {
    // Nobody can be made a co-owner yet: whoever owns an execution has submitted it.
    let user = match (&query.owner, &query.created_by) {
        (Some(owner), Some(user)) if owner != user => return Ok(Vec::new()),
        (owner, user) => owner.as_deref().or(user.as_deref()),
    };
    // A single statement is a snapshot by itself.
    let _snapshot = if takes_one_statement(query) { None } else { Some(conn.unchecked_transaction()?) };
    let Some((first, last)) = span::places(conn, Track::Executions, query.since, query.until)? else { return Ok(Vec::new()) };
    let last = match query.after {
        Some(after) => last.min(place_before(conn, after)?),
        None => last,
    };
    let job = match query.job {
        None => None,
        Some(job) => match job::seq_of(conn, job)? {
            Some(seq) => Some(seq),
            None => return Ok(Vec::new()),
        },
    };
    let page = Page { conn, query, user, job, first, last };
    let only_open = query.statuses.iter().all(|status| !status.is_terminal());
    let by_status =
        job.is_none() && !query.statuses.is_empty() && (only_open || (user.is_none() && query.lock.is_none() && query.queue.is_none()));
    let mut executions = Vec::with_capacity(query.limit.min(MOST_RESERVED));
    if by_status && query.statuses.len() > 1 {
        let mut records = Vec::new();
        for status in Status::ALL.into_iter().filter(|status| query.statuses.contains(status)) {
            page.read(BY_STATUS, status_code(status), |record| records.push(record))?;
        }
        records.sort_unstable_by_key(|record| std::cmp::Reverse(record.seq));
        executions.extend(records.into_iter().take(query.limit).map(|record| record.execution));
    } else {
        let (sql, statuses) = match (&query.statuses[..], &query.lock, user) {
            ([status], ..) if by_status => (BY_STATUS, status_code(*status)),
            (statuses, ..) if job.is_some() => (BY_JOB, mask(statuses)),
            (statuses, Some(_), _) => (BY_LOCK, mask(statuses)),
            (statuses, None, Some(_)) => (BY_USER, mask(statuses)),
            (statuses, None, None) if query.queue.is_some() => (BY_QUEUE, mask(statuses)),
            (statuses, None, None) => (EVERY, mask(statuses)),
        };
        page.read(sql, statuses, |record| executions.push(record.execution))?;
    }
    Ok(executions)
}

fn takes_one_statement(query: &ListQuery) -> bool {
    query.since.is_none() && query.until.is_none() && query.after.is_none() && query.job.is_none() && query.statuses.len() <= 1
}

struct Page<'q> {
    conn: &'q Connection,
    query: &'q ListQuery,
    user: Option<&'q str>,
    job: Option<i64>,
    first: i64,
    last: i64,
}

impl Page<'_> {
    fn read(&self, sql: &str, statuses: i64, mut found: impl FnMut(Record)) -> Result<(), Fault> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params![
            self.first,
            self.last,
            self.query.since.map_or(i64::MIN, |at| at.0),
            self.query.until.map_or(i64::MAX, |at| at.0),
            self.user,
            self.query.lock.as_ref().map(Name::as_str),
            statuses,
            i64::try_from(self.query.limit).unwrap_or(i64::MAX),
            self.job,
            self.query.queue.as_ref().map(Name::as_str),
        ])?;
        while let Some(row) = rows.next()? {
            found(record::decode(row)?);
        }
        Ok(())
    }
}

/// A bit for every status wanted.
fn mask(statuses: &[Status]) -> i64 {
    let wanted = if statuses.is_empty() { &Status::ALL[..] } else { statuses };
    wanted.iter().fold(0, |mask, status| mask | 1 << status_code(*status))
}

/// The last place before an execution; if it is gone, before where it would be.
fn place_before(conn: &Connection, after: ExecutionId) -> Result<i64, Fault> {
    let mut statement = conn.prepare_cached("SELECT id, seq FROM executions WHERE id <= ?1 ORDER BY id DESC LIMIT 1")?;
    let found = statement.query_row([after.as_bytes()], |row| Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, i64>(1)?))).optional()?;
    Ok(match found {
        None => 0,
        Some((id, seq)) if id == *after.as_bytes() => seq - 1,
        Some((_, seq)) => seq,
    })
}

fn at(conn: &Connection, seq: i64) -> Result<Execution, Fault> {
    let record = record::by_seq(conn, seq)?;
    record.map(|record| record.execution).ok_or_else(|| Fault::Damaged(format!("an index names execution {seq}, which is not there")))
}
