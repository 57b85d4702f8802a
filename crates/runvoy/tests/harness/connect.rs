//! A small blocking client of the Connect protocol in JSON: calls, streams that are read as slowly as a test wants, and uploads.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::Http;

const STREAM: (&str, &str) = ("content-type", "application/connect+json");
const VERSION: (&str, &str) = ("connect-protocol-version", "1");
/// The flag of the last frame of a stream.
const END: u8 = 2;

/// One call; the error's code otherwise.
pub fn call(url: &str, key: &str, method: &str, request: &Value) -> Result<Value, String> {
    let answer = Http::new(url, Some(key)).try_post(&path(method), request, &[VERSION]).map_err(|error| error.to_string())?;
    if answer.status == 200 { Ok(answer.json()) } else { Err(answer.text()) }
}

/// Sends all of a stream's messages; what it was answered with.
pub fn upload(url: &str, key: &str, method: &str, messages: &[Value]) -> Result<(), String> {
    let body: Vec<u8> = messages.iter().flat_map(frame).collect();
    let answer = Http::new(url, Some(key)).send("POST", &path(method), &[STREAM, VERSION], &body).map_err(|error| error.to_string())?;
    let mut frames = Frames { from: BufReader::new(&answer.body[..]) };
    while let Some((flags, payload)) = frames.next() {
        let payload: Value = serde_json::from_slice(&payload).map_err(|error| error.to_string())?;
        match payload.get("error") {
            Some(error) => return Err(error.to_string()),
            None if flags & END != 0 => return Ok(()),
            None => {}
        }
    }
    Err(format!("the stream broke: {}", answer.status))
}

fn path(method: &str) -> String {
    format!("/job.v1.{method}")
}

fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let mut frame = vec![0];
    frame.extend(u32::try_from(text.len()).expect("a small message").to_be_bytes());
    frame.extend(text.as_bytes());
    frame
}

/// A stream that the server sends.
pub struct Stream {
    frames: Frames<Chunked>,
}

impl Stream {
    /// Opens a stream.
    pub fn open(url: &str, key: &str, method: &str, request: &Value) -> std::io::Result<Self> {
        let mut http = Http::new(url, Some(key));
        let (status, headers) = http.begin("POST", &path(method), &[STREAM, VERSION], &frame(request))?;
        assert_eq!(status, 200, "a stream is refused in its last frame");
        let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        assert!(is_chunked, "a stream has no length");
        let chunked = Chunked { connection: http.into_connection(), left: 0, ended: false };
        Ok(Self { frames: Frames { from: BufReader::with_capacity(256, chunked) } })
    }

    /// Silence for so long breaks it.
    pub fn patience(self, patience: Duration) -> Self {
        let connection = self.frames.from.get_ref().connection.get_ref();
        connection.set_read_timeout(Some(patience)).expect("a connection");
        self
    }

    /// The next message as it was sent; `None` at the end of the stream, an error where it broke.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        match self.frames.next() {
            None => Err("the connection broke".to_owned()),
            Some((flags, payload)) if flags & END != 0 => {
                let end: Value = serde_json::from_slice(&payload).unwrap_or_else(|_| json!({}));
                end.get("error").map_or(Ok(None), |error| Err(error.to_string()))
            }
            Some((_, payload)) => Ok(Some(payload)),
        }
    }
}

struct Frames<R> {
    from: BufReader<R>,
}

impl<R: Read> Frames<R> {
    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.from.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut payload = vec![0; length as usize];
        self.from.read_exact(&mut payload).ok()?;
        Some((head[0], payload))
    }
}

/// A body of chunks.
struct Chunked {
    connection: BufReader<TcpStream>,
    left: usize,
    ended: bool,
}

impl Read for Chunked {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut line = String::new();
            while line.trim().is_empty() {
                line.clear();
                if self.connection.read_line(&mut line)? == 0 {
                    return Ok(0);
                }
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            self.ended = self.left == 0;
        }
        let most = into.len().min(self.left);
        if most == 0 {
            return Ok(0);
        }
        let read = self.connection.read(&mut into[..most])?;
        self.left -= read;
        Ok(read)
    }
}
