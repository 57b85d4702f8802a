//! A store small enough to be seen through: maps, and the one way to apply a step. It checks nothing itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use crate::chain::AuditKey;
use crate::change::{Change, Made};
use crate::command::{
    Answer, Command, EndAttempt, Extend, Fence, Kill, LeaseRequest, Outcome, Reap, Receipt, Refusal, Submit, SubmitKey, Worker,
};
use crate::decide::{decide, replay};
use crate::event::{Entity, Event, EventType};
use crate::execution::{Execution, LockClaim, ReadyKey};
use crate::id::{ExecutionId, JobId, LeaseId, StepId, WorkerId};
use crate::job::{Job, Node, Phase};
use crate::lock::Lock;
use crate::name::Name;
use crate::record::{Body, Kind, ONLY, Record, hash_name};
use crate::spec::{Needs, Spec};
use crate::step::{Actor, Audit, Step};
use crate::time::UnixMs;
use crate::user::User;
use crate::view::{PassOver, Standing, View, Writes};

pub const KEY: AuditKey = AuditKey::new([7; 32]);

#[derive(Default)]
pub struct World {
    pub executions: HashMap<ExecutionId, Execution>,
    pub locks: HashMap<Name, Lock>,
    pub events: Vec<Event>,
    pub jobs: HashMap<JobId, Job>,
    /// By place.
    pub nodes: BTreeMap<(JobId, u32), Node>,
    /// Parent and child.
    pub edges: BTreeSet<(JobId, Name, Name)>,
    submits: HashMap<(String, String), (Made, [u8; 32])>,
    pub records: HashMap<(Kind, String), Record>,
    pub receipts: HashMap<StepId, Receipt>,
    pub now: UnixMs,
    /// How often the line was looked at.
    pub looks: usize,
    counter: u64,
}

impl View for World {
    type Error = Infallible;

    fn execution(&mut self, id: ExecutionId) -> Result<Option<Execution>, Infallible> {
        Ok(self.executions.get(&id).cloned())
    }

    fn lock(&mut self, name: &Name) -> Result<Option<Lock>, Infallible> {
        Ok(self.locks.get(name).cloned())
    }

    fn first_waiter(&mut self, lock: &Name) -> Result<Option<ExecutionId>, Infallible> {
        Ok(self.waiters(lock).first().copied())
    }

