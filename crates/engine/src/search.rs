//! Searches of logs. A search reads a whole log with a pattern that anybody may choose, so it has a deadline, ends when its client leaves, and takes one of a few
//! places, of which no user has more than half.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_ports::log::{Found, Search};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// How long a search may take, with its wait for a place. Clients wait for an answer for 30 s.
const DEADLINE: Duration = Duration::from_secs(20);
/// Searches at once. Each keeps a thread busy.
const MAX_AT_ONCE: usize = 4;
/// Searches of one user at once.
const MAX_OF_USER: usize = MAX_AT_ONCE / 2;

/// The places of searches.
pub(crate) struct Searches {
    all: Arc<Semaphore>,
    /// The places of each user who has one or waits for one.
    of_users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Searches {
    /// Waits for a place. Who waits for one of their own takes none from others.
    async fn place(&self, email: &str) -> [OwnedSemaphorePermit; 2] {
        let own = self.of(email).acquire_owned().await.expect("never closed");
        let shared = Arc::clone(&self.all).acquire_owned().await.expect("never closed");
        [own, shared]
    }

    fn of(&self, email: &str) -> Arc<Semaphore> {
        let mut of_users = self.of_users.lock();
        if let Some(own) = of_users.get(email).and_then(Weak::upgrade) {
            return own;
        }
        of_users.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(MAX_OF_USER));
        of_users.insert(email.to_owned(), Arc::downgrade(&own));
        own
    }
}

impl Default for Searches {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_AT_ONCE)), of_users: Mutex::default() }
    }
}

impl Engine {
    /// Looks through a log. At its deadline the search gives what it has found; it ends early when this future is dropped.
    pub async fn search_log(&self, caller: &Caller, execution: &Execution, search: Search) -> Result<Found, EngineError> {
        let deadline = Instant::now() + DEADLINE;
        let Ok(place) = timeout_at(deadline, self.searches.place(&caller.email)).await else {
            let (wait, most) = (DEADLINE.as_secs(), MAX_OF_USER);
            return Err(EngineError::LimitReached {
                what: format!("the search did not start within {wait} s: at most {MAX_AT_ONCE} searches run at once, {most} of one user"),
                remedy: "try again when others have finished",
            });
        };
        let (logs, id, stop) = (Arc::clone(&self.ports.logs), execution.id, search.stop.clone());
        let _stops_when_dropped = stop.on_drop();
        // A task of its own: the place is free only once the search has really ended.
        let mut searching = tokio::spawn(async move {
            let _place = place;
            logs.search(id, search).await
        });
        let ended = tokio::select! {
            ended = &mut searching => ended,
            () = sleep_until(deadline) => {
                stop.set();
                searching.await
            }
        };
        Ok(ended.map_err(|error| EngineError::Internal(format!("a search failed: {error}")))??)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn users_without_searches_are_forgotten() {
        let searches = Searches::default();
        let ana = searches.place("ana@x").await;
        for n in 0..100 {
            drop(searches.place(&format!("user-{n}@x")).await);
        }
        assert!(searches.of_users.lock().len() <= 2);
        drop(ana);
        drop(searches.place("bob@x").await);
        assert!(!searches.of_users.lock().contains_key("ana@x"));
    }
}
