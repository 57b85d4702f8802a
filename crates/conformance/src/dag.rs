//! Random DAGs on a real store: tasks that fail, are tried again, are killed or are added late, jobs that are resumed or cancelled, and crashes at any
//! step. After a crash the store is opened anew and nothing else is remembered but what the client was told. At the end every task stands where
//! the DAG alone says that it must, and all that is kept follows from the events, which also tell that nobody went before its parents or twice.

use std::collections::HashMap;

use runvoy_model::command::{Answer, Command, Fence, Kill, LeaseRequest, OpenJob, OpenTasks, Outcome, Reap, StageTasks};
use runvoy_model::event::EventType;
use runvoy_model::execution::Execution;
use runvoy_model::id::{JobId, LeaseId};
use runvoy_model::job::{Job, JobStatus, Node, Payload, Phase};
use runvoy_model::status::Status;
use runvoy_ports::store::ListQuery;
use serde_json::json;

use crate::chance::Chance;
use crate::foreman::digest_of;
use crate::harness::Records;
use crate::job::{Yard, job_of, new_job, new_task};
use crate::stage::{PASSING_FAILURE, ended, exit, fence_of, name, worker_of};
use crate::state::assert_follows;

/// What became of a DAG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Played {
    /// How its job ended.
    pub end: JobStatus,
    /// How often everything but the store's files was lost.
    pub crashes: usize,
    /// How many things were compared with the events.
    pub compared: u64,
}

/// Plays the DAG of a seed on a fresh store and panics, naming the seed, where it does not end as it must.
pub async fn ends_as_it_must(seed: u64, most_tasks: usize, harness: Records<'_>) -> Played {
    let mut play = Play::begin(seed, most_tasks, harness).await;
    play.run().await;
    play.check_end().await;
    let compared = assert_follows(&*harness.store(), &format!("DAG {seed}, at its end")).await;
    Played { end: play.job().await.status, crashes: play.crashes, compared }
}

/// A task of the play.
struct Part {
    parents: Vec<usize>,
    /// So often it fails before it succeeds; `None` is always.
    fails: Option<u32>,
    retries: u32,
}

/// The whole of a job as it will be, in the order in which it is submitted.
struct Shape {
    parts: Vec<Part>,
    /// Where each batch ends.
    batches: Vec<usize>,
}

impl Shape {
    fn new(chance: &mut Chance, most_tasks: usize) -> Self {
        let tasks = 1 + if chance.percent(70) { chance.below(most_tasks.min(25)) } else { chance.below(most_tasks) };
        let is_hopeless = chance.percent(40);
        let mut parts = Vec::with_capacity(tasks);
        for number in 0..tasks {
            let wanted = if chance.percent(5) { chance.below(40) } else { chance.below(4) };
            let is_near = chance.percent(70);
            let mut parents: Vec<_> = (0..wanted.min(number))
                .map(|_| if is_near { number - 1 - chance.below(number.min(8)) } else { chance.below(number) })
                .collect();
            parents.sort_unstable();
            parents.dedup();
            let fails = match chance.below(20) {
                0..3 => Some(1),
                3 => Some(2),
                4 if is_hopeless => None,
                _ => Some(0),
            };
            parts.push(Part { parents, fails, retries: u32::from(chance.percent(20)) });
        }
        let mut batches: Vec<_> = (0..chance.below(4)).map(|_| 1 + chance.below(tasks)).chain([tasks]).collect();
        batches.sort_unstable();
        batches.dedup();
        Self { parts, batches }
    }

    /// Where each task must stand when nothing can move any more, however often the job was resumed.
    fn end(&self, opened: usize) -> Vec<Phase> {
        let mut phases: Vec<Phase> = Vec::with_capacity(opened);
        for part in &self.parts[..opened] {
            let is_free = part.parents.iter().all(|parent| phases[*parent] == Phase::Completed);
            phases.push(match part.fails {
                _ if !is_free => Phase::Waiting,
                Some(_) => Phase::Completed,
                None => Phase::Failed,
            });
        }
        phases
    }
}

fn part_name(number: usize) -> String {
    format!("t{number}")
}

fn number_of(task: &str) -> usize {
    task[1..].parse().expect("a number")
}

struct Play<'h> {
    seed: u64,
    yard: Yard<'h>,
    chance: Chance,
    shape: Shape,
    id: JobId,
    /// How many batches were opened.
    opened: usize,
    failed: HashMap<usize, u32>,
    crashes: usize,
    cancels: bool,
}

impl<'h> Play<'h> {
    async fn begin(seed: u64, most_tasks: usize, harness: Records<'h>) -> Self {
        let mut chance = Chance::new(seed);
        let shape = Shape::new(&mut chance, most_tasks);
        let mut yard = Yard::new(harness);
        let id = JobId::from_bytes(yard.fresh());
        let cancels = chance.percent(12);
        let mut play = Self { seed, yard, chance, shape, id, opened: 0, failed: HashMap::new(), crashes: 0, cancels };
        play.open().await;
        play
    }

