//! A WebSocket client over a real connection.

use futures_util::{SinkExt as _, StreamExt as _};
use runvoy_wire::{Batch, LogEvent};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// An open stream.
pub struct Follow {
    socket: WebSocketStream<TcpStream>,
}

impl Follow {
    /// Opens `path`; an error is the status of the refusal.
    pub async fn open(address: &str, path: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut request = format!("ws://{address}{path}").into_client_request().expect("a request");
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            request.headers_mut().insert(name, value.parse().expect("a value"));
        }
        let stream = TcpStream::connect(address).await.expect("the server listens");
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("no WebSocket: {error}"),
        }
    }

    /// The next frame that is not about the connection itself.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match self.socket.next().await? {
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(message) => return Some(message),
                Err(_) => return None,
            }
        }
    }

    pub async fn next_json(&mut self) -> Value {
        match self.next().await {
            Some(Message::Text(text)) => serde_json::from_str(text.as_str()).expect("JSON"),
            other => panic!("expected a text frame, got {other:?}"),
        }
    }

    pub async fn next_event(&mut self) -> LogEvent {
        serde_json::from_value(self.next_json().await).expect("a log event")
    }

    pub async fn next_batch(&mut self) -> Batch {
        match self.next().await {
            Some(Message::Binary(data)) => Batch::decode(data).expect("a batch"),
            other => panic!("expected a binary frame, got {other:?}"),
        }
    }

    /// The code that the server closes with.
    pub async fn close_code(&mut self) -> Option<u16> {
        loop {
            if let Message::Close(frame) = self.next().await? {
                return frame.map(|frame| frame.code.into());
            }
        }
    }

    pub async fn send(&mut self, message: Message) {
        self.socket.send(message).await.expect("the server listens");
    }
}
