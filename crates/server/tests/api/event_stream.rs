//! The event log as a stream: what is there, then what comes, each event once, whatever happens to the connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::{NOW, TestApp, key_of};
use crate::event::{ids, stored};

/// One connection that follows.
struct Stream {
    body: Body,
    rest: Vec<u8>,
    lines: VecDeque<Value>,
}

impl Stream {
    async fn open(app: &TestApp, role: Role, query: &str) -> Self {
        let request = Request::get(format!("/api/v1/events?follow=1&{query}")).header("x-api-key", key_of(role));
        let response = app.app.answer(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        Self { body: response.into_body(), rest: Vec::new(), lines: VecDeque::new() }
    }

    /// The next line; `None` at the end of the stream.
    async fn line(&mut self) -> Option<Result<Value, axum::Error>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(line));
            }
            match self.body.frame().await? {
                Ok(frame) => self.rest.extend_from_slice(&frame.into_data().expect("data")),
                Err(broken) => return Some(Err(broken)),
            }
            assert!(self.rest.ends_with(b"\n"), "lines are written whole");
            let text = String::from_utf8(std::mem::take(&mut self.rest)).expect("text");
            self.lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON")));
        }
    }

    async fn good_line(&mut self) -> Value {
        self.line().await.expect("it goes on").expect("a good line")
    }

    /// The next line that is an event.
    async fn event(&mut self) -> Value {
        loop {
            let line = self.good_line().await;
            assert!(line["cursor"].is_string(), "{line}");
            if line.get("eventType").is_some() {
                return line;
            }
            assert_eq!(line.as_object().map(serde_json::Map::len), Some(1), "a mark says nothing else: {line}");
        }
    }
}

#[tokio::test]
async fn a_stream_begins_now_or_in_the_past_and_goes_on() {
    let app = TestApp::new().await;
    let first = app.submit("true").await;
    app.clock.advance(3_600_000);
    let second = app.submit("true").await;
    let mut now = Stream::open(&app, Role::Admin, "type=Task%20Pending").await;
    let mut past = Stream::open(&app, Role::Admin, "type=Task%20Pending&from=2026-01-03T15:00:00Z").await;
    let mut beginning = Stream::open(&app, Role::Admin, "type=Task%20Pending&from=2020-01-01T00:00:00Z").await;
    for stream in [&mut now, &mut past, &mut beginning] {
        let mark = stream.good_line().await;
        assert!(mark["cursor"].is_string() && mark.get("eventType").is_none(), "a mark comes first: {mark}");
    }
    assert_eq!(beginning.event().await["entityId"], first.as_str());
    assert_eq!(beginning.event().await["entityId"], second.as_str());
    assert_eq!(past.event().await["entityId"], second.as_str());
    let third = app.submit("true").await;
    for stream in [&mut now, &mut past, &mut beginning] {
        let event = stream.event().await;
        assert_eq!((&event["entityId"], &event["PK"]), (&json!(third), &json!("TENANT#default")));
        assert_eq!(event["timestamp"], NOW + 3_600_000);
    }
}

