//! Lends every attempt a uid of its own, around and around a range. A uid comes back when its last holder lets go of it: the attempt, and
//! each of its commands until the spawner has seen the end of all processes below it. So none is lent while a process of it lives,
//! and no process has to be looked for to know that.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::uid::UidRange;

/// The uids of a range, at home or lent.
#[derive(Debug)]
pub(crate) struct UidPool {
    range: UidRange,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<u32>,
    away: HashSet<u32>,
}

impl UidPool {
    pub(crate) fn new(range: UidRange) -> Arc<Self> {
        Arc::new(Self { range, state: Mutex::default() })
    }

    pub(crate) fn range(&self) -> UidRange {
        self.range
    }

    /// Lends the uid that was home the longest; `None` if all are lent. The first one is at the place given, so that a start after
    /// another does not begin with what was used just before.
    pub(crate) fn lend(self: &Arc<Self>, place: u64) -> Option<Arc<LentUid>> {
        let mut state = self.state();
        if state.away.len() >= self.range.count() {
            return None;
        }
        let mut uid = state.last.map_or_else(|| self.range.at(place), |last| self.range.after(last));
        while !state.away.insert(uid) {
            uid = self.range.after(uid);
        }
        state.last = Some(uid);
        Some(Arc::new(LentUid { uid, pool: Arc::clone(self), lost: AtomicBool::new(false) }))
    }

    /// Keeps a uid from being lent at all.
    pub(crate) fn withhold(&self, uid: u32) {
        if self.range.contains(uid) {
            self.state().away.insert(uid);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A uid that nobody else gets until this is dropped.
#[derive(Debug)]
pub(crate) struct LentUid {
    uid: u32,
    pool: Arc<UidPool>,
    lost: AtomicBool,
}

impl LentUid {
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// Something of it may be left, so nobody ever gets it again.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }
}

impl Drop for LentUid {
    fn drop(&mut self) {
        if !self.lost.load(Ordering::Relaxed) {
            self.pool.state().away.remove(&self.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Arc<UidPool> {
        UidPool::new("70000-70003".parse().expect("a range"))
    }

    fn uid(lent: Option<&Arc<LentUid>>) -> u32 {
        lent.expect("one is home").uid()
    }

    #[test]
    fn the_uid_that_came_back_last_is_lent_last() {
        let pool = pool();
        let order: Vec<u32> = (0..6).map(|_| uid(pool.lend(2).as_ref())).collect();
        assert_eq!(order, [70_002, 70_003, 70_000, 70_001, 70_002, 70_003]);
    }

    #[test]
    fn no_uid_is_lent_twice_at_once() {
        let pool = pool();
        let mut lent: Vec<_> = (0..4).map(|_| pool.lend(0).expect("one is home")).collect();
        assert!(pool.lend(0).is_none());
        let second = Arc::clone(&lent[1]);
        lent.remove(1);
        assert!(pool.lend(0).is_none(), "another holder still has it");
        drop(second);
        assert_eq!(uid(pool.lend(0).as_ref()), 70_001);
    }

    #[test]
    fn a_uid_of_which_something_may_be_left_is_never_lent_again() {
        let pool = pool();
        pool.lend(0).expect("one is home").lose();
        pool.withhold(70_002);
        pool.withhold(5);
        let order: Vec<u32> = (0..4).map(|_| uid(pool.lend(0).as_ref())).collect();
        assert_eq!(order, [70_001, 70_003, 70_001, 70_003]);
    }
}
