//! What a handler leaves beside its answer: how the call ended, for the log; what it asked for, for the trail; and the memory that is reserved for the answer
//! until it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use runvoy_engine::Subject;
use runvoy_ports::memory::Reservation;

/// Of one call.
#[derive(Default)]
pub(super) struct Answered {
    /// 0 where it ended well.
    status: AtomicU16,
    reserved: Mutex<Option<Arc<Reservation>>>,
    subject: Mutex<Subject>,
}

/// A part of an answer, which has reserved memory until it is sent.
struct Held {
    data: Bytes,
    _reserved: Arc<Reservation>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Answered {
    /// The HTTP status that comes nearest to what the call ended with: over gRPC the answer's own says nothing.
    pub(super) fn failed(&self, status: StatusCode) {
        self.status.store(status.as_u16(), Ordering::Relaxed);
    }

    /// The call is about this: the trail says so where it is refused.
    pub(super) fn is_about(&self, subject: Subject) {
        *self.subject.lock() = subject;
    }

    /// What the call is about.
    pub(super) fn subject(&self) -> Subject {
        self.subject.lock().clone()
    }

    /// The answer has this memory until it is sent.
    pub(super) fn holds(&self, reserved: Arc<Reservation>) {
        *self.reserved.lock() = Some(reserved);
    }

    /// The answer as it is sent, and its status for the log.
    pub(super) fn answer(&self, response: Response<Body>) -> (Response<Body>, StatusCode) {
        let status = StatusCode::from_u16(self.status.load(Ordering::Relaxed)).unwrap_or(response.status());
        let response = match self.reserved.lock().take() {
            Some(reserved) => response.map(|body| holding(body, reserved)),
            None => response,
        };
        (response, status)
    }
}

/// The body may be gone while the connection still has its bytes: each part of them holds the memory itself.
fn holding(body: Body, reserved: Arc<Reservation>) -> Body {
    Body::new(body.map_frame(move |frame| frame.map_data(|data| Bytes::from_owner(Held { data, _reserved: Arc::clone(&reserved) }))))
}

#[cfg(test)]
mod tests {
    use runvoy_ports::memory::MemoryBudget;

    use super::*;

    #[tokio::test]
    async fn an_answer_holds_its_memory_until_its_last_byte_is_gone() {
        let budget = MemoryBudget::new(64 << 10);
        let answered = Answered::default();
        answered.holds(Arc::new(budget.reserve(48 << 10).await));
        let (response, status) = answered.answer(Response::new(Body::from("all of it")));
        assert_eq!(status, StatusCode::OK);
        let mut body = response.into_body();
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert!(body.frame().await.is_none());
        drop((body, answered));
        assert_eq!(budget.free_bytes(), 16 << 10);
        assert_eq!(frame.into_data().expect("data"), "all of it");
        assert_eq!(budget.free_bytes(), 64 << 10);
    }
}
