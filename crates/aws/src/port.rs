//! The store behind its ports. Nothing is decided here.

use async_trait::async_trait;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::job::{Job, Node, Payload};
use runvoy_model::limit::StepLimits;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::job::{JobQuery, JobStore};
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use runvoy_ports::record::{IncidentMark, IncidentQuery, RecordStore, incident_counts};
use runvoy_ports::store::{
    Counts, EventPage, EventQuery, ExecutionStore, Leaf, ListQuery, LockLine, OpenLease, Retention, Sight, StoreError, StoredEvent,
};

use crate::fault::Fault;
use crate::store::DynamoStore;
use crate::sweep::{ReadySource, Waiting};
use crate::table::Table;
use crate::{execution, job, known, limit, lock, mark, node, record};

/// So many pages of the marks are looked through by one call of the pruner.
const PAGES_AT_ONCE: u32 = 8;

#[async_trait]
impl ExecutionStore for DynamoStore {
    fn step_limits(&self) -> StepLimits {
        limit::STEP
    }

    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
        self.take(&step, &command).await
    }

    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        let Some(found) = self.dynamo.get(Table::Executions, execution::key(id)).await? else { return Ok(None) };
        Ok(Some(execution::shown(found, &*self.blobs).await?.execution))
    }

    async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
        Ok(self.lists.find(digits, max).await?)
    }

    async fn made_by(&self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, StoreError> {
        Ok(mark::submitted(&self.dynamo, user, key).await?)
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
        Ok(self.lists.list(&query).await?)
    }

    async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
        Ok(self.lists.open_leases().await?)
    }

    async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError> {
        Ok(self.lists.waits_ended(at).await?)
    }

    async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError> {
        Ok(self.lists.next_ready(queues, serves).await?)
    }

    async fn locks(&self) -> Result<Vec<LockLine>, StoreError> {
        Ok(lock::held(&self.dynamo, self.lists.recent.executions(|execution| execution.spec.lock.clone())).await?)
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(self.events.events(query).await?)
    }

    async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, StoreError> {
        Ok(self.events.seen_events(query, sight).await?)
    }

    async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, StoreError> {
        Ok(self.events.leaves(after, max).await?)
    }

    async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError> {
        Ok(self.lists.queues().await?)
    }

    async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        Ok(self.lists.backlogs().await?)
    }

    async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError> {
        Ok(self.lists.dead(&query).await?)
    }

    async fn dead_count(&self, query: DeadQuery) -> Result<u64, StoreError> {
        Ok(self.lists.dead_count(&query).await?)
    }

    fn unreadable(&self, max: usize) -> Vec<(ExecutionId, String)> {
        self.lists.unreadable.take(max)
    }

    async fn prune(&self, retention: Retention) -> Result<usize, StoreError> {
        let heartbeats = self.events.prune_heartbeats(retention.heartbeats_before, retention.max_rows).await?;
        match self.prune_marks(retention.receipts_before, retention.max_rows.saturating_sub(heartbeats)).await {
            Ok(marks) => Ok(heartbeats + marks),
            // What went is told; the rest is tried again.
            Err(_) if heartbeats > 0 => Ok(heartbeats),
            Err(fault) => Err(fault.into()),
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let events = self.events.last_place().await?;
        Ok(Counts { events, ..self.lists.counts().await? })
    }
}

impl DynamoStore {
    /// Forgets receipts and keys that are old: of a few pages of the marks at a time, going on where it stopped the last time. Expiry would
    /// take them too, some days later.
    async fn prune_marks(&self, before: UnixMs, most: usize) -> Result<usize, Fault> {
        let (mut pruned, mut pages) = (0, 0);
        let mut from = self.pruned_to.lock().take();
        loop {
            let (page, next) = self.dynamo.scan(Table::Marks, from).await?;
            for found in page {
                let key = mark::key_of(&found)?;
                if pruned == most {
                    *self.pruned_to.lock() = Some(key);
                    return Ok(pruned);
                }
                if mark::is_forgettable(&found, before)? {
                    pruned += usize::from(mark::forget(&self.dynamo, key, before).await?);
                }
            }
            (from, pages) = (next, pages + 1);
            if from.is_none() || pages == PAGES_AT_ONCE {
                (*self.pruned_to.lock()).clone_from(&from);
                return Ok(pruned);
            }
        }
    }
}

