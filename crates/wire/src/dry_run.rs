//! What a run would be, without one.

use serde::{Deserialize, Serialize};

use crate::lock::LockHeld;
use crate::null_is_empty;
use crate::rule::Verdict;
use crate::status::Reason;

/// What a run would do. Nothing was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunResponse {
    /// Whether the run would be accepted: rules allow it, and its lock is free or `lock_wait` is
    /// set.
    pub allowed: bool,
    /// The id of the image.
    pub image_id: String,
    /// The image as it was registered.
    pub image: String,
    /// The shell command to run; with `args`, the program to run.
    pub command: String,
    /// The program's arguments; with them it runs without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The names of the environment variables from the request, without their values.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub env: Vec<String>,
    /// The secrets that the command would get.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub secrets: Vec<DryRunSecret>,
    /// The Git repository to check out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo: Option<String>,
    /// The branch, tag or commit; default: the repository's default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<String>,
    /// The directory in the repository in which the command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_path: Option<String>,
    /// The playbook, as `NAME@VERSION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playbook: Option<String>,
    /// The lock to hold while the command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// The execution that holds the lock now; absent if it is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_held: Option<LockHeld>,
    /// How many seconds to wait for the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<u64>,
    /// What the execution would wait for, if no worker can run it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Reason>,
    /// The queue.
    pub queue: String,
    /// The priority, from 1 (first) to 5 (last).
    pub priority: u8,
    /// How many times to retry after a failure that a retry may fix.
    pub retries: u32,
    /// The timeout in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// The limits of the command.
    #[serde(default)]
    pub limits: DryRunLimits,
    /// Every rule that was considered, in order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<Verdict>,
    /// The cost of one hour in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_per_hour: Option<f64>,
}

/// A secret that a run would get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunSecret {
    /// The secret's name.
    pub name: String,
    /// The environment variable that gets the value.
    pub key_name: String,
}

/// The limits of a run. An absent limit does not apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunLimits {
    /// CPU units; 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// The maximum number of processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// The maximum size of the log in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
}
