//! The log store without its async face: loading a log, writing to it, planning a read. Everything here blocks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, LogError, in_order, most_bytes};

use super::big::{Big, directory};
use super::config::Config;
use super::copy::{copy, fold};
use super::cursor::Plan;
use super::entry::{Entry, Origin};
use super::index::Seek;
use super::journal::Journals;
use super::keeper::Chore;
use super::medium::Medium;
use super::pack::{PackKind, PackName, Packs};
use super::piece::pieces;
use super::registry::{Bounds, Registry};
use super::source::Source;
use super::space::Space;
use super::state::{Cell, LogState};
use super::summary::Summary;
use super::tail::Tails;
use super::trouble::Trouble;

/// A block larger than this is refused: it could not be one entry's worth of anything.
const MAX_BLOCK: usize = 1 << 30;
/// Lines of the platform's own up to this size tell how an execution ended, and are written into the disk reserve too.
const LAST_LINES_BYTES: usize = 16 << 10;

/// Everything that the threads of one store share.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) big_root: PathBuf,
    pub(crate) medium: Arc<Medium>,
    pub(crate) journals: Mutex<Journals>,
    pub(crate) packs: Packs,
    pub(crate) tails: Tails,
    pub(crate) space: Space,
    pub(crate) registry: Registry,
    /// Held by whoever moves or removes files, one at a time.
    pub(crate) maintenance: Mutex<()>,
    pub(crate) chores: Mutex<Option<Sender<Chore>>>,
    pub(crate) closing: AtomicBool,
}

impl Core {
    pub(crate) fn open(dir: &Path, config: Config, medium: Arc<Medium>, chores: Sender<Chore>) -> Result<Self, Trouble> {
        let config = config.within_format();
        let [journal_dir, big_root, pack_dir] = ["journal", "big", "pack"].map(|name| dir.join(name));
        for path in [&journal_dir, &big_root, &pack_dir] {
            std::fs::create_dir_all(path).map_err(Trouble::io("create", path))?;
        }
        medium.flush_directory(dir)?;
        // An earlier start may have ended between giving a pack its name and flushing that; its journal must not go before.
        medium.flush_directory(&pack_dir)?;
        Ok(Self {
            journals: Mutex::new(Journals::open(&medium, &journal_dir, config.journal_bytes)?),
            packs: Packs::open(&pack_dir)?,
            tails: Tails::new(config.tail_bytes, config.tails_bytes),
            space: Space::new(dir, config.reserve_bytes),
            registry: Registry::new(Bounds { open: config.open_logs, other: config.remembered_logs }),
            maintenance: Mutex::new(()),
            chores: Mutex::new(Some(chores)),
            closing: AtomicBool::new(false),
            big_root,
            medium,
            config,
        })
    }

    /// A log's cell, for use now.
    pub(crate) fn checkout(&self, id: ExecutionId) -> Arc<Cell> {
        let (cell, forgotten) = self.registry.checkout(id);
        forgotten.into_iter().for_each(|other| self.tails.forget(other));
        cell
    }

    /// Notes that a log was used.
    pub(crate) fn touch(&self, id: ExecutionId) {
        self.registry.touch(id).into_iter().for_each(|other| self.tails.forget(other));
    }

    /// Works on a log under its lock.
    pub(crate) fn with<T>(&self, cell: &Cell, work: impl FnOnce(&mut LogState) -> Result<T, LogError>) -> Result<T, LogError> {
        let mut slot = cell.state.lock();
        if slot.is_none() {
            *slot = Some(self.load(cell.id)?);
        }
        work(slot.as_mut().expect("just loaded"))
    }

    /// Works on a log at once if that is possible without reading from a disk: it is in memory and free, or it has never been
    /// written. Gives the work back if not.
    pub(crate) fn with_in_place<T, W: FnOnce(&mut LogState) -> T>(&self, cell: &Cell, work: W) -> Result<T, W> {
        let Some(mut slot) = cell.state.try_lock() else { return Err(work) };
        if slot.is_none() && self.is_new(cell.id) {
            *slot = Some(LogState { id: cell.id, summary: Summary::default(), packed: Vec::new(), big: None, end_unknown: false });
        }
        match slot.as_mut() {
            Some(state) => Ok(work(state)),
            None => Err(work),
        }
    }

