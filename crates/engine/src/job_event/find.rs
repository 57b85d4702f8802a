//! Finds places in logs: an event by its sequence, a line by its attempt and number. Both logs are sorted by these but for what came late, so a few looks are enough.

use std::collections::BTreeSet;

use runvoy_model::id::ExecutionId;
use runvoy_model::job_event::{Assembler, Kept, Place, peek};
use runvoy_model::log::{Block, BlockBuilder, Chunk, Record};
use runvoy_ports::log::{Append, Appended, LogError};

use super::ledger::Ledger;
use crate::Engine;

/// About this much is read at a time.
pub(super) const PAGE_BYTES: usize = 256 * 1024;
/// About this much is read for one look.
pub(super) const LOOK_BYTES: usize = 4 * 1024;

/// Where a record stands among all attempts.
pub(super) type Key = (u32, Place);

/// How records of a log are sorted: the key of one that stands in order.
pub(super) type Order = fn(&Chunk, u32, &Record<'_>) -> Result<Option<Key>, LogError>;

/// The order of a log of events.
pub(super) fn of_events(chunk: &Chunk, _: u32, record: &Record<'_>) -> Result<Option<Key>, LogError> {
    let peeked = peek(record.bytes).map_err(|error| LogError::Storage(Box::new(error)))?;
    Ok(peeked.in_order.then_some((chunk.attempt, peeked.place)))
}

/// The order of a log of lines.
pub(super) fn of_lines(chunk: &Chunk, index: u32, _: &Record<'_>) -> Result<Option<Key>, LogError> {
    let sequence = chunk.first_seq + u64::from(index);
    Ok((chunk.first_seq > 0 && !chunk.late).then_some((chunk.attempt, Place { sequence, part: 0 })))
}

/// The records of a chunk, with their lines.
pub(super) fn records(chunk: &Chunk) -> impl Iterator<Item = Result<(u32, Record<'_>), LogError>> {
    (0..).zip(chunk.block.records()).map(|(index, record)| match record {
        Ok(record) => Ok((index, record)),
        Err(_) => Err(LogError::Damaged { after_line: chunk.first_line + u64::from(index) - 1 }),
    })
}

impl Engine {
    /// How a log stands for an attempt.
    pub(crate) async fn stand(&self, log: ExecutionId, attempt: u32) -> Result<Appended, LogError> {
        // An append of nothing writes nothing and tells.
        self.ports.logs.append(log, Append { attempt, first_seq: Some(1), late: false, block: nothing() }).await
    }

    /// The line behind the last record that stands in order before `key`: everything at or behind the key is there or later.
    pub(super) async fn seek(&self, log: ExecutionId, key: Key, order: Order) -> Result<u64, LogError> {
        let extent = self.ports.logs.extent(log).await?;
        let (mut low, mut high) = (extent.first_line.max(1), extent.next_line);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_in_order(log, middle, high, order).await? {
                Some((line, found)) if found < key => low = line + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// The first record from a line on that stands in order.
    async fn first_in_order(&self, log: ExecutionId, from: u64, to: u64, order: Order) -> Result<Option<(u64, Key)>, LogError> {
        let mut line = from;
        while line < to {
            let chunks = self.ports.logs.read(log, line, LOOK_BYTES).await?;
            let Some(last) = chunks.last() else { break };
            line = last.next_line();
            for chunk in &chunks {
                for record in records(chunk) {
                    let (index, record) = record?;
                    let at = chunk.first_line + u64::from(index);
                    if at >= to {
                        return Ok(None);
                    }
                    if let Some(key) = order(chunk, index, &record)? {
                        return Ok(Some((at, key)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Which of an attempt's places are there, among those from `from` to `to`.
    pub(super) async fn places(&self, id: ExecutionId, ledger: &Ledger, from: Place, to: Place) -> Result<BTreeSet<Place>, LogError> {
        let (log, mut found, mut walk) = (id.event_log(), BTreeSet::new(), Walk::default());
        walk.line = self.seek(log, (ledger.attempt, from), of_events).await?;
        while let Some(events) = self.walk(log, &mut walk).await? {
            for kept in events.iter().filter(|kept| kept.attempt == ledger.attempt) {
                if ledger.is_in_order() && kept.event.place > to {
                    return Ok(found);
                }
                if (from..=to).contains(&kept.event.place) {
                    found.insert(kept.event.place);
                }
            }
        }
        Ok(found)
    }

    /// The next page of events; `None` at the end of the log.
    pub(super) async fn walk(&self, log: ExecutionId, walk: &mut Walk) -> Result<Option<Vec<Kept>>, LogError> {
        let chunks = self.ports.logs.read(log, walk.line, PAGE_BYTES).await?;
        let Some(last) = chunks.last() else { return Ok(None) };
        walk.line = last.next_line();
        let mut events = Vec::new();
        for chunk in &chunks {
            for record in records(chunk) {
                let whole = walk.assembler.push(chunk.attempt, record?.1.bytes).map_err(|error| LogError::Storage(Box::new(error)))?;
                events.extend(whole);
            }
        }
        Ok(Some(events))
    }
}

/// A walk through a log of events.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) line: u64,
    assembler: Assembler,
}

impl Walk {
    /// A walk from this line on.
    pub(super) fn from(line: u64) -> Self {
        Self { line, assembler: Assembler::default() }
    }
}

fn nothing() -> Block {
    BlockBuilder::default().take()
}
