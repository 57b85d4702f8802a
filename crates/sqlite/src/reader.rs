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
    connections: usize,
    permits: Arc<Semaphore>,
    poison: Arc<Poison>,
}

impl Readers {
    pub(crate) fn new(path: &Path, connections: usize, poison: Arc<Poison>) -> Arc<Self> {
        let connections = connections.max(1);
        let permits = Arc::new(Semaphore::new(connections));
        Arc::new(Self { path: path.to_owned(), idle: Mutex::new(Vec::new()), connections, permits, poison })
    }

    /// Reads on a thread that may block.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, look: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Path) -> Result<T, Fault> + Send + 'static,
    {
        self.poison.check()?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| StoreError::Unavailable(Box::new(Stopped::Closed)))?;
        let readers = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            // Given back when the work is done, not when nobody waits for it any more.
            let _permit = permit;
            readers.read_here(look)
        })
        .await;
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
            self.put_back(conn);
        }
        found
    }

    /// Peeks take no permit, so more connections may come back than are worth keeping.
    fn put_back(&self, conn: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < self.connections {
            idle.push(conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn one_reader() -> (tempfile::TempDir, Arc<Readers>) {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("store.sqlite");
        drop(open::writer(&path).expect("opens"));
        let readers = Readers::new(&path, 1, Arc::new(Poison::default()));
        (dir, readers)
    }

    #[test]
    fn no_more_connections_are_kept_than_configured() {
        let (_dir, readers) = one_reader();
        let inner = Arc::clone(&readers);
        let outcome = readers.peek(move |_, _| {
            inner.peek(|_, _| Ok(())).expect("a second connection");
            Ok(())
        });
        outcome.expect("a first connection");
        assert_eq!(readers.idle.lock().len(), 1);
    }

    #[test]
    fn a_read_that_nobody_waits_for_keeps_its_permit() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        let (_dir, readers) = one_reader();
        runtime.block_on(async {
            let (begin, begun) = tokio::sync::oneshot::channel();
            let (end, ended) = mpsc::channel::<()>();
            let theirs = Arc::clone(&readers);
            let reading = tokio::spawn(async move {
                let look = move |_: &Connection, _: &Path| {
                    let _ = begin.send(());
                    let _ = ended.recv();
                    Ok(())
                };
                theirs.read(look).await
            });
            begun.await.expect("reads");
            reading.abort();
            assert!(reading.await.expect_err("aborted").is_cancelled());
            assert_eq!(readers.permits.available_permits(), 0);
            drop(end);
            readers.read(|_, _| Ok(())).await.expect("the permit comes back");
        });
    }
}
