//! Keeps a reserve of the file system free for the store itself: logs stop growing before the disk is full.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use runvoy_ports::log::LogError;

/// Free space is looked up again after this much was written.
const LOOK_EVERY: u64 = 1 << 20;
/// What a write costs at least, so that many small ones are noticed too.
const WRITE_COST: u64 = 4096;

/// The watch over free space.
pub(crate) struct Space {
    dir: PathBuf,
    reserve: u64,
    since: AtomicU64,
    low: AtomicBool,
}

impl Space {
    pub(crate) fn new(dir: &Path, reserve: u64) -> Self {
        Self { dir: dir.to_owned(), reserve, since: AtomicU64::new(LOOK_EVERY), low: AtomicBool::new(false) }
    }

    /// Refuses while the file system is at its reserve. While it is, every call looks again: recovery needs no hands.
    pub(crate) fn permit(&self, bytes: u64) -> Result<(), LogError> {
        let since = self.since.fetch_add(bytes + WRITE_COST, Ordering::Relaxed);
        if since < LOOK_EVERY && !self.low.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.since.store(0, Ordering::Relaxed);
        // If the file system cannot say, the write itself will.
        let low = rustix::fs::statvfs(&self.dir).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) < self.reserve);
        if self.low.swap(low, Ordering::Relaxed) != low {
            if low {
                tracing::warn!(reserve_bytes = self.reserve, "log storage is at its disk reserve: appends are refused");
            } else {
                tracing::info!("log storage has space again");
            }
        }
        if low { Err(LogError::NoSpace) } else { Ok(()) }
    }
}
