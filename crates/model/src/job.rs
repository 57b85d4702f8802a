//! Jobs: DAGs of tasks. A job is a small record with counters; each task is a node of its own, and an edge is a row that goes when its parent is
//! done. So whatever happens to one task touches that task, its job and its own children, however large the job is. How jobs move is in
//! [`crate::decide`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chain::ChainHead;
use crate::id::{ExecutionId, JobId};
use crate::name::Name;
use crate::spec::Spec;
use crate::time::UnixMs;

/// A job has at most this many tasks.
pub const MOST_TASKS: usize = 20_000;
/// Further attempts of a task where nobody says.
pub const DEFAULT_TASK_RETRIES: u32 = 2;
/// What is larger goes to the blob store and is passed by reference.
pub const MOST_INLINE_BYTES: usize = 200 * 1024;

/// What would take more memory than this as a tree of values goes to the blob store too: pages of tasks and events hold many of them.
pub const MAX_INLINE_OPENED_BYTES: usize = 2 << 20;

/// Whether JSON of this many bytes, which takes so many as a tree of values, is kept inline.
pub const fn fits_inline(text_bytes: usize, opened_bytes: usize) -> bool {
    text_bytes <= MOST_INLINE_BYTES && opened_bytes <= MAX_INLINE_OPENED_BYTES
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobStatus {
    /// Its tasks are being written; nothing of it may run yet.
    Staged,
    /// Something of it can still move.
    Running,
    /// A task failed and nothing more can move. It can be resumed.
    Failed,
    /// Every task is done.
    Completed,
    /// Somebody ended it.
    Cancelled,
}

impl JobStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [Self::Staged, Self::Running, Self::Failed, Self::Completed, Self::Cancelled];

    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Staged => "STAGED",
            Self::Running => "RUNNING",
            Self::Failed => "FAILED",
            Self::Completed => "COMPLETED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// Whether tasks may be added and moved.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Failed)
    }
}

/// A DAG of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client's own key for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key: Option<String>,
    /// Who submitted it.
    pub created_by: String,
    /// The request that submitted it.
    pub created_by_request_id: String,
    /// The request or step that changed it last.
    pub modified_by_request_id: String,
    /// When it was submitted.
    pub created_at: UnixMs,
    /// Where it stands.
    pub status: JobStatus,
    /// When it was completed or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<UnixMs>,
    /// Who ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// So many of its tasks may be executions at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Rises with every resume.
    pub generation: u32,
    /// The batch of tasks that is being looked at; those of another one do not count yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<u64>,
    /// Tasks that failed in earlier generations are still to be made ready again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resuming: bool,
    /// How many tasks there are, and how many of them are where.
    pub counts: Counts,
    /// How many places were given to tasks, also to those of batches that were never opened.
    #[serde(default)]
    pub places: u32,
    /// A failure was told since the last resume.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failure_told: bool,
    /// The first task that failed since the last resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_task: Option<String>,
    /// There is more to do than one step could: an agent goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attention: bool,
    /// Of a cancelled job: what was given up of its tasks from this place on may still be a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unburied: Option<u32>,
    /// The head of its chain of events.
    pub chain: ChainHead,
    /// Rises by one with every change.
    pub version: u64,
}

impl Job {
    /// Whether an agent has something to do: a step, or what still runs of it is to be killed.
    pub const fn needs_attention(&self) -> bool {
        self.needs_step() || matches!(self.status, JobStatus::Cancelled) && self.counts.active > 0
    }

    /// Whether another step goes on with it.
    pub const fn needs_step(&self) -> bool {
        self.attention || self.unburied.is_some()
    }
}

/// How many tasks are where. Together they are all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// All opened ones.
    pub total: u32,
    /// Not looked at yet.
    pub staged: u32,
    /// Waiting for parents.
    pub waiting: u32,
    /// Could be released.
    pub ready: u32,
    /// Executions.
    pub active: u32,
    /// Done.
    pub completed: u32,
    /// Ended otherwise.
    pub failed: u32,
}

/// Where a task stands within its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Written, and not looked at yet.
    Staged,
    /// Waits for parents.
    Waiting,
    /// Could be released.
    Ready,
    /// It is an execution.
    Active,
    /// Done.
    Completed,
    /// Ended otherwise.
    Failed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 6] = [Self::Staged, Self::Waiting, Self::Ready, Self::Active, Self::Completed, Self::Failed];

    /// The seed's word for it in `taskStatuses`; none for what has not begun.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Staged | Self::Waiting | Self::Ready => None,
            Self::Active => Some("processing"),
            Self::Completed => Some("completed"),
            Self::Failed => Some("failed"),
        }
    }

    /// Whether a resume may change what the task runs: it failed, or waits for one that may have failed.
    pub const fn is_revisable(self) -> bool {
        matches!(self, Self::Failed | Self::Waiting)
    }

    /// The phase in a sentence.
    pub const fn described(self) -> &'static str {
        match self {
            Self::Staged | Self::Ready => "about to start",
            Self::Waiting => "waiting",
            Self::Active => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// A task of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its job.
    pub job: JobId,
    /// Its name within the job.
    pub task: Name,
    /// Its place among the job's tasks: given when it is first written, whatever it was before.
    pub place: u32,
    /// The batch that it came with, a number that nobody else has.
    pub batch: u64,
    /// What people call it.
    pub name: String,
    /// The tasks it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Name>,
    /// What it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// What it was submitted to run; it never changes. What it runs now is [`Node::runs`].
    pub spec: Spec,
    /// What it runs since a resume changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Box<Revision>>,
    /// Where it stands.
    pub phase: Phase,
    /// How many of its parents were looked at when it joined the graph.
    pub looked: u32,
    /// How many of those are not done.
    pub open_parents: u32,
    /// It is done, and its children have not all been told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// The job's generation when it was last released.
    pub generation: u32,
    /// Its newest execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Payload>,
}

impl Node {
    /// What it runs: the last revision, or what it was submitted with.
    pub fn runs(&self) -> &Spec {
        self.revision.as_ref().map_or(&self.spec, |revision| &revision.spec)
    }
}

/// What a task runs since a resume changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The job's generation that began with that resume.
    pub generation: u32,
    /// What the task runs from then on.
    pub spec: Spec,
}

/// Data of a task: as it is, or where it lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// As it is.
    Inline(Value),
    /// Too large to be carried: a key of the blob store.
    Blob {
        /// The key.
        key: String,
        /// How large it is.
        bytes: u64,
    },
}

/// The task that an execution is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRef {
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: Name,
    /// The job's generation when it was released.
    pub generation: u32,
    /// What people call it, where that is not its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl TaskRef {
    /// What it is called in its events.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.task.as_str())
    }
}
/// A part of a task, as its author would look for it: `tasks[3].command`, counted from 0.
pub fn task_field(index: usize, part: &str) -> String {
    format!("tasks[{index}].{part}")
}
