//! How much of requests is in memory at once: large ones share a room, small ones always find their way, and little text does not become much.

use std::convert::Infallible;

use axum::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use tokio::sync::mpsc;

use crate::app::{Answer, TestApp};

const ROOM: usize = 100_000;
const RUN: &str = "/api/v1/run";
const ENQUEUE: &str = "/job.v1.JobService/EnqueueJob";
const ENQUEUE_MANY: &str = "/job.v1.JobService/EnqueueJobs";

async fn with_room(bytes: usize) -> TestApp {
    TestApp::with(|_| {}, |server| server.max_request_bytes = bytes).await
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
async fn a_body_that_comes_slowly_holds_its_room_and_small_requests_need_none() {
    let app = with_room(ROOM).await;
    let (pieces, coming) = mpsc::channel::<Bytes>(1);
    let body = futures_util::stream::unfold(coming, |mut coming| async move {
        let piece = coming.recv().await?;
        Some((Ok::<_, Infallible>(piece), coming))
    });
    let whole = run_of(ROOM - 10_000);
    let (begin, end) = whole.split_at(ROOM - 20_000);
    let slow = send(&app, RUN, Body::from_stream(body));
    let meanwhile = async {
        pieces.send(Bytes::copy_from_slice(begin.as_bytes())).await.expect("somebody reads");
        // There is place for one piece, so that the one before it was taken.
        pieces.send(Bytes::new()).await.expect("somebody reads");
        let mut statuses = Vec::new();
        for (path, body) in [(RUN, run_of(ROOM - 20_000)), (ENQUEUE, job_of(ROOM - 20_000)), (RUN, run_of(4)), (ENQUEUE, job_of(4))] {
            statuses.push(send(&app, path, body).await.status.as_u16());
        }
        pieces.send(Bytes::copy_from_slice(end.as_bytes())).await.expect("somebody reads");
        drop(pieces);
        statuses
    };
    let (slow, statuses) = tokio::join!(slow, meanwhile);
    assert_eq!((slow.status.as_u16(), statuses), (202, vec![503, 503, 202, 200]));
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
    for (room, status) in [(ROOM, StatusCode::SERVICE_UNAVAILABLE), (2 * ROOM, StatusCode::OK)] {
        let app = with_room(room).await;
        let ask = app.post("/job.v1.JobService/ListJobs").admin().header("content-encoding", "gzip");
        let answer = ask.text("application/json", packed.clone()).send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}
