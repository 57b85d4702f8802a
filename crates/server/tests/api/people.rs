//! People as admins manage them: invitations, claims, roles, the end of rights; and what the audit trail keeps of it.

use std::sync::Arc;

use runvoy_engine::Pruner;
use runvoy_model::change::{Change, NewKey, NewUser};
use runvoy_model::event::EventType;
use runvoy_model::key::{key_hash, key_prefix, key_text, looks_like_key};
use runvoy_model::record::Kind;
use runvoy_model::role::Role;
use runvoy_ports::record::RecordStore as _;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use runvoy_server::{Connection, Peer};
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, Trouble, email_of, key_of};

const ANA: &str = "ana@example.com";
const MINUTE_MS: i64 = 60_000;

pub async fn create(app: &TestApp, email: &str, role: &str) -> Answer {
    app.post("/api/v1/users/create").admin().json(&json!({"email": email, "role": role})).send().await
}

/// Invites somebody and returns their token.
pub async fn invite(app: &TestApp, email: &str, role: &str) -> String {
    let answer = create(app, email, role).await;
    assert_eq!(answer.status.as_u16(), 201, "{}", answer.text());
    answer.json()["claim_token"].as_str().expect("a token").to_owned()
}

/// Invites somebody, who claims their key.
pub async fn join(app: &TestApp, email: &str, role: &str) -> String {
    let token = invite(app, email, role).await;
    let claimed = app.post(&format!("/api/v1/claim/{token}")).send().await;
    assert_eq!(claimed.status.as_u16(), 200, "{}", claimed.text());
    claimed.json()["api_key"].as_str().expect("a key").to_owned()
}

async fn user(app: &TestApp, email: &str) -> Option<Value> {
    let users = app.get("/api/v1/users/").admin().send().await.json();
    users["users"].as_array().expect("users").iter().find(|user| user["email"] == email).cloned()
}

/// The audit events, oldest first: who, what, result.
pub async fn audited(app: &TestApp) -> Vec<(String, String, String)> {
    let query = EventQuery { kind: Some(EventType::Audit), limit: 1_000, ..EventQuery::default() };
    let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let events = app.store.events(query).await.expect("a memory store");
    events
        .iter()
        .map(|stored| &stored.event.properties)
        .map(|said| (word(said, "user"), word(said, "action"), word(said, "result")))
        .collect()
}

#[tokio::test]
async fn an_invited_user_claims_a_key_that_works_and_is_shown_once() {
    let app = TestApp::new().await;
    let answer = create(&app, " Ana@Example.com ", "developer").await.json();
    assert_eq!(answer["user"]["email"], ANA);
    assert_eq!(answer["user"]["role"], "developer");
    assert_eq!(answer["user"]["revoked"], false);
    assert!(answer["user"].get("last_used").is_none(), "an absent time is an absent field");
    let token = answer["claim_token"].as_str().expect("a token");
    assert_eq!(token.len(), 32);
    assert_eq!(create(&app, ANA, "viewer").await.code(), (409, "CONFLICT".into()));
    let from = Connection { peer: Peer::Tcp("10.1.2.3:4711".parse().expect("an address")), tls: false };
    let claimed = app.get(&format!("/api/v1/claim/{token}")).connection(from).send().await.json();
    assert_eq!(claimed["user_email"], ANA);
    let key = claimed["api_key"].as_str().expect("a key");
    assert!(looks_like_key(key));
    assert_eq!(app.get("/api/v1/whoami").header("x-api-key", key).send().await.json()["role"], "developer");
    let again = app.post(&format!("/api/v1/claim/{token}")).send().await;
    assert_eq!(again.code(), (409, "CONFLICT".into()));
    let claims = app.store.records(Kind::Claim).await.expect("a memory store");
    let kept = serde_json::to_value(&claims[0].body).expect("plain data");
    assert_eq!(kept["claim"]["claimed"]["from"], "10.1.2.3");
    assert_eq!(kept["claim"]["claimed"]["at"], app.engine.now().0);
}

