//! The line of executions that can be leased, over all queues asked for: by since when they can be, with a head start for each priority.
//!
//! Those who ask for labels of a worker stand in lines of their own, so that a worker without labels never meets them; one that has labels looks at
//! each of them until it has enough. So does whoever passes over users. Both cost a row each, a few microseconds, and nobody else writes meanwhile: beyond
//! so many that do not fit, a look gives up, and those behind them wait.

use runvoy_model::execution::Place;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::{Labels, Needs, Spec};
use runvoy_model::time::UnixMs;
use runvoy_model::view::PassOver;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;

use crate::fault::Fault;
use crate::record::{id_column, text};

/// So many of users who have their share are passed over in one look at those of one priority.
const MOST_PASSED: usize = 100_000;
/// One whose labels do not fit counts for so many: its spec has to be read.
const UNFIT_COUNTS: usize = 10;

/// The first executions that can be leased now. What is in backoff is passed over, not waited for.
pub(crate) fn first(
    conn: &Connection,
    queues: &[Name],
    serves: &[Needs],
    now: UnixMs,
    max: usize,
    pass: &PassOver,
) -> Result<Vec<ExecutionId>, Fault> {
    let mut found = Vec::new();
    for queue in distinct(queues) {
        for line in Line::ALL.into_iter().filter(|line| serves.contains(&line.needs) && !(line.labelled && pass.labels.is_empty())) {
            let mut after = line.number(0);
            while let Some(next) = next_number(conn, queue, after, line)? {
                after = next;
                let look = Look { queue, line, number: next, now, max };
                if line.labelled || pass.users.iter().any(|(of, _)| of == queue) {
                    look.take_fitting(conn, pass, &mut found)?;
                } else {
                    look.take(conn, &mut found)?;
                }
            }
        }
    }
    found.sort_unstable();
    found.truncate(max);
    Ok(found.into_iter().map(|place| place.id).collect())
}

/// When the next execution of these queues can be leased.
pub(crate) fn next(conn: &Connection, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut earliest = None;
    for queue in distinct(queues) {
        for line in Line::ALL.into_iter().filter(|line| serves.contains(&line.needs)) {
            let mut after = line.number(0);
            while let Some(next) = next_number(&snapshot, queue, after, line)? {
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

/// A look at those of one priority in a line.
struct Look<'q> {
    queue: &'q Name,
    line: Line,
    number: i64,
    now: UnixMs,
    max: usize,
}

impl Look<'_> {
    fn place(&self, ready_at: i64, id: ExecutionId) -> Place {
        let priority = u8::try_from(self.number - self.line.number(0)).unwrap_or(u8::MAX);
        Place::new(priority, UnixMs(ready_at), id)
    }

    fn take(&self, conn: &Connection, found: &mut Vec<Place>) -> Result<(), Fault> {
        let mut statement = conn.prepare_cached(
            "SELECT id, ready_at FROM executions INDEXED BY executions_ready \
             WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 ORDER BY ready_at, id LIMIT ?4",
        )?;
        let limit = i64::try_from(self.max).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![self.queue.as_str(), self.number, self.now.0, limit])?;
        while let Some(row) = rows.next()? {
            found.push(self.place(row.get(1)?, id_column(row, 0)?));
        }
        Ok(())
    }

    /// The same, of those that are not passed over.
    fn take_fitting(&self, conn: &Connection, pass: &PassOver, found: &mut Vec<Place>) -> Result<(), Fault> {
        let mut statement = conn.prepare_cached(
            "SELECT id, ready_at, created_by, spec FROM executions INDEXED BY executions_ready \
             WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 ORDER BY ready_at, id",
        )?;
        let mut rows = statement.query(params![self.queue.as_str(), self.number, self.now.0])?;
        let (mut left, mut patience) = (self.max, MOST_PASSED);
        while left > 0 && patience > 0 {
            let Some(row) = rows.next()? else { break };
            let user = std::str::from_utf8(text(row, 2)?).unwrap_or_default();
            if pass.has_user(self.queue, user) {
                patience -= 1;
                continue;
            }
            if self.line.labelled && !fits(text(row, 3)?, pass)? {
                patience = patience.saturating_sub(UNFIT_COUNTS);
                continue;
            }
            found.push(self.place(row.get(1)?, id_column(row, 0)?));
            left -= 1;
        }
        Ok(())
    }
}

/// The part of a spec that says who may take it.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    worker_labels: Labels,
}

fn fits(spec: &[u8], pass: &PassOver) -> Result<bool, Fault> {
    let asked: Asked =
        serde_json::from_slice(spec).map_err(|error| Fault::Damaged(format!("what stands in line cannot be read: {error}")))?;
    Ok(asked.worker_labels.iter().all(|(key, value)| pass.labels.get(key) == Some(value)))
}

/// Those who ask the same of a worker.
#[derive(Debug, Clone, Copy)]
struct Line {
    needs: Needs,
    /// They ask for labels.
    labelled: bool,
}

/// Numbers of one line.
const PRIORITIES: i64 = 16;

impl Line {
    const ALL: [Self; 4] = [
        Self { needs: Needs::Process, labelled: false },
        Self { needs: Needs::Image, labelled: false },
        Self { needs: Needs::Process, labelled: true },
        Self { needs: Needs::Image, labelled: true },
    ];

    const fn number(self, priority: u8) -> i64 {
        let line = match self.needs {
            Needs::Process => 0,
            Needs::Image => 1,
        };
        (line + if self.labelled { 2 } else { 0 }) * PRIORITIES + priority as i64
    }
}

/// What the `priority` column holds: those of one line stand together, by their priority. Part of the format.
pub(crate) fn class(spec: &Spec) -> i64 {
    Line { needs: spec.needs(), labelled: !spec.worker_labels.is_empty() }.number(spec.priority)
}

fn next_number(conn: &Connection, queue: &Name, after: i64, line: Line) -> Result<Option<i64>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT priority FROM executions INDEXED BY executions_ready \
         WHERE queue = ?1 AND priority > ?2 AND priority < ?3 AND ready_at IS NOT NULL ORDER BY priority LIMIT 1",
    )?;
    let end = line.number(0) + PRIORITIES;
    Ok(statement.query_row(params![queue.as_str(), after, end], |row| row.get(0)).optional()?)
}

fn distinct(queues: &[Name]) -> impl Iterator<Item = &Name> {
    queues.iter().enumerate().filter(|(i, queue)| !queues[..*i].contains(queue)).map(|(_, queue)| queue)
}
