//! The one thread that writes. It takes all steps that wait, runs them in one transaction, commits, and only then answers: one sync serves many. A step that
//! fails before it has written anything fails alone. If one fails later, or the commit itself does, nothing was kept, and the steps are run again one by one,
//! so that each gets its own answer: a savepoint for each would cost all of them what hardly any needs. If the disk fails, the store is poisoned and nothing
//! is run again.
//!
//! It also makes the checkpoints and drives backups between two transactions; nobody else holds up or is held up by a write.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use runvoy_model::chain::AuditKey;
use runvoy_model::command::{Answer, Command};
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::cost::CostFold;
use runvoy_ports::store::{Retention, StoreError};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ffi};
use tokio::sync::{mpsc, oneshot};

use crate::desk::{Desk, Memory};
use crate::disk::Disk;
use crate::fault::{Fault, Meaning, meaning};
use crate::poison::{Poison, Stopped};
use crate::stats::Counters;
use crate::{cost, open, registry, retention, roster};

/// How many steps share a transaction at most.
const MAX_BATCH: usize = 256;
/// How many frames the WAL holds before they are carried into the database. 8 MiB: long enough to write a page once for many steps, short
/// enough that nobody notices.
const CHECKPOINT_FRAMES: i32 = 2_000;
/// How many pages of a backup are copied between two transactions.
const BACKUP_PAGES: i32 = 128;

