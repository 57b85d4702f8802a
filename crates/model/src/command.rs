//! The arrows of the state machine as data: what can be asked of a store in one atomic step, and what it answers.

use serde::{Deserialize, Serialize};

use crate::change::{Change, Made};
use crate::execution::{Execution, KillRequest, RanOn};
use crate::id::{ExecutionId, JobId, LeaseId, WorkerId};
use crate::job::{Job, JobStatus, Node, Payload};
use crate::lock::{Holder, Lock};
use crate::name::Name;
use crate::record::{Kind, Record};
use crate::redrive::{Redrive, Redriven};
use crate::retry::Category;
use crate::role::Role;
use crate::spec::{Needs, Spec};
use crate::status::Status;
use crate::time::UnixMs;

/// One atomic step.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a command lives for one step and is moved once")]
pub enum Command {
    /// A new execution.
    Submit(Submit),
    /// Reserve ready executions for a worker.
    Lease(LeaseRequest),
    /// Permit the spawn and count the attempt.
    Begin(Fence),
    /// Keep a lease alive.
    Extend(Extend),
    /// An attempt is over.
    EndAttempt(EndAttempt),
    /// Hand back a lease that was not begun.
    GiveBack(Fence),
    /// Somebody wants it to end.
    Kill(Kill),
    /// A lease lapsed.
    Reap(Reap),
    /// A kill was not confirmed in time.
    ConfirmKill(ExecutionId),
    /// The wait for a lock took too long.
    ExpireWait(ExecutionId),
    /// An admin takes a lock from its holder.
    ReleaseLock(Name),
    /// Tasks of a job, written before it is opened.
    StageTasks(StageTasks),
    /// A job, with its last tasks: it may run from now on.
    OpenJob(Box<OpenJob>),
    /// More tasks of a job, the last of them: they may run from now on.
    OpenTasks(OpenTasks),
    /// A job has more to do than one step could.
    AdvanceJob(JobId),
    /// Failed and blocked tasks again; with the client's own key for it, if there is one.
    ResumeJob(JobId, Option<SubmitKey>),
    /// Nothing more of it begins; what runs is killed one by one by an agent.
    CancelJob(JobId),
    /// A staged job that nobody opened is forgotten; repeated until it is gone.
    ForgetStaged(JobId),
    /// Dead letters run again.
    Redrive(Redrive),
    /// A lock that an execution holds which has ended, or is not there, goes to the first in line.
    FreeLock(Name, ExecutionId),
    /// Somebody made a link to its log, good until then.
    NoteLink(ExecutionId, UnixMs),
    /// What people manage changes; with the client's own key for it, if there is one.
    Change(Change, Option<SubmitKey>),
}

impl Command {
    /// Whether it brings something new, which a disk at its reserve has no room for. What ends, frees or forbids something has.
    pub fn adds(&self) -> bool {
        match self {
            Self::Submit(_) | Self::StageTasks(_) | Self::OpenJob(_) | Self::OpenTasks(_) | Self::ResumeJob(..) | Self::Redrive(_) => true,
            Self::Change(change, _) => matches!(
                change,
                Change::InviteUser(_)
                    | Change::AddKey(..)
                    | Change::PutGroup(_)
                    | Change::RegisterImage(_)
                    | Change::CreateSecret(_)
                    | Change::PushPlaybook(..)
            ),
            _ => false,
        }
    }
}

/// A new execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Submit {
    /// Its id.
    pub id: ExecutionId,
    /// What to run.
    pub spec: Spec,
    /// For whom.
    pub created_by: String,
    /// The client's own key for this submit.
    pub key: Option<SubmitKey>,
    /// A worker with a free slot: submit, lease and begin become one step.
    pub lease_to: Option<LeaseTo>,
}

/// Tasks of a job, written before they count.
#[derive(Debug, Clone, PartialEq)]
pub struct StageTasks {
    /// The job.
    pub job: JobId,
    /// The job as it will begin, where it is not there yet.
    pub begins: Option<Box<Job>>,
    /// The tasks, in phase `Staged`; a repeat of one that is there is no change.
    pub nodes: Vec<Node>,
}

/// A job that may run from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenJob {
    /// The job, as it begins.
    pub job: Job,
    /// The tasks that were not staged before.
    pub nodes: Vec<Node>,
    /// What `Job Created` tells: the tasks, or where they lie.
    pub told: Payload,
    /// The client's own key for it.
    pub key: Option<SubmitKey>,
}

/// More tasks of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTasks {
    /// The job.
    pub job: JobId,
    /// The batch that is opened.
    pub batch: u64,
    /// How many tasks it has in all.
    pub tasks: u32,
    /// Those that were not staged before.
    pub nodes: Vec<Node>,
    /// What `Job Tasks Added` tells: the tasks, or where they lie.
    pub told: Payload,
    /// The client's own key for it.
    pub key: Option<SubmitKey>,
}

/// The client's own key for a submit, and what it was used for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubmitKey {
    /// Keys of different users never meet.
    pub user: String,
    /// As the client sent it.
    pub key: String,
    /// A digest of the request: the same key for another request is a conflict.
    pub fingerprint: [u8; 32],
}

