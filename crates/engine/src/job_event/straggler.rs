//! Late events: those that were kept behind events with a greater attempt or number. A reader is given each of them once, before everything later that it was not
//! given yet. They are found among the heads of the records ahead of the reader, so that one far ahead is found before the reader gets there.

use std::collections::{BTreeMap, BTreeSet};

use runvoy_model::id::ExecutionId;
use runvoy_model::job_event::{Assembler, Kept, Peeked, Place, peek};
use runvoy_ports::log::LogError;

use super::find::{Key, LOOK_BYTES, PAGE_BYTES, records};
use crate::Engine;

/// The late events that one reader knows of.
pub(super) struct Stragglers {
    /// Those before this are not asked for.
    first: Key,
    waiting: BTreeMap<Key, Found>,
    /// Those that were given before the reader got to where they are kept.
    given: BTreeSet<Key>,
    /// Every event in order up to this one was read.
    passed: Option<Key>,
    /// The log was looked through up to this line.
    looked_to: u64,
}

/// Where a late event is.
enum Found {
    /// In the log, from this line on.
    At(u64),
    /// At hand.
    Read(Box<Kept>),
}

/// A late event whose turn has come.
pub(super) struct Due {
    key: Key,
    found: Found,
}

impl Stragglers {
    pub(super) fn from(first: Key) -> Self {
        Self { first, waiting: BTreeMap::new(), given: BTreeSet::new(), passed: None, looked_to: 1 }
    }

    /// Takes note of an event that was read. One that is in order is given back, to wait for its turn.
    pub(super) fn read(&mut self, kept: Kept) -> Option<Kept> {
        let key = (kept.attempt, kept.event.place);
        self.passed = self.passed.max(Some(key));
        if kept.mark.in_order {
            return Some(kept);
        }
        if !self.given.remove(&key) && key >= self.first {
            self.waiting.insert(key, Found::Read(Box::new(kept)));
        }
        None
    }

    /// Nothing in order of this attempt is left to read.
    pub(super) fn pass_attempt(&mut self, attempt: u32) {
        self.passed = self.passed.max(Some((attempt.saturating_add(1), Place::FIRST)));
    }

    /// Whether there is one whose turn it is: before `next`, or, where nothing is at hand, before all that was not read yet.
    pub(super) fn is_due(&self, next: Option<Key>) -> bool {
        self.waiting.first_key_value().is_some_and(|(key, _)| match next {
            Some(next) => *key < next,
            None => Some(*key) <= self.passed,
        })
    }

    /// Takes the first one, if it is its turn.
    pub(super) fn take(&mut self, next: Option<Key>) -> Option<Due> {
        if !self.is_due(next) {
            return None;
        }
        self.waiting.pop_first().map(|(key, found)| Due { key, found })
    }
}

impl Engine {
    /// Looks for late events in a log of events, from a line on to before `end`, as far as that was not done yet.
    pub(super) async fn look_ahead(&self, log: ExecutionId, stragglers: &mut Stragglers, from: u64, end: u64) -> Result<(), LogError> {
        let mut line = from.max(stragglers.looked_to);
        if line >= end {
            return Ok(());
        }
        stragglers.looked_to = end;
        if !self.may_straggle(log, end).await? {
            return Ok(());
        }
        while line < end {
            let chunks = self.ports.logs.read(log, line, PAGE_BYTES).await?;
            let Some(last) = chunks.last() else { break };
            line = last.next_line();
            for chunk in &chunks {
                for record in records(chunk) {
                    let (index, record) = record?;
                    let (at, peeked) = (chunk.first_line + u64::from(index), peeked(record.bytes)?);
                    let key = (chunk.attempt, peeked.place);
                    if at < end && peeked.begins && !peeked.in_order && key >= stragglers.first {
                        stragglers.waiting.entry(key).or_insert(Found::At(at));
                    }
                }
            }
        }
        Ok(())
    }

    /// Of a single attempt its last event tells; of several, what came late may stand anywhere.
    async fn may_straggle(&self, log: ExecutionId, end: u64) -> Result<bool, LogError> {
        let chunks = self.ports.logs.read(log, end - 1, LOOK_BYTES).await?;
        let Some(chunk) = chunks.first() else { return Ok(true) };
        match records(chunk).next() {
            Some(record) => {
                let peeked = peeked(record?.1.bytes)?;
                Ok(chunk.attempt > 1 || peeked.straggled || !peeked.in_order)
            }
            None => Ok(true),
        }
    }

    /// A late event whose turn it is; `None` where it was not completed yet: then it is given when it was read.
    pub(super) async fn straggler(&self, log: ExecutionId, stragglers: &mut Stragglers, due: Due) -> Result<Option<Kept>, LogError> {
        match due.found {
            Found::Read(kept) => Ok(Some(*kept)),
            Found::At(line) => {
                let found = self.event_at(log, line, due.key).await?;
                if found.is_some() {
                    stragglers.given.insert(due.key);
                }
                Ok(found)
            }
        }
    }

    /// The event that begins at a line; `None` where it was never completed.
    async fn event_at(&self, log: ExecutionId, mut line: u64, key: Key) -> Result<Option<Kept>, LogError> {
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
