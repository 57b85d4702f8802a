//! Secrets as clients meet them: who sees what, what is refused, and where no value ever is.

use http::Method;
use runvoy_model::event::{Entity, EntityType};
use runvoy_model::record::Kind;
use runvoy_model::role::Role;
use runvoy_ports::record::RecordStore as _;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use serde_json::{Value, json};

use crate::app::{Answer, ROLES, TestApp, Trouble};

/// A value that is nowhere by chance.
const CANARY: &str = "canary-7f3a\"ü\\\n'$x=1";

async fn create(app: &TestApp, role: Role, body: Value) -> Answer {
    app.post("/api/v1/secrets").role(role).json(&body).send().await
}

async fn created(app: &TestApp, role: Role, body: Value) {
    let answer = create(app, role, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn put(app: &TestApp, role: Role, name: &str, body: Value) -> Answer {
    app.ask(Method::PUT, &format!("/api/v1/secrets/{name}")).role(role).json(&body).send().await
}

async fn get(app: &TestApp, role: Role, name: &str) -> Answer {
    app.get(&format!("/api/v1/secrets/{name}")).role(role).send().await
}

async fn value(app: &TestApp, role: Role, name: &str) -> Value {
    get(app, role, name).await.json()["secret"]["value"].clone()
}

async fn names(app: &TestApp, role: Role) -> Vec<String> {
    let list = app.get("/api/v1/secrets").role(role).send().await.json();
    let secrets = list["secrets"].as_array().expect("secrets");
    assert_eq!(list["total"], secrets.len());
    assert!(secrets.iter().all(|secret| secret.get("value").is_none()), "{list}");
    secrets.iter().map(|secret| secret["name"].as_str().expect("a name").to_owned()).collect()
}

/// The actions of the events about a secret, in order.
async fn actions(app: &TestApp, name: &str) -> Vec<String> {
    let entity = Some(Entity { kind: EntityType::Secret, id: name.to_owned() });
    let events = app.store.events(EventQuery { entity, limit: 100, ..EventQuery::default() }).await.expect("events");
    events.iter().map(|stored| stored.event.properties["action"].as_str().expect("an action").to_owned()).collect()
}

/// Everything that the store has, as text.
async fn everything(app: &TestApp) -> String {
    let events = app.store.events(EventQuery { limit: 10_000, ..EventQuery::default() }).await.expect("events");
    let mut all = format!("{events:?}");
    for kind in Kind::ALL {
        all.push_str(&format!("{:?}", app.store.records(kind).await.expect("records")));
    }
    all
}

fn db() -> Value {
    json!({"name": "team/db", "key_name": "DB_PASSWORD", "value": CANARY, "description": "for tests"})
}

#[tokio::test]
async fn a_secret_is_made_read_changed_and_deleted() {
    let app = TestApp::new().await;
    created(&app, Role::Developer, db()).await;
    let answer = get(&app, Role::Developer, "team%2Fdb").await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let secret = answer.json()["secret"].clone();
    assert_eq!((&secret["name"], &secret["key_name"], &secret["value"]), (&json!("team/db"), &json!("DB_PASSWORD"), &json!(CANARY)));
    assert_eq!((&secret["description"], &secret["created_by"]), (&json!("for tests"), &json!("developer@example.com")));
    assert_eq!(names(&app, Role::Developer).await, ["team/db"]);
    app.clock.advance(1000);
    let body = json!({"value": "another", "description": "", "use_by": ["group:ops"]});
    assert_eq!(put(&app, Role::Developer, "team/db", body).await.status, 200);
    let secret = get(&app, Role::Developer, "team/db").await.json()["secret"].clone();
    assert_eq!(
        (&secret["value"], &secret["key_name"], &secret["use_by"]),
        (&json!("another"), &json!("DB_PASSWORD"), &json!(["group:ops"]))
    );
    assert!(secret.get("description").is_none());
    assert_ne!(secret["created_at"], secret["updated_at"]);
    assert_eq!(put(&app, Role::Developer, "team/db", json!({})).await.code(), (400, "INVALID_REQUEST".into()));
    let gone = app.delete("/api/v1/secrets/team/db").role(Role::Developer).send().await;
    assert_eq!((gone.status.as_u16(), &gone.json()["name"]), (200, &json!("team/db")));
    assert_eq!(get(&app, Role::Developer, "team/db").await.code(), (404, "SECRET_NOT_FOUND".into()));
    let all = ["secrets.create", "secrets.reveal", "secrets.update", "secrets.reveal", "secrets.delete"];
    assert_eq!(actions(&app, "team/db").await, all);
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_and_nothing_changes() {
    let app = TestApp::new().await;
    created(&app, Role::Admin, db()).await;
    let before = app.store.records(Kind::Secret).await.expect("secrets");
    for role in [Role::Admin, Role::Operator, Role::Developer] {
        let answer = create(&app, role, json!({"name": "team/db", "key_name": "X", "value": "other"})).await;
        assert_eq!(answer.code(), (409, "SECRET_ALREADY_EXISTS".into()), "{role:?}");
    }
    assert_eq!(app.store.records(Kind::Secret).await.expect("secrets"), before);
    assert_eq!(value(&app, Role::Admin, "team/db").await, CANARY);
}

#[tokio::test]
async fn values_are_for_those_who_may_read_them() {
    let app = TestApp::new().await;
    created(&app, Role::Operator, json!({"name": "shared", "key_name": "S", "value": CANARY, "use_by": ["role:developer"]})).await;
    for (role, reads) in [(Role::Admin, true), (Role::Operator, true), (Role::Developer, false), (Role::Viewer, false)] {
        let answer = get(&app, role, "shared").await;
        assert_eq!(answer.status, 200, "{role:?}");
        assert_eq!(answer.json()["secret"].get("value").is_some(), reads, "{role:?}");
    }
    assert_eq!(actions(&app, "shared").await, ["secrets.create", "secrets.reveal", "secrets.reveal"], "only a read value is on record");
    created(&app, Role::Admin, json!({"name": "admins", "key_name": "A", "value": CANARY})).await;
    assert_eq!(value(&app, Role::Operator, "admins").await, Value::Null, "an operator uses it and does not read it");
    assert_eq!(put(&app, Role::Developer, "shared", json!({"value": "x"})).await.code(), (403, "FORBIDDEN".into()));
    let gone = app.delete("/api/v1/secrets/shared").role(Role::Developer).send().await;
    assert_eq!(gone.code(), (403, "FORBIDDEN".into()));
    let user = Some(Entity { kind: EntityType::User, id: "developer@example.com".into() });
    let events = app.store.events(EventQuery { entity: user, limit: 100, ..EventQuery::default() }).await.expect("events");
    let denied = events.iter().map(|stored| &stored.event.properties).filter(|properties| properties["result"] == "denied: FORBIDDEN");
    assert_eq!(denied.map(|properties| properties["action"].clone()).collect::<Vec<_>>(), ["secrets.update", "secrets.delete"]);
    assert_eq!(put(&app, Role::Operator, "admins", json!({"value": "new"})).await.status, 200);
    assert_eq!(value(&app, Role::Admin, "admins").await, "new");
}

#[tokio::test]
async fn security_07_a_secret_of_another_looks_as_if_it_were_not_there() {
    let app = TestApp::new().await;
    created(&app, Role::Admin, db()).await;
    assert!(names(&app, Role::Developer).await.is_empty());
    let run = async |secret: &str| {
        app.post("/api/v1/run").role(Role::Developer).json(&json!({"command": "true", "secrets": [secret]})).send().await
    };
    let delete = async |name: &str| app.delete(&format!("/api/v1/secrets/{name}")).role(Role::Developer).send().await;
    let pairs = [
        (get(&app, Role::Developer, "team/db").await, get(&app, Role::Developer, "team/no").await),
        (
            put(&app, Role::Developer, "team/db", json!({"value": "x"})).await,
            put(&app, Role::Developer, "team/no", json!({"value": "x"})).await,
        ),
        (delete("team/db").await, delete("team/no").await),
        (run("team/db").await, run("team/no").await),
    ];
    for (theirs, missing) in pairs {
        assert_eq!(theirs.text(), missing.text().replace("team/no", "team/db"));
        assert_eq!(theirs.status, missing.status);
        assert!(theirs.status == 404 || theirs.status == 400, "{}", theirs.text());
    }
    assert_eq!(get(&app, Role::Developer, "%2e%2e").await.code(), (404, "SECRET_NOT_FOUND".into()));
    assert_eq!(value(&app, Role::Admin, "team/db").await, CANARY);
}

#[tokio::test]
async fn security_27_only_an_admin_makes_a_secret_of_what_programs_load() {
    let app = TestApp::new().await;
    for key_name in ["LD_PRELOAD", "PATH", "BASH_ENV", "GIT_SSH_COMMAND"] {
        for role in [Role::Operator, Role::Developer] {
            let answer = create(&app, role, json!({"name": "x", "key_name": key_name, "value": "v"})).await;
            assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()));
            assert!(answer.text().contains("key_name"), "{}", answer.text());
        }
    }
    for key_name in ["", "1A", "A=B", "A-B", "RUNVOY_LOCK"] {
        assert_eq!(create(&app, Role::Admin, json!({"name": "x", "key_name": key_name, "value": "v"})).await.status, 400, "{key_name:?}");
    }
    created(&app, Role::Admin, json!({"name": "preload", "key_name": "LD_PRELOAD", "value": "/lib/good.so"})).await;
    for body in [json!({"value": "/tmp/evil.so"}), json!({"use_by": ["operator@example.com"]})] {
        assert_eq!(
            put(&app, Role::Operator, "preload", body).await.code(),
            (400, "INVALID_REQUEST".into()),
            "a new value would be the way around"
        );
    }
    created(&app, Role::Operator, json!({"name": "plain", "key_name": "A", "value": "v"})).await;
    assert_eq!(put(&app, Role::Operator, "plain", json!({"key_name": "LD_PRELOAD"})).await.status, 400);
    assert_eq!(value(&app, Role::Admin, "preload").await, "/lib/good.so");
}

#[tokio::test]
async fn what_is_wrong_is_told_without_the_value() {
    let app = TestApp::new().await;
    for (body, said) in [
        (json!({"name": "a b", "key_name": "A", "value": CANARY}), "name"),
        (json!({"name": "a", "key_name": "A-B", "value": CANARY}), "key_name"),
        (json!({"name": "a", "key_name": "A", "value": format!("{CANARY}\0")}), "value"),
        (json!({"name": "a", "key_name": "A", "value": ""}), "value"),
        (json!({"name": "a", "key_name": "A", "value": CANARY.repeat(4000)}), "value"),
        (json!({"name": "a", "key_name": "A", "value": CANARY, "use_by": ["nobody"]}), "use_by"),
        (json!({"name": "a", "key_name": "A", "value": CANARY, "description": "a\nb"}), "description"),
        (json!({"name": "a", "key_name": "A", "value": [CANARY]}), "body"),
        (json!({"name": "a", "key_name": "A", "value": 7_351_824}), "body"),
        (json!({"name": "a", "key_name": "A", "use_by": CANARY, "value": "v"}), "body"),
        (json!({"name": "a", "value": CANARY}), "missing field `key_name`"),
        (json!(CANARY), "body"),
    ] {
        let answer = create(&app, Role::Admin, body).await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()));
        let text = answer.text();
        assert!(text.contains(said), "{said}: {text}");
        assert!(!text.contains("canary-7f3a") && !text.contains("7351824"), "{text}");
    }
    assert!(names(&app, Role::Admin).await.is_empty());
}

