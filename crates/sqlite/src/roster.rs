//! The roster of workers as rows: one for each, replaced whenever it says something newer. Nothing is decided by them.

use async_trait::async_trait;
use runvoy_model::id::WorkerId;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::roster::Roster;
use runvoy_ports::store::StoreError;
use rusqlite::{Connection, params};

use crate::fault::Fault;
use crate::port::mismatch;
use crate::store::SqliteStore;
use crate::writer::{Done, Work};

/// A change of the roster.
#[derive(Debug)]
pub(crate) enum Call {
    Note(Box<Presence>),
    Leave(WorkerId),
    Forget(UnixMs),
}

/// Makes a change; how many rows it touched.
pub(crate) fn apply(conn: &Connection, call: &Call) -> Result<usize, Fault> {
    Ok(match call {
        Call::Note(presence) => {
            let body = serde_json::to_string(presence).expect("a presence can be written as JSON");
            let sql = "INSERT INTO workers (id, seen_at, body) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE \
                       SET seen_at = excluded.seen_at, body = excluded.body WHERE seen_at <= excluded.seen_at";
            conn.prepare_cached(sql)?.execute(params![presence.worker.as_bytes(), presence.seen_at.0, body])?
        }
        Call::Leave(worker) => conn.prepare_cached("DELETE FROM workers WHERE id = ?1")?.execute([worker.as_bytes()])?,
        Call::Forget(before) => conn.prepare_cached("DELETE FROM workers WHERE seen_at < ?1")?.execute([before.0])?,
    })
}

fn all(conn: &Connection) -> Result<Vec<Presence>, Fault> {
    let mut statement = conn.prepare_cached("SELECT body FROM workers")?;
    let mut rows = statement.query([])?;
    let mut workers = Vec::new();
    while let Some(row) = rows.next()? {
        // One that cannot be read, perhaps because a later version wrote it, says something again soon.
        workers.extend(serde_json::from_str::<Presence>(row.get_ref(0)?.as_str().unwrap_or_default()).ok());
    }
    workers.sort_by(|one, other| (&one.name, one.worker).cmp(&(&other.name, other.worker)));
    Ok(workers)
}

impl SqliteStore {
    async fn change_roster(&self, call: Call) -> Result<usize, StoreError> {
        match self.write(Work::Roster(call)).await? {
            Done::Listed(rows) => Ok(rows),
            other => Err(mismatch(&other)),
        }
    }
}

#[async_trait]
impl Roster for SqliteStore {
    async fn note(&self, presence: Presence) -> Result<(), StoreError> {
        self.change_roster(Call::Note(Box::new(presence))).await.map(drop)
    }

    async fn present(&self) -> Result<Vec<Presence>, StoreError> {
        self.readers.read(|conn, _| all(conn)).await
    }

    async fn leave(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.change_roster(Call::Leave(worker)).await.map(drop)
    }

    async fn forget(&self, before: UnixMs) -> Result<usize, StoreError> {
        self.change_roster(Call::Forget(before)).await
    }
}