    /// The tasks of the next batch; many or some of them are written before it is opened.
    async fn batch(&mut self, begins: Option<&Job>, batch: u64) -> (Vec<Node>, Option<[u8; 32]>) {
        let from = self.opened.checked_sub(1).map_or(0, |before| self.shape.batches[before]);
        let nodes = (from..self.shape.batches[self.opened]).map(|number| {
            let part = &self.shape.parts[number];
            let parents: Vec<_> = part.parents.iter().map(|parent| part_name(*parent)).collect();
            let parents: Vec<_> = parents.iter().map(String::as_str).collect();
            let mut node = new_task(self.id, &part_name(number), &parents, batch);
            node.spec.retries = part.retries;
            node
        });
        let mut nodes: Vec<_> = nodes.collect();
        let digest = digest_of(&nodes);
        let most = self.yard.store().step_limits().tasks;
        let staged = nodes.len().saturating_sub(most).max(self.chance.below(nodes.len() + 1));
        let mut begins = begins.map(|job| Box::new(job.clone()));
        for part in nodes.drain(..staged).collect::<Vec<_>>().chunks(most) {
            let stage = StageTasks { job: self.id, begins: begins.take(), nodes: part.to_vec() };
            assert_eq!(self.yard.play(Command::StageTasks(stage)).await, Answer::Unchanged);
            self.maybe_crash(5).await;
        }
        (nodes, digest)
    }

    async fn open(&mut self) {
        let mut job = new_job(self.id, self.shape.batches[0], self.yard.now);
        job.concurrency = self.chance.percent(30).then(|| 1 + u32::try_from(self.chance.below(6)).expect("small"));
        let batch = job.opening.expect("a job opens with a batch");
        let (nodes, digest) = self.batch(Some(&job), batch).await;
        let told = Payload::Inline(told(&self.shape, 0, self.shape.batches[0]));
        job_of(self.yard.play(Command::OpenJob(Box::new(OpenJob { job, nodes, told, digest, key: None }))).await);
        self.opened = 1;
    }

    async fn add(&mut self) {
        let (from, to) = (self.shape.batches[self.opened - 1], self.shape.batches[self.opened]);
        let batch = self.chance.number();
        let (nodes, digest) = self.batch(None, batch).await;
        let (tasks, told) = (u32::try_from(to - from).expect("few"), Payload::Inline(told(&self.shape, from, to)));
        let open = OpenTasks { job: self.id, batch, tasks, nodes, told, digest, key: None };
        job_of(self.yard.play(Command::OpenTasks(open)).await);
        self.opened += 1;
    }

    async fn job(&self) -> Job {
        self.yard.job(self.id).await
    }

    /// Plays to the end.
    async fn run(&mut self) {
        loop {
            self.maybe_crash(6).await;
            let job = self.job().await;
            let is_open = job.status.is_open();
            match self.chance.below(100) {
                0..3 if is_open && job.counts.failed > 0 => self.resume().await,
                3..8 if is_open && job.opening.is_none() && self.opened < self.shape.batches.len() => self.add().await,
                8..12 if is_open && self.cancels => self.cancel().await,
                12..30 if job.attention => self.advance().await,
                _ => match self.running().await {
                    Some(execution) => self.end(&execution).await,
                    None if job.attention => self.advance().await,
                    None if !self.go_on(&job).await => return,
                    None => {}
                },
            }
        }
    }

    /// Everything is lost but the files; and the worker that lived in the same process, where it did.
    async fn maybe_crash(&mut self, percent: usize) {
        if !self.chance.percent(percent) {
            return;
        }
        self.crashes += 1;
        self.yard.reopen().await;
        if self.chance.percent(40) {
            for open in self.yard.store().open_leases().await.expect("leases") {
                let (lease, extensions) = (open.lease.id, open.lease.extensions);
                let message = "its worker was lost".into();
                let reap =
                    Reap { execution: open.execution, lease, extensions, message, log_end: 0, with_server: false, cost_micro_usd: 1 };
                self.yard.play(Command::Reap(reap)).await;
            }
        }
    }

    async fn resume(&mut self) {
        job_of(self.yard.play(Command::ResumeJob(self.id, None)).await);
    }

    async fn advance(&mut self) {
        job_of(self.yard.play(Command::AdvanceJob(self.id)).await);
    }

    /// Nothing more begins, and what has begun is killed.
    async fn cancel(&mut self) {
        job_of(self.yard.play(Command::CancelJob(self.id)).await);
        for execution in self.yard.executions_of(self.id).await {
            self.maybe_crash(1).await;
            self.yard.play(Command::Kill(Kill { execution, force: true })).await;
        }
    }

