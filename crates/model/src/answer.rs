//! What a step answers: what it did, why it was refused, and what of that is kept for a repeat.

use serde::{Deserialize, Serialize};

use crate::change::Made;
use crate::execution::{Execution, KillRequest};
use crate::id::{ExecutionId, JobId, LeaseId};
use crate::job::{Job, JobStatus, Phase};
use crate::lock::{Holder, Lock};
use crate::name::Name;
use crate::record::{Kind, Record};
use crate::redrive::Redriven;
use crate::role::Role;
use crate::status::Status;

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
    #[error("the lease has expired")]
    Lapsed,
    /// It has ended already.
    #[error("the execution has finished: {}", .0.as_str())]
    Ended(Status),
    /// It was not given up, or it was and runs again.
    #[error("execution {} is {}: it is not a dead letter", .0, .1.as_str())]
    NotDead(ExecutionId, Status),
    /// The lock is held.
    #[error("lock {} is held by {} since execution {}", .0.name, .0.holder.held_by, .0.holder.execution)]
    LockHeld(Box<LockHeld>),
    /// The key was used for another request.
    #[error("the idempotency key was used for another request, which created {0}")]
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
    #[error("{0} is the last admin with a valid key that does not expire")]
    LastAdmin(String),
    /// The invitation was answered before.
    #[error("the token was already used")]
    Claimed,
    /// There is no room for one more.
    #[error("{0}")]
    TooMany(String),
    /// The job takes no more of this.
    #[error("job {} is {}", .0, .1.as_str().to_ascii_lowercase())]
    JobClosed(JobId, JobStatus),
    /// A resume changes only tasks that failed, and those that wait for them.
    #[error("task {} is {}: a resume changes only tasks that failed, and tasks that wait for them", .0, .1.described())]
    NotRevisable(Name, Phase),
    /// It changed since it was looked at.
    #[error("{} {} was changed by another request: try again", .0.as_str(), .1)]
    Stale(Kind, String),
    /// Whoever asked was revoked since, or their key was.
    #[error("the API key was revoked or has expired")]
    Revoked,
    /// Whoever asked has another role since, which does not allow it.
    #[error("role {} does not allow this", .0.as_str())]
    NotAllowed(Role),
    /// Whoever asked has another role since: what they may touch has to be looked up again.
    #[error("your role was changed to {} in the meantime", .0.as_str())]
    RoleChanged(Role),
}

impl Refusal {
    /// What whoever asked can do about it. A refused step changed nothing.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::NotFound | Self::Missing(..) => "nothing was changed; check the name, or list what there is",
            Self::Lapsed => "nothing was changed; another attempt may hold the lease now",
            Self::Ended(_) => "nothing was changed; run it again with `runvoy rerun`",
            Self::NotDead(..) => "nothing was changed; `runvoy queues dead` lists the dead letters of a queue",
            Self::LockHeld(_) => "nothing was changed; wait for the lock with --wait, or ask its holder",
            Self::KeyReused(_) => "nothing was changed; use a new idempotency key for each request",
            Self::Exists(_) => "nothing was changed; look at the one that exists",
            Self::Taken(..) => "nothing was changed; choose another name, or remove the one that exists",
            Self::LastAdmin(_) => "nothing was changed; make another admin first",
            Self::Claimed => "nothing was changed; ask an admin for a new invitation",
            Self::TooMany(_) => "nothing was changed; remove one that is no longer needed",
            Self::JobClosed(..) => "nothing was changed; submit another job",
            Self::NotRevisable(..) => "nothing was changed; leave the task out, or kill it first if it runs",
            Self::Stale(..) => "nothing was changed; look at its present state, then repeat the change",
            Self::Revoked => "nothing was changed; ask an admin for a new key",
            Self::NotAllowed(_) => "nothing was changed; ask an admin for a role that allows it",
            Self::RoleChanged(_) => "nothing was changed; send it again: it is then checked against your present role",
        }
    }
}

/// A lock that cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHeld {
    /// Which.
    pub name: Name,
    /// Who has it.
    pub holder: Holder,
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
    pub fn executions_mut(&mut self) -> Vec<&mut Execution> {
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
