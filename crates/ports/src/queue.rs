//! Queues: lines of executions that wait for a worker, and what was given up in each. They are no records: a queue is what its executions say.

use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;

/// What there is in one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCounts {
    /// Its name.
    pub queue: Name,
    /// Executions that wait: for a worker, for their lock, for their next attempt.
    pub depth: u64,
    /// The earliest time since when one of them could run, or was submitted where it waits for its lock. One in backoff can be later than now.
    pub oldest: Option<UnixMs>,
    /// Executions that are with a worker.
    pub in_flight: u64,
    /// Dead letters.
    pub dead: u64,
}

impl QueueCounts {
    /// A queue with nothing in it.
    pub const fn empty(queue: Name) -> Self {
        Self { queue, depth: 0, oldest: None, in_flight: 0, dead: 0 }
    }
}

/// How many executions of one user wait in one queue: for a worker, for their lock, for their next attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backlog {
    /// Who submitted them.
    pub user: String,
    /// The queue.
    pub queue: Name,
    /// How many.
    pub count: u64,
}

/// Which dead letters of a queue, by when they were given up and then by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadQuery {
    /// The queue.
    pub queue: Name,
    /// Only those that this user submitted or co-owns.
    pub owner: Option<String>,
    /// The oldest first; else the newest.
    pub oldest_first: bool,
    /// Go on after this one, also where it is no dead letter any more.
    pub after: Option<(UnixMs, ExecutionId)>,
    /// Only those that were given up at this time or before.
    pub until: Option<UnixMs>,
    /// At most this many.
    pub limit: usize,
}
