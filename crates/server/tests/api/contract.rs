//! The answers that public clients rely on, as snapshots of their JSON.

use std::sync::Arc;

use http::StatusCode;
use runvoy_model::role::Role;
use runvoy_server::{App, ServerConfig, ServerParts};
use runvoy_wire::{Probe, ProbeStatus};
use serde_json::{Value, json};

use crate::app::{Probes, TestApp};

/// Tickets are made of secrets; only that there is one is part of a snapshot.
fn without_ticket(mut body: Value) -> Value {
    if let Some(url) = body["websocket_url"].as_str() {
        let (address, ticket) = url.split_once("?token=").expect("a ticket");
        assert!(ticket.len() > 100 && !ticket.contains('='), "{ticket}");
        body["websocket_url"] = format!("{address}?token=TICKET").into();
    }
    body
}

#[tokio::test]
async fn health_needs_no_key() {
    let app = TestApp::new().await;
    for path in ["/api/v1/health", "/api/v1/health/"] {
        let answer = app.get(path).send().await;
        assert_eq!(answer.status, StatusCode::OK);
        let mut body = answer.json();
        assert_eq!(body["version"].take(), env!("CARGO_PKG_VERSION"));
        insta::allow_duplicates! { insta::assert_json_snapshot!("health", body); }
    }
}

#[tokio::test]
async fn a_run_is_answered_with_its_id_and_where_to_follow_it() {
    let app = TestApp::new().await;
    let body = json!({"command": "terraform apply", "lock": "prod", "env": {"A": "1"}, "timeout": 60});
    let answer = app.post("/api/v1/run").admin().json(&body).send().await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    insta::assert_json_snapshot!("run", without_ticket(answer.json()));
}

#[tokio::test]
async fn addresses_follow_the_way_the_request_came_in() {
    use runvoy_server::{Connection, Peer};
    let app = TestApp::new().await;
    let tcp = Peer::Tcp("10.0.0.1:5".parse().expect("an address"));
    for (peer, tls, expected) in [
        (tcp, false, "http://runvoy.example.com:8080"),
        (tcp, true, "https://runvoy.example.com:8080"),
        (Peer::Unix { uid: 1, owner: true }, false, "http://127.0.0.1:56212"),
    ] {
        let ask = app.post("/api/v1/run").admin().header("host", "runvoy.example.com:8080").json(&json!({"command": "true"}));
        let body = ask.connection(Connection { peer, tls }).send().await.json();
        let id = body["execution_id"].as_str().expect("an id");
        assert_eq!(body["log_url"], format!("{expected}/logs?execution_id={id}"));
        let stream = format!("{}/api/v1/executions/{id}/stream?token=", expected.replacen("http", "ws", 1));
        assert!(body["websocket_url"].as_str().expect("an address").starts_with(&stream), "{body}");
    }
    let app = TestApp::with(|config| config.web_url = "https://web.example.com/".into(), |_| {}).await;
    let body = app.post("/api/v1/run").admin().json(&json!({"command": "true"})).send().await.json();
    assert!(body["log_url"].as_str().expect("an address").starts_with("https://web.example.com/logs?execution_id="), "{body}");
}

#[tokio::test]
async fn behind_a_proxy_addresses_are_those_that_its_clients_use() {
    use runvoy_server::{Connection, Peer};
    let stream_of = async |app: &TestApp, peer: &str| {
        let peer = Peer::Tcp(format!("{peer}:5").parse().expect("an address"));
        let ask = app.post("/api/v1/run").admin().header("host", "inner:8080").json(&json!({"command": "true"}));
        let ask = ask.header("x-forwarded-proto", "https").header("x-forwarded-host", "run.example.com");
        let body = ask.connection(Connection { peer, tls: false }).send().await.json();
        let stream = body["websocket_url"].as_str().expect("an address");
        stream.split_once("/api/").expect("a path").0.to_owned()
    };
    let trusting = TestApp::with(|_| {}, |config| config.trusted_proxies = vec!["10.9.0.0/16".parse().expect("a network")]).await;
    assert_eq!(stream_of(&trusting, "10.9.0.1").await, "wss://run.example.com");
    assert_eq!(stream_of(&trusting, "10.0.0.1").await, "ws://inner:8080", "a stranger's word counts for nothing");
    let public = TestApp::with(|_| {}, |config| config.public_url = Some("https://public.example.com/tools".into())).await;
    assert_eq!(stream_of(&public, "10.0.0.1").await, "wss://public.example.com/tools");
    let page = public.post("/api/v1/run").admin().json(&json!({"command": "true"}));
    assert_eq!(page.header("origin", "https://public.example.com").send().await.status, StatusCode::ACCEPTED, "its own page");
}