    /// Some execution that runs, having begun what can be.
    async fn running(&mut self) -> Option<Execution> {
        let statuses = vec![Status::Running, Status::Terminating];
        let query = ListQuery { statuses, job: Some(self.id), limit: 1_000, ..ListQuery::default() };
        let mut running = self.yard.store().list(query.clone()).await.expect("a list");
        if running.is_empty() || self.chance.percent(30) {
            // Longer than any backoff.
            self.yard.now = self.yard.now.plus_ms(400_000);
            let leases = (0..1 + self.chance.below(20)).map(|_| LeaseId::from_bytes(self.yard.fresh())).collect();
            let request = LeaseRequest {
                worker: worker_of(1),
                queues: vec![name("default")],
                leases,
                ttl_ms: 30_000,
                begin: true,
                lost_after_ms: None,
            };
            self.yard.play(Command::Lease(request)).await;
            running = self.yard.store().list(query).await.expect("a list");
        }
        self.chance.pick(&running).cloned()
    }

    /// Ends a task as it is meant to.
    async fn end(&mut self, execution: &Execution) {
        let fence = fence_of(execution);
        let number = number_of(execution.spec.task.as_ref().expect("a task").task.as_str());
        if execution.status == Status::Terminating {
            return self.finish(fence, Outcome::Signalled { signal: 9, after_kill: true }).await;
        }
        let failed = self.failed.entry(number).or_default();
        if self.shape.parts[number].fails.is_some_and(|fails| *failed >= fails) {
            return self.finish(fence, exit(0)).await;
        }
        if execution.attempt <= execution.spec.retries && self.chance.percent(50) {
            return self.finish(fence, exit(PASSING_FAILURE)).await;
        }
        *failed += 1;
        if self.chance.percent(20) {
            self.yard.play(Command::Kill(Kill { execution: fence.execution, force: true })).await;
        } else {
            self.finish(fence, exit(64)).await;
        }
    }

    /// The end of an attempt, which may be told twice, the second time after a crash.
    async fn finish(&mut self, fence: Fence, outcome: Outcome) {
        let mut end = ended(fence, outcome);
        end.output = self.chance.percent(30).then(|| Payload::Inline(json!({"n": self.chance.below(9)})));
        let (step, command) = (self.yard.step(), Command::EndAttempt(end));
        let answer = self.yard.apply(&step, &command).await;
        assert!(matches!(answer, Answer::Ended(_)), "DAG {}: {answer:?}", self.seed);
        if self.chance.percent(5) {
            self.maybe_crash(50).await;
            let again = self.yard.apply(&step, &command).await;
            assert!(matches!(again, Answer::Ended(_)), "DAG {}: {again:?}", self.seed);
        }
    }

    /// Nothing moves: somebody must do something, if there is something to be done.
    async fn go_on(&mut self, job: &Job) -> bool {
        if !job.status.is_open() {
            return false;
        }
        if self.opened < self.shape.batches.len() {
            self.add().await;
            return true;
        }
        let can_succeed = |node: &Node| node.phase == Phase::Failed && self.shape.parts[number_of(node.task.as_str())].fails.is_some();
        let is_hopeful = self.yard.nodes(self.id).await.iter().any(can_succeed);
        if is_hopeful {
            self.resume().await;
        }
        is_hopeful
    }

    async fn check_end(&self) {
        let (job, nodes, seed) = (self.job().await, self.yard.nodes(self.id).await, self.seed);
        let events = self.yard.events_of(self.id).await;
        let count = |kind| events.iter().filter(|event| event.kind == kind).count();
        assert_eq!(count(EventType::JobCreated), 1, "DAG {seed}");
        assert_eq!(count(EventType::JobCompleted), usize::from(job.status == JobStatus::Completed), "DAG {seed}");
        if job.status == JobStatus::Cancelled {
            assert!(nodes.iter().all(|node| node.phase != Phase::Active), "DAG {seed}: the cancel did not reach everybody");
            return;
        }
        // A job that is done takes no more tasks.
        let expected = self.shape.end(self.shape.batches[self.opened - 1]);
        assert_eq!(nodes.iter().map(|node| node.phase).collect::<Vec<_>>(), expected, "DAG {seed}");
        let is_done = expected.iter().all(|phase| *phase == Phase::Completed);
        assert_eq!(job.status, if is_done { JobStatus::Completed } else { JobStatus::Failed }, "DAG {seed}");
    }
}

/// What an event tells of the tasks in a range.
fn told(shape: &Shape, from: usize, to: usize) -> serde_json::Value {
    let told = |number: usize| {
        let parents: Vec<_> = shape.parts[number].parents.iter().map(|parent| part_name(*parent)).collect();
        json!({"taskId": part_name(number), "dependsOn": parents})
    };
    (from..to).map(told).collect()
}
