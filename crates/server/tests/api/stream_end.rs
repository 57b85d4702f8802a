//! The end of a stream as public web clients see it: they collect lines for up to 100 ms before they show them, and drop what they hold when
//! the disconnect notice comes. Tokio's clock is paused and the connection is in memory, so that delays are exact.

use std::time::Duration;

use futures_util::StreamExt as _;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use runvoy_model::role::Role;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::app::{TestApp, key_of};

/// How long a public client holds a line before it shows it.
const CLIENT_BUFFER: Duration = Duration::from_millis(100);
/// How long after the last line the server sends the notice.
const NOTICE_DELAY: Duration = Duration::from_millis(200);

/// What a client has at the end of a stream.
#[derive(Debug)]
struct Seen {
    /// Lines that were shown.
    shown: Vec<u64>,
    /// Lines that the notice made it drop.
    dropped: Vec<u64>,
    /// Between the last line, or the opening, and the notice.
    until_notice: Duration,
}

/// Opens a stream over a connection in memory.
async fn open(app: &TestApp, path: &str) -> WebSocketStream<DuplexStream> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let app = app.app.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let app = app.clone();
        async move { Ok::<_, std::convert::Infallible>(app.answer(request.map(axum::body::Body::new)).await) }
    });
    tokio::spawn(async move {
        let builder = auto::Builder::new(TokioExecutor::new());
        builder.serve_connection_with_upgrades(TokioIo::new(theirs), service).await.expect("a connection in memory");
    });
    let mut request = format!("ws://127.0.0.1{path}").into_client_request().expect("a request");
    request.headers_mut().insert("x-api-key", key_of(Role::Admin).parse().expect("a header"));
    client_async(request, ours).await.expect("a stream").0
}

/// Reads to the notice as the public web client does.
async fn read_like_public_client(mut socket: WebSocketStream<DuplexStream>) -> Seen {
    let (mut shown, mut held) = (Vec::new(), Vec::new());
    let mut last_frame_at = Instant::now();
    let mut show_at = None;
    loop {
        let frame = tokio::select! {
            frame = socket.next() => frame,
            () = sleep_until(show_at.unwrap_or_else(Instant::now)), if show_at.is_some() => {
                shown.append(&mut held);
                show_at = None;
                continue;
            }
        };
        let Some(Ok(Message::Text(text))) = frame else { panic!("expected a text frame, got {frame:?}") };
        let frame: Value = serde_json::from_str(text.as_str()).expect("JSON");
        if frame["type"] == "disconnect" {
            assert_eq!(frame, json!({"type": "disconnect", "reason": "execution_completed"}));
            return Seen { shown, dropped: held, until_notice: last_frame_at.elapsed() };
        }
        last_frame_at = Instant::now();
        if let Some(line) = frame["line"].as_u64() {
            held.push(line);
            show_at.get_or_insert_with(|| Instant::now() + CLIENT_BUFFER);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_buffers_lines_shows_all_of_them_before_the_notice() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let mut played = app.play().await;
    let reading = tokio::spawn(read_like_public_client(open(&app, &format!("/api/v1/executions/{id}/stream")).await));
    for line in ["one", "two", "three"] {
        played.write(&[line]).await;
    }
    played.exit(0).await;
    let seen = reading.await.expect("a client");
    assert_eq!((seen.shown, seen.dropped), (vec![1, 2, 3, 4], Vec::new()));
    assert!(seen.until_notice >= NOTICE_DELAY, "{:?}", seen.until_notice);
}

#[tokio::test(start_paused = true)]
async fn client_that_replays_an_ended_log_shows_all_of_it_before_the_notice() {
    let app = TestApp::new().await;
    let id = app.ran(&["one", "two"]).await;
    let seen = read_like_public_client(open(&app, &format!("/api/v1/executions/{id}/stream")).await).await;
    assert_eq!((seen.shown, seen.dropped), (vec![1, 2, 3], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn notice_is_immediate_where_no_line_was_sent() {
    let app = TestApp::new().await;
    let id = app.ran(&["one", "two"]).await;
    let seen = read_like_public_client(open(&app, &format!("/api/v1/executions/{id}/stream?last_event_id={id}-3")).await).await;
    assert_eq!(seen.shown.len() + seen.dropped.len(), 0, "{seen:?}");
    assert_eq!(seen.until_notice, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn notice_is_immediate_for_clients_of_status_events() {
    let app = TestApp::new().await;
    let id = app.ran(&["one", "two"]).await;
    let seen = read_like_public_client(open(&app, &format!("/api/v1/executions/{id}/stream?events=status")).await).await;
    assert_eq!(seen.dropped, [1, 2, 3], "the notice follows the lines at once");
    assert_eq!(seen.until_notice, Duration::ZERO);
}
