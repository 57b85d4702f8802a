//! Goes on with jobs that have more to do than one step could, and forgets what was staged and never opened. It decides nothing: the step does.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::id::JobId;
use runvoy_model::job::JobStatus;

use crate::Engine;
use crate::error::EngineError;

const EVERY: Duration = Duration::from_secs(1);
/// A job that was staged and not opened within this time never will be.
const STAGED_FOR_MS: i64 = 10 * 60 * 1_000;
const JOBS_AT_ONCE: usize = 64;
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

    /// Looks when something moved, and every second, until dropped.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the dispatcher could not look");
            }
            tokio::select! {
                () = self.engine.dispatcher.notified() => {}
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    /// Does what there is to do.
    pub async fn look(&self) -> Result<(), EngineError> {
        let jobs = &self.engine.ports.jobs;
        loop {
            let waiting = jobs.attention(JOBS_AT_ONCE).await?;
            let mut all_went_on = true;
            for id in &waiting {
                if let Err(error) = self.go_on(*id).await {
                    tracing::warn!(job = %id, %error, "a job does not go on");
                    all_went_on = false;
                }
            }
            if waiting.is_empty() || !all_went_on {
                break;
            }
        }
        for id in jobs.staged_before(self.engine.now().plus_ms(-STAGED_FOR_MS), JOBS_AT_ONCE).await? {
            while jobs.job(id).await?.is_some_and(|job| job.status == JobStatus::Staged) {
                self.engine.ports.store.forget_staged(self.engine.system_step("dispatcher"), id).await?;
            }
        }
        Ok(())
    }

    async fn go_on(&self, id: JobId) -> Result<(), EngineError> {
        let store = &self.engine.ports.store;
        if let Some(job) = self.engine.ports.jobs.job(id).await?.filter(|job| job.status == JobStatus::Cancelled) {
            self.engine.kill_tasks(&job).await?;
        }
        for _ in 0..STEPS_IN_TURN {
            let job = store.advance_job(self.engine.system_step("dispatcher"), id).await?;
            self.engine.hub.work();
            if !job.attention {
                break;
            }
        }
        Ok(())
    }
}