#[tokio::test]
async fn what_is_no_invitation_is_refused_by_field() {
    let app = TestApp::new().await;
    for (body, field) in [
        (json!({"email": "ana", "role": "viewer"}), "email"),
        (json!({"email": "ana@example.com\n", "role": "root"}), "role"),
        (json!({"email": ANA, "role": "Admin"}), "role"),
        (json!({"email": ANA}), "role"),
        (json!({"role": "viewer"}), "email"),
        (json!({"email": ANA, "role": "viewer", "api_key": "hunter2"}), "32 to 256"),
        (json!({"email": ANA, "role": "viewer", "api_key": "hunter2".repeat(40)}), "32 to 256"),
        (json!({"email": ANA, "role": "viewer", "api_key": "hunter2 ".repeat(8)}), "api_key"),
        (json!({"email": ANA, "role": "viewer", "api_key": format!("rv_{}", "hunter2".repeat(7))}), "api_key"),
        (json!({"email": ANA, "role": "viewer", "api_key": format!("eyJ{}..", "hunter2".repeat(7))}), "api_key"),
        (json!({"email": ANA, "role": "viewer", "api_key": format!("Aghunter2{}", "A".repeat(99))}), "api_key"),
    ] {
        let answer = app.post("/api/v1/users/create").admin().json(&body).send().await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{body}");
        assert!(answer.json()["error"].as_str().expect("text").contains(field), "{body}: {}", answer.text());
        assert!(!answer.text().contains("hunter2"), "a key is not repeated");
    }
    assert_eq!(user(&app, ANA).await, None);
}

#[tokio::test]
async fn a_user_may_bring_their_key() {
    let app = TestApp::new().await;
    let key = key_text(&[0x77; 32]);
    let body = json!({"email": ANA, "role": "viewer", "api_key": key});
    let answer = app.post("/api/v1/users/create").admin().json(&body).send().await;
    assert_eq!(answer.json()["claim_token"], "");
    assert_eq!(app.get("/api/v1/whoami").header("x-api-key", &key).send().await.json()["email"], ANA);
    let taken = json!({"email": "bob@example.com", "role": "admin", "api_key": key});
    assert_eq!(app.post("/api/v1/users/create").admin().json(&taken).send().await.code(), (409, "CONFLICT".into()));
}

#[tokio::test]
async fn a_user_may_bring_a_key_of_their_own_making() {
    let app = TestApp::new().await;
    let key = "q7Rv-2xKz/Wm9!Ld4_TbY6.Hc8~Jf3&Ps";
    let body = json!({"email": ANA, "role": "viewer", "api_key": key});
    let made = app.post("/api/v1/users/create").admin().json(&body).send().await;
    assert_eq!((made.status.as_u16(), &made.json()["claim_token"]), (201, &json!("")), "{}", made.text());
    let whoami = async |key: &str| app.get("/api/v1/whoami").header("authorization", &format!("Bearer {key}")).send().await;
    assert_eq!(whoami(key).await.json()["email"], ANA);
    assert_eq!(whoami("q7Rv-2xKz/Wm9!Ld4_TbY6.Hc8~Jf3&Pt").await.code(), (401, "INVALID_API_KEY".into()));
    let kept = user(&app, ANA).await.expect("there");
    assert_eq!(kept["keys"][0]["prefix"], "q7Rv-2xK");
    let revoked = app.delete(&format!("/api/v1/users/{ANA}/keys/q7Rv-2xK")).admin().send().await;
    assert!(revoked.status.is_success(), "{}", revoked.text());
    assert_eq!(whoami(key).await.code(), (401, "API_KEY_REVOKED".into()));
}