/// A worker that would take an execution at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTo {
    /// The lease to give.
    pub lease: LeaseId,
    /// Who.
    pub worker: Worker,
    /// For how long.
    pub ttl_ms: u64,
}

/// A worker as a lease knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Its id.
    pub id: WorkerId,
    /// Its machine.
    pub host: String,
    /// Its runner.
    pub runner: String,
    /// It lives inside the server's own process.
    pub in_process: bool,
    /// What it can serve.
    pub serves: Vec<Needs>,
}

/// Reserve ready executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Who wants them.
    pub worker: Worker,
    /// From which queues.
    pub queues: Vec<Name>,
    /// One lease id per execution wanted.
    pub leases: Vec<LeaseId>,
    /// For how long.
    pub ttl_ms: u64,
    /// Begin in the same step: only the in-process worker may, for nothing can be lost between the two.
    pub begin: bool,
}

/// What proves a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The execution.
    pub execution: ExecutionId,
    /// The attempt.
    pub attempt: u32,
    /// The lease.
    pub lease: LeaseId,
}

/// Keep a lease alive.
#[derive(Debug, Clone, PartialEq)]
pub struct Extend {
    /// Which.
    pub fence: Fence,
    /// For how long from now.
    pub ttl_ms: u64,
    /// The command's process id.
    pub process_id: Option<u32>,
    /// Resident memory of the command.
    pub rss_bytes: Option<u64>,
    /// When it last wrote something.
    pub last_output_at: Option<UnixMs>,
    /// What it says it does, in the file that `RUNVOY_ACTIVITY` names.
    pub activity: Option<serde_json::Value>,
}

/// An attempt is over.
#[derive(Debug, Clone, PartialEq)]
pub struct EndAttempt {
    /// Which.
    pub fence: Fence,
    /// How.
    pub outcome: Outcome,
    /// The number of the last log record, which is on stable storage.
    pub log_end: u64,
    /// How long the command ran.
    pub duration_ms: u64,
    /// What the command gave, where it gave something.
    pub output: Option<Payload>,
    /// What the command itself says about its failure.
    pub said: Option<ErrorMark>,
    /// What the command says it used, where its output is too large to be carried.
    pub usage: Option<serde_json::Value>,
    /// What of that could not be used, for people.
    pub remark: Option<String>,
    /// The process, where there was one.
    pub process_id: Option<u32>,
    /// What the attempt cost, in millionths of a dollar.
    pub cost_micro_usd: u64,
}

/// What a command says about its failure, in the file that `RUNVOY_ERROR` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMark {
    /// What kind of failure: see [`crate::retry::Category`].
    pub category: Category,
    /// What happened.
    pub message: String,
    /// Not before so many milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// How an attempt ended, as its worker saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It returned a code.
    Exited {
        /// The code.
        code: i32,
        /// A kill signal had been sent before.
        after_kill: bool,
    },
    /// A signal ended it.
    Signalled {
        /// Which.
        signal: i32,
        /// A kill signal had been sent before.
        after_kill: bool,
    },
    /// It ran too long and was ended.
    TimedOut {
        /// How long it was allowed to run.
        timeout_ms: u64,
        /// `SIGTERM` was enough, or `SIGKILL` was needed.
        forced: bool,
    },
    /// It went over its memory limit.
    OutOfMemory,
    /// It could not be started.
    StartFailed {
        /// Why.
        message: String,
    },
    /// It was not started because of what it is, or of what its owner may not have.
    Refused {
        /// Why.
        message: String,
        /// Whether another attempt could help.
        category: Category,
    },
    /// Its repository could not be cloned.
    GitFailed {
        /// Why: git's last words.
        message: String,
        /// Whether another attempt could help.
        category: Category,
    },
    /// Its output could not be kept.
    OutputFailed {
        /// Why.
        message: String,
    },
    /// The worker stopped and ended it.
    WorkerStopped,
    /// The worker lost sight of it.
    Lost {
        /// What is known.
        message: String,
    },
}

/// Somebody wants it to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    /// Which.
    pub execution: ExecutionId,
    /// Without a grace period.
    pub force: bool,
}

/// A lease lapsed: nobody extended it while the reaper watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reap {
    /// Which.
    pub execution: ExecutionId,
    /// The lease that was watched.
    pub lease: LeaseId,
    /// How often it had been extended; if it was extended since, nothing happens.
    pub extensions: u64,
    /// What is known of its end.
    pub message: String,
    /// The number of the last log record found.
    pub log_end: u64,
}

