//! Groups, rules and why: what admins write, what it comes to, and who may ask.

use runvoy_engine::action_word;
use runvoy_model::role::{Action, Role};
use runvoy_server::App;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, email_of};

async fn put_rule(app: &TestApp, rule: &Value) -> Answer {
    app.post("/api/v1/rules").admin().json(rule).send().await
}

async fn put_group(app: &TestApp, name: &str, members: &[&str]) -> Answer {
    app.post("/api/v1/groups").admin().json(&json!({"name": name, "members": members})).send().await
}

async fn run(app: &TestApp, role: Role, command: &str) -> Answer {
    app.post("/api/v1/run").role(role).json(&json!({"command": command})).send().await
}

async fn explain(app: &TestApp, role: Role, query: &str) -> Answer {
    app.get(&format!("/api/v1/access/explain?{query}")).role(role).send().await
}

#[tokio::test]
async fn groups_come_back_as_they_were_put() {
    let app = TestApp::new().await;
    let put = put_group(&app, "team/ops", &["Bob@Example.com", "ana@example.com", "bob@example.com"]).await;
    assert_eq!(put.json()["name"], "team/ops");
    let list = app.get("/api/v1/groups/").admin().send().await.json();
    assert_eq!(list["groups"][0]["members"], json!(["ana@example.com", "bob@example.com"]));
    assert_eq!(list["groups"][0]["created_by"], email_of(Role::Admin));
    put_group(&app, "team/ops", &["eve@example.com"]).await;
    let list = app.get("/api/v1/groups").admin().send().await.json();
    assert_eq!(list["groups"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["groups"][0]["members"], json!(["eve@example.com"]));
    for path in ["/api/v1/groups/team%2Fops", "/api/v1/groups/team/ops"] {
        let expected = if path.contains('%') { 200 } else { 404 };
        assert_eq!(app.delete(path).admin().send().await.status.as_u16(), expected, "{path}");
    }
    assert_eq!(app.get("/api/v1/groups").admin().send().await.json(), json!({"groups": []}));
    assert_eq!(put_group(&app, "a b", &[]).await.code(), (400, "INVALID_REQUEST".into()));
    assert_eq!(put_group(&app, "a", &["nobody"]).await.code(), (400, "INVALID_REQUEST".into()));
}

#[tokio::test]
async fn a_rule_that_is_none_is_refused_by_field_and_a_slip_does_not_widen_it() {
    let app = TestApp::new().await;
    for (rule, field) in [
        (json!({"name": "r"}), "effect"),
        (json!({"name": "r", "effect": "maybe"}), "effect"),
        (json!({"name": "r r", "effect": "deny", "commands": ["x"]}), "name"),
        (json!({"name": "r", "effect": "deny"}), "effect"),
        (json!({"name": "r", "effect": "allow"}), "effect"),
        (json!({"name": "r", "effect": "deny", "commands": ["x"], "user": ["ana@example.com"]}), "user"),
        (json!({"name": "r", "effect": "deny", "commands": ["x"], "users": ["ana"]}), "users"),
        (json!({"name": "r", "effect": "deny", "commands": ["x"], "roles": ["admin"]}), "roles"),
        (json!({"name": "r", "effect": "deny", "commands": ["x"], "roles": ["root"]}), "roles"),
        (json!({"name": "r", "effect": "deny", "commands": [""]}), "commands"),
    ] {
        let answer = put_rule(&app, &rule).await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{rule}");
        assert!(answer.json()["details"].as_str().expect("text").contains(field), "{rule}: {}", answer.text());
    }
    assert_eq!(app.get("/api/v1/rules").admin().send().await.json(), json!({"rules": []}));
}

#[tokio::test]
async fn a_rule_narrows_a_role_from_the_next_run_on_and_says_which_it_was() {
    let app = TestApp::new().await;
    assert_eq!(run(&app, Role::Developer, "terraform destroy").await.status.as_u16(), 202);
    put_group(&app, "interns", &[&email_of(Role::Developer)]).await;
    let rule =
        json!({"name": "no-destroy", "effect": "deny", "groups": ["interns"], "commands": ["terraform destroy*"], "reason": "ask ops"});
    assert_eq!(put_rule(&app, &rule).await.json()["name"], "no-destroy");
    assert_eq!(app.get("/api/v1/rules").admin().send().await.json(), json!({"rules": [rule]}));
    let refused = run(&app, Role::Developer, "terraform destroy").await;
    assert_eq!(refused.code(), (403, "FORBIDDEN".into()));
    assert!(refused.text().contains("no-destroy") && refused.text().contains("ask ops"), "{}", refused.text());
    assert_eq!(run(&app, Role::Developer, "terraform plan").await.status.as_u16(), 202);
    assert_eq!(run(&app, Role::Operator, "terraform destroy").await.status.as_u16(), 202, "it speaks of a group");
    assert_eq!(app.get("/api/v1/whoami").role(Role::Developer).send().await.json()["rules"], json!(["no-destroy"]));
    assert_eq!(app.delete("/api/v1/rules/no-destroy").admin().send().await.status.as_u16(), 200);
    assert_eq!(app.delete("/api/v1/rules/no-destroy").admin().send().await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(run(&app, Role::Developer, "terraform destroy").await.status.as_u16(), 202);
}

#[tokio::test]
async fn an_explanation_says_what_the_deed_itself_would() {
    let app = TestApp::new().await;
    put_rule(&app, &json!({"name": "only-echo", "effect": "allow", "roles": ["developer"], "commands": ["echo *"]})).await;
    put_rule(&app, &json!({"name": "prod", "effect": "deny", "roles": ["developer"], "locks": ["prod/*"]})).await;
    for (query, allowed, rule) in [
        ("action=run&command=echo%20hi", true, "only-echo"),
        ("action=run&command=rm%20-rf", false, "only-echo"),
        ("action=run&command=echo%20hi&lock=prod/db", false, "prod"),
        ("action=run", true, "role:developer"),
        ("action=run&lock=prod/db", false, "prod"),
        ("action=manage-users", false, "role:developer"),
        ("action=read_locks", true, "role:developer"),
    ] {
        let said = explain(&app, Role::Developer, query).await.json();
        assert_eq!((&said["allowed"], &said["rule"]), (&json!(allowed), &json!(rule)), "{query}: {said}");
        assert_eq!((&said["user"], &said["role"]), (&json!(email_of(Role::Developer)), &json!("developer")));
        assert!(!said["why"].as_str().expect("text").is_empty() && said["rules"].is_array());
    }
    assert_eq!(run(&app, Role::Developer, "echo hi").await.status.as_u16(), 202);
    assert_eq!(run(&app, Role::Developer, "rm -rf").await.status.as_u16(), 403);
    assert_eq!(explain(&app, Role::Viewer, "action=run&command=echo").await.json()["rule"], "role:viewer");
    assert_eq!(explain(&app, Role::Viewer, "action=fly").await.code(), (400, "INVALID_REQUEST".into()));
    assert_eq!(explain(&app, Role::Viewer, "").await.code(), (400, "INVALID_REQUEST".into()));
}

#[tokio::test]
async fn an_admin_may_ask_about_anybody_and_others_about_themselves() {
    let app = TestApp::new().await;
    let theirs = format!("action=run&user={}", email_of(Role::Developer));
    assert_eq!(explain(&app, Role::Admin, &theirs).await.json()["user"], email_of(Role::Developer));
    for role in [Role::Operator, Role::Viewer] {
        let nobodys = theirs.replace("developer@", "nobody@");
        let (there, missing) = (explain(&app, role, &theirs).await, explain(&app, role, &nobodys).await);
        assert_eq!(there.code(), (404, "NOT_FOUND".into()));
        assert_eq!(there.text().replace("developer@", "nobody@"), missing.text(), "not there and not yours look the same");
    }
    app.revoke(Role::Developer).await;
    let said = explain(&app, Role::Admin, &theirs).await.json();
    assert_eq!(said["allowed"], false);
    assert!(said["why"].as_str().expect("text").contains("revoked"), "{said}");
}

#[tokio::test]
async fn an_explanation_about_an_execution_tells_nothing_of_one_that_is_not_theirs() {
    let app = TestApp::new().await;
    let theirs = app.submit_as(Role::Operator, json!({"command": "true"})).await;
    let mine = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let ask = async |id: &str| explain(&app, Role::Developer, &format!("action=kill&execution={id}")).await.json();
    assert_eq!(ask(&mine).await["allowed"], true);
    assert_eq!(ask(&theirs).await["allowed"], false);
    assert_eq!(ask(&theirs).await, ask(&"0".repeat(32)).await);
    let said = explain(&app, Role::Operator, &format!("action=kill&execution={mine}")).await.json();
    assert_eq!(said["allowed"], true);
}

#[tokio::test]
async fn security_06_the_action_of_every_route_can_be_asked_about() {
    let app = TestApp::new().await;
    for row in App::table().into_iter().filter(|row| row.rule.action() != Action::Public) {
        let word = action_word(row.rule.action());
        let said = explain(&app, Role::Admin, &format!("action={word}")).await;
        assert_eq!(said.json()["allowed"], true, "{} {}: {word}", row.method, row.path);
    }
}
