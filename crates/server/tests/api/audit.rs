//! The audit trail: every call that changes something leaves exactly one event, which says who did what from where, and holds nothing
//! secret.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use runvoy_model::event::EventType;
use runvoy_model::role::Role;
use runvoy_ports::store::{EventQuery, ExecutionStore as _, StoredEvent};
use runvoy_server::{App, Connection, Peer};
use serde_json::{Value, json};

use crate::app::{Answer, Ask, ROLES, TestApp, Trouble, key_of};

const OWNER: Connection = Connection { peer: Peer::Unix { uid: 1000, owner: true }, tls: false };
/// What a new app keeps of people: a user and a key for each role, and the list of admins.
const RECORDS: usize = 2 * ROLES.len() + 1;
/// A value that is nowhere by chance.
const CANARY: &str = "canary-5c1e-value";

async fn trail(app: &TestApp) -> Vec<StoredEvent> {
    let query = EventQuery { kind: Some(EventType::Audit), limit: 100_000, ..EventQuery::default() };
    app.store.events(query).await.expect("a memory store")
}

async fn ok(ask: Ask<'_>) -> Answer {
    let answer = ask.send().await;
    assert!(answer.status.is_success(), "{}", answer.text());
    answer
}

fn playbook() -> Value {
    json!({"command": "deploy {{region}}", "parameters": {"region": {"type": "string"}}})
}

async fn secret(app: &TestApp) {
    ok(app.post("/api/v1/secrets").admin().json(&json!({"name": "db", "key_name": "DB", "value": CANARY}))).await;
}

async fn invited(app: &TestApp) -> String {
    let body = json!({"email": "ana@example.com", "role": "developer"});
    let answer = ok(app.post("/api/v1/users/create").admin().json(&body)).await;
    answer.json()["claim_token"].as_str().expect("a token").to_owned()
}

async fn own_key(app: &TestApp) -> String {
    let answer = ok(app.post("/api/v1/users/viewer@example.com/keys").admin().json(&json!({"name": "ci"}))).await;
    answer.json()["key"]["prefix"].as_str().expect("a prefix").to_owned()
}

