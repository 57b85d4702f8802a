//! The packs: small logs, sorted by execution and compressed. Ended logs are whole in theirs; beginnings of logs that go on stand in packs of their
//! own. Their names carry the range of ids in them, so starting reads no pack, and looking for a log opens only those that may hold it.

use std::collections::{HashSet, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::id::{ExecutionId, Id};

use super::framed::{Framed, FramedWriter};
use super::medium::Medium;
use super::trouble::Trouble;

/// Small frames: finding one little log should not decompress a megabyte.
const FRAME_BYTES: usize = 128 << 10;
/// So many footers are kept in memory, some 20 KB each.
const OPEN_PACKS: usize = 64;

/// What a pack holds. Part of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackKind {
    /// Logs that were sealed, each from its beginning.
    Ended,
    /// Beginnings of logs that go on elsewhere.
    Open,
}

/// How the names of packs with beginnings end.
const OPEN: &str = "open";

/// A pack, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackName {
    pub(crate) number: u32,
    pub(crate) min: ExecutionId,
    pub(crate) max: ExecutionId,
    pub(crate) kind: PackKind,
}

impl PackName {
    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".pack")?.split('-');
        let number = parts.next()?.parse().ok()?;
        let min = parts.next()?.parse::<Id>().ok()?;
        let max = parts.next()?.parse::<Id>().ok()?;
        let kind = match parts.next() {
            None => PackKind::Ended,
            Some(OPEN) => PackKind::Open,
            Some(_) => return None,
        };
        parts.next().is_none().then_some(Self { number, min: ExecutionId(min), max: ExecutionId(max), kind })
    }

    /// Whether it may hold a log.
    pub(crate) fn covers(&self, id: ExecutionId) -> bool {
        self.min <= id && id <= self.max
    }

    /// Whether it holds beginnings, some of them of logs from before `horizon` (Unix milliseconds).
    pub(crate) fn is_open_since_before(&self, horizon: i64) -> bool {
        self.kind == PackKind::Open && self.min.0.unix_ms() < horizon
    }

    fn file_name(&self) -> String {
        let Self { number, min, max, kind } = self;
        match kind {
            PackKind::Ended => format!("{number:08}-{min}-{max}.pack"),
            PackKind::Open => format!("{number:08}-{min}-{max}-{OPEN}.pack"),
        }
    }
}

/// All packs.
pub(crate) struct Packs {
    dir: PathBuf,
    shelf: Mutex<Shelf>,
}

struct Shelf {
    names: Vec<PackName>,
    open: VecDeque<(PackName, Arc<Framed>)>,
}

impl Packs {
    /// Lists the packs; opens none.
    pub(crate) fn open(dir: &Path) -> Result<Self, Trouble> {
        let mut names = Vec::new();
        for item in std::fs::read_dir(dir).map_err(Trouble::io("list", dir))? {
            let path = item.map_err(Trouble::io("list", dir))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.ends_with(".tmp") {
                std::fs::remove_file(&path).map_err(Trouble::io("remove", &path))?;
            }
            names.extend(PackName::parse(name));
        }
        names.sort_unstable_by_key(|name| name.number);
        Ok(Self { dir: dir.to_owned(), shelf: Mutex::new(Shelf { names, open: VecDeque::new() }) })
    }

    /// The packs that may hold a log, oldest first.
    pub(crate) fn covering(&self, id: ExecutionId) -> Vec<PackName> {
        self.shelf.lock().names.iter().filter(|name| name.covers(id)).copied().collect()
    }

    /// Every pack, oldest first.
    pub(crate) fn names(&self) -> Vec<PackName> {
        self.shelf.lock().names.clone()
    }

