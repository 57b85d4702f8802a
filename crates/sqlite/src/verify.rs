//! Proves a store's events, whether a server has it open or refuses it: chains, heads, the records and specs that they wrote, checkpoints,
//! exported checkpoints, and last the pages themselves; and, asked apart, whether all other state follows from those events. It reads without the checks that every other read
//! makes, because its answer must name what was changed and not only that something was. Snapshots are short, so that a server's write-ahead
//! log does not grow meanwhile. Never writes.

mod chain;
mod page;
mod record;
mod state;
mod tree;

use std::path::Path;

use runvoy_model::chain::AuditKey;
use runvoy_model::fold::Comparison;
use runvoy_model::verify::{BadEvent, Problem, Verdict};
use rusqlite::Connection;

use crate::fault::{Fault, Meaning};
use crate::open::{self, OpenError};
use crate::schema::KNOWN_VERSION;

/// Looks at everything in the store at `path`. `exported` is the file that its checkpoints were told to. Blocks, and takes long with much
/// data.
pub fn verify(path: &Path, key: &AuditKey, exported: Option<&Path>) -> Result<Verdict, OpenError> {
    let file = |path: &Path, source| OpenError::File { path: path.to_owned(), source };
    std::fs::metadata(path).map_err(|source| file(path, source))?;
    // Whatever was told before the store is looked at must be in it.
    let told = exported.map_or(0, |exported| std::fs::metadata(exported).map_or(0, |file| file.len()));
    let mut verdict = Verdict::default();
    let looked = look(path, key, exported.map(|path| tree::Exported { path, told }), &mut verdict);
    match looked {
        Ok(()) => {}
        Err(Stop::Fault(fault)) if fault.meaning() == Meaning::Damaged => verdict.note(unreadable(&fault.to_string())),
        Err(Stop::Fault(Fault::Sql(error))) => return Err(error.into()),
        Err(Stop::Fault(fault)) => return Err(OpenError::Damaged(fault.to_string())),
        Err(Stop::Open(error)) => return Err(error),
    }
    if verdict.is_whole()
        && let Some(number) = page::first_bad(path).map_err(|source| file(path, source))?
    {
        let message = format!("page {number} was not written by the server, although every event is intact");
        verdict.note(store(Problem::Altered, message));
    }
    Ok(verdict)
}

/// Compares all state that is kept in the store at `path` with what its events say. Blocks, and takes long with much data.
pub fn compare_state(path: &Path) -> Result<Comparison, OpenError> {
    std::fs::metadata(path).map_err(|source| OpenError::File { path: path.to_owned(), source })?;
    let mut found = Comparison::default();
    match look_at_state(path, &mut found) {
        Ok(()) => {}
        Err(Stop::Fault(fault)) if fault.meaning() == Meaning::Damaged => found.add(Err(state::unreadable("STORE".into(), &fault))),
        Err(Stop::Fault(Fault::Sql(error))) => return Err(error.into()),
        Err(Stop::Fault(fault)) => return Err(OpenError::Damaged(fault.to_string())),
        Err(Stop::Open(error)) => return Err(error),
    }
    Ok(found)
}

fn look_at_state(path: &Path, found: &mut Comparison) -> Result<(), Stop> {
    let conn = open::unchecked(path)?;
    check_version(&conn)?;
    Ok(state::check(&conn, found)?)
}

/// Why the look ended early.
#[derive(Debug)]
enum Stop {
    Fault(Fault),
    Open(OpenError),
}

impl<E: Into<Fault>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

fn look(path: &Path, key: &AuditKey, exported: Option<tree::Exported<'_>>, verdict: &mut Verdict) -> Result<(), Stop> {
    let conn = open::unchecked(path)?;
    check_version(&conn)?;
    let last: i64 = conn.query_row("SELECT ifnull(max(seq), 0) FROM events", [], |row| row.get(0))?;
    let linked = chain::check(&conn, key, last, verdict)?;
    let mut of_tree = Verdict::default();
    let leaves = tree::check(&conn, key, last, exported, &mut of_tree)?;
    (verdict.checkpoint_at, verdict.unexported_from) = (of_tree.checkpoint_at, of_tree.unexported_from);
    // A chain names the event itself; the tree knows only between which checkpoints it lies.
    if verdict.is_whole() {
        verdict.first_bad = of_tree.first_bad;
    }
    if verdict.is_whole() && linked != leaves {
        verdict.note(unreadable(&format!("the index has {linked} events, but the table has {leaves}")));
    }
    // Only where the events are whole do they tell what a record should be.
    if verdict.is_whole() {
        record::check(&conn)?.1.into_iter().for_each(|bad| verdict.note(bad));
    }
    Ok(())
}

fn check_version(conn: &Connection) -> Result<(), Stop> {
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found.cmp(&KNOWN_VERSION) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Stop::Open(OpenError::TooNew { found, known: KNOWN_VERSION })),
        std::cmp::Ordering::Less => Err(Stop::Open(OpenError::Migration(
            format!("it has version {found}: start the server once, which brings it to version {KNOWN_VERSION}").into(),
        ))),
    }
}

/// Something that no event can be named for.
fn unreadable(why: &str) -> BadEvent {
    store(Problem::Unreadable, format!("the store cannot be read: {why}"))
}

fn store(problem: Problem, message: String) -> BadEvent {
    BadEvent { place: u64::MAX, entity: "STORE".into(), number: 0, event_id: None, problem, message }
}
