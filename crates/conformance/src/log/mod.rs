//! The promises of a log store.

pub mod append;
pub mod lookup;
pub mod read;
pub mod seal;

use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, LogStore};

use crate::chance::Chance;
use crate::stage::{BEGINNING, id_bytes};

/// A record as it is read back, with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub number: u64,
    pub raw_start: u64,
    pub attempt: u32,
    pub seq: u64,
    pub late: bool,
    pub at: UnixMs,
    pub stream: Stream,
    pub cont: bool,
    pub eol: bool,
    pub bytes: Vec<u8>,
}

pub(crate) fn execution(number: u64) -> ExecutionId {
    ExecutionId::from_bytes(id_bytes(BEGINNING, number))
}

pub(crate) fn record(at_ms: i64, stream: Stream, bytes: &[u8]) -> Record<'_> {
    Record { at: BEGINNING.plus_ms(at_ms), stream, cont: false, eol: true, bytes }
}

pub(crate) fn block<'a>(records: impl IntoIterator<Item = Record<'a>>) -> Block {
    let mut builder = BlockBuilder::default();
    for record in records {
        builder.push(record);
    }
    builder.take()
}

/// Whole lines on standard output, a millisecond apart.
pub(crate) fn lines(texts: &[&str]) -> Block {
    block((0..).zip(texts).map(|(ms, text)| record(ms, Stream::Stdout, text.as_bytes())))
}

pub(crate) fn numbered(attempt: u32, first_seq: u64, block: Block) -> Append {
    Append { attempt, first_seq: Some(first_seq), late: false, block }
}

pub(crate) async fn append(store: &dyn LogStore, id: ExecutionId, append: Append) -> Appended {
    store.append(id, append).await.expect("an append")
}

/// Reads from a line to the end in pieces of about `max_bytes`; panics at a gap or a repeat.
pub(crate) async fn read_from(store: &dyn LogStore, id: ExecutionId, from_line: u64, max_bytes: usize) -> Vec<Line> {
    let mut read: Vec<Line> = Vec::new();
    let mut next = from_line.max(1);
    loop {
        let chunks = store.read(id, next, max_bytes).await.expect("a read");
        if chunks.is_empty() {
            return read;
        }
        for chunk in chunks {
            assert_eq!(chunk.first_line, next, "a chunk begins where the one before it ended");
            assert!(chunk.block.count > 0, "no chunk is empty");
            let mut raw_start = chunk.raw_start;
            for (offset, record) in (0..).zip(chunk.block.records()) {
                let record = record.expect("a good record");
                read.push(Line {
                    number: next,
                    raw_start,
                    attempt: chunk.attempt,
                    seq: if chunk.first_seq == 0 { 0 } else { chunk.first_seq + offset },
                    late: chunk.late,
                    at: record.at,
                    stream: record.stream,
                    cont: record.cont,
                    eol: record.eol,
                    bytes: record.bytes.to_vec(),
                });
                raw_start += record.raw_len();
                next += 1;
            }
            assert_eq!(next, chunk.next_line());
        }
    }
}

pub(crate) async fn read_all(store: &dyn LogStore, id: ExecutionId) -> Vec<Line> {
    read_from(store, id, 1, 1 << 20).await
}

pub(crate) async fn texts(store: &dyn LogStore, id: ExecutionId) -> Vec<String> {
    read_all(store, id).await.into_iter().map(|line| String::from_utf8(line.bytes).expect("UTF-8")).collect()
}

/// A log of many sizes, streams and attempts; times never fall.
pub(crate) async fn varied(store: &dyn LogStore, id: ExecutionId, chance: &mut Chance) -> Vec<Line> {
    let mut expected: Vec<Line> = Vec::new();
    let (mut raw, mut ms) = (0, 0);
    for attempt in 1..=3 {
        let mut seq = 1;
        for _ in 0..12 {
            let mut builder = BlockBuilder::default();
            let first_seq = seq;
            for _ in 0..=chance.below(9) {
                ms += i64::try_from(chance.below(3)).expect("small");
                let stream = [Stream::Stdout, Stream::Stderr, Stream::Platform][chance.below(3)];
                let size = if chance.percent(5) { 5_000 } else { 40 };
                let bytes: Vec<u8> = (0..chance.below(size)).map(|_| chance.number().to_le_bytes()[0]).collect();
                let record = Record { cont: chance.percent(10), eol: chance.percent(90), ..record(ms, stream, &bytes) };
                builder.push(record);
                let (at, cont, eol, raw_start) = (record.at, record.cont, record.eol, raw);
                raw += record.raw_len();
                let number = expected.len() as u64 + 1;
                expected.push(Line { number, raw_start, attempt, seq, late: false, at, stream, cont, eol, bytes });
                seq += 1;
            }
            append(store, id, numbered(attempt, first_seq, builder.take())).await;
        }
    }
    expected
}
