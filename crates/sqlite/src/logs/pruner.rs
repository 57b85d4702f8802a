//! Retention: removes logs that ended long ago, pack by pack, directory by directory, and from journals by emptying them.
//! Appends go on meanwhile.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use runvoy_model::id::ExecutionId;
use runvoy_ports::log::{LogError, Pruned};

use super::core::Core;
use super::keeper::big_directories;
use super::pack::PackName;
use super::trouble::Trouble;

impl Core {
    /// Removes the logs of executions that ended before `before` (Unix milliseconds). A pack goes when its youngest log is that old.
    /// What cannot be read or written is passed over.
    pub(crate) fn prune(&self, before: i64) -> Result<Pruned, LogError> {
        let _alone = self.maintenance.lock();
        self.writable()?;
        let mut pruned = self.prune_journals(before)?;
        let mut packs = self.old_packs(before)?;
        let directories = big_directories(&self.big_root)?;
        let held = self.take_out_beginnings(before, &mut packs, &directories)?;
        let from_packs = self.prune_packs(&packs, &held)?;
        pruned.logs += from_packs.logs;
        pruned.bytes += from_packs.bytes;
        for (id, dir) in directories {
            self.writable()?;
            let taken = match id {
                Some(id) if id.0.unix_ms() < before && !held.contains(&id) => self.prune_big(id, &dir, before),
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

    fn prune_journals(&self, before: i64) -> Result<Pruned, LogError> {
        let empty = || {
            if self.active_journal_holds_old(before)? {
                self.journals.lock().rotate()?;
            }
            self.compact(Some(before))
        };
        match empty() {
            // What is removed without being written anew makes room.
            Err(error @ LogError::NoSpace) => self.pass_over(&"journals", &error).map(|()| Pruned::default()).map_err(Into::into),
            other => other,
        }
    }

    fn old_packs(&self, before: i64) -> Result<Vec<PackName>, LogError> {
        let mut old = Vec::new();
        for name in self.packs.names() {
            match self.packs.is_older_than(name, before) {
                Ok(is_old) => old.extend(is_old.then_some(name)),
                Err(trouble) => self.pass_over(&self.packs.path(name).display(), &trouble.into())?,
            }
        }
        Ok(old)
    }

    /// Takes the beginnings of logs that are about to go out of their packs: without its end a log would look like one that goes on. Returns those of which
    /// something stays behind, in a journal that was not emptied or a pack that could not be written anew, so that the rest has to stay too.
    fn take_out_beginnings(
        &self,
        before: i64,
        packs: &mut Vec<PackName>,
        directories: &[(Option<ExecutionId>, PathBuf)],
    ) -> Result<HashSet<ExecutionId>, LogError> {
        let mut held: HashSet<_> = self.journals.lock().known().filter(|id| id.0.unix_ms() < before).collect();
        let (mut open, mut begun, mut stay) = (Vec::new(), HashSet::new(), Vec::new());
        for name in self.packs.names().into_iter().filter(|name| name.is_open_since_before(before)) {
            match self.ids_in(name)? {
                Some(ids) => {
                    open.push(name);
                    begun.extend(ids);
                }
                None => stay.push(name),
            }
        }
        if begun.is_empty() && stay.is_empty() {
            return Ok(held);
        }
        let covered = |packs: &[PackName], id: ExecutionId| packs.iter().any(|name| name.covers(id));
        let mut going = HashSet::new();
        for name in std::mem::take(packs) {
            if let Some(ids) = self.ids_in(name)? {
                going.extend(ids.into_iter().filter(|id| begun.contains(id) || covered(&stay, *id)));
                packs.push(name);
            }
        }
        let is_going = |id: &ExecutionId| (begun.contains(id) || covered(&stay, *id)) && self.is_old(*id, before);
        going.extend(directories.iter().filter_map(|(id, _)| *id).filter(is_going));
        for name in open {
            self.writable()?;
            if let Err(trouble) = self.packs.take_out(name, &going, &self.medium) {
                self.pass_over(&self.packs.path(name).display(), &trouble.into())?;
                stay.push(name);
            }
        }
        held.extend(going.into_iter().filter(|id| covered(&stay, *id)));
        Ok(held)
    }

    /// The logs in a pack; `None`, and said so, if it cannot be read at this time.
    fn ids_in(&self, name: PackName) -> Result<Option<Vec<ExecutionId>>, LogError> {
        match self.packs.ids(name) {
            Ok(ids) => Ok(Some(ids)),
            Err(trouble) => self.pass_over(&self.packs.path(name).display(), &trouble.into()).map(|()| None).map_err(Into::into),
        }
    }

    fn is_old(&self, id: ExecutionId, before: i64) -> bool {
        // One that cannot be read is told of when its turn comes.
        self.with(&self.checkout(id), |state| Ok(state.is_older_than(before))).unwrap_or(false)
    }

    fn prune_packs(&self, old: &[PackName], held: &HashSet<ExecutionId>) -> Result<Pruned, LogError> {
        let mut pruned = Pruned::default();
        for name in old {
            self.writable()?;
            if !held.is_empty() && self.ids_in(*name)?.is_none_or(|ids| ids.iter().any(|id| held.contains(id))) {
                continue;
            }
            // A pack that cannot be read cannot be counted, but it can go.
            let logs = self.packs.framed(*name).ok().flatten().map_or(0, |framed| framed.logs());
            match self.packs.remove(*name) {
                Ok(bytes) => {
                    pruned.logs += logs;
                    pruned.bytes += bytes;
                }
                Err(trouble) => {
                    self.pass_over(&self.packs.path(*name).display(), &trouble.into())?;
                    continue;
                }
            }
            for cell in self.registry.all() {
                let mut slot = cell.state.lock();
                if slot.as_ref().is_some_and(|state| state.big.is_none() && state.packed.contains(name)) {
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
