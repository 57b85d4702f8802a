//! One execution: what its events say of it, and whether its record and its lock say the same.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::mismatch::{Mismatch, NO_DIGEST, same};
use super::{Impossible, TaskState, expected};
use crate::bound;
use crate::chain::canonical_json;
use crate::digest::{self, DigestsSince};
use crate::event::{Entity, Event, EventType};
use crate::execution::{Execution, LockClaim};
use crate::job::Payload;
use crate::lock::Lock;
use crate::status::{EndCode, Status};
use crate::time::UnixMs;

/// What the events of an execution say so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionFold {
    state: Option<TaskState>,
    /// Where its first event and its end stand in the log.
    pub(super) released: Option<u64>,
    pub(super) ended: Option<u64>,
    /// The job, the task and the job's generation that it belongs to.
    job: Option<String>,
    pub(super) task: Option<String>,
    pub(super) generation: Option<u32>,
    queue: Option<String>,
    /// The digest of what never changes of it.
    body: Option<String>,
    submitted_at: Option<UnixMs>,
    attempt: u32,
    started_at: Option<UnixMs>,
    attempt_started_at: Option<UnixMs>,
    worker: Option<String>,
    end: Option<End>,
    /// What it gave, in few bytes.
    pub(super) output: Option<[u8; 32]>,
    /// It gave more than its event could hold.
    pub(super) is_output_cut: bool,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    status: Status,
    exit_code: Option<i64>,
    /// Absent where the event tells of none.
    reason: Option<String>,
    dead: Option<bool>,
}

impl ExecutionFold {
    /// The next event and its place in the log.
    pub fn next(&mut self, place: u64, event: &Event) -> Result<(), Impossible> {
        let late = event.properties.get("late").and_then(Value::as_bool).unwrap_or(false);
        let Some(next) = TaskState::after(event.kind).filter(|_| !late) else { return Ok(()) };
        if matches!(self.state, Some(TaskState::Completed | TaskState::Failed)) || self.state.is_none() && next != TaskState::Pending {
            return Err(Impossible { number: event.number, kind: event.kind, state: self.state });
        }
        match event.kind {
            EventType::TaskPending if self.state.is_none() => self.submitted(place, event),
            EventType::TaskPending if self.state == Some(TaskState::Processing) && is_handed_back(event) => self.taken_back(),
            EventType::TaskProcessingStarted => self.begun(event),
            _ if matches!(next, TaskState::Completed | TaskState::Failed) => self.ended(place, event),
            _ => {}
        }
        self.state = Some(next);
        Ok(())
    }

    /// What all of them say; `None` where there was none.
    pub const fn state(&self) -> Option<TaskState> {
        self.state
    }

    fn submitted(&mut self, place: u64, event: &Event) {
        let text = |name: &str| event.properties.get(name).and_then(Value::as_str).map(str::to_owned);
        (self.released, self.submitted_at) = (Some(place), Some(event.at));
        (self.job, self.task, self.queue, self.body) = (text("jobId"), text("taskId"), text("queue"), text(digest::BODY));
        self.generation = number(event, "generation");
    }

    fn begun(&mut self, event: &Event) {
        self.attempt = number(event, "attempt").unwrap_or(self.attempt + 1);
        self.started_at.get_or_insert(event.at);
        self.attempt_started_at = Some(event.at);
        self.worker = event.properties.get("workerId").and_then(Value::as_str).map(str::to_owned);
    }

    /// Nobody was told that it was begun.
    fn taken_back(&mut self) {
        self.attempt = self.attempt.saturating_sub(1);
        self.attempt_started_at = None;
        self.started_at = self.started_at.filter(|_| self.attempt > 0);
    }

    /// How many attempts were begun, when the first was, and when the last was.
    pub const fn attempts(&self) -> (u32, Option<UnixMs>, Option<UnixMs>) {
        (self.attempt, self.started_at, self.attempt_started_at)
    }

    fn ended(&mut self, place: u64, event: &Event) {
        let told = |name: &str| event.properties.get(name);
        let text = |name: &str| told(name).and_then(Value::as_str).map(str::to_owned);
        let (status, reason) = match event.kind {
            EventType::TaskCompleted => (Status::Succeeded, Some(EndCode::Exit.as_str().to_owned())),
            EventType::TaskStopped => (Status::Stopped, Some(EndCode::Killed.as_str().to_owned())),
            EventType::TaskTimeout => (Status::Failed, Some(EndCode::Timeout.as_str().to_owned())),
            _ => (Status::Failed, text("reason")),
        };
        let dead = text("source").map(|source| source == "dlq");
        self.ended = Some(place);
        self.end = Some(End { status, exit_code: told("exitCode").and_then(Value::as_i64), reason, dead });
        if event.kind == EventType::TaskCompleted {
            let blob = told("_s3Overflow").and_then(|blob| blob.get("key")).and_then(Value::as_str);
            self.output = told("output").map(inline_digest).or_else(|| blob.map(blob_digest));
            self.is_output_cut = told(bound::CUT).is_some_and(|cut| cut.get("output").is_some());
        }
    }

    /// Its events are older than digests: what it runs, and whose it is, cannot be compared.
    pub const fn is_unverifiable(&self) -> bool {
        self.state.is_some() && self.body.is_none()
    }

