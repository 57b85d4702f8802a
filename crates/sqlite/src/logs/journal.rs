//! The journals: append-only files that all small logs share, and where each log's entries are in them. One is
//! written, the others are closed and wait to be emptied by the compactor.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runvoy_model::id::ExecutionId;

use super::data_file::DataFile;
use super::entry::Entry;
use super::format::Kind;
use super::medium::Medium;
use super::scan::{Depth, scan};
use super::source::Source;
use super::spots::Spots;
use super::trouble::Trouble;

/// No more scratch memory than this is kept between appends.
const SCRATCH: usize = 1 << 20;

struct Journal {
    file: Arc<DataFile>,
    /// Some place in it holds no good entry.
    damaged: bool,
    logs: HashMap<ExecutionId, Spots>,
}

/// All live journals.
pub(crate) struct Journals {
    medium: Arc<Medium>,
    dir: PathBuf,
    journal_bytes: u64,
    files: BTreeMap<u32, Journal>,
    active: u32,
    scratch: Vec<u8>,
}

impl Journals {
    /// Opens what an earlier start left, cuts torn tails, and goes on writing the newest.
    pub(crate) fn open(medium: &Arc<Medium>, dir: &Path, journal_bytes: u64) -> Result<Self, Trouble> {
        let mut numbers = Vec::new();
        for item in std::fs::read_dir(dir).map_err(Trouble::io("list", dir))? {
            let name = item.map_err(Trouble::io("list", dir))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".rvj")).and_then(|number| number.parse::<u32>().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        let mut this = Self {
            medium: medium.clone(),
            dir: dir.to_owned(),
            journal_bytes,
            files: BTreeMap::new(),
            active: numbers.last().copied().unwrap_or(0),
            scratch: Vec::new(),
        };
        for number in numbers {
            if let Some(journal) = open_journal(medium, dir, &this.path(number))? {
                this.files.insert(number, journal);
            }
        }
        if !this.files.contains_key(&this.active) {
            this.rotate()?;
        }
        Ok(this)
    }

    /// Appends entries of one log. They are visible to readers, and not yet on stable storage, when this returns. Says whether a
    /// journal was closed before.
    pub(crate) fn append(&mut self, entries: &[Entry]) -> Result<bool, Trouble> {
        let full = self.files[&self.active].file.written() >= self.journal_bytes;
        if full {
            self.rotate()?;
        }
        let journal = self.files.get_mut(&self.active).expect("the active journal is open");
        self.scratch.clear();
        for entry in entries {
            entry.header.encode(&entry.payload, journal.file.salt(), &mut self.scratch);
        }
        let mut offset = journal.file.append(&self.scratch)?;
        self.scratch.shrink_to(SCRATCH);
        for entry in entries {
            let spot = u32::try_from(offset).expect("journals are kept below 4 GiB");
            journal.logs.entry(entry.header.id).or_default().push(spot);
            offset += entry.header.stored_len();
        }
        Ok(full)
    }

    /// Closes the active journal and begins another.
    pub(crate) fn rotate(&mut self) -> Result<(), Trouble> {
        let number = self.active + 1;
        let file = DataFile::create(&self.medium, &self.path(number), Kind::Journal, vec![self.dir.clone()])?;
        self.files.insert(number, Journal { file: Arc::new(file), damaged: false, logs: HashMap::new() });
        self.active = number;
        Ok(())
    }

    /// Whether a log has entries in any journal.
    pub(crate) fn knows(&self, id: ExecutionId) -> bool {
        self.files.values().any(|journal| journal.logs.contains_key(&id))
    }

    /// Every log with entries in a journal; one with entries in two comes twice.
    pub(crate) fn known(&self) -> impl Iterator<Item = ExecutionId> {
        self.files.values().flat_map(|journal| journal.logs.keys().copied())
    }

    /// Where entries of a log are, oldest first.
    pub(crate) fn sources(&self, id: ExecutionId) -> Vec<Source> {
        self.files.keys().filter_map(|number| self.source_in(*number, id)).collect()
    }

    /// Where entries of a log are in one journal.
    pub(crate) fn source_in(&self, number: u32, id: ExecutionId) -> Option<Source> {
        let journal = self.files.get(&number)?;
        let spots = journal.logs.get(&id)?.as_slice().to_vec();
        Some(Source::Spots { file: journal.file.clone(), spots })
    }

    /// The closed journals, oldest first.
    pub(crate) fn closed(&self) -> Vec<u32> {
        self.files.keys().copied().filter(|number| *number != self.active).collect()
    }

    /// The logs with entries in a journal, in order.
    pub(crate) fn ids(&self, number: u32) -> Vec<ExecutionId> {
        let mut ids: Vec<_> = self.files.get(&number).map(|journal| journal.logs.keys().copied().collect()).unwrap_or_default();
        ids.sort_unstable();
        ids
    }

    /// The journal that is written.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// All files, oldest first.
    pub(crate) fn files(&self) -> Vec<Arc<DataFile>> {
        self.files.values().map(|journal| journal.file.clone()).collect()
    }

    /// How many logs have entries in live journals; one with entries in two counts twice.
    pub(crate) fn logs(&self) -> usize {
        self.files.values().map(|journal| journal.logs.len()).sum()
    }

    /// Forgets an emptied journal and removes its file, unless some of it was `damaged`: then a person may want it.
    pub(crate) fn remove(&mut self, number: u32, damaged: bool) -> Result<(), Trouble> {
        debug_assert_ne!(number, self.active, "only a closed journal is removed");
        let Some(journal) = self.files.remove(&number) else { return Ok(()) };
        let path = self.path(number);
        if damaged || journal.damaged {
            std::fs::rename(&path, path.with_extension("rvj.damaged")).map_err(Trouble::io("set aside", &path))
        } else {
            std::fs::remove_file(&path).map_err(Trouble::io("remove", &path))
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{number:08}.rvj"))
    }
}

/// `None` if there is nothing to be had from the file; it is out of the way then.
fn open_journal(medium: &Arc<Medium>, dir: &Path, path: &Path) -> Result<Option<Journal>, Trouble> {
    let file = match DataFile::open(medium, path, Kind::Journal, vec![dir.to_owned()]) {
        Ok(Some(file)) => file,
        Ok(None) => {
            std::fs::remove_file(path).map_err(Trouble::io("remove", path))?;
            return Ok(None);
        }
        Err(Trouble::Corrupt { what, .. }) => {
            // Kept for a person to look at; without its header no entry in it can be proved.
            let aside = path.with_extension("rvj.damaged");
            tracing::error!(journal = %path.display(), kept_as = %aside.display(), what, "damaged journal set aside, its records are lost");
            std::fs::rename(path, &aside).map_err(Trouble::io("set aside", path))?;
            return Ok(None);
        }
        Err(other) => return Err(other),
    };
    let mut logs: HashMap<ExecutionId, Spots> = HashMap::new();
    let len = file.written();
    let scanned = scan(file.file(), len, file.salt(), Depth::Payloads, |offset, header| {
        logs.entry(header.id).or_default().push(u32::try_from(offset).expect("journals are kept below 4 GiB"));
    })
    .map_err(Trouble::io("read", path))?;
    for hole in &scanned.holes {
        tracing::error!(journal = %path.display(), from = hole.start, to = hole.end, "damaged place in a log journal");
    }
    if scanned.end < len {
        tracing::warn!(journal = %path.display(), at = scanned.end, cut_bytes = len - scanned.end, "torn tail of a log journal cut");
        file.cut(scanned.end)?;
    }
    Ok(Some(Journal { file: Arc::new(file), damaged: !scanned.holes.is_empty(), logs }))
}
