//! One append-only file: written by one writer at a time, read by anybody up to its written length, flushed for
//! all who wait in one go. It never retries a flush, and never leaves a torn write behind a good one.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::format::{FILE_HEADER, FileHeader, Kind, VERSION, decode_file_header, encode_file_header};
use super::medium::Medium;
use super::trouble::Trouble;

/// An append-only file of entries.
pub(crate) struct DataFile {
    medium: Arc<Medium>,
    path: PathBuf,
    file: File,
    salt: u32,
    written: AtomicU64,
    /// How long an earlier owner left it; nothing for one that was made here.
    found: u64,
    /// A failed write may have left bytes behind `written` that could not be cut off yet.
    ragged: AtomicBool,
    flushing: Mutex<Flushing>,
}

#[derive(Default)]
struct Flushing {
    flushed: u64,
    running: bool,
    waiting: Vec<oneshot::Sender<()>>,
    /// Directories that name this file, or name those, and were not flushed since.
    directories: Vec<PathBuf>,
}

impl DataFile {
    /// Makes a new file. `directories` changed with it; they are flushed together with the file.
    pub(crate) fn create(medium: &Arc<Medium>, path: &Path, kind: Kind, directories: Vec<PathBuf>) -> Result<Self, Trouble> {
        let salt = medium.salt(path)?;
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(Trouble::io("create", path))?;
        if let Err(error) = file.write_all_at(&encode_file_header(kind, salt), 0) {
            let _ = std::fs::remove_file(path);
            return Err(Trouble::io("write", path)(error));
        }
        Ok(Self::new(medium, path, file, salt, FILE_HEADER, directories))
    }

    /// Opens a file of an earlier start; `None` if it has no whole file header (it died at birth). That start may have ended before
    /// it flushed `directories`, so they count as not flushed.
    pub(crate) fn open(medium: &Arc<Medium>, path: &Path, kind: Kind, directories: Vec<PathBuf>) -> Result<Option<Self>, Trouble> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(Trouble::io("open", path))?;
        let len = file.metadata().map_err(Trouble::io("examine", path))?.len();
        if len < FILE_HEADER {
            return Ok(None);
        }
        let mut header = [0; FILE_HEADER as usize];
        file.read_exact_at(&mut header, 0).map_err(Trouble::io("read", path))?;
        match decode_file_header(kind, &header) {
            FileHeader::Ours { salt } => Ok(Some(Self { found: len, ..Self::new(medium, path, file, salt, len, directories) })),
            FileHeader::Newer { version } => Err(Trouble::Newer { path: path.to_owned(), found: version, known: VERSION }),
            FileHeader::Damaged => Err(Trouble::Corrupt { path: path.to_owned(), what: "its file header" }),
        }
    }

    fn new(medium: &Arc<Medium>, path: &Path, file: File, salt: u32, written: u64, directories: Vec<PathBuf>) -> Self {
        Self {
            medium: medium.clone(),
            path: path.to_owned(),
            file,
            salt,
            written: AtomicU64::new(written),
            found: 0,
            ragged: AtomicBool::new(false),
            flushing: Mutex::new(Flushing { directories, ..Flushing::default() }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn salt(&self) -> u32 {
        self.salt
    }

    /// How far the file holds good entries.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Cuts a torn tail off, durably: it must not come back under what is written next.
    pub(crate) fn cut(&self, len: u64) -> Result<(), Trouble> {
        self.file.set_len(len).map_err(Trouble::io("cut", &self.path))?;
        self.written.store(len, Ordering::Release);
        self.medium.flush_data(&self.file, &self.path)
    }

    /// Appends bytes and says where they begin. The caller sees to it that nobody else appends.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<u64, Trouble> {
        self.medium.alive()?;
        let start = self.written();
        if self.ragged.load(Ordering::Acquire) {
            // Without this, bytes of the failed write could be taken for entries behind a shorter new one.
            self.file.set_len(start).map_err(Trouble::io("cut", &self.path))?;
            self.ragged.store(false, Ordering::Release);
        }
        if let Err(error) = self.file.write_all_at(bytes, start) {
            self.ragged.store(self.file.set_len(start).is_err(), Ordering::Release);
            return Err(Trouble::io("write", &self.path)(error));
        }
        self.written.store(start + bytes.len() as u64, Ordering::Release);
        Ok(start)
    }

    /// Whether whoever opens it next has all that is known here: nothing was written to it since it was opened, or all of it is on stable
    /// storage.
    pub(crate) fn is_settled(&self) -> bool {
        let flushing = self.flushing.lock();
        let flushed = flushing.flushed >= self.written() && flushing.directories.is_empty();
        (flushed || self.written() == self.found) && !flushing.running && !self.ragged.load(Ordering::Acquire)
    }

    /// Asks for a flush of everything written so far. `None` if that is on stable storage already; else the answer comes when it
    /// is, and an answer that never comes means that it failed. Whoever asks while a flush runs shares the next one.
    pub(crate) fn request_flush(self: &Arc<Self>) -> Option<oneshot::Receiver<()>> {
        let mut flushing = self.flushing.lock();
        if flushing.flushed >= self.written() && flushing.directories.is_empty() {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        flushing.waiting.push(sender);
        if !flushing.running {
            flushing.running = true;
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.flush_while_wanted());
        }
        Some(receiver)
    }

    fn flush_while_wanted(&self) {
        loop {
            let waiting = {
                let mut flushing = self.flushing.lock();
                if flushing.waiting.is_empty() || self.medium.alive().is_err() {
                    flushing.waiting.clear();
                    flushing.running = false;
                    return;
                }
                std::mem::take(&mut flushing.waiting)
            };
            if self.flush_now().is_ok() {
                for waiter in waiting {
                    // A waiter that gave up needs no answer.
                    let _ = waiter.send(());
                }
            }
        }
    }

    /// Flushes on this thread.
    pub(crate) fn flush_now(&self) -> Result<(), Trouble> {
        let target = self.written();
        let directories = {
            let flushing = self.flushing.lock();
            if flushing.flushed >= target && flushing.directories.is_empty() {
                return Ok(());
            }
            // They stay listed until they are flushed: somebody else may be asking at this moment.
            flushing.directories.clone()
        };
        self.medium.flush_data(&self.file, &self.path)?;
        for directory in &directories {
            self.medium.flush_directory(directory)?;
        }
        let mut flushing = self.flushing.lock();
        flushing.flushed = flushing.flushed.max(target);
        flushing.directories.retain(|directory| !directories.contains(directory));
        Ok(())
    }
}
