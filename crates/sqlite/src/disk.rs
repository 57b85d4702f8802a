//! How much room the disk has left, asked at most once a second while there is enough.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::reserve::{DiskReserve, directory, is_short_of_files};

const ASK_EVERY: Duration = Duration::from_secs(1);

/// The disk under the store, and how much of it is kept free.
#[derive(Debug)]
pub(crate) struct Disk {
    directory: PathBuf,
    reserve_bytes: u64,
    pub(crate) reserve: DiskReserve,
    asked: Option<(Instant, bool)>,
}

impl Disk {
    /// The disk that holds this file.
    pub(crate) fn under(path: &Path, reserve_bytes: u64, reserve: DiskReserve) -> Self {
        Self { directory: directory(path).to_owned(), reserve_bytes, reserve, asked: None }
    }

    /// Only the reserve is left, or not even that.
    pub(crate) fn is_at_reserve(&mut self) -> bool {
        if self.reserve.is_given_up() {
            return true;
        }
        if self.reserve_bytes == 0 {
            return false;
        }
        match self.asked {
            // A disk that was low is asked each time: what is ready again must not refuse.
            Some((at, false)) if at.elapsed() < ASK_EVERY => false,
            _ => {
                let stat = rustix::fs::statvfs(&self.directory);
                let low = stat.is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < self.reserve_bytes)
                    || is_short_of_files(&self.directory);
                self.asked = Some((Instant::now(), low));
                low
            }
        }
    }
}
