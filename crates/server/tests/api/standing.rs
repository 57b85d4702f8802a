//! A right is looked at when it is used, not only when the request came in: a request whose body takes its time, an answer that takes its time, a
//! wait. And what was refused is on record, though nobody can fill the disk with it.

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use runvoy_model::change::Change;
use runvoy_model::role::Role;
use runvoy_server::{Connection, Peer};
use serde_json::json;

use crate::app::{TestApp, email_of, key_of};
use crate::people::{audited, join};

/// A request that was let in and whose body is still on its way.
struct Stalled {
    rest: tokio::sync::mpsc::Sender<Bytes>,
    answer: tokio::task::JoinHandle<(StatusCode, String)>,
}

impl Stalled {
    /// Sends the head and the first byte, and waits until the server reads.
    async fn begin(app: &TestApp, path: &str, key: &str) -> Self {
        let (rest, body) = tokio::sync::mpsc::channel::<Bytes>(1);
        let body = stream::unfold(body, |mut body| async { body.recv().await.map(|piece| (Ok::<_, std::io::Error>(piece), body)) });
        let request = Request::post(path).header("x-api-key", key).header("content-type", "application/json");
        let request = request.body(Body::from_stream(body)).expect("a request");
        let edge = app.app.clone();
        let answer = tokio::spawn(async move {
            let response = edge.answer(request).await;
            let status = response.status();
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        });
        // There is room for one piece: the second is taken only when the first was read, and by then the caller is admitted.
        rest.send(Bytes::from_static(b" ")).await.expect("the server reads");
        rest.send(Bytes::from_static(b" ")).await.expect("the server reads");
        Self { rest, answer }
    }

    async fn end(self, body: &serde_json::Value) -> (u16, String) {
        self.rest.send(body.to_string().into()).await.expect("the server reads");
        drop(self.rest);
        let (status, text) = self.answer.await.expect("no panic");
        (status.as_u16(), text)
    }
}

#[tokio::test]
async fn security_05_a_revoked_admin_changes_nothing_with_a_request_that_was_let_in_before() {
    let app = TestApp::new().await;
    let eve = join(&app, "eve@example.com", "admin").await;
    let stalled = Stalled::begin(&app, "/api/v1/users/create", &eve).await;
    app.change(Change::RevokeUser("eve@example.com".into())).await;
    let (status, text) = stalled.end(&json!({"email": "mallory@example.com", "role": "admin"})).await;
    assert_eq!(status, 401, "{text}");
    assert!(text.contains("API_KEY_REVOKED"), "{text}");
    let users = app.get("/api/v1/users").admin().send().await.text();
    assert!(!users.contains("mallory"), "{users}");
    let last = audited(&app).await.pop().expect("an event");
    let expected = ("eve@example.com", "POST /api/v1/users/create", "denied: API_KEY_REVOKED");
    assert_eq!((last.0.as_str(), last.1.as_str(), last.2.as_str()), expected);
}

#[tokio::test]
async fn security_05_a_demoted_user_acts_with_what_they_are_now() {
    let app = TestApp::new().await;
    let eve = join(&app, "eve@example.com", "admin").await;
    let others = app.submit("true").await;
    let invite = Stalled::begin(&app, "/api/v1/users/create", &eve).await;
    app.change(Change::SetRole("eve@example.com".into(), Role::Operator)).await;
    let kill = Stalled::begin(&app, &format!("/api/v1/executions/{others}/kill"), &eve).await;
    app.change(Change::SetRole("eve@example.com".into(), Role::Developer)).await;
    let (status, text) = invite.end(&json!({"email": "mallory@example.com", "role": "admin"})).await;
    assert_eq!(status, 403, "{text}");
    // An operator may kill it and a developer could not even find it.
    let (status, text) = kill.end(&json!({})).await;
    assert_eq!((status, text.contains("try again") || text.contains("send it again")), (403, true), "{text}");
    let status = app.get(&format!("/api/v1/executions/{others}/status")).admin().send().await.json();
    assert_eq!(status["status"], "PENDING");
}

#[tokio::test]
async fn an_admin_who_revokes_themselves_still_ends_their_own_work() {
    let app = TestApp::new().await;
    let eve = join(&app, "eve@example.com", "admin").await;
    let run = app.post("/api/v1/run").header("x-api-key", &eve).json(&json!({"command": "true"})).send().await.json();
    let body = json!({"email": "eve@example.com", "kill": true});
    let revoked = app.post("/api/v1/users/revoke").header("x-api-key", &eve).json(&body).send().await;
    assert_eq!(revoked.status.as_u16(), 200, "{}", revoked.text());
    let id = run["execution_id"].as_str().expect("an id");
    assert_eq!(app.get(&format!("/api/v1/executions/{id}/status")).admin().send().await.json()["status"], "STOPPED");
}

#[tokio::test]
async fn security_05_an_answer_on_its_way_ends_with_the_right_to_it() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let mut played = app.play().await;
    let line = "x".repeat(60_000);
    for _ in 0..20 {
        played.write(&[&line]).await;
    }
    played.exit(0).await;
    let begin = async || {
        let path = format!("/api/v1/executions/{id}/logs?format=raw");
        let request = Request::get(path).header("x-api-key", key_of(Role::Developer)).body(Body::empty()).expect("a request");
        let mut body = app.app.answer(request).await.into_body();
        body.frame().await.expect("a piece").expect("a good one");
        body
    };
    let whole = begin().await.collect().await.expect("whoever may gets all of it").to_bytes();
    assert!(whole.len() > 500_000, "several pieces: {}", whole.len());
    let (mut demoted, mut revoked) = (begin().await, begin().await);
    app.clock.advance(1_000);
    app.change(Change::SetRole(email_of(Role::Developer), Role::Viewer)).await;
    assert!(demoted.frame().await.expect("the end is told").is_err());
    app.change(Change::SetRole(email_of(Role::Developer), Role::Developer)).await;
    revoked.frame().await.expect("a piece").expect("a good one");
    app.clock.advance(1_000);
    app.revoke(Role::Developer).await;
    assert!(revoked.frame().await.expect("the end is told").is_err(), "no more of it after the revocation");
}

