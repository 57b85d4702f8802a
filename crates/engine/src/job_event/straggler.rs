//! Finds the events that came behind later ones, so that whoever reads what is stored is given them in their place.

use std::collections::BTreeMap;

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::job_event::{Assembler, Kept, Peeked, peek};
use runvoy_ports::log::LogError;

use super::find::{Key, LOOK_BYTES, PAGE_BYTES, records};
use crate::Engine;

/// Events that came behind later ones, each with the line that it begins at.
pub(super) type Stragglers = BTreeMap<Key, u64>;

impl Engine {
    /// The events of an execution that came behind later ones, among the lines from `line` to before `end`.
    pub(super) async fn stragglers(&self, execution: &Execution, mut line: u64, end: u64) -> Result<Stragglers, LogError> {
        let (log, mut found) = (execution.id.event_log(), Stragglers::new());
        if end <= line || !self.may_straggle(execution, end).await? {
            return Ok(found);
        }
        while line < end {
            let chunks = self.ports.logs.read(log, line, PAGE_BYTES).await?;
            let Some(last) = chunks.last() else { break };
            line = last.next_line();
            for chunk in &chunks {
                for record in records(chunk) {
                    let (index, record) = record?;
                    let (at, peeked) = (chunk.first_line + u64::from(index), peeked(record.bytes)?);
                    if at < end && !peeked.in_order {
                        found.entry((chunk.attempt, peeked.place)).or_insert(at);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Of a single attempt its last event tells; of several, what came late may stand anywhere.
    async fn may_straggle(&self, execution: &Execution, end: u64) -> Result<bool, LogError> {
        if execution.attempt > 1 {
            return Ok(true);
        }
        let chunks = self.ports.logs.read(execution.id.event_log(), end - 1, LOOK_BYTES).await?;
        match chunks.first().and_then(|chunk| records(chunk).next()) {
            Some(record) => Ok(peeked(record?.1.bytes)?.straggled),
            None => Ok(true),
        }
    }

    /// The event that begins at a line; `None` where it was never completed.
    pub(super) async fn event_at(&self, log: ExecutionId, mut line: u64, key: Key) -> Result<Option<Kept>, LogError> {
        let mut assembler = Assembler::default();
        loop {
            let chunks = self.ports.logs.read(log, line, LOOK_BYTES).await?;
            let Some(last) = chunks.last() else { return Ok(None) };
            line = last.next_line();
            for chunk in chunks.iter().filter(|chunk| chunk.attempt == key.0) {
                for record in records(chunk) {
                    let whole = assembler.push(chunk.attempt, record?.1.bytes).map_err(|error| LogError::Storage(Box::new(error)))?;
                    if let Some(kept) = whole.filter(|kept| kept.event.place == key.1) {
                        return Ok(Some(kept));
                    }
                }
            }
        }
    }
}

fn peeked(record: &[u8]) -> Result<Peeked, LogError> {
    peek(record).map_err(|error| LogError::Storage(Box::new(error)))
}
