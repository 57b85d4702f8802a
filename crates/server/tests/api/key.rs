//! Keys as their owners manage them, and what may never be found of one.

use runvoy_model::event::EventType;
use runvoy_model::key::{key_prefix, key_text};
use runvoy_model::record::Kind;
use runvoy_model::role::Role;
use runvoy_ports::record::RecordStore as _;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use serde_json::{Value, json};

use crate::app::{ROLES, TestApp, email_of, key_of};

fn keys_path(role: Role) -> String {
    format!("/api/v1/users/{}/keys", email_of(role))
}

async fn make(app: &TestApp, role: Role, body: &Value) -> (String, String) {
    let answer = app.post(&keys_path(role)).role(role).json(body).send().await;
    assert_eq!(answer.status.as_u16(), 201, "{}", answer.text());
    let (made, text) = (answer.json(), |value: &Value| value.as_str().expect("text").to_owned());
    (text(&made["api_key"]), text(&made["key"]["prefix"]))
}

async fn whoami(app: &TestApp, key: &str) -> u16 {
    app.get("/api/v1/whoami").header("x-api-key", key).send().await.status.as_u16()
}

#[tokio::test]
async fn everybody_manages_their_own_keys_and_each_works_until_it_is_ended() {
    let app = TestApp::new().await;
    for role in ROLES {
        let (key, prefix) = make(&app, role, &json!({"name": "ci"})).await;
        assert_eq!(key_prefix(&key), prefix);
        assert_eq!(whoami(&app, &key).await, 200);
        let list = app.get(&keys_path(role)).header("x-api-key", &key).send().await.json();
        assert_eq!(list["keys"].as_array().map(Vec::len), Some(2));
        assert_eq!(list["keys"][1]["name"], "ci");
        let ended = app.delete(&format!("{}/{prefix}", keys_path(role))).role(role).send().await;
        assert_eq!(ended.json()["prefix"], prefix.as_str());
        assert_eq!(whoami(&app, &key).await, 401);
        assert_eq!(app.delete(&format!("{}/{prefix}", keys_path(role))).role(role).send().await.code(), (404, "NOT_FOUND".into()));
        assert_eq!(app.get(&keys_path(role)).role(role).send().await.json()["keys"][1]["revoked"], true);
    }
}

#[tokio::test]
async fn security_07_the_keys_of_others_are_not_there() {
    let app = TestApp::new().await;
    for role in [Role::Operator, Role::Developer, Role::Viewer] {
        for (theirs, nobodys) in [(email_of(Role::Admin), "nobody@example.com")] {
            let prefix = key_prefix(&key_of(Role::Admin));
            let ask = async |email: &str| {
                let path = format!("/api/v1/users/{email}/keys");
                [
                    app.get(&path).role(role).send().await,
                    app.post(&path).role(role).json(&json!({})).send().await,
                    app.delete(&format!("{path}/{prefix}")).role(role).send().await,
                    app.post(&format!("{path}/{prefix}/rotate")).role(role).json(&json!({})).send().await,
                ]
            };
            for (there, missing) in ask(&theirs).await.iter().zip(ask(nobodys).await) {
                assert_eq!(there.code(), (404, "NOT_FOUND".into()), "{role:?}");
                assert_eq!(there.text().replace(&theirs, nobodys), missing.text(), "not there and not yours look the same");
            }
        }
    }
    assert_eq!(whoami(&app, &key_of(Role::Admin)).await, 200);
    let made = app.post(&keys_path(Role::Viewer)).admin().json(&json!({})).send().await;
    assert_eq!(made.status.as_u16(), 201, "an admin may for anybody");
    let same = format!("/api/v1/users/{}/keys", email_of(Role::Viewer).to_uppercase());
    assert_eq!(app.get(&same).role(Role::Viewer).send().await.status.as_u16(), 200, "an address is the same in capitals");
}

#[tokio::test]
async fn a_key_ends_at_its_time_and_a_rotated_one_in_the_same_step() {
    let app = TestApp::new().await;
    let (key, prefix) = make(&app, Role::Viewer, &json!({"expires_in": 60})).await;
    let list = app.get(&keys_path(Role::Viewer)).role(Role::Viewer).send().await.json();
    assert_eq!(list["keys"][1]["expires_at"], "2026-01-03T14:23:19.640Z");
    app.clock.advance(59_999);
    assert_eq!(whoami(&app, &key).await, 200);
    let rotated = app.post(&format!("{}/{prefix}/rotate", keys_path(Role::Viewer))).header("x-api-key", &key).send().await;
    assert_eq!(rotated.status.as_u16(), 201, "{}", rotated.text());
    let new = rotated.json()["api_key"].as_str().expect("a key").to_owned();
    assert_eq!((whoami(&app, &key).await, whoami(&app, &new).await), (401, 200));
    let (short, _) = make(&app, Role::Viewer, &json!({"expires_in": 1})).await;
    app.clock.advance(1_000);
    let expired = app.get("/api/v1/whoami").header("x-api-key", &short).send().await;
    assert_eq!(expired.code(), (401, "API_KEY_REVOKED".into()));
    for bad in [json!({"expires_in": 0}), json!({"expires_in": -1}), json!({"name": "a\nb"}), json!({"expires_in": u64::MAX})] {
        let answer = app.post(&keys_path(Role::Viewer)).role(Role::Viewer).json(&bad).send().await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{bad}");
    }
}

