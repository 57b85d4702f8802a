//! A look at everything: what is found, what is repaired, and what a request did.

use http::StatusCode;
use runvoy_model::change::{Change, Invitation, InvitedBy};
use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::TestApp;

async fn reconcile(app: &TestApp) -> Value {
    let answer = app.post("/api/v1/health/reconcile").admin().send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.json()["status"], "ok");
    answer.json()["report"].clone()
}

#[tokio::test]
async fn a_sound_server_has_nothing_to_repair() {
    let app = TestApp::new().await;
    app.submit("true").await;
    let report = reconcile(&app).await;
    assert_eq!((&report["issues"], &report["reconciled_count"], &report["error_count"]), (&json!([]), &json!(0), &json!(0)));
    assert_eq!(report["authorizer_status"]["total_users_checked"], 4);
}

#[tokio::test]
async fn an_invitation_that_nobody_answered_is_removed() {
    let app = TestApp::new().await;
    let until = runvoy_model::time::UnixMs(crate::app::NOW + 1_000);
    let by = InvitedBy::Token([9; 32], until);
    app.change(Change::InviteUser(Invitation { email: "late@example.com".into(), role: Role::Viewer, by })).await;
    app.clock.advance(1_000);
    let report = reconcile(&app).await;
    assert_eq!((&report["reconciled_count"], &report["issues"][0]["resource_id"]), (&json!(1), &json!("late@example.com")));
    assert_eq!(report["issues"][0]["action"], "repaired");
    assert_eq!(reconcile(&app).await["reconciled_count"], 0);
}

#[tokio::test]
async fn a_lock_that_changed_hands_during_the_look_stays_where_it_went() {
    let app = TestApp::new().await;
    let body = json!({"command": "true", "lock": "prod", "lock_wait": 3600});
    app.submit_as(Role::Admin, body.clone()).await;
    let played = app.play().await;
    let next = app.submit_as(Role::Admin, body).await;
    app.store.remember_locks().await;
    played.exit(0).await;
    let report = reconcile(&app).await;
    assert_eq!((&report["issues"], &report["reconciled_count"]), (&json!([]), &json!(0)), "{report}");
    let status = app.get(&format!("/api/v1/executions/{next}/status")).admin().send().await.json();
    assert_eq!(status["status"], "PENDING", "{status}");
    let played = app.play().await;
    assert_eq!(played.execution.id.to_string(), next, "it holds the lock and may run");
}

#[tokio::test]
async fn only_admins_reconcile_and_trace() {
    let app = TestApp::new().await;
    for role in [Role::Operator, Role::Developer, Role::Viewer] {
        assert_eq!(app.post("/api/v1/health/reconcile").role(role).send().await.code(), (403, "FORBIDDEN".into()));
        assert_eq!(app.get("/api/v1/trace/x").role(role).send().await.code(), (403, "FORBIDDEN".into()));
    }
}

#[tokio::test]
async fn a_request_is_found_again_by_its_id() {
    let app = TestApp::new().await;
    let body = json!({"command": "true"});
    let submitted = app.post("/api/v1/run").role(Role::Developer).header("x-request-id", "deploy-42").json(&body).send().await.json();
    app.submit("other").await;
    let trace = app.get("/api/v1/trace/deploy-42").admin().send().await.json();
    let executions = trace["related_resources"]["executions"].as_array().expect("executions");
    assert_eq!(executions.len(), 1);
    assert_eq!(executions[0]["execution_id"], submitted["execution_id"]);
    assert!(trace["logs"][0]["message"].as_str().is_some_and(|text| text.contains("executions.run")), "{trace}");
    let nothing = app.get("/api/v1/trace/nobody").admin().send().await.json();
    assert_eq!(nothing["logs"], json!([]));
}
