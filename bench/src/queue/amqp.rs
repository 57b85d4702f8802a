//! A blocking client of AMQP 0-9-1 on one connection and one channel: just enough to publish persistent messages with confirms and to
//! consume with acknowledgements, and cheap enough not to be what is measured.

use std::collections::{BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::queue::cycle::{Broker, Seen};

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const FRAME_END: u8 = 0xCE;
const CHANNEL: u16 = 1;
/// Type, channel, size.
const FRAME_HEAD: usize = 7;
const DURABLE: u8 = 2;
/// The header's property flags with the delivery mode alone, and the mode that survives a restart.
const PERSISTENT: [u8; 3] = [0x10, 0x00, 2];

const START: (u16, u16) = (10, 10);
const TUNE: (u16, u16) = (10, 30);
const OPEN_OK: (u16, u16) = (10, 41);
const CHANNEL_OPEN_OK: (u16, u16) = (20, 11);
const QUEUE_DECLARE_OK: (u16, u16) = (50, 11);
const QOS_OK: (u16, u16) = (60, 11);
const CONSUME_OK: (u16, u16) = (60, 21);
const DELIVER: (u16, u16) = (60, 60);
const ACK: (u16, u16) = (60, 80);
const CONFIRM_SELECT_OK: (u16, u16) = (85, 11);

/// An open channel.
pub struct Amqp {
    stream: TcpStream,
    queue: String,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    read: usize,
    published: u64,
    unconfirmed: BTreeSet<u64>,
    unfinished: VecDeque<u64>,
    finished: u64,
}

/// A frame, cut out of what came.
struct Frame {
    kind: u8,
    payload: std::ops::Range<usize>,
}

impl Amqp {
    /// Connects as the user every broker starts with, declares a durable queue of a type (`classic`, `quorum`), and asks for confirms.
    pub fn open(address: &str, queue: &str, queue_type: &str) -> Result<Amqp> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot turn Nagle's algorithm off")?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).context("cannot set a read timeout")?;
        let mut amqp = Amqp {
            stream,
            queue: queue.to_owned(),
            outgoing: b"AMQP\x00\x00\x09\x01".to_vec(),
            incoming: Vec::with_capacity(1 << 16),
            read: 0,
            published: 0,
            unconfirmed: BTreeSet::new(),
            unfinished: VecDeque::new(),
            finished: 0,
        };
        amqp.greet()?;
        amqp.call(CHANNEL, (20, 10), |args| short(args, ""), CHANNEL_OPEN_OK)?;
        amqp.call(CHANNEL, (85, 10), |args| args.push(0), CONFIRM_SELECT_OK)?;
        let declare = |args: &mut Vec<u8>| {
            args.extend([0, 0]);
            short(args, queue);
            args.push(DURABLE);
            let mut table = Vec::new();
            short(&mut table, "x-queue-type");
            table.push(b'S');
            long(&mut table, queue_type.as_bytes());
            long(args, &table);
        };
        amqp.call(CHANNEL, (50, 10), declare, QUEUE_DECLARE_OK)?;
        Ok(amqp)
    }

    /// Has messages delivered, at most so many that are not finished.
    pub fn consume(&mut self, prefetch: u16) -> Result<()> {
        let qos = |args: &mut Vec<u8>| {
            args.extend([0; 4]);
            args.extend(prefetch.to_be_bytes());
            args.push(0);
        };
        self.call(CHANNEL, (60, 10), qos, QOS_OK)?;
        let queue = self.queue.clone();
        let consume = |args: &mut Vec<u8>| {
            args.extend([0, 0]);
            short(args, &queue);
            short(args, "bench");
            args.push(0);
            long(args, &[]);
        };
        self.call(CHANNEL, (60, 20), consume, CONSUME_OK)
    }

    fn greet(&mut self) -> Result<()> {
        self.send()?;
        self.expect(START)?;
        let start_ok = |args: &mut Vec<u8>| {
            long(args, &[]);
            short(args, "PLAIN");
            long(args, b"\x00guest\x00guest");
            short(args, "en_US");
        };
        self.call(0, (10, 11), start_ok, TUNE)?;
        let tune_ok = |args: &mut Vec<u8>| {
            args.extend(CHANNEL.to_be_bytes());
            args.extend(131_072_u32.to_be_bytes());
            args.extend(0_u16.to_be_bytes());
        };
        self.method(0, (10, 31), tune_ok);
        let open = |args: &mut Vec<u8>| {
            short(args, "/");
            short(args, "");
            args.push(0);
        };
        self.call(0, (10, 40), open, OPEN_OK)
    }

    fn call(&mut self, channel: u16, method: (u16, u16), args: impl FnOnce(&mut Vec<u8>), answer: (u16, u16)) -> Result<()> {
        self.method(channel, method, args);
        self.send()?;
        self.expect(answer)
    }

    fn expect(&mut self, answer: (u16, u16)) -> Result<()> {
        let frame = self.next_frame()?;
        ensure!(frame.kind == METHOD, "a frame of kind {} came instead of a method", frame.kind);
        let payload = &self.incoming[frame.payload];
        let method = method_of(payload)?;
        ensure!(method == answer, "method {method:?} came instead of {answer:?}: {}", String::from_utf8_lossy(payload));
        Ok(())
    }

    fn method(&mut self, channel: u16, method: (u16, u16), args: impl FnOnce(&mut Vec<u8>)) {
        self.frame(METHOD, channel, |payload| {
            payload.extend(method.0.to_be_bytes());
            payload.extend(method.1.to_be_bytes());
            args(payload);
        });
    }

    fn frame(&mut self, kind: u8, channel: u16, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = self.outgoing.len();
        self.outgoing.push(kind);
        self.outgoing.extend(channel.to_be_bytes());
        self.outgoing.extend([0; 4]);
        payload(&mut self.outgoing);
        let size = u32::try_from(self.outgoing.len() - start - FRAME_HEAD).expect("a frame is small");
        self.outgoing[start + 3..start + FRAME_HEAD].copy_from_slice(&size.to_be_bytes());
        self.outgoing.push(FRAME_END);
    }

    fn send(&mut self) -> Result<()> {
        self.stream.write_all(&self.outgoing).context("cannot send to the broker")?;
        self.outgoing.clear();
        Ok(())
    }

    /// The next frame, if all of it is here.
    fn buffered(&mut self) -> Result<Option<Frame>> {
        let rest = &self.incoming[self.read..];
        let Some(head) = rest.get(..FRAME_HEAD) else { return Ok(None) };
        let size = u32::from_be_bytes(head[3..].try_into().expect("four bytes")) as usize;
        let Some(end) = rest.get(FRAME_HEAD + size) else { return Ok(None) };
        ensure!(*end == FRAME_END, "a frame of the broker has no end");
        let start = self.read + FRAME_HEAD;
        let frame = Frame { kind: head[0], payload: start..start + size };
        self.read = frame.payload.end + 1;
        Ok(Some(frame))
    }

    fn next_frame(&mut self) -> Result<Frame> {
        loop {
            if let Some(frame) = self.buffered()? {
                return Ok(frame);
            }
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Result<()> {
        self.incoming.drain(..self.read);
        self.read = 0;
        let filled = self.incoming.len();
        self.incoming.resize(filled + (1 << 16), 0);
        let more = self.stream.read(&mut self.incoming[filled..]).context("no answer from the broker")?;
        self.incoming.truncate(filled + more);
        ensure!(more > 0, "the broker closed the connection");
        Ok(())
    }

    fn take(&mut self, frame: &Frame, seen: &mut Seen) -> Result<()> {
        let payload = &self.incoming[frame.payload.clone()];
        match frame.kind {
            // Of a delivery only the tag is of interest, not what it holds.
            HEADER | BODY | HEARTBEAT => {}
            _ => match method_of(payload)? {
                DELIVER => {
                    let tag = payload.get(4).map_or(0, |length| usize::from(*length)) + 5;
                    self.unfinished.push_back(number(payload, tag)?);
                }
                ACK => {
                    let tag = number(payload, 4)?;
                    let many = payload.get(12).is_some_and(|bits| bits & 1 == 1);
                    let before = self.unconfirmed.len();
                    if many {
                        self.unconfirmed = self.unconfirmed.split_off(&(tag + 1));
                    } else {
                        self.unconfirmed.remove(&tag);
                    }
                    seen.confirmed += (before - self.unconfirmed.len()) as u64;
                }
                method => bail!("method {method:?} came from the broker: {}", String::from_utf8_lossy(payload)),
            },
        }
        Ok(())
    }
}

impl Broker for Amqp {
    fn publish(&mut self, body: &[u8]) -> Result<()> {
        let queue = self.queue.clone();
        self.method(CHANNEL, (60, 40), |args| {
            args.extend([0, 0]);
            short(args, "");
            short(args, &queue);
            args.push(0);
        });
        self.frame(HEADER, CHANNEL, |payload| {
            payload.extend([0, 60, 0, 0]);
            payload.extend((body.len() as u64).to_be_bytes());
            payload.extend(PERSISTENT);
        });
        self.frame(BODY, CHANNEL, |payload| payload.extend(body));
        self.published += 1;
        self.unconfirmed.insert(self.published);
        Ok(())
    }

    fn finish(&mut self) -> Result<bool> {
        let Some(tag) = self.unfinished.pop_front() else { return Ok(false) };
        self.method(CHANNEL, ACK, |args| {
            args.extend(tag.to_be_bytes());
            args.push(0);
        });
        self.finished += 1;
        Ok(true)
    }

    /// The broker never says that an acknowledgement arrived: what was sent counts.
    fn exchange(&mut self) -> Result<Seen> {
        self.send()?;
        let mut seen = Seen { finished: std::mem::take(&mut self.finished), ..Seen::default() };
        let mut came = seen.finished > 0;
        loop {
            match self.buffered()? {
                Some(frame) => {
                    self.take(&frame, &mut seen)?;
                    came = true;
                }
                None if came => return Ok(seen),
                None => self.receive()?,
            }
        }
    }
}

fn method_of(payload: &[u8]) -> Result<(u16, u16)> {
    let pair = payload.get(..4).context("a method without its number")?;
    Ok((u16::from_be_bytes([pair[0], pair[1]]), u16::from_be_bytes([pair[2], pair[3]])))
}

fn number(payload: &[u8], at: usize) -> Result<u64> {
    let bytes = payload.get(at..at + 8).context("a method ended early")?;
    Ok(u64::from_be_bytes(bytes.try_into().expect("eight bytes")))
}

fn short(into: &mut Vec<u8>, text: &str) {
    into.push(u8::try_from(text.len()).expect("a name is short"));
    into.extend(text.as_bytes());
}

/// A long text, or a table, which is measured in the same way.
fn long(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend(u32::try_from(bytes.len()).expect("a text is not that long").to_be_bytes());
    into.extend(bytes);
}
