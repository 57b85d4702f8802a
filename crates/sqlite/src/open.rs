//! Opening a store: which settings its connections have, and when it is refused.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runvoy_model::chain::AuditKey;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::fault::{Meaning, meaning};
use crate::reserve::DiskReserve;
use crate::{schema, vfs, wal};

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The key of the events' chains.
    pub audit_key: AuditKey,
    /// So much of the disk is left for what has begun to end: with less free, nothing new is taken.
    pub reserve_bytes: u64,
    /// What is given up when the disk is full.
    pub reserve: DiskReserve,
    /// How many reads may run at once.
    pub read_connections: usize,
}

impl Options {
    /// The usual ones: a reserve of 64 MiB and four readers.
    pub fn new(audit_key: AuditKey) -> Self {
        Self { audit_key, reserve_bytes: 64 << 20, reserve: DiskReserve::default(), read_connections: 4 }
    }
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A newer program wrote it.
    #[error("the store has version {found}, and this program knows versions up to {known}: use the newer program")]
    TooNew {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// It cannot be trusted.
    #[error("the store is damaged: {0}; restore a backup")]
    Damaged(String),
    /// Its schema could not be brought up to date. Nothing was changed.
    #[error("the store could not be migrated")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file cannot be opened, read or created.
    #[error("cannot open the store {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite cannot open it.
    #[error("cannot open the store")]
    Sqlite(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match meaning(&error) {
            Meaning::Damaged => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

/// How long a connection waits for another one's moment of exclusion.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// What the WAL is cut back to when it begins anew.
const WAL_LIMIT_BYTES: i64 = 64 << 20;
/// Page caches, in KiB (negative, as SQLite wants it).
const WRITER_CACHE: i64 = -16_384;
const READER_CACHE: i64 = -2_048;

/// Opens the writer's connection, having created and migrated what is missing.
pub(crate) fn writer(path: &Path) -> Result<Connection, OpenError> {
    vfs::register()?;
    let file = |source| OpenError::File { path: path.to_owned(), source };
    let is_new = create(path).map_err(file)?;
    let wal_path = beside(path, "-wal");
    if let Some(damage) = wal::damage(&wal_path).map_err(|source| OpenError::File { path: wal_path, source })? {
        return Err(OpenError::Damaged(damage));
    }
    let mut conn = connect(path)?;
    if is_new {
        conn.pragma_update(None, "page_size", 4096)?;
        vfs::reserve(&conn)?;
    }
    settle(&conn, WRITER_CACHE)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(OpenError::Damaged(format!("its journal mode is {mode}")));
    }
    conn.pragma_update(None, "synchronous", "full")?;
    let synchronous: i64 = conn.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    assert_eq!(synchronous, 2, "what is written to the WAL is passed on by the sync of its commit");
    // Checkpoints are made by the writer itself, because SQLite's own ones hide a failed sync.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update_and_check(None, "journal_size_limit", WAL_LIMIT_BYTES, |_| Ok(()))?;
    schema::migrate(&mut conn)?;
    Ok(conn)
}

/// Opens a reader's connection to a store that the writer has opened.
pub(crate) fn reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let conn = connect(path)?;
    settle(&conn, READER_CACHE)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// Opens a connection that reads what is there, whether or not it was changed by another hand: pages are not checked, and nothing is written.
pub(crate) fn unchecked(path: &Path) -> Result<Connection, rusqlite::Error> {
    // A read of a WAL writes its shared index, so that the file itself is opened for both.
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settle(&conn, READER_CACHE)?;
    conn.pragma_update(None, "query_only", true)?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(conn)
}

/// Opens the file that a backup is written to.
pub(crate) fn copy(path: &Path) -> Result<Connection, OpenError> {
    create(path).map_err(|source| OpenError::File { path: path.to_owned(), source })?;
    let conn = connect(path)?;
    vfs::reserve(&conn)?;
    // A half-written copy is thrown away, so it needs no journal; it is synced as a whole at its end.
    conn.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "off")?;
    Ok(conn)
}

/// The path of a file that SQLite keeps beside the database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes names in a directory durable.
pub(crate) fn sync_directory(of: &Path) -> std::io::Result<()> {
    let parent = of.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(parent)?.sync_all()
}

fn connect(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags_and_vfs(path, flags, vfs::NAME)
}

/// Creates the file for its owner alone (SQLite gives the files beside it the same mode); tells whether it is still empty.
fn create(path: &Path) -> std::io::Result<bool> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let is_new = file.metadata()?.len() == 0;
    if is_new {
        file.sync_all()?;
        sync_directory(path)?;
    }
    Ok(is_new)
}

fn settle(conn: &Connection, cache: i64) -> Result<(), rusqlite::Error> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "cache_size", cache)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Without this a statement with a bound LIMIT is planned anew at every use, for its plan may depend on the value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // The last connection to close would checkpoint, and hide a failed sync.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(())
}
