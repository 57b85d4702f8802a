//! Statuses, why something ended and what it waits for: the words that every surface shows.

use serde::{Deserialize, Serialize};

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Waiting for a worker, a lock or a backoff.
    Pending,
    /// Leased; its command may not run yet.
    Starting,
    /// Its command runs.
    Running,
    /// Somebody asked to kill it; its worker has not confirmed yet.
    Terminating,
    /// Ended with exit code 0.
    Succeeded,
    /// Ended otherwise.
    Failed,
    /// Killed.
    Stopped,
}

impl Status {
    /// Every status, in the order of a life.
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Starting, Self::Running, Self::Terminating, Self::Succeeded, Self::Failed, Self::Stopped];

    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Terminating => "TERMINATING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Stopped => "STOPPED",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// Final: no later event changes it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Stopped)
    }
}

/// Why an execution ended, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCode {
    /// The command returned an exit code.
    Exit,
    /// A signal that the platform did not send ended it.
    Signal,
    /// It ran longer than it was allowed to.
    Timeout,
    /// It went over its memory limit.
    Oom,
    /// Somebody killed it, or its worker did because it wrote too much to the disk.
    Killed,
    /// Its worker was lost.
    WorkerLost,
    /// It could not be started.
    StartFailed,
    /// Its image could not be had.
    ImageFailed,
    /// Its repository could not be cloned.
    GitFailed,
    /// Its output could not be kept.
    OutputFailed,
}

impl EndCode {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::Oom => "oom",
            Self::Killed => "killed",
            Self::WorkerLost => "worker_lost",
            Self::StartFailed => "start_failed",
            Self::ImageFailed => "image_failed",
            Self::GitFailed => "git_failed",
            Self::OutputFailed => "output_failed",
        }
    }
}

/// Why an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReason {
    /// The word.
    pub code: EndCode,
    /// The sentence.
    pub message: String,
}

/// What an execution waits for, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCode {
    /// A lock that another execution holds.
    Lock,
    /// A free worker.
    Worker,
    /// A worker that can serve its image.
    Image,
    /// A limit on how many may run.
    Limit,
    /// A queue that somebody has paused.
    Paused,
    /// The time before its next attempt.
    Backoff,
    /// The tasks it depends on.
    Dependency,
    /// Somebody's approval.
    Approval,
}

impl WaitCode {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Worker => "worker",
            Self::Image => "image",
            Self::Limit => "limit",
            Self::Paused => "paused",
            Self::Backoff => "backoff",
            Self::Dependency => "dependency",
            Self::Approval => "approval",
        }
    }
}

/// What an execution waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFor {
    /// The word.
    pub code: WaitCode,
    /// The sentence.
    pub message: String,
}

/// The exit code where a kill left none.
pub const EXIT_KILLED: i32 = 130;
/// The exit code where a timeout left none.
pub const EXIT_TIMEOUT: i32 = 124;
/// The exit code where the platform failed.
pub const EXIT_PLATFORM: i32 = 125;
