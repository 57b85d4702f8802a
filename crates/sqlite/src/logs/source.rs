//! Places that hold entries of one log, and the one way to walk through any of them. A walk owns what it needs
//! (open files), so it goes on undisturbed while files are moved, compressed or removed.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use runvoy_model::id::ExecutionId;

use super::data_file::DataFile;
use super::entry::Entry;
use super::format::{ENTRY_HEADER, Header, Sealed};
use super::framed::Framed;
use super::trouble::Trouble;
use super::window::Window;

/// Where entries of a log are, in line order.
#[derive(Clone)]
pub(crate) enum Source {
    /// Single places in a journal.
    Spots { file: Arc<DataFile>, spots: Vec<u32> },
    /// A stretch of a segment that holds nothing else.
    Span { file: Arc<DataFile>, from: u64, to: u64 },
    /// Compressed frames, from this one on.
    Frames { framed: Arc<Framed>, from: usize },
    /// A file that should hold entries and cannot be read.
    Unreadable,
    /// Used up.
    Nothing,
}

/// Why a walk did not find the next entry.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Bytes failed their checksum. The walk can go on behind them.
    Damaged,
    /// The file could not be read.
    Trouble(Trouble),
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// A walk through the entries of one log in one source.
pub(crate) struct Walk {
    id: ExecutionId,
    source: Source,
    window: Window,
    /// The next spot, or the next frame.
    step: usize,
    frame: Bytes,
}

impl Walk {
    pub(crate) fn new(id: ExecutionId, source: Source, window_bytes: usize) -> Self {
        let step = if let Source::Frames { from, .. } = &source { *from } else { 0 };
        Self { id, source, window: Window::new(window_bytes), step, frame: Bytes::new() }
    }

    /// The next entry that is wanted; what is not wanted is passed over without judging its payload.
    pub(crate) fn next(&mut self, want: &mut dyn FnMut(&Header) -> bool) -> Result<Option<Entry>, Fault> {
        match &self.source {
            Source::Spots { .. } => self.next_spot(want),
            Source::Span { .. } => self.next_in_span(want),
            Source::Frames { .. } => self.next_in_frames(want),
            Source::Unreadable => {
                self.source = Source::Nothing;
                Err(Fault::Damaged)
            }
            Source::Nothing => Ok(None),
        }
    }

    fn next_spot(&mut self, want: &mut dyn FnMut(&Header) -> bool) -> Result<Option<Entry>, Fault> {
        let Source::Spots { file, spots } = &self.source else { unreachable!("asked of spots only") };
        while let Some(&spot) = spots.get(self.step) {
            self.step += 1;
            let entry = header_at(file, u64::from(spot))?.ok_or(Fault::Damaged)?;
            if entry.header.id != self.id || !want(&entry.header) {
                continue;
            }
            let mut payload = vec![0; entry.header.payload_len as usize];
            let start = u64::from(spot) + ENTRY_HEADER as u64;
            file.file().read_exact_at(&mut payload, start).map_err(Trouble::io("read", file.path()))?;
            return if entry.fits(&payload) {
                Ok(Some(Entry { header: entry.header, payload: payload.into() }))
            } else {
                Err(Fault::Damaged)
            };
        }
        Ok(None)
    }

    fn next_in_span(&mut self, want: &mut dyn FnMut(&Header) -> bool) -> Result<Option<Entry>, Fault> {
        let Source::Span { file, from, to } = &mut self.source else { unreachable!("asked of spans only") };
        while *from < *to {
            let io = |error| Trouble::io("read", file.path())(error);
            let bytes = self.window.take(file.file(), *from, ENTRY_HEADER, *to).map_err(io)?;
            let Some(entry) = bytes.and_then(|bytes| Sealed::decode(&bytes, file.salt())) else {
                // Behind a damaged header nobody knows where the next entry begins.
                *from = *to;
                return Err(Fault::Damaged);
            };
            let start = *from + ENTRY_HEADER as u64;
            *from += entry.header.stored_len();
            if entry.header.id != self.id || !want(&entry.header) {
                continue;
            }
            let payload = self.window.take(file.file(), start, entry.header.payload_len as usize, *to).map_err(io)?;
            return match payload {
                Some(payload) if entry.fits(&payload) => Ok(Some(Entry { header: entry.header, payload })),
                _ => Err(Fault::Damaged),
            };
        }
        Ok(None)
    }

    fn next_in_frames(&mut self, want: &mut dyn FnMut(&Header) -> bool) -> Result<Option<Entry>, Fault> {
        let Source::Frames { framed, .. } = &self.source else { unreachable!("asked of frames only") };
        loop {
            if self.frame.is_empty() {
                if framed.starts_behind(self.step, self.id) {
                    return Ok(None);
                }
                self.step += 1;
                self.frame = framed.frame(self.step - 1)?.ok_or(Fault::Damaged)?;
                continue;
            }
            let Some(entry) = Sealed::decode(&self.frame, 0).filter(|e| e.header.stored_len() <= self.frame.len() as u64) else {
                self.frame.clear();
                return Err(Fault::Damaged);
            };
            let whole = self.frame.split_to(ENTRY_HEADER + entry.header.payload_len as usize);
            if entry.header.id > self.id {
                self.step = usize::MAX;
                self.frame.clear();
                return Ok(None);
            }
            if entry.header.id < self.id || !want(&entry.header) {
                continue;
            }
            let payload = whole.slice(ENTRY_HEADER..);
            return if entry.fits(&payload) { Ok(Some(Entry { header: entry.header, payload })) } else { Err(Fault::Damaged) };
        }
    }
}

/// The header of the entry at a known place of a journal; `None` if it is damaged.
pub(crate) fn header_at(file: &DataFile, offset: u64) -> Result<Option<Sealed>, Trouble> {
    let mut bytes = [0; ENTRY_HEADER];
    match file.file().read_exact_at(&mut bytes, offset) {
        Ok(()) => Ok(Sealed::decode(&bytes, file.salt())),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(Trouble::io("read", file.path())(error)),
    }
}
