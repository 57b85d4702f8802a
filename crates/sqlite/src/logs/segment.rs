//! One file of a big log, as written or compressed: how it is opened after a restart and where to start reading in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runvoy_model::id::ExecutionId;

use super::data_file::DataFile;
use super::entry::Entry;
use super::format::{FILE_HEADER, Kind};
use super::framed::Framed;
use super::index::{Index, Point, Seek};
use super::medium::Medium;
use super::scan::{Depth, scan};
use super::source::Source;
use super::summary::Summary;
use super::trouble::Trouble;

/// A part of a big log.
pub(crate) struct Segment {
    pub(crate) number: u32,
    /// What stands before its first entry.
    pub(crate) start: Point,
    pub(crate) body: Body,
}

/// How a segment is stored.
pub(crate) enum Body {
    /// As written; the last one grows until it is closed.
    Plain { file: Arc<DataFile>, index: Index, closed: bool },
    /// Compressed; never changes.
    Framed(Arc<Framed>),
    /// Damaged beyond its first bytes being known.
    Unreadable,
}

impl Segment {
    /// Begins a new file behind what `log` knows of.
    pub(crate) fn create(medium: &Arc<Medium>, dir: &Path, number: u32, log: &Summary) -> Result<Self, Trouble> {
        let file = DataFile::create(medium, &plain_path(dir, number), Kind::Segment, directories(dir))?;
        Ok(Self { number, start: place(log), body: Body::Plain { file: Arc::new(file), index: Index::default(), closed: false } })
    }

    /// Opens a file as written, rebuilds its index, and folds its entries into `log`. The `last` file of a log may have a torn tail,
    /// which is cut; `None` if nothing is left of the file.
    pub(crate) fn open_plain(
        medium: &Arc<Medium>,
        dir: &Path,
        number: u32,
        last: bool,
        log: &mut Summary,
    ) -> Result<Option<Self>, Trouble> {
        let path = plain_path(dir, number);
        let start = place(log);
        let file = match DataFile::open(medium, &path, Kind::Segment, directories(dir)) {
            Ok(Some(file)) => file,
            Ok(None) => {
                std::fs::remove_file(&path).map_err(Trouble::io("remove", &path))?;
                return Ok(None);
            }
            Err(Trouble::Corrupt { what, .. }) => {
                tracing::error!(segment = %path.display(), what, "damaged log segment");
                return Ok(Some(Self { number, start, body: Body::Unreadable }));
            }
            Err(other) => return Err(other),
        };
        let mut index = Index::default();
        let len = file.written();
        let depth = if last { Depth::Payloads } else { Depth::Headers };
        let scanned = scan(file.file(), len, file.salt(), depth, |offset, header| {
            index.note(offset, place(log), header);
            log.apply(header);
        })
        .map_err(Trouble::io("read", &path))?;
        for hole in &scanned.holes {
            tracing::error!(segment = %path.display(), from = hole.start, to = hole.end, "damaged place in a log segment");
        }
        if last && scanned.end < len {
            tracing::warn!(segment = %path.display(), at = scanned.end, cut_bytes = len - scanned.end, "torn tail of a log segment cut");
            file.cut(scanned.end)?;
        }
        Ok(Some(Self { number, start, body: Body::Plain { file: Arc::new(file), index, closed: false } }))
    }

    /// Opens a compressed file; its footer tells how the log stands at its end.
    pub(crate) fn open_framed(dir: &Path, number: u32, log: &mut Summary) -> Result<Self, Trouble> {
        let path = framed_path(dir, number);
        match Framed::open(&path) {
            Ok(framed) => {
                let start = framed.start().unwrap_or_else(|| place(log));
                if let Some(summary) = framed.summary() {
                    *log = summary.clone();
                }
                Ok(Self { number, start, body: Body::Framed(Arc::new(framed)) })
            }
            Err(Trouble::Corrupt { what, .. }) => {
                tracing::error!(segment = %path.display(), what, "damaged log segment");
                Ok(Self { number, start: place(log), body: Body::Unreadable })
            }
            Err(other) => Err(other),
        }
    }

    /// Appends entries to the last segment. `before` is the log without them.
    pub(crate) fn append(&mut self, entries: &[Entry], before: &Summary) -> Result<(), Trouble> {
        let Body::Plain { file, index, .. } = &mut self.body else { unreachable!("only a plain segment is written") };
        let mut bytes = Vec::with_capacity(entries.iter().map(|entry| entry.header.stored_len() as usize).sum());
        for entry in entries {
            entry.header.encode(&entry.payload, file.salt(), &mut bytes);
        }
        let mut offset = file.append(&bytes)?;
        let mut log = before.clone();
        for entry in entries {
            index.note(offset, place(&log), &entry.header);
            log.apply(&entry.header);
            offset += entry.header.stored_len();
        }
        Ok(())
    }

    /// Where to start reading for what is sought.
    pub(crate) fn source(&self, id: ExecutionId, seek: Seek) -> Source {
        match &self.body {
            Body::Plain { file, index, .. } => {
                let from = index.offset(seek).unwrap_or(FILE_HEADER);
                Source::Span { file: file.clone(), from, to: file.written() }
            }
            Body::Framed(framed) => Source::Frames { framed: framed.clone(), from: framed.seek(id, seek) },
            Body::Unreadable => Source::Unreadable,
        }
    }
}

/// What names a segment: its directory, the shard that names that, and the root that names the shard. All may be new.
fn directories(dir: &Path) -> Vec<PathBuf> {
    dir.ancestors().take(3).map(Path::to_owned).collect()
}

/// A segment's name as written.
pub(crate) fn plain_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:06}.seg"))
}

/// A segment's name once compressed.
pub(crate) fn framed_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:06}.segz"))
}

fn place(log: &Summary) -> Point {
    Point { line: log.next_line, raw: log.raw_bytes, max_before: log.max_at }
}
