//! The embedded log store as the rest of the program sees it. Short work on what is in memory happens in place; everything that may
//! wait for a disk runs on tokio's blocking pool.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::Chunk;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, Extent, Found, LogError, LogStore, Pruned, RawPlace, Search};
use runvoy_ports::search::Seeker;
use tokio::sync::Semaphore;

use super::check::{Verified, files_in};
use super::config::Config;
use super::core::Core;
use super::cursor::Cursor;
use super::index::Seek;
use super::keeper::{Chore, keep};
use super::medium::Medium;
use super::piece::head;
use super::seam::Seams;
use super::search::search;
use super::state::LogState;
use super::trouble::Trouble;
use super::usage::Usage;

/// An append up to this size is a write to the page cache that is not worth another thread.
const SMALL_APPEND: usize = 32 << 10;
const READ_WINDOW: usize = 128 << 10;
const SEARCH_WINDOW: usize = 1 << 20;
/// So many at once, and the others wait: the blocking pool has to have threads left for flushes. Searches are few: the engine shares them out.
const MAX_READS: usize = 16;

/// Logs in files below one directory.
pub struct FileLogStore {
    core: Arc<Core>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    reads: Arc<Semaphore>,
    /// Locked until this store is closed or gone.
    lock: File,
}

impl FileLogStore {
    /// Opens the logs below `dir`, making it if needed. Reads the live journals, no more, however many logs there are.
    pub fn open(dir: &Path, config: Config) -> Result<Self, LogError> {
        Self::open_with(dir, config, Seams::default())
    }

    /// As [`FileLogStore::open`], with other ways to stable storage and to salts.
    pub fn open_with(dir: &Path, config: Config, seams: Seams) -> Result<Self, LogError> {
        std::fs::create_dir_all(dir).map_err(Trouble::io("create", dir))?;
        let lock_path = dir.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(Trouble::io("open", &lock_path))?;
        if lock.try_lock().is_err() {
            return Err(Trouble::InUse { path: dir.to_owned() }.into());
        }
        let (sender, chores) = mpsc::channel();
        let core = Arc::new(Core::open(dir, config, Arc::new(Medium::new(seams)), sender)?);
        let theirs = core.clone();
        let keeper = std::thread::Builder::new()
            .name("log-keeper".into())
            .spawn(move || keep(&theirs, &chores))
            .map_err(Trouble::io("start the keeper of", dir))?;
        let reads = Arc::new(Semaphore::new(MAX_READS));
        Ok(Self { core, keeper: Mutex::new(Some(keeper)), reads, lock })
    }

    /// Flushes everything and stops the keeper. Nothing is accepted afterwards; reads go on. Blocks.
    pub fn close(&self) -> Result<(), LogError> {
        self.stop();
        let journals = self.core.journals.lock().files();
        let open = self.core.registry.all();
        let big =
            open.iter().filter_map(|cell| cell.state.lock().as_ref().and_then(|state| state.big.as_ref().map(|big| big.plain_files())));
        for file in journals.into_iter().chain(big.flatten()) {
            file.flush_now()?;
        }
        // Whoever comes next need not wait until the last reader lets go.
        let _ = self.lock.unlock();
        Ok(())
    }

    fn stop(&self) {
        self.core.closing.store(true, Ordering::Release);
        self.core.chores.lock().take();
        if let Some(keeper) = self.keeper.lock().take() {
            // A keeper that panicked has nothing left to stop.
            let _ = keeper.join();
        }
        // Whoever changes files at this moment is waited for; whoever comes later finds the store closing, and changes none.
        drop(self.core.maintenance.lock());
    }

    /// Waits until the keeper has done everything ordered so far. Blocks.
    pub fn settle(&self) {
        let (sender, done) = mpsc::sync_channel(1);
        self.core.order(Chore::Settle(sender));
        // A keeper that stops drops the sender, and then there is nothing to wait for.
        let _ = done.recv();
    }

    /// Closes the active journal and empties all closed ones now, instead of when the journal is full. Blocks.
    pub fn compact(&self) -> Result<(), LogError> {
        let _alone = self.core.maintenance.lock();
        self.core.writable()?;
        self.core.journals.lock().rotate()?;
        self.core.compact(None).map(|_| ())
    }

