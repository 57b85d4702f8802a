//! Follows one log over WebSocket as our own clients do: batches of lines in binary frames, the rest as text.

use std::net::TcpStream;

use anyhow::{Context, Result, bail};
use runvoy_model::log::Stream;
use runvoy_wire::batch::Batch;
use runvoy_wire::frame::Control;
use runvoy_wire::logs::LogEvent;
use serde_json::Value;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::http::Endpoint;

/// An open stream.
pub struct Follower {
    socket: WebSocket<TcpStream>,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// That many lines of the command's own stdout (0: only the platform spoke).
    Stdout(u64),
    /// The end marker: there is no more.
    End,
}

impl Follower {
    /// Opens the stream that the answer to a submit names.
    pub fn open(endpoint: &Endpoint, submitted: &Value) -> Result<Follower> {
        let url = submitted["websocket_url"].as_str().context("the answer has no websocket_url")?;
        let stream = TcpStream::connect(&endpoint.address).with_context(|| format!("cannot connect to {}", endpoint.address))?;
        stream.set_nodelay(true).context("cannot turn Nagle's algorithm off")?;
        let (socket, _) =
            tungstenite::client(format!("{url}&batch=1"), stream).map_err(|error| anyhow::anyhow!("the stream was refused: {error}"))?;
        Ok(Follower { socket })
    }

    /// Waits for the next frame that says something.
    pub fn next(&mut self) -> Result<Next> {
        loop {
            match self.socket.read().context("the stream broke")? {
                Message::Text(text) => return next_of_text(&text),
                Message::Binary(frame) => {
                    let batch = Batch::decode(frame).context("a frame is no batch")?;
                    return Ok(Next::Stdout(batch.records().filter(|(_, record)| record.stream == Stream::Stdout).count() as u64));
                }
                Message::Close(_) => bail!("the stream was closed before its end marker"),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

fn next_of_text(text: &str) -> Result<Next> {
    if let Ok(control) = serde_json::from_str::<Control>(text) {
        return Ok(if matches!(control, Control::Disconnect { .. }) { Next::End } else { Next::Stdout(0) });
    }
    let event: LogEvent = serde_json::from_str(text).with_context(|| format!("`{text}` is no log event"))?;
    Ok(Next::Stdout(u64::from(event.stream == Stream::Stdout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_command_are_told_from_those_of_the_platform_and_from_the_end() {
        let line = |stream: &str| format!(r#"{{"event_id":"1","timestamp":5,"message":"x","stream":"{stream}"}}"#);
        assert_eq!(next_of_text(&line("stdout")).expect("a line"), Next::Stdout(1));
        assert_eq!(next_of_text(&line("platform")).expect("a line"), Next::Stdout(0));
        let end = serde_json::to_string(&Control::completed()).expect("plain data");
        assert_eq!(next_of_text(&end).expect("the end"), Next::End);
        assert!(next_of_text("nonsense").is_err());
    }
}
