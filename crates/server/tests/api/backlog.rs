//! How much may wait, of each user and in each queue.

use std::sync::atomic::Ordering;

use http::StatusCode;
use runvoy_engine::Predecessors;
use runvoy_model::role::Role;
use runvoy_rpc::connectrpc::ErrorCode;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, email_of};
use crate::rpc::{BOTH, admin, job, refusal};

async fn run(app: &TestApp, role: Role, body: Value) -> Answer {
    app.post("/api/v1/run").role(role).json(&body).send().await
}

fn assert_refused(answer: &Answer, limit: &str) {
    assert_eq!(answer.code(), (429, "RATE_LIMITED".into()));
    assert!(!answer.header("retry-after").is_empty());
    assert!(answer.text().contains(limit), "{}", answer.text());
}

#[tokio::test]
async fn a_user_with_too_much_waiting_is_refused_until_some_has_begun() {
    let app = TestApp::with(|config| config.max_waiting_per_user = 2, |_| {}).await;
    let first = app.submit("true").await;
    let keyed = app.post("/api/v1/run").admin().header("idempotency-key", "k2").json(&json!({"command": "true"})).send().await;
    assert_eq!(keyed.status, StatusCode::ACCEPTED, "{}", keyed.text());
    let refused = run(&app, Role::Admin, json!({"command": "true"})).await;
    assert_refused(&refused, &format!("{} has 2 executions waiting", email_of(Role::Admin)));
    let again = app.post("/api/v1/run").admin().header("idempotency-key", "k2").json(&json!({"command": "true"})).send().await;
    assert_eq!(again.json()["execution_id"], keyed.json()["execution_id"], "a repeat is answered as before");
    assert_eq!(run(&app, Role::Developer, json!({"command": "true"})).await.status, StatusCode::ACCEPTED, "others have their own limit");
    app.post(&format!("/api/v1/executions/{first}/kill")).admin().send().await;
    app.clock.advance(1_000);
    app.submit("true").await;
    assert_refused(&run(&app, Role::Admin, json!({"command": "true"})).await, "the limit for one user");
}

#[tokio::test]
async fn a_full_queue_is_refused_and_others_are_open() {
    let app = TestApp::with(|config| config.max_waiting_per_queue = 2, |_| {}).await;
    for role in [Role::Admin, Role::Developer] {
        assert_eq!(run(&app, role, json!({"command": "true", "queue": "gpu"})).await.status, StatusCode::ACCEPTED);
    }
    assert_refused(&run(&app, Role::Operator, json!({"command": "true", "queue": "gpu"})).await, "queue gpu has 2 executions waiting");
    assert_eq!(run(&app, Role::Operator, json!({"command": "true"})).await.status, StatusCode::ACCEPTED);
    let restarted = app.restarted(|_| {});
    assert_refused(&run(&restarted, Role::Admin, json!({"command": "true", "queue": "gpu"})).await, "queue gpu has 2");
    let unlimited = app.restarted(|config| config.max_waiting_per_queue = 0);
    assert_eq!(run(&unlimited, Role::Admin, json!({"command": "true", "queue": "gpu"})).await.status, StatusCode::ACCEPTED);
}

/// Other servers work on the same store, and a count by user reads every execution that waits.
#[tokio::test]
async fn a_shared_store_is_counted_by_user_only_near_a_limit() {
    let shared = |config: &mut runvoy_engine::Config| {
        (config.max_waiting_per_user, config.predecessors) = (6, Predecessors::These(Vec::new()));
    };
    let app = TestApp::with(shared, |_| {}).await;
    let counts = || app.store.backlog_counts.load(Ordering::Relaxed);
    for expected in [0, 0, 0, 1, 1, 1] {
        app.submit("true").await;
        app.clock.advance(60_000);
        assert_eq!(counts().min(1), expected);
    }
    assert_refused(&run(&app, Role::Admin, json!({"command": "true"})).await, "has 6 executions waiting");
    assert_eq!(run(&app, Role::Developer, json!({"command": "true"})).await.status, StatusCode::ACCEPTED, "others have their own limit");
}

#[tokio::test]
async fn a_shared_store_refuses_nobody_for_what_others_have_waiting() {
    let shared = |config: &mut runvoy_engine::Config| {
        (config.max_waiting_per_user, config.predecessors) = (6, Predecessors::These(Vec::new()));
    };
    let app = TestApp::with(shared, |_| {}).await;
    app.submit("true").await;
    app.submit("true").await;
    app.clock.advance(60_000);
    for _ in 0..6 {
        assert_eq!(run(&app, Role::Developer, json!({"command": "true"})).await.status, StatusCode::ACCEPTED);
    }
    assert_eq!(app.store.backlog_counts.load(Ordering::Relaxed), 1, "it seemed full once");
    assert_refused(&run(&app, Role::Developer, json!({"command": "true"})).await, "has 6 executions waiting");
}

#[tokio::test]
async fn tasks_that_wait_for_others_do_not_count() {
    let app = TestApp::with(|config| config.max_waiting_per_user = 2, |_| {}).await;
    let after_a = |task: &str| json!({"taskId": task, "command": "true", "dependsOn": ["a"]});
    let tasks = json!({"tasks": [{"taskId": "a", "command": "true"}, after_a("b"), after_a("c"), after_a("d")]});
    let jobs = async || app.post("/api/v1/jobs").admin().json(&tasks).send().await;
    for _ in 0..2 {
        let job = jobs().await;
        assert!(job.status.is_success(), "{}", job.text());
    }
    assert_refused(&jobs().await, "has 2 executions waiting");
}

#[tokio::test]
async fn a_full_queue_is_refused_over_rpc() {
    let change = |config: &mut runvoy_engine::Config| config.max_waiting_per_queue = 1;
    for protocol in BOTH {
        let app = TestApp::with(change, |_| {}).await;
        let served = app.listen().await;
        let client = admin(&served, protocol);
        client.enqueue_job(job("true")).await.expect("room for one");
        let (code, message) = refusal(client.enqueue_job(job("true")).await);
        assert_eq!(code, ErrorCode::ResourceExhausted);
        assert!(message.contains("queue default has 1 execution waiting"), "{message}");
    }
}
