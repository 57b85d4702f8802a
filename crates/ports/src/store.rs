//! The transactional store: every state change is one atomic step, named by its caller. One backend serves all of these together.

use async_trait::async_trait;
use runvoy_model::change::{Change, Made};
use runvoy_model::command::{
    Answer, Command, EndAttempt, Extend, Extended, Fence, Kill, LeaseRequest, OpenJob, OpenTasks, Reap, Refusal, ReviseJob, StageTasks,
    Submit, SubmitKey,
};
use runvoy_model::execution::{Execution, Lease};
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::Job;
use runvoy_model::limit::StepLimits;
use runvoy_model::lock::Lock;
use runvoy_model::name::Name;
use runvoy_model::record::Record;
use runvoy_model::redrive::{Redrive, Redriven};
use runvoy_model::spec::Needs;
use runvoy_model::status::Status;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;

pub use crate::event::{EventPage, EventQuery, Leaf, Sight, StoredEvent};
use crate::queue::{Backlog, DeadQuery, QueueCounts};

/// What went wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The step is not allowed as things stand. Final.
    #[error(transparent)]
    Refused(Refusal),
    /// The disk is full, or at its reserve. Nothing was written.
    #[error("disk full: no space left for the store")]
    NoSpace,
    /// The store cannot answer now. The step may or may not have been written: repeat it with the same id.
    #[error("the store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored cannot be trusted.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

impl StoreError {
    /// The same step may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::NoSpace | Self::Unavailable(_))
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// Which executions to list, newest first: by when they were submitted. A store with one writer knows that itself; one without goes by what their
/// ids tell, which is the same but where clocks differ or were set back. Which of one moment is first is the store's to say, and never changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only these statuses; empty means all.
    pub statuses: Vec<Status>,
    /// Only those that this user submitted or co-owns.
    pub owner: Option<String>,
    /// Only those that this user submitted.
    pub created_by: Option<String>,
    /// Only those that asked for this lock.
    pub lock: Option<Name>,
    /// Only those of this queue.
    pub queue: Option<Name>,
    /// Only the tasks of this job.
    pub job: Option<JobId>,
    /// Only those submitted at this time or later.
    pub since: Option<UnixMs>,
    /// Only those submitted before this time.
    pub until: Option<UnixMs>,
    /// Go on after this one.
    pub after: Option<ExecutionId>,
    /// At most this many.
    pub limit: usize,
}

/// A lease that somebody holds, as the reaper watches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLease {
    /// The execution.
    pub execution: ExecutionId,
    /// Its status: `STARTING`, `RUNNING` or `TERMINATING`.
    pub status: Status,
    /// The lease.
    pub lease: Lease,
}

/// A lock and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockLine {
    /// The lock.
    pub lock: Lock,
    /// Who waits for it, in order.
    pub waiters: Vec<ExecutionId>,
}

/// What may be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Heartbeat events before this.
    pub heartbeats_before: UnixMs,
    /// Receipts of steps and keys of submits before this.
    pub receipts_before: UnixMs,
    /// At most this many rows in one step, so that the writer is never held up.
    pub max_rows: usize,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Executions by status, in the order of [`Status::ALL`]; only the open ones are counted exactly.
    pub pending: u64,
    /// Leased or running.
    pub active: u64,
    /// All executions ever submitted and still kept.
    pub executions: u64,
    /// All events kept.
    pub events: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Executions, locks and the events about them.
#[async_trait]
pub trait ExecutionStore: Send + Sync {
    /// Applies one step: all of it, durably, or nothing. A repeat of the same step is answered as before.
    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError>;

    /// What one step may hold. Whoever has more makes several.
    fn step_limits(&self) -> StepLimits {
        StepLimits::ONE_WRITER
    }

    /// One execution.
    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError>;

    /// Executions whose id begins or ends with these hex digits, `max` at most.
    async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError>;

