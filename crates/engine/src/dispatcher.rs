//! Goes on with jobs that have more to do than one step could, and forgets what was staged and never opened. It decides nothing: the step does.

use std::collections::HashSet;
use std::sync::Arc;

use runvoy_model::id::JobId;
use runvoy_model::job::JobStatus;

use crate::Engine;
use crate::error::EngineError;

/// A job that was staged and not opened within this time never will be.
const STAGED_FOR_MS: i64 = 10 * 60 * 1_000;
const JOBS_AT_ONCE: usize = 1_000;
/// So many steps for one job before the next has its turn.
const STEPS_IN_TURN: usize = 16;

/// The agent.
pub struct Dispatcher {
    engine: Arc<Engine>,
}

impl Dispatcher {
    /// A dispatcher for this engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Looks when something moved, and every so often, until dropped.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the dispatcher could not read what to do");
            }
            tokio::select! {
                () = self.engine.dispatcher.notified() => {}
                () = tokio::time::sleep(self.engine.config.poll) => {}
            }
        }
    }

    /// Does what there is to do.
    pub async fn look(&self) -> Result<(), EngineError> {
        let jobs = &self.engine.ports.jobs;
        let mut seen_to = HashSet::new();
        loop {
            let waiting = jobs.attention(JOBS_AT_ONCE).await?;
            let waiting: Vec<JobId> = waiting.into_iter().filter(|id| !seen_to.contains(id)).collect();
            if waiting.is_empty() {
                break;
            }
            for id in waiting {
                match self.go_on(id).await {
                    Ok(true) => {}
                    Ok(false) => drop(seen_to.insert(id)),
                    Err(error) => {
                        tracing::warn!(job = %id, %error, "a job does not continue");
                        seen_to.insert(id);
                    }
                }
            }
        }
        for id in jobs.staged_before(self.engine.now().plus_ms(-STAGED_FOR_MS), JOBS_AT_ONCE).await? {
            while jobs.job(id).await?.is_some_and(|job| job.status == JobStatus::Staged) {
                self.engine.ports.store.forget_staged(self.engine.system_step("dispatcher"), id).await?;
            }
        }
        Ok(())
    }

    /// Goes on with a job for a while; `false` if this look has nothing more to do for it.
    async fn go_on(&self, id: JobId) -> Result<bool, EngineError> {
        for _ in 0..STEPS_IN_TURN {
            let job = self.engine.ports.store.advance_job(self.engine.system_step("dispatcher"), id).await?;
            self.engine.hub.work();
            if job.needs_step() {
                continue;
            }
            let is_dying = job.status == JobStatus::Cancelled && job.counts.active > 0;
            return if is_dying { self.engine.kill_tasks(&job).await } else { Ok(false) };
        }
        Ok(true)
    }
}
