//! The task that packs sealed logs, one after another. Whatever it does not come to is found by the next pruning, here or elsewhere.

use std::sync::Arc;

use runvoy_model::id::ExecutionId;
use tokio::sync::{mpsc, oneshot};

use super::core::Core;

/// The way to the task, which ends when this does.
pub(super) struct Packer {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Settle(ExecutionId),
    /// Say when everything before this is done.
    Tell(oneshot::Sender<()>),
}

impl Packer {
    /// Starts the task.
    pub fn start(core: Arc<Core>) -> Self {
        let (orders, mut incoming) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(order) = incoming.recv().await {
                match order {
                    Order::Settle(id) => {
                        if let Err(error) = core.settle(id).await {
                            tracing::warn!(execution = %id, %error, "a sealed log was not packed: pruning goes on with it");
                        }
                    }
                    Order::Tell(done) => drop(done.send(())),
                }
            }
        });
        Self { orders }
    }

    /// Leaves a log to the task.
    pub fn settle(&self, id: ExecutionId) {
        // The task ends only with this, so that it is there; and what it does not do is found again.
        let _ = self.orders.send(Order::Settle(id));
    }

    /// Waits until everything left to the task so far is done, or was given up.
    pub async fn idle(&self) {
        let (done, told) = oneshot::channel();
        if self.orders.send(Order::Tell(done)).is_ok() {
            let _ = told.await;
        }
    }
}
