//! Wrong keys and tokens, many of them; and requests that a page of a stranger sends.

use http::Method;
use runvoy_model::key::key_text;
use runvoy_model::role::Role;
use runvoy_server::{App, Connection, Peer, Rule};
use serde_json::json;

use crate::app::{Answer, TestApp, key_of};
use crate::people::invite;
use crate::rpc::signer::Signer;

fn from(ip: &str) -> Connection {
    Connection { peer: Peer::Tcp(format!("{ip}:4711").parse().expect("an address")), tls: false }
}

/// The `n`th of many keys that are nobody's and begin differently.
fn wrong(n: u32) -> String {
    let mut random = [0xcc; 32];
    random[..4].copy_from_slice(&n.to_be_bytes());
    random.rotate_left(2);
    key_text(&random)
}

async fn whoami(app: &TestApp, ip: &str, key: &str) -> Answer {
    app.get("/api/v1/whoami").connection(from(ip)).header("x-api-key", key).send().await
}

#[tokio::test]
async fn security_03_wrong_keys_from_one_address_are_limited_and_others_are_not() {
    let app = TestApp::new().await;
    let (good, unseen) = (key_of(Role::Viewer), key_of(Role::Operator));
    assert_eq!(whoami(&app, "10.0.0.7", &good).await.status.as_u16(), 200);
    let mut refused = 0;
    for n in 0..1_000 {
        let answer = whoami(&app, "10.0.0.1", &wrong(n)).await;
        match answer.status.as_u16() {
            401 => assert!(n < 60, "the limit holds"),
            _ => {
                assert_eq!(answer.code(), (429, "RATE_LIMITED".into()));
                assert!((1..=60).contains(&answer.header("retry-after").parse().expect("seconds")), "{}", answer.header("retry-after"));
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 940);
    assert_eq!(whoami(&app, "10.0.0.1", &good).await.status.as_u16(), 200, "a key that has worked is not refused beside guesses");
    assert_eq!(whoami(&app, "10.0.0.1", &unseen).await.status.as_u16(), 429, "no other key is looked up");
    assert_eq!(whoami(&app, "10.0.0.2", &unseen).await.status.as_u16(), 200, "a valid key from elsewhere works");
    assert_eq!(app.get("/api/v1/health").connection(from("10.0.0.1")).send().await.status.as_u16(), 200, "what needs no key is open");
    app.clock.advance(1_000);
    assert_eq!(whoami(&app, "10.0.0.1", &wrong(1_000)).await.status.as_u16(), 401, "one failure is forgotten a second");
    assert_eq!(whoami(&app, "10.0.0.1", &wrong(1_001)).await.status.as_u16(), 429);
    app.clock.advance(60_000);
    for n in 0..60 {
        assert_eq!(whoami(&app, "10.0.0.1", &wrong(n)).await.status.as_u16(), 401);
    }
}

#[tokio::test]
async fn security_03_a_spoofed_address_changes_nothing_unless_a_trusted_proxy_says_it() {
    let app = TestApp::with(|_| {}, |config| config.trusted_proxies = vec!["10.9.0.0/16".parse().expect("a network")]).await;
    let ask = async |peer: &str, said: String, n: u32| {
        let ask = app.get("/api/v1/whoami").connection(from(peer)).header("x-forwarded-for", &said);
        ask.header("x-real-ip", &said)
            .header("forwarded", &format!("for={said}"))
            .header("x-api-key", &wrong(n))
            .send()
            .await
            .status
            .as_u16()
    };
    for n in 0..61 {
        let expected = if n < 60 { 401 } else { 429 };
        assert_eq!(ask("10.0.0.1", format!("1.2.3.{n}"), n).await, expected, "a stranger's word counts for nothing");
    }
    for n in 100..161 {
        let expected = if n < 160 { 401 } else { 429 };
        assert_eq!(ask("10.9.0.1", format!("6.6.6.{n}, 1.2.3.4"), n).await, expected, "what the client wrote before the proxy neither");
    }
    assert_eq!(ask("10.9.0.1", "1.2.3.5".into(), 200).await, 401, "another client of the same proxy");
    assert_eq!(ask("10.9.0.7", "1.2.3.4".into(), 201).await, 429, "the same client through another proxy");
}

#[tokio::test]
async fn security_03_guesses_at_one_key_from_many_addresses_share_a_bucket_and_its_owner_is_not_locked_out() {
    let app = TestApp::new().await;
    let good = key_of(Role::Viewer);
    assert_eq!(whoami(&app, "10.199.0.1", &good).await.status.as_u16(), 200);
    let prefix = &good[..11];
    // However it is written, it is a guess at the same key.
    let variants =
        [format!("{prefix}wrong"), prefix.to_uppercase(), format!("  {prefix} "), prefix.replace('_', " "), format!("Bearer {prefix}x")];
    for n in 0..80_u32 {
        let ip = format!("10.{}.0.1", n + 1);
        let status = whoami(&app, &ip, &variants[n as usize % variants.len()]).await.status.as_u16();
        assert_eq!(status, if n < 60 { 401 } else { 429 }, "{n}");
    }
    assert_eq!(whoami(&app, "10.200.0.1", &good).await.status.as_u16(), 200, "who has the key is not kept out by who guesses at it");
    assert_eq!(whoami(&app, "10.201.0.1", &wrong(7)).await.status.as_u16(), 401, "another key has its own");
}

#[tokio::test]
async fn security_03_after_a_restart_guesses_at_one_key_do_not_lock_its_owner_out_elsewhere() {
    let app = TestApp::new().await;
    let good = key_of(Role::Viewer);
    let guess = format!("{}wrong", &good[..11]);
    for n in 0..61 {
        assert_eq!(whoami(&app, "10.0.0.1", &guess).await.status.as_u16(), if n < 60 { 401 } else { 429 }, "{n}");
    }
    // No key has worked on this server yet.
    assert_eq!(whoami(&app, "10.0.0.1", &good).await.status.as_u16(), 429, "where the guesses come from no key is looked up");
    assert_eq!(whoami(&app, "10.0.0.2", &good).await.status.as_u16(), 200);
    for n in 0..3 {
        assert_eq!(whoami(&app, "10.0.0.3", &guess).await.status.as_u16(), 429, "{n}");
    }
    assert_eq!(whoami(&app, "10.0.0.3", &key_of(Role::Viewer)).await.status.as_u16(), 200, "it has worked by now");
}

#[tokio::test]
async fn security_03_wrong_tokens_lock_out_no_worker_that_signs_its_own() {
    let app = TestApp::new().await;
    let (one, two, stranger) =
        (Signer::registered(&app, "one", "viewer").await, Signer::registered(&app, "two", "viewer").await, Signer::new());
    let ask = async |ip: &str, token: &str| whoami(&app, ip, token).await.status.as_u16();
    assert_eq!(ask("10.0.0.1", &one.token(600)).await, 200);
    for n in 0..61 {
        assert_eq!(ask("10.0.0.1", &stranger.token(n)).await, if n < 60 { 401 } else { 429 }, "{n}");
    }
    assert_eq!(ask("10.0.0.1", &one.token(601)).await, 200, "a new token of a public key that has worked from there");
    assert_eq!(ask("10.0.0.1", &two.token(600)).await, 429, "one that has not");
    assert_eq!(ask("10.0.0.2", &two.token(600)).await, 200, "from elsewhere it is judged by itself");
    // Whoever knows the public key guesses from many addresses.
    let (signed, _) = two.token(600).rsplit_once('.').map(|(signed, rest)| (signed.to_owned(), rest.to_owned())).expect("three parts");
    for n in 0..80 {
        let ip = format!("10.{}.0.1", n + 1);
        assert_eq!(ask(&ip, &format!("{signed}.AAAA")).await, if n < 60 { 401 } else { 429 }, "{n}");
        if n >= 60 {
            assert_eq!(ask(&ip, &two.token(601)).await, 429, "an address that guesses has one guess");
        }
    }
    for ip in ["10.0.0.2", "10.200.0.1"] {
        assert_eq!(ask(ip, &two.token(602)).await, 200, "{ip}: its owner is not kept out");
    }
}

#[tokio::test]
async fn what_is_no_guess_is_not_counted() {
    let app = TestApp::new().await;
    let revoked = key_of(Role::Viewer);
    app.revoke(Role::Viewer).await;
    let local = Connection { peer: Peer::Unix { uid: 1001, owner: false }, tls: false };
    for n in 0..200 {
        assert_eq!(whoami(&app, "10.0.0.1", &revoked).await.code(), (401, "API_KEY_REVOKED".into()));
        assert_eq!(app.get("/api/v1/whoami").connection(from("10.0.0.1")).send().await.code(), (401, "UNAUTHORIZED".into()));
        let over_socket = app.get("/api/v1/whoami").connection(local).header("x-api-key", &wrong(n)).send().await;
        assert_eq!(over_socket.code(), (401, "INVALID_API_KEY".into()), "the local socket is not limited");
    }
    assert_eq!(whoami(&app, "10.0.0.1", &key_of(Role::Admin)).await.status.as_u16(), 200);
    app.store.set_identity_away(true);
    for _ in 0..100 {
        assert_eq!(whoami(&app, "10.0.0.1", &key_of(Role::Admin)).await.status.as_u16(), 503, "an outage is nobody's fault");
    }
    app.store.set_identity_away(false);
    assert_eq!(whoami(&app, "10.0.0.1", &key_of(Role::Admin)).await.status.as_u16(), 200);
}

#[tokio::test]
async fn security_03_wrong_tickets_and_claims_are_limited_too() {
    let app = TestApp::new().await;
    let token = invite(&app, "ana@example.com", "viewer").await;
    let claim = async |ip: &str, token: &str| app.post(&format!("/api/v1/claim/{token}")).connection(from(ip)).send().await;
    for n in 0..21 {
        let answer = claim("10.0.0.1", &format!("{n:032}")).await;
        let expected = if n < 20 { (404, "NOT_FOUND".to_owned()) } else { (429, "RATE_LIMITED".to_owned()) };
        assert_eq!(answer.code(), expected, "{n}");
    }
    assert_eq!(claim("10.0.0.1", &token).await.status.as_u16(), 429, "not even a good one is looked at");
    assert_eq!(claim("10.0.0.2", &token).await.status.as_u16(), 200);
    for _ in 0..50 {
        assert_eq!(claim("10.0.0.3", &token).await.code(), (409, "CONFLICT".into()), "a token that was good is no guess");
    }
    let id = app.submit("true").await;
    for n in 0..61 {
        let path = format!("/api/v1/executions/{id}/stream?token=guess{n}");
        let status = app.get(&path).connection(from("10.0.0.4")).send().await.status.as_u16();
        assert_eq!(status, if n < 60 { 401 } else { 429 }, "{n}");
    }
}

#[tokio::test]
async fn limits_can_be_set_and_lifted() {
    let app = TestApp::with(|_| {}, |config| (config.failed_keys_per_minute, config.failed_claims_per_minute) = (2, 0)).await;
    for (n, expected) in [(0, 401), (1, 401), (2, 429)] {
        assert_eq!(whoami(&app, "10.0.0.1", &wrong(n)).await.status.as_u16(), expected);
    }
    for n in 0..100 {
        let answer = app.post(&format!("/api/v1/claim/{n:032}")).connection(from("10.0.0.1")).send().await;
        assert_eq!(answer.status.as_u16(), 404);
    }
}

#[tokio::test]
async fn security_21_no_page_of_a_stranger_can_change_anything() {
    let app = TestApp::with(|_| {}, |config| config.cors_origins = vec!["https://web.example.com".into()]).await;
    let changes = App::table().into_iter().filter(|row| row.method != Method::GET);
    for row in changes {
        let path = row.path.replace(['{', '}', '*'], "x");
        for header in [("origin", "https://evil.example.com"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
            // Even with a key, which no page of a stranger has; and in every form that needs no preflight.
            for content_type in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
                let ask = app.ask(row.method.clone(), &path).admin().header(header.0, header.1).text(content_type, "{}");
                assert_eq!(ask.send().await.code(), (403, "FORBIDDEN".into()), "{} {path} {header:?}", row.method);
            }
        }
        let own = app.ask(row.method.clone(), &path).header("origin", "https://web.example.com").send().await.status.as_u16();
        assert!(own != 403 || matches!(row.rule, Rule::Owner(_)), "{} {path}: {own}", row.method);
    }
    let same = app.post("/api/v1/run").admin().header("host", "runvoy.example.com").header("origin", "https://runvoy.example.com");
    assert_eq!(same.json(&json!({"command": "true"})).send().await.status.as_u16(), 202, "its own page");
    assert_eq!(app.get("/api/v1/executions").admin().send().await.json().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn security_21_no_answer_sets_a_cookie_or_lets_a_page_send_one() {
    let app = TestApp::with(|_| {}, |config| config.cors_origins = vec!["*".into()]).await;
    for row in App::table() {
        let path = row.path.replace(['{', '}', '*'], "x");
        for method in [row.method.clone(), Method::OPTIONS] {
            let ask =
                app.ask(method, &path).admin().header("origin", "https://web.example.com").header("access-control-request-method", "POST");
            let answer = ask.header("cookie", "session=1").send().await;
            assert_eq!(answer.header("set-cookie"), "", "{path}");
            assert_eq!(answer.header("access-control-allow-credentials"), "", "{path}");
        }
    }
}

#[tokio::test]
async fn security_03_wrong_keys_are_refused_without_a_lookup() {
    let app = TestApp::new().await;
    let rpc = async |n: u32| {
        let ask = app.post("/job.v1.JobService/ListJobs").connection(from("10.0.0.1")).header("x-api-key", &wrong(n));
        ask.json(&json!({})).send().await.status.as_u16()
    };
    for n in 0..30 {
        assert_eq!(whoami(&app, "10.0.0.1", &wrong(n)).await.status.as_u16(), 401);
        assert_eq!(rpc(100 + n).await, 401);
    }
    // A lookup would fail now, and the answer would be 503.
    app.store.set_identity_away(true);
    for n in 200..260 {
        assert_eq!((whoami(&app, "10.0.0.1", &wrong(n)).await.status.as_u16(), rpc(n).await), (429, 429), "{n}");
    }
}
