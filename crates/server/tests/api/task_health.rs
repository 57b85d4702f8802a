//! How what runs is, over HTTP: for everything a caller may see, for one execution, and for what does not run. And whether alerts arrive.

use std::sync::Arc;

use async_trait::async_trait;
use http::StatusCode;
use runvoy_model::role::Role;
use runvoy_ports::alert::{AlertError, Alerter, Notice};
use serde_json::json;

use crate::app::TestApp;

/// Takes every message.
pub struct Taken;

#[async_trait]
impl Alerter for Taken {
    async fn tell(&self, _: &Notice) -> Result<(), AlertError> {
        Ok(())
    }

    fn place(&self) -> &str {
        "hooks.example.com"
    }
}

#[tokio::test]
async fn what_runs_is_shown_with_its_health_the_worst_first() {
    let app = TestApp::new().await;
    let empty = app.get("/api/v1/health/tasks").role(Role::Viewer).send().await.json();
    let nothing = json!({"totalProcessing": 0, "healthy": 0, "warning": 0, "critical": 0, "overtime": 0});
    assert_eq!((&empty["summary"], &empty["tasks"]), (&nothing, &json!([])));
    let old = app.submit("true").await;
    let _old = app.play().await;
    app.clock.advance(11 * 60_000);
    let new = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let _new = app.play().await;
    let all = app.get("/api/v1/health/tasks").role(Role::Viewer).send().await.json();
    assert_eq!(all["summary"], json!({"totalProcessing": 2, "healthy": 1, "warning": 0, "critical": 1, "overtime": 0}));
    assert_eq!(all["checkedAt"], "2026-01-03T14:33:19.640Z");
    let first = &all["tasks"][0];
    assert_eq!((&first["requestId"], &first["health"], &first["elapsed"]), (&json!(old), &json!("critical"), &json!(660_000)));
    assert_eq!((&first["timeSinceLastEvent"], &first["lastEventType"]), (&json!(660_000), &json!("Task Processing Started")));
    assert!(first["workerId"].is_string());
    let own = app.get("/api/v1/health/tasks").role(Role::Developer).send().await.json();
    assert_eq!((&own["summary"]["totalProcessing"], &own["tasks"][0]["requestId"]), (&json!(1), &json!(new)));
}

#[tokio::test]
async fn one_execution_has_a_health_only_while_it_runs() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let path = format!("/api/v1/health/tasks/{id}");
    assert_eq!(app.get(&path).admin().send().await.code(), (409, "CONFLICT".into()), "it waits");
    let played = app.play().await;
    let answer = app.get(&path).admin().send().await;
    assert_eq!((answer.status, &answer.json()["health"]), (StatusCode::OK, &json!("healthy")));
    assert_eq!(app.get(&path).role(Role::Developer).send().await.code(), (404, "NOT_FOUND".into()), "not theirs");
    played.exit(0).await;
    assert_eq!(app.get(&path).admin().send().await.code(), (409, "CONFLICT".into()), "it has ended");
    assert_eq!(app.get("/api/v1/health/tasks/ffffffff").admin().send().await.code(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn alerts_can_be_tried_where_there_are_any() {
    let app = TestApp::new().await;
    let none = app.post("/api/v1/alerts/test").admin().send().await;
    assert_eq!(none.code(), (409, "CONFLICT".into()));
    assert!(none.text().contains("alerts.slack_webhook_url"), "{}", none.text());
    app.engine.attach_alerter(Arc::new(Taken));
    let taken = app.post("/api/v1/alerts/test").admin().send().await;
    assert_eq!((taken.status, &taken.json()["place"]), (StatusCode::OK, &json!("hooks.example.com")));
    assert_eq!(app.post("/api/v1/alerts/test").role(Role::Operator).send().await.code(), (403, "FORBIDDEN".into()));
    let doctor = app.get("/api/v1/doctor").admin().send().await.text();
    assert!(doctor.contains("to hooks.example.com; last message 2026-01-03T14:22:19.640Z"), "{doctor}");
}
