//! How much of requests is in memory at once: all share one budget, each connection and user a part of it, and little text does not become much.

use std::convert::Infallible;

use axum::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::StatusCode;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use runvoy_model::role::Role;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::app::{Answer, TestApp, key_of};

const ROOM: usize = 100_000;
const RUN: &str = "/api/v1/run";
const ENQUEUE: &str = "/job.v1.JobService/EnqueueJob";
const ENQUEUE_MANY: &str = "/job.v1.JobService/EnqueueJobs";

/// A server in which large requests may hold this much; the last eighth of the budget is for small ones.
async fn with_room(bytes: usize) -> TestApp {
    TestApp::with(|_| {}, |server| server.max_request_bytes = bytes * 8 / 7).await
}

async fn send(app: &TestApp, path: &str, body: impl Into<Body>) -> Answer {
    app.post(path).admin().text("application/json", body).send().await
}

/// A request to run whose text has about so many bytes.
fn run_of(bytes: usize) -> String {
    json!({"command": "x".repeat(bytes)}).to_string()
}

fn job_of(bytes: usize) -> String {
    json!({"jobParams": {"command": "x".repeat(bytes)}}).to_string()
}

#[tokio::test]
async fn what_finds_no_room_is_refused_by_name_and_may_come_again() {
    let app = with_room(ROOM).await;
    let refused = send(&app, RUN, run_of(ROOM)).await;
    assert_eq!(refused.code(), (503, "SERVICE_UNAVAILABLE".into()));
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(send(&app, RUN, run_of(ROOM - 10_000)).await.status, StatusCode::ACCEPTED, "nothing holds the room any more");

    let refused = send(&app, ENQUEUE, job_of(ROOM)).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::SERVICE_UNAVAILABLE, Some("unavailable")));
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(send(&app, ENQUEUE, job_of(ROOM - 10_000)).await.status, StatusCode::OK, "nothing holds the room any more");
}

#[tokio::test]
async fn an_unfinished_body_holds_its_memory() {
    let app = with_room(ROOM).await;
    let (pieces, coming) = mpsc::channel::<Bytes>(1);
    let body = futures_util::stream::unfold(coming, |mut coming| async move {
        let piece = coming.recv().await?;
        Some((Ok::<_, Infallible>(piece), coming))
    });
    // A request that waits takes something itself.
    let whole = run_of(ROOM - 30_000);
    let (begin, end) = whole.split_at(ROOM - 40_000);
    let slow = send(&app, RUN, Body::from_stream(body));
    let meanwhile = async {
        pieces.send(Bytes::copy_from_slice(begin.as_bytes())).await.expect("somebody reads");
        // There is place for one piece, so that the one before it was taken.
        pieces.send(Bytes::new()).await.expect("somebody reads");
        let mut statuses = Vec::new();
        for (path, body) in [(RUN, run_of(ROOM - 20_000)), (ENQUEUE, job_of(ROOM - 20_000))] {
            statuses.push(send(&app, path, body).await.status.as_u16());
        }
        pieces.send(Bytes::copy_from_slice(end.as_bytes())).await.expect("somebody reads");
        drop(pieces);
        statuses
    };
    let (slow, statuses) = tokio::join!(slow, meanwhile);
    assert_eq!((slow.status.as_u16(), statuses), (202, vec![503, 503]));
}

#[tokio::test]
async fn little_text_does_not_become_much() {
    let app = TestApp::new().await;
    let tasks = format!(r#"{{"tasks":[{}]}}"#, vec![r#"{"taskId":"a"}"#; 250_000].join(","));
    assert_eq!(send(&app, "/api/v1/jobs", tasks).await.code(), (413, "PAYLOAD_TOO_LARGE".into()));
    let jobs = format!(r#"{{"jobs":[{}]}}"#, vec!["{}"; 250_000].join(","));
    let refused = send(&app, ENQUEUE_MANY, jobs).await;
    assert_eq!(refused.json()["code"], "resource_exhausted", "{}", refused.text());
}

#[tokio::test]
async fn what_counts_is_what_a_message_is_once_unpacked() {
    // A JSON object of 128 KiB, all of it blanks, packed into 200 bytes.
    const PACKED: &str = concat!(
        "H4sIAAAAAAACA+3BQREAAAwCoCrr6a27H2MAOQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAID5AqrunC0CAAIA"
    );
    let packed = BASE64_STANDARD.decode(PACKED).expect("base64");
    for (room, status) in [(ROOM, StatusCode::SERVICE_UNAVAILABLE), (5 * ROOM, StatusCode::OK)] {
        let app = with_room(room).await;
        let ask = app.post("/job.v1.JobService/ListJobs").admin().header("content-encoding", "gzip");
        let answer = ask.text("application/json", packed.clone()).send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

/// A request to run whose body never ends, and what sends the pieces of it.
fn unfinished(key: &str) -> (mpsc::Sender<Bytes>, http::Request<Body>) {
    let (pieces, coming) = mpsc::channel::<Bytes>(1);
    let body = futures_util::stream::unfold(coming, |mut coming| async move {
        let piece = coming.recv().await?;
        Some((Ok::<_, Infallible>(piece), coming))
    });
    let request = http::Request::post(format!("http://localhost{RUN}")).header("x-api-key", key).header("content-type", "application/json");
    (pieces, request.body(Body::from_stream(body)).expect("a request"))
}

#[tokio::test]
async fn security_29_unfinished_small_bodies_of_one_connection_are_bounded() {
    const SENT: usize = 60_000;
    let app = TestApp::with(|_| {}, |server| server.max_request_bytes = 16 << 20).await;
    let served = app.listen().await;
    let stream = TcpStream::connect(&served.address).await.expect("it listens");
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..200 {
        let (pieces, request) = unfinished(&key_of(Role::Admin));
        let answering = tokio::spawn(sender.send_request(request));
        // Refused requests drop their body; then there is nobody to send to.
        let sent = pieces.send(Bytes::from(vec![b' '; SENT])).await;
        open.push((pieces, answering, sent.is_ok()));
        sender.ready().await.expect("the connection stands");
    }
    for (pieces, answering, _) in open {
        drop(pieces);
        let status = answering.await.expect("no panic").expect("an answer").status();
        refused += usize::from(status == StatusCode::SERVICE_UNAVAILABLE);
    }
    assert!((100..200).contains(&refused), "a quarter of the budget for one connection: {refused} refused");
    assert_eq!(send(&app, RUN, run_of(4)).await.status, StatusCode::ACCEPTED, "nothing is held any more");
}

#[tokio::test]
async fn an_answer_of_413_reaches_a_client_that_sends_first() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (key, body) = (key_of(Role::Admin), vec![b'x'; 24 << 20]);
    for framing in [format!("Content-Length: {}", body.len()), "Transfer-Encoding: chunked".to_owned()] {
        let mut stream = TcpStream::connect(&served.address).await.expect("it listens");
        let head = format!("POST {RUN} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n{framing}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("it listens");
        if framing.starts_with("Transfer") {
            stream.write_all(format!("{:x}\r\n", body.len()).as_bytes()).await.expect("it reads");
            stream.write_all(&body).await.expect("it reads on after it has answered");
            stream.write_all(b"\r\n0\r\n\r\n").await.expect("it reads on after it has answered");
        } else {
            stream.write_all(&body).await.expect("it reads on after it has answered");
        }
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("the answer, and then the end");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("PAYLOAD_TOO_LARGE"), "{answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    }
}
