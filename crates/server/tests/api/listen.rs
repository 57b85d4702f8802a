//! Listeners: TCP, TLS, the Unix socket, and how they end.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use runvoy_model::role::Role;
use runvoy_server::{Limits, Listener};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::app::{Follow, Served, TestApp, key_of};

async fn get(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str, headers: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the server listens");
    let mut answer = Vec::new();
    // A TLS peer may close without saying so.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).expect("text")
}

#[tokio::test]
async fn the_unix_socket_is_its_owner_s_alone_and_leaves_nothing_behind() {
    let app = TestApp::new().await;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("sock");
    std::fs::write(&path, "left by an earlier server").expect("a file");
    let served = app.serve(Listener::unix(&path).expect("a socket"), Limits::default());
    assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    let answer = get(UnixStream::connect(&path).await.expect("it listens"), "/api/v1/whoami", "").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("admin@example.com"), "{answer}");
    served.stop().await;
    assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0);
}

/// A server with a certificate of its own.
struct Tls {
    served: Served,
    dir: tempfile::TempDir,
    roots: rustls::RootCertStore,
}

impl Tls {
    async fn of(app: &TestApp) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
        std::fs::write(&certificate, made.cert.pem()).expect("a file");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        let listener = Listener::tls("127.0.0.1:0".parse().expect("an address"), &certificate, &key).await.expect("a listener");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a root");
        Self { served: app.serve(listener, Limits::default()), dir, roots }
    }

    /// A connection of a client that trusts the certificate and speaks these protocols.
    async fn connect(&self, protocols: &[&[u8]]) -> tokio_rustls::client::TlsStream<TcpStream> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
        let mut config = config.with_root_certificates(self.roots.clone()).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(&self.served.address).await.expect("it listens");
        connector.connect("localhost".try_into().expect("a name"), stream).await.expect("a handshake")
    }
}

#[tokio::test]
async fn tls_is_spoken_with_the_given_certificate() {
    let app = TestApp::new().await;
    let tls = Tls::of(&app).await;
    let id = app.submit("true").await;
    let key = format!("X-API-Key: {}\r\n", key_of(Role::Admin));
    let answer = get(tls.connect(&[]).await, &format!("/api/v1/executions/{id}/logs"), &key).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"wss://localhost/api/"), "{answer}");
    tls.served.stop().await;

    let (nowhere, key) = (tls.dir.path().join("none.pem"), tls.dir.path().join("key.pem"));
    let address = "127.0.0.1:0".parse().expect("an address");
    assert!(Listener::tls(address, &nowhere, &key).await.is_err_and(|error| error.to_string().contains("none.pem")));
    assert!(Listener::tls(address, &key, &key).await.is_err_and(|error| error.to_string().contains("no certificate")));
}

/// A client of HTTP/2 over a connection that stands.
async fn speak_http2<S>(stream: S) -> (http2::SendRequest<Body>, impl Future<Output = hyper::Result<()>> + Send + 'static)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2")
}

fn ask(url: &str) -> http::Request<Body> {
    http::Request::get(url).header("x-api-key", key_of(Role::Admin)).body(Body::empty()).expect("a request")
}

#[tokio::test]
async fn whoever_agrees_on_http_2_by_tls_is_spoken_to_so() {
    let app = TestApp::new().await;
    let tls = Tls::of(&app).await;
    let stream = tls.connect(&[b"h2"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));

    let (mut sender, connection) = speak_http2(stream).await;
    tokio::spawn(connection);
    let id = app.submit("true").await;
    let answer = sender.send_request(ask(&format!("https://localhost/api/v1/executions/{id}/logs"))).await.expect("an answer");
    assert_eq!((answer.status(), answer.version()), (http::StatusCode::OK, http::Version::HTTP_2));
    let body = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body").to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("wss://localhost/api/"), "the host is known over HTTP/2 too");
}

