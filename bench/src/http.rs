//! A blocking HTTP/1.1 client on one kept-alive connection: just enough for the API, and cheap enough not to be what is
//! measured.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Where the server is and how it knows us.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `host:port`.
    pub address: String,
    /// The API key.
    pub key: String,
}

/// An open connection.
pub struct Connection {
    endpoint: Endpoint,
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
    /// `Retry-After`, where the server asked for it.
    pub retry_after: Option<Duration>,
    closes: bool,
}

impl Endpoint {
    /// Opens a connection.
    pub fn connect(&self) -> Result<Connection> {
        Ok(Connection { endpoint: self.clone(), stream: open(&self.address)?, request: Vec::new() })
    }
}

impl Connection {
    /// `GET path`.
    pub fn get(&mut self, path: &str) -> Result<Response> {
        self.send("GET", path, b"")
    }

    /// `POST path` with a JSON body.
    pub fn post(&mut self, path: &str, body: &[u8]) -> Result<Response> {
        self.send("POST", path, body)
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Response> {
        self.request.clear();
        let Endpoint { address, key } = &self.endpoint;
        write!(self.request, "{method} {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\n")?;
        if method == "POST" {
            write!(self.request, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())?;
        }
        self.request.extend_from_slice(b"\r\n");
        self.request.extend_from_slice(body);
        self.stream.get_mut().write_all(&self.request).with_context(|| format!("cannot send {method} {path}"))?;
        let response = read_response(&mut self.stream).with_context(|| format!("no answer to {method} {path}"))?;
        if response.closes {
            self.stream = open(&self.endpoint.address)?;
        }
        Ok(response)
    }
}

impl Response {
    /// The body as JSON, if the status is `expected`.
    pub fn json(&self, expected: u16) -> Result<Value> {
        if self.status != expected {
            bail!("expected {expected}, got {}: {}", self.status, String::from_utf8_lossy(&self.body));
        }
        serde_json::from_slice(&self.body).context("the answer is not JSON")
    }
}

fn open(address: &str) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true).context("cannot turn Nagle's algorithm off")?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).context("cannot set a read timeout")?;
    Ok(BufReader::new(stream))
}

fn read_response(stream: &mut impl BufRead) -> Result<Response> {
    let status_line = read_line(stream)?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.with_context(|| format!("`{status_line}` is no HTTP status line"))?;
    let mut response = Response { status, body: Vec::new(), retry_after: None, closes: false };
    let (mut length, mut chunked) = (0, false);
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').with_context(|| format!("`{line}` is no header"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().context("a length that is no number")?,
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "connection" => response.closes = value.eq_ignore_ascii_case("close"),
            "retry-after" => response.retry_after = value.parse().ok().map(Duration::from_secs),
            _ => {}
        }
    }
    if chunked {
        read_chunks(stream, &mut response.body)?;
    } else {
        response.body.resize(length, 0);
        stream.read_exact(&mut response.body).context("the body ended early")?;
    }
    Ok(response)
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<()> {
    loop {
        let line = read_line(stream)?;
        let length =
            usize::from_str_radix(line.split(';').next().unwrap_or_default(), 16).with_context(|| format!("`{line}` is no chunk size"))?;
        let start = body.len();
        body.resize(start + length, 0);
        stream.read_exact(&mut body[start..]).context("a chunk ended early")?;
        // The empty line after a chunk, or after the last one, since nobody sends trailers.
        read_line(stream)?;
        if length == 0 {
            return Ok(());
        }
    }
}

fn read_line(stream: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line).context("cannot read from the server")? == 0 {
        bail!("the server closed the connection");
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_known_length_is_read_to_its_end_and_no_further() {
        let mut stream: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 5\r\n\r\nhelloHTTP";
        let response = read_response(&mut stream).expect("it is a response");
        assert_eq!((response.status, response.body.as_slice(), stream), (202, b"hello".as_slice(), b"HTTP".as_slice()));
    }

    #[test]
    fn chunks_are_put_together() {
        let mut stream: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n";
        assert_eq!(read_response(&mut stream).expect("it is a response").body, b"hello!");
        assert!(stream.is_empty());
    }

    #[test]
    fn a_server_that_asks_to_wait_or_closes_is_heard() {
        let mut stream: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nConnection: close\r\n\r\n";
        let response = read_response(&mut stream).expect("it is a response");
        assert_eq!((response.retry_after, response.closes), (Some(Duration::from_secs(2)), true));
    }

    #[test]
    fn a_cut_answer_is_an_error() {
        for text in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"] {
            assert!(read_response(&mut text.as_bytes()).is_err(), "{text}");
        }
    }
}
