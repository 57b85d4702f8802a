//! The handshake that turns a request into a WebSocket.

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::fault::Fault;

/// The server's end of a stream.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Clients send pings, pongs and goodbyes; all of those are small.
const MOST_INCOMING_BYTES: usize = 4 * 1024;
/// Allocated at once for every stream, and there may be very many.
const READ_BUFFER_BYTES: usize = 1024;

/// A request that may become a WebSocket.
pub(crate) struct Upgrade {
    upgrade: OnUpgrade,
    accept: HeaderValue,
}

impl Upgrade {
    /// Takes the upgrade out of a request that asks for it.
    pub(crate) fn of(parts: &mut Parts) -> Result<Self, Fault> {
        let headers = &parts.headers;
        if !has_word(headers, &header::CONNECTION, "upgrade") || !has_word(headers, &header::UPGRADE, "websocket") {
            return Err(Fault::invalid("Upgrade", "this route is a WebSocket"));
        }
        if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err(Fault::invalid("Sec-WebSocket-Version", "must be 13"));
        }
        let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or_else(|| Fault::invalid("Sec-WebSocket-Key", "is missing"))?;
        let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).expect("base64 is ASCII");
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        let upgrade = upgrade.ok_or_else(|| Fault::invalid("Upgrade", "this connection cannot be upgraded"))?;
        Ok(Self { upgrade, accept })
    }

    /// The answer after which the connection is a WebSocket.
    pub(crate) fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        response
    }

    /// The WebSocket, once that answer is out.
    pub(crate) async fn socket(self) -> Result<Socket, hyper::Error> {
        let upgraded = self.upgrade.await?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(Some(MOST_INCOMING_BYTES))
            .max_frame_size(Some(MOST_INCOMING_BYTES));
        Ok(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await)
    }
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let words = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    words.map(str::trim).any(|found| found.eq_ignore_ascii_case(word))
}
