//! Leases as workers use them, wherever they are: from the store, output to the log, ends to both, in the right order. The in-process worker has its own
//! seam over the same functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use runvoy_model::command::{EndAttempt, Extend, Extended, Fence, LeaseRequest, Outcome, Refusal, Worker};
use runvoy_model::execution::Execution;
use runvoy_model::id::{LeaseId, StepId, WorkerId};
use runvoy_model::job::Payload;
use runvoy_model::log::Block;
use runvoy_model::name::Name;
use runvoy_model::step::{Authority, Step};
use runvoy_ports::lease::{LeaseError, Leases, Materials};
use runvoy_ports::log::{Append, LogError};
use runvoy_ports::store::StoreError;
use sha2::{Digest, Sha256};

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::line::{Line, LineKey};
use crate::uid_guard::UidGuard;

/// How often a lease is asked for again after a lost answer.
const REPEATS: usize = 3;
/// What a lapsed attempt still has to say is taken for so long after the execution's end.
const LATE_MS: i64 = 24 * 3600 * 1000;

/// Whoever holds leases, or wants some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The worker.
    pub worker: WorkerId,
    /// Whose key it showed; nobody's where it lives inside the server, or where the server acts in its place. The store looks at their right to each
    /// step once more.
    pub caller: Option<Caller>,
}

impl Holder {
    /// A worker that needs no right but its lease.
    pub const fn trusted(worker: WorkerId) -> Self {
        Self { worker, caller: None }
    }

    fn step(&self, engine: &Engine) -> Step {
        let step = Step::worker(engine.step_id(), engine.now(), self.worker);
        match &self.caller {
            None => step,
            Some(Caller { email, key_hash, role, may_submit, request_id, .. }) => Step {
                request_id: request_id.clone(),
                authority: Some(Authority { email: email.clone(), key_hash: *key_hash, role: *role, may_submit: *may_submit }),
                ..step
            },
        }
    }
}

/// What a worker wants to lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseAsk {
    /// Who.
    pub worker: Worker,
    /// From which queues.
    pub queues: Vec<Name>,
    /// At most so many.
    pub max: usize,
    /// For how long.
    pub ttl_ms: u64,
    /// Begin in the same step: only where nothing can be lost between the lease and its holder.
    pub begin: bool,
    /// How long a lease may stand unextended before its execution counts as lost, where nobody waits for that.
    pub lost_after_ms: Option<u64>,
}

impl Engine {
    /// Leases what is ready, in order. May be none.
    pub async fn lease(&self, holder: &Holder, ask: LeaseAsk) -> Result<Vec<Execution>, LeaseError> {
        let max = ask.max.min(self.ports.store.step_limits().leases);
        // The same step is repeated: an answer that was lost must not leave executions that nobody runs.
        let step = holder.step(self);
        let request = LeaseRequest {
            worker: ask.worker,
            queues: ask.queues,
            leases: (0..max).map(|_| self.lease_id()).collect(),
            ttl_ms: ask.ttl_ms,
            begin: ask.begin,
            lost_after_ms: ask.lost_after_ms,
        };
        let mut leased = self.ports.store.lease(step.clone(), request.clone()).await;
        for _ in 0..REPEATS {
            if !matches!(leased, Err(StoreError::Unavailable(_))) {
                break;
            }
            leased = self.ports.store.lease(step.clone(), request.clone()).await;
        }
        let executions = leased.map_err(lease_error)?;
        for execution in &executions {
            self.hub.changed(execution.id);
        }
        Ok(executions)
    }

    /// Permits the start of a leased execution and counts the attempt. A repeat changes nothing.
    pub async fn begin(&self, holder: &Holder, fence: Fence) -> Result<Execution, LeaseError> {
        let execution = self.ports.store.begin(holder.step(self), fence).await.map_err(lease_error)?;
        self.hub.changed(execution.id);
        Ok(execution)
    }

    /// The same as the lease is sent to its holder: until that one says a word of it, it can be taken back uncounted.
    pub async fn send(&self, holder: &Holder, fence: Fence) -> Result<Execution, LeaseError> {
        let execution = self.ports.store.send(holder.step(self), fence).await.map_err(lease_error)?;
        self.hub.changed(execution.id);
        Ok(execution)
    }

    /// Keeps a lease alive; the answer carries a kill request.
    pub async fn extend(&self, holder: &Holder, extend: Extend) -> Result<Extended, LeaseError> {
        self.ports.store.extend(holder.step(self), extend).await.map_err(lease_error)
    }

    /// Hands back a lease that was not begun: it does not count as an attempt.
    pub async fn give_back(&self, holder: &Holder, fence: Fence) -> Result<(), LeaseError> {
        let step = Step { id: give_back_id(fence.lease), ..holder.step(self) };
        let execution = self.ports.store.give_back(step, fence).await.map_err(lease_error)?;
        self.hub.changed(execution.id);
        self.hub.work_in(&execution.spec.queue);
        Ok(())
    }

