//! Dead letters that run again: what is asked for, and what becomes of each. A dead letter is a mark on a failed execution; running it again makes
//! a new one of the same work and takes the mark off, in one step. How that is decided is in [`crate::decide`].

use serde::{Deserialize, Serialize};

use crate::command::SubmitKey;
use crate::id::{ExecutionId, JobId};
use crate::time::UnixMs;

/// So many dead letters run again at one request, in as many steps as the store needs ([`crate::limit::StepLimits::letters`]).
pub const MOST_REDRIVEN: usize = 50;

/// Dead letters that somebody wants to run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// Which; as many as a step may hold at most.
    pub letters: Vec<Letter>,
    /// Those whose fate is known without this step: whoever asks may not run them again, or an earlier step of the same request had them run. Kept
    /// with the key, so that a repeat is answered as the first was.
    pub settled: Vec<Redriven>,
    /// The client's own key for it.
    pub key: Option<SubmitKey>,
}

/// A dead letter, and what it would become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letter {
    /// The execution that was given up.
    pub execution: ExecutionId,
    /// The id of the new one. A task of a job gets another, from its job.
    pub again: ExecutionId,
}

/// What became of a dead letter that was to run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redriven {
    /// The execution that was given up.
    pub execution: ExecutionId,
    /// What became of it.
    pub fate: Fate,
}

/// See [`Redriven`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It runs again as this one.
    Execution(ExecutionId),
    /// Its task runs again when its turn comes in this job, which goes on for it.
    Job(JobId),
    /// There is nothing left to run again: it was a dead letter and is none any more. Why.
    Dropped(String),
    /// It does not run again, and why.
    Refused(String),
}

/// Where the work of an execution that was given up goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedrivenAs {
    /// Since when.
    pub at: UnixMs,
    /// Who asked for it.
    pub by: String,
    /// The new execution; absent where its job makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
}
