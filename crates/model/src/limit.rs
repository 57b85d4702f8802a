//! How much one step may hold, as a store says it. A store with one writer takes steps of a few hundred rows; one whose step is a transaction of
//! a service takes what that service takes. Whoever makes steps keeps to it, and what is more becomes further steps.

/// What one step of a store may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepLimits {
    /// So many rows of what moves in a job by itself are written: tasks that join the graph, edges, executions that are released.
    pub rows: usize,
    /// So many tasks of a job are written by who adds them.
    pub tasks: usize,
    /// What the data of those tasks may come to, in bytes.
    pub bytes: usize,
    /// So many executions are leased. Whoever asks for more is given so many.
    pub leases: usize,
    /// So many dead letters run again.
    pub letters: usize,
    /// So many incidents move.
    pub moves: usize,
    /// So many tasks of a job that was never opened are forgotten.
    pub forgotten: usize,
}

impl StepLimits {
    /// What a store with one writer takes: with a hundred new tasks and what comes with them a step stays below five hundred rows.
    pub const ONE_WRITER: Self =
        Self { rows: 240, tasks: 100, bytes: 1 << 20, leases: 200, letters: crate::redrive::MOST_REDRIVEN, moves: 100, forgotten: 200 };
}

impl Default for StepLimits {
    fn default() -> Self {
        Self::ONE_WRITER
    }
}
