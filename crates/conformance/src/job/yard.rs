//! Where the promises about jobs are played: short verbs over a store, with a clock and ids that the play itself makes.

use std::sync::Arc;

use runvoy_model::chain::ChainHead;
use runvoy_model::command::{Answer, Command, EndAttempt, LeaseRequest, OpenJob, OpenTasks, Outcome, StageTasks, SubmitKey};
use runvoy_model::event::{Entity, Event};
use runvoy_model::id::{ExecutionId, JobId, LeaseId, StepId};
use runvoy_model::job::{Counts, Job, JobStatus, Node, Payload, Phase};
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::store::EventQuery;
use serde_json::json;

use crate::foreman::digest_of;
use crate::harness::{AUDIT_KEY, Records, TransactionalStore};
use crate::stage::{BEGINNING, answered, ended, fence_of, id_bytes, name, spec, worker_of};

/// The batch that a job begins with: larger than a signed number.
pub(crate) const BATCH: u64 = u64::MAX - 1;

/// A job as somebody submits it.
pub(crate) fn new_job(id: JobId, tasks: usize, at: UnixMs) -> Job {
    Job {
        id,
        name: Some("nightly".into()),
        request_key: None,
        created_by: "ann@x".into(),
        created_by_request_id: "r1".into(),
        modified_by_request_id: String::new(),
        created_at: at,
        status: JobStatus::Running,
        completed_at: None,
        cancelled_by: None,
        concurrency: None,
        generation: 1,
        opening: Some(BATCH),
        resuming: false,
        counts: Counts { total: u32::try_from(tasks).expect("few"), ..Counts::default() },
        places: 0,
        failure_told: false,
        failed_task: None,
        attention: false,
        unburied: None,
        chain: ChainHead::default(),
        version: 0,
    }
}

/// A task as somebody submits it.
pub(crate) fn new_task(job: JobId, task: &str, depends_on: &[&str], batch: u64) -> Node {
    Node {
        job,
        task: name(task),
        place: 0,
        batch,
        name: format!("the task {task}"),
        depends_on: depends_on.iter().map(|parent| name(parent)).collect(),
        input: depends_on.is_empty().then(|| Payload::Inline(json!({"é": [1, null]}))),
        spec: spec(),
        revision: None,
        phase: Phase::Staged,
        looked: 0,
        open_parents: 0,
        marked: false,
        generation: 0,
        execution: None,
        output: None,
    }
}

pub(crate) fn job_of(answer: Answer) -> Job {
    match answer {
        Answer::Job { job, .. } => *job,
        other => panic!("no job: {other:?}"),
    }
}

