//! Everything that the transactional store holds, in a form that can be compared.

use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::incident::Phase;
use runvoy_model::job::{Job, JobStatus, Node};
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::time::UnixMs;
use runvoy_ports::job::{JobQuery, JobStore};
use runvoy_ports::queue::{DeadQuery, QueueCounts};
use runvoy_ports::record::{IncidentMark, IncidentQuery, RecordStore};
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery, LockLine, OpenLease, StoredEvent};

use crate::stage::name;

/// All that can be read through the port.
#[derive(Debug, PartialEq)]
pub struct Dump {
    /// The newest id first: a store without one writer cannot tell the order in which they came where their clocks differ.
    pub executions: Vec<Execution>,
    /// By name, each with its line.
    pub locks: Vec<LockLine>,
    /// By execution.
    pub open_leases: Vec<OpenLease>,
    /// Whoever waits for a lock, by execution.
    pub waits: Vec<ExecutionId>,
    /// When each queue can be leased from, by who serves which need.
    pub next_ready: Vec<(Name, Needs, Option<UnixMs>)>,
    /// What every queue holds.
    pub queues: Vec<QueueCounts>,
    /// The dead letters of each queue, the newest first.
    pub dead: Vec<ExecutionId>,
    /// In the order they were written, after the place that was asked for.
    pub events: Vec<StoredEvent>,
    /// Waiting, and leased or running.
    pub open: (u64, u64),
}

/// The queues that plays use.
pub(crate) const QUEUES: [&str; 2] = ["default", "other"];

impl Dump {
    /// Reads everything.
    pub async fn of(store: &dyn ExecutionStore) -> Self {
        Self::with_events_after(store, None).await
    }

    /// Reads everything but the events up to a place: what was compared once need not be read again after every step.
    pub async fn with_events_after(store: &dyn ExecutionStore, after: Option<u64>) -> Self {
        let list = ListQuery { limit: 100_000, ..ListQuery::default() };
        let mut executions = store.list(list).await.expect("a list");
        executions.sort_by_key(|execution| std::cmp::Reverse(execution.id));
        let mut locks = store.locks().await.expect("locks");
        locks.sort_by(|one, other| one.lock.name.cmp(&other.lock.name));
        let mut open_leases = store.open_leases().await.expect("leases");
        open_leases.sort_by_key(|open| open.execution);
        let mut waits = store.waits_ended(UnixMs(i64::MAX)).await.expect("waits");
        waits.sort_unstable();
        let mut next_ready = Vec::new();
        for queue in QUEUES.map(name) {
            for needs in Needs::ALL {
                let at = store.next_ready(std::slice::from_ref(&queue), &[needs]).await.expect("a time");
                next_ready.push((queue.clone(), needs, at));
            }
        }
        let (queues, mut dead) = (store.queues().await.expect("queues"), Vec::new());
        for queue in QUEUES.map(name) {
            let query = DeadQuery { queue, owner: None, oldest_first: false, after: None, until: None, limit: 100_000 };
            dead.extend(store.dead(query).await.expect("dead letters").into_iter().map(|execution| execution.id));
        }
        let events = store.events(EventQuery { after, limit: 1_000_000, ..EventQuery::default() }).await.expect("events");
        let counts = store.counts().await.expect("counts");
        Self { executions, locks, open_leases, waits, next_ready, queues, dead, events, open: (counts.pending, counts.active) }
    }

    /// Panics with the first thing that is not the same in both.
    pub fn assert_same(&self, expected: &Self, when: &str) {
        same("executions", &self.executions, &expected.executions, when);
        same("locks", &self.locks, &expected.locks, when);
        same("open leases", &self.open_leases, &expected.open_leases, when);
        same("waits for locks", &self.waits, &expected.waits, when);
        same("next ready times", &self.next_ready, &expected.next_ready, when);
        same("queues", &self.queues, &expected.queues, when);
        same("dead letters", &self.dead, &expected.dead, when);
        same("events", &self.events, &expected.events, when);
        assert_eq!(self.open, expected.open, "{when}: the counts differ");
    }
}

/// Every record that was not removed, kind by kind.
pub async fn records(store: &dyn RecordStore) -> Vec<Record> {
    let mut records = Vec::new();
    for kind in Kind::ALL {
        records.extend(store.records(kind).await.expect("records"));
    }
    records
}

/// Every incident as it is found by where it stands, and how many there are.
pub async fn standings(store: &dyn RecordStore) -> Vec<(Phase, Vec<IncidentMark>, Vec<u64>)> {
    let counts = store.incident_counts().await.expect("counts");
    let mut standings = Vec::new();
    for phase in Phase::ALL {
        let found = store.incidents(IncidentQuery { phase, kind: None, limit: usize::MAX }).await.expect("incidents");
        let counted = counts.iter().filter(|(of, _, _)| *of == phase).map(|(_, _, count)| *count).collect();
        standings.push((phase, found, counted));
    }
    standings
}

/// Panics with the first record that is not the same in both.
pub fn assert_same_records(got: &[Record], expected: &[Record], when: &str) {
    same("records", got, expected, when);
}

/// Every job, each with its tasks, the newest id first.
pub async fn jobs(store: &dyn JobStore) -> Vec<(Job, Vec<Node>)> {
    let query = JobQuery { statuses: JobStatus::ALL.to_vec(), limit: 100_000, ..JobQuery::default() };
    let mut found = Vec::new();
    let mut listed = store.jobs(query).await.expect("jobs");
    listed.sort_by_key(|job| std::cmp::Reverse(job.id));
    for job in listed {
        let nodes = nodes(store, job.id).await;
        found.push((job, nodes));
    }
    found
}

/// Every task of a job, page by page.
pub async fn nodes(store: &(impl JobStore + ?Sized), job: JobId) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    loop {
        let page = store.nodes(job, nodes.last().map(|last| last.place), 10_000).await.expect("tasks");
        if page.is_empty() {
            return nodes;
        }
        nodes.extend(page);
    }
}

/// Panics with the first job that is not the same in both.
pub fn assert_same_jobs(got: &[(Job, Vec<Node>)], expected: &[(Job, Vec<Node>)], when: &str) {
    same("jobs", got, expected, when);
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &[T], expected: &[T], when: &str) {
    for at in 0..got.len().max(expected.len()) {
        assert_eq!(got.get(at), expected.get(at), "{when}: the {what} differ at {at}");
    }
}