    fn is_new(&self, id: ExecutionId) -> bool {
        !self.journals.lock().knows(id) && self.packs.covering(id).is_empty() && !directory(&self.big_root, id).exists()
    }

    /// Finds out from the files how a log stands.
    fn load(&self, id: ExecutionId) -> Result<LogState, Trouble> {
        let mut summary = Summary::default();
        let (mut packed, mut end_unknown) = (Vec::new(), false);
        for name in self.packs.covering(id) {
            let before = summary.stored_bytes;
            let is_good = fold(id, self.pack_sources(&[name], id, Seek::Line(0))?, &mut summary)?;
            let is_here = summary.stored_bytes > before;
            // Where its beginning is it was open, so that it is in no pack from before that.
            let was_open = is_here && name.kind == PackKind::Open;
            end_unknown = !is_good || (end_unknown && !was_open);
            if is_here || !is_good {
                packed.push(name);
            }
        }
        if let Some((big, known)) = Big::load(&self.medium, &self.big_root, id)? {
            end_unknown = big.end_unknown();
            let mut state = LogState { id, summary: known, packed, big: None, end_unknown };
            self.complete(&mut state, big)?;
            return Ok(state);
        }
        // A damaged header in a journal leaves a hole in the line numbers, which readers notice.
        let sources = self.journals.lock().sources(id);
        fold(id, sources, &mut summary)?;
        // One that has ended is whole where its end is.
        end_unknown &= summary.seal.is_none();
        Ok(LogState { id, summary, packed, big: None, end_unknown })
    }

    /// Copies into `big` what it lacks of the log, then lets the log live there. Nothing is lost if this stops half-way: what was
    /// copied is found there next time, and the rest still is where it was.
    fn complete(&self, state: &mut LogState, mut big: Big) -> Result<(), Trouble> {
        let mut sources = self.pack_sources(&state.packed, state.id, Seek::Line(0))?;
        sources.extend(self.journals.lock().sources(state.id));
        let mut known = state.summary.clone();
        copy(state.id, sources, &mut known, |entry, before| {
            big.append(&self.medium, self.config.segment_bytes, std::slice::from_ref(entry), before)
        })?;
        state.summary = known;
        state.big = Some(big);
        Ok(())
    }

    /// Gives a log files of its own.
    pub(crate) fn spill(&self, state: &mut LogState) -> Result<(), Trouble> {
        let (big, known) = match Big::load(&self.medium, &self.big_root, state.id)? {
            Some(left_over) => left_over,
            None => (Big::create(&self.medium, &self.big_root, state.id)?, Summary::default()),
        };
        let whole = std::mem::replace(&mut state.summary, known);
        let done = self.complete(state, big);
        // Damaged entries are not copied, but their lines stay taken.
        state.summary = whole;
        // From now on it is what its own files hold.
        state.end_unknown &= done.is_err();
        done
    }

    pub(crate) fn pack_sources(&self, names: &[PackName], id: ExecutionId, seek: Seek) -> Result<Vec<Source>, Trouble> {
        let mut sources = Vec::with_capacity(names.len());
        for name in names {
            match self.packs.framed(*name) {
                Ok(Some(framed)) => sources.push(Source::Frames { from: framed.seek(id, seek), framed }),
                Ok(None) => {}
                Err(Trouble::Corrupt { path, what }) => {
                    tracing::error!(pack = %path.display(), what, "damaged log pack");
                    sources.push(Source::Unreadable);
                }
                Err(other) => return Err(other),
            }
        }
        Ok(sources)
    }

    /// Where to read a log from what is sought on.
    pub(crate) fn plan(&self, state: &LogState, seek: Seek) -> Result<Plan, LogError> {
        let sources = match &state.big {
            Some(big) => big.sources(seek),
            None => {
                let mut sources = self.pack_sources(&state.packed, state.id, seek)?;
                sources.extend(self.journals.lock().sources(state.id));
                sources
            }
        };
        let first = state.summary.first_line;
        let line = if let Seek::Line(line) = seek { line.max(first) } else { first };
        Ok(Plan { id: state.id, sources, line, end: state.summary.next_line, end_unknown: state.end_unknown })
    }

    /// Whether an append of this size is more than a write to the page cache.
    pub(crate) fn is_heavy(&self, state: &LogState, bytes: usize) -> bool {
        state.big.is_none() && (state.end_unknown || state.summary.stored_bytes + bytes as u64 + 1024 > self.config.spill_bytes)
    }