    /// Takes back an attempt that was begun for somebody who was never told of it, or wants none of it: it does not count. What cannot be taken back any more ends as that of
    /// a worker that stopped.
    pub async fn unsend(&self, holder: &Holder, fence: Fence) -> Result<(), LeaseError> {
        let step = Step { id: give_back_id(fence.lease), ..holder.step(self) };
        match self.ports.store.unsend(step, fence).await {
            Ok(execution) => {
                self.hub.changed(execution.id);
                self.hub.work_in(&execution.spec.queue);
                Ok(())
            }
            Err(StoreError::Refused(_)) => self.stop(holder, fence).await,
            Err(error) => Err(lease_error(error)),
        }
    }

    /// Hands back a lease, begun or not. What its holder has begun has ended with it, and is tried again by the rule for that.
    pub async fn release(&self, holder: &Holder, fence: Fence) -> Result<(), LeaseError> {
        let execution = self.ports.store.get(fence.execution).await.map_err(lease_error)?;
        let lease =
            execution.and_then(|execution| execution.lease).filter(|lease| lease.id == fence.lease && lease.attempt == fence.attempt);
        match lease.ok_or_else(|| LeaseError::Lost("another worker holds it now".into()))? {
            lease if !lease.begun => self.give_back(holder, fence).await,
            lease if lease.at_once && self.is_untouched(fence).await? => self.unsend(holder, fence).await,
            _ => self.stop(holder, fence).await,
        }
    }

