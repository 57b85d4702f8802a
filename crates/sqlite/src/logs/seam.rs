//! The two things that log storage takes from outside: how bytes reach stable storage, and random salts. Tests
//! replace them to make a flush fail and to get the same bytes twice.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Puts written bytes on stable storage.
pub trait Flush: Send + Sync {
    /// The file's data, and as much metadata as is needed to read it back.
    fn data(&self, file: &File) -> io::Result<()>;
    /// The names in a directory.
    fn directory(&self, dir: &Path) -> io::Result<()>;
}

/// The real disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Flush for Disk {
    fn data(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn directory(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

/// What the store is given besides its directory and limits.
#[derive(Clone)]
pub struct Seams {
    /// How bytes reach stable storage.
    pub flush: Arc<dyn Flush>,
    /// A new salt for each file; it must not be guessable by who writes into a log.
    pub salt: Arc<dyn Fn() -> io::Result<u32> + Send + Sync>,
}

impl Default for Seams {
    fn default() -> Self {
        Self { flush: Arc::new(Disk), salt: Arc::new(|| getrandom::u32().map_err(io::Error::other)) }
    }
}
