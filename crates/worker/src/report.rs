//! What a worker says of an attempt to whoever keeps it: records with their sequence, and the end. Both are sent
//! again until they are answered; a full disk is waited for a while, then given up with a reason.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::{EndAttempt, Fence};
use runvoy_model::log::Block;
use runvoy_ports::lease::{LeaseError, Leases};
use tokio::time::{Instant, sleep};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Why records could not be published.
#[derive(Debug)]
pub(crate) enum Unpublished {
    /// The lease is lost.
    Lost,
    /// The log takes no more.
    Full,
    /// Storage failed for too long.
    Failed(String),
}

/// Publishes the records of one attempt, in order.
pub(crate) struct Publisher {
    leases: Arc<dyn Leases>,
    fence: Fence,
    patience: Duration,
    next_seq: u64,
}

impl Publisher {
    pub(crate) fn new(leases: Arc<dyn Leases>, fence: Fence, patience: Duration) -> Self {
        Self { leases, fence, patience, next_seq: 1 }
    }

    /// Comes back when the records are stored.
    pub(crate) async fn publish(&mut self, block: Block) -> Result<(), Unpublished> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match self.leases.append(self.fence, self.next_seq, block.clone()).await {
                Ok(next_seq) => {
                    self.next_seq = next_seq;
                    return Ok(());
                }
                Err(LeaseError::Lost(_)) => return Err(Unpublished::Lost),
                Err(LeaseError::LogFull { .. }) => return Err(Unpublished::Full),
                Err(error @ (LeaseError::Gap { .. } | LeaseError::Refused(_))) => return Err(Unpublished::Failed(error.to_string())),
                Err(LeaseError::Unavailable(error)) if began.elapsed() > self.patience => {
                    return Err(Unpublished::Failed(error.to_string()));
                }
                Err(LeaseError::Unavailable(error)) => {
                    tracing::warn!(execution = %self.fence.execution, %error, "output waits to be stored")
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Reports the end of an attempt until somebody has heard it, or nobody wants to.
pub(crate) async fn report_end(leases: &dyn Leases, ended: EndAttempt) {
    let mut pause = FIRST_PAUSE;
    loop {
        match leases.finish(ended.clone()).await {
            Ok(_) => return,
            Err(LeaseError::Lost(why)) => {
                return tracing::warn!(execution = %ended.fence.execution, why, "the end of an attempt came too late");
            }
            Err(error) => tracing::warn!(execution = %ended.fence.execution, %error, "the end of an attempt waits to be stored"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
