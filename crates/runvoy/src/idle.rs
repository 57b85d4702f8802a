//! When a server that the command line started may leave: ten seconds after its last client and its last open execution.

use std::time::Duration;

use runvoy_engine::Engine;
use tokio::time::{Instant, sleep};

const LEAVE_AFTER: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Comes back when nobody has been there for a while.
pub async fn left_alone(engine: &Engine, clients: impl Fn() -> usize) {
    let mut alone_since = Instant::now();
    loop {
        sleep(LOOK_EVERY).await;
        let busy = match engine.ports().store.counts().await {
            Ok(counts) => counts.pending + counts.active > 0,
            Err(_) => false,
        };
        if busy || clients() > 0 {
            alone_since = Instant::now();
        }
        if alone_since.elapsed() >= LEAVE_AFTER {
            return;
        }
    }
}
