//! Files of compressed frames with a footer index: packs of many small logs, and sealed segments of one big log.
//! Written once under a temporary name, then renamed; never changed again.
//!
//! ```text
//! header 16 │ frame │ frame │ … │ places: 64 bytes per frame │ summary │ trailer 32
//! place:    0 offset u64 · 8 compressed u32 · 12 plain u32 · 16 CRC-32 of the compressed bytes · 20 zero u32
//!           24 first id · 40 first line u64 · 48 raw before u64 · 56 latest time before i64
//! trailer:  0 footer offset u64 · 8 frames u32 · 12 summary length u32 · 16 logs u64 · 24 CRC-32 of footer and
//!           trailer so far · 28 "RVZ1"
//! ```

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use runvoy_model::id::ExecutionId;

use super::entry::Entry;
use super::format::{ENTRY_HEADER, FILE_HEADER, FileHeader, Kind, Sealed, VERSION, decode_file_header, encode_file_header, u32_at, u64_at};
use super::index::{Point, Seek};
use super::medium::Medium;
use super::summary::Summary;
use super::trouble::Trouble;

const PLACE: usize = 64;
const TRAILER: usize = 32;
const TRAILER_MAGIC: &[u8; 4] = b"RVZ1";
/// A frame is closed by the entry that passes this; with the largest entry it stays far below.
const MAX_PLAIN: usize = 16 << 20;
const LEVEL: i32 = 3;

#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    compressed: u32,
    plain: u32,
    crc: u32,
    first_id: ExecutionId,
    point: Point,
}

/// An open framed file.
pub(crate) struct Framed {
    path: PathBuf,
    file: File,
    places: Vec<Place>,
    summary: Option<Summary>,
    logs: u64,
}

impl Framed {
    /// Opens a file and reads its footer.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        let corrupt = |what| Trouble::Corrupt { path: path.to_owned(), what };
        let file = File::open(path).map_err(Trouble::io("open", path))?;
        let len = file.metadata().map_err(Trouble::io("examine", path))?.len();
        let Some(trailer_at) = len.checked_sub(TRAILER as u64).filter(|at| *at >= FILE_HEADER) else {
            return Err(corrupt("too short"));
        };
        let mut header = [0; FILE_HEADER as usize];
        file.read_exact_at(&mut header, 0).map_err(Trouble::io("read", path))?;
        match decode_file_header(Kind::Framed, &header) {
            FileHeader::Ours { .. } => {}
            FileHeader::Newer { version } => return Err(Trouble::Newer { path: path.to_owned(), found: version, known: VERSION }),
            FileHeader::Damaged => return Err(corrupt("its file header")),
        }
        let mut trailer = [0; TRAILER];
        file.read_exact_at(&mut trailer, trailer_at).map_err(Trouble::io("read", path))?;
        let footer_at = u64_at(&trailer, 0);
        let (frames, summary_len) = (u32_at(&trailer, 8) as usize, u32_at(&trailer, 12) as usize);
        let footer_len = frames * PLACE + summary_len;
        if trailer[28..] != *TRAILER_MAGIC || footer_at.checked_add(footer_len as u64) != Some(trailer_at) {
            return Err(corrupt("its trailer"));
        }
        let mut footer = vec![0; footer_len];
        file.read_exact_at(&mut footer, footer_at).map_err(Trouble::io("read", path))?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&footer);
        crc.update(&trailer[..24]);
        if crc.finalize() != u32_at(&trailer, 24) {
            return Err(corrupt("its footer"));
        }
        let places = footer[..frames * PLACE].chunks_exact(PLACE).map(Place::decode).collect();
        let summary = Summary::decode(&footer[frames * PLACE..]);
        Ok(Self { path: path.to_owned(), file, places, summary, logs: u64_at(&trailer, 16) })
    }

    /// Whether frame `index` holds nothing of `id` or what sorts before it.
    pub(crate) fn starts_behind(&self, index: usize, id: ExecutionId) -> bool {
        self.places.get(index).is_none_or(|place| place.first_id > id)
    }

    /// The frame to start from.
    pub(crate) fn seek(&self, id: ExecutionId, seek: Seek) -> usize {
        let behind =
            self.places.partition_point(|place| place.first_id < id || (place.first_id == id && place.point.is_at_or_before(seek)));
        behind.saturating_sub(1)
    }

    /// A frame's entries; `None` if it is damaged.
    pub(crate) fn frame(&self, index: usize) -> Result<Option<Bytes>, Trouble> {
        let place = self.places[index];
        if place.plain as usize > MAX_PLAIN || place.compressed as usize > MAX_PLAIN {
            return Ok(None);
        }
        let mut bytes = vec![0; place.compressed as usize];
        match self.file.read_exact_at(&mut bytes, place.offset) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(Trouble::io("read", &self.path)(error)),
        }
        if crc32fast::hash(&bytes) != place.crc {
            return Ok(None);
        }
        match zstd::bulk::decompress(&bytes, place.plain as usize) {
            Ok(plain) if plain.len() == place.plain as usize => Ok(Some(plain.into())),
            _ => Ok(None),
        }
    }

    pub(crate) fn frames(&self) -> usize {
        self.places.len()
    }

    /// The log up to this file's end; compressed segments have it.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// What stands before the file's first entry.
    pub(crate) fn start(&self) -> Option<Point> {
        self.places.first().map(|place| place.point)
    }

    /// The latest time of any record; `None` if that cannot be read. The footer has it for all frames but the last.
    pub(crate) fn latest(&self) -> Result<Option<i64>, Trouble> {
        let Some(last) = self.places.last() else { return Ok(Some(i64::MIN)) };
        let Some(entries) = self.entries(self.places.len() - 1)? else { return Ok(None) };
        Ok(Some(entries.iter().fold(last.point.max_before, |latest, entry| latest.max(entry.header.max_at))))
    }

    /// The logs with entries here that are not damaged, in order.
    pub(crate) fn ids(&self) -> Result<Vec<ExecutionId>, Trouble> {
        let mut ids = Vec::new();
        for index in 0..self.places.len() {
            let entries = self.entries(index)?.unwrap_or_default();
            for id in entries.into_iter().map(|entry| entry.header.id) {
                if ids.last() != Some(&id) {
                    ids.push(id);
                }
            }
        }
        Ok(ids)
    }

    /// What is in a frame; `None` if it is damaged.
    fn entries(&self, index: usize) -> Result<Option<Vec<Entry>>, Trouble> {
        let Some(mut frame) = self.frame(index)? else { return Ok(None) };
        let mut entries = Vec::new();
        while !frame.is_empty() {
            let Some(entry) = next_entry(&mut frame) else { return Ok(None) };
            entries.push(entry);
        }
        Ok(Some(entries))
    }

    /// How many logs have entries here.
    pub(crate) fn logs(&self) -> u64 {
        self.logs
    }
}