    /// What an earlier step with this user's key made, and the fingerprint of what was asked then.
    async fn made_by(&self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, StoreError>;

    /// A page of executions, newest first.
    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError>;

    /// Every lease that somebody holds.
    async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError>;

    /// Executions whose wait for a lock ends at or before this time.
    async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError>;

    /// When the next execution of these queues can be leased by who serves this; at or before now if one can be already. Whether it is handed out then
    /// is for the lease to say: a queue may be paused or full, or the worker lack a label. Whoever was given nothing waits before it asks again.
    async fn next_ready(&self, queues: &[Name], serves: &[Needs]) -> Result<Option<UnixMs>, StoreError>;

    /// Every lock that is held.
    async fn locks(&self) -> Result<Vec<LockLine>, StoreError>;

    /// A page of events.
    async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError>;

    /// A page of those events that somebody may see. It may be empty and not the last.
    async fn seen_events(&self, query: EventQuery, sight: Sight) -> Result<EventPage, StoreError>;

    /// What the proof of the log takes of every event after a place, in order, `max` at most. It needs nothing of what they tell, so that one that
    /// cannot be read is among them.
    async fn leaves(&self, after: u64, max: usize) -> Result<Vec<Leaf>, StoreError>;

    /// Every queue that holds something, by name. However many executions have ended, it costs no more.
    async fn queues(&self) -> Result<Vec<QueueCounts>, StoreError>;

    /// What waits, by user and queue, in no order. What it costs depends on what waits and not on what has ended.
    async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError>;

    /// A page of a queue's dead letters.
    async fn dead(&self, query: DeadQuery) -> Result<Vec<Execution>, StoreError>;

    /// How many dead letters there are on such a page; no more of them are looked at than the page may hold.
    async fn dead_count(&self, query: DeadQuery) -> Result<u64, StoreError>;

    /// Executions that could be leased and of which, however often that was tried, nobody could read what they are to run; and why. Found by
    /// leases, and known to this process only. At most so many, each told once until it is found again.
    fn unreadable(&self, _max: usize) -> Vec<(ExecutionId, String)> {
        Vec::new()
    }

    /// Forgets a little of what may be forgotten; returns how many rows.
    async fn prune(&self, retention: Retention) -> Result<usize, StoreError>;

    /// How much there is.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// A new execution.
    async fn submit(&self, step: Step, submit: Submit) -> Result<(Execution, bool), StoreError> {
        match self.apply(step, Command::Submit(submit)).await? {
            Answer::Submitted { execution, repeated } => Ok((*execution, repeated)),
            other => Err(unexpected(other)),
        }
    }

    /// Reserves ready executions for a worker.
    async fn lease(&self, step: Step, request: LeaseRequest) -> Result<Vec<Execution>, StoreError> {
        match self.apply(step, Command::Lease(request)).await? {
            Answer::Leased(executions) => Ok(executions),
            other => Err(unexpected(other)),
        }
    }

    /// Permits the spawn and counts the attempt.
    async fn begin(&self, step: Step, fence: Fence) -> Result<Execution, StoreError> {
        match self.apply(step, Command::Begin(fence)).await? {
            Answer::Begun(execution) => Ok(*execution),
            other => Err(unexpected(other)),
        }
    }

    /// Permits the start as the lease is sent to its worker, and counts the attempt.
    async fn send(&self, step: Step, fence: Fence) -> Result<Execution, StoreError> {
        match self.apply(step, Command::Send(fence)).await? {
            Answer::Begun(execution) => Ok(*execution),
            other => Err(unexpected(other)),
        }
    }

    /// Keeps a lease alive.
    async fn extend(&self, step: Step, extend: Extend) -> Result<Extended, StoreError> {
        match self.apply(step, Command::Extend(extend)).await? {
            Answer::Extended(extended) => Ok(extended),
            other => Err(unexpected(other)),
        }
    }

    /// Records the end of an attempt. The execution has ended, or waits for its next attempt.
    async fn end_attempt(&self, step: Step, ended: EndAttempt) -> Result<Execution, StoreError> {
        match self.apply(step, Command::EndAttempt(ended)).await? {
            Answer::Ended(execution) => Ok(*execution),
            other => Err(unexpected(other)),
        }
    }

    /// Hands back a lease that was not begun.
    async fn give_back(&self, step: Step, fence: Fence) -> Result<Execution, StoreError> {
        changed(self.apply(step, Command::GiveBack(fence)).await?)
    }

    /// Takes back an attempt that was begun for somebody who was never told of it.
    async fn unsend(&self, step: Step, fence: Fence) -> Result<Execution, StoreError> {
        changed(self.apply(step, Command::Unsend(fence)).await?)
    }

    /// Asks for an execution's end.
    async fn kill(&self, step: Step, kill: Kill) -> Result<Execution, StoreError> {
        changed(self.apply(step, Command::Kill(kill)).await?)
    }

    /// Notes that somebody made a link to an execution's log.
    async fn note_link(&self, step: Step, id: ExecutionId, until: UnixMs, key: Option<SubmitKey>) -> Result<Execution, StoreError> {
        changed(self.apply(step, Command::NoteLink(id, until, key)).await?)
    }

    /// Acts on a lapsed lease; `None` if it was extended or ended since it was looked at.
    async fn reap(&self, step: Step, reap: Reap) -> Result<Option<Execution>, StoreError> {
        changed_or_not(self.apply(step, Command::Reap(reap)).await?)
    }

    /// Ends a kill that nobody confirmed, with what its attempt cost.
    async fn confirm_kill(&self, step: Step, id: ExecutionId, cost_micro_usd: u64) -> Result<Option<Execution>, StoreError> {
        changed_or_not(self.apply(step, Command::ConfirmKill(id, cost_micro_usd)).await?)
    }

    /// Ends a wait for a lock that took too long.
    async fn expire_wait(&self, step: Step, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        changed_or_not(self.apply(step, Command::ExpireWait(id)).await?)
    }

    /// Ends an execution that waits to run and whose spec is lost; `None` if it is not, or does not wait any more.
    async fn give_up(&self, step: Step, id: ExecutionId, why: String) -> Result<Option<Execution>, StoreError> {
        changed_or_not(self.apply(step, Command::GiveUp(id, why)).await?)
    }

    /// Changes what people manage: the record as it is now, and whether an earlier step with the same key did it.
    async fn change(&self, step: Step, change: Change, key: Option<SubmitKey>) -> Result<(Record, bool), StoreError> {
        match self.apply(step, Command::Change(change, key)).await? {
            Answer::Record { record, repeated } => Ok((*record, repeated)),
            other => Err(unexpected(other)),
        }
    }

    /// Hands on a lock whose holder has ended; `None` if that one does not hold it any more, or has not ended.
    async fn free_lock(&self, step: Step, name: Name, holder: ExecutionId) -> Result<Option<Lock>, StoreError> {
        match self.apply(step, Command::FreeLock(name, holder)).await? {
            Answer::Lock(lock) => Ok(Some(lock)),
            Answer::Unchanged => Ok(None),
            other => Err(unexpected(other)),
        }
    }

    /// Frees a permit of a queue whose holder is with no worker; whether it was there and nobody's.
    async fn free_permit(&self, step: Step, queue: Name, holder: ExecutionId) -> Result<bool, StoreError> {
        match self.apply(step, Command::FreePermit(queue, holder)).await? {
            Answer::Record { .. } => Ok(true),
            Answer::Unchanged => Ok(false),
            other => Err(unexpected(other)),
        }
    }

    /// Writes tasks of a job before they count.
    async fn stage_tasks(&self, step: Step, stage: StageTasks) -> Result<(), StoreError> {
        unchanged(self.apply(step, Command::StageTasks(stage)).await?)
    }

    /// Opens a job: as it is now, and whether an earlier step with the same key made it.
    async fn open_job(&self, step: Step, open: OpenJob) -> Result<(Job, bool), StoreError> {
        match self.apply(step, Command::OpenJob(Box::new(open))).await? {
            Answer::Job { job, repeated } => Ok((*job, repeated)),
            other => Err(unexpected(other)),
        }
    }

    /// Opens more tasks of a job.
    async fn open_tasks(&self, step: Step, open: OpenTasks) -> Result<Job, StoreError> {
        job(self.apply(step, Command::OpenTasks(open)).await?)
    }

    /// Goes on with a job that has more to do than one step could; its mark says whether there is still more.
    async fn advance_job(&self, step: Step, id: JobId) -> Result<Job, StoreError> {
        job(self.apply(step, Command::AdvanceJob(id)).await?)
    }

    /// Has the failed tasks of a job run again.
    async fn resume_job(&self, step: Step, id: JobId, key: Option<SubmitKey>) -> Result<Job, StoreError> {
        job(self.apply(step, Command::ResumeJob(id, key)).await?)
    }

    /// The same, with some of the tasks running something else from now on.
    async fn revise_job(&self, step: Step, revise: ReviseJob) -> Result<Job, StoreError> {
        job(self.apply(step, Command::ReviseJob(Box::new(revise))).await?)
    }

    /// Ends a job: nothing more of it begins.
    async fn cancel_job(&self, step: Step, id: JobId) -> Result<Job, StoreError> {
        job(self.apply(step, Command::CancelJob(id)).await?)
    }

    /// Forgets a part of a job that was never opened; repeated until the job is gone.
    async fn forget_staged(&self, step: Step, id: JobId) -> Result<(), StoreError> {
        unchanged(self.apply(step, Command::ForgetStaged(id)).await?)
    }

    /// Has dead letters run again: what became of each, and whether an earlier step with the same key did it.
    async fn redrive(&self, step: Step, redrive: Redrive) -> Result<(Vec<Redriven>, bool), StoreError> {
        match self.apply(step, Command::Redrive(redrive)).await? {
            Answer::Redriven { letters, repeated } => Ok((letters, repeated)),
            other => Err(unexpected(other)),
        }
    }

    /// Takes a lock from its holder.
    async fn release_lock(&self, step: Step, name: Name) -> Result<Lock, StoreError> {
        match self.apply(step, Command::ReleaseLock(name)).await? {
            Answer::Lock(lock) => Ok(lock),
            other => Err(unexpected(other)),
        }
    }
}

fn changed(answer: Answer) -> Result<Execution, StoreError> {
    match answer {
        Answer::Changed(execution) => Ok(*execution),
        other => Err(unexpected(other)),
    }
}

fn changed_or_not(answer: Answer) -> Result<Option<Execution>, StoreError> {
    match answer {
        Answer::Changed(execution) | Answer::Ended(execution) => Ok(Some(*execution)),
        Answer::Unchanged => Ok(None),
        other => Err(unexpected(other)),
    }
}

fn job(answer: Answer) -> Result<Job, StoreError> {
    match answer {
        Answer::Job { job, .. } => Ok(*job),
        other => Err(unexpected(other)),
    }
}

fn unchanged(answer: Answer) -> Result<(), StoreError> {
    match answer {
        Answer::Unchanged => Ok(()),
        other => Err(unexpected(other)),
    }
}

fn unexpected(answer: Answer) -> StoreError {
    match answer {
        Answer::Refused(refusal) => StoreError::Refused(refusal),
        other => StoreError::Damaged(format!("a step was answered as another: {other:?}")),
    }
}
