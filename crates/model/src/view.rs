//! What a decision may look at and what it writes. An adapter shows its current state as a [`View`], asks
//! [`crate::decide::decide`], and applies the [`Writes`] in the same transaction.

use crate::bound;
use crate::chain::AuditKey;
use crate::change::Made;
use crate::command::{Answer, Receipt, SubmitKey};
use crate::digest;
use crate::event::{Entity, Event, EventType};
use crate::execution::Execution;
use crate::id::{ExecutionId, JobId};
use crate::job::{Job, MOST_INLINE_BYTES, Node, Phase};
use crate::limit::StepLimits;
use crate::lock::Lock;
use crate::name::Name;
use crate::record::{Kind, Record};
use crate::spec::{Labels, Needs};
use crate::step::Step;
use crate::time::UnixMs;

/// The state as a decision sees it: consistent, and not changing until the writes are applied.
pub trait View {
    /// What can go wrong with looking.
    type Error;

    /// What this step may hold. It is the same for every step of a store.
    fn limits(&self) -> StepLimits {
        StepLimits::ONE_WRITER
    }

    /// One execution.
    fn execution(&mut self, id: ExecutionId) -> Result<Option<Execution>, Self::Error>;

    /// One lock; `None` if nobody ever held it.
    fn lock(&mut self, name: &Name) -> Result<Option<Lock>, Self::Error>;

    /// The first that waits for a lock.
    fn first_waiter(&mut self, lock: &Name) -> Result<Option<ExecutionId>, Self::Error>;

    /// What a user's key was used for before: what it made and the fingerprint of the request.
    fn submitted(&mut self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, Self::Error>;

    /// The first executions that can be leased now by who serves this, by [`crate::execution::Place`], `max` in all. Those that are passed over are
    /// not among them, however many they are: a store walks past them, which costs it a look at each.
    fn ready(
        &mut self,
        queues: &[Name],
        serves: &[Needs],
        now: UnixMs,
        max: usize,
        pass: &PassOver,
    ) -> Result<Vec<ExecutionId>, Self::Error>;

    /// One job.
    fn job(&mut self, id: JobId) -> Result<Option<Job>, Self::Error>;

    /// One task of a job.
    fn node(&mut self, job: JobId, task: &str) -> Result<Option<Node>, Self::Error>;

    /// Where one task of a job stands, without a look at the rest of it.
    fn phase(&mut self, job: JobId, task: &str) -> Result<Option<Phase>, Self::Error>;

    /// How many parents of a task are not done, without a look at the rest of it: a task may have thousands.
    fn open_parents(&mut self, job: JobId, task: &str) -> Result<Option<u32>, Self::Error>;

    /// Tasks of a job that stand like this, by place, `max` at most.
    fn nodes(&mut self, job: JobId, standing: Standing, max: usize) -> Result<Vec<Node>, Self::Error>;

    /// How many tasks of a job were written with this batch and not looked at yet.
    fn staged(&mut self, job: JobId, batch: u64) -> Result<u32, Self::Error>;

    /// The children of a task that have not been told that it is done, by place, `max` at most.
    fn children(&mut self, job: JobId, parent: &str, max: usize) -> Result<Vec<Name>, Self::Error>;

    /// Where every task of a job that is part of its graph stands, by place.
    fn phases(&mut self, job: JobId) -> Result<Vec<(Name, Phase)>, Self::Error>;

    /// One record, also after it was removed.
    fn record(&mut self, kind: Kind, name: &str) -> Result<Option<Record>, Self::Error>;
}

/// What a look at the line passes over: what this worker cannot take stands in nobody's way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PassOver {
    /// What the worker has: whoever asks for something else is passed over.
    pub labels: Labels,
    /// Users who may have no more of a queue.
    pub users: Vec<(Name, String)>,
}

impl PassOver {
    /// Whether an execution is passed over.
    pub fn passes(&self, execution: &Execution) -> bool {
        !execution.spec.fits(&self.labels) || self.has_user(&execution.spec.queue, &execution.created_by)
    }

