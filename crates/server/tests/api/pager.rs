//! Pages of every list that is otherwise given whole.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use runvoy_model::id::WorkerId;
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use serde_json::{Value, json};

use crate::app::{NOW, TestApp};

/// Each list: its path, where its items stand in the answer, and what tells them apart.
const LISTS: [(&str, &str, &str); 10] = [
    ("/api/v1/users", "/users", "email"),
    ("/api/v1/images", "/images", "image_id"),
    ("/api/v1/secrets", "/secrets", "name"),
    ("/api/v1/locks", "", "lock_name"),
    ("/api/v1/rules", "/rules", "name"),
    ("/api/v1/groups", "/groups", "name"),
    ("/api/v1/playbooks", "/playbooks", "name"),
    ("/api/v1/workers", "", "worker_id"),
    ("/api/v1/workers/accounts", "", "name"),
    ("/api/v1/queues", "", "name"),
];

fn presence(number: u8) -> Presence {
    Presence {
        worker: WorkerId::from_bytes([number; 16]),
        account: None,
        name: "same".into(),
        host: "a".into(),
        version: "0.1.0".into(),
        runner: "process".into(),
        queues: vec![Name::new("gpu").expect("a name")],
        labels: BTreeMap::new(),
        concurrency: 1,
        running: 0,
        in_process: false,
        draining: false,
        since: UnixMs(NOW),
        seen_at: UnixMs(NOW),
        busy_until: None,
        place: None,
    }
}

/// Some of everything.
async fn filled() -> TestApp {
    let app = TestApp::new().await;
    let ask = async |method: Method, path: &str, body: Value| {
        let answer = app.ask(method, &format!("/api/v1/{path}")).admin().json(&body).send().await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text());
    };
    for name in ["b", "a", "a/c"] {
        ask(Method::POST, "images/register", json!({"image": format!("{name}:1")})).await;
        ask(Method::POST, "secrets", json!({"name": name, "key_name": "KEY", "value": "hunter2-long"})).await;
        ask(Method::POST, "run", json!({"command": "true", "lock": name})).await;
        ask(Method::POST, "rules", json!({"name": name, "effect": if name == "b" { "deny" } else { "allow" }, "queues": ["*"]})).await;
        ask(Method::POST, "groups", json!({"name": name, "members": []})).await;
        ask(Method::PUT, &format!("playbooks/{}", name.replace('/', "-")), json!({"command": "true"})).await;
        ask(Method::POST, "workers", json!({"name": name})).await;
        ask(Method::PUT, &format!("queues/{}", name.replace('/', "-")), json!({"concurrency": 1})).await;
    }
    for number in [2, 1, 3] {
        app.engine.note_worker(presence(number)).await.expect("noted");
    }
    app
}

async fn all(app: &TestApp, path: &str, place: &str, id: &str) -> Vec<String> {
    let whole = app.get(path).admin().send().await;
    assert_eq!((whole.status, whole.header("x-next-cursor")), (StatusCode::OK, ""), "{path}: {}", whole.text());
    ids(&whole.json(), place, id)
}

fn ids(answer: &Value, place: &str, id: &str) -> Vec<String> {
    let items = answer.pointer(place).and_then(Value::as_array).expect("a list");
    items.iter().map(|item| item[id].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn every_list_comes_in_pages_without_gap_or_repeat() {
    let app = filled().await;
    for (path, place, id) in LISTS {
        let whole = all(&app, path, place, id).await;
        assert!(whole.len() >= 3, "{path}: {whole:?}");
        let (mut seen, mut next) = (Vec::new(), format!("{path}?limit=1"));
        loop {
            let page = app.get(&next).admin().send().await;
            let found = ids(&page.json(), place, id);
            assert_eq!(found.len(), 1, "{next}");
            seen.extend(found);
            match page.header("x-next-cursor") {
                "" => break,
                cursor => next = format!("{path}?limit=1&cursor={cursor}"),
            }
        }
        assert_eq!(seen, whole, "{path}");
        let first = app.get(&format!("{path}?limit=1")).admin().send().await;
        let rest = app.get(&format!("{path}?cursor={}", first.header("x-next-cursor"))).admin().send().await;
        assert_eq!(ids(&rest.json(), place, id), whole[1..], "{path}: without a limit all that come after");
        for bad in ["limit=0", "limit=1001", "limit=x", "cursor=x"] {
            let answer = app.get(&format!("{path}?{bad}")).admin().send().await;
            assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{path}?{bad}");
        }
    }
    let secrets = app.get("/api/v1/secrets?limit=1").admin().send().await.json();
    assert_eq!(secrets["total"], 3, "of all pages");
}

#[tokio::test]
async fn events_of_an_execution_come_in_pages_too() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    app.play().await.exit(0).await;
    let path = format!("/api/v1/executions/{id}/events");
    let whole = app.get(&path).admin().send().await;
    let events = whole.json().as_array().expect("events").clone();
    assert!(events.len() >= 3 && whole.header("x-next-cursor").is_empty(), "{events:?}");
    let (mut seen, mut next) = (Vec::new(), format!("{path}?limit=2"));
    loop {
        let page = app.get(&next).admin().send().await;
        let found = page.json().as_array().expect("events").clone();
        assert!(found.len() <= 2, "{next}");
        seen.extend(found);
        match page.header("x-next-cursor") {
            "" => break,
            cursor => next = format!("{path}?limit=2&cursor={cursor}"),
        }
    }
    assert_eq!(seen, events);
    let first = app.get(&format!("{path}?limit=1")).admin().send().await;
    let rest = app.get(&format!("{path}?cursor={}", first.header("x-next-cursor"))).admin().send().await;
    assert_eq!(rest.json(), Value::Array(events[1..].to_vec()), "without a limit all that come after");
    for bad in ["limit=0", "limit=1001", "cursor=x"] {
        assert_eq!(app.get(&format!("{path}?{bad}")).admin().send().await.code(), (400, "INVALID_REQUEST".into()), "{bad}");
    }
}
