//! Where the lines of executions are kept. A log is a sequence of records numbered from 1 over all attempts;
//! that number is the one cursor for paging, following and resuming.

use async_trait::async_trait;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, Chunk, Stream};
use runvoy_model::time::UnixMs;

use crate::search::Stop;

/// What went wrong with a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The writer skipped records: it must send from `expected` on.
    #[error("records are missing before this one: expected sequence {expected}")]
    Gap {
        /// The sequence that the log waits for.
        expected: u64,
    },
    /// The log has reached its configured size.
    #[error("the log is full ({limit_bytes} bytes)")]
    Full {
        /// The configured size.
        limit_bytes: u64,
    },
    /// The disk is full, or at its reserve.
    #[error("disk full: no space left for logs")]
    NoSpace,
    /// A search pattern that is not a regular expression.
    #[error("invalid search pattern: {0}")]
    Pattern(String),
    /// Stored bytes failed their checksum. They are never served.
    #[error("the log is damaged after line {after_line}")]
    Damaged {
        /// The last line that is good.
        after_line: u64,
    },
    /// The storage under the log failed.
    #[error("log storage failed")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl LogError {
    /// The same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::NoSpace | Self::Storage(_))
    }
}

/// Records to append.
#[derive(Debug, Clone)]
pub struct Append {
    /// The attempt that wrote them; 0 is the server itself.
    pub attempt: u32,
    /// The writer's number of the first record, from 1; `None` for a writer that does not number (the server itself).
    pub first_seq: Option<u64>,
    /// The attempt's lease had lapsed.
    pub late: bool,
    /// The records.
    pub block: Block,
}

/// So many bytes beyond its limit a log takes of the platform's own lines that attempts bring.
pub const PLATFORM_ROOM_BYTES: u64 = 1 << 20;

/// How large a log may become by these records of an attempt. The platform's own lines find room beyond the limit: they say that the log is full, and how it
/// all ended. What the server itself writes always does. What an attempt brings has a bound: whoever has its token could bring anything.
pub fn most_bytes(limit_bytes: u64, attempt: u32, block: &Block) -> u64 {
    match (attempt, block.raw_len) {
        (0, 0) => u64::MAX,
        (_, 0) => limit_bytes.saturating_add(PLATFORM_ROOM_BYTES),
        _ => limit_bytes,
    }
}

/// New records of a log as they are kept: log times never go back, neither between writers whose clocks differ nor where a clock is set back. `latest` is
/// the latest time that the log has. Job events keep their own times: a repeat is compared with what stands there.
pub fn in_order(id: ExecutionId, block: Block, latest: UnixMs) -> Block {
    if id.is_event_log() { block } else { block.not_before(latest) }
}

/// Where a log stands after an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The number that the next record will get: the log's records are `1..next_line`.
    pub next_line: u64,
    /// The sequence that the log expects next from this attempt.
    pub next_seq: u64,
}

/// How far a log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// The number that the next record will get: the log's records are `first_line..next_line`.
    pub next_line: u64,
    /// The first record still kept; 1 unless retention took the log, then `next_line`.
    pub first_line: u64,
    /// Bytes of the command's own output.
    pub raw_bytes: u64,
    /// Sealed at this many records: nothing but late output follows.
    pub sealed: bool,
    /// The log was shorter than its execution's `log_end` when it was opened after a crash, by this many records.
    pub lost_records: u64,
}

/// What to look for.
#[derive(Debug, Clone)]
pub struct Search {
    /// A literal, or a regular expression if `regex`.
    pub pattern: String,
    /// Whether `pattern` is a regular expression.
    pub regex: bool,
    /// Where to begin.
    pub from_line: u64,
    /// How many hits to return; counting goes on to the end.
    pub limit: usize,
    /// Only records of this stream.
    pub stream: Option<Stream>,
    /// Ends the search early.
    pub stop: Stop,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// How many records from `from_line` on match: to the end, or as far as the search came where it was stopped.
    pub total: u64,
    /// The first of them: line number and bytes.
    pub hits: Vec<(u64, Vec<u8>)>,
    /// Where to go on for the hits after these; `None` when there are no more.
    pub next_line: Option<u64>,
    /// It was stopped before the end: `total` is only what was counted until then, and `next_line` is there.
    pub is_stopped: bool,
}

/// A place in the raw output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPlace {
    /// The record that holds the byte.
    pub line: u64,
    /// The offset of that record's first byte in the raw output.
    pub line_start: u64,
}

/// What pruning took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Logs removed.
    pub logs: u64,
    /// Bytes freed on disk.
    pub bytes: u64,
}

/// The log port. Reading a log that was never written gives an empty one, not an error.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// Appends records. What the log already has of this attempt is dropped (a repeat after a lost answer writes
    /// nothing), a hole is refused with [`LogError::Gap`]. The times of what is new are those of [`in_order`]. Readers see the records when this returns; they are on
    /// stable storage only after [`LogStore::sync`].
    async fn append(&self, id: ExecutionId, append: Append) -> Result<Appended, LogError>;

    /// Puts everything appended so far on stable storage. Calls that wait at the same time share one flush.
    async fn sync(&self, id: ExecutionId) -> Result<Extent, LogError>;

    /// The execution has ended with its log at `log_end` records (the last line's number). Only late output may
    /// follow. The log may be compressed and moved from now on; its numbers never change.
    async fn seal(&self, id: ExecutionId, log_end: u64) -> Result<(), LogError>;

    /// How far the log goes.
    async fn extent(&self, id: ExecutionId) -> Result<Extent, LogError>;

    /// Chunks from `from_line` on, in order, the first one trimmed to begin exactly there, about `max_bytes` of encoded
    /// data (at least one record if there is any). Empty at the end of the log.
    async fn read(&self, id: ExecutionId, from_line: u64, max_bytes: usize) -> Result<Vec<Chunk>, LogError>;

    /// The first record written at `at` or later; `next_line` if there is none.
    async fn line_at(&self, id: ExecutionId, at: UnixMs) -> Result<u64, LogError>;

    /// The record that holds byte `offset` of the raw output; `None` beyond its end.
    async fn raw_place(&self, id: ExecutionId, offset: u64) -> Result<Option<RawPlace>, LogError>;

    /// Looks through the whole log from a line on, until its [`Stop`] is set. It looks at one record at least, so that a caller who goes on comes to the end.
    async fn search(&self, id: ExecutionId, search: Search) -> Result<Found, LogError>;

    /// Removes the logs of executions that ended before `before`. One that ended a moment ago may stay until the next time.
    async fn prune(&self, before: UnixMs) -> Result<Pruned, LogError>;
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Record};

    use super::*;

    fn block(stream: Stream) -> Block {
        let mut builder = BlockBuilder::default();
        builder.push(Record { at: UnixMs(0), stream, cont: false, eol: true, bytes: b"text" });
        builder.take()
    }

    #[test]
    fn only_the_server_itself_writes_without_bound() {
        let most = |attempt, stream| most_bytes(10, attempt, &block(stream));
        assert_eq!((most(1, Stream::Stdout), most(1, Stream::Stderr), most(0, Stream::Stdout)), (10, 10, 10));
        assert_eq!((most(1, Stream::Platform), most(0, Stream::Platform)), (10 + PLATFORM_ROOM_BYTES, u64::MAX));
        assert_eq!(most_bytes(u64::MAX, 1, &block(Stream::Platform)), u64::MAX);
    }
}
