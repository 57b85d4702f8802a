//! The arrows of the state machine as data: what can be asked of a store in one atomic step. What it answers is in [`crate::answer`].

use serde::{Deserialize, Serialize};

pub use crate::answer::{Answer, Extended, LockHeld, Receipt, Refusal};
use crate::change::Change;
use crate::execution::RanOn;
use crate::id::{ExecutionId, JobId, LeaseId, WorkerId};
use crate::job::{Job, Node, Payload};
use crate::name::Name;
use crate::redrive::Redrive;
use crate::retry::Category;
use crate::spec::{Labels, Needs, Spec};
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
    /// The same as the lease is sent to its worker, who has not said a word of it.
    Send(Fence),
    /// Keep a lease alive.
    Extend(Extend),
    /// An attempt is over.
    EndAttempt(EndAttempt),
    /// Hand back a lease that was not begun.
    GiveBack(Fence),
    /// Take back an attempt that was begun for somebody who was never told of it.
    Unsend(Fence),
    /// Somebody wants it to end.
    Kill(Kill),
    /// A lease lapsed.
    Reap(Reap),
    /// A kill was not confirmed in time; what the attempt cost until its worker was last heard of, in millionths of a dollar.
    ConfirmKill(ExecutionId, u64),
    /// The wait for a lock took too long.
    ExpireWait(ExecutionId),
    /// What it was to run cannot be read, however often that was tried; and why.
    GiveUp(ExecutionId, String),
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
    /// The same, and some of the tasks run something else from now on.
    ReviseJob(Box<ReviseJob>),
    /// Nothing more of it begins; what runs is killed one by one by an agent.
    CancelJob(JobId),
    /// A staged job that nobody opened is forgotten; repeated until it is gone.
    ForgetStaged(JobId),
    /// Dead letters run again.
    Redrive(Redrive),
    /// A lock that an execution holds which has ended, or is not there, goes to the first in line.
    FreeLock(Name, ExecutionId),
    /// A permit of this queue that an execution holds which is with no worker is free.
    FreePermit(Name, ExecutionId),
    /// Somebody made a link to its log, good until then; with the client's own key for it, if there is one.
    NoteLink(ExecutionId, UnixMs, Option<SubmitKey>),
    /// What people manage changes; with the client's own key for it, if there is one.
    Change(Change, Option<SubmitKey>),
}

impl Command {
    /// Whether it brings something new, which a disk at its reserve has no room for. What ends, frees or forbids something has.
    pub fn adds(&self) -> bool {
        match self {
            Self::Submit(_)
            | Self::StageTasks(_)
            | Self::OpenJob(_)
            | Self::OpenTasks(_)
            | Self::ResumeJob(..)
            | Self::ReviseJob(_)
            | Self::Redrive(_) => true,
            Self::Change(change, _) => matches!(
                change,
                Change::InviteUser(_)
                    | Change::AddKey(..)
                    | Change::PutGroup(_)
                    | Change::RegisterImage(_)
                    | Change::CreateSecret(_)
                    | Change::PushPlaybook(..)
                    | Change::CreateWorker(_)
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

/// A resume that changes what some of the tasks run.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviseJob {
    /// The job.
    pub job: JobId,
    /// The tasks that change, each once.
    pub tasks: Vec<ReviseTask>,
    /// The client's own key for it.
    pub key: Option<SubmitKey>,
}

/// A task that runs something else from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviseTask {
    /// The task.
    pub task: Name,
    /// What it ran when the change was made. The step is refused if that is no longer so.
    pub was: Spec,
    /// What it runs from now on.
    pub spec: Spec,
    /// What the audit event says of the change, masked.
    pub told: serde_json::Value,
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
    /// [`crate::digest::of_tasks`] of all of its tasks, also of those that were staged before.
    pub digest: Option<[u8; 32]>,
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
    /// [`crate::digest::of_tasks`] of all of its tasks, also of those that were staged before.
    pub digest: Option<[u8; 32]>,
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
    /// What it has: an execution that asks for something else is not for it.
    pub labels: Labels,
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
    /// A worker that keeps what it could not tell is given so long to come back, where nobody waits for the end: see [`crate::execution::Lease`].
    pub lost_after_ms: Option<u64>,
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
    /// What is done before the command starts, such as the pull of its image; absent once it runs.
    pub preparing: Option<String>,
}

/// An attempt is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// It wrote more than the disk, or its limit, has room for, and was ended.
    OutOfDisk {
        /// How much, and what it could have had.
        message: String,
    },
    /// It could not be started.
    StartFailed {
        /// Why.
        message: String,
        /// The exit code that a shell gives for it, where the program itself could not be executed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// It was not started because of what it is, or of what its owner may not have.
    Refused {
        /// Why.
        message: String,
        /// Whether another attempt could help.
        category: Category,
    },
    /// Its image could not be had.
    ImageFailed {
        /// Why: what the registry or the container daemon said, and what to do.
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
    /// The attempt ended together with the server that ran it.
    pub with_server: bool,
    /// What it cost until its worker was last heard of, in millionths of a dollar.
    pub cost_micro_usd: u64,
}

impl EndAttempt {
    /// An attempt of which nothing is known but how it ended.
    pub const fn of(fence: Fence, outcome: Outcome) -> Self {
        Self {
            fence,
            outcome,
            log_end: 0,
            duration_ms: 0,
            output: None,
            said: None,
            usage: None,
            remark: None,
            process_id: None,
            cost_micro_usd: 0,
        }
    }
}

impl Worker {
    /// Where an attempt by this worker runs. Of several runners, as in `process, container (Docker 20.10.24)`, it is the one that serves the need.
    pub fn ran_on(&self, needs: Needs) -> RanOn {
        let mut runners = self.runner.split(", ");
        let fits = |runner: &&str| (needs == Needs::Image) == runner.starts_with("container");
        let runner = runners.find(fits).unwrap_or(&self.runner).to_owned();
        RanOn { worker: self.id, host: self.host.clone(), runner }
    }
}
