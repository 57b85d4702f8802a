//! Every entity's events in order, against the head that it keeps. Entities change meanwhile: one whose head moved during the look is looked at again.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use runvoy_model::chain::ChainHead;
use runvoy_model::event::{Entity, EventType};
use runvoy_model::verify::{BadEvent, ChainCheck, Problem, Verdict, label};

use super::Trail;
use crate::event::row;
use crate::event::segment::Segment;
use crate::fault::Fault;
use crate::item::{Item, Read};

/// So many entities are looked at at the same time.
const AT_ONCE: usize = 8;
/// So many rows are read at once.
const ROWS: usize = 500;
/// So often an entity that changes all the time is looked at again; what is seen of it then is a true part of its chain.
const TRIES: u32 = 8;

/// What a look at one chain came to.
#[derive(Debug, Default)]
struct Found {
    /// Chained events, and those of them that the look at the whole log knows too.
    checked: u64,
    linked: u64,
    bad: Option<BadEvent>,
}

/// Checks every chain; returns how many chained events up to place `last` entities have.
pub(super) async fn check(trail: &Trail, last: u64, verdict: &mut Verdict) -> Result<u64, Fault> {
    let (mut linked, mut after) = (0, None);
    loop {
        let (page, next) = trail.heads.heads(after).await?;
        let mut heads = Vec::with_capacity(page.len());
        for head in page {
            match head {
                Ok(head) => heads.push(head),
                Err(bad) => verdict.note(bad),
            }
        }
        // What these heads count may still lie in the journal.
        trail.log.drain().await?;
        let looks = stream::iter(heads).map(|(entity, head)| async move { entity_chain(trail, &entity, head, last).await });
        let found: Vec<Found> = looks.buffer_unordered(AT_ONCE).try_collect().await?;
        for found in found {
            linked += found.linked;
            verdict.checked += found.checked;
            found.bad.into_iter().for_each(|bad| verdict.note(bad));
        }
        after = next;
        if after.is_none() {
            return Ok(linked);
        }
    }
}

async fn entity_chain(trail: &Trail, entity: &Entity, mut head: ChainHead, last: u64) -> Result<Found, Fault> {
    for attempt in 1..=TRIES {
        let found = read(trail, entity, Some(head), last).await?;
        let now = trail.heads.head(entity).await?;
        match now {
            Some(now) if now != head && attempt < TRIES => {
                head = now;
                trail.log.drain().await?;
            }
            Some(now) if now != head => return Ok(Found { bad: None, ..found }),
            _ => return Ok(found),
        }
    }
    Ok(Found::default())
}

async fn read(trail: &Trail, entity: &Entity, head: Option<ChainHead>, last: u64) -> Result<Found, Fault> {
    let mut check = ChainCheck::new(entity);
    let (mut found, mut first) = (Found::default(), 1);
    loop {
        let rows = trail.log.rows_of(entity, (first, u64::MAX), false, ROWS).await?;
        for item in &rows {
            match row::decode(item) {
                Ok(stored) => {
                    let is_chained = u64::from(stored.event.kind.is_chained());
                    found.checked += is_chained;
                    found.linked += if stored.place <= last { is_chained } else { 0 };
                    check.next(&trail.key, stored.place, &stored.event);
                    first = stored.place + 1;
                }
                Err(fault) => return Ok(Found { bad: Some(unreadable(entity, item, &fault)), ..found }),
            }
        }
        if rows.len() < ROWS {
            return Ok(Found { bad: check.finish(head), ..found });
        }
    }
}

fn unreadable(entity: &Entity, item: &Item, fault: &Fault) -> BadEvent {
    BadEvent {
        place: item.number("place").unwrap_or(u64::MAX),
        entity: label(entity),
        number: 0,
        event_id: None,
        problem: Problem::Unreadable,
        message: fault.to_string(),
    }
}

/// The first event in the log whose entity is gone, or does not have it.
pub(super) async fn orphan(trail: &Trail, last: u64) -> Result<Option<BadEvent>, Fault> {
    let mut first = 1;
    while first <= last {
        let segments = trail.log.segments((first, last)).await?;
        let Some(end) = segments.last().map(|segment| segment.last) else { break };
        let known: Vec<_> = segments.iter().flat_map(Segment::events).filter(|known| known.leaf.kind != EventType::TaskHeartbeat).collect();
        let spots: Vec<_> = known.iter().map(crate::event::segment::Known::spot).collect();
        let there = trail.log.remaining(&spots).await?;
        for known in known {
            let is_kept = trail.heads.head(&known.entity).await?.is_some();
            if is_kept && there.contains(&known.leaf.place) {
                continue;
            }
            let what = if is_kept { "it is gone from among the events of its entity" } else { "the record that it belongs to is gone" };
            return Ok(Some(BadEvent {
                place: known.leaf.place,
                entity: label(&known.entity),
                number: 0,
                event_id: Some(known.leaf.id),
                problem: Problem::Removed,
                message: what.to_owned(),
            }));
        }
        first = end + 1;
    }
    Ok(None)
}
