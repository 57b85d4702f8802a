//! From times to places. Places are given in the order of writing, and clocks differ, so that events are by time only nearly in order; but how far one
//! was ever behind is known, and every segment knows the latest time up to its end, which only rises. So a period lies between two places that can be
//! searched for, and nothing of it lies outside.

use runvoy_model::time::UnixMs;

use super::EventLog;
use super::mark::Placed;
use crate::fault::Fault;

/// Within so few places a search costs more than it saves.
const FEW: u64 = 256;

impl EventLog {
    /// The first and last place where events of a period can be.
    pub(super) async fn period(&self, placed: Placed, from: Option<UnixMs>, to: Option<UnixMs>) -> Result<(u64, u64), Fault> {
        let first = match from {
            Some(from) => self.first_at(from.0, placed.last).await?.0,
            None => 1,
        };
        // Whoever is at most so far behind and before `to` has no later one before it than this.
        let Some(beyond) = to.and_then(|to| to.0.checked_add(placed.behind)) else { return Ok((first, placed.last)) };
        let (_, beyond) = self.first_at(beyond, placed.last).await?;
        Ok((first, placed.last.min(beyond.saturating_sub(1))))
    }

    /// Between which places the first segment begins whose latest time is this or later: no earlier than the one, no later than the other.
    async fn first_at(&self, time: i64, last: u64) -> Result<(u64, u64), Fault> {
        let (mut low, mut high) = (1, last + 1);
        while high - low > FEW {
            let middle = low + (high - low) / 2;
            let Some(segment) = self.segment_at(middle, last).await? else { break };
            if segment.latest < time {
                low = segment.last + 1;
            } else if segment.first > low && segment.first < high {
                high = segment.first;
            } else {
                break;
            }
        }
        Ok((low, high))
    }
}
