//! Log batches for our own clients: with `batch=1` the WebSocket sends each log chunk as one binary frame.
//!
//! A frame is `u64` first line, `u32` attempt, `u8` flags (bit 0: late), `i64` Unix milliseconds of the block, all little-endian, then
//! the block's encoded records (`runvoy_model::log`).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use runvoy_model::log::{Block, BlockBuilder, Record};
use runvoy_model::time::UnixMs;

use crate::logs::LogEvent;

const HEADER_BYTES: usize = 8 + 4 + 1 + 8;
const LATE_BIT: u8 = 1;

/// A run of records of one attempt, in its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The number of its first record.
    pub first_line: u64,
    /// The attempt that wrote it.
    pub attempt: u32,
    /// The attempt's lease had lapsed when this arrived.
    pub late: bool,
    /// The records.
    pub block: Block,
}

/// Bytes that are not a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged log batch")]
pub struct InvalidBatch;

impl Batch {
    /// The frame of this batch.
    pub fn encode(&self) -> Bytes {
        let mut frame = BytesMut::with_capacity(HEADER_BYTES + self.block.data.len());
        frame.put_u64_le(self.first_line);
        frame.put_u32_le(self.attempt);
        frame.put_u8(if self.late { LATE_BIT } else { 0 });
        frame.put_i64_le(self.block.first_at.0);
        frame.put_slice(&self.block.data);
        frame.freeze()
    }

    /// Reads a frame that came from outside; every record must be well-formed.
    pub fn decode(mut frame: Bytes) -> Result<Self, InvalidBatch> {
        if frame.len() < HEADER_BYTES {
            return Err(InvalidBatch);
        }
        let (first_line, attempt, flags) = (frame.get_u64_le(), frame.get_u32_le(), frame.get_u8());
        let first_at = UnixMs(frame.get_i64_le());
        let block = Block::decode(first_at, frame).map_err(|_| InvalidBatch)?;
        if first_line.checked_add(u64::from(block.count)).is_none() {
            return Err(InvalidBatch);
        }
        Ok(Self { first_line, attempt, late: flags & LATE_BIT != 0, block })
    }

    /// The batch of a single JSON event, or `None` where its base64 is damaged.
    pub fn from_event(event: &LogEvent) -> Option<Self> {
        let bytes = event.bytes()?;
        let mut block = BlockBuilder::default();
        block.push(event.record(&bytes));
        Some(Self { first_line: event.line, attempt: event.attempt, late: event.late, block: block.take() })
    }

    /// The number of the record after its last one.
    pub fn next_line(&self) -> u64 {
        self.first_line + u64::from(self.block.count)
    }

    /// The batch without the records before `line`.
    #[must_use]
    pub fn starting_at(self, line: u64) -> Self {
        if line <= self.first_line {
            return self;
        }
        let skipped = u32::try_from(line - self.first_line).unwrap_or(u32::MAX).min(self.block.count);
        Self { first_line: self.first_line + u64::from(skipped), block: self.block.skip(skipped), ..self }
    }

    /// The records with their numbers.
    pub fn records(&self) -> impl Iterator<Item = (u64, Record<'_>)> {
        // A batch is validated where it is made, so that no record can be damaged here.
        (self.first_line..).zip(self.block.records().map_while(Result::ok))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use runvoy_model::log::Stream;

    use super::*;

    fn batch(lines: &[Vec<u8>]) -> Batch {
        let mut block = BlockBuilder::default();
        for (at, bytes) in (1_767_450_139_640..).zip(lines) {
            block.push(Record { at: UnixMs(at), stream: Stream::Stderr, cont: false, eol: true, bytes });
        }
        Batch { first_line: 41, attempt: 3, late: true, block: block.take() }
    }

    proptest! {
        #[test]
        fn a_batch_comes_back_as_it_went(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), from in 0u64..80) {
            let batch = batch(&lines);
            prop_assert_eq!(&Batch::decode(batch.encode()).expect("own encoding"), &batch);
            let rest = batch.clone().starting_at(from);
            let expected: Vec<(u64, Vec<u8>)> = (41u64..).zip(lines).filter(|(line, _)| *line >= from).collect();
            let found: Vec<(u64, Vec<u8>)> = rest.records().map(|(line, record)| (line, record.bytes.to_vec())).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(rest.next_line(), batch.next_line());
        }

        #[test]
        fn garbage_is_refused_and_never_panics(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(batch) = Batch::decode(frame.into()) {
                prop_assert_eq!(batch.records().count() as u64, batch.next_line() - batch.first_line);
            }
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let frame = batch(&[b"hi".to_vec()]).encode();
        assert_eq!(
            frame[..],
            [&41u64.to_le_bytes()[..], &3u32.to_le_bytes(), &[1], &1_767_450_139_640i64.to_le_bytes(), &[0, 0b1001, 2], b"hi"].concat()
        );
        assert_eq!(Batch::decode(frame.slice(..20)), Err(InvalidBatch));
        assert_eq!(Batch::decode(frame.slice(..frame.len() - 1)), Err(InvalidBatch));
    }
}
