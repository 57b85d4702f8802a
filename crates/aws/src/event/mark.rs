//! Counters and cursors of the log in the table of marks: how far places were given, how far events were published, who publishes now.

use std::cmp::{max, min};

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use runvoy_model::time::UnixMs;

use crate::dynamo::{Change, Dynamo};
use crate::fault::Fault;
use crate::item::{Item, Read, item, n, s};
use crate::table::Table;

const PLACE: &str = "place";
const PUBLISHED: &str = "published";
const PUBLISHER: &str = "publisher";

/// How far places were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Placed {
    /// The last place.
    pub last: u64,
    /// The latest time of all events that have a place; the earliest there is where none has.
    pub latest: Option<i64>,
    /// How far an event was ever behind the latest one before it or placed with it: what order by place says about order by time.
    pub behind: i64,
}

impl Placed {
    /// The same after more events with these times.
    pub fn after(self, times: impl Iterator<Item = UnixMs> + Clone) -> Self {
        let count = times.clone().count() as u64;
        let latest = times.clone().map(|at| at.0).fold(self.latest, |latest, at| Some(latest.map_or(at, |latest| max(latest, at))));
        let earliest = times.map(|at| at.0).reduce(min);
        let behind = latest.zip(earliest).map_or(0, |(latest, earliest)| latest.saturating_sub(earliest));
        Self { last: self.last + count, latest, behind: max(self.behind, behind) }
    }

    /// The write that takes it from here to there, if nobody else did meanwhile.
    pub fn advance(self, to: Self, dynamo: &Dynamo) -> TransactWriteItem {
        let update = Update::builder()
            .table_name(dynamo.name(Table::Marks))
            .set_key(Some(key(PLACE)))
            .update_expression("SET #last = :to, #latest = :latest, #behind = :behind")
            .expression_attribute_names("#last", "last")
            .expression_attribute_names("#latest", "latest")
            .expression_attribute_names("#behind", "behind")
            .expression_attribute_values(":to", n(to.last))
            .expression_attribute_values(":latest", n(to.latest.unwrap_or(0)))
            .expression_attribute_values(":behind", n(to.behind));
        let update = if self.last == 0 {
            update.condition_expression("attribute_not_exists(#last)")
        } else {
            update.condition_expression("#last = :from").expression_attribute_values(":from", n(self.last))
        };
        TransactWriteItem::builder().update(update.build().expect("an update has a key and an expression")).build()
    }
}

fn key(mark: &str) -> Item {
    item([("mark", s(mark))])
}

/// How far places were given.
pub(super) async fn placed(dynamo: &Dynamo) -> Result<Placed, Fault> {
    let Some(item) = dynamo.get(Table::Marks, key(PLACE)).await? else { return Ok(Placed::default()) };
    Ok(Placed { last: item.number("last")?, latest: Some(item.number("latest")?), behind: item.number("behind")? })
}

/// The place up to which everything was published.
pub(super) async fn published(dynamo: &Dynamo) -> Result<u64, Fault> {
    let found = dynamo.get(Table::Marks, key(PUBLISHED)).await?;
    found.map_or(Ok(0), |item| item.number("place"))
}

/// Everything up to this place was published; somebody who got further is not put back.
pub(super) async fn publish(dynamo: &Dynamo, place: u64) -> Result<(), Fault> {
    let change = Change {
        expression: "SET #place = :place",
        condition: Some("attribute_not_exists(#place) OR #place < :place"),
        names: vec![("#place", "place")],
        values: vec![(":place", n(place))],
    };
    match dynamo.update(Table::Marks, key(PUBLISHED), change).await {
        Ok(()) | Err(Fault::Conflict) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Takes or keeps the turn to publish until a time; `false` where somebody else has it. Only a courtesy: nothing depends on it.
pub(super) async fn take_turn(dynamo: &Dynamo, who: &str, now: UnixMs, until: UnixMs) -> Result<bool, Fault> {
    let change = Change {
        expression: "SET #who = :who, #until = :until",
        condition: Some("attribute_not_exists(#who) OR #who = :who OR #until < :now"),
        names: vec![("#who", "holder"), ("#until", "until")],
        values: vec![(":who", s(who)), (":now", n(now.0)), (":until", n(until.0))],
    };
    match dynamo.update(Table::Marks, key(PUBLISHER), change).await {
        Ok(()) => Ok(true),
        Err(Fault::Conflict) => Ok(false),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_time_and_how_far_others_are_behind_it_are_known() {
        let times = |times: &[i64]| times.iter().map(|at| UnixMs(*at)).collect::<Vec<_>>();
        let first = Placed::default().after(times(&[5, 9]).into_iter());
        assert_eq!(first, Placed { last: 2, latest: Some(9), behind: 4 });
        let second = first.after(times(&[2]).into_iter());
        assert_eq!(second, Placed { last: 3, latest: Some(9), behind: 7 });
        assert_eq!(second.after(times(&[10]).into_iter()), Placed { last: 4, latest: Some(10), behind: 7 });
        assert_eq!(second.after(times(&[i64::MAX, i64::MIN]).into_iter()).behind, i64::MAX);
    }
}
