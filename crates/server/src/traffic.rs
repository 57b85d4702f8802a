//! Whether anything is under way on a connection: a request whose answer has not been sent to its end. A connection without any is idle, whatever else its client
//! sends to keep it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::timeout;

/// The requests of one connection: how many are under way.
pub(crate) struct Traffic(watch::Sender<usize>);

impl Traffic {
    /// Of a new connection.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::channel(0).0))
    }

    /// One more, until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Underway {
        self.0.send_modify(|open| *open += 1);
        Underway(Arc::clone(self))
    }

    /// Whether nothing is under way now.
    pub(crate) fn is_idle(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Comes back when nothing has been under way for `limit`.
    pub(crate) async fn ceased(&self, limit: Duration) {
        let mut open = self.0.subscribe();
        loop {
            // The sender lives as long as this borrow of it, so that no wait can fail.
            let _ = open.wait_for(|open| *open == 0).await;
            if timeout(limit, open.changed()).await.is_err() {
                return;
            }
        }
    }
}

/// A request that is under way.
pub(crate) struct Underway(Arc<Traffic>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

/// The body of an answer. Its request is under way for as long as it is there.
pub(crate) struct Answer {
    body: Body,
    _underway: Underway,
}

impl Answer {
    /// The body of the answer to this request.
    pub(crate) const fn new(body: Body, underway: Underway) -> Self {
        Self { body, _underway: underway }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_so_long_without_a_request() {
        let traffic = Traffic::new();
        timeout(LIMIT * 2, traffic.ceased(LIMIT)).await.expect("nothing was ever under way");
        let underway = traffic.begin();
        assert!(timeout(LIMIT * 2, traffic.ceased(LIMIT)).await.is_err(), "something is under way");
        drop(underway);
        assert!(timeout(LIMIT / 2, traffic.ceased(LIMIT)).await.is_err(), "not yet");
        timeout(LIMIT * 2, traffic.ceased(LIMIT)).await.expect("nothing is under way");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_between_begins_the_wait_anew() {
        let traffic = Traffic::new();
        let busy = Arc::clone(&traffic);
        let requests = tokio::spawn(async move {
            for _ in 0..4 {
                tokio::time::sleep(LIMIT / 2).await;
                drop(busy.begin());
            }
        });
        traffic.ceased(LIMIT).await;
        assert!(requests.is_finished(), "the last one was half of it ago and more");
    }
}
