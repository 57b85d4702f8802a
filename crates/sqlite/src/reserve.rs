//! Disk space that is kept for what has begun. Half of it is set aside in a file, which is given up
//! when a write finds the disk full, so that ends, kills, revocations and audit events can still be
//! recorded. It is filled again once all that is kept is free; until then no new work is taken.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// The file is never larger: ends are small.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// A start writes a few small files; with less than this free the reserve is given up for them.
const MIN_FREE_AT_START: u64 = 1 << 20;
/// With room for fewer files than this, or than a tenth of all on a small disk, no new work is taken: what runs needs a few for each execution.
const MIN_FREE_FILES: u64 = 1_000;

/// The reserve of one data directory. The default one sets nothing aside.
#[derive(Debug, Clone, Default)]
pub struct DiskReserve(Option<Arc<Reserve>>);

#[derive(Debug)]
struct Reserve {
    path: PathBuf,
    sizes: Sizes,
    is_given_up: AtomicBool,
    /// Held while the file changes.
    changing: Mutex<()>,
}

/// How much is kept, and how much of that is set aside in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    file_bytes: u64,
    kept_bytes: u64,
}

impl Sizes {
    fn of(kept_bytes: u64) -> Self {
        Self { file_bytes: (kept_bytes / 2).min(MAX_FILE_BYTES), kept_bytes }
    }

    /// With less than this free no new work is taken. The file counts as free while it is there.
    fn min_free_bytes(self, is_given_up: bool) -> u64 {
        if is_given_up { self.kept_bytes } else { self.kept_bytes - self.file_bytes }
    }
}

impl DiskReserve {
    /// The reserve in this file, filled if there is room. Half of what is kept is set aside in it.
    pub fn open(path: &Path, kept_bytes: u64) -> Self {
        let sizes = Sizes::of(kept_bytes);
        if sizes.file_bytes == 0 {
            return Self::default();
        }
        let is_held = std::fs::metadata(path).is_ok_and(|file| file.len() == sizes.file_bytes && file.blocks() * 512 >= sizes.file_bytes);
        let reserve = Reserve { path: path.to_owned(), sizes, is_given_up: AtomicBool::new(!is_held), changing: Mutex::default() };
        let reserve = Self(Some(Arc::new(reserve)));
        reserve.tend();
        reserve
    }

    /// Sets nothing aside and only looks at the disk of this directory.
    pub fn watch(directory: &Path, kept_bytes: u64) -> Self {
        let sizes = Sizes { file_bytes: 0, kept_bytes };
        Self(Some(Arc::new(Reserve {
            path: directory.join("reserve"),
            sizes,
            is_given_up: AtomicBool::new(false),
            changing: Mutex::default(),
        })))
    }

    /// Gives up the file of an earlier start if there is no room for what this start writes before it opens anything.
    pub fn make_room(path: &Path) {
        if path.exists() && free_bytes(path).is_some_and(|free| free < MIN_FREE_AT_START) {
            empty(path);
        }
    }

    /// Fills the file again once there is room. May take milliseconds.
    pub fn tend(&self) {
        let Some(reserve) = self.0.as_ref().filter(|_| self.is_given_up()) else { return };
        let _alone = reserve.changing.lock();
        if free_bytes(&reserve.path).is_some_and(|free| free >= reserve.sizes.min_free_bytes(true)) {
            reserve.fill();
        }
    }

    /// The file was given up and could not be filled again yet.
    pub fn is_given_up(&self) -> bool {
        self.0.as_ref().is_some_and(|reserve| reserve.is_given_up.load(Ordering::Acquire))
    }

    /// No new work is taken: the file was given up, or less is free than is kept beside it.
    pub fn is_low(&self) -> bool {
        self.is_given_up() || self.free_bytes().is_some_and(|free| free < self.min_free_bytes()) || self.is_short_of_files()
    }

    /// The file system has space, and hardly any inodes for further files.
    pub fn is_short_of_files(&self) -> bool {
        self.0.as_ref().is_some_and(|reserve| is_short_of_files(directory(&reserve.path)))
    }

