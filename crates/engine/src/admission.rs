//! Turns submits away when too many wait already: a clear refusal now is better than a slow answer later.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::EngineError;

/// Counts submits under way.
pub(crate) struct Admission {
    under_way: AtomicUsize,
    limit: usize,
}

/// One submit under way.
pub(crate) struct Admitted<'a>(&'a AtomicUsize);

impl Admission {
    pub(crate) fn new(limit: usize) -> Self {
        Self { under_way: AtomicUsize::new(0), limit }
    }

    pub(crate) fn enter(&self) -> Result<Admitted<'_>, EngineError> {
        let admitted = Admitted(&self.under_way);
        if self.under_way.fetch_add(1, Ordering::Relaxed) < self.limit { Ok(admitted) } else { Err(EngineError::Overloaded) }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_are_turned_away_until_one_leaves() {
        let admission = Admission::new(2);
        let first = admission.enter().expect("room");
        let _second = admission.enter().expect("room");
        assert!(matches!(admission.enter(), Err(EngineError::Overloaded)));
        drop(first);
        assert!(admission.enter().is_ok());
    }
}
