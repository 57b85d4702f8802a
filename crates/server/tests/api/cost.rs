//! Costs over the API: summed up by what was asked for, for whom the caller may see.

use http::StatusCode;
use runvoy_model::cost::Rates;
use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::{ROLES, TestApp, email_of};

/// Each of the app's runs takes 1.5 s of a vCPU.
const RUN_USD: f64 = 0.0015;

async fn app() -> TestApp {
    TestApp::with(|config| config.rates = Rates { vcpu_hour_usd: 3.6, gb_hour_usd: 0.0 }, |_| {}).await
}

async fn cost(app: &TestApp, role: Role, query: &str) -> Value {
    let answer = app.get(&format!("/api/v1/cost{query}")).role(role).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

fn item(name: &str, executions: u64, cost_usd: f64) -> Value {
    json!({"name": name, "executions": executions, "cost_usd": cost_usd})
}

async fn play(app: &TestApp) {
    let played = app.play().await;
    app.clock.advance(1_500);
    played.exit(0).await;
}

async fn run(app: &TestApp, role: Role) {
    app.submit_as(role, json!({"command": "true"})).await;
    play(app).await;
}

#[tokio::test]
async fn costs_are_summed_up_by_what_is_asked_for() {
    let app = app().await;
    let empty = cost(&app, Role::Admin, "").await;
    assert_eq!((&empty["items"], &empty["executions"], &empty["cost_usd"]), (&json!([]), &json!(0), &json!(0.0)));
    for role in [Role::Developer, Role::Admin, Role::Developer] {
        run(&app, role).await;
    }
    app.submit("it waits").await;
    let report = cost(&app, Role::Admin, "?by=user").await;
    let expected = json!({
        "by": "user",
        "since": report["since"],
        "executions": 3,
        "cost_usd": 0.0045,
        "items": [item(&email_of(Role::Developer), 2, 2.0 * RUN_USD), item(&email_of(Role::Admin), 1, RUN_USD)],
        "more": 0,
        "complete": true,
        "has_rates": true,
    });
    assert_eq!(report, expected);
    assert!(report["since"].as_str().is_some_and(|since| since.ends_with("T00:00:00.000Z")), "{report}");
    for (by, name) in [("image", "local"), ("queue", "default")] {
        assert_eq!(cost(&app, Role::Admin, &format!("?by={by}")).await["items"], json!([item(name, 3, 0.0045)]), "{by}");
    }
    assert_eq!(cost(&app, Role::Admin, "?by=job").await["items"], json!([]));
    let limited = cost(&app, Role::Admin, "?limit=1").await;
    assert_eq!((&limited["items"], &limited["more"]), (&json!([item(&email_of(Role::Developer), 2, 2.0 * RUN_USD)]), &json!(1)));
    let months = cost(&app, Role::Admin, "?by=month").await;
    assert_eq!((months["items"][0]["executions"].as_u64(), months["items"][0]["name"].as_str().map(str::len)), (Some(3), Some(7)));
    let later = cost(&app, Role::Admin, "?since=2199-01-01T00:00:00Z").await;
    assert_eq!(later["executions"], 0);
}

#[tokio::test]
async fn a_developer_sees_only_their_own_cost() {
    let app = app().await;
    for role in [Role::Developer, Role::Admin, Role::Operator] {
        run(&app, role).await;
    }
    for role in ROLES {
        for (by, own) in [("user", email_of(Role::Developer)), ("queue", "default".to_owned())] {
            let report = cost(&app, role, &format!("?by={by}")).await;
            let sees_all = role != Role::Developer;
            assert_eq!(report["executions"], if sees_all { 3 } else { 1 }, "{role:?}");
            if !sees_all {
                assert_eq!(report["items"], json!([item(&own, 1, RUN_USD)]));
            }
        }
    }
}

#[tokio::test]
async fn a_job_is_an_item_of_its_own() {
    let app = app().await;
    let body = json!({"tasks": [{"taskId": "a", "command": "true"}, {"taskId": "b", "command": "true"}]});
    let job = app.post("/api/v1/jobs").role(Role::Developer).json(&body).send().await.json();
    for _ in 0..2 {
        play(&app).await;
    }
    run(&app, Role::Developer).await;
    let report = cost(&app, Role::Developer, "?by=job").await;
    assert_eq!(report["items"], json!([item(job["jobId"].as_str().expect("an id"), 2, 2.0 * RUN_USD)]));
    assert_eq!(report["executions"], 3, "the sum is that of all executions");
}

#[tokio::test]
async fn what_cannot_be_summed_up_by_is_refused_by_name() {
    let app = app().await;
    for (query, field) in [("?by=team", "by"), ("?since=yesterday", "since"), ("?limit=0", "limit"), ("?limit=1001", "limit")] {
        let answer = app.get(&format!("/api/v1/cost{query}")).admin().send().await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(answer.text().contains(field), "{}", answer.text());
    }
}