/// Something to write.
#[derive(Debug)]
pub(crate) enum Work {
    Step(Box<(Step, Command)>),
    TouchKey { hash: [u8; 32], at: UnixMs },
    Prune(Retention),
    Roster(roster::Call),
    Cost(Box<CostFold>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Done {
    Answer(Box<Answer>),
    Touched,
    Pruned(usize),
    /// A change of the roster, by so many rows.
    Listed(usize),
    /// Costs are counted up to this place.
    Counted(u64),
}

/// Something to write, and whoever waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) reply: oneshot::Sender<Result<Done, StoreError>>,
}

impl Job {
    /// Whether what was read of records before is no longer true. Notes and refusals leave it so: whoever is refused must not be able to make
    /// everybody else read anew.
    fn changed_records(&self, result: &Result<Done, Fault>) -> bool {
        let Work::Step(step) = &self.work else { return false };
        let is_change = matches!(&step.1, Command::Change(change, _) if !change.is_note());
        is_change && matches!(result, Ok(Done::Answer(answer)) if !matches!(**answer, Answer::Refused(_)))
    }
}

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Message {
    Job(Job),
    Backup { path: PathBuf, reply: oneshot::Sender<Result<(), StoreError>> },
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// What the thread shares with whoever holds the store.
pub(crate) struct Shared {
    pub(crate) poison: Arc<Poison>,
    pub(crate) counters: Arc<Counters>,
    /// Rises with every committed change of what a record says.
    pub(crate) authority: Arc<AtomicU64>,
}

/// The thread's own state, beside its connection.
pub(crate) struct Writer {
    pub(crate) inbox: mpsc::Receiver<Message>,
    pub(crate) audit_key: AuditKey,
    pub(crate) disk: Disk,
    pub(crate) poison: Arc<Poison>,
    pub(crate) counters: Arc<Counters>,
    authority: Arc<AtomicU64>,
    memory: Memory,
    waiting: Vec<Job>,
    backups: VecDeque<(PathBuf, oneshot::Sender<Result<(), StoreError>>)>,
    closing: Option<oneshot::Sender<Result<(), StoreError>>>,
    checkpoint_at: i32,
}

thread_local! {
    /// How many frames the WAL of this thread's connection holds.
    static WAL_FRAMES: Cell<i32> = const { Cell::new(0) };
}

impl Writer {
    pub(crate) fn new(inbox: mpsc::Receiver<Message>, audit_key: AuditKey, disk: Disk, shared: Shared) -> Self {
        let Shared { poison, counters, authority } = shared;
        Self {
            inbox,
            audit_key,
            disk,
            poison,
            counters,
            authority,
            memory: Memory::default(),
            waiting: Vec::with_capacity(MAX_BATCH),
            backups: VecDeque::new(),
            closing: None,
            checkpoint_at: CHECKPOINT_FRAMES,
        }
    }

    /// Serves until it is closed or nobody can ask any more.
    pub(crate) fn run(mut self, conn: &Connection) {
        conn.wal_hook(Some(|_, frames| {
            WAL_FRAMES.set(frames);
            Ok(())
        }));
        while let Some(message) = self.inbox.blocking_recv() {
            self.sort(message);
            self.turn(conn);
            while let Some((path, reply)) = self.backups.pop_front() {
                let outcome = self.back_up(conn, &path);
                // Whoever asked may have gone; the same holds for every answer here.
                let _ = reply.send(outcome);
            }
            if let Some(reply) = self.closing.take() {
                let _ = reply.send(self.close(conn));
                return;
            }
        }
    }

    fn sort(&mut self, message: Message) {
        match message {
            Message::Job(job) => self.waiting.push(job),
            Message::Backup { path, reply } => self.backups.push_back((path, reply)),
            Message::Close(reply) => self.closing = Some(reply),
        }
    }

    /// Commits what waits.
    fn turn(&mut self, conn: &Connection) {
        while self.waiting.len() < MAX_BATCH
            && let Ok(message) = self.inbox.try_recv()
        {
            self.sort(message);
        }
        if self.waiting.is_empty() {
            return;
        }
        let jobs = std::mem::take(&mut self.waiting);
        self.commit(conn, jobs);
        if WAL_FRAMES.get() >= self.checkpoint_at && self.poison.check().is_ok() {
            self.checkpoint(conn);
        }
    }

    fn commit(&mut self, conn: &Connection, jobs: Vec<Job>) {
        if self.poison.check().is_err() {
            return self.refuse(jobs);
        }
        let can_make_room = self.disk.reserve.can_give_up();
        match self.attempt(conn, &jobs) {
            Ok(results) => {
                self.counters.steps.fetch_add(jobs.len() as u64, Ordering::Relaxed);
                // Before anybody hears of it: whoever was told of a revocation must not be able to see the key work.
                if jobs.iter().zip(&results).any(|(job, result)| job.changed_records(result)) {
                    self.authority.fetch_add(1, Ordering::AcqRel);
                }
                for (job, result) in jobs.into_iter().zip(results) {
                    let _ = job.reply.send(result.map_err(Fault::into_store_error));
                }
            }
            Err(fault) if fault.meaning() == Meaning::Fatal => {
                self.poison.set(Stopped::Failed(fault.to_string()));
                self.refuse(jobs);
            }
            Err(fault) if can_make_room && fault.meaning() == Meaning::NoSpace => {
                self.disk.reserve.give_up();
                self.commit(conn, jobs);
            }
            Err(fault) => {
                self.counters.failed_commits.fetch_add(1, Ordering::Relaxed);
                match <[Job; 1]>::try_from(jobs) {
                    Ok([job]) => drop(job.reply.send(Err(fault.into_store_error()))),
                    Err(jobs) => jobs.into_iter().for_each(|job| self.commit(conn, vec![job])),
                }
            }
        }
    }

    fn refuse(&self, jobs: Vec<Job>) {
        for job in jobs {
            let stopped = self.poison.check().err();
            let _ = job.reply.send(Err(stopped.expect("only a poisoned store refuses")));
        }
    }

    /// Runs the jobs in one transaction; an error means that none of them was kept.
    fn attempt(&mut self, conn: &Connection, jobs: &[Job]) -> Result<Vec<Result<Done, Fault>>, Fault> {
        let outcome = fill(conn, jobs, |work| self.perform(conn, work)).and_then(|results| {
            let begun = Instant::now();
            execute(conn, "COMMIT")?;
            self.counters.commit.add(begun.elapsed());
            Ok(results)
        });
        if outcome.is_err() {
            self.memory.forget();
            // After some failures SQLite has rolled back by itself.
            if !conn.is_autocommit()
                && let Err(error) = execute(conn, "ROLLBACK")
            {
                self.poison.set(Stopped::Failed(error.to_string()));
            }
        }
        outcome
    }

    fn perform(&mut self, conn: &Connection, work: &Work) -> Result<Done, Fault> {
        let run = AssertUnwindSafe(|| self.perform_unguarded(conn, work));
        // A panic is a bug, but the bug of one step, which fails like any other.
        catch_unwind(run).unwrap_or_else(|_| Err(Fault::Damaged("a step broke an invariant; the log has the details".into())))
    }

    fn perform_unguarded(&mut self, conn: &Connection, work: &Work) -> Result<Done, Fault> {
        Ok(match work {
            Work::Step(step) => {
                let at_reserve = step.1.adds() && self.disk.is_at_reserve();
                let answer = Desk::new(conn, &mut self.memory, at_reserve).apply(&self.audit_key, &step.0, &step.1)?;
                Done::Answer(Box::new(answer))
            }
            Work::TouchKey { hash, at } => {
                registry::touch_key(conn, *hash, *at)?;
                Done::Touched
            }
            Work::Prune(retention) => {
                self.memory.forget_days();
                Done::Pruned(retention::prune(conn, retention)?)
            }
            Work::Roster(call) => Done::Listed(roster::apply(conn, call)?),
            Work::Cost(fold) => Done::Counted(cost::count(conn, fold)?),
        })
    }

    /// Carries the WAL into the database, as far as no reader is in the way.
    fn checkpoint(&mut self, conn: &Connection) {
        let begun = Instant::now();
        let frames = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i32>(1)?, row.get::<_, i32>(2)?));
        let carry = || conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], frames);
        let all_done = match self.disk.reserve.with_room(carry, is_full) {
            Ok((logged, carried)) => logged == carried,
            Err(error) => {
                let fault = Fault::from(error);
                if matches!(fault.meaning(), Meaning::Fatal | Meaning::Damaged) {
                    self.poison.set(Stopped::Failed(fault.to_string()));
                }
                false
            }
        };
        self.counters.checkpoint.add(begun.elapsed());
        // Where it could not finish it is tried again, but not after every step.
        self.checkpoint_at = if all_done { CHECKPOINT_FRAMES } else { WAL_FRAMES.get().saturating_add(CHECKPOINT_FRAMES) };
    }

    /// Copies the store page by page, serving what comes in between. What is changed meanwhile is changed in the copy too, because both go
    /// through this one connection; so the copy is the store as it is when the last page is done.
    fn back_up(&mut self, conn: &Connection, path: &Path) -> Result<(), StoreError> {
        let copy = || -> Result<Connection, StoreError> { open::copy(path).map_err(|error| StoreError::Unavailable(Box::new(error))) };
        let mut copy = copy()?;
        let failed = |error: rusqlite::Error| Fault::from(error).into_store_error();
        let backup = Backup::new(conn, &mut copy).map_err(failed)?;
        loop {
            self.poison.check()?;
            if let StepResult::Done = backup.step(BACKUP_PAGES).map_err(failed)? {
                return Ok(());
            }
            self.turn(conn);
            if self.closing.is_some() || self.inbox.is_closed() {
                return Err(StoreError::Unavailable(Box::new(Stopped::Closed)));
            }
        }
    }

    fn close(&mut self, conn: &Connection) -> Result<(), StoreError> {
        self.poison.check()?;
        let carry = || conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        let busy = self.disk.reserve.with_room(carry, is_full).map_err(|error| Fault::from(error).into_store_error())?;
        // A reader that was in the way costs nothing but a longer start.
        tracing::debug!(busy, "the store is closed");
        self.poison.set(Stopped::Closed);
        Ok(())
    }
}

