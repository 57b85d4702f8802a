//! Dead letters of a queue, by when they were given up.

use std::collections::{BTreeMap, HashMap};

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_ports::queue::DeadQuery;
use runvoy_ports::store::StoreError;

use crate::lists::Lists;
use crate::stand::{Line, Stand, dead_sort, end_of};
use crate::walk::{Bounds, Part, Walk};

/// At least so many candidates are read at once, and at most.
const READ: std::ops::RangeInclusive<usize> = 16..=800;

impl Lists {
    /// A page of a queue's dead letters.
    pub async fn dead(&self, query: &DeadQuery) -> Result<Vec<Execution>, StoreError> {
        let (mut walk, mut found) = (self.dead_walk(query), Vec::new());
        while found.len() < query.limit {
            let room = query.limit - found.len();
            let Some(stretch) = walk.next(room.max(*READ.start())).await? else { break };
            let mut left = &stretch[..];
            while !left.is_empty() && found.len() < query.limit {
                let room = query.limit - found.len();
                let (now, later) = left.split_at(left.len().min(room.clamp(*READ.start(), *READ.end())));
                left = later;
                found.extend(self.letters(query, now).await?.into_iter().take(room));
            }
        }
        Ok(found)
    }

    /// How many dead letters there are on such a page. Where whose they are does not matter the index is believed, except in what this
    /// process knows better: there may be thousands.
    pub async fn dead_count(&self, query: &DeadQuery) -> Result<u64, StoreError> {
        let mut walk = self.dead_walk(query);
        let written = self.recent.executions(|execution| Some((execution.id, letter_sort(query, execution))));
        let written: HashMap<ExecutionId, Option<String>> = written.into_iter().collect();
        let is_sure = |(sort, id): &(String, ExecutionId)| {
            query.owner.is_none() && written.get(id).is_none_or(|written| written.as_ref() == Some(sort))
        };
        let mut count = 0;
        while count < query.limit {
            let Some(stretch) = walk.next(query.limit - count).await? else { break };
            let (sure, unsure): (Vec<_>, Vec<_>) = stretch.into_iter().partition(is_sure);
            count += sure.len() + self.letters(query, &unsure).await?.len();
        }
        Ok(count.min(query.limit) as u64)
    }

    fn dead_walk(&self, query: &DeadQuery) -> Walk {
        let parts = self.shards().map(|shard| Part::line(Line::Dead.partition(&query.queue, shard))).collect();
        let bounds = Bounds {
            low: "0".to_owned(),
            high: query.until.map_or_else(|| "~".to_owned(), end_of),
            after: query.after.map(|(since, id)| dead_sort(since, id)),
            descending: !query.oldest_first,
        };
        let written = self.recent.executions(|execution| letter_sort(query, execution).map(|sort| (sort, execution.id)));
        Walk::new(&self.dynamo, parts, bounds, written.into_iter().collect::<BTreeMap<_, _>>())
    }

    /// Those of the candidates that are truly there, in their order.
    async fn letters(&self, query: &DeadQuery, candidates: &[(String, ExecutionId)]) -> Result<Vec<Execution>, StoreError> {
        let ids: Vec<ExecutionId> = candidates.iter().map(|(_, id)| *id).collect();
        let mut read: HashMap<_, _> = self.read(&ids).await?.into_iter().map(|execution| (execution.id, execution)).collect();
        let true_one = |(sort, id): &(String, ExecutionId)| {
            let is_there = read.get(id).is_some_and(|execution| letter_sort(query, execution).as_ref() == Some(sort));
            if is_there { read.remove(id) } else { None }
        };
        Ok(candidates.iter().filter_map(true_one).collect())
    }
}

/// The place of an execution among the dead letters that are asked for; the bounds of the page are not looked at.
fn letter_sort(query: &DeadQuery, execution: &Execution) -> Option<String> {
    let owned = |owner: &String| execution.created_by == *owner || execution.owned_by.contains(owner);
    let stand = Stand::of(execution).filter(|stand| stand.line == Line::Dead && stand.queue == query.queue)?;
    query.owner.as_ref().is_none_or(owned).then_some(stand.sort)
}
