//! What is seen from outside: one log line per request, and its measurements. Neither holds a secret.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use futures_util::FutureExt as _;
use metrics_exporter_prometheus::PrometheusBuilder;
use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::{TestApp, key_of};

thread_local! {
    /// What was logged on this thread: a test has its thread for itself.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the thread.
struct ThreadLog;

impl io::Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins to log. The subscriber is one for the whole process, because whether a line is wanted at all is decided for all threads at once.
fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().json().with_max_level(tracing::Level::TRACE).with_writer(|| ThreadLog).finish();
        tracing::subscriber::set_global_default(subscriber).expect("nobody else sets one");
    });
}

fn logged() -> String {
    String::from_utf8(LOGGED.with_borrow(Clone::clone)).expect("text")
}

/// The lines of requests, as JSON.
fn requests() -> Vec<Value> {
    let lines: Vec<Value> = logged().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.into_iter().map(|line| line["fields"].clone()).filter(|fields| fields["message"] == "request").collect()
}

#[tokio::test]
async fn each_request_is_one_line_without_secrets() {
    begin();
    let app = TestApp::new().await;
    let id = app.submit("echo my-password").await;
    let key = key_of(Role::Viewer);
    let token = "tok3n-in-the-query";
    app.get(&format!("/api/v1/executions/{id}/stream?token={token}")).send().await;
    app.get(&format!("/api/v1/executions/{id}/status")).header("authorization", &format!("Bearer {key}")).send().await;
    app.get("/api/v1/claim/s3cret-claim-token").send().await;
    app.get("/api/v1/whoami").header("x-api-key", "rv_wrong-key").header("x-request-id", "mine").send().await;
    let requests = requests();
    let seen: Vec<(&str, &str, u64)> = requests
        .iter()
        .map(|line| (line["method"].as_str().unwrap_or(""), line["route"].as_str().unwrap_or(""), line["status"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(
        seen,
        [
            ("POST", "/api/v1/run", 202),
            ("GET", "/api/v1/executions/{id}/stream", 401),
            ("GET", "/api/v1/executions/{id}/status", 200),
            ("GET", "/api/v1/claim/{token}", 400),
            ("GET", "/api/v1/whoami", 401),
        ]
    );
    assert_eq!(requests[2]["user"], "viewer@example.com");
    assert_eq!(requests[4]["request_id"], "mine");
    assert!(requests.iter().all(|line| line["duration_ms"].is_number() && line["from"] == "unknown"), "{requests:?}");
    for secret in [key.as_str(), &key_of(Role::Admin), token, "s3cret-claim-token", "rv_wrong-key", "my-password"] {
        assert!(!logged().contains(secret), "{secret} was logged");
    }
}

#[tokio::test]
async fn a_client_that_goes_away_has_its_line_too() {
    begin();
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let path = format!("/api/v1/executions/{id}/wait");
    assert!(app.get(&path).admin().send().now_or_never().is_none());
    let requests = requests();
    assert_eq!((&requests[1]["route"], &requests[1]["status"]), (&json!("/api/v1/executions/{id}/wait"), &json!(499)));
}

#[tokio::test]
async fn requests_are_counted_by_route_and_never_by_what_a_client_invents() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let app = TestApp::new().await;
    for n in 0..3 {
        app.get(&format!("/api/v1/executions/{n:032}/status")).admin().send().await;
        app.ask(http::Method::from_bytes(format!("FROB{n}").as_bytes()).expect("a method"), &format!("/{n}")).send().await;
    }
    let text = handle.render();
    for expected in [
        r#"runvoy_http_requests_total{method="GET",route="/api/v1/executions/{id}/status",status="404"} 3"#,
        r#"runvoy_http_requests_total{method="OTHER",route="unknown",status="404"} 3"#,
        r#"runvoy_http_request_seconds_count{route="unknown"} 3"#,
    ] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    assert!(!text.contains("FROB"), "{text}");
}

#[tokio::test]
async fn security_04_neither_a_claim_token_nor_a_key_is_in_any_log_line() {
    begin();
    let app = TestApp::new().await;
    let token = crate::people::invite(&app, "ana@example.com", "viewer").await;
    let path = format!("/api/v1/claim/{token}");
    let claimed = app.post(&path).send().await.json();
    let key = claimed["api_key"].as_str().expect("a key").to_owned();
    app.get(&path).send().await;
    app.store.set(Some(crate::app::Trouble::Away));
    app.get(&path).send().await;
    app.store.set(None);
    app.get("/api/v1/whoami").header("x-api-key", &key).send().await;
    app.get("/api/v1/whoami").header("x-api-key", &format!("{key}x")).send().await;
    let logged = logged();
    assert!(requests().iter().any(|line| line["route"] == "/api/v1/claim/{token}"), "{logged}");
    assert!(!logged.contains(&token) && !logged.contains(&key[12..]), "{logged}");
}