    /// Whether the record says the same; `lock` is the lock of its spec as it is kept.
    pub fn compare(&self, kept: &Execution, lock: Option<&Lock>, digests: DigestsSince) -> Result<(), Mismatch> {
        let about = Entity::task(kept.id);
        let Some(state) = self.state else {
            return Err(Mismatch::of(&about, "events", "are missing, although there is a record"));
        };
        self.compare_status(&about, kept, state)?;
        let ms = |at: Option<UnixMs>| at.map(|at| at.0);
        same(&about, "submitted_at", Some(kept.submitted_at.0), ms(self.submitted_at))?;
        same(&about, "attempt", Some(kept.attempt), Some(self.attempt))?;
        same(&about, "started_at", ms(kept.started_at), ms(self.started_at))?;
        same(&about, "attempt_started_at", ms(kept.attempt_started_at), ms(self.attempt_started_at))?;
        if let Some(queue) = &self.queue {
            same(&about, "queue", Some(kept.spec.queue.as_str()), Some(queue.as_str()))?;
        }
        let worker = kept.lease.as_ref().filter(|lease| lease.begun).map(|lease| lease.worker.to_string());
        same(&about, "worker", worker, self.worker.clone().filter(|_| state == TaskState::Processing))?;
        self.compare_task(&about, kept)?;
        self.compare_body(&about, kept, digests)?;
        compare_claim(&about, kept, lock)
    }

    /// What never changes is what was written. A store that lost what it was to run says so itself.
    fn compare_body(&self, about: &Entity, kept: &Execution, digests: DigestsSince) -> Result<(), Mismatch> {
        match &self.body {
            None if self.released.is_some_and(|place| digests.binds(place)) => Err(Mismatch::of(about, "spec", NO_DIGEST)),
            Some(body) if !kept.spec.is_lost() && *body != digest::of_execution(kept) => {
                Err(Mismatch::of(about, "spec", "or its owner differs from the event that recorded it"))
            }
            _ => Ok(()),
        }
    }

    fn compare_status(&self, about: &Entity, kept: &Execution, state: TaskState) -> Result<(), Mismatch> {
        let (folded, fits) = match &self.end {
            Some(end) => (end.status.as_str(), end.status == kept.status),
            None => (state.as_str(), state == expected(kept.status)),
        };
        if !fits {
            return Err(Mismatch::of(about, "status", format!("is {}, but the events say {folded}", kept.status.as_str())));
        }
        let end = self.end.as_ref();
        same(about, "exit_code", kept.exit_code.map(i64::from), end.and_then(|end| end.exit_code))?;
        if let Some(reason) = end.and_then(|end| end.reason.as_deref()) {
            same(about, "end_reason", kept.end_reason.as_ref().map(|reason| reason.code.as_str()), Some(reason))?;
        }
        // The mark goes when its work goes on elsewhere, and never comes later.
        if kept.dead && end.and_then(|end| end.dead) == Some(false) {
            return Err(Mismatch::of(about, "dead", "is set, but the events do not say that its retries were used up"));
        }
        Ok(())
    }

    fn compare_task(&self, about: &Entity, kept: &Execution) -> Result<(), Mismatch> {
        let task = kept.spec.task.as_ref();
        same(about, "task.job", task.map(|task| task.job.to_string()), self.job.clone())?;
        same(about, "task.task", task.map(|task| task.task.as_str()), self.task.as_deref())?;
        same(about, "task.generation", task.map(|task| task.generation), self.generation)
    }
}

/// Whoever says that it holds its lock is the one that the lock names, and has not ended.
fn compare_claim(about: &Entity, kept: &Execution, lock: Option<&Lock>) -> Result<(), Mismatch> {
    if kept.status.is_terminal() && kept.lock != LockClaim::None {
        return Err(Mismatch::of(about, "lock", "is claimed, but the events say that the execution has finished"));
    }
    let LockClaim::Held { fence } = kept.lock else { return Ok(()) };
    match lock {
        Some(lock) if lock.is_held_by(kept.id) && lock.fence == fence => Ok(()),
        _ => Err(Mismatch::of(about, "lock", format!("is held with fence {fence} according to the execution, but not to the lock"))),
    }
}

/// Whether a lock is held by somebody who is there, whose events say that it has not ended, and who knows of it.
pub fn compare_lock(lock: &Lock, holder: Option<(&Execution, &ExecutionFold)>) -> Result<(), Mismatch> {
    let Some(held) = &lock.holder else { return Ok(()) };
    let bad = |message: String| Err(Mismatch { entity: format!("LOCK:{}", lock.name), field: "holder".to_owned(), message });
    let Some((execution, fold)) = holder else { return bad(format!("is execution {}, which does not exist", held.execution)) };
    if matches!(fold.state, None | Some(TaskState::Completed | TaskState::Failed)) {
        return bad(format!("is execution {}, but the events say that it has finished", held.execution));
    }
    if execution.lock != (LockClaim::Held { fence: lock.fence }) {
        return bad(format!("is execution {} with fence {}, which does not hold it", held.execution, lock.fence));
    }
    Ok(())
}

fn is_handed_back(event: &Event) -> bool {
    event.properties.get("handedBack").and_then(Value::as_bool).unwrap_or(false)
}

fn number(event: &Event, name: &str) -> Option<u32> {
    event.properties.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok())
}

/// What a task gave, in few bytes.
pub(super) fn output_digest(output: &Payload) -> [u8; 32] {
    match output {
        Payload::Inline(value) => inline_digest(value),
        Payload::Blob { key, .. } => blob_digest(key),
    }
}

fn inline_digest(value: &Value) -> [u8; 32] {
    let mut bytes = b"inline ".to_vec();
    canonical_json(value, &mut bytes);
    Sha256::digest(bytes).into()
}

fn blob_digest(key: &str) -> [u8; 32] {
    Sha256::new().chain_update(b"blob ").chain_update(key).finalize().into()
}
