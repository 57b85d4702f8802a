//! What is to be known of events by place without what they tell: one item for all that were placed together, in blocks of places, so that no
//! partition grows for ever. Read consistently, in both directions.

use runvoy_model::event::{Entity, EntityType, Event, EventType};
use runvoy_model::id::Id;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::Leaf;
use serde::{Deserialize, Serialize};

use super::EventLog;
use super::mark::Placed;
use super::row::Spot;
use crate::dynamo::Query;
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::table::Table;

/// So many places make a block; a segment lies in that of its last one.
const BLOCK: u64 = 10_000;
/// No segment holds more events: one transaction places it, with a row for each.
const MOST_EVENTS: u64 = 100;
/// So many segments are read at once.
const AT_ONCE: usize = 8;

/// Events that were placed together.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub first: u64,
    pub last: u64,
    /// The latest time of all events up to its end.
    pub latest: i64,
    lines: Vec<Line>,
}

/// An event in a segment.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line(Id, EntityType, String, EventType, UnixMs, #[serde(with = "runvoy_model::hex")] [u8; 32]);

/// What a segment knows of an event.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub leaf: Leaf,
    pub entity: Entity,
    pub at: UnixMs,
}

impl Known {
    pub fn spot(&self) -> Spot {
        Spot { place: self.leaf.place, entity: self.entity.clone(), may_be_gone: !self.leaf.kind.is_chained() }
    }
}

impl Segment {
    /// The events, by place.
    pub fn events(&self) -> Vec<Known> {
        let known = |(place, line): (u64, &Line)| {
            let Line(id, entity, about, kind, at, mac) = line;
            let leaf = Leaf { place, id: *id, kind: *kind, mac: *mac };
            Known { leaf, entity: Entity { kind: *entity, id: about.clone() }, at: *at }
        };
        (self.first..=self.last).zip(&self.lines).map(known).collect()
    }

    fn decode(item: &Item) -> Result<Self, Fault> {
        let segment =
            Self { first: item.number("first")?, last: item.number("last")?, latest: item.number("latest")?, lines: item.json("lines")? };
        if segment.last.checked_sub(segment.first).map(|more| more + 1) != Some(segment.lines.len() as u64) {
            return Err(Fault::Damaged(format!(
                "the segment of places {} to {} has {} lines",
                segment.first,
                segment.last,
                segment.lines.len()
            )));
        }
        Ok(segment)
    }
}

/// The segment of events that get the places after those that were given.
pub(super) fn encode<'e>(before: Placed, after: Placed, events: impl Iterator<Item = &'e Event>) -> Item {
    let line = |event: &Event| Line(event.id, event.entity.kind, event.entity.id.clone(), event.kind, event.at, event.mac);
    let lines: Vec<Line> = events.map(line).collect();
    item([
        ("PK", s(partition(after.last))),
        ("SK", s(sort(after.last))),
        ("first", n(before.last + 1)),
        ("last", n(after.last)),
        ("latest", n(after.latest.unwrap_or(0))),
        ("lines", json(&lines)),
    ])
}

fn partition(place: u64) -> String {
    format!("SEGMENT#{:012}", place / BLOCK)
}

fn sort(place: u64) -> String {
    format!("{place:020}")
}

impl EventLog {
    /// Some segments that have one of these places, the first of them first; none where nothing is left.
    pub(super) async fn segments(&self, (first, last): (u64, u64)) -> Result<Vec<Segment>, Fault> {
        self.segments_from(first, last, AT_ONCE).await
    }

    /// The segment that has this place, or the next after it, up to a last one.
    pub(super) async fn segment_at(&self, place: u64, last: u64) -> Result<Option<Segment>, Fault> {
        Ok(self.segments_from(place, last, 1).await?.pop())
    }

    async fn segments_from(&self, first: u64, last: u64, limit: usize) -> Result<Vec<Segment>, Fault> {
        let (mut from, end) = (first, last.saturating_add(MOST_EVENTS));
        while first <= last && from <= end {
            let query = Query::of(Table::Events, "PK", s(partition(from))).limit(limit);
            let found = self.dynamo.query(query.range("SK", "#r >= :from", vec![(":from", s(sort(from)))])).await?;
            if !found.is_empty() {
                let segments = found.iter().map(Segment::decode).collect::<Result<Vec<_>, _>>()?;
                return Ok(segments.into_iter().filter(|segment| segment.first <= last).collect());
            }
            from = (from / BLOCK + 1) * BLOCK;
        }
        Ok(Vec::new())
    }

    /// The same from the other end.
    pub(super) async fn segments_back(&self, (first, last): (u64, u64)) -> Result<Vec<Segment>, Fault> {
        let (mut to, mut segments) = (last, Vec::new());
        while first <= last && to >= first {
            let query = Query::of(Table::Events, "PK", s(partition(to))).descending().limit(AT_ONCE);
            let values = vec![(":first", s(sort(first))), (":to", s(sort(to)))];
            let found = self.dynamo.query(query.range("SK", "#r BETWEEN :first AND :to", values)).await?;
            segments = found.iter().map(Segment::decode).collect::<Result<Vec<_>, _>>()?;
            if !segments.is_empty() || to < BLOCK {
                break;
            }
            to = to / BLOCK * BLOCK - 1;
        }
        // The one that has the last place may end after it.
        if first <= last
            && segments.first().is_none_or(|segment| segment.last < last)
            && let Some(straddling) = self.segment_at(last, last).await?
        {
            segments.insert(0, straddling);
        }
        Ok(segments)
    }

    /// What the proof of the log takes of the events after a place, `max` at most.
    pub async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, Fault> {
        let last = self.last_place().await?;
        let (mut first, mut leaves) = (after.saturating_add(1), Vec::new());
        while first <= last && leaves.len() < max {
            let segments = self.segments((first, last)).await?;
            let Some(end) = segments.last().map(|segment| segment.last) else { break };
            let known = segments.iter().flat_map(Segment::events).filter(|known| (first..=last).contains(&known.leaf.place));
            leaves.extend(self.still_there(known.collect()).await?.into_iter().map(|known| known.leaf));
            first = end + 1;
        }
        leaves.truncate(max);
        Ok(leaves)
    }

    /// Without the heartbeats that are gone.
    pub(super) async fn still_there(&self, mut known: Vec<Known>) -> Result<Vec<Known>, Fault> {
        let doubtful: Vec<Spot> = known.iter().map(Known::spot).filter(|spot| spot.may_be_gone).collect();
        if !doubtful.is_empty() {
            let there = self.remaining(&doubtful).await?;
            known.retain(|known| known.leaf.kind.is_chained() || there.contains(&known.leaf.place));
        }
        Ok(known)
    }
}
