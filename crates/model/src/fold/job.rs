//! A job and its tasks: what the job's own events and those of its executions say, and whether the record and the nodes say the same. It also finds
//! what can be told from events alone: a task that was released before its parents were done or twice in a generation, an end that came twice.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::execution::ExecutionFold;
use super::mismatch::{Comparison, Mismatch, NO_DIGEST, same};
use super::task::{Course, Resume, Seat};
use crate::digest::{self, DigestsSince};
use crate::event::{Entity, Event, EventType};
use crate::execution::Execution;
use crate::hex::hex;
use crate::job::{Counts, Job, JobStatus, Node, Phase};
use crate::name::Name;

/// One job being compared. It is fed with all the job's events, then with all its executions in the order of their release, then with all its
/// nodes, and once more with all of them.
#[derive(Debug)]
pub struct JobCheck {
    job: Job,
    digests: DigestsSince,
    about: Entity,
    said: Said,
    seats: HashMap<Name, Seat>,
    counted: Counts,
    /// A task is done whose children have not all been told.
    marked: bool,
    /// The digests of its tasks by batch; nothing for a batch of which a task cannot be read.
    batches: BTreeMap<u64, Option<Vec<[u8; 32]>>>,
    found: Comparison,
}

/// What the job's own events say so far.
#[derive(Debug, Default)]
struct Said {
    is_created: bool,
    request_key: Option<String>,
    total: u32,
    generation: u32,
    resumed: Option<Resume>,
    /// Where single tasks were last made ready again.
    redriven: HashMap<String, u64>,
    /// The task whose failure was told since the last resume.
    failure: Option<String>,
    end: Option<(JobStatus, i64)>,
    cancelled_by: Option<String>,
    /// Tasks and their parents, where the events themselves tell them.
    tasks: BTreeMap<String, Vec<String>>,
    /// The digest of the job itself, and of its batches of tasks by [`digest::tasks_key`].
    body: Option<String>,
    batches: BTreeMap<String, String>,
    /// Where the event stands that created it.
    created_at: Option<u64>,
    /// The digests of what tasks run since they were changed, by task.
    revisions: HashMap<String, String>,
}

impl JobCheck {
    /// Begins with a job.
    pub fn new(job: Job, digests: DigestsSince) -> Self {
        let about = Entity::job(job.id);
        let found = Comparison { compared: 1, ..Comparison::default() };
        Self {
            job,
            digests,
            about,
            said: Said::default(),
            seats: HashMap::new(),
            counted: Counts::default(),
            marked: false,
            batches: BTreeMap::new(),
            found,
        }
    }

    /// The next of the job's own events and its place in the log.
    pub fn event(&mut self, place: u64, event: &Event) {
        if let Err(message) = self.said.next(place, event) {
            let message = format!("event {} ({}) {message}", event.number, event.kind.as_str());
            self.note(Mismatch::of(&self.about, "events", message));
        }
    }

    /// The next execution of one of its tasks, and what its events say. Whether the execution's own record says the same is another question.
    pub fn execution(&mut self, execution: &Execution, fold: &ExecutionFold) {
        let Some(task) = execution.spec.task.as_ref().filter(|task| task.job == self.job.id) else {
            return self.note(Mismatch::of(&Entity::task(execution.id), "task", format!("is not a task of job {}", self.job.id)));
        };
        if let Err(message) = self.seats.entry(task.task.clone()).or_default().release(execution.id, fold) {
            self.note(Mismatch::of(&self.about, format!("tasks.{}", task.task), message));
        }
    }

    /// The next of its nodes, in any order.
    pub fn node(&mut self, node: &Node) {
        self.found.compared += 1;
        *match node.phase {
            Phase::Staged => &mut self.counted.staged,
            Phase::Waiting => &mut self.counted.waiting,
            Phase::Ready => &mut self.counted.ready,
            Phase::Active => &mut self.counted.active,
            Phase::Completed => &mut self.counted.completed,
            Phase::Failed => &mut self.counted.failed,
        } += 1;
        self.marked |= node.marked;
        let batch = self.batches.entry(node.batch).or_insert_with(|| Some(Vec::new()));
        if node.spec.is_lost() {
            *batch = None;
        } else if let Some(batch) = batch {
            batch.push(digest::of_task(node));
        }
        let redriven = self.said.redriven.get(node.task.as_str()).copied();
        let course = Course { resumed: self.said.resumed, is_resuming: self.job.resuming, redriven };
        let compared = self.seats.entry(node.task.clone()).or_default().compare(&self.about, node, course);
        if let Err(mismatch) = compared {
            self.note(mismatch);
        }
        self.compare_revision(node);
    }

