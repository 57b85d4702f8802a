//! The most recent chunks of logs that are being written, in memory, so that following a live log touches no disk.
//! A cache only: what is not here is read from the files.

use std::collections::{BTreeMap, HashMap, VecDeque};

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::Chunk;

use super::piece::head;

/// What a chunk costs besides its bytes.
const OVERHEAD: usize = 160;
/// What a tail costs besides its chunks: a log of one line costs most of its memory here.
const TAIL_OVERHEAD: usize = 192;

struct Tail {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    stamp: u64,
}

#[derive(Default)]
struct Shelf {
    tails: HashMap<ExecutionId, Tail>,
    /// By last use; the first is the one to drop.
    order: BTreeMap<u64, ExecutionId>,
    bytes: usize,
    clock: u64,
}

/// The tails of all open logs within one bound.
pub(crate) struct Tails {
    per_log: usize,
    in_all: usize,
    shelf: Mutex<Shelf>,
}

impl Tails {
    pub(crate) fn new(per_log: usize, in_all: usize) -> Self {
        Self { per_log, in_all, shelf: Mutex::default() }
    }

    /// Adds chunks that were just written to the log's end.
    pub(crate) fn push(&self, id: ExecutionId, chunks: impl IntoIterator<Item = Chunk>) {
        let mut shelf = self.shelf.lock();
        let shelf = &mut *shelf;
        shelf.clock += 1;
        let stamp = shelf.clock;
        let tail = shelf.tails.entry(id).or_insert_with(|| {
            shelf.bytes += TAIL_OVERHEAD;
            Tail { chunks: VecDeque::with_capacity(1), bytes: TAIL_OVERHEAD, stamp }
        });
        shelf.order.remove(&tail.stamp);
        shelf.order.insert(stamp, id);
        tail.stamp = stamp;
        shelf.bytes -= tail.bytes;
        for chunk in chunks {
            if tail.chunks.back().is_some_and(|last| last.next_line() != chunk.first_line) {
                tail.chunks.clear();
                tail.bytes = TAIL_OVERHEAD;
            }
            tail.bytes += cost(&chunk);
            tail.chunks.push_back(chunk);
        }
        // The newest chunk always stays: without it the end of the log would not be known here.
        while tail.bytes > self.per_log && tail.chunks.len() > 1 {
            tail.bytes -= tail.chunks.pop_front().map_or(0, |chunk| cost(&chunk));
        }
        shelf.bytes += tail.bytes;
        while shelf.bytes > self.in_all
            && let Some((_, oldest)) = shelf.order.pop_first()
        {
            shelf.bytes -= shelf.tails.remove(&oldest).map_or(0, |tail| tail.bytes);
        }
    }

    /// What `read` would return, if the tail reaches back to `from_line`.
    pub(crate) fn read(&self, id: ExecutionId, from_line: u64, max_bytes: usize) -> Option<Vec<Chunk>> {
        let mut out = Vec::new();
        {
            let shelf = self.shelf.lock();
            let tail = shelf.tails.get(&id)?;
            if tail.chunks.front()?.first_line > from_line {
                return None;
            }
            let from = tail.chunks.partition_point(|chunk| chunk.next_line() <= from_line);
            let mut bytes = 0;
            for chunk in tail.chunks.range(from..) {
                bytes += chunk.block.data.len();
                if bytes > max_bytes && !out.is_empty() {
                    break;
                }
                out.push(chunk.clone());
            }
        }
        // Cutting walks records, which is not done under the lock that every append needs.
        if let Some(first) = out.first_mut() {
            *first = head(first.clone().starting_at(from_line), max_bytes);
            if first.next_line() < out.get(1).map_or(0, |second| second.first_line) {
                out.truncate(1);
            }
        }
        Some(out)
    }

    pub(crate) fn forget(&self, id: ExecutionId) {
        let mut shelf = self.shelf.lock();
        if let Some(tail) = shelf.tails.remove(&id) {
            shelf.order.remove(&tail.stamp);
            shelf.bytes -= tail.bytes;
        }
    }

    /// How many bytes all tails hold.
    pub(crate) fn bytes(&self) -> usize {
        self.shelf.lock().bytes
    }
}

fn cost(chunk: &Chunk) -> usize {
    chunk.block.data.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Record, Stream};
    use runvoy_model::time::UnixMs;

    use super::*;

    fn chunk(first_line: u64, lines: u64) -> Chunk {
        let mut builder = BlockBuilder::default();
        for line in first_line..first_line + lines {
            let text = format!("line {line}");
            builder.push(Record { at: UnixMs(0), stream: Stream::Stdout, cont: false, eol: true, bytes: text.as_bytes() });
        }
        Chunk { first_line, raw_start: 0, attempt: 1, first_seq: first_line, late: false, block: builder.take() }
    }

    fn id(byte: u8) -> ExecutionId {
        ExecutionId::from_bytes([byte; 16])
    }

    #[test]
    fn a_tail_serves_what_it_has_and_leaves_the_rest_to_the_files() {
        let tails = Tails::new(1000, 10_000);
        tails.push(id(1), (0..20).map(|i| chunk(1 + i * 5, 5)));
        assert!(tails.read(id(1), 1, 100).is_none(), "dropped already");
        assert!(tails.read(id(2), 1, 100).is_none(), "never written");
        let end = tails.read(id(1), 101, 100).expect("known end");
        assert!(end.is_empty());
        let got = tails.read(id(1), 98, 1 << 20).expect("in the tail");
        assert_eq!((got[0].first_line, got[0].block.count, got.len()), (98, 3, 1));
        let one = tails.read(id(1), 93, 1).expect("in the tail");
        assert_eq!((one.len(), one[0].first_line, one[0].block.count), (1, 93, 1));
    }

    #[test]
    fn all_tails_together_stay_in_their_bound() {
        let tails = Tails::new(2000, 5000);
        for log in 0..100 {
            tails.push(id(log), [chunk(1, 50)]);
        }
        assert!(tails.bytes() <= 5000);
        assert!(tails.read(id(0), 1, 10).is_none());
        assert!(tails.read(id(99), 1, 10).is_some());
        tails.forget(id(99));
        assert!(tails.read(id(99), 1, 10).is_none());
    }
}