#[tokio::test]
async fn a_repeat_makes_no_second_key_and_shows_none() {
    let app = TestApp::new().await;
    let path = keys_path(Role::Viewer);
    let send = async || app.post(&path).role(Role::Viewer).header("idempotency-key", "k1").json(&json!({"name": "ci"})).send().await;
    assert_eq!(send().await.status.as_u16(), 201);
    let again = send().await;
    assert_eq!(again.code(), (409, "CONFLICT".into()));
    assert!(again.text().contains("a key of viewer@example.com"), "{}", again.text());
    let list = app.get(&path).role(Role::Viewer).send().await.json();
    assert_eq!(list["keys"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_user_has_only_so_many_keys() {
    let app = TestApp::new().await;
    for _ in 0..19 {
        make(&app, Role::Viewer, &json!({})).await;
    }
    let answer = app.post(&keys_path(Role::Viewer)).role(Role::Viewer).json(&json!({})).send().await;
    assert_eq!(answer.code(), (409, "CONFLICT".into()));
    assert!(answer.text().contains("revoke one first"), "{}", answer.text());
}

/// Everything a store keeps of people, as text; and what is answered about them.
async fn everything(app: &TestApp) -> String {
    let mut all = String::new();
    for kind in Kind::ALL {
        all += &format!("{:?}", app.store.records(kind).await.expect("a memory store"));
    }
    let query = EventQuery { kind: Some(EventType::Audit), limit: 10_000, ..EventQuery::default() };
    all += &format!("{:?}", app.store.events(query).await.expect("a memory store"));
    for path in ["/api/v1/users", "/api/v1/audit?limit=1000", "/api/v1/audit/export"] {
        all += &app.get(path).admin().send().await.text();
    }
    all
}

#[tokio::test]
async fn security_01_of_a_key_and_a_token_nothing_is_kept_but_a_hash() {
    let app = TestApp::new().await;
    let mut shown = Vec::new();
    for n in 0..25 {
        let email = format!("user{n}@example.com");
        let invited = app.post("/api/v1/users/create").admin().json(&json!({"email": email, "role": "viewer"})).send().await.json();
        let token = invited["claim_token"].as_str().expect("a token").to_owned();
        let claimed = app.post(&format!("/api/v1/claim/{token}")).send().await.json();
        let key = claimed["api_key"].as_str().expect("a key").to_owned();
        let more = app.post(&format!("/api/v1/users/{email}/keys")).header("x-api-key", &key).send().await.json();
        let more = more["api_key"].as_str().expect("a key").to_owned();
        let rotate = format!("/api/v1/users/{email}/keys/{}/rotate", key_prefix(&more));
        let rotated = app.post(&rotate).header("x-api-key", &key).send().await.json();
        shown.extend([token, key, more, rotated["api_key"].as_str().expect("a key").to_owned()]);
    }
    let kept = everything(&app).await;
    assert!(kept.contains("user24@example.com") && kept.contains(&key_prefix(&shown[1])));
    for secret in shown {
        for form in forms(&secret) {
            assert!(!kept.contains(&form), "{form} is kept");
        }
    }
}

/// A text as it is, without what is shown of it, and in the usual other forms.
fn forms(text: &str) -> Vec<String> {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let numbers = text.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    vec![text.to_owned(), text[12..].to_owned(), hex.clone(), hex.to_uppercase(), numbers, base64(text.as_bytes())]
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks_exact(3).map(|group| (u32::from(group[0]) << 16) | (u32::from(group[1]) << 8) | u32::from(group[2]));
    groups.flat_map(|bits| [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift) as usize & 63]))).collect()
}

#[tokio::test]
async fn security_02_a_known_prefix_and_an_unknown_one_fail_alike() {
    let app = TestApp::new().await;
    let good = key_of(Role::Viewer);
    // The same beginning, another end, and a checksum that fits: as near as one can come without the key.
    let mut random = [Role::Viewer as u8 + 1; 32];
    random[31] ^= 1;
    let near = key_text(&random);
    assert_eq!(key_prefix(&near), key_prefix(&good));
    let ask = async |key: &str| {
        let reads = app.store.record_reads();
        let answer = app.get("/api/v1/whoami").header("x-api-key", key).send().await;
        (answer.code(), answer.text(), answer.header("www-authenticate").to_owned(), app.store.record_reads() - reads)
    };
    let (known, unknown) = (ask(&near).await, ask(&key_text(&[0xee; 32])).await);
    assert_eq!(known.0, (401, "INVALID_API_KEY".into()));
    assert_eq!(known, unknown, "the same answer after the same reads");
}
