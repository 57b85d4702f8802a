//! The record of one execution: what was asked for and where it stands. How it may change is in [`crate::decide`].

use serde::{Deserialize, Serialize};

use crate::chain::ChainHead;
use crate::id::{ExecutionId, LeaseId, WorkerId};
use crate::name::Name;
use crate::redrive::RedrivenAs;
use crate::retry::Category;
use crate::rpc::JOB_V1;
use crate::spec::{Needs, Spec};
use crate::status::{EndReason, Status, WaitCode, WaitingFor};
use crate::time::UnixMs;

/// One command run for one user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// What was asked for. Stores keep it apart from the rest, for it never changes.
    #[serde(skip, default = "missing_spec")]
    pub spec: Spec,
    /// Who submitted it.
    pub created_by: String,
    /// Who may see and kill it beside the submitter.
    pub owned_by: Vec<String>,
    /// The request that submitted it.
    pub created_by_request_id: String,
    /// The request or step that changed it last.
    pub modified_by_request_id: String,
    /// When it was submitted.
    pub submitted_at: UnixMs,
    /// Where it stands.
    pub status: Status,
    /// How many attempts have begun.
    pub attempt: u32,
    /// Not to be leased before this.
    pub ready_at: UnixMs,
    /// When its first attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixMs>,
    /// When its current or last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_started_at: Option<UnixMs>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<UnixMs>,
    /// What it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// Whoever runs it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// Whoever ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_on: Option<RanOn>,
    /// Somebody's wish to end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<KillRequest>,
    /// Its claim on the lock of its spec.
    #[serde(default, skip_serializing_if = "LockClaim::is_none")]
    pub lock: LockClaim,
    /// The number of its last log record when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_end: Option<u64>,
    /// What it cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Retries were used up: it waits in the dead letters for somebody to look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
    /// What kind of failure its last one was, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_category: Option<Category>,
    /// How many attempts in a row ended together with the server that ran them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub server_deaths: u32,
    /// Where its work goes on, where it was a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven: Option<RedrivenAs>,
    /// The head of its chain of events.
    pub chain: ChainHead,
    /// Rises by one with every change.
    pub version: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn missing_spec() -> Spec {
    Spec::lost(Name::new(crate::spec::DEFAULT_QUEUE).expect("a constant name"), crate::spec::DEFAULT_PRIORITY)
}

/// The right of one worker to run one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its id, made by the step that gave it.
    pub id: LeaseId,
    /// The attempt it is for.
    pub attempt: u32,
    /// Who has it.
    pub worker: WorkerId,
    /// The worker lives inside the server's own process.
    pub in_process: bool,
    /// How long it lasts after each extend.
    pub ttl_ms: u64,
    /// When it ends by the wall clock, for people and events; the reaper goes by its own watch.
    pub deadline: UnixMs,
    /// The spawn was permitted and the attempt counted.
    pub begun: bool,
    /// The attempt began with the lease, and not at a word of its worker, who may not have heard of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
    /// How often it was extended; the begin of its attempt counts as one.
    pub extensions: u64,
    /// When a heartbeat event was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<UnixMs>,
    /// How many heartbeat events were written.
    pub heartbeats: u64,
    /// It holds a permit of its queue, which was limited when it was given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permit: bool,
    /// The account whose key its worker showed; absent for one that lives inside a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Name>,
    /// How long its worker may be silent before it counts as lost; absent: as long as it lasts. Only where nothing waits for its end: it has no lock,
    /// and no attempt is left that another worker could begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_after_ms: Option<u64>,
    /// What its worker does before the command starts, such as the pull of its image; absent once it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparing: Option<String>,
}

/// Where an attempt ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanOn {
    /// The worker.
    pub worker: WorkerId,
    /// Its machine.
    pub host: String,
    /// Its runner.
    pub runner: String,
}

/// Somebody's wish to end an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillRequest {
    /// Who asked.
    pub by: String,
    /// When.
    pub at: UnixMs,
    /// Without a grace period.
    pub force: bool,
}

/// How an execution stands to its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockClaim {
    /// It asked for none, or has given it back.
    #[default]
    None,
    /// It holds the lock.
    Held {
        /// The lock's fence when it was taken.
        fence: u64,
    },
    /// It stands in line.
    Waiting {
        /// It ends where it has not got the lock by then.
        until: UnixMs,
    },
}

