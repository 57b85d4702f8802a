//! The mark of a store whose disk failed it. A failed sync may have thrown away what was written before, and a second one would
//! succeed without it, so nothing is tried again: the store answers nothing more until it is opened anew.

use std::sync::OnceLock;

use runvoy_ports::store::StoreError;

/// Why a store answers no more.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Stopped {
    #[error("its disk failed: {0}; restart the server when the disk is well")]
    Failed(String),
    #[error("it is closed")]
    Closed,
}

/// Set once, never cleared.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<Stopped>);

impl Poison {
    /// Stops the store for good.
    pub(crate) fn set(&self, why: Stopped) {
        if let Stopped::Failed(what) = &why {
            tracing::error!(error = %what, "the store's disk failed: nothing is acknowledged any more");
        }
        // Only the first reason is kept.
        let _ = self.0.set(why);
    }

    /// Refuses if the store was stopped.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.0.get() {
            None => Ok(()),
            Some(why) => Err(StoreError::Unavailable(Box::new(why.clone()))),
        }
    }
}
