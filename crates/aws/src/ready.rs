//! Who can be leased: the first of the lines asked for, by since when they can be with a head start for each priority, then by id. What is in
//! backoff is passed over, not waited for; so is what a worker lacks the label for, or whose user has their share, at the price of a read each,
//! and what cannot be read any more. Everything that is named here was read as it is now; a lease step still has its own condition on it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::{StreamExt, TryStreamExt, future, stream};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::Needs;
use runvoy_model::time::UnixMs;
use runvoy_model::view::PassOver;
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
    /// The first executions that can be leased now by who serves this, `max` in all, without those that are passed over.
    pub async fn ready(
        &self,
        queues: &[Name],
        serves: &[Needs],
        now: UnixMs,
        max: usize,
        pass: Option<&PassOver>,
    ) -> Result<Vec<Execution>, StoreError> {
        let asked = Asked { queues, serves, pass };
        let due = |execution: &Execution| asked.place(execution).filter(|place| place.ready_at <= now);
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
            // Too many of those that were named are gone, or passed over.
            want = want.saturating_mul(4);
        }
        Ok(Vec::new())
    }

    /// When the next execution of these queues can be leased by who serves this.
    pub async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError> {
        let asked = Asked { queues, serves, pass: None };
        let written = self.recent.executions(|execution| asked.place(execution));
        let written: Vec<ExecutionId> = written.into_iter().map(|place| place.id).collect();
        let in_parts: Vec<_> = self.ready_parts(&asked).into_iter().map(|part| self.next_in(part, &asked)).collect();
        let (parts, written) = future::try_join(future::try_join_all(in_parts), self.readable(&written)).await?;
        let written = written.iter().filter_map(|execution| asked.place(execution)).map(|place| place.ready_at);
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
            let Some(priority) = named.first().map(|(place, _)| place.priority) else { return Ok(earliest) };
            let same: Vec<ReadyPlace> = named.iter().map(|(place, _)| *place).take_while(|place| place.priority == priority).collect();
            let ids: Vec<ExecutionId> = same.iter().map(|place| place.id).collect();
            let places: Vec<ReadyPlace> = self.readable(&ids).await?.iter().filter_map(|execution| asked.place(execution)).collect();
            earliest = places.iter().map(|place| place.ready_at).chain(earliest).min();
            let is_known = same.len() < named.len() || places.iter().any(|place| same.contains(place));
            from = match named.last() {
                Some(_) if is_known => after_priority(priority),
                Some((_, sort)) if named.len() >= GLANCE => behind(sort),
                _ => return Ok(earliest),
            };
        }
    }

    /// The first of every priority of every part that can be leased by now, as the index has them.
    async fn heads(&self, asked: &Asked<'_>, now: UnixMs, want: usize) -> Result<Vec<Head>, StoreError> {
        let parts = self.ready_parts(asked).into_iter();
        let heads: Vec<_> = parts.map(|part| heads_of(self.dynamo.clone(), part, now, want)).collect();
        let heads: Vec<Vec<Head>> = stream::iter(heads).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(heads.into_iter().flatten().collect())
    }

    /// Reads along a line until so many are found that stand no later than where it has come to.
    async fn first_due(
        &self,
        line: &[ReadyPlace],
        due: &(impl Fn(&Execution) -> Option<ReadyPlace> + Sync),
        max: usize,
    ) -> Result<BTreeMap<ReadyPlace, Execution>, StoreError> {
        let (mut found, mut seen) = (BTreeMap::new(), HashSet::new());
        let (mut left, mut at_once) = (line, max.clamp(1, MOST_READ));
        while !left.is_empty() {
            let (chunk, later) = left.split_at(left.len().min(at_once));
            // Where the first are passed over, so are perhaps many more.
            (left, at_once) = (later, (2 * at_once).min(MOST_READ));
            let ids: Vec<ExecutionId> = chunk.iter().map(|place| place.id).filter(|id| seen.insert(*id)).collect();
            let mut read = Vec::with_capacity(ids.len());
            for Restored { execution, lost } in self.restored(&ids).await? {
                match lost {
                    None => read.push(execution),
                    // Nobody could run it, and whoever stands behind it must not wait for that.
                    Some(lost) if due(&execution).is_some() => self.unreadable.meet(execution.id, &lost),
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
    pass: Option<&'a PassOver>,
}

impl Asked<'_> {
    /// The place of an execution, if it is asked for.
    fn place(&self, execution: &Execution) -> Option<ReadyPlace> {
        let key = execution.ready_key().filter(|key| self.queues.contains(&key.queue) && self.serves.contains(&key.needs))?;
        let is_passed = self.pass.is_some_and(|pass| pass.passes(execution));
        (!is_passed).then_some(ReadyPlace { priority: key.priority, ready_at: key.ready_at, id: key.id })
    }
}

/// The beginning of what a part has of one priority, without what is in backoff.
#[derive(Default)]
struct Head {
    places: Vec<ReadyPlace>,
    /// There may be more.
    is_cut: bool,
}

/// The beginning of each priority of a part, up to `want` of each.
async fn heads_of(dynamo: Dynamo, part: Part, now: UnixMs, want: usize) -> Result<Vec<Head>, Fault> {
    let (mut heads, mut head, mut from) = (Vec::new(), Head::default(), BEGINNING.to_owned());
    loop {
        let limit = want - head.places.len();
        let named = named_from(&dynamo, &part, &from, limit).await?;
        let Some((last, sort)) = named.last().cloned() else { break };
        for (place, _) in &named {
            if head.places.first().is_some_and(|first| first.priority != place.priority) {
                heads.push(std::mem::take(&mut head));
            }
            if place.ready_at <= now {
                head.places.push(*place);
            }
        }
        if named.len() < limit {
            break;
        }
        let is_full = head.places.len() >= want;
        // The rest of this priority is in backoff, or more than is wanted.
        if last.ready_at > now || is_full {
            head.is_cut = is_full;
            heads.push(std::mem::take(&mut head));
            from = after_priority(last.priority);
        } else {
            from = behind(&sort);
        }
    }
    heads.push(head);
    Ok(heads)
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