#[tokio::test]
async fn security_11_no_value_is_in_the_store_and_a_rotation_keeps_all_of_them_readable() {
    let app = TestApp::new().await;
    let keys = std::sync::Arc::clone(&app.engine.ports().seal_keys);
    for n in 0..5 {
        let key = format!("k{n}");
        let body = json!({"name": format!("s{n}"), "key_name": "A", "value": format!("{CANARY}{n}")});
        let answer = app.post("/api/v1/secrets").admin().header("idempotency-key", &key).json(&body).send().await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    put(&app, Role::Admin, "s0", json!({"value": format!("{CANARY}0b")})).await;
    let first = keys.current().expect("a key");
    let answer = app.post("/api/v1/sealing-key/rotate").admin().send().await;
    assert_eq!((answer.status.as_u16(), &answer.json()["resealed"]), (200, &json!(5)), "{}", answer.text());
    let second = keys.current().expect("a key");
    assert_eq!(answer.json()["key_id"], second.id());
    assert!(keys.by_id(first.id()).is_err(), "what seals nothing is forgotten");
    for n in 0..5 {
        let expected = if n == 0 { format!("{CANARY}0b") } else { format!("{CANARY}{n}") };
        assert_eq!(value(&app, Role::Admin, &format!("s{n}")).await, expected);
    }
    let all = everything(&app).await;
    assert!(!all.contains("canary-7f3a"), "the store shows a value");
    assert_eq!(actions(&app, "s1").await, ["secrets.create", "secrets.rotate-key", "secrets.reveal"]);
    let user = Some(Entity { kind: EntityType::User, id: "admin@example.com".into() });
    let events = app.store.events(EventQuery { entity: user, limit: 100, ..EventQuery::default() }).await.expect("events");
    assert!(
        events.iter().any(|stored| stored.event.properties["action"] == "secrets.rotate-key"),
        "also a rotation of nothing is on record"
    );
    for role in [Role::Operator, Role::Developer, Role::Viewer] {
        assert_eq!(app.post("/api/v1/sealing-key/rotate").role(role).send().await.code(), (403, "FORBIDDEN".into()));
    }
}

#[tokio::test]
async fn security_11_a_rotation_that_was_cut_off_loses_nothing_and_the_next_finishes_it() {
    let app = TestApp::new().await;
    created(&app, Role::Admin, json!({"name": "before", "key_name": "A", "value": "one"})).await;
    let keys = std::sync::Arc::clone(&app.engine.ports().seal_keys);
    let first = keys.current().expect("a key");
    // As far as a rotation gets that ends right after it made its key.
    let second = keys.rotate().expect("a key");
    created(&app, Role::Admin, json!({"name": "between", "key_name": "A", "value": "two"})).await;
    assert_eq!((value(&app, Role::Admin, "before").await, value(&app, Role::Admin, "between").await), (json!("one"), json!("two")));
    app.store.set(Some(Trouble::Away));
    assert_eq!(app.post("/api/v1/sealing-key/rotate").admin().send().await.code(), (503, "DATABASE_ERROR".into()));
    app.store.set(None);
    assert_eq!(keys.current().expect("a key").id(), second.id(), "what cannot be on record does not happen");
    let answer = app.post("/api/v1/sealing-key/rotate").admin().send().await;
    assert_eq!(answer.json()["resealed"], 2, "{}", answer.text());
    assert!(keys.by_id(first.id()).is_err() && keys.by_id(second.id()).is_err());
    assert_eq!((value(&app, Role::Admin, "before").await, value(&app, Role::Admin, "between").await), (json!("one"), json!("two")));
}

#[tokio::test]
async fn security_13_no_answer_but_the_read_itself_shows_the_value() {
    let app = TestApp::new().await;
    created(&app, Role::Admin, db()).await;
    let run = json!({"command": "true", "secrets": ["team/db"], "lock": "l"});
    let id = app.submit_as(Role::Admin, run.clone()).await;
    let mut answers = vec![
        create(&app, Role::Admin, db()).await,
        put(&app, Role::Admin, "team/db", json!({"value": CANARY})).await,
        app.post("/api/v1/run").admin().json(&run).send().await,
        app.post("/api/v1/run?dry_run=1").admin().json(&run).send().await,
    ];
    for path in [
        "/api/v1/secrets".to_owned(),
        "/api/v1/executions?limit=0".to_owned(),
        "/api/v1/locks".to_owned(),
        format!("/api/v1/executions/{id}"),
        format!("/api/v1/executions/{id}/status"),
        format!("/api/v1/executions/{id}/events"),
        format!("/api/v1/executions/{id}/logs?tail=100"),
        "/api/v1/openapi.json".to_owned(),
        "/metrics".to_owned(),
        "/api/v1/doctor".to_owned(),
    ] {
        answers.push(app.get(&path).admin().send().await);
    }
    for role in ROLES.into_iter().filter(|role| *role != Role::Admin) {
        answers.push(get(&app, role, "team/db").await);
    }
    answers.push(app.delete("/api/v1/secrets/team/db").admin().send().await);
    for answer in answers {
        assert!(!answer.text().contains("canary-7f3a"), "{}", answer.text());
    }
    assert!(!everything(&app).await.contains("canary-7f3a"));
}

#[tokio::test]
async fn a_value_that_cannot_be_put_on_record_is_not_shown() {
    let app = TestApp::new().await;
    created(&app, Role::Admin, db()).await;
    app.store.set(Some(Trouble::Away));
    let answer = get(&app, Role::Admin, "team/db").await;
    assert_eq!(answer.code(), (503, "DATABASE_ERROR".into()));
    assert!(!answer.text().contains("canary"), "{}", answer.text());
}

#[tokio::test]
async fn a_repeated_create_is_one_and_another_value_is_another_request() {
    let app = TestApp::new().await;
    let ask = async |value: &str| {
        let body = json!({"name": "once", "key_name": "A", "value": value});
        app.post("/api/v1/secrets").admin().header("idempotency-key", "k1").json(&body).send().await
    };
    let (first, again) = (ask("one").await, ask("one").await);
    assert_eq!((first.status.as_u16(), again.status.as_u16(), first.text()), (201, 201, again.text()));
    assert_eq!(ask("two").await.code(), (409, "CONFLICT".into()));
    assert_eq!(actions(&app, "once").await, ["secrets.create"]);
    assert_eq!(app.post("/api/v1/sealing-key/rotate").admin().send().await.status, 200);
    assert_eq!((ask("one").await.status.as_u16(), ask("two").await.status.as_u16()), (201, 409), "also with another sealing key");
    assert_eq!(value(&app, Role::Admin, "once").await, "one");
}

#[tokio::test]
async fn a_value_that_is_too_short_to_be_hidden_well_is_taken_with_a_warning() {
    let app = TestApp::new().await;
    let said = |answer: Answer| answer.json()["message"].as_str().expect("a message").to_owned();
    assert!(said(create(&app, Role::Admin, json!({"name": "pin", "key_name": "PIN", "value": "12345"})).await).contains("fewer than 6"));
    assert!(!said(create(&app, Role::Admin, json!({"name": "long", "key_name": "L", "value": "123456"})).await).contains("fewer"));
    assert!(said(put(&app, Role::Admin, "long", json!({"value": "1"})).await).contains("fewer than 6"));
    assert!(!said(put(&app, Role::Admin, "long", json!({"description": "x"})).await).contains("fewer"));
}
