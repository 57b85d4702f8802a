//! The files of one log that has outgrown the journal: a directory of numbered segments, written at the end,
//! compressed after the seal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runvoy_model::id::ExecutionId;

use super::data_file::DataFile;
use super::entry::Entry;
use super::framed::Framed;
use super::index::Seek;
use super::medium::Medium;
use super::segment::{Body, Segment, plain_path};
use super::source::Source;
use super::summary::Summary;
use super::trouble::Trouble;

/// A log in files of its own.
pub(crate) struct Big {
    id: ExecutionId,
    dir: PathBuf,
    segments: Vec<Segment>,
}

/// A segment as the compressor sees it.
pub(crate) enum Part {
    /// Still as written.
    Plain { source: Source, max_before: i64 },
    /// Compressed already; the log as it stands at its end.
    Framed(Summary),
    /// Nothing to be had from it.
    Unreadable,
}

/// The directory of a log's own files. The last digits of an id are random, its first ones are the time.
pub(crate) fn directory(root: &Path, id: ExecutionId) -> PathBuf {
    let name = id.to_string();
    root.join(&name[30..]).join(name)
}

impl Big {
    /// Opens a log's directory and says how the log stands; `None` if it has none.
    pub(crate) fn load(medium: &Arc<Medium>, root: &Path, id: ExecutionId) -> Result<Option<(Self, Summary)>, Trouble> {
        let dir = directory(root, id);
        let Some(found) = list(medium, &dir)? else { return Ok(None) };
        let mut summary = Summary::default();
        let mut segments = Vec::with_capacity(found.len());
        let last = found.last().map(|(number, _)| *number);
        for (number, framed) in found {
            let segment = if framed {
                Some(Segment::open_framed(&dir, number, &mut summary)?)
            } else {
                Segment::open_plain(medium, &dir, number, last == Some(number), &mut summary)?
            };
            segments.extend(segment);
        }
        Ok(Some((Self { id, dir, segments }, summary)))
    }

    /// Makes the directory of a log.
    pub(crate) fn create(medium: &Arc<Medium>, root: &Path, id: ExecutionId) -> Result<Self, Trouble> {
        let dir = directory(root, id);
        std::fs::create_dir_all(&dir).map_err(Trouble::io("create", &dir))?;
        let mut this = Self { id, dir, segments: Vec::new() };
        this.begin_segment(medium, &Summary::default())?;
        Ok(this)
    }

    /// Appends entries; `before` is the log without them.
    pub(crate) fn append(&mut self, medium: &Arc<Medium>, segment_bytes: u64, entries: &[Entry], before: &Summary) -> Result<(), Trouble> {
        let full = |file: &DataFile| file.written() >= segment_bytes;
        match self.segments.last() {
            Some(Segment { body: Body::Plain { file, closed: false, .. }, .. }) if !full(file) => {}
            _ => self.begin_segment(medium, before)?,
        }
        self.segments.last_mut().expect("one was begun").append(entries, before)
    }

    fn begin_segment(&mut self, medium: &Arc<Medium>, log: &Summary) -> Result<(), Trouble> {
        let number = self.segments.last().map_or(1, |last| last.number + 1);
        self.segments.push(Segment::create(medium, &self.dir, number, log)?);
        Ok(())
    }

    /// Where to read, from the segment that holds what is sought.
    pub(crate) fn sources(&self, seek: Seek) -> Vec<Source> {
        let behind = self.segments.partition_point(|segment| segment.start.is_at_or_before(seek));
        let from = behind.saturating_sub(1);
        self.segments[from..].iter().map(|segment| segment.source(self.id, seek)).collect()
    }

    /// Whether part of the log is in a file that cannot be read, and none behind it tells how far the log went.
    pub(crate) fn end_unknown(&self) -> bool {
        matches!(self.segments.last(), Some(Segment { body: Body::Unreadable, .. }))
    }

    /// The files that may have bytes not yet on stable storage.
    pub(crate) fn plain_files(&self) -> Vec<Arc<DataFile>> {
        let plain = |segment: &Segment| match &segment.body {
            Body::Plain { file, .. } => Some(file.clone()),
            _ => None,
        };
        self.segments.iter().filter_map(plain).collect()
    }

    /// Whether all of it is on stable storage.
    pub(crate) fn is_settled(&self) -> bool {
        self.segments.iter().all(|segment| match &segment.body {
            Body::Plain { file, .. } => file.is_settled(),
            Body::Framed(_) | Body::Unreadable => true,
        })
    }

    /// The segments in order, for compression. None of those that exist now is written any more.
    pub(crate) fn close_segments(&mut self) -> Vec<(u32, Part)> {
        let part = |segment: &mut Segment| {
            let source = segment.source(self.id, Seek::Line(0));
            let part = match &mut segment.body {
                Body::Plain { closed, .. } => {
                    *closed = true;
                    Part::Plain { source, max_before: segment.start.max_before }
                }
                Body::Framed(framed) => framed.summary().cloned().map_or(Part::Unreadable, Part::Framed),
                Body::Unreadable => Part::Unreadable,
            };
            (segment.number, part)
        };
        self.segments.iter_mut().map(part).collect()
    }

    /// Points per index, for the bound on memory.
    pub(crate) fn index_points(&self) -> usize {
        let points = |segment: &Segment| match &segment.body {
            Body::Plain { index, .. } => index.len(),
            Body::Framed(framed) => framed.frames(),
            Body::Unreadable => 0,
        };
        self.segments.iter().map(points).sum()
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Puts the compressed file in the place of the plain one, in memory.
    pub(crate) fn replace(&mut self, number: u32, framed: Framed) {
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == number) {
            segment.body = Body::Framed(Arc::new(framed));
        }
    }
}

/// The numbered files of a directory and whether each is compressed. Leftovers of interrupted steps are removed.
fn list(medium: &Medium, dir: &Path) -> Result<Option<Vec<(u32, bool)>>, Trouble> {
    let items = match std::fs::read_dir(dir) {
        Ok(items) => items,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Trouble::io("list", dir)(error)),
    };
    let (mut plain, mut framed) = (Vec::new(), Vec::new());
    for item in items {
        let path = item.map_err(Trouble::io("list", dir))?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
        match (path.extension().and_then(|extension| extension.to_str()), number) {
            (Some("seg"), Some(number)) => plain.push(number),
            (Some("segz"), Some(number)) => framed.push(number),
            (Some("tmp"), _) => std::fs::remove_file(&path).map_err(Trouble::io("remove", &path))?,
            _ => {}
        }
    }
    for number in &framed {
        // The compressed file got its name when it was complete, so only the removal of the original is left to do, once
        // that name is sure to last.
        if plain.contains(number) && !matches!(Segment::open_framed(dir, *number, &mut Summary::default())?.body, Body::Unreadable) {
            medium.flush_directory(dir)?;
            let path = plain_path(dir, *number);
            std::fs::remove_file(&path).map_err(Trouble::io("remove", &path))?;
            plain.retain(|other| other != number);
        }
    }
    framed.retain(|number| !plain.contains(number));
    let mut found: Vec<_> = plain.into_iter().map(|n| (n, false)).chain(framed.into_iter().map(|n| (n, true))).collect();
    found.sort_unstable();
    Ok(Some(found))
}