#[async_trait]
impl JobStore for DynamoStore {
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(job::read(&self.dynamo, id).await?.map(|seen| seen.job))
    }

    async fn find_jobs(&self, digits: &str, max: usize) -> Result<Vec<JobId>, StoreError> {
        Ok(self.job_lists().find(digits, max).await?)
    }

    async fn jobs(&self, query: JobQuery) -> Result<Vec<Job>, StoreError> {
        Ok(self.job_lists().jobs(&query).await?)
    }

    async fn nodes(&self, job: JobId, after_place: Option<u32>, limit: usize) -> Result<Vec<Node>, StoreError> {
        Ok(node::page(&self.dynamo, &*self.blobs, job, after_place, limit).await?)
    }

    async fn active(&self, job: JobId, after_place: Option<u32>, max: usize) -> Result<Vec<(u32, ExecutionId)>, StoreError> {
        Ok(node::active(&self.dynamo, job, after_place, max).await?)
    }

    async fn node(&self, job: JobId, task: &str) -> Result<Option<Node>, StoreError> {
        Ok(node::read(&self.dynamo, &*self.blobs, job, task).await?)
    }

    async fn outputs(&self, job: JobId, tasks: &[Name]) -> Result<Vec<Option<Payload>>, StoreError> {
        Ok(node::outputs(&self.dynamo, &*self.blobs, job, tasks).await?)
    }

    async fn attention(&self, max: usize) -> Result<Vec<JobId>, StoreError> {
        Ok(self.job_lists().attention(max).await?)
    }

    async fn staged_before(&self, at: UnixMs, max: usize) -> Result<Vec<JobId>, StoreError> {
        Ok(self.job_lists().staged_before(at, max).await?)
    }
}

#[async_trait]
impl RecordStore for DynamoStore {
    async fn record(&self, kind: Kind, name: &str) -> Result<Option<Record>, StoreError> {
        let found = record::read(&self.dynamo, &*self.blobs, kind, name).await?;
        Ok(found.map(|seen| seen.record).filter(|record| record.body.is_some()))
    }

    async fn records(&self, kind: Kind) -> Result<Vec<Record>, StoreError> {
        Ok(record::all(&self.dynamo, &*self.blobs, kind).await?)
    }

    async fn incidents(&self, query: IncidentQuery) -> Result<Vec<IncidentMark>, StoreError> {
        Ok(query.marks(&record::all(&self.dynamo, &*self.blobs, Kind::Incident).await?))
    }

    async fn incident_counts(&self) -> Result<Vec<(Phase, IncidentKind, u64)>, StoreError> {
        Ok(incident_counts(&record::all(&self.dynamo, &*self.blobs, Kind::Incident).await?))
    }

    /// Other servers change the records too.
    fn authority(&self) -> Option<u64> {
        None
    }

    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError> {
        Ok(record::touch(&self.dynamo, &hash, at).await?)
    }

    async fn key_uses(&self, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, StoreError> {
        Ok(record::uses(&self.dynamo, hashes).await?)
    }
}

#[async_trait]
impl ReadySource for DynamoStore {
    async fn ready_since(&self, before: UnixMs, max: usize) -> Result<Vec<Waiting>, StoreError> {
        let queues = known::queues(&self.dynamo).await?;
        let ready = self.lists.ready(&queues, &Needs::ALL, before, max, None).await?;
        let waiting =
            |execution: Execution| Waiting { execution: execution.id, queue: execution.spec.queue.clone(), attempt: execution.attempt + 1 };
        Ok(ready.into_iter().map(waiting).collect())
    }
}
