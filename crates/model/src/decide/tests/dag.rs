//! Random DAGs with failures, resumes, late additions, cancels and ends in any order. After every step every invariant holds, and at the end
//! every task stands where the DAG alone says that it must.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use super::job::{advance, begin_all, job, job_of, task};
use super::state::compare;
use super::world::{World, exit, fence_of};
use crate::command::{Answer, Command, Fence, Kill, OpenJob, OpenTasks, Outcome, StageTasks};
use crate::event::{Entity, EventType};
use crate::id::{ExecutionId, JobId};
use crate::job::{Counts, Job, JobStatus, Node, Payload, Phase};
use crate::status::Status;
use crate::step::Step;

/// A seed gives the same numbers for ever (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ (number >> 31)) % limit as u64).expect("below a usize")
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
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
    fn new(chance: &mut Chance) -> Self {
        let tasks = 1 + if chance.percent(70) { chance.below(25) } else { chance.below(200) };
        let hopeless = chance.percent(40);
        let mut parts = Vec::with_capacity(tasks);
        for number in 0..tasks {
            let wanted = if chance.percent(5) { chance.below(40) } else { chance.below(4) };
            let near = chance.percent(70);
            let mut parents: Vec<_> = (0..wanted.min(number))
                .map(|_| if near { number - 1 - chance.below(number.min(8)) } else { chance.below(number) })
                .collect();
            parents.sort_unstable();
            parents.dedup();
            let fails = match chance.below(20) {
                0..3 => Some(1),
                3 => Some(2),
                4 if hopeless => None,
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

struct Play {
    world: World,
    chance: Chance,
    shape: Shape,
    id: JobId,
    /// How many batches were opened.
    batches: usize,
    failed: HashMap<usize, u32>,
    steps: Vec<(Step, Command)>,
    /// What has been looked at.
    seen_events: usize,
    seen_executions: HashSet<ExecutionId>,
    released: HashSet<(String, u32)>,
    told: HashSet<u32>,
    completions: usize,
    ended: Option<JobStatus>,
    cancels: bool,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let shape = Shape::new(&mut chance);
        let mut world = World::new();
        let first = shape.batches[0];
        let mut job = job(&mut world, first);
        job.opening = Some(0);
        job.concurrency = chance.percent(30).then(|| 1 + u32::try_from(chance.below(6)).expect("small"));
        let cancels = chance.percent(8);
        let mut play = Self {
            world,
            chance,
            shape,
            id: job.id,
            batches: 0,
            failed: HashMap::new(),
            steps: Vec::new(),
            seen_events: 0,
            seen_executions: HashSet::new(),
            released: HashSet::new(),
            told: HashSet::new(),
            completions: 0,
            ended: None,
            cancels,
        };
        play.open(job);
        play
    }

    /// The tasks of the next batch, some of them written before.
    fn batch(&mut self, begins: Option<&Job>) -> Vec<Node> {
        let from = if self.batches == 0 { 0 } else { self.shape.batches[self.batches - 1] };
        let nodes = (from..self.shape.batches[self.batches]).map(|number| {
            let part = &self.shape.parts[number];
            let parents: Vec<_> = part.parents.iter().map(|parent| part_name(*parent)).collect();
            let parents: Vec<_> = parents.iter().map(String::as_str).collect();
            let mut node = task(self.id, &part_name(number), &parents, self.batches as u64);
            node.spec.retries = part.retries;
            node
        });
        let mut nodes: Vec<_> = nodes.collect();
        let staged = if nodes.len() > 100 { nodes.len() - 100 } else { self.chance.below(nodes.len() + 1) };
        let mut begins = begins.map(|job| Box::new(job.clone()));
        for part in nodes.drain(..staged).collect::<Vec<_>>().chunks(100) {
            let stage = StageTasks { job: self.id, begins: begins.take(), nodes: part.to_vec() };
            assert_eq!(self.world.play(Command::StageTasks(stage)), Answer::Unchanged);
        }
        nodes
    }

    fn open(&mut self, job: Job) {
        let nodes = self.batch(Some(&job));
        self.batches = 1;
        let told = Payload::Inline(json!([]));
        self.play(Command::OpenJob(Box::new(OpenJob { job, nodes, told, digest: None, key: None })));
    }

    fn add(&mut self) {
        let (from, to) = (self.shape.batches[self.batches - 1], self.shape.batches[self.batches]);
        let nodes = self.batch(None);
        let (batch, tasks) = (self.batches as u64, u32::try_from(to - from).expect("few"));
        self.batches += 1;
        let told = Payload::Inline(json!([]));
        self.play(Command::OpenTasks(OpenTasks { job: self.id, batch, tasks, nodes, told, digest: None, key: None }));
    }

    fn job(&self) -> &Job {
        &self.world.jobs[&self.id]
    }

    fn play(&mut self, command: Command) -> Answer {
        let step = self.world.step();
        let answer = self.world.apply(&step, &command);
        if self.world.receipts.contains_key(&step.id) {
            self.steps.push((step, command));
        }
        self.check();
        answer
    }

    /// Some task that runs.
    fn running(&mut self) -> Option<Fence> {
        self.world.now = self.world.now.plus_ms(400_000);
        begin_all(&mut self.world);
        let mut running: Vec<_> = self.world.executions.values().filter(|one| one.status == Status::Running).collect();
        running.sort_by_key(|one| one.id);
        if running.is_empty() {
            return None;
        }
        Some(fence_of(running[self.chance.below(running.len())]))
    }

    /// Ends a task as it is meant to.
    fn end(&mut self, fence: Fence) {
        let execution = self.world.get(fence.execution);
        let task = execution.spec.task.as_ref().expect("a task");
        let number: usize = task.task.as_str()[1..].parse().expect("a number");
        let may_retry = execution.attempt <= execution.spec.retries;
        let failed = self.failed.entry(number).or_default();
        if self.shape.parts[number].fails.is_some_and(|fails| *failed >= fails) {
            self.play(Command::EndAttempt(super::ended(fence, exit(0))));
            return;
        }
        if may_retry && self.chance.percent(50) {
            self.play(Command::EndAttempt(super::ended(fence, exit(69))));
            return;
        }
        *failed += 1;
        if self.chance.percent(20) {
            self.play(Command::Kill(Kill { execution: fence.execution, force: true }));
            self.play(Command::EndAttempt(super::ended(fence, Outcome::Signalled { signal: 9, after_kill: true })));
        } else {
            self.play(Command::EndAttempt(super::ended(fence, exit(64))));
        }
    }

    /// A step that was made before changes nothing.
    fn repeat(&mut self) {
        if self.steps.is_empty() {
            return;
        }
        let (step, command) = self.steps[self.chance.below(self.steps.len())].clone();
        assert_eq!(compare(&self.world).first, None, "what is kept does not follow from the events");
        let before = (self.world.events.len(), self.world.executions.len(), self.job().clone());
        self.world.apply(&step, &command);
        assert_eq!((self.world.events.len(), self.world.executions.len(), self.job().clone()), before, "a repeat of {command:?}");
    }

    /// Plays to the end.
    fn run(&mut self) {
        loop {
            let is_open = self.job().status.is_open();
            match self.chance.below(100) {
                0..4 => self.repeat(),
                4..7 if is_open && self.job().counts.failed > 0 => drop(self.play(Command::ResumeJob(self.id, None))),
                7..12 if is_open && self.job().opening.is_none() && self.batches < self.shape.batches.len() => self.add(),
                12 if is_open && self.cancels => drop(self.play(Command::CancelJob(self.id))),
                13..30 if self.job().attention => drop(self.play(Command::AdvanceJob(self.id))),
                _ => match self.running() {
                    Some(fence) => self.end(fence),
                    None if self.job().attention => drop(self.play(Command::AdvanceJob(self.id))),
                    None if !self.go_on() => return,
                    None => {}
                },
            }
        }
    }

    /// Nothing moves: somebody must do something, if there is something to be done.
    fn go_on(&mut self) -> bool {
        if !self.job().status.is_open() {
            return false;
        }
        if self.batches < self.shape.batches.len() {
            self.add();
            return true;
        }
        let can_succeed = |node: &Node| {
            let number: usize = node.task.as_str()[1..].parse().expect("a number");
            node.phase == Phase::Failed && self.shape.parts[number].fails.is_some()
        };
        let hopeful = self.world.tasks(self.id).any(can_succeed);
        if hopeful {
            job_of(self.play(Command::ResumeJob(self.id, None)));
        }
        hopeful
    }

    fn check(&mut self) {
        self.check_tasks();
        self.check_events();
        let job = &self.world.jobs[&self.id];
        if let Some(ended) = self.ended {
            assert_eq!(job.status, ended, "an end is final");
        }
        self.ended = (!job.status.is_open()).then_some(job.status);
        assert_eq!(self.completions, usize::from(job.status == JobStatus::Completed), "`Job Completed` is written once");
        for execution in self.world.executions.values() {
            if self.seen_executions.insert(execution.id) {
                let task = execution.spec.task.as_ref().expect("a task");
                assert!(self.released.insert((task.task.to_string(), task.generation)), "{} was released twice", task.task);
            }
        }
    }

    fn check_tasks(&self) {
        let job = self.job();
        let phases: HashMap<&str, Phase> = self.world.tasks(self.id).map(|node| (node.task.as_str(), node.phase)).collect();
        let mut counts = Counts::default();
        for node in self.world.tasks(self.id) {
            if node.phase == Phase::Staged && job.opening != Some(node.batch) {
                continue;
            }
            counts.total += 1;
            *match node.phase {
                Phase::Staged => &mut counts.staged,
                Phase::Waiting => &mut counts.waiting,
                Phase::Ready => &mut counts.ready,
                Phase::Active => &mut counts.active,
                Phase::Completed => &mut counts.completed,
                Phase::Failed => &mut counts.failed,
            } += 1;
            if !matches!(node.phase, Phase::Staged | Phase::Waiting) {
                let done = node.depends_on.iter().all(|parent| phases[parent.as_str()] == Phase::Completed);
                assert!(done, "{} goes before its parents", node.task);
            }
            assert!(!node.marked || job.attention || !job.status.is_open(), "the children of {} are not told", node.task);
        }
        assert_eq!(job.counts, counts);
        assert!(job.concurrency.is_none_or(|most| counts.active <= most));
        let is_full = job.concurrency == Some(counts.active);
        assert!(counts.ready == 0 || is_full || job.attention || !job.status.is_open(), "somebody is ready and nobody knows");
    }

    fn check_events(&mut self) {
        let entity = Entity::job(self.id);
        for event in self.world.events[self.seen_events..].iter().filter(|event| event.entity == entity) {
            match event.kind {
                EventType::JobCompleted => self.completions += 1,
                EventType::JobFailureDetected => {
                    let generation = self.world.jobs[&self.id].generation;
                    assert!(self.told.insert(generation), "a failure is told once for each generation");
                }
                _ => {}
            }
        }
        self.seen_events = self.world.events.len();
    }

    fn check_end(&self) {
        assert_eq!(compare(&self.world).first, None, "what is kept does not follow from the events");
        if self.job().status == JobStatus::Cancelled {
            return;
        }
        let opened = self.shape.batches[self.batches - 1];
        let expected = self.shape.end(opened);
        for (number, expected) in expected.iter().enumerate() {
            let node = self.world.task(self.id, &part_name(number)).expect("it was opened");
            assert_eq!(node.phase, *expected, "{}", node.task);
        }
        let done = expected.iter().all(|phase| *phase == Phase::Completed);
        assert_eq!(self.job().status, if done { JobStatus::Completed } else { JobStatus::Failed });
        let is_open = |edge: &(JobId, crate::name::Name, crate::name::Name)| {
            self.world.task(self.id, edge.1.as_str()).is_some_and(|parent| parent.phase == Phase::Completed)
        };
        assert!(!self.world.edges.iter().any(is_open), "whoever is done has told its children");
    }
}

fn play(seed: u64) -> JobStatus {
    let mut play = Play::new(seed);
    play.run();
    advance(&mut play.world, play.id);
    play.check();
    play.check_end();
    play.job().status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_13_every_dag_ends_as_it_must() {
        let dags = if std::env::var_os("RUNVOY_PROVE").is_some() { 10_000 } else { 300 };
        let mut ends = HashMap::new();
        for seed in 0..dags {
            let end = std::panic::catch_unwind(|| play(seed)).unwrap_or_else(|_| panic!("the DAG of seed {seed}"));
            *ends.entry(end).or_insert(0) += 1;
        }
        for end in [JobStatus::Completed, JobStatus::Failed, JobStatus::Cancelled] {
            assert!(ends.contains_key(&end), "{ends:?}");
        }
        println!("PROMISE 13 | every random DAG ends as a reference says, each task released once | {dags} DAGs of up to 200 tasks | ok");
    }
}
