//! Events of one type, through an index that may lag: it only names candidates, and the newest places are never asked of it.

use futures_util::future::try_join_all;
use runvoy_model::event::EventType;

use super::EventLog;
use super::row::Spot;
use crate::dynamo::Query;
use crate::fault::Fault;
use crate::item::{n, s};
use crate::table::Table;

/// The events of a type lie in so many parts of the index. It is part of what is stored.
const SHARDS: u64 = 8;
/// The index is trusted for places that are so far behind the last one.
pub(super) const FRESH: u64 = 2_000;

/// The part of the index for an event at a place.
pub(super) fn shard(kind: EventType, place: u64) -> String {
    partition(kind, place % SHARDS)
}

fn partition(kind: EventType, shard: u64) -> String {
    format!("{}#{shard}", kind.as_str())
}

/// Candidates in order, and up to which place there are no others; `None` where there are none up to the end.
pub(super) type Candidates = (Vec<Spot>, Option<u64>);

impl EventLog {
    /// The events of a type within these places, about `want` of them.
    pub(super) async fn of_kind(
        &self,
        kind: EventType,
        (first, last): (u64, u64),
        descending: bool,
        want: usize,
    ) -> Result<Candidates, Fault> {
        if first > last {
            return Ok((Vec::new(), None));
        }
        let shards = usize::try_from(SHARDS).expect("a small number");
        let each = want.div_ceil(shards) + 1;
        let parts = (0..SHARDS).map(|shard| async move {
            let mut query = Query::of(Table::Events, "kind_shard", s(partition(kind, shard))).index("kind-index").limit(each);
            query = query.range("place", "#r BETWEEN :first AND :last", vec![(":first", n(first)), (":last", n(last))]);
            if descending {
                query = query.descending();
            }
            let found = self.dynamo.query(query).await?;
            let spots = found.iter().map(|key| Spot::of_key(key, kind)).collect::<Result<Vec<_>, _>>()?;
            // A part that gave all that was asked for may have more behind its last one.
            let reached = spots.last().filter(|_| spots.len() >= each).map(|spot| spot.place);
            Ok::<_, Fault>((spots, reached))
        });
        let parts = try_join_all(parts).await?;
        let reached = parts.iter().filter_map(|(_, reached)| *reached);
        let reached = if descending { reached.max() } else { reached.min() };
        let mut spots: Vec<Spot> = parts.into_iter().flat_map(|(spots, _)| spots).collect();
        spots.retain(|spot| reached.is_none_or(|reached| if descending { spot.place >= reached } else { spot.place <= reached }));
        spots.sort_unstable_by_key(|spot| spot.place);
        if descending {
            spots.reverse();
        }
        Ok((spots, reached))
    }
}