/// Begins a transaction and performs the jobs in it. One that fails before it has written anything fails alone.
fn fill(conn: &Connection, jobs: &[Job], mut perform: impl FnMut(&Work) -> Result<Done, Fault>) -> Result<Vec<Result<Done, Fault>>, Fault> {
    execute(conn, "BEGIN IMMEDIATE")?;
    let mut results = Vec::with_capacity(jobs.len());
    for job in jobs {
        let before = conn.total_changes();
        let result = perform(&job.work);
        if conn.is_autocommit() {
            // SQLite has rolled back by itself: the jobs before are undone, and those that follow would be kept one by one, whatever the commit says.
            return Err(result.err().unwrap_or_else(|| rolled_back().into()));
        }
        match result {
            // A statement that failed may have changed a part of what it was to change; a row that cannot be understood has changed nothing.
            Err(fault @ Fault::Sql(rusqlite::Error::SqliteFailure(..))) => return Err(fault),
            Err(fault) if conn.total_changes() != before => return Err(fault),
            result => results.push(result),
        }
    }
    Ok(results)
}

fn is_full(error: &rusqlite::Error) -> bool {
    meaning(error) == Meaning::NoSpace
}

fn rolled_back() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ABORT_ROLLBACK), None)
}

fn execute(conn: &Connection, sql: &'static str) -> Result<(), Fault> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs three jobs, the second of which does `second`, each on a row of its own; tells what came of it and of the rows.
    fn fill_three(second: impl Fn(&Connection) -> Result<(), Fault>) -> (Result<Vec<bool>, Fault>, bool, i64) {
        let conn = Connection::open_in_memory().expect("a database");
        conn.execute_batch("CREATE TABLE t (x INTEGER PRIMARY KEY, y)").expect("a table");
        let job = |_| Job { work: Work::TouchKey { hash: [0; 32], at: UnixMs(0) }, reply: oneshot::channel().0 };
        let mut number = 0;
        let outcome = fill(&conn, &[(); 3].map(job), |_| {
            number += 1;
            if number == 2 {
                second(&conn)?;
            } else {
                conn.execute("INSERT INTO t VALUES (?1, 'text')", [number])?;
            }
            Ok(Done::Touched)
        });
        let rows = conn.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).expect("a count");
        (outcome.map(|results| results.iter().map(Result::is_ok).collect()), conn.is_autocommit(), rows)
    }

    #[test]
    fn a_row_that_cannot_be_understood_fails_its_reader_alone() {
        let misread = |conn: &Connection| Ok(conn.query_row("SELECT y FROM t", [], |row| row.get::<_, i64>(0)).map(drop)?);
        let (outcome, is_over, rows) = fill_three(misread);
        assert_eq!((outcome.expect("the others go on"), is_over, rows), (vec![true, false, true], false, 2));
        let (outcome, ..) = fill_three(|conn| {
            conn.execute("INSERT INTO t VALUES (2, 'text')", [])?;
            misread(conn)
        });
        outcome.expect_err("what it has written must not stay");
    }

    #[test]
    fn a_statement_that_fails_fails_all() {
        let (outcome, ..) = fill_three(|conn| Ok(conn.execute("INSERT INTO t VALUES (1, 'text')", []).map(drop)?));
        outcome.expect_err("a key is there twice");
    }

    #[test]
    fn nothing_is_written_behind_a_transaction_that_is_over() {
        let (outcome, is_over, rows) = fill_three(|conn| Ok(conn.execute_batch("ROLLBACK")?));
        let fault = outcome.expect_err("the first job is undone");
        assert_eq!((fault.meaning(), is_over, rows), (Meaning::Unavailable, true, 0));
    }
}