/// Takes an entry off the front of a frame; `None` if it is damaged.
fn next_entry(frame: &mut Bytes) -> Option<Entry> {
    let entry = Sealed::decode(frame, 0).filter(|entry| entry.header.stored_len() <= frame.len() as u64)?;
    let payload = frame.split_to(ENTRY_HEADER + entry.header.payload_len as usize).slice(ENTRY_HEADER..);
    entry.fits(&payload).then_some(Entry { header: entry.header, payload })
}

impl Place {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.compressed.to_le_bytes());
        out.extend_from_slice(&self.plain.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(self.first_id.as_bytes());
        out.extend_from_slice(&self.point.line.to_le_bytes());
        out.extend_from_slice(&self.point.raw.to_le_bytes());
        out.extend_from_slice(&self.point.max_before.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[24..40]);
        Self {
            offset: u64_at(bytes, 0),
            compressed: u32_at(bytes, 8),
            plain: u32_at(bytes, 12),
            crc: u32_at(bytes, 16),
            first_id: ExecutionId::from_bytes(id),
            point: Point { line: u64_at(bytes, 40), raw: u64_at(bytes, 48), max_before: u64_at(bytes, 56).cast_signed() },
        }
    }
}

/// Writes a framed file. Dropped unfinished, it leaves nothing behind.
pub(crate) struct FramedWriter {
    temporary: PathBuf,
    file: File,
    offset: u64,
    frame_bytes: usize,
    plain: Vec<u8>,
    first: Option<(ExecutionId, Point)>,
    places: Vec<Place>,
    last_id: Option<ExecutionId>,
    max_at: i64,
    logs: u64,
    finished: bool,
}

