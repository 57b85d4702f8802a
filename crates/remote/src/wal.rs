//! The write-ahead log of one attempt: a file of checksummed frames that holds what a command wrote, already masked, until the server has
//! stored it, and how it ended, until the server has heard it.
//!
//! A frame is in the file before whoever gave it is answered, so it survives the death of the worker, and it is read back instead of being
//! kept in memory. It is not synced to the disk: a loss of power may cost the tail. A torn tail is cut at the last whole frame. A frame without
//! records says where the log begins whose records were forgotten.

mod frame;
mod reader;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use runvoy_model::command::Fence;
use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use serde::{Deserialize, Serialize};

use self::frame::Kind;
use self::reader::Reader;

const MAGIC: &[u8; 8] = b"RVWAL\0\0\x01";
/// What the name of a log ends with.
pub(crate) const EXTENSION: &str = "wal";
/// What the name of a log ends with that nobody can bring to its server.
const ASIDE: &str = "refused";
/// What the name of a log ends with that will take the place of another. Nobody needs one that was left behind.
pub(crate) const UNFINISHED: &str = "new";
/// What stands before the records of a frame: their first sequence, and the time that theirs are counted from.
const RECORDS_HEADER: usize = 16;
/// Far more than what a log is for takes.
const LONGEST_OPENING: u64 = 64 << 10;
/// A place is remembered for every so many bytes.
const MARK_EVERY: u64 = 1 << 20;

/// What a log is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// The server that gave the lease.
    pub(crate) endpoint: String,
    /// What proves the lease to it.
    pub(crate) token: String,
    /// The lease.
    pub(crate) fence: Fence,
}

/// A record in a log, or the place after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its sequence.
    pub(crate) seq: u64,
    /// Where its frame begins.
    pub(crate) offset: u64,
}

/// Records that were read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The sequence of the first.
    pub(crate) first_seq: u64,
    /// The records.
    pub(crate) block: Block,
    /// How many frames they were in.
    pub(crate) frames: usize,
    /// Where the next ones begin.
    pub(crate) next: Place,
}

/// How much is read back at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) bytes: usize,
    pub(crate) frames: usize,
}

/// Why records were not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untaken {
    #[error("records are missing before this one: expected sequence {0}")]
    Gap(u64),
    #[error("the attempt has ended")]
    Ended,
    #[error("the write-ahead log cannot be written")]
    Io(#[from] io::Error),
}

/// An open log.
pub(crate) struct Wal {
    path: PathBuf,
    file: File,
    opening: Opening,
    /// Where its first frame of records begins.
    head: u64,
    /// The first record that is kept.
    first: Place,
    /// The place after the last.
    next: Place,
    /// Where the file ends.
    len: u64,
    /// How many frames of records there were.
    frames: u64,
    /// Some places on the way.
    marks: Vec<Place>,
    /// So much higher are the writer's numbers than those of this log, where records were taken out of it.
    skew: u64,
    end: Option<Vec<u8>>,
}

impl Wal {
    /// A new log in a directory.
    pub(crate) fn create(dir: &Path, opening: Opening) -> io::Result<Self> {
        let fence = opening.fence;
        Self::create_at(dir.join(format!("{}-{}-{}.{EXTENSION}", fence.execution, fence.attempt, fence.lease)), opening)
    }

    /// Only its owner may read it: it holds output, and what proves the lease.
    fn create_at(path: PathBuf, opening: Opening) -> io::Result<Self> {
        let json = serde_json::to_vec(&opening).map_err(io::Error::other)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(frame::encode(Kind::Opening, &[&json]));
        if let Err(error) = file.write_all_at(&bytes, 0) {
            fs::remove_file(&path).ok();
            return Err(error);
        }
        Ok(Self::at_head(path, file, opening, bytes.len() as u64))
    }

