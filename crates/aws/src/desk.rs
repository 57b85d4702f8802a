//! One step at the desk: what the decision has looked at so far. A look at something that is not here yet ends the decision with [`Halt::Need`];
//! whoever runs it brings the thing, read consistently, and decides again from the start. Deciding is pure and cheap; reading is neither.
//!
//! Everything that was looked at is remembered as it was, because the commit makes sure that it still is. Things that are found by a query are
//! guarded by one item: those who wait for a lock by the lock, the tasks and edges of a job by the job. Whoever changes what such a query
//! could find also raises the guard.

use std::collections::HashMap;

use runvoy_model::change::Made;
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId, StepId};
use runvoy_model::job::{Job, Node, Phase};
use runvoy_model::limit::StepLimits;
use runvoy_model::lock::Lock;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::time::UnixMs;
use runvoy_model::view::{PassOver, Standing, View};

use crate::job::SeenJob;
use crate::limit;
use crate::lost::Lost;
use crate::node::Brief;

/// Something that a decision wants to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    Execution(ExecutionId),
    Lock(Name),
    FirstWaiter(Name),
    Submitted(String, String),
    Ready(Box<ReadyNeed>),
    Job(JobId),
    Node(JobId, String),
    Brief(JobId, String),
    Nodes(JobId, Standing, usize),
    Staged(JobId, u64),
    Children(JobId, String, usize),
    Phases(JobId),
    Record(Kind, String),
}

/// Which executions could be leased.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReadyNeed {
    pub queues: Vec<Name>,
    pub serves: Vec<Needs>,
    pub now: UnixMs,
    pub max: usize,
    pub pass: PassOver,
}

/// What was found.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    Execution(Option<Box<SeenExecution>>),
    Lock(Option<SeenLock>),
    FirstWaiter(Option<ExecutionId>),
    Submitted(Option<(Made, [u8; 32])>),
    Ready(Vec<ExecutionId>),
    Job(Option<Box<SeenJob>>),
    Node(Option<Box<Node>>),
    /// A task without what is large about it.
    Brief(Option<Brief>),
    Nodes(Vec<Node>),
    Staged(u32),
    Children(Vec<Name>),
    Phases(Vec<(Name, Phase)>),
    Record(Option<Box<SeenRecord>>),
}

impl Found {
    /// What changes with every change of a single item, or of what it guards; nothing for what a guard stands for. Zero is what is not there.
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Execution(seen) => Some(seen.as_ref().map_or(0, |seen| seen.execution.version)),
            Self::Lock(seen) => Some(seen.as_ref().map_or(0, |seen| seen.guard)),
            Self::Job(seen) => Some(seen.as_ref().map_or(0, |seen| seen.guard)),
            Self::Record(seen) => Some(seen.as_ref().map_or(0, |seen| seen.record.version)),
            Self::Submitted(seen) => Some(u64::from(seen.is_some())),
            _ => None,
        }
    }
}

/// An execution as it was.
#[derive(Debug, Clone)]
pub(crate) struct SeenExecution {
    pub execution: Execution,
    /// What of it could not be read.
    pub lost: Option<Lost>,
    /// Its place in the line for its lock.
    pub ticket: Option<String>,
    /// The step that wrote it last, as the journal calls it.
    pub step: Option<StepId>,
}

/// A lock as it was.
#[derive(Debug, Clone)]
pub(crate) struct SeenLock {
    pub lock: Lock,
    pub guard: u64,
}

/// A record as it was.
#[derive(Debug, Clone)]
pub(crate) struct SeenRecord {
    pub record: Record,
    /// When a key was last used: a hint beside the record.
    pub last_used: Option<i64>,
}

/// Why a decision did not come to an end.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Bring this and decide again.
    Need(Need),
}

/// What has been looked at.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    found: HashMap<Need, Found>,
}

impl Desk {
    pub fn has(&self, need: &Need) -> bool {
        self.found.contains_key(need)
    }

    pub fn put(&mut self, need: Need, found: Found) {
        self.found.insert(need, found);
    }

    /// Everything that was looked at.
    pub fn looked_at(&self) -> impl Iterator<Item = (&Need, &Found)> {
        self.found.iter()
    }

    /// An execution as it was seen; `None` if it was not looked at or not there.
    pub fn seen_execution(&self, id: ExecutionId) -> Option<&SeenExecution> {
        match self.found.get(&Need::Execution(id)) {
            Some(Found::Execution(seen)) => seen.as_deref(),
            _ => None,
        }
    }

    /// A lock as it was seen; the outer `None` if it was not looked at.
    pub fn seen_lock(&self, name: &Name) -> Option<Option<&SeenLock>> {
        match self.found.get(&Need::Lock(name.clone())) {
            Some(Found::Lock(seen)) => Some(seen.as_ref()),
            _ => None,
        }
    }

    /// A job as it was seen; the outer `None` if it was not looked at.
    pub fn seen_job(&self, id: JobId) -> Option<Option<&SeenJob>> {
        match self.found.get(&Need::Job(id)) {
            Some(Found::Job(seen)) => Some(seen.as_deref()),
            _ => None,
        }
    }

    /// A record as it was seen; the outer `None` if it was not looked at.
    pub fn seen_record(&self, kind: Kind, name: &str) -> Option<Option<&SeenRecord>> {
        match self.found.get(&Need::Record(kind, name.to_owned())) {
            Some(Found::Record(seen)) => Some(seen.as_deref()),
            _ => None,
        }
    }