impl FramedWriter {
    /// Begins a file whose frames hold about `frame_bytes` of entries each. `max_before` is the log's latest time so far.
    pub(crate) fn create(temporary: PathBuf, frame_bytes: usize, max_before: i64) -> Result<Self, Trouble> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&temporary).map_err(Trouble::io("create", &temporary))?;
        file.write_all(&encode_file_header(Kind::Framed, 0)).map_err(Trouble::io("write", &temporary))?;
        Ok(Self {
            temporary,
            file,
            offset: FILE_HEADER,
            frame_bytes,
            plain: Vec::new(),
            first: None,
            places: Vec::new(),
            last_id: None,
            max_at: max_before,
            logs: 0,
            finished: false,
        })
    }

    /// Adds the next entry; executions come in order, and the lines of each.
    pub(crate) fn push(&mut self, entry: &Entry) -> Result<(), Trouble> {
        let header = &entry.header;
        if self.last_id != Some(header.id) {
            debug_assert!(self.last_id < Some(header.id), "executions come in order");
            self.logs += 1;
            self.last_id = Some(header.id);
        }
        if self.first.is_none() {
            self.first = Some((header.id, Point { line: header.first_line, raw: header.raw_start, max_before: self.max_at }));
        }
        header.encode(&entry.payload, 0, &mut self.plain);
        if header.count > 0 {
            self.max_at = self.max_at.max(header.max_at);
        }
        if self.plain.len() >= self.frame_bytes { self.close_frame() } else { Ok(()) }
    }

    fn close_frame(&mut self) -> Result<(), Trouble> {
        let Some((first_id, point)) = self.first.take() else { return Ok(()) };
        let bytes = zstd::bulk::compress(&self.plain, LEVEL).map_err(Trouble::io("compress", &self.temporary))?;
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a frame is far below 4 GiB");
        let (compressed, plain) = (len(&bytes), len(&self.plain));
        self.plain.clear();
        self.put(&bytes, Place { offset: self.offset, compressed, plain, crc: crc32fast::hash(&bytes), first_id, point })
    }

    fn put(&mut self, bytes: &[u8], place: Place) -> Result<(), Trouble> {
        self.file.write_all(bytes).map_err(Trouble::io("write", &self.temporary))?;
        self.places.push(place);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Takes over what is wanted of another file's frame. One that is damaged comes as it is: what is lost stays told, and its bytes are there for a person.
    pub(crate) fn take(&mut self, from: &Framed, index: usize, wanted: impl Fn(ExecutionId) -> bool) -> Result<(), Trouble> {
        if let Some(entries) = from.entries(index)? {
            return entries.iter().filter(|entry| wanted(entry.header.id)).try_for_each(|entry| self.push(entry));
        }
        self.close_frame()?;
        let place = from.places[index];
        let mut bytes = vec![0; place.compressed as usize];
        from.file.read_exact_at(&mut bytes, place.offset).map_err(Trouble::io("read", &from.path))?;
        self.max_at = self.max_at.max(place.point.max_before);
        self.put(&bytes, Place { offset: self.offset, ..place })
    }

    /// Nothing was put into it.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.plain.is_empty()
    }

    /// Completes the file, puts it on stable storage and gives it its name.
    pub(crate) fn finish(mut self, summary: Option<&Summary>, path: &Path, medium: &Medium) -> Result<Framed, Trouble> {
        self.close_frame()?;
        let mut footer = Vec::with_capacity(self.places.len() * PLACE + 256);
        for place in &self.places {
            place.encode(&mut footer);
        }
        let summary = summary.map(Summary::encode).unwrap_or_default();
        footer.extend_from_slice(&summary);
        let footer_len = footer.len();
        let size = |len: usize| u32::try_from(len).expect("a footer is far below 4 GiB");
        footer.extend_from_slice(&self.offset.to_le_bytes());
        footer.extend_from_slice(&size(self.places.len()).to_le_bytes());
        footer.extend_from_slice(&size(summary.len()).to_le_bytes());
        footer.extend_from_slice(&self.logs.to_le_bytes());
        let crc = crc32fast::hash(&footer[..footer_len + 24]);
        footer.extend_from_slice(&crc.to_le_bytes());
        footer.extend_from_slice(TRAILER_MAGIC);
        self.file.write_all(&footer).map_err(Trouble::io("write", &self.temporary))?;
        medium.flush_data(&self.file, &self.temporary)?;
        std::fs::rename(&self.temporary, path).map_err(Trouble::io("rename", &self.temporary))?;
        self.finished = true;
        medium.flush_directory(path.parent().expect("a file has a directory"))?;
        Framed::open(path)
    }
}

impl Drop for FramedWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Left behind it would only be removed at the next start.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
