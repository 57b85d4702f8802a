//! NATS with JetStream, the peer that does not sync each message: its server, and a blocking client of its text protocol on one
//! connection, just enough for acknowledged publishes to a stream on disk and a durable consumer with acknowledged acknowledgements.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use memchr::memchr;
use serde_json::{Value, json};

use crate::queue::cycle::{Broker, Seen};
use crate::queue::process::Process;

/// The Debian package.
pub const PACKAGE: &str = "nats-server";
const SUBJECT: &str = "work";
const STREAM: &str = "bench";
/// Where answers of the interface, confirms, deliveries and confirmed acknowledgements come in.
const INBOXES: [&str; 4] = ["in.answer", "in.confirm", "in.delivery", "in.finish"];

/// Starts a server with its store under `dir`; says where it listens.
pub fn start(dir: &Path) -> Result<(Process, String)> {
    let address = crate::queue::process::free_address()?;
    let port = address.rsplit_once(':').context("an address has a port")?.1;
    let mut command = Command::new("nats-server");
    command.args(["--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir"]).arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Process::start("nats-server", &mut command, PACKAGE)?;
    process.wait_for(&address)?;
    Ok((process, address))
}

/// A connection.
pub struct Nats {
    stream: TcpStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    read: usize,
    unfinished: VecDeque<String>,
}

/// What came, as far as it matters.
enum Message {
    Answer(Value),
    Confirm(Value),
    Delivery(String),
    Finish,
    Other,
}

impl Nats {
    /// Connects and makes the stream: on disk, and a message goes when it is finished.
    pub fn open(address: &str) -> Result<Nats> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot turn Nagle's algorithm off")?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).context("cannot set a read timeout")?;
        let mut nats = Nats { stream, outgoing: Vec::new(), incoming: Vec::with_capacity(1 << 16), read: 0, unfinished: VecDeque::new() };
        write!(nats.outgoing, "CONNECT {{\"verbose\":false,\"pedantic\":false}}\r\n")?;
        for (number, inbox) in INBOXES.iter().enumerate() {
            write!(nats.outgoing, "SUB {inbox} {number}\r\n")?;
        }
        let stream = json!({"name": STREAM, "subjects": [SUBJECT], "storage": "file", "retention": "workqueue", "num_replicas": 1});
        nats.call(&format!("$JS.API.STREAM.CREATE.{STREAM}"), &stream)?;
        Ok(nats)
    }

    /// Has messages delivered, at most so many that are not finished.
    pub fn consume(&mut self, most: u64) -> Result<()> {
        let consumer = json!({
            "stream_name": STREAM,
            "config": {
                "durable_name": "bench", "deliver_subject": INBOXES[2], "ack_policy": "explicit",
                "max_ack_pending": most, "ack_wait": 300_000_000_000_u64,
            }
        });
        self.call(&format!("$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.bench"), &consumer)
    }

    fn call(&mut self, subject: &str, request: &Value) -> Result<()> {
        let request = request.to_string();
        write!(self.outgoing, "PUB {subject} {} {}\r\n{request}\r\n", INBOXES[0], request.len())?;
        self.send()?;
        loop {
            match self.buffered()? {
                Some(Message::Answer(answer)) => {
                    ensure!(answer.get("error").is_none(), "{subject} was refused: {answer}");
                    return Ok(());
                }
                Some(Message::Other) => {}
                Some(_) => bail!("something came before the answer to {subject}"),
                None => self.receive()?,
            }
        }
    }

    fn send(&mut self) -> Result<()> {
        self.stream.write_all(&self.outgoing).context("cannot send to nats-server")?;
        self.outgoing.clear();
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        self.incoming.drain(..self.read);
        self.read = 0;
        let filled = self.incoming.len();
        self.incoming.resize(filled + (1 << 16), 0);
        let more = self.stream.read(&mut self.incoming[filled..]).context("no answer from nats-server")?;
        self.incoming.truncate(filled + more);
        ensure!(more > 0, "nats-server closed the connection");
        Ok(())
    }

    /// The next message, if all of it is here.
    fn buffered(&mut self) -> Result<Option<Message>> {
        let rest = &self.incoming[self.read..];
        let Some(end) = memchr(b'\n', rest) else { return Ok(None) };
        let line = std::str::from_utf8(&rest[..end]).context("a line that is not UTF-8")?.trim_end();
        let mut words = line.split(' ');
        match words.next() {
            Some("MSG") => {
                let words: Vec<&str> = words.collect();
                let (inbox, reply, size) = match words[..] {
                    [_, inbox, size] => (inbox, "", size),
                    [_, inbox, reply, size] => (inbox, reply, size),
                    _ => bail!("`{line}` is no message"),
                };
                let size: usize = size.parse().with_context(|| format!("`{line}` has no size"))?;
                let Some(payload) = rest.get(end + 1..end + 1 + size).filter(|_| rest.len() >= end + 3 + size) else { return Ok(None) };
                let message = match inbox {
                    "0" => Message::Answer(serde_json::from_slice(payload)?),
                    "1" => Message::Confirm(serde_json::from_slice(payload)?),
                    "2" => Message::Delivery(reply.to_owned()),
                    _ => Message::Finish,
                };
                self.read += end + 3 + size;
                return Ok(Some(message));
            }
            Some("PING") => self.outgoing.extend(b"PONG\r\n"),
            Some("-ERR") => bail!("nats-server says {line}"),
            _ => {}
        }
        self.read += end + 1;
        Ok(Some(Message::Other))
    }
}

impl Broker for Nats {
    fn publish(&mut self, body: &[u8]) -> Result<()> {
        write!(self.outgoing, "PUB {SUBJECT} {} {}\r\n", INBOXES[1], body.len())?;
        self.outgoing.extend(body);
        self.outgoing.extend(b"\r\n");
        Ok(())
    }

    fn finish(&mut self) -> Result<bool> {
        let Some(reply) = self.unfinished.pop_front() else { return Ok(false) };
        write!(self.outgoing, "PUB {reply} {} 4\r\n+ACK\r\n", INBOXES[3])?;
        Ok(true)
    }

    fn exchange(&mut self) -> Result<Seen> {
        self.send()?;
        let mut seen = Seen::default();
        let mut came = false;
        loop {
            match self.buffered()? {
                Some(message) => {
                    came = true;
                    match message {
                        Message::Confirm(answer) => {
                            ensure!(answer.get("seq").is_some(), "a publish was refused: {answer}");
                            seen.confirmed += 1;
                        }
                        Message::Delivery(reply) => {
                            self.unfinished.push_back(reply);
                        }
                        Message::Finish => seen.finished += 1,
                        Message::Answer(_) | Message::Other => {}
                    }
                }
                None if came => return Ok(seen),
                None => self.receive()?,
            }
        }
    }
}
