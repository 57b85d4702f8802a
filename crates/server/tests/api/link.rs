//! Signed links open one log, for a while, and end with the key or the user that made them.

use http::StatusCode;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewKey};
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::role::Role;
use runvoy_server::{Connection, Peer};
use serde_json::{Value, json};

use crate::app::{TestApp, email_of, key_of};

async fn link(app: &TestApp, role: Role, id: &str) -> Value {
    let answer = app.post(&format!("/api/v1/executions/{id}/link")).role(role).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()
}

async fn status(app: &TestApp, path: &str, token: &str) -> u16 {
    app.get(path).header("authorization", &format!("Bearer {token}")).send().await.status.as_u16()
}

fn token(link: &Value) -> String {
    link["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn a_link_opens_one_log_without_a_key() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let mut played = app.play().await;
    played.write(&["one", "two"]).await;
    played.exit(0).await;
    app.clock.advance(5_000);
    let link = link(&app, Role::Developer, &id).await;
    let url = link["url"].as_str().expect("an address");
    assert!(url.contains(&format!("execution_id={id}#token=")), "the token stands behind the fragment: {url}");
    let token = token(&link);
    for path in [format!("/api/v1/logs/{id}"), format!("/api/logs/{id}")] {
        let answer = app.get(&path).header("authorization", &format!("Bearer {token}")).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let log = answer.json();
        assert_eq!((&log["execution_id"], &log["status"], &log["completed"]), (&json!(id), &json!("SUCCEEDED"), &json!(true)));
        assert!(log["logs"].as_str().is_some_and(|text| text.contains("one\ntwo\n")), "{log}");
        let last = log["last_timestamp"].as_str().expect("a time");
        let answer = app.get(&format!("{path}?since={last}&token={token}")).send().await;
        assert_eq!(answer.json()["logs"], "", "nothing came after");
        assert_eq!(answer.json()["last_timestamp"], last, "and the next look begins there again");
    }
    let lines = app.get(&format!("/api/v1/executions/{id}/logs?token={token}")).send().await;
    assert_eq!(lines.status, StatusCode::OK, "the page reads lines by the same link");
}

#[tokio::test]
async fn a_server_without_an_address_gives_no_link() {
    let app = TestApp::with(|config| config.web_url.clear(), |server| server.own_url.clear()).await;
    let id = app.submit("true").await;
    let answer = app.post(&format!("/api/v1/executions/{id}/link")).admin().send().await;
    assert_eq!(answer.code(), (409, "CONFLICT".into()));
    let told = answer.json();
    assert!(told["error"].as_str().is_some_and(|error| error.contains("no HTTP port")), "{told}");
    assert!(told["details"].as_str().is_some_and(|details| details.contains("runvoy serve")), "{told}");
    let trail = app.get("/api/v1/audit?action=executions.link").admin().send().await.json();
    assert_eq!(trail.as_array().map(Vec::len), Some(0), "{trail}");
}

#[tokio::test]
async fn the_same_key_gives_the_same_link() {
    let app = TestApp::new().await;
    let (id, other) = (app.submit("true").await, app.submit("true").await);
    let ask =
        async |id: &str, key: &str| app.post(&format!("/api/v1/executions/{id}/link")).admin().header("idempotency-key", key).send().await;
    let first = ask(&id, "k1").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    app.clock.advance(5_000);
    let again = ask(&id, "k1").await;
    assert_eq!((again.status, again.text()), (StatusCode::CREATED, first.text()));
    assert_eq!(status(&app, &format!("/api/v1/logs/{id}"), &token(&again.json())).await, 200);
    assert_ne!(ask(&id, "k2").await.text(), first.text(), "another key is another link");
    let crossed = ask(&other, "k1").await;
    assert_eq!(crossed.code(), (409, "CONFLICT".into()));
    assert!(crossed.text().contains(&format!("a link to the log of execution {id}")), "{}", crossed.text());
    assert_eq!(ask(&id, "").await.code(), (400, "INVALID_REQUEST".into()));
    let trail = app.get("/api/v1/audit?action=executions.link").admin().send().await.json();
    let made = trail.as_array().expect("events").iter().filter(|event| event["result"] == "ok").count();
    assert_eq!(made, 2, "{trail}");
}

#[tokio::test]
async fn a_link_opens_nothing_else() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Admin, json!({"command": "true"})).await;
    let other = app.submit_as(Role::Admin, json!({"command": "true"})).await;
    let token = token(&link(&app, Role::Admin, &id).await);
    assert_eq!(status(&app, &format!("/api/v1/logs/{other}"), &token).await, 401);
    assert_eq!(status(&app, &format!("/api/v1/executions/{other}/logs"), &token).await, 401);
    for path in ["/api/v1/executions", "/api/v1/whoami", "/api/v1/locks", &format!("/api/v1/executions/{id}")] {
        assert_eq!(status(&app, path, &token).await, 401, "{path}");
    }
    let kill = app.delete(&format!("/api/v1/executions/{id}")).header("authorization", &format!("Bearer {token}")).send().await;
    assert_eq!(kill.status, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&app, &format!("/api/v1/logs/{id}"), &format!("{token}x")).await, 401);
    assert_eq!(status(&app, &format!("/api/v1/logs/{id}"), "eyJ.e30.x").await, 401);
}

