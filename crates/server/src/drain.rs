//! What a client still sends after its request was answered. Most clients send the whole body before they read the answer; closing the connection under them
//! would make the kernel reset it, and the answer would be lost. So the rest is read and dropped, within bounds of bytes and time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response, Version, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use parking_lot::Mutex;
use tokio::time::timeout;

/// The rest of a body is read up to this size and for this long. Then the connection is closed.
const MAX_DRAINED_BYTES: usize = 64 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a request, shared by its handler and by the code that drains what the handler left of it.
#[derive(Clone)]
pub(crate) struct Unread(Arc<Mutex<Body>>);

impl Unread {
    /// Of a request.
    pub(crate) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// Takes the body to read it.
    pub(crate) fn take(&self) -> Body {
        std::mem::replace(&mut *self.0.lock(), Body::empty())
    }

    /// Puts back what was not read of it.
    pub(crate) fn put_back(&self, rest: Body) {
        *self.0.lock() = rest;
    }

    /// Drains what is left, in the background, now that there is an answer. An error answer over HTTP/1 closes the connection afterwards.
    pub(crate) fn drain<B>(&self, headers: &HeaderMap, version: Version, response: &mut Response<B>) {
        let rest = self.take();
        if rest.is_end_stream() {
            return;
        }
        let is_error = response.status().is_client_error() || response.status().is_server_error();
        if version < Version::HTTP_2 && is_error {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // A client that waits for `100 Continue` reads the answer instead, and sends nothing.
        if !headers.contains_key(header::EXPECT) {
            tokio::spawn(timeout(DRAIN_TIMEOUT, discard(rest)));
        }
    }
}

async fn discard(mut body: Body) {
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, bytes::Bytes::len);
        if bytes > MAX_DRAINED_BYTES {
            return;
        }
    }
}
