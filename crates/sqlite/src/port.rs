//! The store behind its ports. Nothing is decided here.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::job::{Job, Node, Payload};
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::job::{JobQuery, JobStore};
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use runvoy_ports::record::{IncidentMark, IncidentQuery, RecordStore};
use runvoy_ports::store::{
    Counts, EventPage, EventQuery, ExecutionStore, Leaf, ListQuery, LockLine, OpenLease, Retention, Sight, StoreError, StoredEvent,
};

use crate::store::SqliteStore;
use crate::writer::{Done, Work};
use crate::{count, event, incident, job, lock, node, queue, ready, receipt, record, registry, search, sight};

#[async_trait]
impl ExecutionStore for SqliteStore {
    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
        match self.write(Work::Step(Box::new((step, command)))).await? {
            Done::Answer(answer) => Ok(*answer),
            other => Err(mismatch(&other)),
        }
    }

    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        let record = self.readers.peek(|conn, _| record::by_id(conn, id))?;
        Ok(record.map(|record| record.execution))
    }

    async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let digits = digits.to_owned();
        self.readers.read(move |conn, _| search::find(conn, &digits, max)).await
    }

    async fn made_by(&self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, StoreError> {
        self.readers.peek(|conn, _| receipt::find_key(conn, &receipt::days(conn)?, user, key))
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
        if search::is_short(&query) {
            return self.readers.peek(|conn, _| search::list(conn, &query));
        }
        self.readers.read(move |conn, _| search::list(conn, &query)).await
    }

    async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
        self.readers.read(|conn, _| search::open_leases(conn)).await
    }

    async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError> {
        self.readers.read(move |conn, _| lock::waits_ended(conn, at)).await
    }

    async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError> {
        self.readers.peek(|conn, _| ready::next(conn, queues, serves))
    }

    async fn locks(&self) -> Result<Vec<LockLine>, StoreError> {
        self.readers.read(|conn, _| lock::held(conn)).await
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.readers.read(move |conn, _| event::page(conn, &query)).await
    }

    async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, StoreError> {
        self.readers.read(move |conn, _| sight::page(conn, &query, &sight)).await
    }

    async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, StoreError> {
        self.readers.read(move |conn, _| event::leaves(conn, after, max)).await
    }

    async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError> {
        self.readers.read(|conn, _| queue::counts(conn)).await
    }

    async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        self.readers.read(|conn, _| queue::backlogs(conn)).await
    }

    async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError> {
        self.readers.read(move |conn, _| queue::dead(conn, &query)).await
    }

    async fn dead_count(&self, query: DeadQuery) -> Result<u64, StoreError> {
        self.readers.read(move |conn, _| queue::dead_count(conn, &query)).await
    }

    async fn prune(&self, retention: Retention) -> Result<usize, StoreError> {
        match self.write(Work::Prune(retention)).await? {
            Done::Pruned(rows) => Ok(rows),
            other => Err(mismatch(&other)),
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.readers.read(count::count).await
    }
}

#[async_trait]
impl JobStore for SqliteStore {
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let found = self.readers.peek(|conn, _| job::by_id(conn, id))?;
        Ok(found.map(|placed| placed.job))
    }

    async fn find_jobs(&self, digits: &str, max: usize) -> Result<Vec<JobId>, StoreError> {
        let digits = digits.to_owned();
        self.readers.read(move |conn, _| job::find(conn, &digits, max)).await
    }

    async fn jobs(&self, query: JobQuery) -> Result<Vec<Job>, StoreError> {
        self.readers.read(move |conn, _| job::list(conn, &query)).await
    }

    async fn nodes(&self, job: JobId, after_place: Option<u32>, limit: usize) -> Result<Vec<Node>, StoreError> {
        let page = move |conn: &rusqlite::Connection, _: &std::path::Path| {
            let snapshot = conn.unchecked_transaction()?;
            let Some(found) = job::by_id(&snapshot, job)? else { return Ok(Vec::new()) };
            node::page(&snapshot, (found.seq, job), found.job.opening, after_place, limit)
        };
        self.readers.read(page).await
    }

    async fn active(&self, job: JobId, after_place: Option<u32>, max: usize) -> Result<Vec<(u32, ExecutionId)>, StoreError> {
        let page = move |conn: &rusqlite::Connection, _: &std::path::Path| {
            let snapshot = conn.unchecked_transaction()?;
            let Some(seq) = job::seq_of(&snapshot, job)? else { return Ok(Vec::new()) };
            node::active(&snapshot, seq, after_place, max)
        };
        self.readers.read(page).await
    }

    async fn node(&self, job: JobId, task: &str) -> Result<Option<Node>, StoreError> {
        let task = task.to_owned();
        // One that waits for many is large.
        let look = move |conn: &rusqlite::Connection, _: &std::path::Path| {
            let snapshot = conn.unchecked_transaction()?;
            let Some(seq) = job::seq_of(&snapshot, job)? else { return Ok(None) };
            node::by_task(&snapshot, (seq, job), &task)
        };
        self.readers.read(look).await
    }

    async fn outputs(&self, job: JobId, tasks: &[Name]) -> Result<Vec<Option<Payload>>, StoreError> {
        let tasks = tasks.to_vec();
        let look = move |conn: &rusqlite::Connection, _: &std::path::Path| {
            let snapshot = conn.unchecked_transaction()?;
            let Some(seq) = job::seq_of(&snapshot, job)? else { return Ok(vec![None; tasks.len()]) };
            tasks.iter().map(|task| node::output(&snapshot, seq, task)).collect()
        };
        self.readers.read(look).await
    }

    async fn attention(&self, max: usize) -> Result<Vec<JobId>, StoreError> {
        self.readers.read(move |conn, _| job::attention(conn, max)).await
    }

    async fn staged_before(&self, at: UnixMs, max: usize) -> Result<Vec<JobId>, StoreError> {
        self.readers.read(move |conn, _| job::staged_before(conn, at, max)).await
    }
}

#[async_trait]
impl RecordStore for SqliteStore {
    async fn record(&self, kind: Kind, name: &str) -> Result<Option<Record>, StoreError> {
        let found = self.readers.peek(|conn, _| registry::find(conn, kind, name))?;
        Ok(found.map(|(_, record)| record).filter(|record| record.body.is_some()))
    }

    async fn records(&self, kind: Kind) -> Result<Vec<Record>, StoreError> {
        self.readers.read(move |conn, _| registry::all(conn, kind)).await
    }

    async fn incidents(&self, query: IncidentQuery) -> Result<Vec<IncidentMark>, StoreError> {
        self.readers.read(move |conn, _| incident::marks(conn, query)).await
    }

    async fn incident_counts(&self) -> Result<Vec<(Phase, IncidentKind, u64)>, StoreError> {
        self.readers.read(|conn, _| incident::counts(conn)).await
    }

    fn authority(&self) -> Option<u64> {
        Some(self.authority.load(Ordering::Acquire))
    }

    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError> {
        match self.write(Work::TouchKey { hash, at }).await? {
            Done::Touched => Ok(()),
            other => Err(mismatch(&other)),
        }
    }

    async fn key_uses(&self, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, StoreError> {
        let hashes = hashes.to_vec();
        self.readers.read(move |conn, _| registry::key_uses(conn, &hashes)).await
    }
}

pub(crate) fn mismatch(done: &Done) -> StoreError {
    StoreError::Damaged(format!("a request was answered as another: {done:?}"))
}
