//! What the writer has done, for whoever exports metrics. Plain numbers; this crate exports nothing itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The writer's numbers since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Requests that wait for the writer now.
    pub waiting: u64,
    /// Steps answered.
    pub steps: u64,
    /// Transactions committed; many steps share one.
    pub commits: u64,
    /// Transactions that could not be committed and were run again step by step.
    pub failed_commits: u64,
    /// Time spent in commits, syncs included.
    pub commit_us: u64,
    /// The longest commit.
    pub longest_commit_us: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Time spent in checkpoints.
    pub checkpoint_us: u64,
    /// The longest checkpoint.
    pub longest_checkpoint_us: u64,
}

/// The same, as the writer counts them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) steps: AtomicU64,
    pub(crate) failed_commits: AtomicU64,
    pub(crate) commit: Timer,
    pub(crate) checkpoint: Timer,
}

/// How often something was done and how long it took.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    count: AtomicU64,
    total_us: AtomicU64,
    longest_us: AtomicU64,
}

impl Timer {
    pub(crate) fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_us.fetch_add(us, Ordering::Relaxed);
        self.longest_us.fetch_max(us, Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn read(&self, waiting: usize) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            waiting: waiting as u64,
            steps: load(&self.steps),
            commits: load(&self.commit.count),
            failed_commits: load(&self.failed_commits),
            commit_us: load(&self.commit.total_us),
            longest_commit_us: load(&self.commit.longest_us),
            checkpoints: load(&self.checkpoint.count),
            checkpoint_us: load(&self.checkpoint.total_us),
            longest_checkpoint_us: load(&self.checkpoint.longest_us),
        }
    }
}