#[tokio::test]
async fn a_proxy_that_leaves_out_the_port_does_not_lock_out_the_page() {
    use runvoy_server::{Connection, Peer};
    let app = TestApp::with(|_| {}, |config| config.trusted_proxies = vec!["10.9.0.0/16".parse().expect("a network")]).await;
    let peer = Peer::Tcp("10.9.0.1:5".parse().expect("an address"));
    for (origin, http, rpc) in [
        ("https://run.example.com:8443", StatusCode::ACCEPTED, StatusCode::OK),
        ("https://run.example.com", StatusCode::ACCEPTED, StatusCode::OK),
        ("https://evil.example.com:8443", StatusCode::FORBIDDEN, StatusCode::FORBIDDEN),
    ] {
        for (path, body, status) in [("/api/v1/run", json!({"command": "true"}), http), ("/job.v1.JobService/ListJobs", json!({}), rpc)] {
            let ask = app.post(path).admin().header("host", "run.example.com:8443").header("x-forwarded-host", "run.example.com");
            let answer = ask.header("origin", origin).json(&body).connection(Connection { peer, tls: false }).send().await;
            assert_eq!(answer.status, status, "{origin} {path}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn an_execution_is_shown_waiting_running_and_ended() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "make", "args": ["all"], "lock": "prod", "labels": {"team": "infra"}})).await;
    let record = async |name: &str| {
        let answer = app.get(&format!("/api/v1/executions/{id}")).admin().send().await;
        insta::assert_json_snapshot!(format!("execution_{name}"), answer.json());
        let answer = app.get(&format!("/api/v1/executions/{id}/status")).admin().send().await;
        insta::assert_json_snapshot!(format!("status_{name}"), answer.json());
    };
    record("waiting").await;
    let played = app.play().await;
    record("running").await;
    app.clock.advance(2_500);
    played.exit(3).await;
    record("ended").await;
    let list = app.get("/api/v1/executions").admin().send().await;
    let one = app.get(&format!("/api/v1/executions/{id}")).admin().send().await;
    assert_eq!(list.json(), json!([one.json()]));
}

#[tokio::test]
async fn a_log_is_null_while_it_runs_and_whole_afterwards() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let mut played = app.play().await;
    played.write(&["one", "two"]).await;
    let path = format!("/api/v1/executions/{id}/logs");
    insta::assert_json_snapshot!("logs_running", without_ticket(app.get(&path).admin().send().await.json()));
    let asked = app.get(&format!("{path}?from_line=3")).admin().send().await;
    insta::assert_json_snapshot!("logs_running_from_line", without_ticket(asked.json()));
    played.exit(0).await;
    insta::assert_json_snapshot!("logs_ended", app.get(&path).admin().send().await.json());
}

#[tokio::test]
async fn a_held_lock_is_refused_with_its_holder() {
    let app = TestApp::new().await;
    let holder = app.submit_as(Role::Operator, json!({"command": "true", "lock": "team/prod"})).await;
    let answer = app.post("/api/v1/run").role(Role::Developer).json(&json!({"command": "true", "lock": "team/prod"})).send().await;
    assert_eq!(answer.code(), (409, "LOCK_HELD".into()));
    insta::assert_json_snapshot!("lock_held", answer.json());
    assert_eq!(answer.json()["execution_id"], holder);
    insta::assert_json_snapshot!("locks", app.get("/api/v1/locks").role(Role::Viewer).send().await.json());
    let released = app.delete("/api/v1/locks/team/prod").admin().send().await;
    insta::assert_json_snapshot!("lock_released", released.json());
    assert_eq!(app.delete("/api/v1/locks/team%2Fprod").admin().send().await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(app.get("/api/v1/locks/").admin().send().await.json(), json!([]));
}

#[tokio::test]
async fn a_kill_is_answered_by_both_spellings() {
    let app = TestApp::new().await;
    let (waiting, running) = (app.submit("true").await, app.submit("true").await);
    let deleted = app.delete(&format!("/api/v1/executions/{waiting}")).admin().send().await;
    assert_eq!(deleted.status, StatusCode::OK);
    insta::assert_json_snapshot!("kill_waiting", deleted.json());
    let again = app.delete(&format!("/api/v1/executions/{waiting}")).admin().send().await;
    assert_eq!((again.status, again.body.len()), (StatusCode::NO_CONTENT, 0));
    let posted = app.post(&format!("/api/v1/executions/{waiting}/kill")).admin().send().await;
    assert_eq!(posted.code(), (400, "INVALID_REQUEST".into()));
    let _played = app.play().await;
    for body in [json!({}), json!({"force": true})] {
        let killed = app.post(&format!("/api/v1/executions/{running}/kill")).admin().json(&body).send().await;
        assert_eq!(killed.status, StatusCode::OK, "{}", killed.text());
    }
    let status = app.get(&format!("/api/v1/executions/{running}/status")).admin().send().await.json();
    assert_eq!(status["status"], "TERMINATING");
}

#[tokio::test]
async fn a_rerun_is_a_new_execution_of_the_caller() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "make", "labels": {"a": "b"}})).await;
    let answer = app.post(&format!("/api/v1/executions/{id}/rerun")).role(Role::Operator).send().await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let again = answer.json()["execution_id"].as_str().expect("an id").to_owned();
    assert_ne!(again, id);
    let record = app.get(&format!("/api/v1/executions/{again}")).admin().send().await.json();
    assert_eq!((&record["command"], &record["created_by"]), (&json!("make"), &json!("operator@example.com")));
}

