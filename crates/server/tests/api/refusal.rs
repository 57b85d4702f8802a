//! Every error code, from a request that earns it; and that the one who is refused learns why, and nothing else.

use http::Method;
use runvoy_model::role::Role;
use runvoy_wire::Code;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, Trouble};

async fn run(app: &TestApp, body: &Value) -> Answer {
    app.post("/api/v1/run").admin().json(body).send().await
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let app = TestApp::new().await;
    for (body, field) in [
        (json!({"command": ""}), "command"),
        (json!({"command": "true", "timeout": 0}), "timeout"),
        (json!({"command": "true", "timeout": -1}), "timeout"),
        (json!({"command": "true", "timeout": u64::MAX}), "timeout"),
        (json!({"command": "true", "priority": 300}), "priority"),
        (json!({"command": "true", "env": {"A": 1}}), "env.A"),
        (json!({"command": "true", "env": {"1A": "x"}}), "env.1A"),
        (json!({"command": "true", "lock": "a b"}), "lock"),
        (json!({"command": "true", "retries": 1.5}), "retries"),
        (json!({"command": "true", "image": "ubuntu"}), "image"),
        (json!({"command": "true", "git_ref": "main"}), "git_ref"),
        (json!({"command": "true", "git_path": "infra"}), "git_path"),
        (json!({"command": "true", "git_token": "deploy"}), "git_token"),
        (json!({"command": 7}), "command"),
        (json!({}), "command"),
    ] {
        let answer = run(&app, &body).await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{body}");
        assert!(answer.json()["error"].as_str().expect("text").contains(field), "{body}: {}", answer.text());
    }
    for (query, field) in [
        ("limit=x", "limit"),
        ("status=RUNNING,ASLEEP", "status"),
        ("since=yesterday", "since"),
        ("lock=a%20b", "lock"),
        ("cursor=zzz", "cursor"),
        ("limit=1&limit=2", "limit"),
    ] {
        let answer = app.get(&format!("/api/v1/executions?{query}")).admin().send().await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{query}");
        assert!(answer.json()["error"].as_str().expect("text").starts_with(field), "{query}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_before_anything_happens() {
    let app = TestApp::new().await;
    let post = |content_type: &'static str, body: &'static str| app.post("/api/v1/run").admin().text(content_type, body);
    for (content_type, body) in [
        ("application/json", "{\"command\":"),
        ("application/json", "\u{feff}"),
        ("application/json", "[]"),
        ("text/plain", "{\"command\":\"true\"}"),
        ("application/x-www-form-urlencoded", "command=true"),
        ("application/json", ""),
    ] {
        assert_eq!(post(content_type, body).send().await.code(), (400, "INVALID_REQUEST".into()), "{content_type} {body}");
    }
    assert_eq!(app.get("/api/v1/executions").admin().send().await.json(), json!([]));
    let good = post("application/json; charset=utf-8", "{\"command\":\"true\"}").send().await;
    assert_eq!(good.status.as_u16(), 202);
}

#[tokio::test]
async fn a_large_body_is_refused_with_and_without_its_length() {
    let app = TestApp::new().await;
    let large = json!({"command": "true", "labels": {"a": "x".repeat(1 << 20)}}).to_string();
    let declared =
        app.post("/api/v1/run").admin().header("content-length", &large.len().to_string()).text("application/json", large.clone());
    assert_eq!(declared.send().await.code(), (413, "PAYLOAD_TOO_LARGE".into()));
    let streamed =
        futures_util::stream::iter(large.into_bytes().chunks(1000).map(|c| Ok::<_, std::io::Error>(c.to_vec())).collect::<Vec<_>>());
    let body = axum::body::Body::from_stream(streamed);
    let undeclared = app.post("/api/v1/run").admin().text("application/json", body);
    assert_eq!(undeclared.send().await.code(), (413, "PAYLOAD_TOO_LARGE".into()));
}

#[tokio::test]
async fn routes_and_methods_that_there_are_not_have_the_error_body_too() {
    let app = TestApp::new().await;
    for path in ["/nowhere", "/api/v1", "/api/v2/health", "/api/v1/executions/x/y/z", "/api/v1/locks/"] {
        let method = if path.ends_with("locks/") { Method::DELETE } else { Method::GET };
        let expected = if path.ends_with("locks/") { (405, "METHOD_NOT_ALLOWED".into()) } else { (404, "NOT_FOUND".into()) };
        assert_eq!(app.ask(method, path).admin().send().await.code(), expected, "{path}");
    }
    let answer = app.ask(Method::PUT, "/api/v1/executions").admin().send().await;
    assert_eq!(answer.code(), (405, "METHOD_NOT_ALLOWED".into()));
    assert_eq!(answer.header("allow"), "POST, GET, HEAD, OPTIONS");
    let strange = app.ask(Method::from_bytes(b"FROB").expect("a method"), "/api/v1/run").send().await;
    assert_eq!(strange.code(), (405, "METHOD_NOT_ALLOWED".into()));
}

#[tokio::test]
async fn trouble_with_the_store_is_told_apart_and_says_nothing_of_the_inside() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    for (trouble, status, code) in [
        (Trouble::Away, 503, Code::DatabaseError),
        (Trouble::Full, 503, Code::ServiceUnavailable),
        (Trouble::Damaged, 503, Code::DatabaseError),
        (Trouble::Throttled, 429, Code::RateLimited),
        (Trouble::Faulty, 503, Code::DatabaseError),
    ] {
        app.store.set(Some(trouble));
        let answers = [
            run(&app, &json!({"command": "true"})).await,
            app.get("/api/v1/executions").admin().send().await,
            app.get("/api/v1/executions?limit=0").admin().send().await,
            app.get(&format!("/api/v1/executions/{id}/status")).admin().send().await,
            app.get(&format!("/api/v1/executions/{id}/logs?format=raw")).admin().send().await,
            app.get(&format!("/api/v1/executions/{id}/events")).admin().send().await,
            app.get("/api/v1/locks").admin().send().await,
        ];
        for answer in answers {
            assert_eq!(answer.code(), (status, code.as_str().into()), "{trouble:?}");
            let is_full = trouble == Trouble::Full;
            // A damaged store is not sound again in a second.
            let retry_after = match trouble {
                Trouble::Full => "60",
                Trouble::Damaged => "",
                _ => "1",
            };
            assert_eq!(answer.header("retry-after"), retry_after, "{trouble:?}");
            assert_eq!(answer.text().contains("disk full"), is_full, "{trouble:?}");
            assert!(!answer.text().contains("fire") && !answer.text().contains("torn"), "{}", answer.text());
            assert_eq!(
                answer.text().contains("the database of the server is damaged"),
                matches!(trouble, Trouble::Damaged),
                "{}",
                answer.text()
            );
        }
    }
    app.store.set(None);
    assert_eq!(app.get("/api/v1/executions").admin().send().await.json().as_array().map(Vec::len), Some(1), "nothing was half done");
}

#[tokio::test]
async fn too_much_at_once_is_refused_with_when_to_come_back() {
    let app = TestApp::with(|config| config.max_submits_at_once = 0, |_| {}).await;
    let answer = run(&app, &json!({"command": "true"})).await;
    assert_eq!(answer.code(), (429, "RATE_LIMITED".into()));
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn part_of_an_id_that_fits_several_lists_them() {
    let app = TestApp::new().await;
    let (one, two) = (app.submit("true").await, app.submit("true").await);
    let answer = app.get(&format!("/api/v1/executions/{}", &one[..8])).admin().send().await;
    assert_eq!(answer.code(), (409, "CONFLICT".into()));
    let details = answer.json()["details"].as_str().expect("text").to_owned();
    assert!(details.contains(&one) && details.contains(&two), "{details}");
    let found = app.get(&format!("/api/v1/executions/{}/status", &one[20..])).admin().send().await;
    assert_eq!(found.json()["execution_id"], one);
}

#[tokio::test]
async fn commands_are_refused_once_users_would_share_the_server_s_uid() {
    let app = TestApp::with(|config| config.shares_uid = true, |_| {}).await;
    assert_eq!(run(&app, &json!({"command": "true"})).await.code(), (409, "CONFLICT".into()));
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let app = TestApp::with(|_| {}, |_| {}).await;
    let metrics = std::sync::Arc::new(|| -> String { panic!("a bug") });
    let config = runvoy_server::ServerConfig { metrics_public: true, ..runvoy_server::ServerConfig::new("http://x", [0; 32]) };
    let parts =
        runvoy_server::ServerParts { engine: app.engine.clone(), config, metrics, host: std::sync::Arc::<crate::app::Probes>::default() };
    let request = http::Request::get("/metrics").body(axum::body::Body::empty()).expect("a request");
    let response = runvoy_server::App::new(parts).answer(request).await;
    assert_eq!(response.status().as_u16(), 500);
}

#[tokio::test]
async fn a_request_id_is_taken_or_made_returned_and_stored() {
    let app = TestApp::new().await;
    let mine = app.post("/api/v1/run").admin().header("x-request-id", "mine-1").json(&json!({"command": "true"})).send().await;
    assert_eq!(mine.header("x-request-id"), "mine-1");
    let id = mine.json()["execution_id"].as_str().expect("an id").to_owned();
    let record = app.get(&format!("/api/v1/executions/{id}")).admin().send().await;
    assert_eq!(record.json()["created_by_request_id"], "mine-1");
    assert_eq!(record.header("x-request-id").len(), 32);
    for bad in ["a b", &"x".repeat(129)] {
        let answer = app.get("/api/v1/health").header("x-request-id", bad).send().await;
        assert_eq!(answer.header("x-request-id").len(), 32, "{bad}");
    }
    let refused = app.get("/nowhere").header("x-request-id", "mine-2").send().await;
    assert_eq!(refused.header("x-request-id"), "mine-2");
}

#[tokio::test]
async fn every_answer_has_the_headers_that_keep_browsers_quiet() {
    let app = TestApp::new().await;
    for path in ["/api/v1/health", "/nowhere", "/api/v1/executions", "/assets/none.js", "/livez"] {
        let answer = app.get(path).send().await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(answer.header("x-runvoy-version"), env!("CARGO_PKG_VERSION"), "{path}");
        assert_eq!(answer.header("content-security-policy"), "default-src 'none'; frame-ancestors 'none'", "{path}");
    }
    assert_eq!(app.get("/api/v1/executions").role(Role::Viewer).send().await.header("cache-control"), "no-store");
}
