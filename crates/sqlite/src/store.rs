//! The store as its callers hold it: opened once, shared, closed at the end. Writes go to the one writer, reads to the readers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use runvoy_ports::store::StoreError;
use tokio::sync::{mpsc, oneshot};

use crate::disk::Disk;
use crate::fault::Fault;
use crate::open::{self, OpenError, Options, beside};
use crate::poison::{Poison, Stopped};
use crate::reader::Readers;
use crate::stats::{Counters, Stats};
use crate::writer::{Done, Job, Message, Shared, Work, Writer};

/// How many requests may wait for the writer before callers wait to ask.
const MAX_WAITING: usize = 4096;

/// The embedded store: executions, locks, events and what people manage in one SQLite database.
///
/// Whoever opens it makes sure that no other process does: the lock of the data directory is theirs.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) readers: Arc<Readers>,
    path: PathBuf,
    writer: Option<mpsc::Sender<Message>>,
    poison: Arc<Poison>,
    thread: Mutex<Option<JoinHandle<()>>>,
    counters: Arc<Counters>,
    pub(crate) authority: Arc<AtomicU64>,
}

/// Why a backup was not made. What was half written is gone.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A backup never replaces a file.
    #[error("{} exists already: choose another name", .0.display())]
    Exists(PathBuf),
    /// The store could not be read, or was closed.
    #[error("the store could not be copied")]
    Store(#[source] StoreError),
    /// The copy could not be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl SqliteStore {
    /// Opens a store, creating it if there is none. Blocks: call it where that is allowed.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let conn = open::writer(path)?;
        let (sender, inbox) = mpsc::channel(MAX_WAITING);
        let poison = Arc::new(Poison::default());
        let counters = Arc::new(Counters::default());
        let disk = Disk::under(path, options.reserve_bytes, options.reserve);
        let authority = Arc::new(AtomicU64::new(0));
        let shared = Shared { poison: Arc::clone(&poison), counters: Arc::clone(&counters), authority: Arc::clone(&authority) };
        let writer = Writer::new(inbox, options.audit_key, disk, shared);
        let thread = std::thread::Builder::new().name("runvoy-store".into()).spawn(move || writer.run(&conn));
        let thread = thread.map_err(|source| OpenError::File { path: path.to_owned(), source })?;
        Ok(Self {
            readers: Readers::new(path, options.read_connections, Arc::clone(&poison)),
            path: path.to_owned(),
            writer: Some(sender),
            poison,
            thread: Mutex::new(Some(thread)),
            counters,
            authority,
        })
    }

    /// Answers what waits, carries everything into the database file and lets go of it. Later calls are refused.
    pub async fn close(&self) -> Result<(), StoreError> {
        let outcome = self.ask(Message::Close).await.and_then(|outcome| outcome);
        self.readers.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // The thread is past its last answer; a panic in it has already been told by a lost reply.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        outcome
    }

    /// Copies the running store to a new file. The copy is a store: open it to restore it.
    pub async fn backup_to(&self, path: impl AsRef<Path>) -> Result<(), BackupError> {
        let path = path.as_ref().to_owned();
        if path.exists() {
            return Err(BackupError::Exists(path));
        }
        let partial = beside(&path, ".partial");
        let file = |path: &Path, source| BackupError::File { path: path.to_owned(), source };
        remove(&partial).map_err(|source| file(&partial, source))?;
        let copied = self.ask(|reply| Message::Backup { path: partial.clone(), reply }).await.and_then(|outcome| outcome);
        let publish = move || -> Result<(), BackupError> {
            if let Err(error) = copied {
                remove(&partial).map_err(|source| file(&partial, source))?;
                return Err(BackupError::Store(error));
            }
            let synced = std::fs::File::open(&partial).and_then(|copy| copy.sync_all());
            synced.map_err(|source| file(&partial, source))?;
            std::fs::rename(&partial, &path).and_then(|()| open::sync_directory(&path)).map_err(|source| file(&path, source))
        };
        let published = tokio::task::spawn_blocking(publish).await;
        published.unwrap_or_else(|error| Err(BackupError::Store(StoreError::Unavailable(Box::new(error)))))
    }

    /// Reads every page, row and index entry, and says what does not fit. Takes long with much data, and the WAL grows meanwhile.
    pub async fn verify(&self) -> Result<(), StoreError> {
        let path = self.path.clone();
        let check = move |_: &rusqlite::Connection, _: &Path| {
            // A new connection has no page in memory, so that every one is read from the file.
            let conn = open::reader(&path)?;
            let mut statement = conn.prepare("PRAGMA integrity_check(10)")?;
            let findings: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            if findings == ["ok"] { Ok(()) } else { Err(Fault::Damaged(findings.join("; "))) }
        };
        self.readers.read(check).await
    }

    /// Fails once the store answers nothing more: its disk failed it, its writer is gone, or it was closed. Cheap.
    pub fn alive(&self) -> Result<(), StoreError> {
        self.poison.check()?;
        match &self.writer {
            Some(writer) if !writer.is_closed() => Ok(()),
            _ => Err(StoreError::Unavailable(Box::new(Stopped::Closed))),
        }
    }

    /// What the writer has done since the store was opened.
    pub fn stats(&self) -> Stats {
        let waiting = self.writer.as_ref().map_or(0, |writer| writer.max_capacity() - writer.capacity());
        self.counters.read(waiting)
    }

    /// Has the writer do something, and waits until it is durable.
    pub(crate) async fn write(&self, work: Work) -> Result<Done, StoreError> {
        self.ask(|reply| Message::Job(Job { work, reply })).await.and_then(|outcome| outcome)
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Result<T, StoreError> {
        let closed = || StoreError::Unavailable(Box::new(Stopped::Closed));
        let (reply, answer) = oneshot::channel();
        let writer = self.writer.as_ref().ok_or_else(closed)?;
        writer.send(message(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())
    }
}

impl Drop for SqliteStore {
    /// Like a crash, only that what was asked for is still written: nothing is carried into the database file.
    fn drop(&mut self) {
        self.writer = None;
        self.readers.close();
        if let Some(thread) = self.thread.get_mut().take() {
            let _ = thread.join();
        }
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