#[tokio::test]
async fn a_connection_on_which_nothing_is_under_way_is_closed_and_no_other() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let served = app.serve(listener, Limits { idle_timeout: Duration::from_secs(1), ..Limits::default() });
    let stream = TcpStream::connect(&served.address).await.expect("it listens");
    let (mut busy, connection) = speak_http2(stream).await;
    tokio::spawn(connection);
    let looked_up = app.store.gets.load(Ordering::Relaxed);
    let (mut waiting, url) = (busy.clone(), format!("http://localhost/api/v1/executions/{id}/wait?timeout=600"));
    let waiting = tokio::spawn(async move { waiting.send_request(ask(&url)).await });
    // The request is under way once it has looked the execution up to wait for it.
    while app.store.gets.load(Ordering::Relaxed) < looked_up + 2 {
        tokio::task::yield_now().await;
    }
    let stream = TcpStream::connect(&served.address).await.expect("it listens");
    let (idle, connection) = speak_http2(stream).await;
    // However it ends: what matters is that it does, although its client is there and answers.
    let _ = connection.await;
    drop(idle);

    let answer = busy.send_request(ask("http://localhost/livez")).await.expect("it takes requests still");
    assert_eq!(answer.status(), http::StatusCode::OK);
    app.post(&format!("/api/v1/executions/{id}/kill")).admin().send().await;
    assert_eq!(waiting.await.expect("no panic").expect("an answer").status(), http::StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_says_nothing_or_half_of_how_http_2_begins_is_cut_off() {
    let app = TestApp::new().await;
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let served = app.serve(listener, Limits { header_timeout: Duration::from_millis(50), ..Limits::default() });
    for said in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let mut stream = TcpStream::connect(&served.address).await.expect("it listens");
        stream.write_all(said).await.expect("it listens");
        let mut answer = Vec::new();
        // However it ends: what matters is that it does.
        let _ = stream.read_to_end(&mut answer).await;
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let address = taken.address().expect("an address");
    assert!(Listener::tcp(address).await.is_err_and(|error| error.to_string() == format!("cannot listen on {address}")));
}

#[tokio::test]
async fn a_client_that_never_finishes_its_head_is_cut_off() {
    let app = TestApp::new().await;
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let served = app.serve(listener, Limits { header_timeout: Duration::from_millis(50), ..Limits::default() });
    let mut stream = TcpStream::connect(&served.address).await.expect("it listens");
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n").await.expect("it listens");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("the end");
    assert!(!String::from_utf8_lossy(&answer).contains("200"));
}

#[tokio::test]
async fn more_connections_than_allowed_wait_their_turn() {
    let app = TestApp::new().await;
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let served = app.serve(listener, Limits { max_connections: 1, ..Limits::default() });
    let mut first = TcpStream::connect(&served.address).await.expect("it listens");
    first.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("it listens");
    let mut byte = [0];
    first.read_exact(&mut byte).await.expect("an answer");
    let second = TcpStream::connect(&served.address).await.expect("the backlog takes it");
    let answer = tokio::spawn(get(second, "/livez", ""));
    drop(first);
    assert!(answer.await.expect("no panic").starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn security_29_half_open_connections_keep_nobody_out() {
    let app = TestApp::new().await;
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let served = app.serve(listener, Limits { max_connections: 50, ..Limits::default() });
    let mut half_open = Vec::new();
    for n in 0..200 {
        let mut stream = TcpStream::connect(&served.address).await.expect("the backlog takes it");
        if n % 2 == 0 {
            // It may have been closed for a newer one by now.
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost:").await;
        }
        half_open.push(stream);
    }
    for _ in 0..20 {
        let stream = TcpStream::connect(&served.address).await.expect("it listens");
        assert!(get(stream, "/livez", "").await.starts_with("HTTP/1.1 200"), "a client that sends a request is answered");
    }
    drop(half_open);
}

#[tokio::test]
async fn security_29_one_address_has_only_so_many_connections() {
    let app = TestApp::new().await;
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let served = app.serve(listener, Limits { max_connections_of_loopback: 2, ..Limits::default() });
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&served.address).await.expect("it listens");
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("it listens");
        stream.read_exact(&mut [0]).await.expect("an answer");
        kept.push(stream);
    }
    let mut refused = TcpStream::connect(&served.address).await.expect("the backlog takes it");
    assert_eq!(refused.read(&mut [0]).await.unwrap_or(0), 0, "it is closed at once");
}

#[tokio::test]
async fn a_stop_answers_what_waits_closes_streams_and_comes_back() {
    let app = TestApp::new().await;
    let body = app.post("/api/v1/run").admin().json(&json!({"command": "true"})).send().await.json();
    let id = body["execution_id"].as_str().expect("an id").to_owned();
    let stream = body["websocket_url"].as_str().and_then(|url| url.find("/api/").map(|at| url[at..].to_owned())).expect("a path");
    let served = app.listen().await;
    let mut follow = Follow::open(&served.address, &stream, &[]).await.expect("a stream");
    follow.next_event().await;
    let idle = TcpStream::connect(&served.address).await.expect("it listens");
    let mut waiting = TcpStream::connect(&served.address).await.expect("it listens");
    let looked_up = app.store.gets.load(Ordering::Relaxed);
    let request = format!("GET /api/v1/executions/{id}/wait?timeout=600 HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\n\r\n", key_of(Role::Admin));
    waiting.write_all(request.as_bytes()).await.expect("it listens");
    // The request is under way once it has looked the execution up to wait for it.
    while app.store.gets.load(Ordering::Relaxed) < looked_up + 2 {
        tokio::task::yield_now().await;
    }
    let address = served.address.clone();
    let closing = tokio::spawn(async move { follow.close_code().await });
    served.stop().await;
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).await.expect("text");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("PENDING"), "{answer}");
    assert_eq!(closing.await.expect("no panic"), Some(1001));
    assert!(TcpStream::connect(&address).await.is_err(), "nobody listens any more");
    drop(idle);
}
