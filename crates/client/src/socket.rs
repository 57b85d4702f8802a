//! The WebSocket of a log, on a connection of our own, so that TLS, CA file and Unix socket are those of every other request.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::Request;
use http::header::{CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE, USER_AGENT};
use runvoy_wire::{Batch, Control, LogEvent};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::call::{ATTEMPT_LIMIT, fresh_id};
use crate::client::Client;
use crate::connection::Connection;
use crate::error::ClientError;
use crate::query::Target;
use crate::trace::{Detail, without_tokens};

/// The server pings every 30 s; longer silence means that nobody is there.
const SILENCE_LIMIT: Duration = Duration::from_secs(75);

/// An open stream of a log.
pub(crate) struct Socket {
    client: Client,
    stream: WebSocketStream<Connection>,
}

/// What the server sent.
pub(crate) enum Frame {
    Batch(Batch),
    Control(Control),
}

impl Socket {
    /// Connects and upgrades.
    pub(crate) async fn open(client: &Client, target: &Target) -> Result<Self, ClientError> {
        let request_id = fresh_id();
        let shown = without_tokens(target.as_str());
        client.trace(Detail::Brief, || format!("* GET {}{shown} as WebSocket, request id {request_id}", client.endpoint()));
        let scheme_and_host = format!("ws://{}{}", client.endpoint().authority(), client.endpoint().base());
        let request = Request::builder()
            .uri(format!("{scheme_and_host}{}", target.as_str()))
            .header(HOST, client.endpoint().authority())
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, generate_key())
            .header(USER_AGENT, concat!("runvoy/", env!("CARGO_PKG_VERSION")))
            .header("x-request-id", &request_id)
            .body(())
            .map_err(|error| client.protocol(format!("the address of the log stream: {error}"), &request_id))?;
        let upgrade = async {
            let connection = client.inner.pool.connector().connect().await?;
            client_async(request, connection).await.map_err(|error| match error {
                Error::Http(response) => {
                    let body = response.body().as_deref().unwrap_or_default();
                    ClientError::from_answer(response.status().as_u16(), body, request_id.clone(), None)
                }
                other => client.inner.pool.connector().unreachable(true, other),
            })
        };
        let (stream, _) = timeout(ATTEMPT_LIMIT, upgrade).await.unwrap_or_else(|_| Err(client.timed_out(ATTEMPT_LIMIT)))?;
        client.trace(Detail::Brief, || "* log stream open".to_owned());
        Ok(Self { client: client.clone(), stream })
    }

    /// The next frame; `None` where the connection was closed.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        loop {
            let message = timeout(SILENCE_LIMIT, self.stream.next()).await.map_err(|_| self.client.timed_out(SILENCE_LIMIT))?;
            match message {
                None | Some(Ok(Message::Close(_))) => return Ok(None),
                Some(Err(error)) => return Err(self.client.inner.pool.connector().unreachable(true, error)),
                Some(Ok(Message::Binary(data))) => return self.batch(data).map(Some),
                Some(Ok(Message::Text(text))) => return self.text(text.as_str()).map(Some),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            }
        }
    }

    /// Says goodbye, so that the server need not find out.
    pub(crate) async fn close(mut self) {
        // The server may be gone already, and then there is nobody to say it to.
        let _ = timeout(Duration::from_millis(200), self.stream.close(None)).await;
    }

    fn batch(&self, data: Bytes) -> Result<Frame, ClientError> {
        Batch::decode(data).map(Frame::Batch).map_err(|error| self.client.protocol(error.to_string(), ""))
    }

    fn text(&self, text: &str) -> Result<Frame, ClientError> {
        if let Ok(control) = serde_json::from_str(text) {
            return Ok(Frame::Control(control));
        }
        let event = serde_json::from_str::<LogEvent>(text).ok();
        event
            .and_then(|event| Batch::from_event(&event))
            .map(Frame::Batch)
            .ok_or_else(|| self.client.protocol("a frame that is neither a log line nor a control frame", ""))
    }
}
