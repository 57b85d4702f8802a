//! Who can be leased: the first of the lines asked for, by priority, then by since when they can be, then by id. What is in backoff is
//! passed over, not waited for. Everything that is named here was read as it is now; a lease step still has its own condition on it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::{StreamExt, TryStreamExt, future, stream};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::Needs;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::StoreError;

use crate::dynamo::Dynamo;
use crate::execution::Restored;
use crate::fault::Fault;
use crate::item::{Item, Read, s};
use crate::lists::Lists;
use crate::stand::{Line, ReadyPlace, after_priority, ready_place};
use crate::walk::{AT_ONCE, Part};

/// Before every sort key of a ready line.
const BEGINNING: &str = "0";
/// So many of a part are looked at when only its first counts: the index may still name some that are gone.
const GLANCE: usize = 4;
/// No more candidates than this are read at once.
const MOST_READ: usize = 200;

impl Lists {
    /// The first executions that can be leased now by who serves this, `max` in all.
    pub async fn ready(&self, queues: &[Name], serves: &[Needs], now: UnixMs, max: usize) -> Result<Vec<Execution>, StoreError> {
        let asked = Asked { queues, serves };
        let due = |execution: &Execution| asked.place(execution).filter(|(_, ready_at, _)| *ready_at <= now);
        let mut want = max;
        while want > 0 {
            let heads = self.heads(&asked, now, want).await?;
            // Where a part was cut, what comes after its last one may be before those of others.
            let end = heads.iter().filter(|head| head.is_cut).filter_map(|head| head.places.last()).min().copied();
            let is_before = |place: &ReadyPlace| end.is_none_or(|end| *place <= end);
            let mut line: BTreeSet<ReadyPlace> = heads.into_iter().flat_map(|head| head.places).collect();
            line.extend(self.recent.executions(due));
            let line: Vec<ReadyPlace> = line.into_iter().filter(is_before).collect();
            let mut found = self.first_due(&line, &due, max).await?;
            found.retain(|place, _| is_before(place));
            if found.len() >= max || end.is_none() {
                return Ok(found.into_values().take(max).collect());
            }
            // Too many of those that were named are gone.
            want = want.saturating_mul(4);
        }
        Ok(Vec::new())
    }

    /// When the next execution of these queues can be leased by who serves this.
    pub async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError> {
        let asked = Asked { queues, serves };
        let written = self.recent.executions(|execution| asked.place(execution));
        let written: Vec<ExecutionId> = written.into_iter().map(|(.., id)| id).collect();
        let in_parts: Vec<_> = self.ready_parts(&asked).into_iter().map(|part| self.next_in(part, &asked)).collect();
        let (parts, written) = future::try_join(future::try_join_all(in_parts), self.readable(&written)).await?;
        let written = written.iter().filter_map(|execution| asked.place(execution)).map(|(_, ready_at, _)| ready_at);
        Ok(parts.into_iter().flatten().chain(written).min())
    }