#[tokio::test]
async fn security_05_a_wait_is_answered_only_to_who_may_still_ask() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let played = app.play().await;
    let request = Request::get(format!("/api/v1/executions/{id}/wait?timeout=600")).header("x-api-key", key_of(Role::Developer));
    let request = request.body(Body::empty()).expect("a request");
    let mut waiting = std::pin::pin!(app.app.answer(request));
    assert!(waiting.as_mut().now_or_never().is_none(), "it has not ended");
    app.revoke(Role::Developer).await;
    played.exit(0).await;
    assert_eq!(waiting.await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn security_17_what_was_refused_is_on_record_with_its_code() {
    let app = TestApp::new().await;
    let others = app.submit("true").await;
    let before = audited(&app).await.len();
    app.post(&format!("/api/v1/executions/{others}/kill")).role(Role::Developer).send().await;
    app.delete("/api/v1/secrets/nothing").role(Role::Developer).send().await;
    app.post("/api/v1/users/revoke").admin().json(&json!({"email": email_of(Role::Admin)})).send().await;
    app.delete("/api/v1/locks/prod").role(Role::Operator).send().await;
    app.get(&format!("/api/v1/executions/{others}")).role(Role::Developer).send().await;
    app.post("/api/v1/users/create").admin().json(&json!({"email": "no"})).send().await;
    let (admin, operator, developer) = (email_of(Role::Admin), email_of(Role::Operator), email_of(Role::Developer));
    let expected = [
        (developer.as_str(), "executions.kill", "denied: NOT_FOUND"),
        (&developer, "DELETE /api/v1/secrets/{name}", "denied: SECRET_NOT_FOUND"),
        (&admin, "POST /api/v1/users/revoke", "denied: CONFLICT"),
        (&operator, "DELETE /api/v1/locks/{name}", "denied: FORBIDDEN"),
    ];
    let found = audited(&app).await.split_off(before);
    let found: Vec<_> = found.iter().map(|(user, action, result)| (user.as_str(), action.as_str(), result.as_str())).collect();
    assert_eq!(found, expected, "reads and requests that are wrong leave none");
}

#[tokio::test]
async fn security_29_refusals_are_kept_so_often_and_then_turned_away_without_a_write() {
    let app = TestApp::new().await;
    let ask = || app.post("/api/v1/users/create").role(Role::Viewer).json(&json!({"email": "x@example.com", "role": "admin"}));
    let authority = runvoy_ports::record::RecordStore::authority(&*app.store);
    for _ in 0..60 {
        assert_eq!(ask().send().await.code(), (403, "FORBIDDEN".into()));
    }
    assert_eq!(runvoy_ports::record::RecordStore::authority(&*app.store), authority, "nobody else has to read anew for that");
    let kept = audited(&app).await.len();
    for _ in 0..100 {
        let answer = ask().send().await;
        assert_eq!(answer.code(), (429, "RATE_LIMITED".into()));
        assert_eq!(answer.header("retry-after"), "2");
    }
    assert_eq!(audited(&app).await.len(), kept);
    let rule = json!({"name": "no-rm", "effect": "deny", "commands": ["rm *"]});
    assert_eq!(app.post("/api/v1/rules").admin().json(&rule).send().await.status.as_u16(), 200, "others are not held up");
    for n in 0..61 {
        let status = app.post("/api/v1/run").role(Role::Developer).json(&json!({"command": "rm -rf /"})).send().await.status.as_u16();
        assert_eq!(status, if n < 60 { 403 } else { 429 }, "what rules refuse counts too");
    }
    app.clock.advance(60_000);
    assert_eq!(ask().send().await.code(), (403, "FORBIDDEN".into()));
}

#[tokio::test]
async fn a_token_that_is_no_good_does_not_shut_out_a_key() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let from = Connection { peer: Peer::Tcp("10.0.0.1:4711".parse().expect("an address")), tls: false };
    let bad = format!("/api/v1/executions/{id}/logs?token=bad");
    for _ in 0..100 {
        let answer = app.get(&bad).role(Role::Developer).connection(from).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    let path = format!("/api/v1/executions/{id}/stream?token=bad");
    let stream = app.get(&path).role(Role::Developer).connection(from).send().await.status.as_u16();
    assert!(![401, 429].contains(&stream), "{stream}");
    let both_bad = app.get(&bad).header("x-api-key", "rv_wrong").connection(from).send().await;
    assert_eq!(both_bad.code(), (401, "INVALID_API_KEY".into()));
    assert_eq!(app.get(&bad).connection(from).send().await.code(), (401, "UNAUTHORIZED".into()));
    let empty = app.get("/api/v1/whoami").header("x-api-key", "").header("authorization", &format!("Bearer {}", key_of(Role::Viewer)));
    assert_eq!(empty.send().await.status, StatusCode::OK, "an empty header hides nothing");
}
