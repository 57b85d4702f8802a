//! Log records and their one encoding, used in files, between worker and server, and on the wire to our own
//! clients. A [`Block`] is a run of records of one attempt; a [`Chunk`] is a block that has its place in a log.
//!
//! A record is `varint(zigzag(at − previous at))`, one flag byte, `varint(len)`, then the bytes. The first record's time is relative to
//! the block's `first_at`, which travels in the header of whatever carries the block.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::time::UnixMs;

/// Where a record came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
    /// The platform's own lines, beginning `### runvoy: `.
    Platform,
}

impl Stream {
    /// The word that API and CLI use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Platform => "platform",
        }
    }
}

/// A record in place: bytes borrowed from the block that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When the platform read it.
    pub at: UnixMs,
    /// Where it came from.
    pub stream: Stream,
    /// It continues the line before it of the same stream.
    pub cont: bool,
    /// A newline ended it. The newline itself is not part of `bytes`.
    pub eol: bool,
    /// The bytes as the command wrote them, without the newline.
    pub bytes: &'a [u8],
}

impl Record<'_> {
    /// How many bytes of the command's own output this record stands for; the platform's lines are none.
    pub fn raw_len(&self) -> u64 {
        match self.stream {
            Stream::Platform => 0,
            Stream::Stdout | Stream::Stderr => self.bytes.len() as u64 + u64::from(self.eol),
        }
    }
}

/// The largest piece of a line that is one record.
pub const MAX_RECORD_BYTES: usize = 64 * 1024;

const STREAM_BITS: u8 = 0b0000_0011;
const CONT_BIT: u8 = 0b0000_0100;
const EOL_BIT: u8 = 0b0000_1000;

/// Encoded records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// How many records.
    pub count: u32,
    /// The time that the first record's delta counts from.
    pub first_at: UnixMs,
    /// The time of the last record.
    pub last_at: UnixMs,
    /// How many bytes of the command's own output the block stands for.
    pub raw_len: u64,
    /// The encoded records.
    pub data: Bytes,
}

impl Block {
    /// The records in order. A block from outside is validated with [`Block::decode`] first.
    pub fn records(&self) -> Records<'_> {
        Records { rest: &self.data, at: self.first_at }
    }

    /// Takes a block from bytes that came from outside: every record must be well-formed.
    pub fn decode(first_at: UnixMs, data: Bytes) -> Result<Self, InvalidBlock> {
        let (mut count, mut last_at, mut raw_len) = (0u32, first_at, 0u64);
        for record in (Records { rest: &data, at: first_at }) {
            let record = record?;
            if record.bytes.len() > MAX_RECORD_BYTES {
                return Err(InvalidBlock);
            }
            count = count.checked_add(1).ok_or(InvalidBlock)?;
            last_at = record.at;
            raw_len += record.raw_len();
        }
        Ok(Self { count, first_at, last_at, raw_len, data })
    }

    /// The block without its first `n` records; cheap, for the bytes are shared.
    #[must_use]
    pub fn skip(&self, n: u32) -> Self {
        let mut records = self.records();
        let (mut at, mut raw) = (self.first_at, 0);
        for _ in 0..n.min(self.count) {
            if let Some(Ok(record)) = records.next() {
                at = record.at;
                raw += record.raw_len();
            }
        }
        let taken = self.data.len() - records.rest.len();
        Self {
            count: self.count - n.min(self.count),
            first_at: at,
            last_at: self.last_at,
            raw_len: self.raw_len - raw,
            data: self.data.slice(taken..),
        }
    }

    /// The block with no record before `at` or before the record in front of it: the clock of a writer may have been set back, or be behind that of
    /// the writer before it.
    #[must_use]
    pub fn not_before(&self, at: UnixMs) -> Self {
        let mut latest = at;
        self.with_times(move |time| {
            latest = latest.max(time);
            latest
        })
    }

    /// The block with no record after `at`.
    #[must_use]
    pub fn not_after(&self, at: UnixMs) -> Self {
        self.with_times(move |time| time.min(at))
    }

    /// The block with other times, told in order. Where none changes the bytes are shared. A block with a malformed record stays as it is, for
    /// whoever checks it.
    fn with_times(&self, mut time: impl FnMut(UnixMs) -> UnixMs + Clone) -> Self {
        let mut looked_at = time.clone();
        if self.records().flatten().all(|record| looked_at(record.at) == record.at) {
            return self.clone();
        }
        let mut builder = BlockBuilder::default();
        for record in self.records() {
            let Ok(record) = record else { return self.clone() };
            builder.push(Record { at: time(record.at), ..record });
        }
        builder.take()
    }
}

/// Bytes that are not a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged log block")]
pub struct InvalidBlock;

/// The records of a block, one after another.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    at: UnixMs,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, InvalidBlock>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.take();
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

impl<'a> Records<'a> {
    fn take(&mut self) -> Result<Record<'a>, InvalidBlock> {
        let delta = take_varint(&mut self.rest)?;
        let delta = (delta >> 1).cast_signed() ^ -((delta & 1).cast_signed());
        let (&flags, rest) = self.rest.split_first().ok_or(InvalidBlock)?;
        self.rest = rest;
        let len = usize::try_from(take_varint(&mut self.rest)?).map_err(|_| InvalidBlock)?;
        if len > self.rest.len() {
            return Err(InvalidBlock);
        }
        let (bytes, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.at = UnixMs(self.at.0.wrapping_add(delta));
        let stream = match flags & STREAM_BITS {
            0 => Stream::Stdout,
            1 => Stream::Stderr,
            2 => Stream::Platform,
            _ => return Err(InvalidBlock),
        };
        Ok(Record { at: self.at, stream, cont: flags & CONT_BIT != 0, eol: flags & EOL_BIT != 0, bytes })
    }
}

