//! Workers over the API: accounts, their keys, and who is there.

use std::collections::BTreeMap;

use http::StatusCode;
use runvoy_model::id::WorkerId;
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use serde_json::{Value, json};

use crate::app::{NOW, ROLES, TestApp, Trouble};

const ACCOUNTS: &str = "/api/v1/workers/accounts";
const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n";

async fn create(app: &TestApp, body: Value) -> Value {
    let answer = app.post(ACCOUNTS).admin().json(&body).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()
}

async fn whoami(app: &TestApp, key: &str) -> (u16, Value) {
    let answer = app.get("/api/v1/whoami").header("x-api-key", key).send().await;
    (answer.status.as_u16(), answer.json())
}

fn key_in(answer: &Value) -> String {
    answer["api_key"].as_str().expect("a key").to_owned()
}

#[tokio::test]
async fn an_account_is_made_rekeyed_and_revoked_and_its_key_shown_once() {
    let app = TestApp::new().await;
    let made = create(&app, json!({"name": "gpu/1", "queues": ["gpu", "default"]})).await;
    let first = key_in(&made);
    assert_eq!((&made["account"]["queues"], &made["account"]["revoked"]), (&json!(["default", "gpu"]), &json!(false)));
    let (status, who) = whoami(&app, &first).await;
    assert_eq!((status, &who["email"], &who["role"]), (200, &json!("worker:gpu/1"), &json!("worker")));
    let taken = app.post(ACCOUNTS).admin().json(&json!({"name": "gpu/1"})).send().await;
    assert_eq!(taken.code(), (409, "CONFLICT".into()));
    let rotated = app.post(&format!("{ACCOUNTS}/gpu%2F1/rotate")).admin().send().await.json();
    let second = key_in(&rotated);
    assert_eq!((whoami(&app, &first).await.0, whoami(&app, &second).await.0), (401, 200));
    let listed = app.get(ACCOUNTS).admin().send().await;
    assert!(!listed.text().contains(&second[12..]), "only the beginning of a key is kept");
    assert_eq!(listed.json()[0]["key_prefix"], second[..11]);
    assert_eq!(app.ask(http::Method::DELETE, &format!("{ACCOUNTS}/gpu%2F1")).admin().send().await.status, StatusCode::OK);
    assert_eq!(app.get("/api/v1/whoami").header("x-api-key", &second).send().await.code(), (401, "API_KEY_REVOKED".into()));
    assert_eq!(app.get(ACCOUNTS).admin().send().await.json()[0]["revoked"], true);
    for gone in ["gpu%2F1", "never", "a%20b"] {
        assert_eq!(app.ask(http::Method::DELETE, &format!("{ACCOUNTS}/{gone}")).admin().send().await.code().0, 404, "{gone}");
    }
    let events = app.get("/api/v1/audit?action=workers").admin().send().await.text();
    for action in ["workers.create", "workers.rotate", "workers.revoke"] {
        assert!(events.contains(action), "{action}: {events}");
    }
    assert!(!events.contains(&first) && !events.contains(&second));
}

