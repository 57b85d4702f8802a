//! What a run would be, without one.

use serde::{Deserialize, Serialize};

use crate::lock::LockHeld;
use crate::null_is_empty;
use crate::rule::Verdict;
use crate::status::Reason;

/// Answer to `POST /run?dry_run=1` and `POST /playbooks/{name}/run?dry_run=1`. Nothing was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunResponse {
    /// Whether it would be taken: no rule forbids it, and its lock is free or waited for.
    pub allowed: bool,
    /// The id of the image it would run in.
    pub image_id: String,
    /// That image as it was registered.
    pub image: String,
    /// A shell command, or a program where `args` is given.
    pub command: String,
    /// Arguments of the program, which then runs without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Names of the variables that it would get from the request. Values are not repeated.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub env: Vec<String>,
    /// The secrets that it would get.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub secrets: Vec<DryRunSecret>,
    /// The repository that would be checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo: Option<String>,
    /// Its branch, tag or commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<String>,
    /// The directory in it where the command would start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_path: Option<String>,
    /// The playbook it comes from, as `NAME@VERSION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playbook: Option<String>,
    /// The lock that it would hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Who holds that lock now; absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_held: Option<LockHeld>,
    /// Seconds that it would wait in line for the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<u64>,
    /// What it would wait for, where no worker that is there could run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Reason>,
    /// The queue it would go through.
    pub queue: String,
    /// 1 (first) to 5 (last).
    pub priority: u8,
    /// Further attempts after one that failed retryably.
    pub retries: u32,
    /// Seconds until it would be ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// What it would be held to.
    #[serde(default)]
    pub limits: DryRunLimits,
    /// Everything that had a say in whether it is allowed, in order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<Verdict>,
    /// What an hour of it would cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_per_hour: Option<f64>,
}

/// A secret that a run would get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunSecret {
    /// Its name.
    pub name: String,
    /// The environment variable that it becomes.
    pub key_name: String,
}

/// What a run is held to. What is absent is not limited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunLimits {
    /// CPU units; 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// Processes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Bytes of log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
}
