//! How many executions there are. Days that are over are counted once and their number is kept beside the days, so that the count costs no
//! more with history; the last days are counted anew each time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_ports::store::{Counts, StoreError};

use crate::day::Day;
use crate::dynamo::{Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Item, Read, item, n, s};
use crate::known;
use crate::lists::Lists;
use crate::stand::Line;
use crate::table::Table;
use crate::walk::{AT_ONCE, Part, id_of};

/// So many of the newest days are never over: one of them can be the mistake of a clock.
const OPEN_DAYS: usize = 3;
/// So many days are remembered as written to by this process.
const WRITTEN_DAYS: usize = 4;

/// Days that are over, and how many executions they have.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    over: Mutex<BTreeMap<Day, u64>>,
    /// The last days that this process wrote to: none of them is over, however old it is.
    written: Mutex<VecDeque<Day>>,
}

impl Counted {
    /// Something is about to be written to a day: what was counted before does not hold any more.
    pub async fn reopen(&self, dynamo: &Dynamo, day: Day) -> Result<(), Fault> {
        if !self.note_written(day) {
            return Ok(());
        }
        self.over.lock().remove(&day);
        // Also where somebody else has counted it.
        let forgotten = dynamo.delete(Table::Marks, key(day)).await;
        if forgotten.is_err() {
            self.written.lock().retain(|written| *written != day);
        }
        forgotten
    }

    /// Whether that is news.
    fn note_written(&self, day: Day) -> bool {
        let mut written = self.written.lock();
        if written.contains(&day) {
            return false;
        }
        written.push_back(day);
        if written.len() > WRITTEN_DAYS {
            written.pop_front();
        }
        true
    }

    /// Those days that are over, and the others.
    fn parted(&self, days: &BTreeSet<Day>) -> (Vec<Day>, Vec<Day>) {
        let written = self.written.lock();
        let newest = days.iter().rev().nth(OPEN_DAYS - 1).copied();
        days.iter().partition(|day| newest.is_some_and(|newest| **day < newest) && !written.contains(day))
    }
}

impl Lists {
    /// How much there is of executions; the rest of the counts is nought.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let queues = self.queue_counts(&Line::OPEN).await?;
        Ok(Counts {
            pending: queues.iter().map(|counts| counts.depth).sum(),
            active: queues.iter().map(|counts| counts.in_flight).sum(),
            executions: self.executions().await?,
            events: 0,
            bytes: 0,
        })
    }

    async fn executions(&self) -> Result<u64, StoreError> {
        let days = known::days(&self.dynamo, known::ALL_DAYS).await?.days;
        let (over, open) = self.counted.parted(&days);
        let mut sum = 0;
        let unknown: Vec<Day> = {
            let known = self.counted.over.lock();
            over.into_iter().filter(|day| known.get(day).inspect(|count| sum += **count).is_none()).collect()
        };
        for (day, count) in self.kept(&unknown).await? {
            sum += count;
            self.counted.over.lock().insert(day, count);
        }
        for day in open {
            sum += self.on_day(day).await?;
        }
        Ok(sum)
    }

    /// The numbers of days that are over: as they were kept, or counted and kept now.
    async fn kept(&self, days: &[Day]) -> Result<Vec<(Day, u64)>, StoreError> {
        let mut counts = BTreeMap::new();
        for item in self.dynamo.get_all(Table::Marks, days.iter().map(|day| key(*day)).collect()).await? {
            let day = days.iter().find(|day| key(**day).get("mark") == item.get("mark"));
            counts.extend(day.map(|day| Ok::<_, Fault>((*day, item.number("count")?))).transpose()?);
        }
        for day in days.iter().filter(|day| !counts.contains_key(*day)).copied().collect::<Vec<_>>() {
            let count = self.on_day(day).await?;
            let mut kept = key(day);
            kept.insert("count".to_owned(), n(count));
            self.dynamo.put(Table::Marks, kept).await?;
            counts.insert(day, count);
        }
        Ok(counts.into_iter().collect())
    }

    /// Counts a day. Where this process has just written new ones, ids are compared, for the index may not have them yet.
    async fn on_day(&self, day: Day) -> Result<u64, StoreError> {
        let parts = self.shards().map(|shard| Part::by_id("day-index", "day_shard", format!("{day}#{shard}"))).collect::<Vec<_>>();
        let mut new: BTreeSet<ExecutionId> = self.recent.new_executions().into_iter().collect();
        new.retain(|id| Day::of_id(id.0) == day);
        let (Some(first), Some(last)) = (new.first().copied(), new.last().copied()) else {
            return Ok(self.count(parts.iter().map(Part::query).collect()).await?);
        };
        let id = |id: ExecutionId| vec![(":id", s(id.to_string()))];
        let before = parts.iter().map(|part| part.query().range(part.range, "#r < :id", id(first)));
        let after = parts.iter().map(|part| part.query().range(part.range, "#r > :id", id(last)));
        let outside = self.count(before.chain(after).collect()).await?;
        let between = parts.iter().map(|part| part.between(&first.to_string(), &last.to_string())).collect();
        for item in self.ask(between).await?.iter().flatten() {
            new.insert(id_of(item)?);
        }
        Ok(outside + new.len() as u64)
    }

    async fn count(&self, queries: Vec<Query>) -> Result<u64, Fault> {
        let counts = queries.into_iter().map(|query| {
            let dynamo = self.dynamo.clone();
            async move { dynamo.count(query).await }
        });
        let counts: Vec<_> = counts.collect();
        let counts: Vec<u64> = stream::iter(counts).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(counts.into_iter().sum())
    }
}

fn key(day: Day) -> Item {
    item([("mark", s(format!("count#{day}")))])
}
