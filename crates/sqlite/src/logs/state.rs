//! What is in memory about one log that is in use: how it stands and where its parts are. Loaded from the files when it is
//! first touched; the [registry](super::registry) forgets it again.

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_ports::log::Extent;

use super::big::Big;
use super::pack::PackName;
use super::summary::Summary;

/// A log that is in use.
pub(crate) struct LogState {
    pub(crate) id: ExecutionId,
    pub(crate) summary: Summary,
    /// The packs that hold parts of it, oldest first.
    pub(crate) packed: Vec<PackName>,
    /// Its own files; then it is complete in them.
    pub(crate) big: Option<Big>,
    /// A file that may hold more of it cannot be read.
    pub(crate) end_unknown: bool,
}

impl LogState {
    pub(crate) fn is_sealed(&self) -> bool {
        self.summary.seal.is_some()
    }

    /// It has records, and more may come.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_sealed() && self.summary.next_line > 1
    }

    /// Nothing about it has to stay in memory: loading it again finds the same. A file whose new bytes were not flushed stays open, for only a
    /// descriptor that was open when the kernel failed to write them is sure to be told.
    pub(crate) fn can_be_forgotten(&self) -> bool {
        self.is_sealed() || self.big.as_ref().is_none_or(Big::is_settled)
    }

    /// Sealed, and everything in it is from before this instant in Unix milliseconds.
    pub(crate) fn is_older_than(&self, horizon: i64) -> bool {
        self.is_sealed() && self.id.0.unix_ms() < horizon && self.summary.max_at < horizon
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent {
            next_line: self.summary.next_line,
            first_line: self.summary.first_line,
            raw_bytes: self.summary.raw_bytes,
            sealed: self.is_sealed(),
            lost_records: self.summary.lost_records(),
        }
    }
}

/// The place of a log in memory. Whoever works on the log holds its lock; `None` until it is loaded.
pub(crate) struct Cell {
    pub(crate) id: ExecutionId,
    pub(crate) state: Mutex<Option<LogState>>,
}
