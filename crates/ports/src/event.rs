//! The event log as a store is asked for it: which events, for whose eyes, and what the proof of the log takes of them.

use runvoy_model::event::{Entity, Event, EventType};
use runvoy_model::id::Id;
use runvoy_model::time::UnixMs;

/// Which events, in the order they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only events about this.
    pub entity: Option<Entity>,
    /// Only events of this type.
    pub kind: Option<EventType>,
    /// Only at this time or later.
    pub from: Option<UnixMs>,
    /// Only before this time.
    pub to: Option<UnixMs>,
    /// Newest first.
    pub descending: bool,
    /// Go on after this place.
    pub after: Option<u64>,
    /// At most this many.
    pub limit: usize,
}

/// An event and its place in the whole log.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Rises by one with every event stored; a cursor.
    pub place: u64,
    /// The event.
    pub event: Event,
}

/// What the proof of the log takes of an event: never what it tells, which may be large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// Its place in the log.
    pub place: u64,
    /// Its id.
    pub id: Id,
    /// What happened.
    pub kind: EventType,
    /// Its link in the chain; zero for unchained ones.
    pub mac: [u8; 32],
}

/// Whose eyes a page of events is for, and how far they go at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Only events about executions and jobs that this user submitted.
    pub owner: Option<String>,
    /// Also those that tell of calls: `Audit`, `Audit Checkpoint`.
    pub trail: bool,
    /// So many events are looked at, seen or not: whoever sees few of many gets a place to go on from instead of a long wait.
    pub most_looked_at: usize,
    /// A page ends with the event that makes it this large.
    pub most_bytes: usize,
}

/// The events of a page that somebody may see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventPage {
    /// The events, in the order that was asked for.
    pub events: Vec<StoredEvent>,
    /// Everything up to here was looked at: the next page goes on after this. At the end of an ascending query it is the end of the log.
    pub looked: u64,
    /// There is more behind that.
    pub more: bool,
}