/// Collects records into a block.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    count: u32,
    first_at: UnixMs,
    last_at: UnixMs,
    raw_len: u64,
    data: Vec<u8>,
}

impl BlockBuilder {
    /// Adds one record.
    pub fn push(&mut self, record: Record<'_>) {
        if self.count == 0 {
            self.first_at = record.at;
            self.last_at = record.at;
        }
        let delta = record.at.0.wrapping_sub(self.last_at.0);
        put_varint(&mut self.data, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
        let stream = match record.stream {
            Stream::Stdout => 0,
            Stream::Stderr => 1,
            Stream::Platform => 2,
        };
        let cont = if record.cont { CONT_BIT } else { 0 };
        let eol = if record.eol { EOL_BIT } else { 0 };
        self.data.push(stream | cont | eol);
        put_varint(&mut self.data, record.bytes.len() as u64);
        self.data.extend_from_slice(record.bytes);
        self.last_at = record.at;
        self.count += 1;
        self.raw_len += record.raw_len();
    }

    /// Adds all records of a block. Only the first of them is encoded anew.
    pub fn extend(&mut self, block: &Block) {
        let mut records = block.records();
        let Some(Ok(first)) = records.next() else { return };
        self.push(first);
        self.data.extend_from_slice(records.rest);
        self.last_at = block.last_at;
        self.count += block.count - 1;
        self.raw_len += block.raw_len - first.raw_len();
    }

    /// How many records were added since the last [`BlockBuilder::take`].
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How many encoded bytes were added since the last [`BlockBuilder::take`].
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Nothing was added since the last [`BlockBuilder::take`].
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes what was added and starts anew.
    pub fn take(&mut self) -> Block {
        let taken = std::mem::take(self);
        Block { count: taken.count, first_at: taken.first_at, last_at: taken.last_at, raw_len: taken.raw_len, data: taken.data.into() }
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn take_varint(rest: &mut &[u8]) -> Result<u64, InvalidBlock> {
    let mut value = 0u64;
    for (i, &byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            *rest = &rest[i + 1..];
            return Ok(value);
        }
    }
    Err(InvalidBlock)
}

/// A block in its place in the log of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The number of its first record, counted from 1 over all attempts.
    pub first_line: u64,
    /// How many raw bytes of output stand before it.
    pub raw_start: u64,
    /// The attempt that wrote it; 0 is the server itself.
    pub attempt: u32,
    /// The writer's own number of its first record, counted from 1 in each attempt; 0 where the writer does not number.
    pub first_seq: u64,
    /// The attempt's lease had lapsed when this arrived.
    pub late: bool,
    /// The records.
    pub block: Block,
}

impl Chunk {
    /// The number of the record after its last one.
    pub fn next_line(&self) -> u64 {
        self.first_line + u64::from(self.block.count)
    }

    /// The chunk without the records before `line`.
    #[must_use]
    pub fn starting_at(self, line: u64) -> Self {
        if line <= self.first_line {
            return self;
        }
        let n = u32::try_from(line - self.first_line).unwrap_or(u32::MAX).min(self.block.count);
        let block = self.block.skip(n);
        Self {
            first_line: self.first_line + u64::from(n),
            raw_start: self.raw_start + self.block.raw_len - block.raw_len,
            first_seq: if self.first_seq == 0 { 0 } else { self.first_seq + u64::from(n) },
            block,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream() -> impl Strategy<Value = Stream> {
        prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr), Just(Stream::Platform)]
    }

    proptest! {
        #[test]
        fn records_come_back_as_they_went_in(
            input in prop::collection::vec((any::<i64>(), stream(), any::<bool>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..40),
            cut in 0u32..50,
        ) {
            let mut builder = BlockBuilder::default();
            let records: Vec<Record<'_>> = input
                .iter()
                .map(|(at, stream, cont, eol, bytes)| Record { at: UnixMs(*at), stream: *stream, cont: *cont, eol: *eol, bytes })
                .collect();
            for record in &records {
                builder.push(*record);
            }
            let block = builder.take();
            let back: Vec<Record<'_>> = block.records().map(|r| r.expect("own encoding")).collect();
            prop_assert_eq!(&back, &records);
            prop_assert_eq!(&Block::decode(block.first_at, block.data.clone()).expect("own encoding"), &block);
            let (earliest, latest) = (UnixMs(-1_000_000), UnixMs(1_000_000));
            let kept = block.not_after(latest).not_before(earliest);
            let mut running = earliest;
            for (record, back) in records.iter().zip(kept.records()) {
                running = running.max(record.at.min(latest));
                prop_assert_eq!(back, Ok(Record { at: running, ..*record }));
            }
            prop_assert_eq!(&Block::decode(kept.first_at, kept.data.clone()).expect("own encoding"), &kept);
            prop_assert_eq!(kept.not_before(earliest), kept);
            let skipped = block.skip(cut);
            let rest: Vec<Record<'_>> = skipped.records().map(|r| r.expect("own encoding")).collect();
            prop_assert_eq!(&rest[..], &records[(cut as usize).min(records.len())..]);
            prop_assert_eq!(skipped.raw_len, rest.iter().map(Record::raw_len).sum::<u64>());
            let (mut joined, head) = (BlockBuilder::default(), (cut as usize).min(records.len()));
            records[..head].iter().for_each(|record| joined.push(*record));
            joined.extend(&skipped);
            prop_assert_eq!(joined.take(), block);
        }

        #[test]
        fn garbage_is_refused_and_never_panics(data in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Block::decode(UnixMs(0), data.into());
        }
    }
}
