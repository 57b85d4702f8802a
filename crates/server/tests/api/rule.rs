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
        assert!(answer.json()["error"].as_str().expect("text").contains(field), "{rule}: {}", answer.text());
    }
    assert_eq!(app.get("/api/v1/rules").admin().send().await.json(), json!({"rules": []}));
}

#[tokio::test]
async fn rules_are_listed_in_the_order_in_which_they_are_judged() {
    let app = TestApp::new().await;
    for (name, effect) in [("a", "allow"), ("b", "deny"), ("c", "allow"), ("a-b", "deny")] {
        put_rule(&app, &json!({"name": name, "effect": effect, "commands": ["make *"]})).await;
    }
    let list = app.get("/api/v1/rules").admin().send().await.json();
    let names: Vec<&str> = list["rules"].as_array().expect("rules").iter().filter_map(|rule| rule["name"].as_str()).collect();
    assert_eq!(names, ["a-b", "b", "a", "c"], "what denies comes first");
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

#[tokio::test]
async fn security_10_an_image_of_another_registry_is_on_no_list_by_its_short_name() {
    let app = TestApp::new().await;
    let register = async |image: &str| {
        let answer = app.post("/api/v1/images/register").role(Role::Operator).json(&json!({"image": image})).send().await;
        answer.json()["image_id"].as_str().expect("an id").to_owned()
    };
    let (ours, theirs) = (register("ghcr.io/team/tools:v1").await, register("evil.example/team/tools:v1").await);
    let run = async |image: &str| {
        let answer = app.post("/api/v1/run").role(Role::Developer).json(&json!({"command": "true", "image": image})).send().await;
        let said = explain(&app, Role::Developer, &format!("action=run&command=true&image={image}")).await.json();
        assert_eq!(said["allowed"] == true, answer.status == 202, "an explanation says what a run meets: {said}");
        answer.status.as_u16()
    };
    let list = |effect: &str, images: &[&str]| json!({"name": "images", "effect": effect, "roles": ["developer"], "images": images});
    for (rule, expected) in [
        (list("allow", &["tools*"]), [403, 403, 403]),
        (list("allow", &["local", "ghcr.io/team/*"]), [202, 403, 202]),
        (list("allow", &[&theirs]), [403, 202, 403]),
        (list("deny", &["evil.example/*"]), [202, 403, 202]),
        (list("deny", &["tools:*"]), [403, 403, 202]),
    ] {
        assert_eq!(put_rule(&app, &rule).await.status.as_u16(), 200, "{rule}");
        assert_eq!([run(&ours).await, run(&theirs).await, run("local").await], expected, "{rule}");
        assert_eq!(run("evil.example/team/tools:v1").await, expected[1], "by its reference: {rule}");
    }
}

#[tokio::test]
async fn an_explanation_about_a_playbook_says_what_its_run_would_meet() {
    let app = TestApp::new().await;
    let secret = json!({"name": "db", "key_name": "DB", "value": "hunter22"});
    app.post("/api/v1/secrets").admin().json(&secret).send().await;
    let put = app.ask(http::Method::PUT, "/api/v1/playbooks/deploy").admin();
    assert_eq!(put.json(&json!({"command": "deploy", "secrets": ["db"]})).send().await.status, 200);
    let ask = async |query: &str| explain(&app, Role::Developer, &format!("action=run&{query}")).await.json();
    let ran = app.post("/api/v1/playbooks/deploy/run").role(Role::Developer).send().await;
    assert_eq!(ran.status, 202, "{}", ran.text());
    assert_eq!(ask("playbook=deploy&secret=db").await["allowed"], true, "whoever pushed it granted the secret");
    assert_eq!(ask("command=deploy&secret=db").await["allowed"], false, "by hand it is not theirs to use");
    let missing = ask("playbook=nobody").await;
    assert_eq!((&missing["allowed"], &missing["why"]), (&json!(false), &json!("there is no such playbook")));
    assert_eq!(ask("playbook=..%2Fx").await["allowed"], false);
    put_rule(&app, &json!({"name": "only", "effect": "allow", "roles": ["developer"], "playbooks": ["other"]})).await;
    let (there, gone) = (ask("playbook=deploy").await.to_string(), ask("playbook=nobody").await.to_string());
    assert_eq!(there.replace("deploy", "nobody"), gone, "what is not theirs to run looks as if it were not there");
}
