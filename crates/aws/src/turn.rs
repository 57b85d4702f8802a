//! Turns: steps of this process that are about the same busy thing come one after the other, instead of all but one in vain. Between processes
//! the transaction decides; a turn only saves work.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// Whose turn it is, thing by thing.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    waiting: Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { waiting: Mutex::default() }
    }
}

/// A turn; dropping it is the next one's.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl<K: Hash + Eq> Turns<K> {
    /// Waits for one's turn. Whoever has one must not wait for another.
    pub async fn take(&self, thing: K) -> Turn {
        let line = {
            let mut waiting = self.waiting.lock();
            // What nobody waits for any more is forgotten on the way.
            if waiting.len() > 1_000 {
                waiting.retain(|_, line| line.strong_count() > 0);
            }
            let place = waiting.entry(thing).or_default();
            place.upgrade().unwrap_or_else(|| {
                let line = Arc::default();
                *place = Arc::downgrade(&line);
                line
            })
        };
        line.lock_owned().await
    }
}