/// A call of this route that succeeds, with all that it needs; `None` for a route that is not known here.
async fn case<'a>(app: &'a TestApp, method: &Method, path: &str) -> Option<Ask<'a>> {
    let post = |path: &str, body: Value| app.post(path).admin().json(&body);
    Some(match (method.as_str(), path) {
        ("POST", "/api/v1/run" | "/api/v1/executions") => post(path, json!({"command": "true"})),
        ("POST", "/api/v1/executions/{id}/rerun") => app.post(&path.replace("{id}", &app.submit("true").await)).admin(),
        ("POST", "/api/v1/executions/{id}/kill") => app.post(&path.replace("{id}", &app.submit("true").await)).admin(),
        ("DELETE", "/api/v1/executions/{id}") => app.delete(&path.replace("{id}", &app.submit("true").await)).admin(),
        ("POST", "/api/v1/executions/{id}/link") => app.post(&path.replace("{id}", &app.submit("true").await)).admin(),
        ("DELETE", "/api/v1/locks/{*name}") => {
            app.submit_as(Role::Admin, json!({"command": "true", "lock": "prod"})).await;
            app.delete("/api/v1/locks/prod").admin()
        }
        ("POST", "/api/v1/users/create") => post(path, json!({"email": "ana@example.com", "role": "developer"})),
        ("GET" | "POST", "/api/v1/claim/{token}") => app.ask(method.clone(), &path.replace("{token}", &invited(app).await)),
        ("POST", "/api/v1/users/revoke") => post(path, json!({"email": "viewer@example.com"})),
        ("POST", "/api/v1/users/{email}/renew") => {
            invited(app).await;
            post("/api/v1/users/ana@example.com/renew", json!({}))
        }
        ("POST", "/api/v1/users/{email}/role") => post("/api/v1/users/viewer@example.com/role", json!({"role": "operator"})),
        ("POST", "/api/v1/users/{email}/keys") => post("/api/v1/users/viewer@example.com/keys", json!({"name": "ci"})),
        ("DELETE", "/api/v1/users/{email}/keys/{prefix}") => {
            app.delete(&format!("/api/v1/users/viewer@example.com/keys/{}", own_key(app).await)).admin()
        }
        ("POST", "/api/v1/users/{email}/keys/{prefix}/rotate") => {
            post(&format!("/api/v1/users/viewer@example.com/keys/{}/rotate", own_key(app).await), json!({}))
        }
        ("POST", "/api/v1/admin/recover") => app.post(path).connection(OWNER),
        ("POST", "/api/v1/groups") => post(path, json!({"name": "ops", "members": ["viewer@example.com"]})),
        ("DELETE", "/api/v1/groups/{*name}") => {
            ok(post("/api/v1/groups", json!({"name": "ops", "members": []}))).await;
            app.delete("/api/v1/groups/ops").admin()
        }
        ("POST", "/api/v1/rules") => post(path, json!({"name": "no-rm", "effect": "deny", "commands": ["rm *"]})),
        ("DELETE", "/api/v1/rules/{*name}") => {
            ok(post("/api/v1/rules", json!({"name": "no-rm", "effect": "deny", "commands": ["rm *"]}))).await;
            app.delete("/api/v1/rules/no-rm").admin()
        }
        ("POST", "/api/v1/images/register") => post(path, json!({"image": "alpine:3.20", "is_default": true})),
        ("DELETE", "/api/v1/images/{*image}") => {
            ok(post("/api/v1/images/register", json!({"image": "alpine:3.20", "is_default": true}))).await;
            app.delete("/api/v1/images/alpine:3.20").admin()
        }
        ("POST", "/api/v1/secrets") => post(path, json!({"name": "db", "key_name": "DB", "value": CANARY})),
        ("PUT", "/api/v1/secrets/{*name}") => {
            secret(app).await;
            app.ask(Method::PUT, "/api/v1/secrets/db").admin().json(&json!({"value": format!("{CANARY}-2")}))
        }
        ("DELETE", "/api/v1/secrets/{*name}") => {
            secret(app).await;
            app.delete("/api/v1/secrets/db").admin()
        }
        // Without a secret there is nothing to seal anew, which would be a step and an event of its own for each.
        ("POST", "/api/v1/sealing-key/rotate" | "/api/v1/signing-key/rotate") => app.post(path).admin(),
        ("PUT", "/api/v1/playbooks/{name}") => app.ask(Method::PUT, "/api/v1/playbooks/deploy").admin().json(&playbook()),
        ("DELETE", "/api/v1/playbooks/{name}") => {
            ok(app.ask(Method::PUT, "/api/v1/playbooks/deploy").admin().json(&playbook())).await;
            app.delete("/api/v1/playbooks/deploy").admin()
        }
        ("POST", "/api/v1/playbooks/{name}/run") => {
            ok(app.ask(Method::PUT, "/api/v1/playbooks/deploy").admin().json(&playbook())).await;
            post("/api/v1/playbooks/deploy/run", json!({"parameters": {"region": "eu"}}))
        }
        ("POST", "/api/v1/jobs") => post(path, json!({"tasks": [{"taskId": "a", "command": "true"}]})),
        ("POST", "/api/v1/jobs/{id}/tasks") => {
            let job = job(app).await;
            post(&format!("/api/v1/jobs/{job}/tasks"), json!({"tasks": [{"taskId": "b", "command": "true", "dependsOn": ["a"]}]}))
        }
        ("POST", "/api/v1/jobs/{id}/resume") => {
            let job = job(app).await;
            app.play().await.exit(1).await;
            app.post(&format!("/api/v1/jobs/{job}/resume")).admin()
        }
        ("POST", "/api/v1/jobs/{id}/cancel") => app.post(&format!("/api/v1/jobs/{}/cancel", job(app).await)).admin(),
        ("POST", "/api/v1/queues/{name}/redrive") => {
            app.given_up(Role::Developer, json!({"command": "true"})).await;
            app.post("/api/v1/queues/default/redrive").admin()
        }
        ("PUT", "/api/v1/queues/{name}") => app.ask(Method::PUT, "/api/v1/queues/gpu").admin().json(&json!({"paused": true})),
        ("DELETE", "/api/v1/queues/{name}") => {
            ok(app.ask(Method::PUT, "/api/v1/queues/gpu").admin().json(&json!({"paused": true}))).await;
            app.delete("/api/v1/queues/gpu").admin()
        }
        ("POST", "/api/v1/workers" | "/api/v1/workers/accounts") => post(path, json!({"name": "gpu-1", "queues": ["gpu"]})),
        ("DELETE", "/api/v1/workers/{name}" | "/api/v1/workers/accounts/{name}") => {
            app.with_worker().await;
            app.delete(&path.replace("{name}", "gpu-1")).admin()
        }
        ("POST", "/api/v1/workers/accounts/{name}/rotate") => {
            app.with_worker().await;
            app.post("/api/v1/workers/accounts/gpu-1/rotate").admin()
        }
        ("POST", "/api/v1/workers/{name}/drain" | "/api/v1/workers/{name}/resume") => {
            app.with_present_worker("gpu-host").await;
            if path.ends_with("resume") {
                ok(app.post("/api/v1/workers/gpu-host/drain").admin()).await;
            }
            app.post(&path.replace("{name}", "gpu-host")).admin()
        }
        ("POST", "/api/v1/alerts/test") => {
            app.engine.attach_alerter(std::sync::Arc::new(crate::task_health::Taken));
            app.post(path).admin()
        }
        ("POST", "/api/v1/health/reconcile") => app.post(path).admin(),
        _ => return None,
    })
}

