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
async fn a_terminal_is_recorded_and_shown() {
    let app = TestApp::new().await;
    let body = json!({"command": "true", "image": "local", "terminal": true});
    let id = app.post("/api/v1/run").admin().json(&body).send().await.json()["execution_id"].clone();
    let shown = app.get(&format!("/api/v1/executions/{}", id.as_str().expect("an id"))).admin().send().await.json();
    assert_eq!(shown["terminal"], true, "{shown}");
    assert!(app.play().await.execution.spec.terminal);
}

#[tokio::test]
async fn an_empty_field_is_refused_and_empty_arguments_are_a_program() {
    let app = TestApp::new().await;
    for field in ["lock", "image", "queue", "git_repo", "git_ref", "git_path", "git_token"] {
        let task = json!({"taskId": "a", "command": "true", field: ""});
        let defaults = json!({"tasks": [{"taskId": "a", "command": "true"}], "defaults": {field: ""}});
        for (path, body) in
            [("/api/v1/run", json!({"command": "true", field: ""})), ("/api/v1/jobs", json!({"tasks": [task]})), ("/api/v1/jobs", defaults)]
        {
            let refused = app.post(path).admin().json(&body).send().await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path} {body}: {}", refused.text());
            assert!(refused.text().contains(field), "{path} {body}: {}", refused.text());
        }
    }
    let first = submit(&app, "/api/v1/run", Role::Developer, "k1", &json!({"command": "true", "args": []})).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text());
    let again = submit(&app, "/api/v1/run", Role::Developer, "k1", &json!({"command": "true", "args": []})).await;
    assert_eq!(again.json()["execution_id"], first.json()["execution_id"], "it is the same request");
    let spec = app.play().await.execution.spec.clone();
    assert_eq!((spec.command.as_str(), spec.args, spec.lock), ("true", Some(Vec::new()), None));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_longest_is_the_longest() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let waited = app.get(&format!("/api/v1/executions/{id}/wait?timeout={}", u64::MAX)).admin().send().await;
    assert_eq!((waited.status, &waited.json()["status"]), (StatusCode::OK, &json!("PENDING")));
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

#[tokio::test]
async fn a_repeat_is_answered_as_the_first_was_whatever_changed_since() {
    let app = TestApp::new().await;
    let put = async |command: &str| {
        let answer = app.ask(http::Method::PUT, "/api/v1/playbooks/deploy").admin().json(&json!({"command": command})).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    };
    put("one").await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let asked = [
        ("/api/v1/run".to_owned(), json!({"command": "true", "env": {"A": "1"}})),
        ("/api/v1/playbooks/deploy/run".to_owned(), json!({})),
        (format!("/api/v1/executions/{id}/rerun"), json!({})),
    ];
    let all = async || {
        let mut ids = Vec::new();
        for (path, body) in &asked {
            let answer = submit(&app, path, Role::Developer, path.as_str(), body).await;
            assert_eq!(answer.status, StatusCode::ACCEPTED, "{path}: {}", answer.text());
            ids.push(answer.json()["execution_id"].clone());
        }
        ids
    };
    let first = all().await;
    let image = json!({"image": "alpine:3.20", "is_default": true});
    assert_eq!(app.post("/api/v1/images/register").admin().json(&image).send().await.status, StatusCode::CREATED);
    put("two").await;
    assert_eq!(all().await, first, "another default, another version");
    let rule = json!({"name": "paused", "effect": "deny", "roles": ["developer"]});
    assert_eq!(app.post("/api/v1/rules").admin().json(&rule).send().await.status, StatusCode::OK);
    assert_eq!(all().await, first, "another rule");
    let new = submit(&app, "/api/v1/run", Role::Developer, "new", &json!({"command": "true"})).await;
    assert_eq!(new.code(), (403, "FORBIDDEN".into()), "what is new is judged");
    app.delete("/api/v1/playbooks/deploy").admin().send().await;
    assert_eq!(all().await, first, "gone");
    for (path, body) in &asked {
        let crossed = submit(&app, "/api/v1/run", Role::Developer, path, &json!({"command": "other"})).await;
        assert_eq!(crossed.code(), (409, "CONFLICT".into()), "{path} {body}");
    }
    app.change(runvoy_model::change::Change::SetRole("developer@example.com".into(), Role::Viewer)).await;
    let (path, body) = &asked[0];
    assert_eq!(submit(&app, path, Role::Developer, path, body).await.code(), (403, "FORBIDDEN".into()), "their role is looked at first");
}

#[tokio::test]
async fn a_rerun_is_held_to_where_repositories_may_be_cloned_from_now() {
    let app = TestApp::with(|config| config.git_private = true, |_| {}).await;
    let body = json!({"command": "true", "git_repo": "https://192.168.1.7/team/x.git"});
    let id = app.submit_as(Role::Developer, body.clone()).await;
    let path = format!("/api/v1/executions/{id}/rerun");
    assert_eq!(app.post(&path).role(Role::Developer).send().await.status, StatusCode::ACCEPTED);
    let narrowed = app.restarted(|config| config.git_private = false);
    let answers = [
        narrowed.post("/api/v1/run").role(Role::Developer).json(&body).send().await,
        narrowed.post(&path).role(Role::Developer).send().await,
    ];
    for answer in answers {
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()));
        assert!(answer.text().contains("git_repo"), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_server_that_stops_takes_no_new_work() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    app.app.refuse_work();
    assert_eq!(app.get("/readyz").send().await.code(), (503, "SERVICE_UNAVAILABLE".into()));
    for (path, body) in [
        ("/api/v1/run".to_owned(), json!({"command": "true"})),
        (format!("/api/v1/executions/{id}/rerun"), json!({})),
        ("/api/v1/jobs".to_owned(), json!({"tasks": []})),
        ("/job.v1.JobService/EnqueueJob".to_owned(), json!({"jobParams": {"command": "true"}})),
    ] {
        let refused = app.post(&path).admin().json(&body).send().await;
        assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, "1"), "{path}: {}", refused.text());
    }
    assert_eq!(app.post(&format!("/api/v1/executions/{id}/kill")).admin().send().await.status.as_u16(), 200, "what there is can be ended");
}
