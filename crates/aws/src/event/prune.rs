//! Forgets old heartbeats, the only events that may go one by one. Their rows go; segments keep a line, which says nothing without its row.

use futures_util::stream::{self, StreamExt};
use runvoy_model::event::EventType;
use runvoy_model::time::UnixMs;

use super::EventLog;
use super::kind::FRESH;
use super::row::Spot;
use super::segment::{Known, Segment};
use crate::fault::Fault;
use crate::table::Table;

/// So many removals are under way at once.
const AT_ONCE: usize = 8;
/// So many candidates are looked at at once.
const CANDIDATES: usize = 100;
/// Clocks differ by less: behind a heartbeat that is so much younger than the old ones none is looked for.
const SLACK_MS: i64 = 86_400_000;

impl EventLog {
    /// Forgets heartbeats before a time, `max` at most; tells how many went.
    pub async fn prune_heartbeats(&self, before: UnixMs, max: usize) -> Result<usize, Fault> {
        let mut gone = 0;
        match self.prune_into(before, max, &mut gone).await {
            // What went is told; the rest is tried again.
            Err(fault) if gone == 0 => Err(fault),
            _ => Ok(gone),
        }
    }

    async fn prune_into(&self, before: UnixMs, max: usize, gone: &mut usize) -> Result<(), Fault> {
        let last = self.last_place().await?;
        let trusted = last.saturating_sub(FRESH);
        let mut first = 1;
        while *gone < max && first <= trusted {
            let (spots, reached) = self.of_kind(EventType::TaskHeartbeat, (first, trusted), false, CANDIDATES).await?;
            let rows = self.rows(&spots).await?;
            let is_past_old = rows.iter().any(|stored| stored.event.at >= before.plus_ms(SLACK_MS));
            let old = rows.into_iter().filter(|stored| stored.event.at < before);
            let old = old.map(|stored| Spot { place: stored.place, entity: stored.event.entity, may_be_gone: true });
            self.forget(old.take(max - *gone).collect(), gone).await?;
            match reached {
                Some(reached) if !is_past_old => first = reached + 1,
                _ => break,
            }
        }
        first = trusted + 1;
        while *gone < max && first <= last {
            let segments = self.segments((first, last)).await?;
            let Some(end) = segments.last().map(|segment| segment.last) else { break };
            let known = segments.iter().flat_map(Segment::events);
            let old = known.filter(|known| known.leaf.kind == EventType::TaskHeartbeat && known.at < before && known.leaf.place >= first);
            let old = self.still_there(old.collect()).await?;
            self.forget(old.iter().map(Known::spot).take(max - *gone).collect(), gone).await?;
            first = end + 1;
        }
        Ok(())
    }

    async fn forget(&self, spots: Vec<Spot>, gone: &mut usize) -> Result<(), Fault> {
        let removals = stream::iter(spots).map(|spot| async move {
            match self.dynamo.delete(Table::Events, spot.key()).await {
                // Only the answer may have been lost.
                Err(fault) if self.dynamo.get(Table::Events, spot.key()).await?.is_some() => Err(fault),
                _ => Ok(()),
            }
        });
        let removed: Vec<Result<(), Fault>> = removals.buffer_unordered(AT_ONCE).collect().await;
        *gone += removed.iter().filter(|removed| removed.is_ok()).count();
        removed.into_iter().collect()
    }
}