    /// Whether nothing was kept of an attempt. What was would stand where that of the next one with its number belongs.
    async fn is_untouched(&self, fence: Fence) -> Result<bool, LeaseError> {
        for log in [fence.execution, fence.execution.event_log()] {
            if self.stand(log, fence.attempt).await.map_err(log_error)?.next_seq > 1 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn stop(&self, holder: &Holder, fence: Fence) -> Result<(), LeaseError> {
        self.finish(holder, EndAttempt::of(fence, Outcome::WorkerStopped)).await.map(drop)
    }

    /// Whether this lease lapsed; an error where nothing is taken for it any more.
    pub async fn is_late(&self, fence: Fence) -> Result<bool, LeaseError> {
        let execution = self.ports.store.get(fence.execution).await.map_err(lease_error)?;
        let execution = execution.ok_or_else(|| LeaseError::Lost("there is no such execution".into()))?;
        if holds(&execution, fence)? {
            return Ok(false);
        }
        match execution.completed_at {
            Some(ended) if self.now().ms_since(ended) > LATE_MS => Err(LeaseError::Lost("it finished too long ago".into())),
            _ => Ok(true),
        }
    }

    /// Publishes records of an attempt; returns the next sequence expected. What comes after the lease lapsed is taken for a day, and marked. No record is
    /// from a time to come: a worker whose clock is ahead would hold up the times of all that follows.
    pub async fn append(&self, fence: Fence, first_seq: u64, block: Block, late: bool) -> Result<u64, LeaseError> {
        let (lines, bytes) = (u64::from(block.count), block.data.len() as u64);
        let append = Append { attempt: fence.attempt, first_seq: Some(first_seq), late, block: block.not_after(self.now()) };
        let appended = self.ports.logs.append(fence.execution, append).await.map_err(log_error)?;
        metrics::counter!("runvoy_log_lines_total").increment(lines);
        metrics::counter!("runvoy_log_bytes_total").increment(bytes);
        self.hub.changed(fence.execution);
        Ok(appended.next_seq)
    }

    /// Puts what was published of an execution on stable storage.
    pub async fn sync_log(&self, fence: Fence) -> Result<(), LeaseError> {
        self.ports.logs.sync(fence.execution).await.map(drop).map_err(log_error)
    }

    /// Keeps what a command gave and is too large to be carried by the end of its attempt.
    pub async fn keep_output(&self, fence: Fence, bytes: Vec<u8>) -> Result<Payload, LeaseError> {
        self.held(fence).await?;
        self.put_blob(bytes).await.map_err(|error| match error {
            EngineError::Internal(why) => LeaseError::Refused(format!("execution {}: {why}", fence.execution)),
            error => LeaseError::Unavailable(Box::new(error)),
        })
    }

    /// Ends an attempt whose records have all been published.
    pub async fn finish(&self, holder: &Holder, mut ended: EndAttempt) -> Result<Execution, LeaseError> {
        if holder.worker != self.worker.id {
            self.settle_events(ended.fence.execution).await;
        }
        // The log is on stable storage before the record says how far it goes. What is damaged stays so, and is no reason to wait.
        ended.log_end = match self.ports.logs.sync(ended.fence.execution).await {
            Ok(extent) => extent.next_line.saturating_sub(1),
            Err(LogError::Damaged { after_line }) => after_line,
            Err(error) => return Err(log_error(error)),
        };
        let execution = ended.fence.execution;
        let cost = match ended.outcome {
            // Of an attempt that was lost nobody measured the time.
            Outcome::Lost { .. } | Outcome::WorkerStopped if ended.duration_ms == 0 => self.cost_until_last_heard(execution).await,
            _ => self.attempt_cost(execution, ended.duration_ms).await,
        };
        ended.cost_micro_usd = cost.map_err(lease_error)?;
        // A lease ends once: its own id and the end name the step, so that a repeat after a lost answer is the same step, and another end is not.
        let step = Step { id: finish_id(ended.fence.lease, &ended.outcome), ..holder.step(self) };
        let execution = self.ports.store.end_attempt(step, ended).await.map_err(lease_error)?;
        if execution.status.is_terminal() {
            self.ended(&execution).await;
        } else {
            self.note_queued(&execution).await;
            self.hub.changed(execution.id);
            self.hub.work_in(&execution.spec.queue);
        }
        Ok(execution)
    }
}

/// Work for the worker that lives in the server's own process.
pub struct LocalLeases {
    engine: Arc<Engine>,
    holder: Holder,
    line: Line,
    empty_handed: AtomicBool,
}

impl LocalLeases {
    /// Work from this engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        let Worker { id, serves, labels, .. } = engine.worker.clone();
        let line = engine.stand_in_line(LineKey { queues: engine.config.queues.clone(), serves, labels });
        Self { engine, holder: Holder::trusted(id), line, empty_handed: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Leases for LocalLeases {
    async fn wait_for_work(&self) {
        self.engine.while_drained(self.holder.worker).await;
        self.engine.wait_for_work(&self.line, self.empty_handed.swap(false, Ordering::Relaxed)).await;
    }

    async fn lease(&self, max: usize) -> Result<Vec<Execution>, LeaseError> {
        if self.engine.is_drained(self.holder.worker).await {
            // Whoever else stands in this line may have what it was woken for.
            self.line.pass_on();
            return Ok(Vec::new());
        }
        let (worker, config) = (self.engine.worker.clone(), &self.engine.config);
        let (queues, ttl_ms) = (config.queues.clone(), config.lease_ttl_ms);
        if self.engine.uid_guard().await.map_err(|error| LeaseError::Unavailable(Box::new(error)))? == UidGuard::Nobody {
            self.empty_handed.store(true, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        let leased = self.engine.lease(&self.holder, LeaseAsk { worker, queues, max, ttl_ms, begin: true, lost_after_ms: None }).await?;
        self.empty_handed.store(leased.is_empty(), Ordering::Relaxed);
        if leased.len() == max {
            self.line.pass_on();
        }
        Ok(self.engine.only_permitted(&self.holder, leased).await)
    }

    async fn materials(&self, fence: Fence) -> Result<Materials, LeaseError> {
        self.engine.materials(fence).await
    }

    async fn extend(&self, extend: Extend) -> Result<Extended, LeaseError> {
        self.engine.extend(&self.holder, extend).await
    }

    async fn append(&self, fence: Fence, first_seq: u64, block: Block) -> Result<u64, LeaseError> {
        self.engine.append(fence, first_seq, block, false).await
    }

    async fn put_blob(&self, fence: Fence, bytes: Vec<u8>) -> Result<Payload, LeaseError> {
        self.engine.keep_output(fence, bytes).await
    }

    async fn finish(&self, ended: EndAttempt) -> Result<Execution, LeaseError> {
        self.engine.finish(&self.holder, ended).await
    }
}

/// Whether the attempt under a fence is the one that runs; an error where there never was such an attempt. A lease that was not begun has the number of the
/// attempt that the next worker begins: what came under it would stand where that one's output belongs.
pub(crate) fn holds(execution: &Execution, fence: Fence) -> Result<bool, LeaseError> {
    match &execution.lease {
        Some(lease) if lease.attempt == fence.attempt && lease.id != fence.lease => {
            Err(LeaseError::Lost("another worker holds it now".into()))
        }
        Some(lease) if lease.attempt == fence.attempt && lease.begun => Ok(true),
        _ if fence.attempt > execution.attempt => Err(LeaseError::Lost("it has not begun".into())),
        _ => Ok(false),
    }
}

/// A step id that only this end of this lease has.
fn finish_id(lease: LeaseId, outcome: &Outcome) -> StepId {
    let outcome = serde_json::to_vec(outcome).expect("an outcome is plain data");
    let mut bytes = *lease.as_bytes();
    for (byte, mixed) in bytes[8..].iter_mut().zip(Sha256::digest(&outcome)) {
        *byte ^= mixed;
    }
    StepId::from_bytes(bytes)
}

/// A step id that only the return of this lease has.
fn give_back_id(lease: LeaseId) -> StepId {
    let mut bytes = *lease.as_bytes();
    for byte in &mut bytes[12..] {
        *byte = !*byte;
    }
    StepId::from_bytes(bytes)
}

fn lease_error(error: StoreError) -> LeaseError {
    match error {
        StoreError::Refused(Refusal::Lapsed | Refusal::Ended(_) | Refusal::NotFound) => LeaseError::Lost(error.to_string()),
        error => LeaseError::Unavailable(Box::new(error)),
    }
}

fn log_error(error: LogError) -> LeaseError {
    match error {
        LogError::Gap { expected } => LeaseError::Gap { expected },
        LogError::Full { limit_bytes } => LeaseError::LogFull { limit_bytes },
        error => LeaseError::Unavailable(Box::new(error)),
    }
}
