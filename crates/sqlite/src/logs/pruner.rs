//! Retention: removes logs that ended long ago, pack by pack, directory by directory, and from journals by emptying them.
//! Appends go on meanwhile.

use std::path::Path;

use runvoy_model::id::ExecutionId;
use runvoy_ports::log::{LogError, Pruned};

use super::core::Core;
use super::keeper::big_directories;
use super::pack::PackKind;
use super::trouble::Trouble;

impl Core {
    /// Removes the logs of executions that ended before `before` (Unix milliseconds). A pack goes when its youngest log is that old.
    /// A log that cannot be read is passed over.
    pub(crate) fn prune(&self, before: i64) -> Result<Pruned, LogError> {
        let _alone = self.maintenance.lock();
        self.writable()?;
        // Journals first: a big log's beginning may still be in one, and would come back without the rest of the log.
        if self.active_journal_holds_old(before)? {
            self.journals.lock().rotate()?;
        }
        let mut pruned = self.compact(Some(before))?;
        self.dissolve_packs(before)?;
        let from_packs = self.prune_packs(before)?;
        pruned.logs += from_packs.logs;
        pruned.bytes += from_packs.bytes;
        for (id, dir) in big_directories(&self.big_root)? {
            self.writable()?;
            let taken = match id {
                Some(id) if id.0.unix_ms() < before => self.prune_big(id, &dir, before),
                Some(_) => Ok(None),
                None => std::fs::remove_dir_all(&dir).map(|()| None).map_err(|error| Trouble::io("remove", &dir)(error).into()),
            };
            match taken {
                Ok(Some(bytes)) => {
                    pruned.logs += 1;
                    pruned.bytes += bytes;
                }
                Ok(None) => {}
                Err(error) => self.pass_over(&dir.display(), &error)?,
            }
        }
        Ok(pruned)
    }

    /// Does away with packs of beginnings of which a log may be old. Before other packs: without its end a log would look like one that goes on. One that cannot be
    /// done away with keeps what may belong to it.
    fn dissolve_packs(&self, before: i64) -> Result<(), LogError> {
        for name in self.packs.names().into_iter().filter(|name| name.is_open_since_before(before)) {
            match self.dissolve(name) {
                Ok(()) => {}
                Err(LogError::NoSpace) => return Err(LogError::NoSpace),
                Err(error) => self.pass_over(&self.packs.path(name).display(), &error)?,
            }
        }
        Ok(())
    }

    fn prune_packs(&self, before: i64) -> Result<Pruned, LogError> {
        let mut pruned = Pruned::default();
        for name in self.packs.names().into_iter().filter(|name| name.kind == PackKind::Ended) {
            self.writable()?;
            if self.packs.may_begin(name.min, name.max, before) {
                continue;
            }
            let taken = match self.packs.is_older_than(name, before) {
                Ok(false) => continue,
                Ok(true) => {
                    // A pack that cannot be read cannot be counted, but it can go.
                    let logs = self.packs.framed(name).ok().flatten().map_or(0, |framed| framed.logs());
                    self.packs.remove(name).map(|bytes| (logs, bytes))
                }
                Err(trouble) => Err(trouble),
            };
            match taken {
                Ok((logs, bytes)) => {
                    pruned.logs += logs;
                    pruned.bytes += bytes;
                }
                Err(trouble) => {
                    self.pass_over(&self.packs.path(name).display(), &trouble.into())?;
                    continue;
                }
            }
            for cell in self.registry.all() {
                let mut slot = cell.state.lock();
                if slot.as_ref().is_some_and(|state| state.big.is_none() && state.packed.contains(&name)) {
                    *slot = None;
                    self.tails.forget(cell.id);
                }
            }
        }
        if pruned.bytes > 0 {
            self.medium.flush_directory(self.packs.dir())?;
        }
        Ok(pruned)
    }

    fn prune_big(&self, id: ExecutionId, dir: &Path, before: i64) -> Result<Option<u64>, LogError> {
        if self.journals.lock().knows(id) || self.packs.may_begin(id, id, before) {
            // Its journal or the pack with its beginning was kept; the log would come back from there without the rest.
            return Ok(None);
        }
        let cell = self.checkout(id);
        if !self.with(&cell, |state| Ok(state.is_older_than(before)))? {
            return Ok(None);
        }
        let mut slot = cell.state.lock();
        if !slot.as_ref().is_some_and(|state| state.is_older_than(before)) {
            return Ok(None);
        }
        let gone = dir.with_extension("gone");
        let bytes = size_of_directory(dir)?;
        std::fs::rename(dir, &gone).map_err(Trouble::io("rename", dir))?;
        *slot = None;
        self.tails.forget(id);
        drop(slot);
        std::fs::remove_dir_all(&gone).map_err(Trouble::io("remove", &gone))?;
        self.medium.flush_directory(dir.parent().expect("below a shard"))?;
        Ok(Some(bytes))
    }

    fn active_journal_holds_old(&self, before: i64) -> Result<bool, LogError> {
        let ids = {
            let journals = self.journals.lock();
            journals.ids(journals.active())
        };
        for id in ids.into_iter().take_while(|id| id.0.unix_ms() < before) {
            let cell = self.checkout(id);
            match self.with(&cell, |state| Ok(state.is_older_than(before))) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => self.pass_over(&id, &error)?,
            }
        }
        Ok(false)
    }
}

/// Bytes of all files directly in a directory.
pub(crate) fn size_of_directory(dir: &Path) -> Result<u64, Trouble> {
    let mut bytes = 0;
    for item in std::fs::read_dir(dir).map_err(Trouble::io("list", dir))? {
        let item = item.map_err(Trouble::io("list", dir))?;
        match item.metadata() {
            Ok(metadata) => bytes += metadata.len(),
            // Moved or removed since it was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Trouble::io("examine", &item.path())(error)),
        }
    }
    Ok(bytes)
}
