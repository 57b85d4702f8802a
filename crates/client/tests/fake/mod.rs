//! A small server for tests: a closure answers each request, over TCP, TLS or a Unix socket; and a proxy that cuts connections.
#![expect(dead_code, reason = "each test file uses its own part")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::SinkExt as _;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use runvoy_wire::frame::Control;
use runvoy_wire::{Batch, BlockBuilder, LogEvent, LogPosition, Record, Stream, UnixMs};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        let query = self.target.split_once('?')?.1;
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// What to do with a request.
pub enum Reply {
    /// Answer.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Take the request, then close the connection without an answer.
    Cut,
    /// Upgrade, send these frames, then drop the connection.
    WebSocket(Vec<Message>),
    /// Upgrade, send these frames, then stay.
    OpenWebSocket(Vec<Message>),
}

impl Reply {
    pub fn json(status: u16, body: impl serde::Serialize) -> Self {
        let body = serde_json::to_vec(&body).expect("plain data");
        Self::Answer(status, vec![("content-type", "application/json".to_owned())], body)
    }

    pub fn error(status: u16, code: &str, error: &str) -> Self {
        Self::json(status, serde_json::json!({"error": error, "code": code, "details": ""}))
    }
}

type Handler = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// A running server. It ends with the runtime of its test.
#[derive(Clone)]
pub struct Fake {
    handler: Handler,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
}

impl Fake {
    pub fn new(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self { handler: Arc::new(handler), seen: Arc::default(), connections: Arc::default() }
    }

    /// Listens on a free loopback port.
    pub async fn tcp(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (address, fake) = (listener.local_addr().expect("bound"), self.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(fake.clone().serve(stream));
            }
        });
        address
    }

    /// Listens on a Unix socket.
    pub fn unix(&self, path: &Path) {
        let (listener, fake) = (UnixListener::bind(path).expect("a new socket"), self.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(fake.clone().serve(stream));
            }
        });
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic holds it").clone()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        *self.connections.lock().expect("no panic holds it")
    }

    pub async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        *self.connections.lock().expect("no panic holds it") += 1;
        let service = service_fn(move |request| {
            let fake = self.clone();
            async move { fake.answer(request).await }
        });
        // A client may close at any time.
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
        let upgrade = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| "a broken request")?.to_bytes();
        let seen = Seen { method: parts.method.to_string(), target: parts.uri.to_string(), headers: parts.headers, body };
        self.seen.lock().expect("no panic holds it").push(seen.clone());
        let reply = (self.handler)(&seen);
        let stay = matches!(reply, Reply::OpenWebSocket(_));
        match reply {
            Reply::Cut => Err("cut"),
            Reply::Answer(status, headers, body) => {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                Ok(response.body(Full::new(body.into())).expect("valid headers"))
            }
            Reply::WebSocket(frames) | Reply::OpenWebSocket(frames) => {
                let upgrade = upgrade.ok_or("not an upgrade")?;
                tokio::spawn(async move {
                    let Ok(upgraded) = upgrade.await else { return };
                    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
                    for frame in frames {
                        if socket.send(frame).await.is_err() {
                            return;
                        }
                    }
                    let _ = socket.flush().await;
                    if stay {
                        std::future::pending::<()>().await;
                    }
                });
                let accept = derive_accept_key(seen.header("sec-websocket-key").unwrap_or_default().as_bytes());
                let response = Response::builder().status(101).header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
                Ok(response.header(SEC_WEBSOCKET_ACCEPT, accept).body(Full::default()).expect("valid headers"))
            }
        }
    }
}

/// A proxy that cuts every connection after some number of bytes from the server, as `budgets` says.
pub async fn cutting_proxy(upstream: SocketAddr, budgets: impl Fn(usize) -> usize + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((client, _)) = listener.accept().await else { return };
            tokio::spawn(relay(client, upstream, budgets(number)));
        }
    });
    address
}

async fn relay(client: TcpStream, upstream: SocketAddr, mut budget: usize) {
    let server = TcpStream::connect(upstream).await.expect("the fake listens");
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.into_split(), server.into_split());
    let up = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = [0; 512];
    while let Ok(n @ 1..) = from_server.read(&mut buffer).await {
        let passed = n.min(budget);
        if to_client.write_all(&buffer[..passed]).await.is_err() || passed < n {
            break;
        }
        budget -= passed;
    }
    up.abort();
}

/// The log of one execution, and how a server shows it.
#[derive(Debug, Clone)]
pub struct Log {
    pub id: String,
    pub lines: Vec<(Stream, Vec<u8>, bool)>,
}

impl Log {
    pub fn batch(&self, from: u64, count: usize) -> Batch {
        let mut block = BlockBuilder::default();
        for (stream, bytes, eol) in self.lines.iter().skip(from as usize - 1).take(count) {
            block.push(Record { at: UnixMs(1_767_450_139_640), stream: *stream, cont: false, eol: *eol, bytes });
        }
        Batch { first_line: from, attempt: 1, late: false, block: block.take() }
    }

    /// Everything after `last_event_id`, in batches of `size`, then the end marker.
    pub fn frames(&self, seen: &Seen, size: usize) -> Vec<Message> {
        let mut from = seen.parameter("last_event_id").map_or(1, |id| id.parse::<u64>().expect("a line number") + 1);
        let mut frames = Vec::new();
        while from <= self.lines.len() as u64 {
            let batch = self.batch(from, size);
            from = batch.next_line();
            frames.push(Message::Binary(batch.encode()));
        }
        frames.push(Message::Text(serde_json::to_string(&Control::completed()).expect("plain data").into()));
        frames
    }

    pub fn events(&self, execution_id: &str, from: u64) -> Vec<LogEvent> {
        let batch = self.batch(from, usize::MAX);
        batch
            .records()
            .map(|(line, record)| LogEvent::from_record(LogPosition { execution_id, line, attempt: 1, late: false }, &record))
            .collect()
    }

    pub fn ndjson(&self, seen: &Seen) -> Reply {
        let from = seen.parameter("from_line").map_or(1, |line| line.parse().expect("a number"));
        let lines = self.events("e", from).iter().map(|event| serde_json::to_string(event).expect("plain data") + "\n").collect::<String>();
        Reply::Answer(200, vec![("content-type", "application/x-ndjson".to_owned())], lines.into_bytes())
    }

    pub fn logs(&self, status: &str) -> Reply {
        let url = (!["SUCCEEDED", "FAILED", "STOPPED"].contains(&status)).then(|| self.websocket_url());
        Reply::json(
            200,
            serde_json::json!({"execution_id": self.id, "events": null, "status": status, "websocket_url": url, "next_line": 1}),
        )
    }

    pub fn websocket_url(&self) -> String {
        format!("ws://public.invalid/api/v1/executions/{}/stream?token=ticket", self.id)
    }
}

/// A small generator of numbers, the same for the same seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