    /// Whether everything of a user in a queue is passed over.
    pub fn has_user(&self, queue: &Name, user: &str) -> bool {
        self.users.iter().any(|(of, who)| of == queue && who == user)
    }
}

/// How tasks of a job stand, for a look at those that have something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Written with this batch, and not looked at yet.
    Staged(u64),
    /// Could be released.
    Ready,
    /// Ended otherwise than well in a generation before this one.
    FailedBefore(u32),
    /// Ended otherwise than well, at this place or later.
    FailedFrom(u32),
    /// Done, and its children have not all been told.
    Marked,
}

impl Standing {
    /// Whether a task stands like this.
    pub fn fits(self, node: &Node) -> bool {
        match self {
            Self::Staged(batch) => node.phase == Phase::Staged && node.batch == batch,
            Self::Ready => node.phase == Phase::Ready,
            Self::FailedBefore(generation) => node.phase == Phase::Failed && node.generation < generation,
            Self::FailedFrom(place) => node.phase == Phase::Failed && node.place >= place,
            Self::Marked => node.marked,
        }
    }
}

/// What a decision writes, all of it or nothing.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    /// Executions as they are afterwards. One that is new has version 1.
    pub executions: Vec<Execution>,
    /// Locks as they are afterwards.
    pub locks: Vec<Lock>,
    /// Records as they are afterwards. One that is new has version 1.
    pub records: Vec<Record>,
    /// Jobs as they are afterwards. One that is new has version 1.
    pub jobs: Vec<Job>,
    /// Tasks as they are afterwards.
    pub nodes: Vec<Node>,
    /// Tasks of which nothing changed but how many parents are not done; none of these is among the whole ones.
    pub lowered: Vec<(JobId, Name, u32)>,
    /// Edges that are new: parent and child.
    pub edges: Vec<(JobId, Name, Name)>,
    /// Edges that are gone: the child has been told.
    pub told_edges: Vec<(JobId, Name, Name)>,
    /// Jobs of which everything goes, [`StepLimits::forgotten`] tasks at most, the first by place; and the job itself when it has none left.
    pub forgotten: Vec<JobId>,
    /// New events, in order.
    pub events: Vec<Event>,
    /// The client's own key for this, and what it made.
    pub key: Option<(SubmitKey, Made)>,
    /// What answers a repeat of the step. Absent where a repeat may be decided anew: nothing was written, or the
    /// step is the same however often it is made (a begin, an extend).
    pub receipt: Option<Receipt>,
}

impl Writes {
    /// Nothing to write.
    pub fn is_empty(&self) -> bool {
        self.executions.is_empty()
            && self.locks.is_empty()
            && self.records.is_empty()
            && self.jobs.is_empty()
            && self.nodes.is_empty()
            && self.forgotten.is_empty()
            && self.events.is_empty()
            && self.key.is_none()
    }

    /// Adds an event about an execution.
    pub fn event(&mut self, step: &Step, execution: ExecutionId, kind: EventType, properties: serde_json::Value) {
        self.event_about(step, Entity::task(execution), kind, properties);
    }

    /// Adds an event about anything that is written in the same step.
    pub fn event_about(&mut self, step: &Step, entity: Entity, kind: EventType, properties: serde_json::Value) {
        self.events.push(Event {
            id: step.event_id(self.events.len()),
            entity,
            number: 0,
            kind,
            at: step.at,
            context: step.context(),
            properties,
            mac: [0; 32],
        });
    }

    /// Writes an execution, raising its version, and gives it back as written.
    pub fn put(&mut self, mut execution: Execution, step: &Step) -> Box<Execution> {
        execution.version += 1;
        execution.modified_by_request_id.clone_from(&step.request_id);
        self.executions.push(execution.clone());
        Box::new(execution)
    }

    /// Writes a job, raising its version, and gives it back as written.
    pub fn put_job(&mut self, mut job: Job, step: &Step) -> Box<Job> {
        job.version += 1;
        job.modified_by_request_id.clone_from(&step.request_id);
        self.jobs.push(job.clone());
        Box::new(job)
    }

    /// Writes a record, raising its version, and gives it back as written.
    pub fn put_record(&mut self, mut record: Record) -> Box<Record> {
        record.version += 1;
        self.records.push(record.clone());
        Box::new(record)
    }

