//! What a run would be: told in full, and nothing of it kept.

use runvoy_engine::RunLimits;
use runvoy_model::change::Change;
use runvoy_model::cost::Rates;
use runvoy_model::record::Kind;
use runvoy_model::role::Role;
use runvoy_ports::record::RecordStore as _;
use runvoy_ports::store::{EventQuery, ExecutionStore as _, ListQuery};
use serde_json::{Value, json};

use crate::app::{Answer, TestApp};

async fn dry(app: &TestApp, role: Role, body: &Value) -> Answer {
    app.post("/api/v1/run?dry_run=1").role(role).json(body).send().await
}

/// Everything that the store has, as text.
async fn everything(app: &TestApp) -> String {
    let events = app.store.events(EventQuery { limit: 10_000, ..EventQuery::default() }).await.expect("events");
    let executions = app.store.list(ListQuery { limit: 10_000, ..ListQuery::default() }).await.expect("executions");
    let mut all = format!("{events:?} {executions:?} {:?}", app.store.locks().await.expect("locks"));
    for kind in Kind::ALL {
        all.push_str(&format!("{:?}", app.store.records(kind).await.expect("records")));
    }
    all
}

#[tokio::test]
async fn it_says_all_that_would_happen() {
    let limits = RunLimits { cpu_units: Some(512), memory_mib: Some(256), processes: Some(64), log_bytes: Some(1 << 20) };
    let rates = Rates { vcpu_hour_usd: 0.04, gb_hour_usd: 0.0 };
    let app = TestApp::with(|config| (config.limits, config.rates) = (limits, rates), |_| {}).await;
    let secret = json!({"name": "db", "key_name": "DB_PASSWORD", "value": "hunter2"});
    assert_eq!(app.post("/api/v1/secrets").role(Role::Developer).json(&secret).send().await.status, 201);
    let body = json!({
        "command": "make deploy", "env": {"B": "hidden-b", "A": "hidden-a"}, "secrets": ["db"], "lock": "prod", "lock_wait": 60, "timeout": 90,
        "retries": 2, "priority": 1, "git_repo": "https://git.example/x.git", "git_ref": "main", "git_path": "deploy",
    });
    let answer = dry(&app, Role::Developer, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = json!({
        "allowed": true, "image_id": "local", "image": "local", "command": "make deploy", "env": ["A", "B"],
        "secrets": [{"name": "db", "key_name": "DB_PASSWORD"}],
        "git_repo": "https://git.example/x.git", "git_ref": "main", "git_path": "deploy",
        "lock": "prod", "lock_wait": 60, "queue": "default", "priority": 1, "retries": 2, "timeout": 90,
        "limits": {"cpu": 512, "memory": 256, "processes": 64, "log_bytes": 1 << 20},
        "rules": [{"rule": "role:developer", "effect": "allow", "why": "no rule denies it"}],
        "cost_usd_per_hour": 0.04,
    });
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn it_tells_who_holds_the_lock_and_what_a_registered_image_would_get() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Operator, json!({"command": "true", "lock": "prod"})).await;
    let image = json!({"image": "alpine:3.20", "cpu": 256, "memory": 512, "is_default": true});
    let image = app.post("/api/v1/images/register").admin().json(&image).send().await.json()["image_id"].clone();
    let answer = dry(&app, Role::Developer, &json!({"command": "true", "lock": "prod"})).await.json();
    assert_eq!((&answer["allowed"], &answer["image_id"], &answer["image"]), (&json!(false), &image, &json!("alpine:3.20")));
    let waits = dry(&app, Role::Developer, &json!({"command": "true", "lock": "prod", "lock_wait": 60})).await.json();
    assert_eq!((&waits["allowed"], waits["lock_held"].is_object()), (&json!(true), true), "it would wait in line");
    assert_eq!((&answer["limits"]["cpu"], &answer["limits"]["memory"]), (&json!(256), &json!(512)));
    assert!(answer.get("cost_usd_per_hour").is_none(), "nothing here could run it");
    let held = &answer["lock_held"];
    assert_eq!((&held["execution_id"], &held["held_by"]), (&json!(id), &json!("operator@example.com")));
    assert!(held["log_url"].as_str().expect("an address").contains(&id) && !answer.to_string().contains("token"));
}

