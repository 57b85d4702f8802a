//! Following a log over a WebSocket.

use runvoy_model::role::Role;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::app::{Follow, TestApp, key_of};

/// Submits as a role; returns the id and the path of its stream.
async fn submit(app: &TestApp, role: Role) -> (String, String) {
    let body = app.post("/api/v1/run").role(role).json(&json!({"command": "true"})).send().await.json();
    let (url, id) = (body["websocket_url"].as_str().expect("an address"), body["execution_id"].as_str().expect("an id"));
    (id.to_owned(), url[url.find("/api/").expect("a path")..].to_owned())
}

async fn open(address: &str, path: &str) -> Follow {
    Follow::open(address, path, &[]).await.expect("a stream")
}

#[tokio::test]
async fn what_was_there_comes_first_then_what_comes_then_the_end() {
    let app = TestApp::new().await;
    let (id, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let mut played = app.play().await;
    played.write(&["one", "two"]).await;
    let mut follow = open(&served.address, &path).await;
    let first = follow.next_event().await;
    assert!(first.message.starts_with("### runvoy: queued"), "{first:?}");
    assert_eq!((first.event_id, first.line), (format!("{id}-1"), 1));
    assert_eq!(follow.next_event().await.message, "one");
    assert_eq!(follow.next_event().await.message, "two");
    played.write(&["three"]).await;
    let live = follow.next_json().await;
    let timestamp = live["timestamp"].clone();
    assert_eq!(
        live,
        json!({"event_id": format!("{id}-4"), "line": 4, "timestamp": timestamp, "message": "three", "stream": "stdout", "attempt": 1})
    );
    played.exit(0).await;
    assert_eq!(follow.next_json().await, json!({"type": "disconnect", "reason": "execution_completed"}));
    assert_eq!(follow.close_code().await, Some(1000));
}

#[tokio::test]
async fn a_follower_that_drops_and_resumes_anywhere_sees_every_line_once() {
    let app = TestApp::new().await;
    let (id, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let mut played = app.play().await;
    let (mut seen, mut written, mut dice) = (Vec::new(), 1u64, 0x2545_f491u64);
    let mut roll = |below: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % below
    };
    for round in 0..200 {
        let lines: Vec<String> = (0..roll(6)).map(|n| format!("line {}", written + n + 1)).collect();
        played.write(&lines.iter().map(String::as_str).collect::<Vec<_>>()).await;
        written += lines.len() as u64;
        let batch = round % 2 == 0;
        // Plain line numbers and event ids resume alike.
        let last = if round % 3 == 0 { seen.len().to_string() } else { format!("{id}-{}", seen.len()) };
        let resume = format!("{path}&batch={}&last_event_id={last}", u8::from(batch));
        let mut follow = open(&served.address, &resume).await;
        // Somewhere between here and the last line the connection breaks.
        let read_until = seen.len() as u64 + roll(written - seen.len() as u64 + 1);
        while (seen.len() as u64) < read_until {
            if batch {
                seen.extend(follow.next_batch().await.records().map(|(line, record)| (line, record.bytes.to_vec())));
            } else {
                let event = follow.next_event().await;
                seen.push((event.line, event.message.into_bytes()));
            }
        }
    }
    played.exit(0).await;
    let mut follow = open(&served.address, &format!("{path}&last_event_id={}", seen.len())).await;
    loop {
        let frame = follow.next_json().await;
        if frame["type"] == "disconnect" {
            break;
        }
        seen.push((frame["line"].as_u64().expect("a number"), frame["message"].as_str().expect("text").as_bytes().to_vec()));
    }
    assert!(written > 300, "enough was written: {written}");
    assert_eq!(seen.len() as u64, written);
    for (expected, (line, bytes)) in (1..).zip(&seen) {
        assert_eq!(*line, expected);
        assert!(expected == 1 || *bytes == format!("line {expected}").into_bytes());
    }
}

#[tokio::test]
async fn batches_and_statuses_come_only_to_who_asks() {
    let app = TestApp::new().await;
    let (id, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let mut follow = open(&served.address, &format!("{path}&batch=1&events=status")).await;
    assert_eq!(follow.next_batch().await.first_line, 1);
    let status = follow.next_json().await;
    assert_eq!((&status["type"], &status["status"], &status["execution_id"]), (&json!("status"), &json!("PENDING"), &json!(id)));
    let mut played = app.play().await;
    assert_eq!(follow.next_json().await["status"], "RUNNING");
    played.write(&["one", "two"]).await;
    let batch = follow.next_batch().await;
    assert_eq!((batch.first_line, batch.attempt, batch.block.count), (2, 1, 2));
    played.exit(4).await;
    let ended = follow.next_json().await;
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("FAILED"), &json!(4)));
    assert_eq!(follow.next_json().await["type"], "disconnect");
}

