//! The line of executions that can be leased, over all queues asked for: by since when they can be, with a head start for each priority.
//!
//! Those who ask for labels of a worker stand in lines of their own, so that a worker without labels never meets them; one that has labels looks at
//! each of them until it has enough. So does whoever passes over users. Both cost a row each, a few microseconds, and nobody else writes meanwhile: beyond
//! so many that do not fit, a look gives up. Whoever was met is remembered, so that the next look jumps over those who do not fit and goes on where this one
//! ended.

use std::collections::HashSet;

use runvoy_model::execution::Place;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::{Labels, Needs, Spec};
use runvoy_model::time::UnixMs;
use runvoy_model::view::PassOver;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;

use crate::fault::Fault;
use crate::passed::{Passed, Passer};
use crate::record::{id_column, text};
use crate::stretch::{Spot, Walk};

/// So many of users who have their share are passed over in one look at those of one priority.
const MOST_PASSED: usize = 100_000;
/// One whose labels do not fit counts for so many: its spec has to be read. So does a jump, behind which the line has to be searched for.
const UNFIT_COUNTS: usize = 10;

/// Who is asked for.
pub(crate) struct Ask<'q> {
    pub(crate) queues: &'q [Name],
    pub(crate) serves: &'q [Needs],
    pub(crate) now: UnixMs,
    pub(crate) max: usize,
    pub(crate) pass: &'q PassOver,
}

/// The first executions that can be leased now. What is in backoff is passed over, not waited for.
pub(crate) fn first(conn: &Connection, passed: &mut Passed, ask: &Ask<'_>) -> Result<Vec<ExecutionId>, Fault> {
    let Ask { queues, serves, pass, .. } = *ask;
    let mut found = Vec::new();
    for queue in distinct(queues) {
        let have_share: HashSet<&str> = pass.users.iter().filter(|(of, _)| of == queue).map(|(_, user)| user.as_str()).collect();
        for line in Line::ALL.into_iter().filter(|line| serves.contains(&line.needs) && !(line.labelled && pass.labels.is_empty())) {
            let mut after = line.number(0);
            while let Some(next) = next_number(conn, queue, after, line)? {
                after = next;
                let look = Look { ask, queue, have_share: &have_share, line, number: next };
                if line.labelled || !have_share.is_empty() {
                    look.take_fitting(conn, passed, &mut found)?;
                } else {
                    look.take(conn, &mut found)?;
                }
            }
        }
    }
    found.sort_unstable();
    found.truncate(ask.max);
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
    ask: &'q Ask<'q>,
    queue: &'q Name,
    /// Users who are passed over in this queue.
    have_share: &'q HashSet<&'q str>,
    line: Line,
    number: i64,
}

/// How much further a look goes.
struct Breath {
    left: usize,
    patience: usize,
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
        let limit = i64::try_from(self.ask.max).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![self.queue.as_str(), self.number, self.ask.now.0, limit])?;
        while let Some(row) = rows.next()? {
            found.push(self.place(row.get(1)?, id_column(row, 0)?));
        }
        Ok(())
    }

    /// The same, of those that are not passed over.
    fn take_fitting(&self, conn: &Connection, passed: &mut Passed, found: &mut Vec<Place>) -> Result<(), Fault> {
        let labels = if self.line.labelled { self.ask.pass.labels.clone() } else { Labels::new() };
        let passer = Passer { queue: self.queue.clone(), number: self.number, labels };
        let mut walk = Walk::new(passed.take(&passer));
        let mut breath = Breath { left: self.ask.max, patience: MOST_PASSED };
        while self.walk(conn, &mut walk, &mut breath, found)? {}
        passed.keep(passer, walk.end());
        Ok(())
    }

    /// Walks from a jump to the next; whether there is one.
    fn walk(&self, conn: &Connection, walk: &mut Walk, breath: &mut Breath, found: &mut Vec<Place>) -> Result<bool, Fault> {
        let passes = |user: &str| self.have_share.contains(user);
        let after = walk.jump(passes);
        let mut statement = conn.prepare_cached(if self.line.labelled { LABELLED } else { FITTING })?;
        let mut rows = statement.query(params![self.queue.as_str(), self.number, self.ask.now.0, after.ready_at, after.id.as_bytes()])?;
        while breath.left > 0 && breath.patience > 0 {
            let Some(row) = rows.next()? else { break };
            let spot = Spot { ready_at: row.get(1)?, id: id_column(row, 0)? };
            let user = std::str::from_utf8(text(row, 2)?).unwrap_or_default();
            if walk.comes_to(spot, passes) {
                breath.patience = breath.patience.saturating_sub(UNFIT_COUNTS);
                return Ok(true);
            }
            // Of whoever has their share it is enough to know that they may stand here.
            let is_known = passes(user) && walk.names(user);
            if self.line.labelled && !is_known && !fits(text(row, 3)?, self.ask.pass)? {
                breath.patience = breath.patience.saturating_sub(UNFIT_COUNTS);
                walk.meet(spot, None);
                continue;
            }
            walk.meet(spot, Some(user));
            if passes(user) {
                breath.patience -= 1;
                continue;
            }
            found.push(self.place(spot.ready_at, spot.id));
            breath.left -= 1;
        }
        Ok(false)
    }
}

/// Those behind a spot, in order.
const FITTING: &str = "SELECT id, ready_at, created_by FROM executions INDEXED BY executions_ready \
     WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 AND (ready_at, id) > (?4, ?5) ORDER BY ready_at, id";

/// The same with what they ask for, which may lie on pages of its own.
const LABELLED: &str = "SELECT id, ready_at, created_by, spec FROM executions INDEXED BY executions_ready \
     WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 AND (ready_at, id) > (?4, ?5) ORDER BY ready_at, id";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_begins_where_the_last_one_ended() {
        let mut conn = Connection::open_in_memory().expect("a database in memory");
        crate::schema::migrate(&mut conn).expect("an empty store can be migrated");
        for statement in [FITTING, LABELLED] {
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).expect("a plan");
            let params = params!["default", 33, 0, 0, [0u8; 16]];
            let rows = explain.query_map(params, |row| row.get::<_, String>(3)).expect("a plan");
            let plan: Vec<String> = rows.collect::<Result<_, _>>().expect("a plan");
            let range = "executions_ready (queue=? AND priority=? AND (ready_at,id)>(?,?) AND ready_at<?)";
            assert!(plan.len() == 1 && plan[0].ends_with(range), "{plan:?}");
        }
    }
}
