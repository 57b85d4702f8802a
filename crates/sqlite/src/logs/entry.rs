//! An entry in memory: a header and its payload, and the way between it and the port's chunk.

use bytes::Bytes;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, Chunk};
use runvoy_model::time::UnixMs;

use super::format::Header;
use super::piece::Piece;
use super::summary::Summary;

/// A run of records in its place in a log, or the mark that the log was sealed.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) header: Header,
    pub(crate) payload: Bytes,
}

/// Who wrote a run of records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) attempt: u32,
    /// The writer's number of the first record; 0 where it does not number.
    pub(crate) first_seq: u64,
    pub(crate) late: bool,
}

impl Entry {
    /// The records' place is behind everything that `log` knows of.
    pub(crate) fn new(id: ExecutionId, origin: Origin, log: &Summary, piece: Piece) -> Self {
        let Piece { block, max_at } = piece;
        let header = Header {
            id,
            attempt: origin.attempt,
            first_line: log.next_line,
            raw_start: log.raw_bytes,
            raw_len: u32::try_from(block.raw_len).expect("a piece is far below 4 GiB"),
            first_seq: origin.first_seq,
            count: block.count,
            first_at: block.first_at.0,
            last_at: block.last_at.0,
            max_at,
            late: origin.late,
            seal: false,
            payload_len: u32::try_from(block.data.len()).expect("a piece is far below 4 GiB"),
        };
        Self { header, payload: block.data }
    }

    /// The mark that an execution ended with its log at `log_end` records.
    pub(crate) fn seal(id: ExecutionId, log_end: u64, log: &Summary) -> Self {
        let header = Header {
            id,
            attempt: 0,
            first_line: log.next_line,
            raw_start: log.raw_bytes,
            raw_len: 0,
            first_seq: log_end,
            count: 0,
            first_at: log.max_at,
            last_at: log.max_at,
            max_at: log.max_at,
            late: false,
            seal: true,
            payload_len: 0,
        };
        Self { header, payload: Bytes::new() }
    }

    /// As the port hands it out.
    pub(crate) fn into_chunk(self) -> Chunk {
        let Self { header, payload } = self;
        Chunk {
            first_line: header.first_line,
            raw_start: header.raw_start,
            attempt: header.attempt,
            first_seq: header.first_seq,
            late: header.late,
            block: Block {
                count: header.count,
                first_at: UnixMs(header.first_at),
                last_at: UnixMs(header.last_at),
                raw_len: u64::from(header.raw_len),
                data: payload,
            },
        }
    }
}
