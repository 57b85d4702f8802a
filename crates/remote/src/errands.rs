//! How many couriers are under way: each has something that the server has not heard yet.

use std::future::Future;

use tokio::sync::watch;

/// Couriers under way.
pub(crate) struct Errands(watch::Sender<usize>);

impl Errands {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Sends somebody out.
    pub(crate) fn send(&self, errand: impl Future<Output = ()> + Send + 'static) {
        let under_way = UnderWay::new(self.0.clone());
        tokio::spawn(async move {
            errand.await;
            drop(under_way);
        });
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until nobody is.
    pub(crate) async fn done(&self) {
        self.0.subscribe().wait_for(|count| *count == 0).await.map(drop).expect("the sender is here");
    }
}

/// Counts for as long as it lives, so that an errand that fails counts no longer.
struct UnderWay(watch::Sender<usize>);

impl UnderWay {
    fn new(count: watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    async fn fail() {
        panic!("an errand that fails");
    }

    #[tokio::test]
    async fn who_is_under_way_is_waited_for_and_who_failed_is_not() {
        let (errands, may_end) = (Errands::new(), Arc::new(Notify::new()));
        errands.done().await;
        let gate = Arc::clone(&may_end);
        errands.send(async move { gate.notified().await });
        errands.send(fail());
        assert_eq!(errands.count(), 2);
        errands.0.subscribe().wait_for(|count| *count == 1).await.expect("the sender is here");
        may_end.notify_one();
        errands.done().await;
        assert_eq!(errands.count(), 0);
    }
}