/// A job of one task that is not tried again.
async fn job(app: &TestApp) -> String {
    let body = json!({"tasks": [{"taskId": "a", "command": "true", "retries": 0}]});
    let answer = app.post("/api/v1/jobs").admin().json(&body).send().await;
    answer.json()["jobId"].as_str().expect("an id").to_owned()
}

/// Every route whose call changes something; a copy of the files and a dry run change nothing.
fn mutating() -> Vec<(Method, &'static str)> {
    let rows = App::table().into_iter().map(|row| (row.method, row.path));
    rows.filter(|(method, path)| {
        let claims = path.starts_with("/api/v1/claim/");
        let only_says = *path == "/api/v1/backup" || path.ends_with("/dry-run");
        (method != Method::GET || claims) && !only_says
    })
    .collect()
}

#[tokio::test]
async fn security_17_every_call_that_changes_something_leaves_exactly_one_event() {
    let routes = mutating();
    assert!(routes.len() >= 25, "the whole table is tried: {routes:?}");
    for (method, path) in routes {
        let app = TestApp::new().await;
        let Some(ask) = case(&app, &method, path).await else {
            panic!("{method} {path} is not tried: give it a case, so that nobody can forget its audit event");
        };
        let before = trail(&app).await.len();
        let answer = ask.send().await;
        assert!(answer.status.is_success(), "{method} {path}: {} {}", answer.status, answer.text());
        let events = trail(&app).await;
        let new: Vec<&StoredEvent> = events[before..].iter().collect();
        assert_eq!(new.len(), 1, "{method} {path}: {new:?}");
        let properties = &new[0].event.properties;
        for name in ["user", "action", "from", "result", "apiRequestId"] {
            assert!(properties[name].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}: {name} in {properties}");
        }
        assert_ne!(properties["action"], "platform", "{method} {path}");
        assert_eq!(properties["apiRequestId"], answer.header("x-request-id"), "{method} {path}");
        assert_eq!(properties["result"], "ok", "{method} {path}");
        let verdict = app.get("/api/v1/audit/verify?state=true").admin().send().await.json();
        assert_eq!(verdict["ok"], true, "{method} {path}: {verdict}");
    }
}