pub(crate) type Tasks<'a> = &'a [(&'a str, &'a [&'a str])];

pub(crate) struct Yard<'h> {
    harness: Records<'h>,
    pub now: UnixMs,
    made: u64,
}

impl<'h> Yard<'h> {
    pub fn new(harness: Records<'h>) -> Self {
        Self { harness, now: BEGINNING, made: 0 }
    }

    pub fn store(&self) -> Arc<dyn TransactionalStore> {
        self.harness.store()
    }

    pub async fn reopen(&self) {
        self.harness.reopen().await;
    }

    pub fn fresh(&mut self) -> [u8; 16] {
        self.made += 1;
        id_bytes(BEGINNING, self.made)
    }

    pub fn step(&mut self) -> Step {
        let id = StepId::from_bytes(self.fresh());
        let audit = Some(Audit { action: "jobs.test".into(), from: "127.0.0.1".into(), ..Audit::default() });
        Step { id, at: self.now, actor: Actor::User { email: "ann@x".into() }, request_id: id.to_string(), audit, authority: None }
    }

    pub async fn play(&mut self, command: Command) -> Answer {
        let step = self.step();
        self.apply(&step, &command).await
    }

    pub async fn apply(&self, step: &Step, command: &Command) -> Answer {
        answered(self.store().apply(step.clone(), command.clone()).await)
    }

    /// The command that opens a job of these tasks.
    pub fn new_open(&mut self, tasks: Tasks<'_>) -> OpenJob {
        let job = new_job(JobId::from_bytes(self.fresh()), tasks.len(), self.now);
        let nodes = tasks.iter().map(|(task, parents)| new_task(job.id, task, parents, BATCH)).collect();
        OpenJob { job, nodes, told: Payload::Inline(json!([])), digest: None, key: None }
    }

    /// Opens a job, with what is too much for one step written before.
    pub async fn open_all(&mut self, mut open: OpenJob) -> JobId {
        open.digest = digest_of(&open.nodes);
        let most = self.store().step_limits().tasks;
        while open.nodes.len() > most {
            let rest = open.nodes.split_off(most);
            let nodes = std::mem::replace(&mut open.nodes, rest);
            let stage = StageTasks { job: open.job.id, begins: Some(Box::new(open.job.clone())), nodes };
            assert_eq!(self.play(Command::StageTasks(stage)).await, Answer::Unchanged);
        }
        let mut job = job_of(self.play(Command::OpenJob(Box::new(open))).await);
        while job.attention {
            job = job_of(self.play(Command::AdvanceJob(job.id)).await);
        }
        job.id
    }

    pub async fn open(&mut self, tasks: Tasks<'_>) -> JobId {
        let open = self.new_open(tasks);
        self.open_all(open).await
    }

    pub async fn open_keyed(&mut self, key: &str, fingerprint: u8) -> Answer {
        let mut open = self.new_open(&[("a", &[])]);
        open.key = Some(SubmitKey { user: "ann@x".into(), key: key.into(), fingerprint: [fingerprint; 32] });
        self.play(Command::OpenJob(Box::new(open))).await
    }

    pub async fn add(&mut self, job: JobId, tasks: Tasks<'_>) -> Answer {
        let batch = self.made;
        let nodes: Vec<_> = tasks.iter().map(|(task, parents)| new_task(job, task, parents, batch)).collect();
        let (tasks, told, digest) = (u32::try_from(tasks.len()).expect("few"), Payload::Inline(json!([])), digest_of(&nodes));
        self.play(Command::OpenTasks(OpenTasks { job, batch, tasks, nodes, told, digest, key: None })).await
    }

    /// Writes a job of so many tasks without opening it.
    pub async fn stage(&mut self, tasks: usize) -> Job {
        let job = new_job(JobId::from_bytes(self.fresh()), tasks, self.now);
        let names: Vec<_> = (0..tasks).map(|number| format!("t{number}")).collect();
        for part in names.chunks(self.store().step_limits().tasks) {
            let nodes = part.iter().map(|task| new_task(job.id, task, &[], BATCH)).collect();
            let stage = StageTasks { job: job.id, begins: Some(Box::new(job.clone())), nodes };
            assert_eq!(self.play(Command::StageTasks(stage)).await, Answer::Unchanged);
        }
        job
    }

    /// Leases and begins whatever can be.
    pub async fn begin_all(&mut self) {
        loop {
            let leases: Vec<_> = (0..300).map(|_| LeaseId::from_bytes(self.fresh())).collect();
            let most = leases.len().min(self.store().step_limits().leases);
            let request = LeaseRequest {
                worker: worker_of(1),
                queues: vec![name("default")],
                leases,
                ttl_ms: 30_000,
                begin: true,
                lost_after_ms: None,
            };
            match self.play(Command::Lease(request)).await {
                Answer::Leased(leased) if leased.len() < most => return,
                Answer::Leased(_) => {}
                other => panic!("nothing was leased: {other:?}"),
            }
        }
    }

    /// What ends a task that was released and begun.
    pub async fn end_of(&self, job: JobId, task: &str, outcome: Outcome) -> EndAttempt {
        let execution = self.node(job, task).await.execution.expect("it was released");
        let execution = self.store().get(execution).await.expect("a read").expect("an execution");
        ended(fence_of(&execution), outcome)
    }

    /// Ends a task that was released.
    pub async fn finish(&mut self, job: JobId, task: &str, outcome: Outcome) {
        self.begin_all().await;
        let end = self.end_of(job, task, outcome).await;
        let answer = self.play(Command::EndAttempt(end)).await;
        assert!(matches!(answer, Answer::Ended(_)), "{answer:?}");
    }

    pub async fn job(&self, id: JobId) -> Job {
        self.store().job(id).await.expect("a read").expect("a job")
    }

    pub async fn node(&self, job: JobId, task: &str) -> Node {
        self.store().node(job, task).await.expect("a read").expect("a task")
    }

    pub async fn nodes(&self, job: JobId) -> Vec<Node> {
        crate::dump::nodes(&*self.store(), job).await
    }

    pub async fn phases(&self, job: JobId) -> Vec<Phase> {
        self.nodes(job).await.into_iter().map(|node| node.phase).collect()
    }

    pub async fn executions_of(&self, job: JobId) -> Vec<ExecutionId> {
        let query = runvoy_ports::store::ListQuery { job: Some(job), limit: 10_000, ..Default::default() };
        self.store().list(query).await.expect("a list").into_iter().map(|execution| execution.id).collect()
    }

    pub async fn events_of(&self, job: JobId) -> Vec<Event> {
        let query = EventQuery { entity: Some(Entity::job(job)), limit: 100_000, ..EventQuery::default() };
        self.store().events(query).await.expect("events").into_iter().map(|stored| stored.event).collect()
    }

    /// Panics unless the job's events are the chain that its record names.
    pub async fn verify_chain(&self, job: JobId) {
        let mut head = ChainHead::default();
        for event in self.events_of(job).await {
            head = AUDIT_KEY.link(&head, &event.canonical());
            assert_eq!((event.number, event.mac), (head.count, head.mac), "the chain breaks at {event:?}");
        }
        assert_eq!(self.job(job).await.chain, head, "the record names another head");
    }
}
