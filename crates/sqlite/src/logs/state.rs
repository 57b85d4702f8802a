//! What is in memory about one log that is in use: how it stands and where its parts are. Loaded from the files when it is
//! first touched, forgotten again when it is sealed and not in use.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

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

    /// Nothing about it has to stay in memory.
    fn is_idle(&self) -> bool {
        self.is_sealed() || self.summary.next_line == 1
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

/// All logs in memory.
pub(crate) struct Registry {
    keep: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    cells: HashMap<ExecutionId, (Arc<Cell>, u64)>,
    /// Uses in order; only a cell's last one counts.
    uses: VecDeque<(ExecutionId, u64)>,
    clock: u64,
}

impl Registry {
    /// Keeps at least the open logs, and about `keep` others.
    pub(crate) fn new(keep: usize) -> Self {
        Self { keep, inner: Mutex::default() }
    }

    /// A log's cell, for use now.
    pub(crate) fn checkout(&self, id: ExecutionId) -> Arc<Cell> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if let Some((cell, _)) = inner.cells.get(&id) {
            return cell.clone();
        }
        inner.clock += 1;
        let cell = Arc::new(Cell { id, state: Mutex::new(None) });
        inner.cells.insert(id, (cell.clone(), inner.clock));
        inner.uses.push_back((id, inner.clock));
        self.shrink(inner);
        cell
    }

    /// Notes that a log was read or sealed, so that it may be forgotten when many others were used since.
    pub(crate) fn touch(&self, id: ExecutionId) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some((_, used)) = inner.cells.get_mut(&id) else { return };
        inner.clock += 1;
        *used = inner.clock;
        inner.uses.push_back((id, inner.clock));
        self.shrink(inner);
    }

    fn shrink(&self, inner: &mut Inner) {
        // A few at a time: every use adds one, so the queue never runs away from this.
        for _ in 0..4 {
            if inner.uses.len() <= self.keep {
                return;
            }
            let Some((id, used)) = inner.uses.pop_front() else { return };
            let Some((cell, last)) = inner.cells.get(&id) else { continue };
            if *last != used {
                continue;
            }
            // Cells are handed out under this lock only, so one that nobody else holds cannot come into use meanwhile.
            if Arc::strong_count(cell) > 1 {
                inner.uses.push_back((id, used));
            } else if cell.state.lock().as_ref().is_none_or(LogState::is_idle) {
                inner.cells.remove(&id);
            }
        }
    }

    /// A log's cell if it is in memory.
    pub(crate) fn peek(&self, id: ExecutionId) -> Option<Arc<Cell>> {
        self.inner.lock().cells.get(&id).map(|(cell, _)| cell.clone())
    }

    /// All cells in memory.
    pub(crate) fn all(&self) -> Vec<Arc<Cell>> {
        self.inner.lock().cells.values().map(|(cell, _)| cell.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().cells.len()
    }
}