#[tokio::test]
async fn security_17_an_audit_event_has_exactly_these_fields() {
    let app = TestApp::new().await;
    app.submit_as(Role::Developer, json!({"command": "true"})).await;
    ok(app.post("/api/v1/groups").admin().json(&json!({"name": "ops", "members": ["viewer@example.com"]}))).await;
    let list = app.get("/api/v1/audit?limit=2").admin().send().await.json();
    let of_group = &list[0];
    let keys = |event: &Value| event.as_object().expect("an object").keys().cloned().collect::<BTreeSet<_>>();
    let always = ["event_id", "at", "user", "action", "entity", "number", "result", "address", "request_id"].map(str::to_owned);
    assert_eq!(keys(of_group), always.iter().cloned().chain(["details".to_owned()]).collect());
    let of_run = always.into_iter().chain(["command", "target"].map(str::to_owned));
    assert_eq!(keys(&list[1]), of_run.collect(), "{list}");
    assert_eq!((&of_group["user"], &of_group["action"]), (&json!("admin@example.com"), &json!("groups.put")));
    assert_eq!((&of_group["entity"], &of_group["number"], &of_group["result"]), (&json!("GROUP:ops"), &json!(1), &json!("ok")));
    assert_eq!((&of_group["at"], &of_group["details"]), (&json!("2026-01-03T14:22:19.640Z"), &json!({"members": ["viewer@example.com"]})));
    assert_eq!((&list[1]["user"], &list[1]["action"]), (&json!("developer@example.com"), &json!("executions.run")));
    assert!(list[1]["entity"].as_str().expect("an entity").starts_with("TASK:"), "{list}");
}

#[tokio::test]
async fn security_17_nothing_secret_is_in_the_trail() {
    let app = TestApp::new().await;
    secret(&app).await;
    ok(app.ask(Method::PUT, "/api/v1/secrets/db").admin().json(&json!({"value": format!("{CANARY}-2")}))).await;
    ok(app.post("/api/v1/sealing-key/rotate").admin()).await;
    let token = invited(&app).await;
    let claimed = ok(app.post(&format!("/api/v1/claim/{token}"))).await.json()["api_key"].as_str().expect("a key").to_owned();
    let made = ok(app.post("/api/v1/users/viewer@example.com/keys").admin().json(&json!({}))).await;
    let made = made.json()["api_key"].as_str().expect("a key").to_owned();
    let link = ok(app.post(&format!("/api/v1/executions/{}/link", app.submit("true").await)).admin()).await;
    let link = link.json()["token"].as_str().expect("a token").to_owned();
    let exported = ok(app.get("/api/v1/audit/export").admin()).await.text();
    let stored = format!("{:?}", app.store.events(EventQuery { limit: 10_000, ..EventQuery::default() }).await.expect("events"));
    let mut canaries = vec![CANARY.to_owned(), token, claimed, made, link];
    canaries.extend(ROLES.map(key_of));
    for canary in &canaries {
        for (form, text) in forms(canary) {
            assert!(!exported.contains(&text) && !stored.contains(&text), "{form} of {canary}");
        }
    }
    assert!(exported.lines().count() >= 10, "the scan saw the calls: {exported}");
}

