//! The lines of queues: who can be leased, who waits for a lock, who is with a worker. Whatever a line names is read as it is now and
//! judged again; only where there may be very many, in counts, the index is believed wherever it agrees with what this process wrote.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{Backlog, QueueCounts};
use runvoy_ports::store::{OpenLease, StoreError};

use crate::dynamo::Query;
use crate::fault::Fault;
use crate::item::{Item, Read, s};
use crate::known;
use crate::lists::Lists;
use crate::stand::{Line, Stand, end_of};
use crate::walk::{AT_ONCE, Part, id_of};

impl Lists {
    /// Every lease that somebody holds, by id.
    pub async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
        let queues = known::queues(&self.dynamo).await?;
        let written = self.recent.executions(|execution| execution.lease.as_ref().map(|_| execution.id));
        let open = |execution: Execution| {
            let lease = execution.lease?;
            Some(OpenLease { execution: execution.id, status: execution.status, lease })
        };
        let named = self.first_of(&[Line::Active], &queues, usize::MAX).await?;
        Ok(self.states(named, written).await?.into_iter().filter_map(open).collect())
    }

    /// Executions whose wait for a lock ends at or before this time, by id.
    pub async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError> {
        let queues = known::queues(&self.dynamo).await?;
        let ended = |execution: &Execution| matches!(execution.lock, LockClaim::Waiting { until } if until <= at);
        let written = self.recent.executions(|execution| ended(execution).then_some(execution.id));
        let parts = self.lines(&[Line::Waiting], &queues);
        let queries = parts.iter().map(|(.., part)| part.query().range(part.range, "#r <= :end", vec![(":end", s(end_of(at)))])).collect();
        let mut named = Vec::new();
        for item in self.ask(queries).await?.iter().flatten() {
            named.push(id_of(item)?);
        }
        Ok(self.states(named, written).await?.iter().filter(|execution| ended(execution)).map(|execution| execution.id).collect())
    }

    /// Every queue that holds something, by name.
    pub async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError> {
        let [process, image, waiting, active] = Line::OPEN;
        self.queue_counts(&[process, image, waiting, active, Line::Dead]).await
    }

    /// The same of only these lines.
    pub async fn queue_counts(&self, lines: &[Line]) -> Result<Vec<QueueCounts>, StoreError> {
        let mut queues: BTreeMap<Name, QueueCounts> = BTreeMap::new();
        for stand in self.stands(lines).await? {
            let since = stand.waits_since();
            let counts = queues.entry(stand.queue.clone()).or_insert_with(|| QueueCounts::empty(stand.queue));
            match stand.line {
                Line::Ready(_) | Line::Waiting => {
                    counts.depth += 1;
                    counts.oldest = [counts.oldest, since].into_iter().flatten().min();
                }
                Line::Active => counts.in_flight += 1,
                Line::Dead => counts.dead += 1,
            }
        }
        Ok(queues.into_values().collect())
    }

    /// What waits, by user and queue. The index names the queue of each; who submitted it is read.
    pub async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        let [process, image, waiting, _] = Line::OPEN;
        let stands = self.stands(&[process, image, waiting]).await?;
        let by_id: HashMap<ExecutionId, Name> = stands.into_iter().filter_map(|stand| Some((stand.id()?, stand.queue))).collect();
        let mut counts: HashMap<(String, &Name), u64> = HashMap::new();
        for execution in self.states(by_id.keys().copied().collect(), Vec::new()).await? {
            if let Some(queue) = by_id.get(&execution.id).filter(|_| execution.status == Status::Pending) {
                *counts.entry((execution.created_by, queue)).or_default() += 1;
            }
        }
        Ok(counts.into_iter().map(|((user, queue), count)| Backlog { user, queue: queue.clone(), count }).collect())
    }

    /// Where everything in these lines stands. What this process wrote and the index tells otherwise is read; so is what moved from one
    /// line to another while they were looked at.
    async fn stands(&self, lines: &[Line]) -> Result<Vec<Stand>, StoreError> {
        let queues = known::queues(&self.dynamo).await?;
        let parts = self.lines(lines, &queues);
        let pages = self.ask(parts.iter().map(|(.., part)| part.query()).collect()).await?;
        let (mut stands, mut doubtful) = (HashMap::<ExecutionId, Stand>::new(), HashSet::new());
        for ((line, queue, part), items) in parts.iter().zip(pages) {
            for item in items {
                let id = id_of(&item)?;
                let stand = Stand { line: *line, queue: queue.clone(), sort: item.text(part.range)?.to_owned() };
                if stands.insert(id, stand).is_some() {
                    doubtful.insert(id);
                }
            }
        }
        let among = |stand: &Stand| lines.contains(&stand.line);
        let differs = |execution: &Execution| Stand::of(execution).filter(among).as_ref() != stands.get(&execution.id);
        doubtful.extend(self.recent.executions(|execution| differs(execution).then_some(execution.id)));
        let doubtful: Vec<ExecutionId> = doubtful.into_iter().collect();
        doubtful.iter().for_each(|id| drop(stands.remove(id)));
        let read = self.read(&doubtful).await?;
        Ok(stands.into_values().chain(read.iter().filter_map(Stand::of).filter(among)).collect())
    }

    /// Who stands first in each of these lines, so many of every part at most, in no order. An index names them.
    pub async fn first_of(&self, lines: &[Line], queues: &[Name], most: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let limit = most.saturating_add(1);
        let queries = self.lines(lines, queues).into_iter().map(|(.., part)| part.query().limit(limit)).collect();
        let pages = self.ask(queries).await?;
        Ok(pages.iter().flatten().map(id_of).collect::<Result<_, Fault>>()?)
    }

    /// What was named by an index or written just now, as it is now and without its spec, by id.
    async fn states(&self, named: Vec<ExecutionId>, written: Vec<ExecutionId>) -> Result<Vec<Execution>, StoreError> {
        let ids: Vec<ExecutionId> = named.into_iter().chain(written).collect();
        let mut found = self.read_states(&ids).await?;
        found.sort_by_key(|execution| execution.id);
        Ok(found)
    }

    /// The parts of these lines of these queues.
    pub fn lines(&self, lines: &[Line], queues: &[Name]) -> Vec<(Line, Name, Part)> {
        let mut parts = Vec::new();
        for queue in distinct(queues) {
            for line in lines {
                parts.extend(self.shards().map(|shard| (*line, queue.clone(), Part::line(line.partition(queue, shard)))));
            }
        }
        parts
    }

    /// Asks all of these at once; the answers are in the order of the questions.
    pub async fn ask(&self, queries: Vec<Query>) -> Result<Vec<Vec<Item>>, StoreError> {
        let asked: Vec<_> = queries
            .into_iter()
            .map(|query| {
                let dynamo = self.dynamo.clone();
                async move { dynamo.query(query).await }
            })
            .collect();
        Ok(stream::iter(asked).buffered(AT_ONCE).try_collect().await?)
    }
}

fn distinct(queues: &[Name]) -> impl Iterator<Item = &Name> {
    queues.iter().enumerate().filter(|(i, queue)| !queues[..*i].contains(queue)).map(|(_, queue)| queue)
}
