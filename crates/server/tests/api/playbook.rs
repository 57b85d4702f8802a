//! Playbooks on the server: the boundary for whoever is limited to them.

use http::{Method, StatusCode};
use runvoy_model::change::Change;
use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, email_of};

async fn push(app: &TestApp, role: Role, name: &str, body: &Value) -> Answer {
    app.ask(Method::PUT, &format!("/api/v1/playbooks/{name}")).role(role).json(body).send().await
}

async fn run(app: &TestApp, role: Role, name: &str, body: &Value) -> Answer {
    app.post(&format!("/api/v1/playbooks/{name}/run")).role(role).json(body).send().await
}

fn deploy() -> Value {
    json!({
        "description": "Deploys a service",
        "command": "deploy",
        "args": ["--region", "{{region}}"],
        "env": {"LEVEL": "info"},
        "lock": "prod",
        "parameters": {"region": {"type": "choice", "choices": ["eu", "us"]}, "count": {"type": "integer", "default": 1}},
    })
}

async fn rule(app: &TestApp, rule: Value) {
    app.change(Change::PutRule(Box::new(serde_json::from_value(rule).expect("a rule")))).await;
}

#[tokio::test]
async fn a_playbook_runs_with_its_parameters_as_data() {
    let app = TestApp::new().await;
    assert_eq!(push(&app, Role::Admin, "deploy", &deploy()).await.json()["version"], 1);
    let answer = run(&app, Role::Developer, "deploy", &json!({"parameters": {"region": "eu"}})).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
    let played = app.play().await;
    let spec = &played.execution.spec;
    assert_eq!((spec.command.as_str(), spec.args.as_deref()), ("deploy", Some(&["--region".to_owned(), "eu".to_owned()][..])));
    assert_eq!((spec.env["RUNVOY_PARAM_REGION"].as_str(), spec.env["RUNVOY_PARAM_COUNT"].as_str()), ("eu", "1"));
    assert_eq!(spec.playbook.as_ref().map(|playbook| (playbook.name.as_str(), playbook.version)), Some(("deploy", 1)));
    assert_eq!(played.execution.created_by, email_of(Role::Developer));
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let app = TestApp::new().await;
    push(&app, Role::Admin, "deploy", &deploy()).await;
    for (parameters, field) in [
        (json!({}), "parameters.region"),
        (json!({"region": "mars"}), "parameters.region"),
        (json!({"region": "eu; id"}), "parameters.region"),
        (json!({"region": "eu", "count": "many"}), "parameters.count"),
        (json!({"region": "eu", "other": 1}), "parameters.other"),
    ] {
        let answer = run(&app, Role::Developer, "deploy", &json!({"parameters": parameters})).await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{parameters}");
        assert!(answer.text().contains(field), "{}", answer.text());
    }
}

#[tokio::test]
async fn versions_stay_and_a_removed_playbook_is_gone() {
    let app = TestApp::new().await;
    push(&app, Role::Admin, "deploy", &deploy()).await;
    let mut second = deploy();
    second["command"] = json!("deploy2");
    assert_eq!(push(&app, Role::Admin, "deploy", &second).await.json()["version"], 2);
    let get = async |path: &str| app.get(path).role(Role::Developer).send().await;
    assert_eq!(get("/api/v1/playbooks/deploy").await.json()["command"], "deploy2");
    assert_eq!(get("/api/v1/playbooks/deploy?version=1").await.json()["command"], "deploy");
    assert_eq!(get("/api/v1/playbooks/deploy?version=3").await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(get("/api/v1/playbooks").await.json()["playbooks"].as_array().map(Vec::len), Some(1));
    let id = run(&app, Role::Developer, "deploy", &json!({"parameters": {"region": "us"}})).await.json()["execution_id"].clone();
    app.play().await.exit(0).await;
    assert_eq!(app.delete("/api/v1/playbooks/deploy").admin().send().await.status, StatusCode::OK);
    for path in ["/api/v1/playbooks/deploy", "/api/v1/playbooks/deploy?version=1"] {
        assert_eq!(get(path).await.code(), (404, "NOT_FOUND".into()), "{path}");
    }
    let rerun = app.post(&format!("/api/v1/executions/{}/rerun", id.as_str().expect("an id"))).role(Role::Developer).send().await;
    assert_eq!(rerun.code(), (404, "NOT_FOUND".into()), "what was removed is not run again");
    assert_eq!(push(&app, Role::Admin, "deploy", &deploy()).await.json()["version"], 4, "a version is never two texts");
}

#[tokio::test]
async fn security_09_only_admins_push_and_whoever_is_limited_runs_nothing_else() {
    let app = TestApp::new().await;
    for role in [Role::Operator, Role::Developer, Role::Viewer] {
        assert_eq!(push(&app, role, "deploy", &deploy()).await.code(), (403, "FORBIDDEN".into()));
    }
    push(&app, Role::Admin, "deploy", &deploy()).await;
    push(&app, Role::Admin, "wipe", &json!({"command": "wipe"})).await;
    rule(&app, json!({"name": "only-deploy", "effect": "allow", "roles": ["developer"], "playbooks": ["deploy"]})).await;
    let plain = app.post("/api/v1/run").role(Role::Developer).json(&json!({"command": "id"})).send().await;
    assert_eq!(plain.code(), (403, "FORBIDDEN".into()), "{}", plain.text());
    assert_eq!(run(&app, Role::Developer, "deploy", &json!({"parameters": {"region": "eu"}})).await.status, StatusCode::ACCEPTED);
    assert_eq!(run(&app, Role::Developer, "wipe", &json!({})).await.code(), (404, "NOT_FOUND".into()), "not theirs, so not there");
    let listed = app.get("/api/v1/playbooks").role(Role::Developer).send().await.json();
    assert_eq!(listed["playbooks"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(app.post("/api/v1/run").role(Role::Operator).json(&json!({"command": "id"})).send().await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_playbook_that_can_never_run_is_refused_when_it_is_pushed() {
    let app = TestApp::new().await;
    for (change, field) in [
        (json!({"comand": "x"}), "comand"),
        (json!({"args": ["{{nobody}}"]}), "args"),
        (json!({"image": "alpine"}), "image"),
        (json!({"secrets": ["nobody"]}), "secrets"),
        (json!({"git_repo": "ext::sh -c id"}), "git_repo"),
        (json!({"git_ref": "main"}), "git_repo"),
        (json!({"parameters": {"x": {"type": "string", "kind": 1}}}), "parameters.x.kind"),
    ] {
        let mut body = deploy();
        for (key, value) in change.as_object().expect("an object") {
            body[key] = value.clone();
        }
        let answer = push(&app, Role::Admin, "deploy", &body).await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{change}");
        assert!(answer.text().contains(field), "{field}: {}", answer.text());
    }
}