#[tokio::test]
async fn a_status_is_told_once_however_often_its_record_changes() {
    let app = TestApp::new().await;
    let (_, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let mut played = app.play().await;
    let mut follow = open(&served.address, &format!("{path}&events=status")).await;
    assert_eq!(follow.next_event().await.line, 1);
    assert_eq!(follow.next_json().await["status"], "RUNNING");
    for line in 2..20 {
        played.extend().await;
        played.write(&["."]).await;
        assert_eq!(follow.next_event().await.line, line, "a line, and no status between lines");
    }
    played.exit(0).await;
    assert_eq!(follow.next_json().await["status"], "SUCCEEDED");
}

#[tokio::test]
async fn security_22_only_a_good_ticket_for_this_execution_opens_its_stream() {
    let app = TestApp::new().await;
    let (id, path) = submit(&app, Role::Developer).await;
    let (_, other) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let status = async |path: &str, headers: &[(&str, &str)]| Follow::open(&served.address, path, headers).await.err().unwrap_or(101);
    let (bare, ticket) = path.split_once("?token=").expect("a ticket");
    let foreign = other.split_once("?token=").expect("a ticket").1;
    let mut tampered = ticket.to_owned();
    tampered.replace_range(20..21, if &ticket[20..21] == "A" { "B" } else { "A" });
    assert_eq!(status(&path, &[]).await, 101);
    assert_eq!(status(&path, &[]).await, 101, "a ticket may be used again to resume");
    for bad in [foreign, &tampered, "probe", &ticket[..40]] {
        assert_eq!(status(&format!("{bare}?token={bad}"), &[]).await, 401, "{bad}");
        let key = key_of(Role::Admin);
        assert_eq!(status(&format!("{bare}?token={bad}"), &[("x-api-key", &key)]).await, 101, "a bad ticket does not shut out a key");
        assert_eq!(status(&format!("{bare}?token={bad}"), &[("x-api-key", "rv_wrong")]).await, 401, "and no more than that");
    }
    assert_eq!(status(bare, &[]).await, 401);
    assert_eq!(status(bare, &[("x-api-key", &key_of(Role::Viewer))]).await, 101);
    assert_eq!(status(bare, &[("authorization", &format!("Bearer {}", key_of(Role::Viewer)))]).await, 101);
    let bearer = |text: &str| format!("Bearer {text}");
    assert_eq!(status(bare, &[("authorization", &bearer(ticket))]).await, 101, "a ticket may stand where a key does");
    for bad in [foreign, &tampered, "probe", &ticket[..40]] {
        assert_eq!(status(bare, &[("authorization", &bearer(bad))]).await, 401, "{bad}");
    }
    let elsewhere = app.get(&format!("/api/v1/executions/{id}")).header("authorization", &bearer(ticket)).send().await;
    assert_eq!(elsewhere.code(), (401, "INVALID_API_KEY".into()), "a ticket opens streams alone");
    for foreign in ["x", "0193-1", "-1"] {
        assert_eq!(status(&format!("{path}&last_event_id={foreign}"), &[]).await, 400, "{foreign}");
    }
    let theirs = app.submit_as(Role::Operator, json!({"command": "true"})).await;
    let theirs = bare.replace(&id, &theirs);
    assert_eq!(status(&theirs, &[("x-api-key", &key_of(Role::Developer))]).await, 404);
    app.clock.advance(10 * 60 * 1000);
    assert_eq!(status(&path, &[]).await, 401, "ten minutes are over");
}

#[tokio::test]
async fn a_ticket_is_worth_no_more_than_the_key_behind_it() {
    let app = TestApp::new().await;
    let (_, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    app.store.set_identity_away(true);
    assert_eq!(Follow::open(&served.address, &path, &[]).await.err(), Some(503), "a store failure is not a bad ticket");
    app.store.set_identity_away(false);
    app.revoke(Role::Developer).await;
    assert_eq!(Follow::open(&served.address, &path, &[]).await.err(), Some(401));
}

#[tokio::test]
async fn security_05_revoking_a_key_closes_its_streams_and_no_other() {
    let app = TestApp::new().await;
    let (_, path) = submit(&app, Role::Developer).await;
    let (_, other) = submit(&app, Role::Operator).await;
    let served = app.listen().await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(open(&served.address, &path).await);
    }
    let mut other = open(&served.address, &other).await;
    app.revoke(Role::Developer).await;
    let closed = tokio::time::timeout(std::time::Duration::from_secs(5), async {
        for stream in &mut streams {
            assert_eq!(stream.close_code().await, Some(1008));
        }
    });
    closed.await.expect("within five seconds");
    assert!(other.next_event().await.message.starts_with("### runvoy"));
    assert!(futures_util::FutureExt::now_or_never(other.next()).is_none(), "the other stream is open");
}

#[tokio::test]
async fn a_stream_by_a_part_of_an_id_stays_open_when_that_part_becomes_ambiguous() {
    let app = TestApp::new().await;
    let (id, watched) = submit(&app, Role::Developer).await;
    let (part, key) = (&id[..14], key_of(Role::Admin));
    let served = app.listen().await;
    let path = format!("/api/v1/executions/{part}/stream");
    let mut by_part = Follow::open(&served.address, &path, &[("x-api-key", &key)]).await.expect("a stream");
    by_part.next_event().await;
    let mut looked_at = open(&served.address, &watched).await;
    app.submit("true").await;
    assert_eq!(app.get(&format!("/api/v1/executions/{part}")).admin().send().await.code(), (409, "CONFLICT".into()));
    // Its guard began later: when it has looked at the rights, so has the other.
    app.revoke(Role::Developer).await;
    assert_eq!(looked_at.close_code().await, Some(1008));
    let mut played = app.play().await;
    assert_eq!(played.execution.id.to_string(), id);
    played.write(&["still here"]).await;
    assert_eq!(by_part.next_event().await.message, "still here");
}

#[tokio::test]
async fn security_22_pages_of_strangers_cannot_open_streams() {
    let app = TestApp::with(|_| {}, |config| config.cors_origins = vec!["https://web.example.com".into()]).await;
    let (_, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let status = async |origin: &str| Follow::open(&served.address, &path, &[("origin", origin)]).await.err().unwrap_or(101);
    assert_eq!(status("https://web.example.com").await, 101);
    assert_eq!(status(&format!("http://{}", served.address)).await, 101);
    for origin in ["https://evil.example.com", "null", "http://127.0.0.1", &served.address] {
        assert_eq!(status(origin).await, 403, "{origin}");
    }
}

#[tokio::test]
async fn security_22_a_user_may_follow_only_so_many_logs_at_once() {
    let app = TestApp::with(|_| {}, |config| config.max_streams_per_user = 2).await;
    let (_, path) = submit(&app, Role::Developer).await;
    let (_, theirs) = submit(&app, Role::Operator).await;
    let served = app.listen().await;
    let first = open(&served.address, &path).await;
    let _second = open(&served.address, &path).await;
    assert_eq!(Follow::open(&served.address, &path, &[]).await.err(), Some(429));
    let _other = open(&served.address, &theirs).await;
    drop(first);
    // The server learns of it when it reads the end of the connection.
    while Follow::open(&served.address, &path, &[]).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn security_22_a_wait_counts_as_a_stream_of_its_user() {
    let app = TestApp::with(|_| {}, |config| config.max_streams_per_user = 1).await;
    let (id, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let _stream = open(&served.address, &path).await;
    let wait = |seconds: u32| app.get(&format!("/api/v1/executions/{id}/wait?timeout={seconds}"));
    assert_eq!(wait(1).role(Role::Developer).send().await.code(), (429, "RATE_LIMITED".into()));
    assert_eq!(wait(0).role(Role::Developer).send().await.status.as_u16(), 200, "it does not wait");
    assert_eq!(wait(1).admin().send().await.status.as_u16(), 200, "others have their own");
}

#[tokio::test]
async fn security_22_a_client_that_says_too_much_is_told_so() {
    let app = TestApp::new().await;
    let (_, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let mut follow = open(&served.address, &path).await;
    follow.send(Message::binary(vec![0; 1 << 20])).await;
    assert_eq!(follow.close_code().await, Some(1009));
}

#[tokio::test]
async fn a_slow_client_gets_everything_and_holds_nobody_up() {
    let app = TestApp::new().await;
    let (_, path) = submit(&app, Role::Developer).await;
    let served = app.listen().await;
    let mut slow = open(&served.address, &path).await;
    let mut fast = open(&served.address, &path).await;
    let mut played = app.play().await;
    let line = "x".repeat(10_000);
    for _ in 0..100 {
        played.write(&[line.as_str(); 20]).await;
    }
    played.exit(0).await;
    for follow in [&mut fast, &mut slow] {
        for expected in 1..=2_001 {
            assert_eq!(follow.next_event().await.line, expected);
        }
        assert_eq!(follow.next_json().await["type"], "disconnect");
    }
}

#[tokio::test]
async fn a_plain_request_for_a_stream_is_refused() {
    let app = TestApp::new().await;
    let (_, path) = submit(&app, Role::Developer).await;
    assert_eq!(app.get(&path).send().await.code(), (400, "INVALID_REQUEST".into()));
}