#[tokio::test]
async fn it_tells_where_no_worker_would_take_it() {
    let app = TestApp::new().await;
    let waits_for = async |body: Value| dry(&app, Role::Admin, &body).await.json()["waiting_for"].clone();
    assert_eq!(waits_for(json!({"command": "true"})).await, Value::Null);
    let nobody = json!({"code": "worker", "message": "a worker: no worker serves queue ghost"});
    assert_eq!(waits_for(json!({"command": "true", "queue": "ghost"})).await, nobody);
    let unfit = waits_for(json!({"command": "true", "worker_labels": {"gpu": "a100"}})).await;
    assert!(unfit["message"].as_str().is_some_and(|text| text.contains("with gpu=a100")), "{unfit}");
}

#[tokio::test]
async fn ux_22_it_leaves_no_trace_whatever_it_says() {
    let app = TestApp::new().await;
    let rule = json!({"name": "no-rm", "effect": "deny", "commands": ["rm*"], "reason": "ask first"});
    app.change(Change::PutRule(Box::new(serde_json::from_value(rule).expect("a rule")))).await;
    let before = everything(&app).await;
    let good = dry(&app, Role::Developer, &json!({"command": "true", "lock": "prod"})).await;
    assert_eq!((good.status.as_u16(), &good.json()["allowed"]), (200, &json!(true)));
    let denied = dry(&app, Role::Developer, &json!({"command": "rm -rf /"})).await;
    assert_eq!((denied.status.as_u16(), &denied.json()["allowed"]), (200, &json!(false)));
    let verdict = &denied.json()["rules"][0];
    assert_eq!((&verdict["rule"], &verdict["effect"]), (&json!("no-rm"), &json!("deny")));
    assert!(verdict["why"].as_str().expect("why").contains("ask first"));
    for wrong in [json!({"command": ""}), json!({"command": "true", "image": "nope"}), json!({"command": "true", "secrets": ["nope"]})] {
        assert_eq!(dry(&app, Role::Developer, &wrong).await.code(), (400, "INVALID_REQUEST".into()));
    }
    let body = json!({"command": "true"});
    for path in ["/api/v1/executions?dry_run=true", "/api/v1/run?dry_run=1", "/api/v1/run/dry-run"] {
        let answer = app.post(path).admin().header("idempotency-key", "k1").json(&body).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(app.post("/api/v1/run?dry_run=maybe").admin().json(&body).send().await.code(), (400, "INVALID_REQUEST".into()));
    assert_eq!(everything(&app).await, before);
    assert_eq!(dry(&app, Role::Viewer, &json!({"command": "true"})).await.code(), (403, "FORBIDDEN".into()));
    let run = app.post("/api/v1/run").admin().header("idempotency-key", "k1").json(&body).send().await;
    assert_eq!(run.status, 202, "the key is still unused: {}", run.text());
    assert_eq!(
        app.post("/api/v1/run").role(Role::Developer).json(&json!({"command": "rm x"})).send().await.code(),
        (403, "FORBIDDEN".into())
    );
    assert_ne!(everything(&app).await, before, "a real attempt is on record");
}

#[tokio::test]
async fn security_10_the_token_of_a_repository_is_a_secret_like_others_to_the_rules() {
    let app = TestApp::new().await;
    let secret = json!({"name": "prod/token", "key_name": "T", "value": "hunter2", "use_by": ["role:developer"]});
    assert_eq!(app.post("/api/v1/secrets").admin().json(&secret).send().await.status, 201);
    let rule = json!({"name": "no-prod", "effect": "deny", "secrets": ["prod/*"]});
    app.change(Change::PutRule(Box::new(serde_json::from_value(rule).expect("a rule")))).await;
    for body in [
        json!({"command": "true", "secrets": ["prod/token"]}),
        json!({"command": "true", "git_repo": "https://git.example/x.git", "git_token": "prod/token"}),
    ] {
        assert_eq!(dry(&app, Role::Developer, &body).await.json()["allowed"], false);
        assert_eq!(app.post("/api/v1/run").role(Role::Developer).json(&body).send().await.code(), (403, "FORBIDDEN".into()));
    }
}

#[tokio::test]
async fn security_27_guarded_variables_follow_the_rules_on_commands() {
    let app = TestApp::new().await;
    let asked = async |role: Role, name: &str| {
        let body = json!({"command": "true", "env": {name: "x"}});
        app.post("/api/v1/run?dry_run=1").role(role).json(&body).send().await
    };
    let rule = |body: Value| Change::PutRule(Box::new(serde_json::from_value(body).expect("a rule")));
    for unlimited in
        [json!({"name": "r", "effect": "deny", "queues": ["prod"]}), json!({"name": "r", "effect": "allow", "commands": ["*"]})]
    {
        app.change(rule(unlimited)).await;
        assert_eq!(asked(Role::Developer, "PATH").await.status, 200, "whoever may run anything may set PATH");
    }
    for limited in
        [json!({"name": "r", "effect": "deny", "commands": ["rm *"]}), json!({"name": "r", "effect": "allow", "commands": ["true"]})]
    {
        app.change(rule(limited)).await;
        for name in ["PATH", "TAR_OPTIONS", "KUBECONFIG", "AWS_CONFIG_FILE", "DOTNET_STARTUP_HOOKS", "HOME", "RUNVOY_USER_LD_PRELOAD"] {
            let refused = asked(Role::Developer, name).await;
            assert_eq!(refused.status, 400, "{name}: {}", refused.text());
            assert!(refused.text().contains(name), "{name}: {}", refused.text());
        }
        assert_eq!(asked(Role::Developer, "REGION").await.status, 200);
        assert_eq!(asked(Role::Admin, "PATH").await.status, 200, "no rule names the admin");
    }
}

#[tokio::test]
async fn security_27_a_secret_of_ones_own_is_no_way_around_the_guard() {
    let app = TestApp::new().await;
    for (name, key_name) in [("preload", "LD_PRELOAD"), ("npm", "NPM_config_script_shell"), ("plain", "TOKEN")] {
        let secret = json!({"name": name, "key_name": key_name, "value": "hunter2", "use_by": ["role:developer"]});
        assert_eq!(app.post("/api/v1/secrets").admin().json(&secret).send().await.status, 201);
    }
    let run = async |role: Role, secret: &str| {
        let body = json!({"command": "true", "secrets": [secret]});
        app.post("/api/v1/run").role(role).json(&body).send().await
    };
    assert_eq!(run(Role::Admin, "preload").await.status, 202, "no rule limits the admin yet");
    for subject in [json!({"users": ["admin@example.com"]}), json!({"roles": ["developer"]})] {
        let mut rule =
            json!({"name": subject.to_string().replace(|c: char| !c.is_ascii_lowercase(), ""), "effect": "allow", "commands": ["true"]});
        rule.as_object_mut().expect("an object").extend(subject.as_object().expect("an object").clone());
        app.change(Change::PutRule(Box::new(serde_json::from_value(rule).expect("a rule")))).await;
    }
    for secret in ["preload", "npm"] {
        let refused = run(Role::Admin, secret).await;
        assert_eq!(refused.code(), (400, "INVALID_REQUEST".into()), "{secret}: who may change it chooses what is loaded");
        assert!(refused.text().contains("changes what programs load"), "{}", refused.text());
        assert_eq!(run(Role::Developer, secret).await.status, 202, "{secret}: its value is the admin's");
    }
    assert_eq!(run(Role::Admin, "plain").await.status, 202);
}