    /// With less than this free no new work is taken.
    pub fn min_free_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |reserve| reserve.sizes.min_free_bytes(self.is_given_up()))
    }

    /// What is kept free beside the file.
    pub fn kept_beside_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |reserve| reserve.sizes.min_free_bytes(false))
    }

    /// What is free on the disk of the reserve, without its file; `None` where nothing is kept, or
    /// the system cannot say.
    fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.0.as_ref()?.path)
    }

    /// Writes; where the disk is full the file is given up, and the write is tried once more.
    pub(crate) fn with_room<T, E>(&self, mut write: impl FnMut() -> Result<T, E>, is_full: impl FnOnce(&E) -> bool) -> Result<T, E> {
        let had_room = self.can_give_up();
        match write() {
            Err(error) if had_room && is_full(&error) => {
                self.give_up();
                write()
            }
            done => done,
        }
    }

    /// Whether giving up could help a write that begins now.
    pub(crate) fn can_give_up(&self) -> bool {
        self.0.is_some() && !self.is_given_up()
    }

    /// Gives the file's space to whoever writes next.
    pub(crate) fn give_up(&self) {
        let Some(reserve) = &self.0 else { return };
        let _alone = reserve.changing.lock();
        if !reserve.is_given_up.swap(true, Ordering::AcqRel) {
            empty(&reserve.path);
            tracing::error!(
                bytes = reserve.sizes.file_bytes,
                "the disk is full: the reserve is released to record results, and no new work is taken"
            );
        }
    }
}

impl Reserve {
    fn fill(&self) {
        match allocate(&self.path, self.sizes.file_bytes) {
            Ok(()) => tracing::debug!(bytes = self.sizes.file_bytes, "disk space is reserved to record results"),
            Err(error) if [Errno::NOSPC, Errno::DQUOT].iter().any(|full| error.raw_os_error() == Some(full.raw_os_error())) => {
                empty(&self.path);
                return tracing::warn!(%error, "no disk space could be reserved");
            }
            Err(error) => {
                empty(&self.path);
                tracing::warn!(%error, "this file system cannot reserve space: on a full disk, results wait for space");
            }
        }
        self.is_given_up.store(false, Ordering::Release);
    }
}

/// How much unprivileged writers have on the disk of this file, which need not exist.
fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(directory(path)).ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

/// Whether fewer files can be made here than new work needs. File systems that do not count inodes have none in all.
pub(crate) fn is_short_of_files(directory: &Path) -> bool {
    rustix::fs::statvfs(directory).is_ok_and(|fs| fs.f_files > 0 && fs.f_favail < MIN_FREE_FILES.min(fs.f_files / 10))
}

/// The directory that a file is in.
pub(crate) fn directory(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    file.sync_all()
}

/// Takes the file's blocks back. Synced: some file systems reuse blocks only once their own journal has them.
fn empty(path: &Path) {
    let emptied = File::options().write(true).open(path).and_then(|file| file.set_len(0).and_then(|()| file.sync_all()));
    if let Err(error) = emptied
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::error!(%error, path = %path.display(), "the disk reserve cannot be released");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_file_is_filled_where_new_work_stays_possible() {
        let sizes = Sizes::of(64 << 20);
        assert_eq!(sizes, Sizes { file_bytes: 32 << 20, kept_bytes: 64 << 20 });
        // A first start with just what is kept fills the file and takes work with the rest.
        assert_eq!(sizes.min_free_bytes(true), 64 << 20);
        assert_eq!(sizes.min_free_bytes(false), (64 << 20) - sizes.file_bytes);
        assert!(sizes.file_bytes < sizes.min_free_bytes(true), "what was given up is not for new work");
        assert_eq!(Sizes::of(u64::MAX).file_bytes, MAX_FILE_BYTES);
    }

    #[test]
    fn a_write_that_finds_no_room_is_tried_once_more() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("reserve");
        let reserve = DiskReserve::open(&path, 2 << 20);
        assert!(!reserve.is_given_up() && path.metadata().expect("a file").blocks() * 512 >= 1 << 20);
        let tries = Cell::new(0);
        let write = |succeed_at: u32| {
            tries.set(0);
            reserve.with_room(
                || {
                    tries.set(tries.get() + 1);
                    if tries.get() == succeed_at { Ok(()) } else { Err("full") }
                },
                |error| *error == "full",
            )
        };
        assert_eq!((write(2), tries.get()), (Ok(()), 2));
        assert!(reserve.is_given_up() && reserve.is_low());
        assert_eq!(path.metadata().expect("a file").len(), 0);
        assert_eq!((write(2), tries.get()), (Err("full"), 1), "there is nothing left to give up");
        reserve.tend();
        assert!(!reserve.is_given_up());
        assert!(!DiskReserve::open(&path, 2 << 20).is_given_up(), "the next start finds it");
    }

    #[test]
    fn without_room_nothing_is_set_aside() {
        let dir = tempfile::tempdir().expect("a directory");
        let reserve = DiskReserve::open(&dir.path().join("reserve"), u64::MAX);
        assert!(reserve.is_given_up() && reserve.is_low());
        let none = DiskReserve::open(&dir.path().join("none"), 0);
        assert!(!none.is_given_up() && !none.is_low() && !dir.path().join("none").exists());
        let watch = |kept| DiskReserve::watch(dir.path(), kept);
        assert!(watch(u64::MAX).is_low() && !watch(1).is_low() && !watch(1).is_given_up());
    }
}
