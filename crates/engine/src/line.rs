//! Who waits for work. Workers that would take the same executions stand in one line: a submit wakes one of each line that serves its queue, and one of
//! each line looks at the store for what nobody tells of, however many stand in it.
//!
//! Nothing is lost: a wake-up that finds nobody waiting is kept for whoever waits next, one that whoever got it does not use goes to the next, and
//! who was given as much as it asked for wakes the next, for there may be more.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::name::Name;
use runvoy_model::spec::Needs;
use tokio::sync::{Notify, OwnedMutexGuard};

use crate::Engine;

/// What all who stand in one line have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LineKey {
    /// The queues that they take from.
    pub queues: Vec<Name>,
    /// What they can run.
    pub serves: Vec<Needs>,
    /// What they have.
    pub labels: BTreeMap<String, String>,
}

/// Every line in which somebody stands.
#[derive(Default)]
pub(crate) struct Lines(Arc<Mutex<HashMap<LineKey, Standing>>>);

struct Standing {
    members: usize,
    place: Arc<Place>,
}

#[derive(Default)]
struct Place {
    woken: Notify,
    /// Whoever holds this looks at the store for all of the line.
    watch: Arc<tokio::sync::Mutex<()>>,
    /// Something stands in line that was not handed out when it was asked for.
    barred: AtomicBool,
}

impl Lines {
    /// There may be work in this queue; in any, where it is not known.
    pub(crate) fn wake(&self, queue: Option<&Name>) {
        for (key, standing) in self.0.lock().iter() {
            if queue.is_none_or(|queue| key.queues.contains(queue)) {
                standing.place.woken.notify_one();
            }
        }
    }

    /// Whether something stands in a line that was not handed out when it was asked for: what ends may free its place.
    pub(crate) fn is_barred(&self) -> bool {
        self.0.lock().values().any(|standing| standing.place.barred.load(Ordering::Relaxed))
    }

    fn enter(&self, key: LineKey) -> Line {
        let mut lines = self.0.lock();
        let standing = lines.entry(key.clone()).or_insert_with(|| Standing { members: 0, place: Arc::default() });
        standing.members += 1;
        Line { place: Arc::clone(&standing.place), lines: Arc::clone(&self.0), key }
    }
}

/// A place in a line, until dropped. It is taken before work is asked for, so that whatever is submitted after that finds somebody to wake.
pub struct Line {
    key: LineKey,
    place: Arc<Place>,
    lines: Arc<Mutex<HashMap<LineKey, Standing>>>,
}

/// The turn to ask for work. Whoever found some by looking keeps the others from looking until it has asked.
pub struct Turn {
    _watch: Option<OwnedMutexGuard<()>>,
}

impl Line {
    /// There may be more than the holder of this place took.
    pub fn pass_on(&self) {
        self.place.woken.notify_one();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        if let Some(standing) = lines.get_mut(&self.key) {
            standing.members -= 1;
            if standing.members == 0 {
                lines.remove(&self.key);
            }
        }
    }
}

impl Engine {
    /// A place in the line of those who would take this.
    pub fn stand_in_line(&self, key: LineKey) -> Line {
        self.hub.lines.enter(key)
    }

    /// Comes back when there may be work for this line. Whoever was given nothing the last time it asked, `empty_handed`, is not told again of what it
    /// was not given: a queue may be paused or full, or it may lack a label.
    pub async fn wait_for_work(&self, line: &Line, empty_handed: bool) -> Turn {
        tokio::select! {
            () = line.place.woken.notified() => Turn { _watch: None },
            watch = Arc::clone(&line.place.watch).lock_owned() => {
                tokio::select! {
                    () = line.place.woken.notified() => {}
                    () = self.look_for_work(line, empty_handed) => {}
                }
                Turn { _watch: Some(watch) }
            }
        }
    }

    /// Comes back when the store has something to lease. What is there and cannot be had yet is asked for after every wait: only the step that leases
    /// knows what waits for a clock that was set back.
    async fn look_for_work(&self, line: &Line, empty_handed: bool) {
        let key = &line.key;
        loop {
            let ready_at = self.ports.store.next_ready(&key.queues, &key.serves).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "the queue could not be read");
                None
            });
            let ready_in_ms = ready_at.map(|at| at.ms_since(self.now()));
            line.place.barred.store(empty_handed && ready_in_ms.is_some_and(|ms| ms <= 0), Ordering::Relaxed);
            let wait = match ready_in_ms {
                Some(..=0) if !empty_handed => return,
                Some(ms @ 1..) => self.config.poll.min(Duration::from_millis(ms.unsigned_abs())),
                Some(..=0) | None => self.config.poll,
            };
            tokio::time::sleep(wait).await;
            if ready_at.is_some() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(queue: &str) -> LineKey {
        LineKey { queues: vec![Name::new(queue).expect("a name")], serves: vec![Needs::Process], labels: BTreeMap::new() }
    }

    async fn is_woken(line: &Line) -> bool {
        tokio::time::timeout(Duration::from_millis(1), line.place.woken.notified()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_submit_wakes_one_of_each_line_that_serves_its_queue() {
        let lines = Lines::default();
        let (one, two, other) = (lines.enter(key("a")), lines.enter(key("a")), lines.enter(key("b")));
        lines.wake(Some(&Name::new("a").expect("a name")));
        assert!(is_woken(&one).await, "it is kept for whoever waits next");
        assert!(!is_woken(&two).await, "and is for one");
        assert!(!is_woken(&other).await);
        lines.wake(None);
        assert!(is_woken(&two).await && is_woken(&other).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_is_there_as_long_as_somebody_stands_in_it() {
        let lines = Lines::default();
        let (one, two) = (lines.enter(key("a")), lines.enter(key("a")));
        drop(one);
        lines.wake(None);
        assert!(is_woken(&two).await);
        drop(two);
        assert!(lines.0.lock().is_empty());
    }
}
