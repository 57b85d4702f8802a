//! Submits are idempotent on the client's key.

use futures_util::FutureExt as _;
use http::StatusCode;
use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp};

async fn submit(app: &TestApp, path: &str, role: Role, key: &str, body: &Value) -> Answer {
    app.post(path).role(role).header("idempotency-key", key).json(body).send().await
}

#[tokio::test]
async fn the_same_key_and_body_are_one_execution() {
    let app = TestApp::new().await;
    let body = json!({"command": "true", "env": {"A": "1", "B": "2"}, "lock": "prod"});
    let first = submit(&app, "/api/v1/run", Role::Developer, "k1", &body).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    let same = json!({"lock": "prod", "env": {"B": "2", "A": "1"}, "command": "true"});
    let again = submit(&app, "/api/v1/executions", Role::Developer, "k1", &same).await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
    assert_eq!(again.json()["execution_id"], first.json()["execution_id"]);
    let ended = app.play().await.exit(0).await;
    let late = submit(&app, "/api/v1/run", Role::Developer, "k1", &body).await;
    assert_eq!((&late.json()["execution_id"], &late.json()["status"]), (&json!(ended.id), &json!("SUCCEEDED")));
    assert_eq!(app.get("/api/v1/executions").admin().send().await.json().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn the_same_key_and_another_body_are_a_conflict_and_another_user_s_key_is_another_key() {
    let app = TestApp::new().await;
    let first = submit(&app, "/api/v1/run", Role::Developer, "k1", &json!({"command": "true"})).await;
    let other = submit(&app, "/api/v1/run", Role::Developer, "k1", &json!({"command": "false"})).await;
    assert_eq!(other.code(), (409, "CONFLICT".into()));
    let theirs = submit(&app, "/api/v1/run", Role::Operator, "k1", &json!({"command": "false"})).await;
    assert_eq!(theirs.status, StatusCode::ACCEPTED);
    assert_ne!(theirs.json()["execution_id"], first.json()["execution_id"]);
}

#[tokio::test]
async fn a_rerun_has_a_key_too() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let path = format!("/api/v1/executions/{id}/rerun");
    let rerun = async || app.post(&path).admin().header("idempotency-key", "again").send().await.json()["execution_id"].clone();
    assert_eq!(rerun().await, rerun().await);
}

#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    for key in ["", "a b", &"x".repeat(256)] {
        for path in ["/api/v1/run".to_owned(), format!("/api/v1/executions/{id}/rerun")] {
            let answer = submit(&app, &path, Role::Admin, key, &json!({"command": "true"})).await;
            assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{key:?}");
            assert!(answer.text().contains("Idempotency-Key"), "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_does_not_undo_its_submit() {
    let app = TestApp::new().await;
    let path = "/api/v1/run";
    let ask = app.post(path).admin().json(&json!({"command": "true"}));
    {
        let mut sending = Box::pin(ask.send());
        // One poll begins the request; then its client is gone.
        assert!(sending.as_mut().now_or_never().is_none());
    }
    for _ in 0..1_000 {
        if app.get("/api/v1/executions").admin().send().await.json().as_array().is_some_and(|list| list.len() == 1) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the submit was dropped with its client");
}