#[tokio::test]
async fn a_wait_comes_back_at_the_end_or_when_it_is_over() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let path = format!("/api/v1/executions/{id}/wait");
    let open = app.get(&format!("{path}?timeout=0")).admin().send().await;
    assert_eq!(open.json()["status"], "PENDING");
    let played = app.play().await;
    let (waited, _) = tokio::join!(app.get(&format!("{path}?timeout=600")).admin().send(), played.exit(7));
    assert_eq!((&waited.json()["status"], &waited.json()["exit_code"]), (&json!("FAILED"), &json!(7)));
    assert_eq!(app.get(&format!("{path}?timeout=-1")).admin().send().await.code(), (400, "INVALID_REQUEST".into()));
}

#[tokio::test]
async fn events_come_in_order_with_their_keys() {
    let app = TestApp::new().await;
    let id = app.ran(&["one"]).await;
    let events = app.get(&format!("/api/v1/executions/{id}/events")).admin().send().await.json();
    let kinds: Vec<&str> = events.as_array().expect("an array").iter().map(|event| event["eventType"].as_str().expect("a type")).collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind != "Audit").copied().collect::<Vec<_>>(),
        ["Task Pending", "Task Processing Started", "Task Completed"]
    );
    assert!(events[0]["GSI1PK"].as_str().is_some_and(|key| key == format!("TASK#{id}")));
}

#[tokio::test]
async fn whoami_and_doctor_tell_who_and_how() {
    let app = TestApp::new().await;
    let mut whoami = app.get("/api/v1/whoami").role(Role::Viewer).send().await.json();
    assert_eq!(whoami["server_version"].take(), env!("CARGO_PKG_VERSION"));
    insta::assert_json_snapshot!("whoami", whoami);
    insta::assert_json_snapshot!("doctor", app.get("/api/v1/doctor").admin().send().await.json());
}

#[tokio::test]
async fn metrics_are_for_those_who_may_unless_configured_public() {
    let app = TestApp::new().await;
    assert_eq!(app.get("/metrics").send().await.code(), (401, "UNAUTHORIZED".into()));
    assert_eq!(app.get("/metrics").role(Role::Developer).send().await.code(), (403, "FORBIDDEN".into()));
    assert_eq!(app.get("/metrics").role(Role::Viewer).send().await.text(), "runvoy_up 1\n");
    let app = TestApp::with(|_| {}, |config| config.metrics_public = true).await;
    assert_eq!(app.get("/metrics").send().await.text(), "runvoy_up 1\n");
}

#[tokio::test]
async fn readiness_is_that_of_the_store_and_ends_with_a_stop() {
    let app = TestApp::new().await;
    assert_eq!(app.get("/readyz").send().await.status, StatusCode::OK);
    app.store.set_identity_away(true);
    assert_eq!(app.get("/readyz").send().await.code(), (503, "DATABASE_ERROR".into()));
    assert_eq!(app.get("/livez").send().await.status, StatusCode::OK);
    app.store.set_identity_away(false);
    app.app.stop();
    assert_eq!(app.get("/readyz").send().await.code(), (503, "SERVICE_UNAVAILABLE".into()));
}

#[tokio::test]
async fn readiness_names_each_dependency_and_its_last_error() {
    let app = TestApp::new().await;
    let ask = async |dependencies: &[(&str, ProbeStatus, &str)]| {
        let probe =
            |(name, status, detail): &(&str, ProbeStatus, &str)| Probe { name: (*name).into(), status: *status, detail: (*detail).into() };
        let host = Arc::new(Probes(dependencies.iter().map(probe).collect()));
        let config = ServerConfig::new("http://x", [0; 32]);
        let parts = ServerParts { engine: app.engine.clone(), config, metrics: Arc::new(String::new), host };
        let request = http::Request::get("/readyz").body(axum::body::Body::empty()).expect("a request");
        let response = App::new(parts).answer(request).await;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.expect("a body");
        (status, String::from_utf8(body.to_vec()).expect("text"))
    };
    let dynamo = ("DynamoDB", ProbeStatus::Ok, "");
    let (status, text) = ask(&[dynamo, ("SQS", ProbeStatus::Warn, "refuses (AccessDenied)")]).await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, "ready\nDynamoDB: ok\nSQS: warn, refuses (AccessDenied)\n"));
    let (status, text) = ask(&[dynamo, ("S3", ProbeStatus::Fail, "does not answer")]).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let body: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(body["error"], "not ready because of S3");
    assert_eq!(body["details"], "DynamoDB: ok\nS3: fail, does not answer\n");
    app.store.set_identity_away(true);
    let (_, text) = ask(&[("DynamoDB", ProbeStatus::Fail, "does not answer")]).await;
    let body: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&body["code"], &body["details"]), (&json!("DATABASE_ERROR"), &json!("DynamoDB: fail, does not answer\n")));
}