    /// Fails once nothing is accepted any more: a flush has failed, or the store was closed. Cheap.
    pub fn alive(&self) -> Result<(), LogError> {
        Ok(self.core.writable()?)
    }

    /// What the logs take on disk and in memory. Blocks.
    pub fn usage(&self) -> Result<Usage, LogError> {
        Ok(self.core.usage()?)
    }

    /// Reads every stored byte and reports all damage. Blocks.
    pub fn verify(&self) -> Result<Verified, LogError> {
        self.core.verify()
    }

    /// Makes a consistent copy of all logs below `target`, which must not exist or be empty, while the store is in use. Blocks.
    pub fn backup_to(&self, target: &Path) -> Result<(), LogError> {
        if !files_in(target)?.is_empty() {
            return Err(Trouble::Io {
                action: "back up into",
                path: target.to_owned(),
                source: std::io::Error::new(std::io::ErrorKind::AlreadyExists, "the directory is not empty: choose a new one"),
            }
            .into());
        }
        self.core.backup(target)
    }

    /// Works on a log: in place if it is in memory and free, else on the blocking pool.
    async fn with<T: Send + 'static>(
        &self,
        id: ExecutionId,
        work: impl FnOnce(&Core, &mut LogState) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let cell = self.core.checkout(id);
        let core = self.core.clone();
        let done = match self.core.with_in_place(&cell, move |state| work(&core, state)) {
            Ok(done) => done,
            Err(work) => self.blocking(move |core| core.with(&cell, work)).await,
        };
        self.core.touch(id);
        done
    }

    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(&Core) -> Result<T, LogError> + Send + 'static) -> Result<T, LogError> {
        let core = self.core.clone();
        tokio::task::spawn_blocking(move || work(&core)).await.map_err(|error| LogError::Storage(Box::new(error)))?
    }

    /// Reads a log from a place on, on the blocking pool.
    async fn reading<T: Send + 'static>(
        &self,
        id: ExecutionId,
        seek: Seek,
        work: impl FnOnce(Cursor, Extent) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let permit = Arc::clone(&self.reads).acquire_owned().await.expect("never closed");
        self.walking(id, (seek, READ_WINDOW), move |cursor, extent| {
            // Given back when the walk ends, also if nobody waits for it any more.
            let _permit = permit;
            work(cursor, extent)
        })
        .await
    }

    /// Walks through a log on the blocking pool.
    async fn walking<T: Send + 'static>(
        &self,
        id: ExecutionId,
        (seek, window): (Seek, usize),
        work: impl FnOnce(Cursor, Extent) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let cell = self.core.checkout(id);
        let result = self
            .blocking(move |core| {
                let (plan, extent) = core.with(&cell, |state| Ok((core.plan(state, seek)?, state.extent())))?;
                work(Cursor::new(plan, window), extent)
            })
            .await;
        self.core.touch(id);
        result
    }
}

impl Drop for FileLogStore {
    fn drop(&mut self) {
        self.stop();
        // Said, not left to closing: a process that is being started at this moment has a copy of the descriptor until it executes.
        let _ = self.lock.unlock();
    }
}

#[async_trait]
impl LogStore for FileLogStore {
    async fn append(&self, id: ExecutionId, append: Append) -> Result<Appended, LogError> {
        let cell = self.core.checkout(id);
        if append.block.data.len() <= SMALL_APPEND {
            let light =
                |state: &mut LogState| (!self.core.is_heavy(state, append.block.data.len())).then(|| self.core.append(state, &append));
            if let Ok(Some(done)) = self.core.with_in_place(&cell, light) {
                self.core.touch(id);
                return done;
            }
        }
        let done = self.blocking(move |core| core.with(&cell, |state| core.append(state, &append))).await;
        self.core.touch(id);
        done
    }

