//! Who may do what: every role on every route, what is not yours, and every way to show or not show a credential.

use http::Method;
use runvoy_model::role::{Action, Reach, Role, reach};
use runvoy_server::{App, Connection, Peer, Rule};
use serde_json::json;

use crate::app::{TestApp, email_of, key_of};

const OWNER: Connection = Connection { peer: Peer::Unix { uid: 1000, owner: true }, tls: false };
const STRANGER: Connection = Connection { peer: Peer::Unix { uid: 1001, owner: false }, tls: false };

/// The path of a row with something in the place of its parameters that there is not.
fn path_of(path: &str) -> String {
    let filled = [
        ("{id}", "00000000000000000000000000000000"),
        ("{*name}", "nobody/holds/it"),
        ("{name}", "nobody-holds-it"),
        ("{*image}", "nobody/made:it"),
        ("{email}", "nobody@example.com"),
        ("{prefix}", "rv_nobodyss"),
        ("{token}", "nobody-was-ever-given-this-token"),
        ("{request_id}", "nobody-asked"),
        ("{task}", "nobody-made-it"),
        ("{job}", "nobody-made-it"),
        ("{asset}", "nobody-made-it"),
    ];
    let path = filled.iter().fold(path.to_owned(), |path, (parameter, value)| path.replace(parameter, value));
    assert!(!path.contains('{'), "{path}: say what stands for its parameter");
    path
}

#[tokio::test]
async fn security_06_every_role_on_every_route_gets_exactly_what_the_table_says() {
    let app = TestApp::new().await;
    app.with_worker().await;
    let table = App::table();
    assert!(table.len() >= 25, "the whole table is tried: {}", table.len());
    for row in table {
        let path = path_of(row.path);
        let without = app.ask(row.method.clone(), &path).send().await;
        if row.rule == Rule::Anyone {
            // A token is its own credential, and this one is nobody's. Files of the page are there only where it was built.
            let may_lack = ["{token}", "{asset}", "/icon.svg"].iter().any(|part| row.path.contains(part));
            let fine = without.status.as_u16() < 400 || (may_lack && without.status.as_u16() == 404);
            assert!(fine, "{} {path}: {}", row.method, without.text());
            continue;
        }
        assert_eq!(without.code(), (401, "UNAUTHORIZED".into()), "{} {path}", row.method);
        for role in Role::ALL {
            let status = app.ask(row.method.clone(), &path).role(role).send().await.status.as_u16();
            // These requests come over TCP, where nobody is the server's own user.
            if reach(role, row.rule.action()) == Reach::None || matches!(row.rule, Rule::Owner(_)) {
                assert_eq!(status, 403, "{role:?} {} {path}", row.method);
            } else {
                assert!(status != 401 && status != 403 && status < 500, "{role:?} {} {path}: {status}", row.method);
            }
        }
    }
}

#[test]
fn security_06_only_these_routes_are_open_to_anyone() {
    let open: Vec<&str> = App::table().into_iter().filter(|row| row.rule.action() == Action::Public).map(|row| row.path).collect();
    let expected = [
        "/api/v1/health",
        "/livez",
        "/readyz",
        "/api/v1/claim/{token}",
        "/api/v1/claim/{token}",
        "/api/v1/openapi.json",
        "/",
        "/logs",
        "/jobs/{job}",
        "/assets/{asset}",
        "/icon.svg",
    ];
    assert_eq!(open, expected);
}

#[tokio::test]
async fn security_07_what_is_not_yours_is_not_found_on_any_route() {
    let app = TestApp::new().await;
    let theirs = app.submit_as(Role::Operator, json!({"command": "echo secret", "lock": "prod"})).await;
    let tasks = json!({"tasks": [{"taskId": "a", "command": "true"}]});
    let job = app.post("/api/v1/jobs").role(Role::Operator).json(&tasks).send().await.json();
    let job = job["jobId"].as_str().expect("an id").to_owned();
    for row in App::table().into_iter().filter(|row| row.path.contains("{id}")) {
        let theirs = if row.path.starts_with("/api/v1/jobs/") { &job } else { &theirs };
        for id in [theirs.as_str(), &theirs[..20], &theirs[20..]] {
            let path = row.path.replace("{id}", id).replace("{task}", "a").replace("/search", "/search?q=x");
            let ask = |path: &str| {
                let ask = app.ask(row.method.clone(), path).role(Role::Developer);
                if row.path.ends_with("/tasks") { ask.json(&tasks) } else { ask }
            };
            let answer = ask(&path).send().await;
            assert_eq!(answer.code(), (404, "NOT_FOUND".into()), "{} {path}", row.method);
            let missing = ask(&path.replace(id, "0192ffffffff")).send().await;
            assert_eq!(missing.text().replace("0192ffffffff", id), answer.text(), "not there and not yours look the same");
        }
    }
    assert_eq!(app.get("/api/v1/executions?limit=0").role(Role::Developer).send().await.json(), json!([]));
    assert_eq!(app.get("/api/v1/executions?user=operator@example.com").role(Role::Developer).send().await.json(), json!([]));
    let mine = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let list = app.get("/api/v1/executions").role(Role::Developer).send().await.json();
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(list[0]["execution_id"], mine);
}