    /// Appends what is new in a block.
    pub(crate) fn append(&self, state: &mut LogState, append: &Append) -> Result<Appended, LogError> {
        self.writable()?;
        // Who holds a lease writes to a log that has not ended, so that no more than a beginning of it can be in a pack; it goes on without that.
        let goes_on = state.big.is_none() && !append.late && append.block.count > 0;
        if state.end_unknown && !goes_on {
            return Err(LogError::Damaged { after_line: state.summary.next_line - 1 });
        }
        let appended = |log: &Summary| Appended { next_line: log.next_line, next_seq: log.next_seq(append.attempt) };
        let (first_seq, block) = match append.first_seq {
            None => (0, append.block.clone()),
            Some(first_seq) => match state.summary.admit(append.attempt, first_seq, &append.block)? {
                None => return Ok(appended(&state.summary)),
                Some(new) => new,
            },
        };
        if block.data.len() > MAX_BLOCK {
            return Err(Trouble::Malformed.into());
        }
        let block = in_order(state.id, block, UnixMs(state.summary.max_at));
        let mut after = state.summary.clone();
        let mut origin = Origin { attempt: append.attempt, first_seq, late: append.late || state.is_sealed() };
        let mut entries = Vec::with_capacity(1);
        for piece in pieces(&block)? {
            let count = u64::from(piece.block.count);
            let entry = Entry::new(state.id, origin, &after, piece);
            after.apply(&entry.header);
            origin.first_seq += if origin.first_seq > 0 { count } else { 0 };
            entries.push(entry);
        }
        if entries.is_empty() {
            return Ok(appended(&state.summary));
        }
        if after.stored_bytes > most_bytes(self.config.max_log_bytes, append.attempt, &block) {
            return Err(LogError::Full { limit_bytes: self.config.max_log_bytes });
        }
        if block.raw_len == 0 && block.data.len() <= LAST_LINES_BYTES {
            self.write_in_any_case(state, &entries)?;
        } else {
            self.space.permit(after.stored_bytes - state.summary.stored_bytes)?;
            self.write(state, &entries)?;
        }
        state.summary = after;
        self.tails.push(state.id, entries.into_iter().map(Entry::into_chunk));
        Ok(appended(&state.summary))
    }

    /// Marks a log as ended.
    pub(crate) fn seal(&self, state: &mut LogState, log_end: u64) -> Result<(), LogError> {
        self.writable()?;
        if !state.is_sealed() {
            let entry = Entry::seal(state.id, log_end, &state.summary);
            self.write_in_any_case(state, std::slice::from_ref(&entry))?;
            state.summary.apply(&entry.header);
            if state.big.is_some() {
                self.order(Chore::Compress(state.id));
            }
        }
        self.tails.forget(state.id);
        Ok(())
    }

    /// Also with nothing but the disk reserve left: an execution that ends must be able to say so.
    fn write_in_any_case(&self, state: &mut LogState, entries: &[Entry]) -> Result<(), Trouble> {
        self.config.reserve.with_room(|| self.write(state, entries), Trouble::is_full_disk)
    }

    fn write(&self, state: &mut LogState, entries: &[Entry]) -> Result<(), Trouble> {
        let bytes: u64 = entries.iter().map(|entry| entry.header.stored_len()).sum();
        let records = entries.iter().any(|entry| entry.header.count > 0);
        if records && state.big.is_none() && (state.end_unknown || state.summary.stored_bytes + bytes > self.config.spill_bytes) {
            if state.end_unknown {
                tracing::warn!(log = %state.id, "log goes on without what a damaged pack may hold of it");
            }
            self.spill(state)?;
        }
        match &mut state.big {
            Some(big) => big.append(&self.medium, self.config.segment_bytes, entries, &state.summary),
            None => {
                if self.journals.lock().append(entries)? {
                    self.order(Chore::Compact);
                }
                Ok(())
            }
        }
    }

    /// Leaves work to the keeper; once the store is closing, the next start will find it.
    pub(crate) fn order(&self, chore: Chore) {
        if let Some(chores) = self.chores.lock().as_ref() {
            let _ = chores.send(chore);
        }
    }

    pub(crate) fn writable(&self) -> Result<(), Trouble> {
        if self.is_closing() { Err(Trouble::Closed) } else { self.medium.alive() }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}
