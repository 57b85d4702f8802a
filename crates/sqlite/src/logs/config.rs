//! What can be set about log storage. Sizes only; it never reads a file or the environment.

use crate::reserve::DiskReserve;

/// Limits and thresholds of the log files.
#[derive(Debug, Clone)]
pub struct Config {
    /// A log takes no more records beyond this many stored bytes.
    pub max_log_bytes: u64,
    /// A journal is closed, and its logs moved, when it has reached this size. At most 2 GiB.
    pub journal_bytes: u64,
    /// A log that passes this size gets files of its own.
    pub spill_bytes: u64,
    /// A log's own files are this big.
    pub segment_bytes: u64,
    /// Appends are refused while the file system has less than this free.
    pub reserve_bytes: u64,
    /// What is given up for ends of logs when the disk is full.
    pub reserve: DiskReserve,
    /// How much of each open log is kept in memory for its followers.
    pub tail_bytes: usize,
    /// How much memory all those tails may take together.
    pub tails_bytes: usize,
    /// How many open logs are at hand at once. Others are found again in their files when they are used.
    pub open_logs: usize,
    /// How many sealed logs are remembered, so that reading one twice finds it quickly. Their files stay open.
    pub remembered_logs: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_log_bytes: 2 << 30,
            journal_bytes: 64 << 20,
            spill_bytes: 256 << 10,
            segment_bytes: 64 << 20,
            reserve_bytes: 256 << 20,
            reserve: DiskReserve::default(),
            tail_bytes: 256 << 10,
            tails_bytes: 32 << 20,
            open_logs: 1024,
            remembered_logs: 128,
        }
    }
}

impl Config {
    /// The same limits with file sizes that the format can express: offsets inside a journal are 32 bits wide.
    #[must_use]
    pub(crate) fn within_format(mut self) -> Self {
        self.journal_bytes = self.journal_bytes.min(2 << 30);
        self.segment_bytes = self.segment_bytes.min(2 << 30);
        self
    }
}