    /// What a task runs since a resume changed it is what that resume wrote.
    fn compare_revision(&mut self, node: &Node) {
        let told = self.said.revisions.get(node.task.as_str());
        let kept = digest::of_revision(node).map(|(_, digest)| digest);
        let is_lost = node.revision.is_some() && kept.is_none();
        if !is_lost && told != kept.as_ref() {
            let message = "differs from what the resume that changed the task recorded";
            self.note(Mismatch::of(&self.about, format!("tasks.{}.revision", node.task), message));
        }
    }

    /// Each of its nodes once more: whether it stands to its parents as they stand.
    pub fn parents(&mut self, node: &Node) {
        if let Err((field, message)) = self.compare_parents(node) {
            self.note(Mismatch::of(&self.about, format!("tasks.{}.{field}", node.task), message));
        }
    }

    fn compare_parents(&mut self, node: &Node) -> Result<(), (&'static str, String)> {
        if let Some(told) = self.said.tasks.remove(node.task.as_str())
            && !told.iter().map(String::as_str).eq(node.depends_on.iter().map(Name::as_str))
        {
            return Err(("depends_on", "is not what the events say".to_owned()));
        }
        let looked = usize::try_from(node.looked).unwrap_or(usize::MAX).min(node.depends_on.len());
        if node.phase != Phase::Staged && looked < node.depends_on.len() {
            return Err(("looked", format!("is {looked} of {} dependencies, although the task is in the graph", node.depends_on.len())));
        }
        let (mut not_done, mut may_tell) = (0, 0);
        let own = self.seats.get(&node.task);
        let was_released = own.is_some_and(Seat::was_released);
        for name in &node.depends_on[..looked] {
            let parent = self.seats.get(name);
            let (is_done, is_marked) = parent.map_or((false, false), Seat::is_done);
            not_done += u32::from(!is_done);
            may_tell += u32::from(is_done && is_marked);
            if was_released && !parent.zip(own).is_some_and(|(parent, own)| parent.went_before(own)) {
                return Err(("execution", format!("was released before its dependency {name} had completed")));
            }
        }
        if !(not_done..=not_done + may_tell).contains(&node.open_parents) {
            return Err(("open_parents", format!("is {}, but the events say {not_done}", node.open_parents)));
        }
        match node.phase {
            Phase::Waiting if node.open_parents == 0 => {
                Err(("phase", "is waiting, but the events say that all dependencies have completed".to_owned()))
            }
            Phase::Ready if node.open_parents > 0 => {
                Err(("phase", "is ready, but the events say that not all dependencies have completed".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Everything was seen.
    pub fn finish(mut self) -> Comparison {
        if let Err(mismatch) = self.compare_job() {
            self.note(mismatch);
        }
        self.found.unverifiable += u64::from(self.said.is_created && self.said.body.is_none());
        self.found
    }

    fn compare_job(&self) -> Result<(), Mismatch> {
        let (job, said, about) = (&self.job, &self.said, &self.about);
        if !said.is_created {
            let is_bare = self.seats.values().all(|seat| !seat.was_released());
            let staged = JobStatus::Staged.as_str();
            let kept = Some(job.status.as_str());
            return same(about, "status", kept, if is_bare { Some(staged) } else { None });
        }
        self.compare_tasks()?;
        match &said.body {
            None if self.must_have_digests() => return Err(Mismatch::of(about, "job", NO_DIGEST)),
            Some(body) if *body != digest::of_job(job) => {
                return Err(Mismatch::of(about, "job", "or its owner differs from the event that recorded it"));
            }
            _ => {}
        }
        self.compare_batches()?;
        same(about, "status", Some(job.status.as_str()), Some(self.status().as_str()))?;
        same(about, "total", Some(job.counts.total), Some(said.total))?;
        same(about, "generation", Some(job.generation), Some(said.generation))?;
        same(about, "request_key", job.request_key.as_deref(), said.request_key.as_deref())?;
        same(about, "failure_told", Some(job.failure_told), Some(said.failure.is_some()))?;
        if said.failure.is_some() {
            same(about, "failed_task", job.failed_task.as_deref(), said.failure.as_deref())?;
        }
        same(about, "completed_at", job.completed_at.map(|at| at.0), said.end.map(|(_, at)| at))?;
        same(about, "cancelled_by", job.cancelled_by.as_deref(), said.cancelled_by.as_deref())?;
        self.compare_counts()?;
        self.compare_attention()
    }

    fn must_have_digests(&self) -> bool {
        self.said.created_at.is_some_and(|place| self.digests.binds(place))
    }

    /// What its tasks run is what was written. A job that is older than digests may have batches
    /// that are not.
    fn compare_batches(&self) -> Result<(), Mismatch> {
        let mut told = self.said.batches.clone();
        for (batch, tasks) in &self.batches {
            let told = told.remove(&digest::tasks_key(*batch));
            let Some(tasks) = tasks else { continue };
            let fits = match told {
                Some(told) => told == hex(&digest::of_tasks(tasks.clone())),
                None => !self.must_have_digests(),
            };
            if !fits {
                let message = "differ from the event that recorded them: a command, an input or a name was altered";
                return Err(Mismatch::of(&self.about, "tasks", message));
            }
        }
        match told.first_key_value() {
            Some(_) => Err(Mismatch::of(&self.about, "tasks", "of a batch are gone, although the events list them")),
            None => Ok(()),
        }
    }

    /// What is left to do has its mark: without it nobody goes on.
    fn compare_attention(&self) -> Result<(), Mismatch> {
        let (job, counts) = (&self.job, self.counted);
        let has_room = job.concurrency.is_none_or(|most| counts.active < most);
        let is_unfinished = job.opening.is_some() || job.resuming || self.marked || counts.ready > 0 && has_room;
        if job.status.is_open() && is_unfinished && !job.attention {
            return Err(Mismatch::of(&self.about, "attention", "is not set, although there is work to do"));
        }
        Ok(())
    }

    fn status(&self) -> JobStatus {
        let counts = self.counted;
        match self.said.end {
            Some((end, _)) => end,
            None if self.job.attention || counts.staged + counts.ready + counts.active > 0 => JobStatus::Running,
            None => JobStatus::Failed,
        }
    }

    fn compare_counts(&self) -> Result<(), Mismatch> {
        let (kept, counted, about) = (self.job.counts, self.counted, &self.about);
        let all = counted.staged + counted.waiting + counted.ready + counted.active + counted.completed + counted.failed;
        for (field, kept, counted) in [
            ("counts.staged", kept.staged, counted.staged),
            ("counts.waiting", kept.waiting, counted.waiting),
            ("counts.ready", kept.ready, counted.ready),
            ("counts.active", kept.active, counted.active),
            ("counts.completed", kept.completed, counted.completed),
            ("counts.failed", kept.failed, counted.failed),
            ("counts.total", kept.total, all),
        ] {
            same(about, field, Some(kept), Some(counted))?;
        }
        if self.job.status == JobStatus::Completed {
            same(about, "counts.completed", Some(kept.completed), Some(kept.total))?;
        }
        Ok(())
    }

    /// Whatever has executions or was told has a node.
    fn compare_tasks(&self) -> Result<(), Mismatch> {
        let gone = self.seats.iter().filter(|(_, seat)| seat.kept.is_none()).map(|(task, _)| task.as_str()).min();
        let is_settled = self.job.opening.is_none();
        let untold = self.said.tasks.keys().next().filter(|_| is_settled).map(String::as_str);
        match gone.or(untold) {
            Some(task) => Err(Mismatch::of(&self.about, format!("tasks.{task}"), "is missing, although the events list it")),
            None => Ok(()),
        }
    }

    fn note(&mut self, mismatch: Mismatch) {
        self.found.first.get_or_insert(mismatch);
    }
}

impl Said {
    fn next(&mut self, place: u64, event: &Event) -> Result<(), &'static str> {
        let told = |name: &str| event.properties.get(name);
        let number = |name: &str| told(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        if event.kind != EventType::Audit {
            if self.end.is_some() {
                return Err("comes after the end of the job");
            }
            if self.is_created == (event.kind == EventType::JobCreated) {
                return Err("comes before the job was created, or creates it again");
            }
        }
        for (key, digest) in digest::bodies(&event.properties) {
            match key.strip_prefix(digest::REVISION) {
                Some(task) => self.revisions.insert(task.to_owned(), digest.to_owned()),
                None => self.batches.insert(key.to_owned(), digest.to_owned()),
            };
        }
        match event.kind {
            EventType::JobCreated => {
                self.body = told(digest::BODY).and_then(Value::as_str).map(str::to_owned);
                (self.is_created, self.generation, self.created_at) = (true, 1, Some(place));
                self.total = number("totalTasks").ok_or("has no number of tasks")?;
                self.request_key = told("requestId").and_then(Value::as_str).map(str::to_owned);
                self.tell(told("tasks"));
            }
            EventType::JobTasksAdded => {
                if number("previousTotalTasks") != Some(self.total) {
                    return Err("contradicts the number of tasks in earlier events");
                }
                self.total = number("totalTasksNow").ok_or("has no number of tasks")?;
                self.tell(told("newTasks"));
            }
            EventType::JobFailureDetected => {
                let task = told("failedTaskId").and_then(Value::as_str).ok_or("names no task")?;
                if self.failure.replace(task.to_owned()).is_some() {
                    return Err("is the second of its generation");
                }
            }
            EventType::JobCompleted => {
                self.end = Some((JobStatus::Completed, event.at.0));
                if number("totalTasks") != Some(self.total) {
                    return Err("contradicts the number of tasks in earlier events");
                }
            }
            EventType::Audit => return self.turn(place, event),
            _ => return Err("is not an event of a job"),
        }
        Ok(())
    }

    /// A resume or a cancel; other calls leave the job as it is.
    fn turn(&mut self, place: u64, event: &Event) -> Result<(), &'static str> {
        let Some(change) = event.properties.get("change") else { return Ok(()) };
        let generation = change.get("generation").and_then(Value::as_u64);
        let is_cancel = change.get("cancelled").and_then(Value::as_bool) == Some(true);
        if (generation.is_some() || is_cancel) && (self.end.is_some() || !self.is_created) {
            return Err("resumes or cancels a job that is not open");
        }
        if let Some(generation) = generation {
            if generation != u64::from(self.generation) + 1 {
                return Err("skips or repeats a generation");
            }
            (self.generation, self.failure) = (self.generation + 1, None);
            match change.get("redriven").and_then(Value::as_array) {
                Some(tasks) => self.redriven.extend(tasks.iter().filter_map(Value::as_str).map(|task| (task.to_owned(), place))),
                None => self.resumed = Some(Resume { place, generation: self.generation }),
            }
        }
        if is_cancel {
            self.end = Some((JobStatus::Cancelled, event.at.0));
            self.cancelled_by = event.properties.get("user").and_then(Value::as_str).map(str::to_owned);
        }
        Ok(())
    }

    /// The tasks that an event tells of, where it tells of them itself.
    fn tell(&mut self, tasks: Option<&Value>) {
        for task in tasks.and_then(Value::as_array).into_iter().flatten() {
            let Some(id) = task.get("taskId").and_then(Value::as_str) else { continue };
            let parents = task.get("dependsOn").and_then(Value::as_array).into_iter().flatten();
            let parents: Vec<_> = parents.filter_map(Value::as_str).map(str::to_owned).collect();
            // A name that is told again was taken before.
            self.tasks.entry(id.to_owned()).or_insert(parents);
        }
    }
}
