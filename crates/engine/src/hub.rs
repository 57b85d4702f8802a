//! Wake-ups inside one process. A wake-up is a hint: whoever waits for one also polls, so a lost one costs only time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use tokio::sync::watch;

use crate::attention::Attention;
use crate::line::Lines;

/// Who waits for what.
#[derive(Default)]
pub(crate) struct Hub {
    /// Who waits for work.
    pub(crate) lines: Lines,
    /// Workers elsewhere that listen.
    pub(crate) attention: Attention,
    watched: Arc<Mutex<HashMap<ExecutionId, watch::Sender<u64>>>>,
    /// Counts up whenever something may have been written to the event log.
    events: watch::Sender<u64>,
}

impl Hub {
    /// There may be work to lease.
    pub(crate) fn work(&self) {
        self.lines.wake(None);
        self.wrote();
    }

    /// There may be work to lease in this queue.
    pub(crate) fn work_in(&self, queue: &Name) {
        self.lines.wake(Some(queue));
        self.wrote();
    }

    /// There may be events that nobody has seen.
    pub(crate) fn wrote(&self) {
        // Nobody follows most of the time, and then this is one look at a counter.
        if self.events.receiver_count() > 0 {
            self.events.send_modify(|version| *version = version.wrapping_add(1));
        }
    }

    /// Tells of events from now on.
    pub(crate) fn events(&self) -> watch::Receiver<u64> {
        self.events.subscribe()
    }

    /// An execution or its log has changed.
    pub(crate) fn changed(&self, id: ExecutionId) {
        if let Some(sender) = self.watched.lock().get(&id) {
            sender.send_modify(|version| *version = version.wrapping_add(1));
        }
        self.wrote();
    }

    /// Watches one execution until dropped.
    pub(crate) fn watch(&self, id: ExecutionId) -> Watch {
        let receiver = self.watched.lock().entry(id).or_insert_with(|| watch::channel(0).0).subscribe();
        Watch { id, receiver: Some(receiver), watched: Arc::clone(&self.watched) }
    }
}

/// A subscription to one execution.
pub(crate) struct Watch {
    id: ExecutionId,
    receiver: Option<watch::Receiver<u64>>,
    watched: Arc<Mutex<HashMap<ExecutionId, watch::Sender<u64>>>>,
}

impl Watch {
    /// Comes back when the execution has changed since the last call.
    pub(crate) async fn changed(&mut self) {
        let receiver = self.receiver.as_mut().expect("present until dropped");
        if receiver.changed().await.is_err() {
            // The sender lives as long as any watch does; were it gone, polling would go on alone.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = self.watched.lock();
        self.receiver = None;
        if watched.get(&self.id).is_some_and(|sender| sender.receiver_count() == 0) {
            watched.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_watch_sees_a_change_and_leaves_nothing_behind() {
        let hub = Hub::default();
        let id = ExecutionId::from_bytes([1; 16]);
        let (mut one, mut two) = (hub.watch(id), hub.watch(id));
        hub.changed(id);
        one.changed().await;
        two.changed().await;
        drop(one);
        assert_eq!(hub.watched.lock().len(), 1);
        drop(two);
        assert!(hub.watched.lock().is_empty());
    }
}
