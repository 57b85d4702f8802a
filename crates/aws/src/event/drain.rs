//! The sequencer: moves what steps left in the journal into the log. Every move is one transaction whose first condition is that nobody else gave
//! places meanwhile, so that a place is given once, an event has one place, and whoever is cut off at any point has done a move or has not.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::types::{Delete, Put, TransactWriteItem};
use parking_lot::Mutex;
use runvoy_model::event::Event;

use super::board::{self, Known};
use super::journal::{self, Entry, Key, Look};
use super::mark::{self, Placed};
use super::{EventLog, row, segment};
use crate::dynamo::pause;
use crate::fault::Fault;
use crate::table::Table;

/// So many entries of each partition are looked at at once, to begin with.
const ENTRIES: usize = 64;
/// A transaction holds so many writes: the counter, the segment, a row an event, a removal an entry.
const MOST_WRITES: usize = 100;
/// And so many bytes of events: they are written once and removed once, and 4 MB is the end.
const MOST_BYTES: usize = 1_500_000;
/// After so many lost races in a row something else is wrong.
const MOST_RACES: u32 = 60;

/// What drains of one process know of each other.
#[derive(Debug, Default)]
pub(super) struct Drains {
    asked: AtomicU64,
    /// Everything that was committed before this many were asked for has its place.
    done: tokio::sync::Mutex<u64>,
    known: Mutex<Known>,
}

impl EventLog {
    /// Gives a place to every event that was committed before the call began. Calls at the same time share the work.
    pub async fn drain(&self) -> Result<(), Fault> {
        let number = self.drains.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut done = self.drains.done.lock().await;
        if *done >= number {
            return Ok(());
        }
        let begun = self.drains.asked.load(Ordering::SeqCst);
        self.drain_all().await?;
        *done = begun;
        Ok(())
    }

    async fn drain_all(&self) -> Result<(), Fault> {
        let (mut most, mut races) = (ENTRIES, 0);
        // What the first whole look saw; what comes later is the next drain's.
        let mut owed: Option<HashSet<Key>> = None;
        loop {
            let first = journal::look(&self.dynamo, most).await?;
            if first.is_complete() && owed.is_none() {
                owed = Some(first.entries.iter().map(|entry| entry.key).collect());
            }
            if owed.as_ref().is_some_and(|owed| first.is_complete() && !first.entries.iter().any(|entry| owed.contains(&entry.key))) {
                return Ok(());
            }
            let is_complete = first.is_complete();
            let ready = board::order(self.ready(first, most).await?);
            if ready.is_empty() {
                // Somebody else was faster, or the causes lie beyond what was looked at.
                most = if is_complete { most } else { most.saturating_mul(4) };
                continue;
            }
            match self.place(&ready).await {
                Ok(()) => races = 0,
                Err(Fault::Conflict | Fault::Busy(_)) if races < MOST_RACES => {
                    races += 1;
                    pause(races).await;
                    continue;
                }
                Err(Fault::Conflict) => return Err(crowded()),
                Err(fault) => return Err(fault),
            }
            if let Some(owed) = &mut owed {
                let placed: HashSet<Key> = ready.iter().map(|entry| entry.key).collect();
                owed.retain(|key| !placed.contains(key));
                if owed.is_empty() {
                    return Ok(());
                }
            }
        }
    }

    /// What can be placed now.
    async fn ready(&self, first: Look, most: usize) -> Result<Vec<Entry>, Fault> {
        if board::is_closed(&first, &self.drains.known.lock()) {
            return Ok(first.entries);
        }
        let second = journal::look(&self.dynamo, most).await?;
        Ok(board::settled(&first, second, &self.drains.known.lock()))
    }

    /// Places entries in this order, some in each transaction.
    async fn place(&self, entries: &[Entry]) -> Result<(), Fault> {
        let mut placed = mark::placed(&self.dynamo).await?;
        for batch in batches(entries) {
            let events = || batch.iter().flat_map(|entry| &entry.events);
            let after = placed.after(events().map(|event| event.at));
            self.dynamo.transact(self.writes(batch, placed, after)).await?;
            placed = after;
            let mut known = self.drains.known.lock();
            batch.iter().for_each(|entry| known.note(entry));
        }
        Ok(())
    }

    fn writes(&self, batch: &[Entry], before: Placed, after: Placed) -> Vec<TransactWriteItem> {
        let table = self.dynamo.name(Table::Events);
        let put = |item| {
            let put = Put::builder().table_name(&table).set_item(Some(item)).condition_expression("attribute_not_exists(PK)");
            TransactWriteItem::builder().put(put.build().expect("a put has an item")).build()
        };
        let delete = |entry: &Entry| {
            let delete = Delete::builder().table_name(&table).set_key(Some(entry.key.item())).condition_expression("attribute_exists(PK)");
            TransactWriteItem::builder().delete(delete.build().expect("a removal has a key")).build()
        };
        let events: Vec<&Event> = batch.iter().flat_map(|entry| &entry.events).collect();
        let mut writes = vec![before.advance(after, &self.dynamo), put(segment::encode(before, after, events.iter().copied()))];
        writes.extend((before.last + 1..).zip(&events).map(|(place, event)| put(row::encode(place, event))));
        writes.extend(batch.iter().map(delete));
        writes
    }
}

/// Cuts entries into what one transaction holds.
fn batches(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let (mut writes, mut bytes, mut count) = (2, 0, 0);
        for entry in rest {
            writes += entry.events.len() + 1;
            bytes += entry.bytes;
            if count > 0 && (writes > MOST_WRITES || bytes > MOST_BYTES) {
                break;
            }
            count += 1;
        }
        let (batch, left) = rest.split_at_checked(count).filter(|_| count > 0)?;
        rest = left;
        Some(batch)
    })
}

fn crowded() -> Fault {
    let source = std::io::Error::other("places were given by others each time");
    Fault::Unavailable { service: "DynamoDB", code: "Conflict".to_owned(), source: Box::new(source) }
}