#[tokio::test]
async fn a_repeat_of_an_invitation_makes_nothing_and_shows_no_token_again() {
    let app = TestApp::new().await;
    let send = async |body: Value| app.post("/api/v1/users/create").admin().header("idempotency-key", "k1").json(&body).send().await;
    assert_eq!(send(json!({"email": ANA, "role": "viewer"})).await.status.as_u16(), 201);
    let again = send(json!({"email": ANA, "role": "viewer"})).await;
    assert_eq!(again.code(), (409, "CONFLICT".into()));
    assert!(again.text().contains(ANA) && again.text().contains("once"), "{}", again.text());
    let other = send(json!({"email": "bob@example.com", "role": "viewer"})).await;
    assert_eq!(other.code(), (409, "CONFLICT".into()));
    assert!(other.text().contains(ANA), "it names what the key made: {}", other.text());
    assert_eq!(user(&app, "bob@example.com").await, None);
    let brought = json!({"email": "eve@example.com", "role": "viewer", "api_key": key_text(&[0x78; 32])});
    for _ in 0..2 {
        let ask = app.post("/api/v1/users/create").admin().header("idempotency-key", "k2").json(&brought);
        assert_eq!(ask.send().await.status.as_u16(), 201, "nothing in it is shown once");
    }
}

#[tokio::test]
async fn security_04_of_100_claims_at_once_one_gets_the_key() {
    let app = Arc::new(TestApp::new().await);
    let token = invite(&app, ANA, "viewer").await;
    let from = Connection { peer: Peer::Tcp("10.1.2.3:4711".parse().expect("an address")), tls: false };
    let claims: Vec<_> = (0..100)
        .map(|_| {
            let (app, path) = (Arc::clone(&app), format!("/api/v1/claim/{token}"));
            tokio::spawn(async move { app.post(&path).connection(from).send().await.status.as_u16() })
        })
        .collect();
    let mut statuses = Vec::new();
    for claim in claims {
        statuses.push(claim.await.expect("no panic"));
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 99);
    assert_eq!(user(&app, ANA).await.expect("ana")["keys"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn security_04_a_token_lives_15_minutes_and_then_its_user_never_was() {
    let app = TestApp::new().await;
    let token = invite(&app, ANA, "admin").await;
    app.clock.advance(15 * MINUTE_MS - 1);
    assert!(user(&app, ANA).await.expect("still invited")["claim_expires_at"].is_string());
    app.clock.advance(1);
    let late = app.post(&format!("/api/v1/claim/{token}")).send().await;
    let never = app.post(&format!("/api/v1/claim/{}", "x".repeat(32))).send().await;
    assert_eq!(late.code(), (404, "NOT_FOUND".into()));
    assert_eq!(late.text(), never.text(), "too late and never look the same");
    assert_eq!(user(&app, ANA).await, None, "hidden at once");
    assert!(app.store.record(Kind::User, ANA).await.expect("a memory store").is_some());
    Pruner::new(Arc::clone(&app.engine)).prune().await.expect("pruned");
    assert!(app.store.record(Kind::User, ANA).await.expect("a memory store").is_none(), "and forgotten by the pruner");
    join(&app, ANA, "viewer").await;
    Pruner::new(Arc::clone(&app.engine)).prune().await.expect("pruned");
    assert!(user(&app, ANA).await.is_some());
}

#[tokio::test]
async fn security_04_a_look_at_a_claim_spends_nothing_and_a_malformed_token_is_told() {
    let app = TestApp::new().await;
    let token = invite(&app, ANA, "viewer").await;
    let path = format!("/api/v1/claim/{token}");
    assert_eq!(app.ask(http::Method::HEAD, &path).send().await.status.as_u16(), 405);
    assert_eq!(app.ask(http::Method::OPTIONS, &path).send().await.status.as_u16(), 204);
    for bad in ["short", &format!("{token}x"), &token.replace(&token[..1], "%20"), "%00%00", &"%C3%BC".repeat(16)] {
        let answer = app.post(&format!("/api/v1/claim/{bad}")).send().await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{bad}");
    }
    assert_eq!(app.post(&path).send().await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_new_invitation_ends_the_old_one_and_old_keys_stay_revoked() {
    let app = TestApp::new().await;
    let old_key = join(&app, ANA, "operator").await;
    let revoked = app.post("/api/v1/users/revoke").admin().json(&json!({"email": ANA})).send().await.json();
    assert_eq!(revoked["email"], ANA);
    assert_eq!((&revoked["open_executions"], &revoked["killed_executions"]), (&json!(0), &json!(0)));
    assert_eq!(user(&app, ANA).await.expect("kept")["revoked"], true);
    assert_eq!(app.get("/api/v1/whoami").header("x-api-key", &old_key).send().await.code(), (401, "API_KEY_REVOKED".into()));
    let first = invite(&app, ANA, "viewer").await;
    let again = app.post("/api/v1/users/revoke").admin().json(&json!({"email": ANA})).send().await;
    assert_eq!(again.status.as_u16(), 200, "an invitation can be taken back: {}", again.text());
    assert_eq!(app.post(&format!("/api/v1/claim/{first}")).send().await.code(), (404, "NOT_FOUND".into()));
    let key = join(&app, ANA, "viewer").await;
    assert_eq!(app.get("/api/v1/whoami").header("x-api-key", &key).send().await.json()["role"], "viewer");
    assert_eq!(app.get("/api/v1/whoami").header("x-api-key", &old_key).send().await.code(), (401, "API_KEY_REVOKED".into()));
    let unknown = app.post("/api/v1/users/revoke").admin().json(&json!({"email": "nobody@example.com"})).send().await;
    assert_eq!(unknown.code(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn revoking_says_what_becomes_of_running_work_and_kill_ends_it() {
    let app = TestApp::new().await;
    let key = join(&app, ANA, "developer").await;
    for _ in 0..3 {
        let run = app.post("/api/v1/run").header("x-api-key", &key).json(&json!({"command": "sleep 60"})).send().await;
        assert_eq!(run.status.as_u16(), 202);
    }
    let theirs = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let revoke = async |kill: bool| app.post("/api/v1/users/revoke").admin().json(&json!({"email": ANA, "kill": kill})).send().await;
    let first = revoke(false).await.json();
    assert_eq!((&first["open_executions"], &first["killed_executions"]), (&json!(3), &json!(0)));
    assert!(first["message"].as_str().expect("text").contains("3 executions of theirs go on"), "{first}");
    let again = revoke(false).await;
    assert_eq!((again.status.as_u16(), &again.json()["open_executions"]), (200, &json!(3)), "asking again changes nothing");
    let revocations = audited(&app).await.into_iter().filter(|(_, action, _)| action == "users.revoke").count();
    assert_eq!(revocations, 2, "and is kept");
    let second = revoke(true).await.json();
    assert_eq!((&second["open_executions"], &second["killed_executions"]), (&json!(0), &json!(3)), "what went on can still be ended");
    let list = app.get(&format!("/api/v1/executions?user={ANA}")).admin().send().await.json();
    assert!(list.as_array().expect("a list").iter().all(|execution| execution["status"] == "STOPPED"), "{list}");
    assert_eq!(app.get(&format!("/api/v1/executions/{theirs}/status")).admin().send().await.json()["status"], "PENDING");
    let kills = audited(&app).await.into_iter().filter(|(_, action, _)| action == "executions.kill").count();
    assert_eq!(kills, 3, "each by a step of its own");
}

#[tokio::test]
async fn security_09_the_last_admin_with_a_working_key_cannot_be_lost() {
    let app = TestApp::new().await;
    let admin = email_of(Role::Admin);
    let prefix = key_prefix(&key_of(Role::Admin));
    let revoke = json!({"email": admin});
    let conflict = (409, "CONFLICT".to_owned());
    let role_path = format!("/api/v1/users/{admin}/role");
    assert_eq!(app.post("/api/v1/users/revoke").admin().json(&revoke).send().await.code(), conflict);
    assert_eq!(app.post(&role_path).admin().json(&json!({"role": "viewer"})).send().await.code(), conflict);
    assert_eq!(app.delete(&format!("/api/v1/users/{admin}/keys/{prefix}")).admin().send().await.code(), conflict);
    invite(&app, ANA, "admin").await;
    assert_eq!(app.post("/api/v1/users/revoke").admin().json(&revoke).send().await.code(), conflict, "an invitation is no key");
    let second = join(&app, "bob@example.com", "admin").await;
    assert_eq!(app.post(&role_path).admin().json(&json!({"role": "viewer"})).send().await.json()["role"], "viewer");
    let users = app.get("/api/v1/users").header("x-api-key", &second).send().await;
    assert_eq!(users.status.as_u16(), 200);
    assert_eq!(app.get("/api/v1/users").admin().send().await.code(), (403, "FORBIDDEN".into()), "at once");
}

#[tokio::test]
async fn every_change_leaves_one_event_and_so_does_one_that_was_refused() {
    let app = TestApp::new().await;
    let before = audited(&app).await.len();
    let token = invite(&app, ANA, "viewer").await;
    app.post(&format!("/api/v1/claim/{token}")).send().await;
    app.post(&format!("/api/v1/users/{ANA}/role")).admin().json(&json!({"role": "operator"})).send().await;
    app.post("/api/v1/users/create").role(Role::Viewer).json(&json!({"email": "x@example.com", "role": "admin"})).send().await;
    app.get("/api/v1/users").role(Role::Viewer).send().await;
    app.post("/api/v1/users/revoke").admin().json(&json!({"email": ANA})).send().await;
    let (admin, viewer) = (email_of(Role::Admin), email_of(Role::Viewer));
    let expected = [
        (admin.as_str(), "users.create", "ok"),
        (ANA, "users.claim", "ok"),
        (&admin, "users.role", "ok"),
        (&viewer, "POST /api/v1/users/create", "denied: FORBIDDEN"),
        (&admin, "users.revoke", "ok"),
    ];
    let found = audited(&app).await.split_off(before);
    let found: Vec<_> = found.iter().map(|(user, action, result)| (user.as_str(), action.as_str(), result.as_str())).collect();
    assert_eq!(found, expected, "a read that is refused leaves none");
}

#[tokio::test]
async fn a_refusal_that_cannot_be_kept_is_no_refusal_but_an_outage() {
    let app = TestApp::new().await;
    let ask = || app.post("/api/v1/users/create").role(Role::Viewer).json(&json!({"email": ANA, "role": "admin"}));
    assert_eq!(ask().send().await.code(), (403, "FORBIDDEN".into()));
    app.store.set(Some(Trouble::Full));
    assert_eq!(ask().send().await.code(), (503, "SERVICE_UNAVAILABLE".into()));
    app.store.set(Some(Trouble::Away));
    assert_eq!(ask().send().await.code(), (503, "DATABASE_ERROR".into()));
    assert_eq!(create(&app, ANA, "viewer").await.code(), (503, "DATABASE_ERROR".into()));
    app.store.set(None);
    assert_eq!(user(&app, ANA).await, None, "nothing happened");
}

#[tokio::test]
async fn the_owner_of_the_machine_gets_back_in_and_nobody_else() {
    let app = TestApp::new().await;
    let owner = Connection { peer: Peer::Unix { uid: 1000, owner: true }, tls: false };
    let stranger = Connection { peer: Peer::Unix { uid: 1001, owner: false }, tls: false };
    let refused = app.post("/api/v1/admin/recover").admin().send().await;
    assert_eq!(refused.code(), (403, "FORBIDDEN".into()), "an admin's key is not enough");
    assert_eq!(app.post("/api/v1/admin/recover").connection(stranger).admin().send().await.code(), (403, "FORBIDDEN".into()));
    let recovered = app.post("/api/v1/admin/recover").connection(owner).send().await;
    assert_eq!(recovered.status.as_u16(), 201, "{}", recovered.text());
    assert_eq!(recovered.json()["email"], email_of(Role::Admin));
    let body = json!({"email": email_of(Role::Viewer)});
    let viewer = app.post("/api/v1/admin/recover").connection(owner).json(&body).send().await.json();
    let key = viewer["api_key"].as_str().expect("a key");
    assert_eq!(app.get("/api/v1/whoami").header("x-api-key", key).send().await.json()["role"], "admin");
    assert_eq!(audited(&app).await.iter().filter(|(_, action, result)| action == "admin.recover" && result == "ok").count(), 2);
}

#[tokio::test]
async fn the_last_use_of_a_key_is_told_to_the_minute() {
    let app = TestApp::new().await;
    let (text, email) = (key_text(&[0x79; 32]), "old@example.com".to_owned());
    let key = NewKey { hash: key_hash(&text), prefix: key_prefix(&text), name: Some("laptop".into()), expires_at: None };
    app.change(Change::RecoverAdmin(NewUser { email, role: Role::Admin, key })).await;
    assert!(user(&app, "old@example.com").await.expect("a user").get("last_used").is_none());
    app.store.touch_key(key_hash(&text), app.engine.now()).await.expect("a memory store");
    let shown = user(&app, "old@example.com").await.expect("a user");
    assert_eq!(shown["last_used"], shown["created_at"], "in the minute in which it was made, and not before");
    assert_eq!(shown["keys"][0]["last_used"], shown["last_used"]);
    app.clock.advance(3 * MINUTE_MS);
    app.store.touch_key(key_hash(&text), app.engine.now()).await.expect("a memory store");
    assert_eq!(user(&app, "old@example.com").await.expect("a user")["last_used"], "2026-01-03T14:25:00.000Z");
    assert_eq!(shown["keys"][0]["name"], "laptop");
}

#[tokio::test]
async fn an_invitation_lasts_as_long_as_the_admin_says_up_to_seven_days() {
    let app = TestApp::new().await;
    let invited = async |body: Value| app.post("/api/v1/users/create").admin().json(&body).send().await;
    for bad in [json!(0), json!(7 * 24 * 3600 + 1), json!(u64::MAX)] {
        let answer = invited(json!({"email": ANA, "role": "viewer", "expires_in": bad})).await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{bad}");
        assert!(answer.json()["error"].as_str().expect("text").starts_with("expires_in"), "{}", answer.text());
    }
    let answer = invited(json!({"email": ANA, "role": "viewer", "expires_in": 7 * 24 * 3600})).await.json();
    let token = answer["claim_token"].as_str().expect("a token").to_owned();
    app.clock.advance(7 * 24 * 60 * MINUTE_MS - 1);
    assert_eq!(app.post(&format!("/api/v1/claim/{token}")).send().await.status.as_u16(), 200);
}

#[tokio::test]
async fn security_04_a_renewed_invitation_ends_the_token_before_it() {
    let app = TestApp::new().await;
    let first = invite(&app, ANA, "operator").await;
    app.clock.advance(10 * MINUTE_MS);
    let renew =
        async |email: &str| app.post(&format!("/api/v1/users/{email}/renew")).admin().json(&json!({"expires_in": 3600})).send().await;
    let renewed = renew(ANA).await.json();
    assert_eq!((&renewed["user"]["email"], &renewed["user"]["role"]), (&json!(ANA), &json!("operator")));
    let second = renewed["claim_token"].as_str().expect("a token");
    assert_eq!(app.post(&format!("/api/v1/claim/{first}")).send().await.code(), (404, "NOT_FOUND".into()));
    app.clock.advance(50 * MINUTE_MS);
    let claimed = app.post(&format!("/api/v1/claim/{second}")).send().await.json();
    assert_eq!(claimed["user_email"], ANA);
    assert_eq!(renew(ANA).await.code(), (409, "CONFLICT".into()), "it was claimed");
    assert_eq!(renew("nobody@example.com").await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(app.post(&format!("/api/v1/users/{ANA}/renew")).role(Role::Operator).send().await.code(), (403, "FORBIDDEN".into()));
    assert_eq!(audited(&app).await.iter().filter(|(_, action, result)| action == "users.renew" && result == "ok").count(), 1);
}