    fn submitted(&mut self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, Infallible> {
        Ok(self.submits.get(&(user.to_owned(), key.to_owned())).cloned())
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Infallible> {
        Ok(self.jobs.get(&id).cloned())
    }

    fn node(&mut self, job: JobId, task: &str) -> Result<Option<Node>, Infallible> {
        Ok(self.task(job, task).cloned())
    }

    fn phase(&mut self, job: JobId, task: &str) -> Result<Option<Phase>, Infallible> {
        Ok(self.task(job, task).map(|node| node.phase))
    }

    fn staged(&mut self, job: JobId, batch: u64) -> Result<u32, Infallible> {
        let staged = self.tasks(job).filter(|node| Standing::Staged(batch).fits(node)).count();
        Ok(u32::try_from(staged).expect("few"))
    }

    fn open_parents(&mut self, job: JobId, task: &str) -> Result<Option<u32>, Infallible> {
        Ok(self.task(job, task).map(|node| node.open_parents))
    }

    fn nodes(&mut self, job: JobId, standing: Standing, max: usize) -> Result<Vec<Node>, Infallible> {
        Ok(self.tasks(job).filter(|node| standing.fits(node)).take(max).cloned().collect())
    }

    fn children(&mut self, job: JobId, parent: &str, max: usize) -> Result<Vec<Name>, Infallible> {
        let edges = self.edges.iter().filter(|(of, from, _)| *of == job && from.as_str() == parent);
        let mut children: Vec<_> = edges.filter_map(|(_, _, child)| self.task(job, child.as_str())).collect();
        children.sort_by_key(|node| node.place);
        Ok(children.into_iter().take(max).map(|node| node.task.clone()).collect())
    }

    fn phases(&mut self, job: JobId) -> Result<Vec<(Name, Phase)>, Infallible> {
        let joined = self.tasks(job).filter(|node| node.phase != Phase::Staged);
        Ok(joined.map(|node| (node.task.clone(), node.phase)).collect())
    }

    fn record(&mut self, kind: Kind, name: &str) -> Result<Option<Record>, Infallible> {
        Ok(self.records.get(&(kind, name.to_owned())).cloned())
    }

    fn ready(
        &mut self,
        queues: &[Name],
        serves: &[Needs],
        now: UnixMs,
        max: usize,
        pass: &PassOver,
    ) -> Result<Vec<ExecutionId>, Infallible> {
        self.looks += 1;
        let mut keys: Vec<_> = self.executions.values().filter(|one| !pass.passes(one)).filter_map(Execution::ready_key).collect();
        keys.retain(|key| queues.contains(&key.queue) && serves.contains(&key.needs) && key.ready_at <= now);
        keys.sort_by_key(ReadyKey::place);
        Ok(keys.into_iter().take(max).map(|key| key.id).collect())
    }
}

impl World {
    pub fn new() -> Self {
        Self { now: UnixMs(1_800_000_000_000), ..Self::default() }
    }

    pub fn waiters(&self, lock: &Name) -> Vec<ExecutionId> {
        let waits =
            |execution: &&Execution| matches!(execution.lock, LockClaim::Waiting { .. }) && execution.spec.lock.as_ref() == Some(lock);
        let mut waiters: Vec<_> = self.executions.values().filter(waits).map(|execution| execution.id).collect();
        waiters.sort_unstable();
        waiters
    }

    /// The tasks of a job, by place.
    pub fn tasks(&self, job: JobId) -> impl Iterator<Item = &Node> {
        self.nodes.range((job, 0)..=(job, u32::MAX)).map(|(_, node)| node)
    }

    /// One task of a job.
    pub fn task(&self, job: JobId, task: &str) -> Option<&Node> {
        self.tasks(job).find(|node| node.task.as_str() == task)
    }

    /// Sixteen bytes that nobody had before.
    pub fn fresh(&mut self) -> [u8; 16] {
        self.counter += 1;
        // Ids of one step differ only in their tail, so steps stay apart by more than the events of one.
        (u128::from(self.counter) << 32).to_be_bytes()
    }

    pub fn step(&mut self) -> Step {
        let id = StepId::from_bytes(self.fresh());
        Step {
            id,
            at: self.now,
            actor: Actor::User { email: "ann@x".into() },
            request_id: id.to_string(),
            audit: Some(Audit { action: "executions.test".into(), from: "127.0.0.1".into(), ..Audit::default() }),
            authority: None,
        }
    }

    pub fn play(&mut self, command: Command) -> Answer {
        let step = self.step();
        self.apply(&step, &command)
    }

    pub fn apply(&mut self, step: &Step, command: &Command) -> Answer {
        if let Some(receipt) = self.receipts.get(&step.id).cloned() {
            return sure(replay(self, &receipt));
        }
        let (mut writes, mut answer) = sure(decide(self, step, command));
        writes.seal(&KEY, &mut answer);
        if let Some(receipt) = writes.receipt.take() {
            self.receipts.insert(step.id, receipt);
        }
        self.write(writes);
        answer
    }

    fn write(&mut self, writes: Writes) {
        let new = writes.nodes.iter().filter(|node| !self.nodes.contains_key(&(node.job, node.place))).count();
        let rows = [writes.executions.len(), writes.locks.len(), writes.events.len(), writes.jobs.len(), writes.nodes.len(), new];
        let rows = rows.iter().sum::<usize>() + writes.edges.len() + writes.told_edges.len() + writes.lowered.len();
        assert!(rows < 500, "a step of {rows} rows holds others up");
        self.executions.extend(writes.executions.into_iter().map(|execution| (execution.id, execution)));
        self.locks.extend(writes.locks.into_iter().map(|lock| (lock.name.clone(), lock)));
        self.records.extend(writes.records.into_iter().map(|record| ((record.kind, record.name.clone()), record)));
        self.events.extend(writes.events);
        self.jobs.extend(writes.jobs.into_iter().map(|job| (job.id, job)));
        self.nodes.extend(writes.nodes.into_iter().map(|node| ((node.job, node.place), node)));
        for (job, task, open_parents) in writes.lowered {
            let place = self.task(job, task.as_str()).expect("a lowered task is there").place;
            self.nodes.get_mut(&(job, place)).expect("as found").open_parents = open_parents;
        }
        for edge in writes.edges {
            assert!(self.edges.insert(edge), "an edge is written once");
        }
        for edge in &writes.told_edges {
            assert!(self.edges.remove(edge), "an edge is told once");
        }
        for id in writes.forgotten {
            let places: Vec<_> = self.tasks(id).map(|node| (id, node.place)).take(self.limits().forgotten).collect();
            places.iter().for_each(|place| drop(self.nodes.remove(place)));
            if self.tasks(id).next().is_none() {
                self.jobs.remove(&id);
            }
        }
        self.submits.extend(writes.key.map(|(key, id)| ((key.user, key.key), (id, key.fingerprint))));
    }

    /// A change that is taken, and what is there afterwards.
    pub fn changed(&mut self, change: Change) -> Record {
        match self.play(Command::Change(change, None)) {
            Answer::Record { record, repeated: false } => *record,
            other => panic!("not changed: {other:?}"),
        }
    }

    /// A change that is refused and writes nothing.
    pub fn refused(&mut self, change: Change) -> Refusal {
        let (events, records) = (self.events.len(), self.records.clone());
        let answer = self.play(Command::Change(change, None));
        assert_eq!((self.events.len(), &self.records), (events, &records), "a refusal wrote something");
        super::refusal(answer)
    }

    /// A record that was not removed.
    pub fn live(&self, kind: Kind, name: &str) -> Option<&Record> {
        self.records.get(&(kind, name.to_owned())).filter(|record| record.body.is_some())
    }

    pub fn user(&self, email: &str) -> Option<&User> {
        self.live(Kind::User, email).and_then(Record::user)
    }

    /// Whom a key lets in now.
    pub fn opens(&self, hash: &[u8; 32]) -> Option<&User> {
        let Some(Body::Key(email)) = &self.live(Kind::Key, &hash_name(hash))?.body else { return None };
        self.user(email).filter(|user| user.revoked_at.is_none() && user.key(hash).is_some_and(|key| key.works(self.now)))
    }

    pub fn admins(&self) -> Vec<String> {
        match self.live(Kind::Admins, ONLY).and_then(|record| record.body.as_ref()) {
            Some(Body::Admins(admins)) => admins.clone(),
            _ => Vec::new(),
        }
    }

    /// The events about a record.
    pub fn events_about(&self, kind: Kind, name: &str) -> Vec<&Event> {
        let entity = Record::new(kind, name).entity();
        self.events.iter().filter(|event| Some(&event.entity) == entity.as_ref()).collect()
    }

    pub fn get(&self, id: ExecutionId) -> &Execution {
        &self.executions[&id]
    }

    pub fn events_of(&self, id: ExecutionId) -> Vec<&Event> {
        let entity = Entity::task(id);
        self.events.iter().filter(|event| event.entity == entity).collect()
    }

    pub fn kinds(&self, id: ExecutionId) -> Vec<EventType> {
        self.events_of(id).into_iter().map(|event| event.kind).filter(|kind| *kind != EventType::Audit).collect()
    }

    pub fn submit(&mut self, change: impl FnOnce(&mut Spec)) -> ExecutionId {
        match self.try_submit(change, None) {
            Answer::Submitted { execution, .. } => execution.id,
            other => panic!("not submitted: {other:?}"),
        }
    }

    pub fn try_submit(&mut self, change: impl FnOnce(&mut Spec), key: Option<SubmitKey>) -> Answer {
        let mut spec = spec();
        change(&mut spec);
        let id = ExecutionId::from_bytes(self.fresh());
        self.play(Command::Submit(Submit { id, spec, created_by: "ann@x".into(), key, lease_to: None }))
    }

    /// Submits one for somebody.
    pub fn submit_for(&mut self, user: &str, change: impl FnOnce(&mut Spec)) -> ExecutionId {
        let mut spec = spec();
        change(&mut spec);
        let id = ExecutionId::from_bytes(self.fresh());
        self.play(Command::Submit(Submit { id, spec, created_by: user.into(), key: None, lease_to: None }));
        id
    }

    /// Leases whatever comes first, without beginning it.
    pub fn lease(&mut self) -> Option<Fence> {
        self.lease_for(&worker(1), &["default"], 1).pop()
    }

    /// Leases up to so many of these queues for a worker, without beginning them.
    pub fn lease_for(&mut self, worker: &Worker, queues: &[&str], want: usize) -> Vec<Fence> {
        let leases = (0..want).map(|_| LeaseId::from_bytes(self.fresh())).collect();
        let queues = queues.iter().map(|queue| name(queue)).collect();
        let request = LeaseRequest { worker: worker.clone(), queues, leases, ttl_ms: 30_000, begin: false, lost_after_ms: None };
        match self.play(Command::Lease(request)) {
            Answer::Leased(executions) => executions.iter().map(fence_of).collect(),
            other => panic!("not a lease: {other:?}"),
        }
    }

    /// Submits one and begins its first attempt.
    pub fn running(&mut self, change: impl FnOnce(&mut Spec)) -> Fence {
        self.submit(change);
        self.begun()
    }

    /// Submits one and begins it in the step that leases it, for a worker on another machine.
    pub fn running_at_once(&mut self, change: impl FnOnce(&mut Spec)) -> Fence {
        self.submit(change);
        let leases = vec![LeaseId::from_bytes(self.fresh())];
        let worker = Worker { in_process: false, ..worker(1) };
        let request = LeaseRequest { worker, queues: vec![name("default")], leases, ttl_ms: 30_000, begin: true, lost_after_ms: None };
        match self.play(Command::Lease(request)) {
            Answer::Leased(executions) => fence_of(executions.first().expect("something to lease")),
            other => panic!("not a lease: {other:?}"),
        }
    }

    /// Leases and begins whatever comes first.
    pub fn begun(&mut self) -> Fence {
        let fence = self.lease().expect("something to lease");
        assert!(matches!(self.play(Command::Begin(fence)), Answer::Begun(_)));
        fence
    }

    pub fn end(&mut self, fence: Fence, outcome: Outcome) -> Answer {
        self.play(Command::EndAttempt(ended(fence, outcome)))
    }

    pub fn kill(&mut self, id: ExecutionId) -> Answer {
        self.play(Command::Kill(Kill { execution: id, force: false }))
    }

    pub fn extend(&mut self, fence: Fence) -> Answer {
        let extend =
            Extend { fence, ttl_ms: 30_000, process_id: Some(42), rss_bytes: None, last_output_at: None, activity: None, preparing: None };
        self.play(Command::Extend(extend))
    }

    pub fn reap(&mut self, fence: Fence) -> Answer {
        let extensions = self.get(fence.execution).lease.as_ref().map_or(0, |lease| lease.extensions);
        self.play(Command::Reap(reap_of(fence, extensions)))
    }
}

pub fn sure<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

pub fn reap_of(fence: Fence, extensions: u64) -> Reap {
    Reap {
        execution: fence.execution,
        lease: fence.lease,
        extensions,
        message: "its worker was lost".into(),
        log_end: 9,
        with_server: false,
        cost_micro_usd: 2,
    }
}

pub fn ended(fence: Fence, outcome: Outcome) -> EndAttempt {
    EndAttempt {
        fence,
        outcome,
        log_end: 7,
        duration_ms: 1_234,
        process_id: Some(42),
        cost_micro_usd: 5,
        output: None,
        said: None,
        usage: None,
        remark: None,
    }
}

pub fn fence_of(execution: &Execution) -> Fence {
    let lease = execution.lease.as_ref().expect("a leased execution");
    Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id }
}

pub fn worker(number: u8) -> Worker {
    Worker {
        id: WorkerId::from_bytes([number; 16]),
        host: format!("host-{number}"),
        runner: "process".into(),
        in_process: false,
        serves: vec![Needs::Process],
        labels: Default::default(),
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

pub fn exit(code: i32) -> Outcome {
    Outcome::Exited { code, after_kill: false }
}

pub fn spec() -> Spec {
    Spec {
        command: "true".into(),
        args: None,
        image: "local".into(),
        env: Default::default(),
        timeout_ms: None,
        lock: None,
        lock_wait_ms: None,
        queue: name("default"),
        priority: 3,
        labels: Default::default(),
        worker_labels: Default::default(),
        terminal: false,
        retries: 0,
        redeliveries: 0,
        secrets: Vec::new(),
        git: None,
        task: None,
        playbook: None,
        rpc: None,
        container: None,
    }
}