    /// Executions as they are now, of those that could be run.
    async fn readable(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, StoreError> {
        let restored = self.restored(ids).await?;
        Ok(restored.into_iter().filter(|restored| restored.lost.is_none()).map(|restored| restored.execution).collect())
    }

    /// The earliest of a part: the first of each priority that is truly there.
    async fn next_in(&self, part: Part, asked: &Asked<'_>) -> Result<Option<UnixMs>, StoreError> {
        let (mut earliest, mut from) = (None, BEGINNING.to_owned());
        loop {
            let named = named_from(&self.dynamo, &part, &from, GLANCE).await?;
            let Some((priority, ..)) = named.first().map(|(place, _)| *place) else { return Ok(earliest) };
            let same: Vec<ReadyPlace> = named.iter().map(|(place, _)| *place).take_while(|place| place.0 == priority).collect();
            let ids: Vec<ExecutionId> = same.iter().map(|(.., id)| *id).collect();
            let places: Vec<ReadyPlace> = self.readable(&ids).await?.iter().filter_map(|execution| asked.place(execution)).collect();
            earliest = places.iter().map(|(_, ready_at, _)| *ready_at).chain(earliest).min();
            let is_known = same.len() < named.len() || places.iter().any(|place| same.contains(place));
            from = match named.last() {
                Some(_) if is_known => after_priority(priority),
                Some((_, sort)) if named.len() >= GLANCE => behind(sort),
                _ => return Ok(earliest),
            };
        }
    }

    /// The first of every part that can be leased by now, as the index has them.
    async fn heads(&self, asked: &Asked<'_>, now: UnixMs, want: usize) -> Result<Vec<Head>, StoreError> {
        let parts = self.ready_parts(asked).into_iter();
        let heads: Vec<_> = parts.map(|part| head(self.dynamo.clone(), part, now, want)).collect();
        Ok(stream::iter(heads).buffer_unordered(AT_ONCE).try_collect().await?)
    }

    /// Reads along a line until so many are found that stand no later than where it has come to.
    async fn first_due(
        &self,
        line: &[ReadyPlace],
        due: &(impl Fn(&Execution) -> Option<ReadyPlace> + Sync),
        max: usize,
    ) -> Result<BTreeMap<ReadyPlace, Execution>, StoreError> {
        let (mut found, mut seen) = (BTreeMap::new(), HashSet::new());
        for chunk in line.chunks(max.clamp(1, MOST_READ)) {
            let ids: Vec<ExecutionId> = chunk.iter().map(|(.., id)| *id).filter(|id| seen.insert(*id)).collect();
            let mut read = Vec::with_capacity(ids.len());
            for Restored { execution, lost } in self.restored(&ids).await? {
                match lost {
                    None => read.push(execution),
                    // Nobody could run it, and whoever stands behind it must not wait for that.
                    Some(lost) if due(&execution).is_some() => self.unreadable.meet(execution.id, &lost.why),
                    Some(_) => {}
                }
            }
            found.extend(read.into_iter().filter_map(|execution| Some((due(&execution)?, execution))));
            // One that has moved back since it was named does not count before those in between.
            if chunk.last().is_some_and(|reached| found.range(..=reached).count() >= max) {
                break;
            }
        }
        Ok(found)
    }

    fn ready_parts(&self, asked: &Asked<'_>) -> Vec<Part> {
        let lines: Vec<Line> = Needs::ALL.into_iter().filter(|needs| asked.serves.contains(needs)).map(Line::Ready).collect();
        self.lines(&lines, asked.queues).into_iter().map(|(.., part)| part).collect()
    }
}

/// Of which queues, and for whom.
struct Asked<'a> {
    queues: &'a [Name],
    serves: &'a [Needs],
}

impl Asked<'_> {
    /// The place of an execution, if it is asked for.
    fn place(&self, execution: &Execution) -> Option<ReadyPlace> {
        let key = execution.ready_key().filter(|key| self.queues.contains(&key.queue) && self.serves.contains(&key.needs))?;
        Some((key.priority, key.ready_at, key.id))
    }
}

/// The beginning of a part, without what is in backoff.
struct Head {
    places: Vec<ReadyPlace>,
    /// There may be more.
    is_cut: bool,
}

async fn head(dynamo: Dynamo, part: Part, now: UnixMs, want: usize) -> Result<Head, Fault> {
    let (mut places, mut from) = (Vec::new(), BEGINNING.to_owned());
    while places.len() < want {
        let limit = want - places.len();
        let named = named_from(&dynamo, &part, &from, limit).await?;
        let due = named.iter().map(|(place, _)| *place).take_while(|(_, ready_at, _)| *ready_at <= now);
        let before = places.len();
        places.extend(due);
        from = match (named.get(places.len() - before), named.last()) {
            // The rest of this priority is in backoff.
            (Some(((priority, ..), _)), _) => after_priority(*priority),
            (None, Some((_, sort))) if named.len() >= limit => behind(sort),
            _ => return Ok(Head { places, is_cut: false }),
        };
    }
    Ok(Head { places, is_cut: true })
}

/// What a part has from a sort key on, each with its own.
async fn named_from(dynamo: &Dynamo, part: &Part, from: &str, limit: usize) -> Result<Vec<(ReadyPlace, String)>, Fault> {
    let query = part.query().range(part.range, "#r >= :from", vec![(":from", s(from))]).limit(limit);
    let items = dynamo.query(query).await?;
    let place = |item: &Item| {
        let sort = item.text(part.range)?;
        let place = ready_place(sort).ok_or_else(|| Fault::Damaged(format!("{} names {sort}, which is no place", part.hash.1)))?;
        Ok((place, sort.to_owned()))
    };
    items.iter().map(place).collect()
}

/// After a sort key, and before every other that comes after it: none begins with another.
fn behind(sort: &str) -> String {
    format!("{sort}#")
}
