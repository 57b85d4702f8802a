//! A small blocking HTTP/1.1 client over one connection that is kept open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A client of one server.
pub struct Http {
    address: String,
    key: Option<String>,
    connection: Option<BufReader<TcpStream>>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Http {
    pub fn new(url: &str, key: Option<&str>) -> Self {
        let address = url.strip_prefix("http://").expect("a plain URL").to_owned();
        Self { address, key: key.map(str::to_owned), connection: None }
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], b"").expect("an answer")
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body, &[]).expect("an answer")
    }

    pub fn try_post(&mut self, path: &str, body: &Value, headers: &[(&str, &str)]) -> std::io::Result<Answer> {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, body.to_string().as_bytes())
    }

    pub fn delete(&mut self, path: &str) -> Answer {
        self.send("DELETE", path, &[], b"").expect("an answer")
    }

    /// One request and its whole answer.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> std::io::Result<Answer> {
        let answer = self.begin(method, path, headers, body).and_then(|(status, headers)| {
            let body = self.read_body(&headers, status)?;
            Ok(Answer { status, headers, body })
        });
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    /// Sends a request and reads the head of its answer; the body is left on the connection.
    pub fn begin(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<(u16, Vec<(String, String)>)> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if let Some(key) = &self.key {
            head.push_str(&format!("x-api-key: {key}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let connection = self.connect()?;
        connection.get_mut().write_all(head.as_bytes())?;
        connection.get_mut().write_all(body)?;
        read_head(connection)
    }

    /// The connection, for what comes after a head.
    pub fn connect(&mut self) -> std::io::Result<&mut BufReader<TcpStream>> {
        if self.connection.is_none() {
            let stream = TcpStream::connect(&self.address)?;
            stream.set_nodelay(true)?;
            self.connection = Some(BufReader::new(stream));
        }
        Ok(self.connection.as_mut().expect("just made"))
    }

    /// The bare connection, after an upgrade.
    pub fn into_connection(self) -> BufReader<TcpStream> {
        self.connection.expect("a request was sent")
    }

    fn read_body(&mut self, headers: &[(String, String)], status: u16) -> std::io::Result<Vec<u8>> {
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let chunked = header("transfer-encoding") == Some("chunked");
        let length = header("content-length").map(|length| length.parse::<usize>().expect("a length"));
        let close = header("connection") == Some("close");
        let connection = self.connect()?;
        let mut body = Vec::new();
        if chunked {
            read_chunks(connection, &mut body)?;
        } else if let Some(length) = length {
            body.resize(length, 0);
            connection.read_exact(&mut body)?;
        } else if status != 204 && status != 304 {
            connection.read_to_end(&mut body)?;
        }
        if close {
            self.connection = None;
        }
        Ok(body)
    }
}

fn read_head(connection: &mut impl BufRead) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(std::io::ErrorKind::InvalidData)?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { return Ok((status, headers)) };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_chunks(connection: &mut impl BufRead, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let size = usize::from_str_radix(line.trim(), 16).map_err(|_| std::io::ErrorKind::InvalidData)?;
        let start = body.len();
        body.resize(start + size, 0);
        connection.read_exact(&mut body[start..])?;
        let mut end = [0; 2];
        connection.read_exact(&mut end)?;
        if size == 0 {
            return Ok(());
        }
    }
}
