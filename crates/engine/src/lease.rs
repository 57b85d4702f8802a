//! The seam of the in-process worker: leases from the store, output to the log, ends to both, in the right order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use runvoy_model::command::{EndAttempt, Extend, Extended, Fence, LeaseRequest, Refusal};
use runvoy_model::execution::Execution;
use runvoy_model::id::{LeaseId, StepId};
use runvoy_model::job::Payload;
use runvoy_model::log::Block;
use runvoy_model::step::Step;
use runvoy_ports::lease::{LeaseError, Leases, Materials};
use runvoy_ports::log::{Append, LogError};
use runvoy_ports::store::StoreError;

use crate::Engine;
use crate::error::EngineError;

/// How often a lease is asked for again after a lost answer.
const REPEATS: usize = 3;

/// Work for the worker that lives in the server's own process.
pub struct LocalLeases {
    engine: Arc<Engine>,
    /// Something stood in line when it was last looked at.
    stood_in_line: AtomicBool,
}

impl LocalLeases {
    /// Work from this engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, stood_in_line: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Leases for LocalLeases {
    async fn wait_for_work(&self) {
        let engine = &self.engine;
        let ready_at = engine.ports.store.next_ready(&engine.config.queues, &engine.worker.serves).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the queue could not be looked at");
            None
        });
        let wait_ms = ready_at.map(|at| at.ms_since(engine.now()));
        self.stood_in_line.store(wait_ms == Some(0), Ordering::Relaxed);
        let wait = match wait_ms {
            Some(0) if !engine.hub.is_barred() => return,
            Some(0) | None => engine.config.poll,
            Some(ms) => engine.config.poll.min(std::time::Duration::from_millis(ms.unsigned_abs())),
        };
        tokio::select! {
            () = engine.hub.wait_for_work() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    async fn lease(&self, max: usize) -> Result<Vec<Execution>, LeaseError> {
        let engine = &self.engine;
        let max = max.min(engine.ports.store.step_limits().leases);
        let request = LeaseRequest {
            worker: engine.worker.clone(),
            queues: engine.config.queues.clone(),
            leases: (0..max).map(|_| engine.lease_id()).collect(),
            ttl_ms: engine.config.lease_ttl_ms,
            begin: true,
            lost_after_ms: None,
        };
        // The same step is repeated: an answer that was lost must not leave executions that nobody runs.
        let step = engine.worker_step();
        let mut leased = engine.ports.store.lease(step.clone(), request.clone()).await;
        for _ in 0..REPEATS {
            if !matches!(leased, Err(StoreError::Unavailable(_))) {
                break;
            }
            leased = engine.ports.store.lease(step.clone(), request.clone()).await;
        }
        let executions = leased.map_err(lease_error)?;
        engine.hub.found_barred(executions.is_empty() && self.stood_in_line.load(Ordering::Relaxed));
        for execution in &executions {
            engine.hub.changed(execution.id);
        }
        Ok(executions)
    }

    async fn materials(&self, fence: Fence) -> Result<Materials, LeaseError> {
        self.engine.materials(fence).await
    }

    async fn extend(&self, extend: Extend) -> Result<Extended, LeaseError> {
        self.engine.ports.store.extend(self.engine.worker_step(), extend).await.map_err(lease_error)
    }

    async fn append(&self, fence: Fence, first_seq: u64, block: Block) -> Result<u64, LeaseError> {
        let (lines, bytes) = (u64::from(block.count), block.data.len() as u64);
        let append = Append { attempt: fence.attempt, first_seq: Some(first_seq), late: false, block };
        let appended = self.engine.ports.logs.append(fence.execution, append).await.map_err(log_error)?;
        metrics::counter!("runvoy_log_lines_total").increment(lines);
        metrics::counter!("runvoy_log_bytes_total").increment(bytes);
        self.engine.hub.changed(fence.execution);
        Ok(appended.next_seq)
    }

    async fn put_blob(&self, fence: Fence, bytes: Vec<u8>) -> Result<Payload, LeaseError> {
        self.engine.held(fence).await?;
        self.engine.put_blob(bytes).await.map_err(|error| match error {
            EngineError::Internal(why) => LeaseError::Refused(format!("execution {}: {why}", fence.execution)),
            error => LeaseError::Unavailable(Box::new(error)),
        })
    }

    async fn finish(&self, mut ended: EndAttempt) -> Result<Execution, LeaseError> {
        let engine = &self.engine;
        // The log is on stable storage before the record says how far it goes. What is damaged stays so, and is no reason to wait.
        ended.log_end = match engine.ports.logs.sync(ended.fence.execution).await {
            Ok(extent) => extent.next_line.saturating_sub(1),
            Err(LogError::Damaged { after_line }) => after_line,
            Err(error) => return Err(log_error(error)),
        };
        ended.cost_micro_usd = engine.config.cost_micro_usd(ended.duration_ms);
        // A lease ends once: its own id names the step, so that a repeat after a lost answer is the same step.
        let step = Step { id: finish_id(ended.fence.lease), ..engine.worker_step() };
        let execution = engine.ports.store.end_attempt(step, ended).await.map_err(lease_error)?;
        if execution.status.is_terminal() {
            engine.ended(&execution).await;
        } else {
            engine.note_queued(&execution).await;
            engine.hub.changed(execution.id);
            engine.hub.work();
        }
        Ok(execution)
    }
}

/// A step id that only the end of this lease has.
fn finish_id(lease: LeaseId) -> StepId {
    let mut bytes = *lease.as_bytes();
    for byte in &mut bytes[8..] {
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
