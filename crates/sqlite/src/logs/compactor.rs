//! Empties closed journals: sealed logs go to a pack, open ones get files of their own, then the journal is removed. Idempotent: what
//! a crash interrupted is done again, and what had arrived is skipped. A journal with a log that cannot be moved is kept.

use std::fmt::Display;
use std::sync::Arc;

use runvoy_model::id::ExecutionId;
use runvoy_ports::log::{LogError, Pruned};

use super::copy::{copy, fold};
use super::core::Core;
use super::data_file::DataFile;
use super::entry::Entry;
use super::framed::FramedWriter;
use super::index::Seek;
use super::source::Source;
use super::state::LogState;
use super::summary::Summary;
use super::trouble::Trouble;

/// So many files wait for their flush at once. Until then they stay open, and a process may have only so many.
const MOST_OPEN: usize = 128;

/// What emptying one journal has gathered so far.
#[derive(Default)]
struct Haul {
    pack: Option<FramedWriter>,
    packed: Vec<ExecutionId>,
    flush: Vec<Arc<DataFile>>,
    pruned: Vec<ExecutionId>,
    pruned_bytes: u64,
    damaged: bool,
    /// Some log could not be taken out.
    incomplete: bool,
}

impl Haul {
    /// Puts what was copied into files of their own on stable storage.
    fn settle(&mut self) -> Result<(), Trouble> {
        self.flush.drain(..).try_for_each(|file| file.flush_now())
    }
}

impl Core {
    /// Empties every closed journal, oldest first. Logs that are sealed and have nothing from `horizon` (Unix milliseconds) on are
    /// dropped instead of kept. The caller holds the maintenance lock.
    pub(crate) fn compact(&self, horizon: Option<i64>) -> Result<Pruned, LogError> {
        let mut pruned = Pruned::default();
        let closed = self.journals.lock().closed();
        for number in closed {
            let taken = self.empty_journal(number, horizon)?;
            pruned.logs += taken.logs;
            pruned.bytes += taken.bytes;
        }
        Ok(pruned)
    }

    fn empty_journal(&self, number: u32, horizon: Option<i64>) -> Result<Pruned, LogError> {
        let ids = self.journals.lock().ids(number);
        let mut haul = Haul::default();
        for id in ids {
            self.writable()?;
            let cell = self.checkout(id);
            match self.with(&cell, |state| Ok(self.haul(number, horizon, state, &mut haul)?)) {
                Ok(entries) => self.pack(id, &entries, &mut haul)?,
                // The next log would not find more room.
                Err(LogError::NoSpace) => return Err(LogError::NoSpace),
                Err(error) => {
                    self.pass_over(&id, &error)?;
                    haul.incomplete = true;
                }
            }
            if haul.flush.len() >= MOST_OPEN {
                haul.settle()?;
            }
        }
        if let (Some(pack), Some(min), Some(max)) = (haul.pack.take(), haul.packed.first(), haul.packed.last()) {
            self.packs.add(pack, *min, *max, &self.medium)?;
        }
        haul.settle()?;
        for id in haul.packed.iter().chain(&haul.pruned) {
            // Loaded anew, it will be found in the pack; until the journal is gone it is found in both.
            if let Some(cell) = self.registry.peek(*id) {
                *cell.state.lock() = None;
            }
        }
        if haul.incomplete {
            return Ok(Pruned::default());
        }
        let dir = {
            let mut journals = self.journals.lock();
            journals.remove(number, haul.damaged)?;
            journals.dir().to_owned()
        };
        for id in &haul.pruned {
            self.tails.forget(*id);
            if let Some(cell) = self.registry.peek(*id) {
                *cell.state.lock() = None;
            }
        }
        self.medium.flush_directory(&dir)?;
        Ok(Pruned { logs: haul.pruned.len() as u64, bytes: haul.pruned_bytes })
    }

    /// Takes one log's entries out of a journal; those that belong into a pack are returned, all or none.
    fn haul(&self, number: u32, horizon: Option<i64>, state: &mut LogState, haul: &mut Haul) -> Result<Vec<Entry>, Trouble> {
        if state.big.is_none() && !state.is_sealed() {
            self.spill(state)?;
        }
        if let Some(big) = &state.big {
            haul.flush.extend(big.plain_files());
            return Ok(Vec::new());
        }
        if horizon.is_some_and(|horizon| state.is_older_than(horizon)) {
            haul.pruned.push(state.id);
            haul.pruned_bytes += state.summary.stored_bytes;
            return Ok(Vec::new());
        }
        let mut known = Summary::default();
        let packed: Vec<Source> = self.pack_sources(&state.packed, state.id, Seek::Line(0))?;
        fold(state.id, packed, &mut known)?;
        let source = self.journals.lock().source_in(number, state.id);
        let mut entries = Vec::new();
        let all_good = copy(state.id, source.into_iter().collect(), &mut known, |entry, _| {
            entries.push(entry.clone());
            Ok(())
        })?;
        haul.damaged |= !all_good;
        Ok(entries)
    }

    /// Writes one log's entries. A pack that could not be written is no good for the other logs either.
    fn pack(&self, id: ExecutionId, entries: &[Entry], haul: &mut Haul) -> Result<(), Trouble> {
        if entries.is_empty() {
            return Ok(());
        }
        if haul.pack.is_none() {
            haul.pack = Some(self.packs.write()?);
        }
        let pack = haul.pack.as_mut().expect("just begun");
        haul.packed.push(id);
        entries.iter().try_for_each(|entry| pack.push(entry))
    }

    /// Tells of a log that is left as it is, so that it does not stop the work on others. Fails if nothing can be written any more.
    pub(crate) fn pass_over(&self, what: &dyn Display, error: &LogError) -> Result<(), Trouble> {
        self.writable()?;
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        tracing::warn!(log = %what, %error, cause, "log passed over, it will be tried again");
        Ok(())
    }
}