#[tokio::test]
async fn accounts_are_made_and_revoked_at_the_address_of_workers_too() {
    let app = TestApp::new().await;
    let make = async |name: &str| app.post("/api/v1/workers").admin().json(&json!({"name": name, "queues": ["gpu"]})).send().await;
    let made = make("gpu/1").await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let key = key_in(&made.json());
    assert_eq!(whoami(&app, &key).await.0, 200);
    assert_eq!(app.delete("/api/v1/workers/gpu%2F1").admin().send().await.json()["name"], "gpu/1");
    assert_eq!(whoami(&app, &key).await.0, 401);
    assert_eq!(app.delete("/api/v1/workers/gpu%2F1").admin().send().await.code(), (404, "NOT_FOUND".into()));
    make("accounts").await;
    assert_eq!(app.delete("/api/v1/workers/accounts").admin().send().await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(app.delete(&format!("{ACCOUNTS}/accounts")).admin().send().await.status, StatusCode::OK, "the longer address names it");
}

#[tokio::test]
async fn a_public_key_is_stored_with_the_role_that_is_named() {
    let app = TestApp::new().await;
    let made = create(&app, json!({"name": "ci", "public_key": PUBLIC_KEY, "role": "developer"})).await;
    assert_eq!(made["account"]["role"], "developer");
    create(&app, json!({"name": "gpu-1"})).await;
    let listed = app.get(ACCOUNTS).admin().send().await.json();
    assert_eq!((&listed[0]["role"], &listed[1]["role"]), (&json!("developer"), &json!("worker")));
}

#[tokio::test]
async fn what_is_wrong_with_an_account_is_named_by_field() {
    let app = TestApp::new().await;
    for (body, field) in [
        (json!({}), "name"),
        (json!({"name": "a b"}), "name"),
        (json!({"name": "a", "queues": ["x y"]}), "queues"),
        (json!({"name": "a", "public_key": "nonsense"}), "public_key"),
        (json!({"name": "a", "what": 1}), "what"),
        (json!({"name": "a", "role": "developer"}), "role"),
        (json!({"public_key": PUBLIC_KEY, "role": "admin"}), "role"),
        (json!({"public_key": PUBLIC_KEY, "role": "viewer", "queues": ["gpu"]}), "queues"),
    ] {
        let answer = app.post(ACCOUNTS).admin().json(&body).send().await;
        assert_eq!(answer.code().0, 400, "{body}");
        assert!(answer.text().contains(field), "{body}: {}", answer.text());
    }
    let keyed = async || app.post(ACCOUNTS).admin().header("idempotency-key", "k").json(&json!({"name": "once"})).send().await;
    assert_eq!(keyed().await.status, StatusCode::CREATED);
    assert_eq!(keyed().await.code().0, 409, "a key is shown once");
}

#[tokio::test]
async fn workers_that_are_there_are_seen_by_everybody_but_workers() {
    let app = TestApp::new().await;
    app.with_worker().await;
    let presence = Presence {
        worker: WorkerId::from_bytes([7; 16]),
        account: Some(Name::new("gpu-1").expect("a name")),
        name: "gpu-1.a".into(),
        host: "a".into(),
        version: "0.1.0".into(),
        runner: "process".into(),
        queues: vec![Name::new("gpu").expect("a name")],
        labels: BTreeMap::from([("zone".into(), "b".into())]),
        concurrency: 4,
        running: 1,
        in_process: false,
        draining: false,
        since: UnixMs(NOW),
        seen_at: UnixMs(NOW),
        busy_until: None,
        place: None,
    };
    app.engine.note_worker(presence).await.expect("noted");
    for role in ROLES {
        let workers = app.get("/api/v1/workers").role(role).send().await.json();
        assert_eq!(
            (&workers[0]["account"], &workers[0]["live"], &workers[0]["labels"]["zone"]),
            (&json!("gpu-1"), &json!(true), &json!("b"))
        );
    }
    assert_eq!(app.get("/api/v1/workers").role(Role::Worker).send().await.code(), (403, "FORBIDDEN".into()));
    let served = |queues: serde_json::Value| -> Vec<String> {
        let queues = queues.as_array().cloned().unwrap_or_default();
        queues.iter().filter(|queue| queue["workers"] == json!(1)).map(|queue| queue["name"].to_string()).collect()
    };
    assert_eq!(served(app.get("/api/v1/queues").admin().send().await.json()), [r#""gpu""#], "a queue is listed while somebody serves it");
    app.clock.advance(31_000);
    assert_eq!(app.get("/api/v1/workers").admin().send().await.json()[0]["live"], false);
    assert!(served(app.get("/api/v1/queues").admin().send().await.json()).is_empty());
}

#[tokio::test]
async fn an_admin_drains_a_worker_and_lets_it_go_on() {
    let app = TestApp::new().await;
    app.with_present_worker("gpu-host").await;
    let ask = async |verb: &str, role: Role| app.post(&format!("/api/v1/workers/gpu-host/{verb}")).role(role).send().await;
    for role in ROLES.into_iter().filter(|role| *role != Role::Admin) {
        assert_eq!(ask("drain", role).await.code(), (403, "FORBIDDEN".into()));
    }
    let answer = ask("drain", Role::Admin).await;
    let told = json!({"name": "gpu-host", "draining": true, "running": 2, "message": "worker gpu-host takes nothing new; it runs 2 now"});
    assert_eq!(answer.json(), told, "{}", answer.text());
    let listed = app.get("/api/v1/workers").admin().send().await.json();
    assert_eq!((&listed[0]["draining"], &listed[0]["drained_by"]), (&json!(true), &json!("admin@example.com")), "{listed}");
    assert!(app.get("/api/v1/doctor").admin().send().await.text().contains("runvoy workers resume gpu-host"));
    let queues = app.get("/api/v1/queues").admin().send().await.json();
    assert_eq!(queues[0]["workers"], 0, "it serves nothing new: {queues}");
    assert_eq!(ask("resume", Role::Admin).await.json()["draining"], false);
    let listed = app.get("/api/v1/workers").admin().send().await.json();
    assert_eq!((&listed[0]["draining"], listed[0].get("drained_by")), (&json!(false), None));
    assert!(!app.get("/api/v1/doctor").admin().send().await.text().contains("drained workers"));
    assert_eq!(app.post("/api/v1/workers/nobody/drain").admin().send().await.code().0, 404);
    let trail = app.get("/api/v1/audit?action=workers").admin().send().await.text();
    assert!(trail.contains("workers.drain") && trail.contains("workers.resume"), "{trail}");
}

#[tokio::test]
async fn the_status_of_what_waits_names_the_queue_that_nobody_serves() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true", "queue": "gpu"})).await;
    let status = app.get(&format!("/api/v1/executions/{id}/status")).role(Role::Developer).send().await.json();
    assert_eq!(status["waiting_for"], json!({"code": "worker", "message": "a worker: no worker serves queue gpu"}));
}

#[tokio::test]
async fn a_new_key_for_task_tokens_is_an_admin_s_to_make_and_on_record_first() {
    const ROTATE: &str = "/api/v1/signing-key/rotate";
    let app = TestApp::new().await;
    let keys = async || app.engine.ports().signing_keys.all().await.expect("a ring").len();
    app.engine.signing_ring().await.expect("a ring");
    assert_eq!(keys().await, 1);
    for role in ROLES.into_iter().filter(|role| *role != Role::Admin) {
        assert_eq!(app.post(ROTATE).role(role).send().await.code(), (403, "FORBIDDEN".into()));
    }
    app.store.set(Some(Trouble::Away));
    assert_eq!(app.post(ROTATE).admin().send().await.code(), (503, "DATABASE_ERROR".into()));
    app.store.set(None);
    assert_eq!(keys().await, 1, "what cannot be on record does not happen");
    for n in 1..=2 {
        let answer = app.post(ROTATE).admin().send().await;
        assert_eq!(
            (answer.status, &answer.json()["key_id"]),
            (StatusCode::OK, &json!((NOW + n).to_string())),
            "each is later than the last"
        );
    }
    assert_eq!(keys().await, 3);
    let events = app.get("/api/v1/audit?action=workers").admin().send().await.json();
    let made: Vec<&Value> =
        events.as_array().expect("events").iter().filter(|event| event["action"] == "workers.rotate-signing-key").collect();
    assert!(made.len() == 2 && made.iter().all(|event| event["entity"] == "USER:admin@example.com"), "{events}");
    app.clock.advance(-2 * 3_600_000);
    let refused = app.post(ROTATE).admin().send().await;
    assert_eq!(refused.code(), (409, "CONFLICT".into()));
    assert!(refused.text().contains("correct the clock"), "{}", refused.text());
}