#[tokio::test]
async fn a_stream_names_the_process_of_a_start_and_keeps_the_order() {
    let app = TestApp::new().await;
    let mut stream = Stream::open(&app, Role::Viewer, "").await;
    let mut starts = Stream::open(&app, Role::Viewer, "type=Task%20Processing%20Started").await;
    let id = app.submit("sleep 200").await;
    let played = app.play().await;
    assert_eq!(stream.event().await["eventType"], "Task Pending");
    // The start is there, and its process is not: it is waited for.
    let other = app.submit("true").await;
    played.extend().await;
    let expected = [(&id, "Task Processing Started"), (&other, "Task Pending"), (&id, "Task Heartbeat")];
    for (entity, kind) in expected {
        let event = stream.event().await;
        assert_eq!((&event["entityId"], &event["eventType"]), (&json!(entity), &json!(kind)));
        assert_eq!(event["properties"]["processId"], if entity == &id { json!(7) } else { Value::Null }, "{event}");
    }
    assert_eq!(starts.event().await["properties"]["processId"], 7);
    app.clock.advance(3_600_000);
    let past = "type=Task%20Processing%20Started&from=2020-01-01T00:00:00Z";
    assert_eq!(Stream::open(&app, Role::Viewer, past).await.event().await["properties"]["processId"], 7, "and whoever reads later");
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_process_is_never_named_is_not_waited_for_long() {
    let app = TestApp::new().await;
    let mut stream = Stream::open(&app, Role::Viewer, "").await;
    let id = app.submit("sleep 200").await;
    let _played = app.play().await;
    assert_eq!(stream.event().await["eventType"], "Task Pending");
    let start = stream.event().await;
    assert_eq!((&start["entityId"], start["properties"].get("processId")), (&json!(id), None));
    let other = app.submit("true").await;
    app.play().await.exit(0).await;
    for kind in ["Task Pending", "Task Processing Started", "Task Completed"] {
        let event = stream.event().await;
        assert_eq!((&event["entityId"], &event["eventType"]), (&json!(other), &json!(kind)), "an attempt that has ended had none");
    }
}

#[tokio::test]
async fn a_stream_that_is_lost_anywhere_goes_on_without_loss_or_repeat_while_others_write() {
    const WRITERS: usize = 4;
    const EACH: usize = 40;
    let app = Arc::new(TestApp::new().await);
    for _ in 0..30 {
        app.submit("true").await;
    }
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                for _ in 0..EACH {
                    app.submit_as(Role::Developer, json!({"command": "true"})).await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let ending = {
        let (app, done) = (Arc::clone(&app), Arc::clone(&done));
        tokio::spawn(async move {
            for writer in writers {
                writer.await.expect("a writer");
            }
            done.store(true, Ordering::Release);
            // Whoever waits for one more sees the end by it.
            app.submit("the last one").await
        })
    };
    let (mut seen, mut cursor, mut taken) = (Vec::new(), String::new(), 1);
    let last = loop {
        let mut stream = Stream::open(&app, Role::Admin, &format!("from=2020-01-01T00:00:00Z{cursor}")).await;
        cursor = format!("&cursor={}", stream.good_line().await["cursor"].as_str().expect("a cursor"));
        taken = taken % 17 + 3;
        for _ in 0..taken {
            let event = stream.event().await;
            cursor = format!("&cursor={}", event["cursor"].as_str().expect("a cursor"));
            seen.push(event);
        }
        if done.load(Ordering::Acquire) && ending.is_finished() {
            break ending.await.expect("an id");
        }
    };
    let mut stream = Stream::open(&app, Role::Admin, cursor.trim_start_matches('&')).await;
    while seen.last().is_none_or(|event: &Value| event["entityId"] != last.as_str() || event["eventType"] != "Task Pending") {
        seen.push(stream.event().await);
    }
    let expected: Vec<String> = stored(&app).await.iter().map(|stored| stored.event.id.to_string()).collect();
    assert_eq!(ids(&Value::Array(seen)), expected);
}

#[tokio::test]
async fn a_stream_goes_on_after_a_restart() {
    let app = TestApp::new().await;
    let mut stream = Stream::open(&app, Role::Developer, "").await;
    let mine = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    app.submit("somebody else's").await;
    let event = stream.event().await;
    assert_eq!((&event["entityId"], &event["eventType"]), (&json!(mine), &json!("Task Pending")), "no call, and nobody else's");
    app.app.stop();
    assert!(stream.line().await.is_none(), "it ends as it should");
    let restarted = app.restarted(|_| {});
    let next = restarted.submit_as(Role::Developer, json!({"command": "true"})).await;
    let mut stream = Stream::open(&restarted, Role::Developer, &format!("cursor={}", event["cursor"].as_str().expect("a cursor"))).await;
    assert_eq!(stream.event().await["entityId"], next.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_shows_that_it_lives_and_how_far_it_is() {
    let app = TestApp::new().await;
    let mut stream = Stream::open(&app, Role::Developer, "").await;
    let first = stream.good_line().await;
    let began = tokio::time::Instant::now();
    app.submit("somebody else's").await;
    let mark = stream.good_line().await;
    assert!((10..=20).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(mark.as_object().map(serde_json::Map::len), Some(1));
    let place = |mark: &Value| mark["cursor"].as_str().expect("a cursor").parse::<u64>().expect("a place");
    assert!(place(&mark) > place(&first), "what they do not see is behind them");
}

#[tokio::test(start_paused = true)]
async fn security_05_a_stream_ends_with_the_right_to_it() {
    let app = TestApp::new().await;
    let mut revoked = Stream::open(&app, Role::Developer, "").await;
    let mut demoted = Stream::open(&app, Role::Viewer, "").await;
    let mut admin = Stream::open(&app, Role::Admin, "type=Task%20Pending").await;
    for stream in [&mut revoked, &mut demoted, &mut admin] {
        stream.good_line().await;
    }
    app.revoke(Role::Developer).await;
    app.change(runvoy_model::change::Change::SetRole("viewer@example.com".into(), Role::Developer)).await;
    app.clock.advance(1_000);
    app.submit("after that").await;
    assert!(revoked.line().await.expect("the end is told").is_err());
    assert!(demoted.line().await.expect("the end is told").is_err());
    assert_eq!(admin.event().await["eventType"], "Task Pending");
}

#[tokio::test]
async fn a_slow_client_costs_a_page() {
    let app = TestApp::new().await;
    for _ in 0..400 {
        app.submit("true").await;
    }
    let before = app.store.event_looks.load(Ordering::Relaxed);
    let mut stream = Stream::open(&app, Role::Admin, "from=2020-01-01T00:00:00Z").await;
    stream.good_line().await;
    stream.event().await;
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let looks = app.store.event_looks.load(Ordering::Relaxed) - before;
    assert!(looks <= 2, "where it begins, and one page: {looks}");
}

#[tokio::test]
async fn a_user_follows_so_many_and_then_makes_room() {
    let app = TestApp::with(|_| {}, |server| server.max_streams_per_user = 2).await;
    let one = Stream::open(&app, Role::Viewer, "").await;
    let _two = Stream::open(&app, Role::Viewer, "").await;
    let refused = app.get("/api/v1/events?follow=1").role(Role::Viewer).send().await;
    assert_eq!(refused.code(), (429, "RATE_LIMITED".into()));
    Stream::open(&app, Role::Operator, "").await;
    drop(one);
    Stream::open(&app, Role::Viewer, "").await;
}

#[tokio::test(start_paused = true)]
async fn another_tenants_stream_is_silent() {
    let app = TestApp::new().await;
    let mut stream = Stream::open(&app, Role::Admin, "type=Task%20Pending&tenant=other").await;
    app.submit("true").await;
    for _ in 0..3 {
        assert!(stream.good_line().await.get("eventType").is_none());
    }
}
