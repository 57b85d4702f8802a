//! The logs in memory, and which of them are forgotten: an open log that was not used for long costs no more than its place in the journals'
//! index, or nothing where it has files of its own. It never touches a file.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;

use super::state::{Cell, LogState};

/// How many of each shelf are looked at after a use. More than one, so that the bound is reached again after many could not be forgotten.
const LOOKS: usize = 4;

/// Logs of a kind, with a bound of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shelf {
    /// Open logs: each is about to be written again, sooner or later.
    Open,
    /// Sealed ones, and those not loaded yet.
    Other,
}

/// How many logs stay in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) open: usize,
    pub(crate) other: usize,
}

/// All logs in memory.
pub(crate) struct Registry {
    bounds: Bounds,
    inner: Mutex<Inner>,
}

struct Slot {
    cell: Arc<Cell>,
    stamp: u64,
    shelf: Shelf,
}

#[derive(Default)]
struct Inner {
    slots: HashMap<ExecutionId, Slot>,
    /// By last use; the first is the one to forget.
    open: BTreeMap<u64, ExecutionId>,
    other: BTreeMap<u64, ExecutionId>,
    clock: u64,
}

/// Logs that were just forgotten, so that what else is cached of them can go too.
pub(crate) type Forgotten = Vec<ExecutionId>;

impl Registry {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, inner: Mutex::default() }
    }

    /// A log's cell, for use now. As long as somebody holds it, it is not forgotten.
    pub(crate) fn checkout(&self, id: ExecutionId) -> (Arc<Cell>, Forgotten) {
        let mut inner = self.inner.lock();
        if let Some(slot) = inner.slots.get(&id) {
            return (slot.cell.clone(), Vec::new());
        }
        let cell = Arc::new(Cell { id, state: Mutex::new(None) });
        inner.slots.insert(id, Slot { cell: cell.clone(), stamp: 0, shelf: Shelf::Other });
        inner.put(id, Shelf::Other);
        let forgotten = inner.shrink(self.bounds);
        (cell, forgotten)
    }

    /// Notes that a log was used, so that it is forgotten only when many others were used since.
    pub(crate) fn touch(&self, id: ExecutionId) -> Forgotten {
        let mut inner = self.inner.lock();
        let Some(slot) = inner.slots.get(&id) else { return Vec::new() };
        // Whoever holds the lock at this moment will touch it after us.
        let shelf = slot.cell.state.try_lock().map_or(slot.shelf, |state| shelf_of(state.as_ref()));
        if slot.stamp == inner.clock && slot.shelf == shelf {
            return Vec::new();
        }
        inner.put(id, shelf);
        inner.shrink(self.bounds)
    }

    /// A log's cell if it is in memory.
    pub(crate) fn peek(&self, id: ExecutionId) -> Option<Arc<Cell>> {
        self.inner.lock().slots.get(&id).map(|slot| slot.cell.clone())
    }

    /// All cells in memory.
    pub(crate) fn all(&self) -> Vec<Arc<Cell>> {
        self.inner.lock().slots.values().map(|slot| slot.cell.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().slots.len()
    }
}

impl Inner {
    /// Makes a log the last one of a shelf.
    fn put(&mut self, id: ExecutionId, shelf: Shelf) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        self.clock += 1;
        let (old, stamp) = ((slot.shelf, slot.stamp), self.clock);
        (slot.shelf, slot.stamp) = (shelf, stamp);
        self.order(old.0).remove(&old.1);
        self.order(shelf).insert(stamp, id);
    }

    fn order(&mut self, shelf: Shelf) -> &mut BTreeMap<u64, ExecutionId> {
        match shelf {
            Shelf::Open => &mut self.open,
            Shelf::Other => &mut self.other,
        }
    }

    fn shrink(&mut self, bounds: Bounds) -> Forgotten {
        let mut forgotten = Vec::new();
        for (shelf, keep) in [(Shelf::Open, bounds.open), (Shelf::Other, bounds.other)] {
            for _ in 0..LOOKS {
                let order = self.order(shelf);
                if order.len() <= keep {
                    break;
                }
                let Some((&stamp, &id)) = order.first_key_value() else { break };
                match self.slots.get(&id).and_then(|slot| kept_on(&slot.cell, shelf)) {
                    Some(shelf) => self.put(id, shelf),
                    None => {
                        self.order(shelf).remove(&stamp);
                        self.slots.remove(&id);
                        forgotten.push(id);
                    }
                }
            }
        }
        forgotten
    }
}

/// Where a log is kept, having come to the front of `shelf`; `None` if it can be forgotten.
fn kept_on(cell: &Arc<Cell>, shelf: Shelf) -> Option<Shelf> {
    // Cells are handed out under the registry's lock only, so one that nobody else holds cannot come into use meanwhile.
    if Arc::strong_count(cell) > 1 {
        return Some(shelf);
    }
    let state = cell.state.lock();
    let state = state.as_ref()?;
    (!state.can_be_forgotten()).then(|| shelf_of(Some(state)))
}

fn shelf_of(state: Option<&LogState>) -> Shelf {
    if state.is_some_and(LogState::is_open) { Shelf::Open } else { Shelf::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::summary::Summary;

    fn id(number: u32) -> ExecutionId {
        let mut bytes = [0; 16];
        bytes[12..].copy_from_slice(&number.to_be_bytes());
        ExecutionId::from_bytes(bytes)
    }

    fn open(registry: &Registry, number: u32) -> Forgotten {
        let (cell, mut forgotten) = registry.checkout(id(number));
        let mut state = LogState { id: cell.id, summary: Summary::default(), packed: Vec::new(), big: None, end_unknown: false };
        state.summary.next_line = 2;
        *cell.state.lock() = Some(state);
        drop(cell);
        forgotten.extend(registry.touch(id(number)));
        forgotten
    }

    #[test]
    fn the_open_log_that_was_not_used_for_longest_is_forgotten() {
        let registry = Registry::new(Bounds { open: 3, other: 1 });
        for number in 0..3 {
            assert!(open(&registry, number).is_empty());
        }
        registry.touch(id(0));
        assert_eq!(open(&registry, 3), [id(1)]);
        assert!(registry.peek(id(1)).is_none() && registry.peek(id(0)).is_some());
        assert_eq!(registry.len(), 3);
    }

    #[test]
    fn a_log_in_use_is_never_forgotten() {
        let registry = Registry::new(Bounds { open: 2, other: 1 });
        open(&registry, 0);
        let (held, _) = registry.checkout(id(0));
        for number in 1..50 {
            open(&registry, number);
        }
        assert!(Arc::ptr_eq(&held, &registry.checkout(id(0)).0));
        drop(held);
        for number in 50..60 {
            open(&registry, number);
        }
        assert!(registry.peek(id(0)).is_none());
        assert_eq!(registry.len(), 2);
    }

    #[test]
    fn sealed_logs_do_not_push_out_open_ones() {
        let registry = Registry::new(Bounds { open: 2, other: 2 });
        open(&registry, 0);
        for number in 1..50 {
            drop(registry.checkout(id(number)));
            registry.touch(id(number));
        }
        assert!(registry.peek(id(0)).is_some());
        assert_eq!(registry.len(), 3);
    }
}
