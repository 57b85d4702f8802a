//! What can be set about logs. Sizes only; it never reads a file or the environment.

/// Limits and thresholds of logs.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// A log takes no more output beyond this many stored bytes.
    pub max_log_bytes: u64,
    /// A sealed log that is smaller stays in the table: for a month, an object costs more than the room of so few lines.
    pub pack_from_bytes: u64,
    /// So many bytes of records, before they are compressed, are one object.
    pub part_bytes: u64,
    /// Of how many open logs it is remembered how they stand. Others are read when they are written to.
    pub open_logs: usize,
    /// How many objects are kept at hand, so that reading on does not fetch them again.
    pub parts_at_hand: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { max_log_bytes: 2 << 30, pack_from_bytes: 64 << 10, part_bytes: 4 << 20, open_logs: 1024, parts_at_hand: 4 }
    }
}
