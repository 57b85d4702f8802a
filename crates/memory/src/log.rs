//! Logs as lists of chunks. Every answer comes from walking them from the start.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use memchr::memmem;
use parking_lot::Mutex;
use regex::bytes::Regex;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Chunk, Record};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, Extent, Found, LogError, LogStore, Pruned, RawPlace, Search, in_order};
use runvoy_ports::search::why_not;

/// Hits of a search are collected up to this size, and at least one.
const MAX_HIT_BYTES: usize = 1 << 20;

/// The logs in memory. A clone shares the same logs.
#[derive(Debug, Clone, Default)]
pub struct MemoryLogStore {
    logs: Arc<Mutex<BTreeMap<ExecutionId, Log>>>,
}

impl MemoryLogStore {
    fn with<T>(&self, id: ExecutionId, look: impl FnOnce(&mut Log) -> T) -> T {
        look(self.logs.lock().entry(id).or_default())
    }
}

#[derive(Debug, Default)]
struct Log {
    chunks: Vec<Chunk>,
    /// Records ever appended.
    count: u64,
    raw_bytes: u64,
    /// What is expected next, by attempt.
    next_seq: BTreeMap<u32, u64>,
    sealed: bool,
    lost_records: u64,
}

impl Log {
    fn append(&mut self, id: ExecutionId, append: Append) -> Result<Appended, LogError> {
        let expected = self.next_seq.get(&append.attempt).copied().unwrap_or(1);
        let mut block = append.block;
        let mut first_seq = 0;
        if let Some(seq) = append.first_seq {
            if seq > expected {
                return Err(LogError::Gap { expected });
            }
            block = block.skip(u32::try_from(expected - seq).unwrap_or(u32::MAX));
            first_seq = expected;
            self.next_seq.insert(append.attempt, expected + u64::from(block.count));
        }
        let latest = self.chunks.iter().map(|chunk| chunk.block.last_at).max();
        block = in_order(id, block, latest.unwrap_or(UnixMs(i64::MIN)));
        if block.count > 0 {
            let (count, raw) = (u64::from(block.count), block.raw_len);
            let (first_line, raw_start, late) = (self.count + 1, self.raw_bytes, append.late || self.sealed);
            self.chunks.push(Chunk { first_line, raw_start, attempt: append.attempt, first_seq, late, block });
            self.count += count;
            self.raw_bytes += raw;
        }
        Ok(Appended { next_line: self.count + 1, next_seq: self.next_seq.get(&append.attempt).copied().unwrap_or(1) })
    }

    fn extent(&self) -> Extent {
        Extent {
            next_line: self.count + 1,
            first_line: self.chunks.first().map_or(self.count + 1, |chunk| chunk.first_line),
            raw_bytes: self.raw_bytes,
            sealed: self.sealed,
            lost_records: self.lost_records,
        }
    }

    /// Every record kept, with its number and the offset of its first raw byte.
    fn records(&self) -> impl Iterator<Item = (u64, u64, Record<'_>)> {
        self.chunks.iter().flat_map(|chunk| {
            let mut raw_start = chunk.raw_start;
            let records = chunk.block.records().map(|record| record.expect("only whole blocks are appended"));
            (chunk.first_line..).zip(records).map(move |(line, record)| {
                let start = raw_start;
                raw_start += record.raw_len();
                (line, start, record)
            })
        })
    }

