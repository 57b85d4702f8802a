//! Empties closed journals, then removes them: sealed logs go to one pack, beginnings of open ones to another, and what goes on and on gets files of its
//! own. Idempotent: what a crash interrupted is done again, and what had arrived is skipped. A journal with a log that cannot be moved is kept.

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
use super::medium::Medium;
use super::pack::{PackKind, Packs};
use super::state::LogState;
use super::summary::Summary;
use super::trouble::Trouble;

/// So many files wait for their flush at once. Until then they stay open, and a process may have only so many.
const MOST_OPEN: usize = 128;

/// A pack on its way, and the logs in it.
struct Bundle {
    kind: PackKind,
    pack: Option<FramedWriter>,
    ids: Vec<ExecutionId>,
}

impl Bundle {
    const fn new(kind: PackKind) -> Self {
        Self { kind, pack: None, ids: Vec::new() }
    }

    /// Takes one log's entries. A pack that could not be written is no good for the other logs either.
    fn push(&mut self, packs: &Packs, id: ExecutionId, entries: &[Entry]) -> Result<(), Trouble> {
        if self.pack.is_none() {
            self.pack = Some(packs.write(self.kind)?);
        }
        let pack = self.pack.as_mut().expect("just begun");
        self.ids.push(id);
        entries.iter().try_for_each(|entry| pack.push(entry))
    }

    fn finish(&mut self, packs: &Packs, medium: &Medium) -> Result<(), Trouble> {
        if let (Some(pack), Some(min), Some(max)) = (self.pack.take(), self.ids.first(), self.ids.last()) {
            packs.add(self.kind, pack, (*min, *max), medium)?;
        }
        Ok(())
    }
}

/// What emptying one journal has gathered so far.
struct Haul {
    ended: Bundle,
    open: Bundle,
    flush: Vec<Arc<DataFile>>,
    pruned: Vec<ExecutionId>,
    pruned_bytes: u64,
    damaged: bool,
    /// Some log could not be taken out.
    incomplete: bool,
}

impl Haul {
    const fn new() -> Self {
        Self {
            ended: Bundle::new(PackKind::Ended),
            open: Bundle::new(PackKind::Open),
            flush: Vec::new(),
            pruned: Vec::new(),
            pruned_bytes: 0,
            damaged: false,
            incomplete: false,
        }
    }

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
        let mut haul = Haul::new();
        for id in ids {
            self.writable()?;
            let cell = self.checkout(id);
            match self.with(&cell, |state| Ok(self.haul(number, horizon, state, &mut haul)?)) {
                Ok(Some((kind, entries))) => match kind {
                    PackKind::Ended => haul.ended.push(&self.packs, id, &entries)?,
                    PackKind::Open => haul.open.push(&self.packs, id, &entries)?,
                },
                Ok(None) => {}
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
        for bundle in [&mut haul.ended, &mut haul.open] {
            bundle.finish(&self.packs, &self.medium)?;
            // Loaded anew, a log will be found in its pack; until the journal is gone it is found in both. At once, or it would be packed again if what comes
            // next fails.
            bundle.ids.iter().for_each(|id| self.let_go(*id));
        }
        haul.settle()?;
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
            self.let_go(*id);
        }
        self.medium.flush_directory(&dir)?;
        Ok(Pruned { logs: haul.pruned.len() as u64, bytes: haul.pruned_bytes })
    }

    /// Takes one log's entries out of a journal; those that belong into a pack are returned, all or none.
    fn haul(
        &self,
        number: u32,
        horizon: Option<i64>,
        state: &mut LogState,
        haul: &mut Haul,
    ) -> Result<Option<(PackKind, Vec<Entry>)>, Trouble> {
        if state.big.is_none() {
            let journals = self.journals.lock().sources(state.id);
            // What stands elsewhere too goes with the pack that it will be whole in: a part that stays behind would look like a log that goes on.
            let is_whole_here = state.packed.is_empty() && journals.len() == 1;
            if is_whole_here && horizon.is_some_and(|horizon| state.is_older_than(horizon)) {
                haul.pruned.push(state.id);
                haul.pruned_bytes += state.summary.stored_bytes;
                return Ok(None);
            }
            let kind = if state.is_sealed() { PackKind::Ended } else { PackKind::Open };
            let (moved, others): (Vec<_>, Vec<_>) = state.packed.iter().copied().partition(|pack| pack.kind == kind);
            let mut known = Summary::default();
            fold(state.id, self.pack_sources(&moved, state.id, Seek::Line(0))?, &mut known)?;
            let is_moved = known.stored_bytes > 0;
            // An ended log is whole in its pack: with its beginning, and with what later journals have of it.
            let beginnings = if kind == PackKind::Ended { others } else { Vec::new() };
            let mut sources = self.pack_sources(&beginnings, state.id, Seek::Line(0))?;
            sources.extend(journals);
            let mut entries = Vec::new();
            let all_good = copy(state.id, sources, &mut known, |entry, _| {
                entries.push(entry.clone());
                Ok(())
            })?;
            haul.damaged |= !all_good && !self.is_good_in(number, state.id)?;
            if entries.is_empty() {
                return Ok(None);
            }
            if kind == PackKind::Ended || !is_moved {
                return Ok(Some((kind, entries)));
            }
            // Only a beginning is packed: a log that goes on for long would stand in many packs.
            self.spill(state)?;
        }
        haul.flush.extend(state.big.iter().flat_map(|big| big.plain_files()));
        Ok(None)
    }

    /// Whether it is not for this journal that something of a log is lost.
    fn is_good_in(&self, number: u32, id: ExecutionId) -> Result<bool, Trouble> {
        let source = self.journals.lock().source_in(number, id);
        copy(id, source.into_iter().collect(), &mut Summary::default(), |_, _| Ok(()))
    }

    /// Makes a log be loaded anew at its next use. One with files of its own is complete in them, and they may have to be flushed.
    fn let_go(&self, id: ExecutionId) {
        if let Some(cell) = self.registry.peek(id) {
            let mut slot = cell.state.lock();
            if slot.as_ref().is_some_and(|state| state.big.is_none()) {
                *slot = None;
            }
        }
    }

    /// Tells of a log that is left as it is, so that it does not stop the work on others. Fails if nothing can be written any more.
    pub(crate) fn pass_over(&self, what: &dyn Display, error: &LogError) -> Result<(), Trouble> {
        self.writable()?;
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        tracing::warn!(log = %what, %error, cause, "log passed over, it will be tried again");
        Ok(())
    }
}
