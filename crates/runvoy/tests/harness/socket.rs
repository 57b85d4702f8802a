//! A small blocking WebSocket client: a handshake and frames, as slow or as fast as a test wants.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::http::Http;

/// An open stream of one execution.
pub struct Socket {
    connection: BufReader<TcpStream>,
}

/// What the server sent.
#[derive(Debug, PartialEq)]
pub enum Frame {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// With its code.
    Close(u16),
}

impl Socket {
    /// Opens `path`; the status of a refusal otherwise.
    pub fn open(url: &str, key: Option<&str>, path: &str) -> Result<Self, u16> {
        let mut http = Http::new(url, key);
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let (status, _) = http.begin("GET", path, &headers, b"").map_err(|_| 0u16)?;
        if status != 101 {
            return Err(status);
        }
        Ok(Self { connection: http.into_connection() })
    }

    /// The next frame that is not a ping; `None` at the end of the connection.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            let mut head = [0; 2];
            self.connection.read_exact(&mut head).ok()?;
            let length = match head[1] & 0x7f {
                126 => {
                    let mut bytes = [0; 2];
                    self.connection.read_exact(&mut bytes).ok()?;
                    u64::from(u16::from_be_bytes(bytes))
                }
                127 => {
                    let mut bytes = [0; 8];
                    self.connection.read_exact(&mut bytes).ok()?;
                    u64::from_be_bytes(bytes)
                }
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).expect("a small frame")];
            self.connection.read_exact(&mut payload).ok()?;
            match head[0] & 0x0f {
                1 => return Some(Frame::Text(payload)),
                2 => return Some(Frame::Binary(payload)),
                8 => return Some(Frame::Close(payload.get(..2).map_or(1005, |code| u16::from_be_bytes([code[0], code[1]])))),
                9 => self.pong(),
                _ => {}
            }
        }
    }

    /// Reads a few raw bytes, as a slow client does.
    pub fn sip(&mut self, bytes: usize) -> usize {
        let mut buffer = vec![0; bytes];
        self.connection.read(&mut buffer).unwrap_or(0)
    }

    /// The next log line, or `None` after the end marker.
    pub fn next_line(&mut self) -> Option<Value> {
        match self.next()? {
            Frame::Text(text) => {
                let value: Value = serde_json::from_slice(&text).expect("JSON");
                (value["type"] != "disconnect").then_some(value)
            }
            _ => None,
        }
    }

    fn pong(&mut self) {
        // An empty masked pong.
        self.connection.get_mut().write_all(&[0x8a, 0x80, 0, 0, 0, 0]).ok();
    }
}