    /// Numbers the events, holds each to its size and depth ([`bound`]), links them to their entities' chains and makes the receipt; the answer shows what is written. Called once, last.
    pub fn seal(&mut self, key: &AuditKey, answer: &mut Answer) {
        self.bind_records();
        for event in &mut self.events {
            let execution = self.executions.iter_mut().find(|execution| event.entity == Entity::task(execution.id));
            let record = self.records.iter_mut().find(|record| record.entity().as_ref() == Some(&event.entity));
            let job = self.jobs.iter_mut().find(|job| event.entity == Entity::job(job.id));
            let body = match (event.kind, &execution, &job) {
                (EventType::TaskPending, Some(execution), _) if execution.version == 1 => Some(digest::of_execution(execution)),
                (EventType::JobCreated, _, Some(job)) => Some(digest::of_job(job)),
                _ => None,
            };
            let chain = execution.map(|execution| &mut execution.chain).or(record.map(|record| &mut record.chain));
            let chain = chain.or(job.map(|job| &mut job.chain));
            let chain = chain.expect("an event is written together with what it is about");
            bound::level(&mut event.properties, bound::MOST_EVENT_DEPTH);
            if let Some(body) = body {
                event.properties[digest::BODY] = body.into();
            }
            let mut canonical = event.canonical();
            if canonical.len() > bound::MOST_EVENT_BYTES {
                bound::cut(&mut event.properties, MOST_INLINE_BYTES);
                canonical = event.canonical();
            }
            if event.kind.is_chained() {
                *chain = key.link(chain, &canonical);
                event.mac = chain.mac;
            }
            event.number = chain.count;
        }
        if let Answer::Job { job, .. } = answer
            && let Some(written) = self.jobs.iter().find(|written| written.id == job.id)
        {
            job.chain = written.chain;
        }
        if let Answer::Record { record, .. } = answer
            && let Some(written) = self.records.iter().find(|written| written.kind == record.kind && written.name == record.name)
        {
            record.chain = written.chain;
        }
        for shown in answer.executions_mut() {
            if let Some(written) = self.executions.iter().find(|execution| execution.id == shown.id) {
                shown.chain = written.chain;
            }
        }
        self.receipt = self.receipt_for(answer);
    }

    /// Puts the digest of every record into the event that is about it; of one that has no events of its own, into the first of the step.
    fn bind_records(&mut self) {
        for record in self.records.iter().filter(|record| record.kind.is_bound()) {
            let own = record.entity().and_then(|own| self.events.iter().position(|event| event.entity == own));
            let event = own.or_else(|| self.events.iter().position(|event| event.kind.is_chained()));
            debug_assert!(event.is_some(), "{} {} is written without an event", record.kind.as_str(), record.name);
            if let Some(event) = event {
                digest::add(&mut self.events[event].properties, digest::key(record), digest::of_record(record));
            }
        }
    }

    fn receipt_for(&self, answer: &Answer) -> Option<Receipt> {
        match answer {
            _ if self.is_empty() => None,
            Answer::Submitted { execution, .. } => Some(Receipt::Submitted(execution.id)),
            Answer::Leased(executions) => {
                let lease = |execution: &Execution| execution.lease.as_ref().map(|lease| (execution.id, lease.id));
                Some(Receipt::Leased(executions.iter().filter_map(lease).collect()))
            }
            Answer::Ended(execution) => Some(Receipt::Ended(execution.id)),
            Answer::Changed(execution) => Some(Receipt::Changed(execution.id)),
            Answer::Lock(lock) => Some(Receipt::Lock(lock.name.clone())),
            Answer::Job { job, .. } => Some(Receipt::Job(job.id)),
            Answer::Redriven { letters, .. } => Some(Receipt::Redriven(letters.clone())),
            Answer::Record { record, .. } => Some(Receipt::Record(record.kind, record.name.clone())),
            Answer::Refused(_) => self.executions.first().map(|execution| Receipt::Late(execution.id)),
            Answer::Begun(_) | Answer::Extended(_) | Answer::Unchanged => None,
        }
    }
}
