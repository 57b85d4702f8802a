//! A walk over the events that are asked for, in their order, some at a time: along an entity's rows, along the segments, or along the index of
//! types where it can be trusted and the segments where it cannot.

use std::collections::VecDeque;

use runvoy_ports::store::{EventQuery, StoredEvent};

use super::EventLog;
use super::kind::FRESH;
use super::mark::{self, Placed};
use super::row::{self, Spot};
use super::segment::Segment;
use crate::fault::Fault;

/// So many events are read at once at most: what one read by keys gives.
const MOST_AT_ONCE: usize = 100;

/// Along what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Along {
    Entity,
    Kind,
    Place,
}

/// Places that are still to be walked.
#[derive(Debug)]
struct Stretch {
    along: Along,
    first: u64,
    last: u64,
}

/// A walk. It sees what had a place when it began.
pub(super) struct Walk<'l> {
    log: &'l EventLog,
    query: EventQuery,
    stretches: VecDeque<Stretch>,
    /// The last place that was given when it began.
    pub end: u64,
}

impl EventLog {
    /// Begins a walk, with everything in sight that was committed before.
    pub(super) async fn walk(&self, query: EventQuery) -> Result<Walk<'_>, Fault> {
        self.drain().await?;
        let placed = mark::placed(&self.dynamo).await?;
        let (first, last) = self.asked_places(&query, placed).await?;
        let mut stretches = VecDeque::new();
        if query.entity.is_some() {
            stretches.push_back(Stretch { along: Along::Entity, first, last });
        } else if query.kind.is_some() {
            let trusted = placed.last.saturating_sub(FRESH);
            stretches.push_back(Stretch { along: Along::Kind, first, last: last.min(trusted) });
            stretches.push_back(Stretch { along: Along::Place, first: first.max(trusted + 1), last });
        } else {
            stretches.push_back(Stretch { along: Along::Place, first, last });
        }
        if query.descending {
            stretches.make_contiguous().reverse();
        }
        Ok(Walk { log: self, query, stretches, end: placed.last })
    }

    async fn asked_places(&self, query: &EventQuery, placed: Placed) -> Result<(u64, u64), Fault> {
        let (first, last) = match query.after {
            Some(after) if query.descending => (1, placed.last.min(after.saturating_sub(1))),
            Some(after) => (after.saturating_add(1), placed.last),
            None => (1, placed.last),
        };
        // An entity has few events: all of them are looked at sooner than a period is searched for.
        if query.entity.is_some() || (query.from, query.to) == (None, None) {
            return Ok((first, last));
        }
        let (from, to) = self.period(placed, query.from, query.to).await?;
        Ok((first.max(from), last.min(to)))
    }
}

impl Walk<'_> {
    /// The next events, about as many as are wanted, maybe none; `None` at the end.
    pub async fn next(&mut self, want: usize) -> Result<Option<Vec<StoredEvent>>, Fault> {
        let want = want.clamp(8, MOST_AT_ONCE);
        while let Some(stretch) = self.stretches.pop_front() {
            if stretch.first > stretch.last {
                continue;
            }
            let (mut events, reached) = match stretch.along {
                Along::Entity => self.along_entity(&stretch, want).await?,
                Along::Kind => self.along_kind(&stretch, want).await?,
                Along::Place => self.along_places(&stretch, want).await?,
            };
            if let Some(reached) = reached {
                let rest = if self.query.descending {
                    Stretch { last: reached.saturating_sub(1), ..stretch }
                } else {
                    Stretch { first: reached + 1, ..stretch }
                };
                self.stretches.push_front(rest);
            }
            events.retain(|stored| asked_for(&self.query, stored));
            return Ok(Some(events));
        }
        Ok(None)
    }

    async fn along_entity(&self, stretch: &Stretch, want: usize) -> Result<(Vec<StoredEvent>, Option<u64>), Fault> {
        let Some(entity) = &self.query.entity else { return Ok((Vec::new(), None)) };
        let rows = self.log.rows_of(entity, (stretch.first, stretch.last), self.query.descending, want).await?;
        let events = rows.iter().map(row::decode).collect::<Result<Vec<_>, _>>()?;
        let reached = events.last().filter(|_| events.len() >= want).map(|stored| stored.place);
        Ok((events, reached))
    }

    async fn along_kind(&self, stretch: &Stretch, want: usize) -> Result<(Vec<StoredEvent>, Option<u64>), Fault> {
        let Some(kind) = self.query.kind else { return Ok((Vec::new(), None)) };
        let (spots, reached) = self.log.of_kind(kind, (stretch.first, stretch.last), self.query.descending, want).await?;
        Ok((self.log.rows(&spots).await?, reached))
    }

    async fn along_places(&self, stretch: &Stretch, want: usize) -> Result<(Vec<StoredEvent>, Option<u64>), Fault> {
        let range = (stretch.first, stretch.last);
        let segments = if self.query.descending { self.log.segments_back(range).await? } else { self.log.segments(range).await? };
        let Some(end) = segments.last() else { return Ok((Vec::new(), None)) };
        let mut reached = if self.query.descending { end.first } else { end.last };
        let mut known: Vec<_> = segments.iter().flat_map(Segment::events).collect();
        known.retain(|known| {
            (stretch.first..=stretch.last).contains(&known.leaf.place)
                && self.query.kind.is_none_or(|kind| known.leaf.kind == kind)
                && self.query.from.is_none_or(|from| known.at >= from)
                && self.query.to.is_none_or(|to| known.at < to)
        });
        known.sort_unstable_by_key(|known| known.leaf.place);
        if self.query.descending {
            known.reverse();
        }
        if known.len() > want {
            known.truncate(want);
            reached = known.last().map_or(reached, |known| known.leaf.place);
        }
        let spots: Vec<Spot> = known.iter().map(super::segment::Known::spot).collect();
        Ok((self.log.rows(&spots).await?, Some(reached)))
    }
}

fn asked_for(query: &EventQuery, StoredEvent { event, .. }: &StoredEvent) -> bool {
    query.entity.as_ref().is_none_or(|entity| event.entity == *entity)
        && query.kind.is_none_or(|kind| event.kind == kind)
        && query.from.is_none_or(|from| event.at >= from)
        && query.to.is_none_or(|to| event.at < to)
}
