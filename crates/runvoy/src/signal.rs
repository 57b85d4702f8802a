//! The signals that stop a server: the first asks, the second insists.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for signals.
pub struct Stops {
    term: Signal,
    int: Signal,
}

impl Stops {
    /// Begins to catch them.
    pub fn catch() -> Result<Self> {
        let catch = |kind| signal(kind).context("cannot catch signals");
        Ok(Self { term: catch(SignalKind::terminate())?, int: catch(SignalKind::interrupt())? })
    }

    /// Comes back with the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