/// What a step answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The execution, and whether an earlier submit with the same key made it.
    Submitted {
        /// As it is now.
        execution: Box<Execution>,
        /// The key was seen before.
        repeated: bool,
    },
    /// The executions leased, each with its lease.
    Leased(Vec<Execution>),
    /// The spawn is permitted.
    Begun(Box<Execution>),
    /// The lease lives on.
    Extended(Extended),
    /// The attempt is recorded.
    Ended(Box<Execution>),
    /// What is now true of it.
    Changed(Box<Execution>),
    /// Nothing was to be done.
    Unchanged,
    /// The lock as it is now.
    Lock(Lock),
    /// The job as it is now, and whether an earlier step with the same key made it.
    Job {
        /// As it is now.
        job: Box<Job>,
        /// The key was seen before.
        repeated: bool,
    },
    /// What became of dead letters, and whether an earlier step with the same key did it.
    Redriven {
        /// Each with its fate, in the order in which they were asked for.
        letters: Vec<Redriven>,
        /// The key was seen before.
        repeated: bool,
    },
    /// What people manage, as it is now, and whether an earlier step with the same key did it.
    Record {
        /// As it is now.
        record: Box<Record>,
        /// The key was seen before.
        repeated: bool,
    },
    /// The step was refused; what came too late has been kept.
    Refused(Refusal),
}

/// A lease that lives on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extended {
    /// How long.
    pub ttl_ms: u64,
    /// Somebody wants it to end.
    pub kill: Option<KillRequest>,
}

/// Why a step was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such thing.
    #[error("not found")]
    NotFound,
    /// The lease is no longer this worker's.
    #[error("the lease has lapsed")]
    Lapsed,
    /// It has ended already.
    #[error("the execution has ended: {}", .0.as_str())]
    Ended(Status),
    /// It was not given up, or it was and runs again.
    #[error("execution {} is {}, and no dead letter", .0, .1.as_str())]
    NotDead(ExecutionId, Status),
    /// The lock is held.
    #[error("lock {} is held by {} since execution {}", .0.name, .0.holder.held_by, .0.holder.execution)]
    LockHeld(Box<LockHeld>),
    /// The key was used for another request.
    #[error("the idempotency key was used for another request, which made {0}")]
    KeyReused(Made),
    /// An execution with this id exists.
    #[error("execution {0} exists already")]
    Exists(ExecutionId),
    /// Something of this kind and name exists.
    #[error("{} {} exists already", .0.as_str(), .1)]
    Taken(Kind, String),
    /// There is nothing of this kind and name.
    #[error("there is no {} {}", .0.as_str(), .1)]
    Missing(Kind, String),
    /// Nobody could manage the rest.
    #[error("{0} is the last admin with a key that works and lasts: make another admin first")]
    LastAdmin(String),
    /// The invitation was answered before.
    #[error("the token was claimed already")]
    Claimed,
    /// There is no room for one more.
    #[error("{0}")]
    TooMany(String),
    /// The job takes no more of this.
    #[error("job {} is {}", .0, .1.as_str().to_ascii_lowercase())]
    JobClosed(JobId, JobStatus),
    /// It changed since it was looked at.
    #[error("{} {} was changed by somebody else: try again", .0.as_str(), .1)]
    Stale(Kind, String),
    /// Whoever asked was revoked since, or their key was.
    #[error("the API key was revoked or has expired")]
    Revoked,
    /// Whoever asked has another role since, which does not allow it.
    #[error("role {} may not do this", .0.as_str())]
    NotAllowed(Role),
    /// Whoever asked has another role since: what they may touch has to be looked up again.
    #[error("your role was changed to {} meanwhile: try again", .0.as_str())]
    RoleChanged(Role),
}

/// A lock that cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHeld {
    /// Which.
    pub name: Name,
    /// Who has it.
    pub holder: Holder,
}

impl Worker {
    /// Where an attempt by this worker runs.
    pub fn ran_on(&self) -> RanOn {
        RanOn { worker: self.id, host: self.host.clone(), runner: self.runner.clone() }
    }
}

/// What is kept of a step that wrote something, so that a repeat of it can be answered as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    /// See [`Answer::Submitted`].
    Submitted(ExecutionId),
    /// See [`Answer::Leased`].
    Leased(Vec<(ExecutionId, LeaseId)>),
    /// See [`Answer::Ended`].
    Ended(ExecutionId),
    /// See [`Answer::Changed`].
    Changed(ExecutionId),
    /// See [`Answer::Lock`].
    Lock(Name),
    /// It came too late, and that has been kept.
    Late(ExecutionId),
    /// See [`Answer::Record`].
    Record(Kind, String),
    /// See [`Answer::Job`].
    Job(JobId),
    /// See [`Answer::Redriven`].
    Redriven(Vec<Redriven>),
}

impl Answer {
    /// The executions that the answer shows.
    pub(crate) fn executions_mut(&mut self) -> Vec<&mut Execution> {
        match self {
            Self::Submitted { execution, .. } | Self::Begun(execution) | Self::Ended(execution) | Self::Changed(execution) => {
                vec![execution]
            }
            Self::Leased(executions) => executions.iter_mut().collect(),
            Self::Extended(_)
            | Self::Unchanged
            | Self::Lock(_)
            | Self::Record { .. }
            | Self::Job { .. }
            | Self::Redriven { .. }
            | Self::Refused(_) => Vec::new(),
        }
    }
}