#[tokio::test]
async fn a_link_ends_after_two_days_and_with_whoever_made_it() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let (own, operators) = (link(&app, Role::Developer, &id).await, link(&app, Role::Operator, &id).await);
    let path = format!("/api/v1/logs/{id}");
    app.revoke(Role::Developer).await;
    assert_eq!(status(&app, &path, &token(&own)).await, 401, "its maker was revoked");
    assert_eq!(status(&app, &path, &token(&operators)).await, 200);
    app.clock.advance(48 * 3600 * 1000 - 1_000);
    assert_eq!(status(&app, &path, &token(&operators)).await, 200);
    app.clock.advance(1_000);
    assert_eq!(status(&app, &path, &token(&operators)).await, 401);
}

#[tokio::test]
async fn a_link_ends_with_the_key_that_made_it_also_if_its_user_stays() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Operator, json!({"command": "true"})).await;
    let token = token(&link(&app, Role::Operator, &id).await);
    let prefix = runvoy_model::key::key_prefix(&key_of(Role::Operator));
    app.change(runvoy_model::change::Change::RevokeKey(email_of(Role::Operator), prefix)).await;
    assert_eq!(status(&app, &format!("/api/v1/logs/{id}"), &token).await, 401);
}

#[tokio::test]
async fn only_who_may_read_makes_a_link() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Admin, json!({"command": "true"})).await;
    let path = format!("/api/v1/executions/{id}/link");
    assert_eq!(app.post(&path).role(Role::Developer).send().await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(app.post(&path).send().await.code(), (401, "UNAUTHORIZED".into()));
    assert_eq!(app.post(&path).role(Role::Viewer).send().await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn lines_of_the_same_millisecond_are_not_lost_between_two_looks() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Admin, json!({"command": "true"})).await;
    let token = token(&link(&app, Role::Admin, &id).await);
    let look = async |since: Option<&str>| {
        let since = since.map_or(String::new(), |since| format!("&since={since}"));
        app.get(&format!("/api/v1/logs/{id}?token={token}{since}")).send().await.json()
    };
    app.clock.advance(10);
    let mut played = app.play().await;
    played.write(&["a"]).await;
    let early = look(None).await;
    assert!(!early["logs"].as_str().expect("a text").contains("a\n"), "its millisecond may not be over: {early}");
    played.write(&["b"]).await;
    app.clock.advance(2_000);
    let late = look(early["last_timestamp"].as_str()).await;
    assert_eq!(late["logs"], "a\nb\n");
    assert_eq!(late["completed"], false);
}

#[tokio::test]
async fn security_05_a_link_without_a_key_does_not_come_back_with_its_e_mail() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Admin, json!({"command": "true"})).await;
    let owner = Connection { peer: Peer::Unix { uid: 1000, owner: true }, tls: false };
    let path = format!("/api/v1/logs/{id}");
    let local = async || token(&app.post(&format!("/api/v1/executions/{id}/link")).connection(owner).send().await.json());
    let invite = async |email: String, number: u8| {
        let text = key_text(&[number; 32]);
        let key = NewKey { hash: key_hash(&text), prefix: key_prefix(&text), name: None, expires_at: None };
        app.change(Change::InviteUser(Invitation { email, role: Role::Admin, by: InvitedBy::Key(key) })).await;
    };
    app.clock.advance(10);
    let before = local().await;
    assert_eq!(status(&app, &path, &before).await, 200);
    invite("boss@example.com".into(), 40).await;
    app.revoke(Role::Admin).await;
    assert_eq!(status(&app, &path, &before).await, 401, "its maker was revoked");
    app.clock.advance(10);
    invite(email_of(Role::Admin), 41).await;
    assert_eq!(status(&app, &path, &before).await, 401, "whoever has the e-mail now did not make it");
    app.change(Change::RevokeUser("boss@example.com".into())).await;
    assert_eq!(status(&app, &path, &before).await, 401, "also as the server's own user");
    assert_eq!(status(&app, &path, &local().await).await, 200);
    invite("boss@example.com".into(), 42).await;
    let after = local().await;
    app.change(Change::SetRole(email_of(Role::Admin), Role::Operator)).await;
    assert_eq!(status(&app, &path, &after).await, 401, "it was made as the server's own user, who is another now");
}
