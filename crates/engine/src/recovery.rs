//! What is done once at a start, before anything is leased: the in-process worker of an earlier start is known to
//! be dead, so what it left is reaped at once instead of after a watch. Where other servers work on the same store, theirs are alive for all
//! that is known here, and are left to the watch.

use runvoy_model::command::Reap;
use runvoy_model::execution::Lease;

use crate::Engine;
use crate::error::EngineError;

impl Engine {
    /// Reaps the leases of earlier starts' in-process workers. Their commands must be gone already: the runner
    /// has swept before this is called. Returns how many there were.
    pub async fn recover(&self) -> Result<usize, EngineError> {
        let mut reaped = 0;
        for open in self.ports.store.open_leases().await? {
            if !self.is_predecessors(&open.lease) {
                continue;
            }
            let message = "the server stopped while the command ran, and killed it".into();
            let (lease, extensions) = (open.lease.id, open.lease.extensions);
            let execution = open.execution;
            self.reap(Reap { execution, lease, extensions, message, log_end: 0, with_server: true, cost_micro_usd: 0 }).await?;
            reaped += 1;
        }
        Ok(reaped)
    }

    /// Whether a lease is that of an in-process worker that is known to be gone.
    pub(crate) fn is_predecessors(&self, lease: &Lease) -> bool {
        lease.in_process && lease.worker != self.worker.id && self.config.predecessors.contains(lease.worker)
    }
}
