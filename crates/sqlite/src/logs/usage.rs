//! What the logs take, on disk and in memory.

use super::core::Core;
use super::keeper::big_directories;
use super::pruner::size_of_directory;
use super::trouble::Trouble;

/// What the logs take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes in journals.
    pub journal_bytes: u64,
    /// Bytes in the files of big logs.
    pub big_bytes: u64,
    /// Bytes in packs.
    pub pack_bytes: u64,
    /// Logs with files of their own.
    pub big_logs: u64,
    /// Packs.
    pub packs: u64,
    /// Logs found through the journals' index, which is in memory.
    pub journal_logs: u64,
    /// Logs whose state is in memory: those that were used recently.
    pub loaded_logs: u64,
    /// Points in the indexes of loaded big logs, 32 bytes each.
    pub index_points: u64,
    /// Bytes of recent records kept in memory, with what it costs to keep them.
    pub tail_bytes: u64,
}

impl Core {
    pub(crate) fn usage(&self) -> Result<Usage, Trouble> {
        let (journals, journal_logs) = {
            let journals = self.journals.lock();
            (journals.files(), journals.logs() as u64)
        };
        let directories = big_directories(&self.big_root)?;
        let mut big_bytes = 0;
        for (_, dir) in &directories {
            if dir.exists() {
                big_bytes += size_of_directory(dir)?;
            }
        }
        let points = |cell: &std::sync::Arc<super::state::Cell>| {
            let slot = cell.state.lock();
            slot.as_ref().and_then(|state| state.big.as_ref().map(|big| big.index_points() as u64)).unwrap_or(0)
        };
        Ok(Usage {
            journal_bytes: journals.iter().map(|file| file.written()).sum(),
            big_bytes,
            pack_bytes: size_of_directory(self.packs.dir())?,
            big_logs: directories.len() as u64,
            packs: self.packs.names().len() as u64,
            journal_logs,
            loaded_logs: self.registry.len() as u64,
            index_points: self.registry.all().iter().map(points).sum(),
            tail_bytes: self.tails.bytes() as u64,
        })
    }
}