fn forms(canary: &str) -> [(&'static str, String); 3] {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD_NO_PAD.encode(canary);
    // The last digits depend on what follows.
    let base64 = base64[..base64.len() - 2].to_owned();
    [("text", canary.to_owned()), ("base64", base64), ("hex", runvoy_model::hex::hex(canary.as_bytes()))]
}

#[tokio::test]
async fn pages_of_the_trail_follow_one_another_without_gap_or_repeat() {
    let app = TestApp::new().await;
    for n in 0..23 {
        app.submit_as(if n % 3 == 0 { Role::Operator } else { Role::Admin }, json!({"command": "true"})).await;
        app.clock.advance(60_000);
    }
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().expect("an array").iter().map(|event| event["event_id"].as_str().expect("an id").to_owned()).collect()
    };
    let all = ids(&app.get("/api/v1/audit?limit=1000").admin().send().await.json());
    assert_eq!(all.len(), 23 + ROLES.len(), "the users' own beginnings too");
    let (mut seen, mut path) = (Vec::new(), "/api/v1/audit?limit=5".to_owned());
    loop {
        let page = app.get(&path).admin().send().await;
        seen.extend(ids(&page.json()));
        match page.header("x-next-cursor") {
            "" => break,
            cursor => path = format!("/api/v1/audit?limit=5&cursor={cursor}"),
        }
    }
    assert_eq!(seen, all);
    let exported = app.get("/api/v1/audit/export").admin().send().await;
    assert_eq!(exported.header("content-type"), "application/x-ndjson");
    let mut oldest_first: Vec<Value> = exported.text().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    oldest_first.reverse();
    assert_eq!(ids(&Value::Array(oldest_first)), all);
    let listed = async |query: &str| ids(&app.get(&format!("/api/v1/audit?{query}")).admin().send().await.json()).len();
    assert_eq!(listed("user=operator@example.com").await, 8);
    assert_eq!(listed("user=operator@example.com&action=executions").await, 8);
    assert_eq!(listed("action=executions.run").await, 23);
    assert_eq!(listed("action=execution").await, 0, "a part of a word is no resource");
    assert_eq!(listed("action=executions&since=2026-01-03T14:32:00Z&until=2026-01-03T14:35:00Z").await, 3);
    let exported = app.get("/api/v1/audit/export?user=operator@example.com").admin().send().await;
    assert_eq!(exported.text().lines().count(), 8);
    assert_eq!(app.get("/api/v1/audit/export?user=nobody@example.com").admin().send().await.text(), "");
    for bad in ["limit=0", "limit=1001", "cursor=x", "since=yesterday"] {
        assert_eq!(app.get(&format!("/api/v1/audit?{bad}")).admin().send().await.code(), (400, "INVALID_REQUEST".into()), "{bad}");
    }
}

#[tokio::test]
async fn only_admins_read_prove_and_export_the_trail() {
    let app = TestApp::new().await;
    for path in ["/api/v1/audit", "/api/v1/audit/verify", "/api/v1/audit/export"] {
        for role in [Role::Operator, Role::Developer, Role::Viewer] {
            assert_eq!(app.get(path).role(role).send().await.code(), (403, "FORBIDDEN".into()), "{path}");
        }
        assert_eq!(app.get(path).admin().send().await.status, StatusCode::OK, "{path}");
    }
    let verdict = app.get("/api/v1/audit/verify").admin().send().await.json();
    assert_eq!((&verdict["ok"], &verdict["checked"]), (&json!(true), &json!(ROLES.len())));
    assert_eq!(verdict["compared"], Value::Null, "only where it is asked for");
    app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let verdict = app.get("/api/v1/audit/verify?state=true").admin().send().await.json();
    assert_eq!((&verdict["ok"], &verdict["compared"]), (&json!(true), &json!(1 + RECORDS)));
}

#[tokio::test]
async fn security_16_a_call_whose_event_cannot_be_written_is_refused_and_changes_nothing() {
    for (method, path) in mutating() {
        let app = TestApp::new().await;
        let Some(ask) = case(&app, &method, path).await else { continue };
        let before = trail(&app).await.len();
        app.store.set(Some(Trouble::Full));
        let answer = ask.send().await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{method} {path}: {}", answer.text());
        app.store.set(None);
        assert_eq!(trail(&app).await.len(), before, "{method} {path}");
        assert_eq!(app.get("/api/v1/audit/verify").admin().send().await.json()["ok"], true);
    }
}
