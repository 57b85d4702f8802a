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
async fn a_playbook_may_ask_for_a_terminal() {
    let app = TestApp::new().await;
    for (name, terminal) in [("with", true), ("without", false)] {
        let put = push(&app, Role::Admin, name, &json!({"command": "true", "terminal": terminal})).await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.text());
        let kept = app.get(&format!("/api/v1/playbooks/{name}")).admin().send().await.json();
        assert_eq!(kept.get("terminal"), terminal.then_some(&json!(true)), "{kept}");
        assert_eq!(run(&app, Role::Developer, name, &json!({})).await.status, StatusCode::ACCEPTED);
        let played = app.play().await;
        assert_eq!(played.execution.spec.terminal, terminal);
        played.exit(0).await;
    }
}

#[tokio::test]
async fn a_playbook_with_an_empty_lock_is_refused() {
    let app = TestApp::new().await;
    let empty = push(&app, Role::Admin, "hello", &json!({"command": "echo hi", "lock": ""})).await;
    assert_eq!(empty.status, StatusCode::BAD_REQUEST, "{}", empty.text());
    let put = push(&app, Role::Admin, "hello", &json!({"command": "echo hi", "args": []})).await;
    assert_eq!(put.status, StatusCode::OK, "{}", put.text());
    let kept = app.get("/api/v1/playbooks/hello").admin().send().await.json();
    assert_eq!((kept.get("args"), kept.get("lock"), &kept["command"]), (Some(&json!([])), None, &json!("echo hi")));
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
        (json!({"region": "eu", "other": 1}), "unknown parameter other; expected count or region"),
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

async fn rerun(app: &TestApp, role: Role, id: &Value) -> Answer {
    app.post(&format!("/api/v1/executions/{}/rerun", id.as_str().expect("an id"))).role(role).send().await
}

async fn secret(app: &TestApp, role: Role, name: &str, key_name: &str, value: &str) {
    let body = json!({"name": name, "key_name": key_name, "value": value});
    let answer = app.post("/api/v1/secrets").role(role).json(&body).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
}

#[tokio::test]
async fn security_09_versions_of_a_removed_playbook_never_run_again_when_its_name_is_reused() {
    let app = TestApp::new().await;
    push(&app, Role::Admin, "deploy", &json!({"command": "old"})).await;
    let old = run(&app, Role::Developer, "deploy", &json!({})).await.json()["execution_id"].clone();
    app.delete("/api/v1/playbooks/deploy").admin().send().await;
    assert_eq!(push(&app, Role::Admin, "deploy", &json!({"command": "new"})).await.json()["version"], 3);
    for version in [1, 2] {
        let read = app.get(&format!("/api/v1/playbooks/deploy?version={version}")).admin().send().await;
        assert_eq!(read.code(), (404, "NOT_FOUND".into()), "{version}");
        for role in [Role::Admin, Role::Developer] {
            assert_eq!(run(&app, role, "deploy", &json!({"version": version})).await.code(), (404, "NOT_FOUND".into()), "{version}");
        }
    }
    assert_eq!(rerun(&app, Role::Developer, &old).await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(rerun(&app, Role::Admin, &old).await.code(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn security_09_a_version_that_was_pushed_over_is_for_admins_and_for_reruns() {
    let app = TestApp::new().await;
    push(&app, Role::Admin, "deploy", &json!({"command": "one"})).await;
    assert_eq!(run(&app, Role::Developer, "deploy", &json!({"version": 1})).await.status, StatusCode::ACCEPTED, "it is the newest");
    let ran = run(&app, Role::Developer, "deploy", &json!({})).await.json()["execution_id"].clone();
    push(&app, Role::Admin, "deploy", &json!({"command": "two"})).await;
    for role in [Role::Operator, Role::Developer] {
        let refused = run(&app, role, "deploy", &json!({"version": 1})).await;
        assert_eq!(refused.code(), (403, "FORBIDDEN".into()));
        assert!(refused.text().contains("version 2 is the newest"), "{}", refused.text());
        for path in ["/api/v1/playbooks/deploy/run?dry_run=1", "/api/v1/playbooks/deploy/run/dry-run"] {
            let dry = app.post(path).role(role).json(&json!({"version": 1})).send().await;
            assert_eq!((dry.status, &dry.json()["allowed"]), (StatusCode::OK, &json!(false)), "a dry run says the same");
        }
    }
    assert_eq!(run(&app, Role::Admin, "deploy", &json!({"version": 1})).await.status, StatusCode::ACCEPTED);
    assert_eq!(run(&app, Role::Developer, "deploy", &json!({"version": 2})).await.status, StatusCode::ACCEPTED);
    assert_eq!(rerun(&app, Role::Developer, &ran).await.status, StatusCode::ACCEPTED, "what ran may run again");
}

#[tokio::test]
async fn security_09_a_secret_that_took_the_name_of_another_is_not_given_to_a_playbook() {
    let app = TestApp::new().await;
    secret(&app, Role::Admin, "db", "DB_PASSWORD", "admins-value").await;
    let body = json!({"command": "deploy", "secrets": ["db"]});
    push(&app, Role::Admin, "deploy", &body).await;
    assert_eq!(run(&app, Role::Developer, "deploy", &json!({})).await.status, StatusCode::ACCEPTED);
    let queued = app.play().await;
    let given = async || queued.materials().await.map(|materials| materials.secrets[0].value.clone());
    assert_eq!(given().await.expect("it is theirs to use"), "admins-value");
    let put = async |body: Value| app.ask(Method::PUT, "/api/v1/secrets/db").role(Role::Operator).json(&body).send().await.status;
    assert_eq!(put(json!({"value": "a new value"})).await, StatusCode::OK);
    assert_eq!(given().await.expect("a new value is the same secret"), "a new value");
    assert_eq!(put(json!({"key_name": "OTHER_PASSWORD"})).await, StatusCode::OK);
    assert!(given().await.is_err(), "nobody pushed a playbook that sets OTHER_PASSWORD");
    let refused = run(&app, Role::Developer, "deploy", &json!({})).await;
    assert_eq!(refused.code(), (409, "CONFLICT".into()));
    assert!(refused.text().contains("push the playbook again"), "{}", refused.text());
    assert_eq!(put(json!({"key_name": "DB_PASSWORD"})).await, StatusCode::OK);
    assert_eq!(app.delete("/api/v1/secrets/db").admin().send().await.status, StatusCode::OK);
    app.clock.advance(1);
    secret(&app, Role::Developer, "db", "DB_PASSWORD", "squatted").await;
    assert!(given().await.is_err(), "the name alone is nothing");
    for role in [Role::Developer, Role::Admin] {
        assert_eq!(run(&app, role, "deploy", &json!({})).await.code(), (409, "CONFLICT".into()));
    }
    let rerun = rerun(&app, Role::Developer, &json!(queued.execution.id)).await;
    assert_eq!(rerun.code(), (409, "CONFLICT".into()));
    push(&app, Role::Admin, "deploy", &body).await;
    assert_eq!(run(&app, Role::Developer, "deploy", &json!({})).await.status, StatusCode::ACCEPTED, "an admin chose it");
}

#[tokio::test]
async fn security_05_queued_work_of_who_was_revoked_or_may_run_nothing_any_more_gets_no_secret() {
    for change in [Change::RevokeUser(email_of(Role::Developer)), Change::SetRole(email_of(Role::Developer), Role::Viewer)] {
        let app = TestApp::new().await;
        secret(&app, Role::Admin, "db", "DB_PASSWORD", "admins-value").await;
        secret(&app, Role::Developer, "own", "OWN", "own-value").await;
        push(&app, Role::Admin, "deploy", &json!({"command": "deploy", "secrets": ["db"]})).await;
        run(&app, Role::Developer, "deploy", &json!({})).await;
        app.submit_as(Role::Developer, json!({"command": "true", "secrets": ["own"]})).await;
        let (by_playbook, plain) = (app.play().await, app.play().await);
        assert!(by_playbook.materials().await.is_ok() && plain.materials().await.is_ok());
        app.change(change.clone()).await;
        for played in [by_playbook, plain] {
            let refused = played.materials().await.expect_err("they may run nothing").to_string();
            assert!(refused.contains("developer@example.com"), "{change:?}: {refused}");
        }
    }
}
