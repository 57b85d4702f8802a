//! Reads, each on a connection of its own and in a snapshot that lasts no longer than the call: a held snapshot keeps the WAL from being
//! carried over and lets it grow without end. A few rows are read where the caller is, because the way to another thread and back costs
//! several times as much as the read; whatever may take longer goes to a thread that may block.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_ports::store::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::fault::{Fault, Meaning};
use crate::open;
use crate::poison::{Poison, Stopped};

/// The connections that nobody reads with at the moment, and the right to have one.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    poison: Arc<Poison>,
}

impl Readers {
    pub(crate) fn new(path: &Path, connections: usize, poison: Arc<Poison>) -> Arc<Self> {
        let permits = Semaphore::new(connections.max(1));
        Arc::new(Self { path: path.to_owned(), idle: Mutex::new(Vec::new()), permits, poison })
    }

    /// Reads on a thread that may block.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, look: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Path) -> Result<T, Fault> + Send + 'static,
    {
        self.poison.check()?;
        let _permit = self.permits.acquire().await.map_err(|_| StoreError::Unavailable(Box::new(Stopped::Closed)))?;
        let readers = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || readers.read_here(look)).await;
        match read {
            Ok(found) => found.map_err(Fault::into_store_error),
            Err(error) => Err(StoreError::Unavailable(Box::new(error))),
        }
    }

    /// Reads a few rows by their key, on the caller's own thread.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&Connection, &Path) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.poison.check()?;
        self.read_here(look).map_err(Fault::into_store_error)
    }

    /// Lets go of every connection.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().clear();
    }

    fn read_here<T>(&self, look: impl FnOnce(&Connection, &Path) -> Result<T, Fault>) -> Result<T, Fault> {
        let idle = self.idle.lock().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open::reader(&self.path)?,
        };
        let found = look(&conn, &self.path);
        // A connection that met a failing disk is not used again.
        let is_well = found.as_ref().err().is_none_or(|fault| fault.meaning() != Meaning::Fatal);
        if is_well && !self.permits.is_closed() {
            self.idle.lock().push(conn);
        }
        found
    }
}