impl LockClaim {
    /// No claim.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// So much sooner counts as ready who has one priority more: nobody is passed by for longer than four times this.
pub const AGE_PER_PRIORITY_MS: i64 = 10 * 60 * 1_000;
/// A worker that has said nothing for so long after its lease should have been extended is out of reach.
pub const UNREACHABLE_AFTER_MS: i64 = 10_000;

/// What an execution that can be leased is found by. The smallest [`Place`] goes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyKey {
    /// Its queue.
    pub queue: Name,
    /// What it asks of a worker: those who serve something else pass it over.
    pub needs: Needs,
    /// 1 goes first.
    pub priority: u8,
    /// Not before this.
    pub ready_at: UnixMs,
    /// Then by age.
    pub id: ExecutionId,
}

/// A place in the line: by since when it can be leased, with [`AGE_PER_PRIORITY_MS`] for each priority; then by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// When it would count as ready with the highest priority.
    pub rank: UnixMs,
    /// Which.
    pub id: ExecutionId,
}

impl Place {
    /// The place of an execution of this priority, which can be leased since then.
    pub fn new(priority: u8, ready_at: UnixMs, id: ExecutionId) -> Self {
        Self { rank: ready_at.plus_ms(AGE_PER_PRIORITY_MS * i64::from(priority.saturating_sub(1))), id }
    }
}

impl ReadyKey {
    /// Its place in the line.
    pub fn place(&self) -> Place {
        Place::new(self.priority, self.ready_at, self.id)
    }
}

impl Execution {
    /// Its place among those that can be leased, if it can be: stores keep an index of exactly these.
    pub fn ready_key(&self) -> Option<ReadyKey> {
        let ready = self.status == Status::Pending && !matches!(self.lock, LockClaim::Waiting { .. });
        ready.then(|| ReadyKey {
            queue: self.spec.queue.clone(),
            needs: self.spec.needs(),
            priority: self.spec.priority,
            ready_at: self.ready_at,
            id: self.id,
        })
    }

    /// Since when its worker is out of reach, if it is. It may still run: only its worker knows.
    pub fn worker_unreachable(&self, now: UnixMs) -> Option<UnixMs> {
        let lease = self.lease.as_ref().filter(|_| !self.status.is_terminal())?;
        (lease.deadline.plus_ms(UNREACHABLE_AFTER_MS) < now).then_some(lease.deadline)
    }

    /// Since when it is a dead letter, if it is one: stores keep an index of exactly these, by queue, this and the id.
    pub fn dead_since(&self) -> Option<UnixMs> {
        self.completed_at.filter(|_| self.dead)
    }

    /// How long it has run, or ran, in all.
    pub fn duration_ms(&self, now: UnixMs) -> Option<i64> {
        let started = self.started_at?;
        Some(self.completed_at.unwrap_or(now).ms_since(started))
    }

    /// What its worker does before the command starts: until then it is shown as starting.
    pub fn preparing(&self) -> Option<&str> {
        self.lease.as_ref().filter(|_| self.status == Status::Running)?.preparing.as_deref()
    }

    /// What it waits for, as far as the record alone can tell.
    pub fn waiting_for(&self, now: UnixMs) -> Option<WaitingFor> {
        if let Some(preparing) = self.preparing() {
            return Some(WaitingFor { code: WaitCode::Image, message: preparing.to_owned() });
        }
        if self.status != Status::Pending {
            return None;
        }
        let (code, message) = match (&self.lock, &self.spec.lock) {
            (LockClaim::Waiting { .. }, Some(lock)) => (WaitCode::Lock, format!("lock {lock}, which another execution holds")),
            _ if self.attempt > 0 && self.ready_at > now => {
                let seconds = (self.ready_at.ms_since(now) + 999) / 1000;
                (WaitCode::Backoff, format!("attempt {}, which begins in {seconds} s", self.attempt + 1))
            }
            _ if self.spec.is_for_job_v1() => {
                (WaitCode::Worker, format!("a worker of queue {} that speaks {JOB_V1}{}", self.spec.queue, self.spec.asked_labels()))
            }
            _ if self.spec.needs() == Needs::Image => {
                (WaitCode::Image, format!("a worker of queue {} that can run image {}", self.spec.queue, self.spec.image))
            }
            _ => (WaitCode::Worker, format!("a free worker of queue {}{}", self.spec.queue, self.spec.asked_labels())),
        };
        Some(WaitingFor { code, message })
    }
}