    /// A pack's index; `None` if the pack was pruned.
    pub(crate) fn framed(&self, name: PackName) -> Result<Option<Arc<Framed>>, Trouble> {
        {
            let mut shelf = self.shelf.lock();
            if !shelf.names.contains(&name) {
                return Ok(None);
            }
            if let Some(at) = shelf.open.iter().position(|(open, _)| *open == name) {
                let hit = shelf.open.remove(at).expect("found there");
                let framed = hit.1.clone();
                shelf.open.push_back(hit);
                return Ok(Some(framed));
            }
        }
        let framed = match Framed::open(&self.path(name)) {
            Ok(framed) => Arc::new(framed),
            Err(Trouble::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(other) => return Err(other),
        };
        self.keep_open(name, framed.clone());
        Ok(Some(framed))
    }

    /// The logs with entries in a pack that are not damaged.
    pub(crate) fn ids(&self, name: PackName) -> Result<Vec<ExecutionId>, Trouble> {
        match self.framed(name) {
            Ok(Some(framed)) => framed.ids(),
            Ok(None) | Err(Trouble::Corrupt { .. } | Trouble::Newer { .. }) => Ok(Vec::new()),
            Err(other) => Err(other),
        }
    }

    /// Whether a pack holds nothing from `horizon` (Unix milliseconds) on, neither an execution nor a record. Beginnings are as old as the logs that they belong
    /// to, so that theirs is old only if nothing in it can be read.
    pub(crate) fn is_older_than(&self, name: PackName, horizon: i64) -> Result<bool, Trouble> {
        if name.max.0.unix_ms() >= horizon {
            return Ok(false);
        }
        let latest = match self.framed(name) {
            Ok(Some(framed)) if name.kind == PackKind::Open && !framed.ids()?.is_empty() => return Ok(false),
            Ok(Some(_)) if name.kind == PackKind::Open => None,
            Ok(Some(framed)) => framed.latest()?,
            Ok(None) => return Ok(true),
            Err(Trouble::Corrupt { .. } | Trouble::Newer { .. }) => None,
            Err(other) => return Err(other),
        };
        match latest {
            Some(latest) => Ok(latest < horizon),
            // What is in it cannot be read, but was there before the file.
            None => {
                let path = self.path(name);
                let written = std::fs::metadata(&path).map_err(Trouble::io("examine", &path))?.mtime();
                Ok(written.saturating_add(1).saturating_mul(1000) < horizon)
            }
        }
    }

    /// Keeps a pack at hand, unless it was removed meanwhile, or written anew.
    fn keep_open(&self, name: PackName, framed: Arc<Framed>) {
        let mut shelf = self.shelf.lock();
        if shelf.names.contains(&name) && shelf.open.iter().all(|(open, _)| *open != name) {
            shelf.open.push_back((name, framed));
        }
        if shelf.open.len() > OPEN_PACKS {
            shelf.open.pop_front();
        }
    }

    /// Begins a pack. One of each kind may be written at a time.
    pub(crate) fn write(&self, kind: PackKind) -> Result<FramedWriter, Trouble> {
        let temporary = match kind {
            PackKind::Ended => "next.tmp",
            PackKind::Open => "next-open.tmp",
        };
        FramedWriter::create(self.dir.join(temporary), FRAME_BYTES, i64::MIN)
    }

    /// Completes a pack that holds logs from `min` to `max` and lets readers find it.
    pub(crate) fn add(
        &self,
        kind: PackKind,
        writer: FramedWriter,
        (min, max): (ExecutionId, ExecutionId),
        medium: &Medium,
    ) -> Result<PackName, Trouble> {
        let number = self.shelf.lock().names.last().map_or(1, |last| last.number + 1);
        let name = PackName { number, min, max, kind };
        let framed = writer.finish(None, &self.path(name), medium)?;
        self.shelf.lock().names.push(name);
        self.keep_open(name, Arc::new(framed));
        Ok(name)
    }

    /// Takes a pack away; readers that hold it go on. Says how long it was.
    pub(crate) fn remove(&self, name: PackName) -> Result<u64, Trouble> {
        let path = self.path(name);
        let bytes = std::fs::metadata(&path).map_err(Trouble::io("examine", &path))?.len();
        std::fs::remove_file(&path).map_err(Trouble::io("remove", &path))?;
        // Only now: a pack that could not be removed is still read.
        let mut shelf = self.shelf.lock();
        shelf.names.retain(|other| *other != name);
        shelf.open.retain(|(open, _)| *open != name);
        Ok(bytes)
    }

    /// Takes logs out of a pack, for good when this returns. What is left replaces the pack under its own name, at once: its number still tells when these logs
    /// were open, and no reader finds neither or both.
    pub(crate) fn take_out(&self, name: PackName, gone: &HashSet<ExecutionId>, medium: &Medium) -> Result<(), Trouble> {
        if !self.ids(name)?.iter().any(|id| gone.contains(id)) {
            return Ok(());
        }
        let Some(framed) = self.framed(name)? else { return Ok(()) };
        let mut rest = self.write(name.kind)?;
        for index in 0..framed.frames() {
            rest.take(&framed, index, |id| !gone.contains(&id))?;
        }
        if rest.is_empty() {
            self.remove(name)?;
            return medium.flush_directory(&self.dir);
        }
        let rest = Arc::new(rest.finish(None, &self.path(name), medium)?);
        let mut shelf = self.shelf.lock();
        shelf.open.retain(|(open, _)| *open != name);
        shelf.open.push_back((name, rest));
        Ok(())
    }

    pub(crate) fn path(&self, name: PackName) -> PathBuf {
        self.dir.join(name.file_name())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}
