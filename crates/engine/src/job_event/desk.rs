//! Which executions have been published to here, and what is known of them. A cache: what is not here is read from the logs.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;

use super::ledger::Ledger;

/// Of so many executions it is remembered how they stand: each may hold the mask of its secrets.
const MOST_LEDGERS: usize = 256;

/// The place of an execution. Whoever publishes to it holds its lock; `None` until it is read.
pub(super) type Slot = Arc<tokio::sync::Mutex<Option<Ledger>>>;

/// What this process knows of published events.
pub(crate) struct Desk {
    /// Since when it would know.
    since: UnixMs,
    slots: Mutex<HashMap<ExecutionId, Slot>>,
}

impl Desk {
    pub(crate) fn new(since: UnixMs) -> Self {
        Self { since, slots: Mutex::default() }
    }

    /// The place of an execution, from now on known to have events.
    pub(super) fn slot(&self, id: ExecutionId) -> Slot {
        let mut slots = self.slots.lock();
        if slots.len() >= MOST_LEDGERS && !slots.contains_key(&id) {
            // Those that nobody is at are read again when they are published to.
            for slot in slots.values() {
                if let Ok(mut ledger) = slot.try_lock() {
                    *ledger = None;
                }
            }
        }
        Arc::clone(slots.entry(id).or_default())
    }

    /// Whether events of it may have been published: to this process, or to one before it.
    pub(super) fn may_know(&self, id: ExecutionId) -> bool {
        id.0.unix_ms() <= self.since.0 || self.slots.lock().contains_key(&id)
    }

    /// Nothing more is expected of an execution. Whoever is at its place keeps it: the next one would stand at another, and both would write at once. What is
    /// known there goes all the same, unless it is being written.
    pub(super) fn forget(&self, id: ExecutionId) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get(&id) else { return };
        // Nobody comes to it while the map is locked.
        if Arc::strong_count(slot) == 1 {
            slots.remove(&id);
        } else if let Ok(mut ledger) = slot.try_lock() {
            *ledger = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_somebody_is_at_is_not_given_away() {
        let (desk, id) = (Desk::new(UnixMs(0)), ExecutionId::from_bytes([9; 16]));
        let mine = desk.slot(id);
        desk.forget(id);
        assert!(Arc::ptr_eq(&mine, &desk.slot(id)), "the next one waits at the same place");
        drop(mine);
        desk.forget(id);
        assert!(!desk.may_know(id));
    }
}