    async fn sync(&self, id: ExecutionId) -> Result<Extent, LogError> {
        let (extent, files) = self
            .with(id, |core, state| {
                core.writable()?;
                let mut files = state.big.as_ref().map(|big| big.plain_files()).unwrap_or_default();
                files.extend(core.journals.lock().files());
                Ok((state.extent(), files))
            })
            .await?;
        let waits: Vec<_> = files.iter().filter_map(|file| file.request_flush()).collect();
        for wait in waits {
            if wait.await.is_err() {
                self.core.medium.alive()?;
                return Err(Trouble::Closed.into());
            }
        }
        self.core.medium.alive()?;
        Ok(extent)
    }

    async fn seal(&self, id: ExecutionId, log_end: u64) -> Result<(), LogError> {
        self.with(id, move |core, state| core.seal(state, log_end)).await
    }

    async fn extent(&self, id: ExecutionId) -> Result<Extent, LogError> {
        self.with(id, |_, state| Ok(state.extent())).await
    }

    async fn read(&self, id: ExecutionId, from_line: u64, max_bytes: usize) -> Result<Vec<Chunk>, LogError> {
        let from_line = from_line.max(1);
        if let Some(chunks) = self.core.tails.read(id, from_line, max_bytes) {
            return Ok(chunks);
        }
        self.reading(id, Seek::Line(from_line), move |cursor, _| collect(cursor, max_bytes)).await
    }

    async fn line_at(&self, id: ExecutionId, at: UnixMs) -> Result<u64, LogError> {
        self.reading(id, Seek::Time(at.0), move |mut cursor, extent| {
            let Some(chunk) = cursor.find(|header| header.max_at >= at.0)? else { return Ok(extent.next_line) };
            let line = (chunk.first_line..).zip(chunk.block.records()).find(|(_, record)| record.is_ok_and(|record| record.at >= at));
            Ok(line.map_or(extent.next_line, |(line, _)| line))
        })
        .await
    }

    async fn raw_place(&self, id: ExecutionId, offset: u64) -> Result<Option<RawPlace>, LogError> {
        self.reading(id, Seek::Raw(offset), move |mut cursor, extent| {
            if offset >= extent.raw_bytes {
                return Ok(None);
            }
            let Some(chunk) = cursor.find(|header| header.raw_start <= offset && offset < header.raw_end())? else { return Ok(None) };
            let mut line_start = chunk.raw_start;
            for (line, record) in (chunk.first_line..).zip(chunk.block.records()) {
                let len = record.map_err(|_| LogError::Damaged { after_line: line - 1 })?.raw_len();
                if offset < line_start + len {
                    return Ok(Some(RawPlace { line, line_start }));
                }
                line_start += len;
            }
            Ok(None)
        })
        .await
    }

    async fn search(&self, id: ExecutionId, what: Search) -> Result<Found, LogError> {
        let seeker = Seeker::new(&what)?;
        let place = (Seek::Line(what.from_line.max(1)), SEARCH_WINDOW);
        self.walking(id, place, move |cursor, _| search(cursor, seeker)).await
    }

    async fn prune(&self, before: UnixMs) -> Result<Pruned, LogError> {
        self.blocking(move |core| core.prune(before.0)).await
    }
}

/// Chunks up to a size, at least one record. Damage is told when there is nothing good before it to return.
fn collect(mut cursor: Cursor, max_bytes: usize) -> Result<Vec<Chunk>, LogError> {
    let mut chunks = Vec::new();
    let mut bytes = 0;
    loop {
        match cursor.next() {
            Ok(Some(chunk)) if chunks.is_empty() => {
                let whole = chunk.block.count;
                let chunk = head(chunk, max_bytes);
                bytes += chunk.block.data.len();
                let cut = chunk.block.count < whole;
                chunks.push(chunk);
                if cut || bytes >= max_bytes {
                    return Ok(chunks);
                }
            }
            Ok(Some(chunk)) if bytes + chunk.block.data.len() <= max_bytes => {
                bytes += chunk.block.data.len();
                chunks.push(chunk);
            }
            Ok(_) => return Ok(chunks),
            Err(LogError::Damaged { .. }) if !chunks.is_empty() => return Ok(chunks),
            Err(error) => return Err(error),
        }
    }
}