#[tokio::test]
async fn each_wrong_key_has_its_own_answer() {
    let app = TestApp::new().await;
    let code = async |key: &str| app.get("/api/v1/whoami").header("x-api-key", key).send().await.code();
    let good = key_of(Role::Viewer);
    let unknown = runvoy_model::key::key_text(&[0xee; 32]);
    let mut slip = good.clone();
    slip.replace_range(5..6, if &good[5..6] == "x" { "y" } else { "x" });
    assert_eq!(code("nonsense").await, (401, "INVALID_API_KEY".into()));
    assert_eq!(code(&slip).await, (401, "INVALID_API_KEY".into()));
    assert_eq!(code(&unknown).await, (401, "INVALID_API_KEY".into()));
    app.revoke(Role::Viewer).await;
    assert_eq!(code(&good).await, (401, "API_KEY_REVOKED".into()));
    app.store.set_identity_away(true);
    assert_eq!(code(&key_of(Role::Admin)).await, (503, "DATABASE_ERROR".into()));
}

#[tokio::test]
async fn a_key_is_taken_from_either_header() {
    let app = TestApp::new().await;
    let bearer = format!("Bearer {}", key_of(Role::Viewer));
    assert_eq!(app.get("/api/v1/whoami").header("authorization", &bearer).send().await.json()["role"], "viewer");
    assert_eq!(app.get("/api/v1/whoami").header("authorization", "Basic abc").send().await.code(), (401, "INVALID_API_KEY".into()));
}

#[tokio::test]
async fn the_owner_of_the_socket_needs_no_key_and_another_user_does() {
    let app = TestApp::new().await;
    let whoami = app.get("/api/v1/whoami").connection(OWNER).send().await.json();
    assert_eq!(whoami["email"], email_of(Role::Admin));
    assert!(whoami.get("key_prefix").is_none());
    assert_eq!(app.get("/api/v1/whoami").connection(STRANGER).send().await.code(), (401, "UNAUTHORIZED".into()));
    let with_key = app.get("/api/v1/whoami").connection(STRANGER).role(Role::Viewer).send().await;
    assert_eq!(with_key.json()["role"], "viewer");
}

#[tokio::test]
async fn a_ticket_opens_nothing_but_its_stream() {
    let app = TestApp::new().await;
    let body = app.post("/api/v1/run").admin().json(&json!({"command": "true"})).send().await.json();
    let token = body["websocket_url"].as_str().and_then(|url| url.split_once("token=")).expect("a ticket").1.to_owned();
    let id = body["execution_id"].as_str().expect("an id");
    for path in [format!("/api/v1/executions/{id}/logs"), "/api/v1/whoami".into(), "/api/v1/executions".into()] {
        assert_eq!(app.get(&format!("{path}?token={token}")).send().await.code(), (401, "UNAUTHORIZED".into()), "{path}");
        let bearer = format!("Bearer {token}");
        assert_eq!(app.get(&path).header("authorization", &bearer).send().await.code(), (401, "INVALID_API_KEY".into()), "{path}");
    }
}

#[tokio::test]
async fn pages_of_configured_origins_may_call_and_others_may_not() {
    let app = TestApp::with(|_| {}, |config| config.cors_origins = vec!["https://web.example.com".into()]).await;
    let preflight = async |origin: &str| {
        let ask = app.ask(Method::OPTIONS, "/api/v1/run").header("origin", origin).header("access-control-request-method", "POST");
        ask.send().await
    };
    let allowed = preflight("https://web.example.com").await;
    assert_eq!(allowed.status.as_u16(), 204);
    assert_eq!(allowed.header("access-control-allow-origin"), "https://web.example.com");
    for header in ["Content-Type", "X-API-Key", "Authorization", "Idempotency-Key", "X-Request-ID"] {
        assert!(allowed.header("access-control-allow-headers").contains(header), "{header}");
    }
    let refused = preflight("https://evil.example.com").await;
    assert!(refused.headers.keys().all(|name| !name.as_str().starts_with("access-control")), "{:?}", refused.headers);
    let answer = app.get("/api/v1/health").header("origin", "https://web.example.com").send().await;
    assert_eq!(answer.header("access-control-allow-origin"), "https://web.example.com");
    assert_eq!(answer.header("vary"), "Origin");
    let answer = app.get("/api/v1/health").header("origin", "https://evil.example.com").send().await;
    assert_eq!(answer.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn a_backup_that_fails_says_whether_its_destination_is_at_fault() {
    let app = TestApp::new().await;
    let backup = async |to: &str| app.post("/api/v1/backup").connection(OWNER).json(&json!({ "destination": to })).send().await;
    assert_eq!(backup("/new").await.json(), json!({"destination": "/new"}));
    let taken = backup("/taken").await;
    assert_eq!(taken.code(), (400, "INVALID_REQUEST".into()));
    assert_eq!(taken.json()["error"], "destination: exists already");
    let failed = backup("/full").await;
    assert_eq!(failed.code(), (503, "SERVICE_UNAVAILABLE".into()));
    assert_eq!(failed.json()["details"], "cannot copy the store");
    let elsewhere = backup("/cloud").await;
    assert_eq!(elsewhere.code(), (409, "CONFLICT".into()));
    assert_eq!(elsewhere.json()["details"], "the store is on AWS");
}