    /// Opens a log that was left behind, and cuts what at its end is no whole frame: so many bytes. `None` if it ends before it says what it is
    /// for: nothing else was ever in it. What another version wrote is an error, because that one may know what is in it.
    pub(crate) fn open(path: &Path) -> io::Result<Option<(Self, u64)>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        let reading = file.try_clone()?;
        let mut reader = Reader::new(&reading, length);
        let at = MAGIC.len() as u64;
        if length < at + frame::HEADER as u64 {
            return Ok(None);
        }
        let unknown = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        if !reader.bytes(0, at)?.starts_with(MAGIC) {
            return Err(unknown("it is not a write-ahead log of this version"));
        }
        let Some(frame) = reader.frame(at)?.filter(|frame| frame.kind == Kind::Opening) else {
            let is_short = length <= LONGEST_OPENING;
            let text = reader.bytes(at + frame::HEADER as u64, LONGEST_OPENING)?;
            let is_cut = is_short && serde_json::from_slice::<Opening>(text).is_err_and(|error| error.is_eof());
            return if is_cut { Ok(None) } else { Err(unknown("its header is damaged")) };
        };
        let opening = serde_json::from_slice(frame.payload).map_err(|_| unknown("its header has another format"))?;
        let head = at + frame.len();
        let mut wal = Self::at_head(path.to_owned(), file, opening, head);
        while wal.end.is_none() && wal.take_over(&mut reader)? {}
        wal.file.set_len(wal.len)?;
        let cut = length - wal.len;
        Ok(Some((wal, cut)))
    }

    fn at_head(path: PathBuf, file: File, opening: Opening, head: u64) -> Self {
        let first = Place { seq: 1, offset: head };
        Self { path, file, opening, head, first, next: first, len: head, frames: 0, marks: Vec::new(), skew: 0, end: None }
    }

    /// Takes over the next frame of a file that was left behind; `false` where there is none that could be.
    fn take_over(&mut self, reader: &mut Reader<'_>) -> io::Result<bool> {
        let Some(frame) = reader.frame(self.len)? else { return Ok(false) };
        match frame.kind {
            Kind::Opening => return Ok(false),
            Kind::End => {
                self.end = Some(frame.payload.to_vec());
                self.len += frame.len();
            }
            Kind::Records => {
                let Some((seq, block)) = records(frame.payload) else { return Ok(false) };
                // The first one says where the log begins; from there on there is no gap.
                if self.next.offset == self.head {
                    (self.first.seq, self.next.seq) = (seq, seq);
                } else if seq != self.next.seq {
                    return Ok(false);
                }
                let length = frame.len();
                self.advance(length, block.count);
            }
        }
        Ok(true)
    }

    /// What it is for.
    pub(crate) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// The first record that is kept.
    pub(crate) fn first(&self) -> Place {
        self.first
    }

    /// The place after the last record.
    pub(crate) fn next(&self) -> Place {
        self.next
    }

    /// How large the file is.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// How many frames of records were written since it was opened.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// How the attempt ended, if that is known.
    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Adds records; the sequence that is expected next. What is there already is not added again.
    pub(crate) fn append(&mut self, first_seq: u64, block: &Block) -> Result<u64, Untaken> {
        if self.end.is_some() {
            return Err(Untaken::Ended);
        }
        let own = first_seq.checked_sub(self.skew).filter(|own| *own <= self.next.seq).ok_or(Untaken::Gap(self.next.seq + self.skew))?;
        let known = u32::try_from(self.next.seq - own).unwrap_or(u32::MAX);
        let block = if known == 0 { block.clone() } else { block.skip(known) };
        if block.count > 0 {
            self.write_records(&block)?;
        }
        Ok(self.next.seq + self.skew)
    }

    fn write_records(&mut self, block: &Block) -> io::Result<()> {
        if block.data.len() + RECORDS_HEADER > frame::MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more records at once than a write-ahead log takes"));
        }
        let (seq, at) = (self.next.seq.to_le_bytes(), block.first_at.0.to_le_bytes());
        let length = self.write(&frame::encode(Kind::Records, &[&seq, &at, &block.data]))?;
        self.advance(length, block.count);
        Ok(())
    }

    /// Writes a frame behind the others. Half a one is taken away again, so that the next one can be read.
    fn write(&mut self, frame: &[u8]) -> io::Result<u64> {
        if let Err(error) = self.file.write_all_at(frame, self.len) {
            self.file.set_len(self.len).ok();
            return Err(error);
        }
        Ok(frame.len() as u64)
    }

    /// One more frame of records.
    fn advance(&mut self, length: u64, count: u32) {
        if self.next.offset >= self.marks.last().map_or(self.head, |mark| mark.offset) + MARK_EVERY {
            self.marks.push(self.next);
        }
        self.frames += u64::from(count > 0);
        self.next = Place { seq: self.next.seq + u64::from(count), offset: self.next.offset + length };
        self.len = self.next.offset;
        if self.first.seq == self.next.seq {
            self.first = self.next;
        }
    }

    /// Remembers how the attempt ended, also where it cannot be written: then it ends with this process. A second end changes nothing.
    pub(crate) fn set_end(&mut self, end: Vec<u8>) -> io::Result<()> {
        if self.end.is_some() {
            return Ok(());
        }
        let frame = frame::encode(Kind::End, &[&end]);
        self.end = Some(end);
        self.len += self.write(&frame)?;
        Ok(())
    }

    /// The place of a record; `None` where it is not kept any more, or not there yet.
    pub(crate) fn seek(&self, seq: u64) -> io::Result<Option<Place>> {
        if seq < self.first.seq || seq > self.next.seq {
            return Ok(None);
        }
        let mut at = *self.marks[..self.marks.partition_point(|mark| mark.seq <= seq)].last().unwrap_or(&self.first);
        let mut reader = Reader::new(&self.file, self.next.offset);
        while at.offset < self.next.offset {
            let (count, length) = self.frame_at(&mut reader, at.offset, |_, block| block.count)?;
            if seq < at.seq + u64::from(count) {
                return Ok(Some(Place { seq, offset: at.offset }));
            }
            at = Place { seq: at.seq + u64::from(count), offset: at.offset + length };
        }
        Ok(Some(self.next))
    }

    /// Records from a place on; `None` behind the last.
    pub(crate) fn read(&self, from: Place, most: Most) -> io::Result<Option<Batch>> {
        let mut reader = Reader::new(&self.file, self.next.offset);
        let (mut next, mut frames, mut builder) = (from, 0, BlockBuilder::default());
        while next.offset < self.next.offset && frames < most.frames {
            let wanted = next.seq;
            let ((seq, block), length) = self.frame_at(&mut reader, next.offset, |seq, block| (seq, block))?;
            let end = seq + u64::from(block.count);
            if frames > 0 && builder.len() + block.data.len() > most.bytes {
                break;
            }
            builder.extend(&block.skip(u32::try_from(wanted.saturating_sub(seq)).unwrap_or(u32::MAX)));
            next = Place { seq: end, offset: next.offset + length };
            frames += 1;
        }
        Ok((frames > 0).then(|| Batch { first_seq: from.seq, block: builder.take(), frames, next }))
    }

    /// What is in the frame of records at an offset, and how long it is.
    fn frame_at<T>(&self, reader: &mut Reader<'_>, offset: u64, take: impl FnOnce(u64, Block) -> T) -> io::Result<(T, u64)> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged at {offset}", self.path.display()));
        let frame = reader.frame(offset)?.filter(|frame| frame.kind == Kind::Records).ok_or_else(damaged)?;
        let (seq, block) = records(frame.payload).ok_or_else(damaged)?;
        Ok((take(seq, block), frame.len()))
    }

    /// Forgets every record, but not that there were some: the server has them. The file becomes small again. Not once the end is written: it would
    /// go with them.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        if self.end.is_some() {
            return Ok(());
        }
        let frame = frame::encode(Kind::Records, &[&self.next.seq.to_le_bytes(), &0i64.to_le_bytes()]);
        // Before the file is cut: whoever finds it in between finds no log that nothing was ever written to.
        self.file.write_all_at(&frame, self.head)?;
        let place = Place { seq: self.next.seq, offset: self.head + frame.len() as u64 };
        self.file.set_len(place.offset)?;
        (self.first, self.next, self.len) = (place, place, place.offset);
        self.marks.clear();
        Ok(())
    }

    /// Takes the command's own output out of the log from a place on, because nobody will ever store it, and says so in its place. The
    /// platform's own lines stay.
    pub(crate) fn drop_output(&mut self, from: Place, at: UnixMs, remark: impl FnOnce(u64) -> String) -> io::Result<()> {
        let (mut kept, mut bytes, mut place) = (BlockBuilder::default(), 0, from);
        let (mut reader, before) = (Reader::new(&self.file, self.next.offset), self.next.seq);
        while place.offset < self.next.offset {
            let ((seq, block), length) = self.frame_at(&mut reader, place.offset, |seq, block| (seq, block))?;
            let block = block.skip(u32::try_from(place.seq.saturating_sub(seq)).unwrap_or(u32::MAX));
            for record in block.records().map_while(Result::ok) {
                bytes += record.raw_len();
                if record.stream == Stream::Platform {
                    kept.push(record);
                }
            }
            place = Place { seq: place.seq + u64::from(block.count), offset: place.offset + length };
        }
        let (kept, text) = (kept.take(), remark(bytes));
        let mut block = BlockBuilder::default();
        block.push(Record { at, stream: Stream::Platform, cont: false, eol: true, bytes: text.as_bytes() });
        block.extend(&kept);
        self.replace(from.seq, before, &block.take())
    }

    /// Puts a log with these records, and the end where there is one, in the place of this. Whatever fails or dies on the way, the file is one of
    /// the two as a whole.
    fn replace(&mut self, first_seq: u64, next_seq: u64, block: &Block) -> io::Result<()> {
        let path = self.path.with_extension(UNFINISHED);
        let mut fresh = Self::create_at(path.clone(), self.opening.clone())?;
        let written = fresh.fill(first_seq, block, self.end.clone()).and_then(|()| fs::rename(&path, &self.path));
        if let Err(error) = written {
            fs::remove_file(&path).ok();
            return Err(error);
        }
        fresh.skew = (self.skew + next_seq).saturating_sub(fresh.next.seq);
        fresh.frames += self.frames;
        fresh.path.clone_from(&self.path);
        *self = fresh;
        Ok(())
    }

    fn fill(&mut self, first_seq: u64, block: &Block, end: Option<Vec<u8>>) -> io::Result<()> {
        self.first.seq = first_seq;
        self.next = self.first;
        self.write_records(block)?;
        end.map_or(Ok(()), |end| self.set_end(end))
    }

    /// Nobody needs it any more.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// No start takes it up again, but what it holds is kept; its new name.
    pub(crate) fn set_aside(&self) -> io::Result<PathBuf> {
        let aside = self.path.with_extension(ASIDE);
        fs::rename(&self.path, &aside)?;
        Ok(aside)
    }
}

/// What a frame of records holds.
fn records(payload: &[u8]) -> Option<(u64, Block)> {
    let (header, data) = payload.split_at_checked(RECORDS_HEADER)?;
    let (seq, at) = header.split_at(8);
    let seq = u64::from_le_bytes(seq.try_into().expect("eight bytes"));
    let at = UnixMs(i64::from_le_bytes(at.try_into().expect("eight bytes")));
    Some((seq, Block::decode(at, Bytes::copy_from_slice(data)).ok()?))
}
