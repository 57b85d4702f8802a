//! The image of an attempt's container: it is there, or pulled, before anything else of the attempt starts. The pull takes nothing of the
//! command's timeout, and its progress goes to the server with the lease.

use std::time::Duration;

use runvoy_model::command::Outcome;
use runvoy_model::spec::Needs;
use runvoy_ports::runner::Container;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Attempt, Ended};

/// An image that is not there by then is being pulled, which the server is told.
const TOLD_AFTER: Duration = Duration::from_millis(500);
/// How often it is told.
const TOLD_EVERY: Duration = Duration::from_secs(2);

impl Attempt<'_> {
    /// Sees that the image is there; `None` for the worker's own environment.
    pub(super) async fn fetch_image(&mut self) -> Result<Option<Container>, Ended> {
        let spec = &self.execution.spec;
        if spec.needs() == Needs::Process {
            return Ok(None);
        }
        let Some(container) = spec.container.as_deref().cloned() else {
            let message = format!("how image {} is run was not recorded with it: submit it again", spec.image);
            return Err((Some(Outcome::StartFailed { message, exit_code: None }), None));
        };
        let (progress, pull) = watch::channel(None);
        self.pull = Some(pull);
        self.extend_at = self.extend_at.min(Instant::now() + TOLD_AFTER);
        let (worker, began) = (self.worker, Instant::now());
        let fetched = self.wait_for(worker.runner.fetch(&container, &progress)).await;
        self.pull = None;
        match fetched? {
            Ok(false) => {}
            Ok(true) => {
                self.has_pulled = true;
                self.warnings.push(format!("pulled image {} in {:.1} s", container.reference, began.elapsed().as_secs_f64()));
            }
            Err(error) => {
                let message = self.recorder.masked(&error.message);
                return Err((Some(Outcome::ImageFailed { message, category: error.category }), None));
            }
        }
        Ok(Some(Container { spec: container, lease: self.fence.lease }))
    }

    /// What is done before the command starts, in words.
    pub(super) fn preparing(&self) -> Option<String> {
        self.pull.as_ref().and_then(|pull| pull.borrow().clone())
    }

    /// How long until the next extend: a third of the lease, and sooner while there is progress to tell.
    pub(super) fn extend_every(&self) -> Duration {
        let third = self.worker.config.lease_ttl / 3;
        if self.preparing().is_some() { third.min(TOLD_EVERY) } else { third }
    }
}