    /// The place of a task that was looked at in any way.
    pub fn seen_place(&self, job: JobId, task: &Name) -> Option<u32> {
        let brief = || match self.found.get(&Need::Brief(job, task.as_str().to_owned())) {
            Some(Found::Brief(seen)) => seen.as_ref().map(|brief| brief.place),
            _ => None,
        };
        self.seen_node(job, task).map(|node| node.place).or_else(brief)
    }

    /// Parents of a task that is looked at, from this one on, which were not looked at yet.
    pub fn parents_from(&self, job: JobId, task: &str, most: usize) -> Vec<Name> {
        let child_of = |node: &&Node| node.depends_on.iter().any(|parent| parent.as_str() == task);
        let mut nodes = self.found.iter().filter_map(|(need, found)| match (need, found) {
            (Need::Nodes(of, ..), Found::Nodes(nodes)) if *of == job => Some(nodes),
            _ => None,
        });
        let Some(child) = nodes.find_map(|nodes| nodes.iter().find(child_of)) else { return Vec::new() };
        let from = child.depends_on.iter().skip_while(|parent| parent.as_str() != task);
        from.filter(|parent| !self.has(&Need::Brief(job, parent.as_str().to_owned()))).take(most).cloned().collect()
    }

    /// A task as it was seen, if it was there.
    pub fn seen_node(&self, job: JobId, task: &Name) -> Option<&Node> {
        match self.found.get(&Need::Node(job, task.as_str().to_owned())) {
            Some(Found::Node(seen)) => seen.as_deref(),
            _ => None,
        }
    }

    /// The steps that wrote last what was looked at: their events come before those of this one.
    pub fn steps_before(&self) -> Vec<StepId> {
        let step = |found: &Found| match found {
            Found::Execution(seen) => seen.as_ref()?.step,
            Found::Job(seen) => seen.as_ref()?.step,
            _ => None,
        };
        let mut steps: Vec<StepId> = self.found.values().filter_map(step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    fn look(&self, need: Need) -> Result<&Found, Halt> {
        self.found.get(&need).ok_or(Halt::Need(need))
    }
}

/// Takes out what a look of this kind finds.
macro_rules! found {
    ($desk:expr, $need:expr, $kind:ident) => {
        match $desk.look($need)? {
            Found::$kind(found) => found,
            other => unreachable!("a look found something of another kind: {other:?}"),
        }
    };
}

impl View for Desk {
    type Error = Halt;

    fn limits(&self) -> StepLimits {
        limit::STEP
    }

    fn execution(&mut self, id: ExecutionId) -> Result<Option<Execution>, Halt> {
        Ok(found!(self, Need::Execution(id), Execution).as_ref().map(|seen| seen.execution.clone()))
    }

    fn lock(&mut self, name: &Name) -> Result<Option<Lock>, Halt> {
        Ok(found!(self, Need::Lock(name.clone()), Lock).as_ref().map(|seen| seen.lock.clone()))
    }

    fn first_waiter(&mut self, lock: &Name) -> Result<Option<ExecutionId>, Halt> {
        Ok(*found!(self, Need::FirstWaiter(lock.clone()), FirstWaiter))
    }

    fn submitted(&mut self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, Halt> {
        Ok(found!(self, Need::Submitted(user.to_owned(), key.to_owned()), Submitted).clone())
    }

    fn ready(&mut self, queues: &[Name], serves: &[Needs], now: UnixMs, max: usize, pass: &PassOver) -> Result<Vec<ExecutionId>, Halt> {
        let need = ReadyNeed { queues: queues.to_vec(), serves: serves.to_vec(), now, max, pass: pass.clone() };
        Ok(found!(self, Need::Ready(Box::new(need)), Ready).clone())
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Halt> {
        Ok(found!(self, Need::Job(id), Job).as_ref().map(|seen| seen.job.clone()))
    }

    fn node(&mut self, job: JobId, task: &str) -> Result<Option<Node>, Halt> {
        Ok(found!(self, Need::Node(job, task.to_owned()), Node).as_deref().cloned())
    }

    fn phase(&mut self, job: JobId, task: &str) -> Result<Option<Phase>, Halt> {
        if let Some(Found::Node(node)) = self.found.get(&Need::Node(job, task.to_owned())) {
            return Ok(node.as_ref().map(|node| node.phase));
        }
        Ok(found!(self, Need::Brief(job, task.to_owned()), Brief).as_ref().map(|brief| brief.phase))
    }

    fn open_parents(&mut self, job: JobId, task: &str) -> Result<Option<u32>, Halt> {
        if let Some(Found::Node(node)) = self.found.get(&Need::Node(job, task.to_owned())) {
            return Ok(node.as_ref().map(|node| node.open_parents));
        }
        Ok(found!(self, Need::Brief(job, task.to_owned()), Brief).as_ref().map(|brief| brief.open_parents))
    }

    fn nodes(&mut self, job: JobId, standing: Standing, max: usize) -> Result<Vec<Node>, Halt> {
        Ok(found!(self, Need::Nodes(job, standing, max), Nodes).clone())
    }

    fn staged(&mut self, job: JobId, batch: u64) -> Result<u32, Halt> {
        Ok(*found!(self, Need::Staged(job, batch), Staged))
    }

    fn children(&mut self, job: JobId, parent: &str, max: usize) -> Result<Vec<Name>, Halt> {
        Ok(found!(self, Need::Children(job, parent.to_owned(), max), Children).clone())
    }

    fn phases(&mut self, job: JobId) -> Result<Vec<(Name, Phase)>, Halt> {
        Ok(found!(self, Need::Phases(job), Phases).clone())
    }

    fn record(&mut self, kind: Kind, name: &str) -> Result<Option<Record>, Halt> {
        Ok(found!(self, Need::Record(kind, name.to_owned()), Record).as_ref().map(|seen| seen.record.clone()))
    }
}