    fn search(&self, search: &Search) -> Result<Found, LogError> {
        let regex = match search.regex {
            true => Some(Regex::new(&search.pattern).map_err(|error| LogError::Pattern(why_not(&error.to_string())))?),
            false => None,
        };
        let matches = |bytes: &[u8]| match &regex {
            Some(regex) => regex.is_match(bytes),
            None => memmem::find(bytes, search.pattern.as_bytes()).is_some(),
        };
        let (mut found, mut bytes) = (Found::default(), 0);
        for (line, _, record) in self.records().filter(|(line, ..)| *line >= search.from_line) {
            if search.stop.is_set() && line > search.from_line.max(1) {
                return Ok(Found { next_line: found.next_line.or(Some(line)), is_stopped: true, ..found });
            }
            if search.stream.is_some_and(|stream| record.stream != stream) || !matches(record.bytes) {
                continue;
            }
            found.total += 1;
            if found.next_line.is_some() {
                continue;
            }
            bytes += record.bytes.len();
            if found.hits.len() < search.limit && (found.hits.is_empty() || bytes <= MAX_HIT_BYTES) {
                found.hits.push((line, record.bytes.to_vec()));
            } else {
                found.next_line = Some(line);
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl LogStore for MemoryLogStore {
    async fn append(&self, id: ExecutionId, append: Append) -> Result<Appended, LogError> {
        self.with(id, |log| log.append(id, append))
    }

    async fn sync(&self, id: ExecutionId) -> Result<Extent, LogError> {
        self.extent(id).await
    }

    async fn seal(&self, id: ExecutionId, log_end: u64) -> Result<(), LogError> {
        self.with(id, |log| {
            if !log.sealed {
                log.sealed = true;
                log.lost_records = log_end.saturating_sub(log.count);
            }
        });
        Ok(())
    }

    async fn extent(&self, id: ExecutionId) -> Result<Extent, LogError> {
        Ok(self.with(id, |log| log.extent()))
    }

    async fn read(&self, id: ExecutionId, from_line: u64, max_bytes: usize) -> Result<Vec<Chunk>, LogError> {
        self.with(id, |log| {
            let mut bytes = 0;
            let mut chunks = Vec::new();
            for chunk in log.chunks.iter().filter(|chunk| chunk.next_line() > from_line) {
                if bytes >= max_bytes && !chunks.is_empty() {
                    break;
                }
                let chunk = chunk.clone().starting_at(from_line);
                bytes += chunk.block.data.len();
                chunks.push(chunk);
            }
            Ok(chunks)
        })
    }

    async fn line_at(&self, id: ExecutionId, at: UnixMs) -> Result<u64, LogError> {
        Ok(self.with(id, |log| log.records().find(|(_, _, record)| record.at >= at).map_or(log.count + 1, |(line, _, _)| line)))
    }

    async fn raw_place(&self, id: ExecutionId, offset: u64) -> Result<Option<RawPlace>, LogError> {
        let holds = |start: u64, record: &Record<'_>| (start..start + record.raw_len()).contains(&offset);
        Ok(self.with(id, |log| {
            let place = log.records().find(|(_, start, record)| holds(*start, record));
            place.map(|(line, line_start, _)| RawPlace { line, line_start })
        }))
    }

    async fn search(&self, id: ExecutionId, search: Search) -> Result<Found, LogError> {
        self.with(id, |log| log.search(&search))
    }

    async fn prune(&self, before: UnixMs) -> Result<Pruned, LogError> {
        let mut pruned = Pruned::default();
        for log in self.logs.lock().values_mut() {
            let old = log.sealed && log.chunks.last().is_some_and(|chunk| chunk.block.last_at < before);
            if old {
                pruned.logs += 1;
                pruned.bytes += log.chunks.drain(..).map(|chunk| chunk.block.data.len() as u64).sum::<u64>();
            }
        }
        Ok(pruned)
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Stream};
    use runvoy_ports::search::Stop;

    use super::*;

    #[test]
    fn large_hits_come_in_several_answers() {
        let (mut log, mut block) = (Log::default(), BlockBuilder::default());
        for _ in 0..40 {
            block.push(Record { at: UnixMs(1), stream: Stream::Stdout, cont: false, eol: true, bytes: &[b'x'; 64 << 10] });
        }
        log.append(ExecutionId::from_bytes([1; 16]), Append { attempt: 1, first_seq: None, late: false, block: block.take() })
            .expect("appends");
        let search = |from_line| Search { pattern: "x".into(), regex: false, from_line, limit: 1000, stream: None, stop: Stop::default() };
        let first = log.search(&search(1)).expect("searches");
        assert_eq!((first.total, first.hits.len(), first.next_line), (40, 16, Some(17)));
        let last = log.search(&search(33)).expect("searches");
        assert_eq!((last.total, last.hits.len(), last.next_line), (8, 8, None));
    }
}
