//! What goes wrong with log files, and its one map to the port's error.

use std::io;
use std::path::{Path, PathBuf};

use runvoy_ports::log::LogError;

/// A failure of the files under the logs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("{action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{} has log format {found}, this program knows up to {known}: use a newer runvoy", path.display())]
    Newer { path: PathBuf, found: u8, known: u8 },
    #[error("{} is damaged: {what}", path.display())]
    Corrupt { path: PathBuf, what: &'static str },
    #[error("log directory {} is used by another process: stop that one first", path.display())]
    InUse { path: PathBuf },
    #[error("a flush failed earlier ({reason}), so no more is written: check the disk, then restart")]
    Poisoned { reason: String },
    #[error("a block of records contradicts itself: send it again as it was built")]
    Malformed,
    #[error("log storage is closed")]
    Closed,
}

impl Trouble {
    /// For `map_err`: names what was tried on which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// The disk, or this user's share of it, is full.
    pub(crate) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

impl From<Trouble> for LogError {
    fn from(trouble: Trouble) -> Self {
        if trouble.is_full_disk() { Self::NoSpace } else { Self::Storage(Box::new(trouble)) }
    }
}
