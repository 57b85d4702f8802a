//! What nobody sane sends: it is refused, and never breaks anything.

use runvoy_model::role::Role;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use serde_json::json;

use crate::app::{TestApp, key_of};

/// Sends bytes as they are and returns the status of the answer; 0 where the connection was just closed.
async fn status_of(address: &str, request: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    // The server may close before it has read everything.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn security_25_no_path_or_id_breaks_the_server_or_leads_out_of_its_place() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let key = key_of(Role::Admin);
    let long = "a".repeat(10_000);
    let longer = "f".repeat(10_000);
    let ids = [
        "..",
        "../..",
        "%2e%2e",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..%5c..%5c",
        "%00",
        "a%00b",
        "%ff%fe",
        "'%20OR%201=1--",
        "\"",
        "{}",
        "*",
        "%25",
        "%",
        "%zz",
        "0192%0d%0aX-Evil:1",
        "~",
        ":",
        ";",
        "",
        "/",
        "//",
        "\u{fc}",
        &long,
        &longer,
    ];
    for id in ids {
        for (method, path) in [
            ("GET", format!("/api/v1/executions/{id}")),
            ("GET", format!("/api/v1/executions/{id}/logs?format=raw")),
            ("GET", format!("/api/v1/executions/{id}/stream?token={id}")),
            ("GET", format!("/api/v1/executions?cursor={id}&user={id}&status={id}")),
            ("GET", format!("/api/v1/executions?user={id}")),
            ("GET", format!("/logs?execution_id={id}")),
            ("POST", format!("/api/v1/executions/{id}/kill")),
            ("DELETE", format!("/api/v1/executions/{id}")),
            ("DELETE", format!("/api/v1/locks/{id}")),
            ("GET", format!("/{id}")),
        ] {
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            let status = status_of(&served.address, request.as_bytes()).await;
            assert!((200..500).contains(&status), "{method} {}: {status}", &path[..path.len().min(80)]);
        }
    }
}

#[tokio::test]
async fn no_request_that_is_none_breaks_the_server() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let huge = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Junk: {}\r\n\r\n", "j".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-Junk: 1\r\n".repeat(5_000));
    for request in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://elsewhere/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"POST /api/v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n\r\n",
        huge.as_bytes(),
        many.as_bytes(),
    ] {
        let mut closing = request.to_vec();
        closing.extend_from_slice(b"\r\n\r\n");
        let status = status_of(&served.address, &closing).await;
        assert!(status < 500, "{status}");
    }
    assert_eq!(status_of(&served.address, b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await, 200);
}

/// What other systems would run, expand or fall over.
const TEXTS: [&str; 12] = [
    "'; DROP TABLE executions; --",
    "\" OR 1=1 --",
    "$.a[*]",
    "${jndi:ldap://x}",
    "<script>",
    "\u{202e}evil",
    "\u{0}",
    "a\nb",
    "%n%s",
    "../../etc/passwd",
    "{{7*7}}",
    "\u{1F4A9}",
];

#[tokio::test]
async fn security_26_strings_that_mean_something_elsewhere_are_data_in_every_field() {
    let app = TestApp::new().await;
    let bodies = |text: &str| {
        vec![
            (
                "POST",
                "/api/v1/run",
                json!({
                    "command": text, "args": [text], "image": text, "env": {text: text}, "lock": text, "queue": text, "labels": {text: text},
                    "secrets": [text], "git_repo": text, "git_ref": text, "git_path": text, "git_token": text,
                }),
                json!({"command": "true"}),
            ),
            (
                "POST",
                "/api/v1/users/create",
                json!({"email": text, "role": text, "api_key": text}),
                json!({"email": "a@x.com", "role": "viewer"}),
            ),
            ("POST", "/api/v1/users/revoke", json!({"email": text}), json!({"email": "nobody@x.com"})),
            ("POST", "/api/v1/groups", json!({"name": text, "members": [text]}), json!({"name": "g", "members": []})),
            (
                "POST",
                "/api/v1/rules",
                json!({
                    "name": text, "effect": text, "users": [text], "groups": [text], "roles": [text], "commands": [text], "images": [text],
                    "locks": [text], "queues": [text], "secrets": [text], "playbooks": [text], "reason": text,
                }),
                json!({"name": "r", "effect": "deny", "users": ["nobody@x.com"], "commands": ["x"]}),
            ),
            (
                "POST",
                "/api/v1/images/register",
                json!({"image": text, "runtime_platform": text, "task_role_name": text, "task_execution_role_name": text}),
                json!({"image": "alpine"}),
            ),
            (
                "POST",
                "/api/v1/secrets",
                json!({"name": text, "key_name": text, "value": text, "description": text, "use_by": [text]}),
                json!({"name": "s", "key_name": "S", "value": "v"}),
            ),
            (
                "PUT",
                "/api/v1/playbooks/p",
                json!({"command": text, "description": text, "args": [text], "image": text, "env": {text: text}, "parameters": {text: {"type": text}}}),
                json!({"command": "true"}),
            ),
        ]
    };
    for text in TEXTS {
        for (method, path, fields, sound) in bodies(text) {
            for (name, value) in fields.as_object().expect("fields") {
                let mut one = sound.clone();
                one[name] = value.clone();
                let method = method.parse().expect("a method");
                let answer = app.ask(method, path).admin().json(&one).send().await;
                assert!(answer.status.as_u16() < 500, "{path} {name} {text:?}: {}", answer.text());
            }
        }
    }
}

#[tokio::test]
async fn security_26_strings_that_mean_something_elsewhere_are_data_in_every_query_and_path() {
    let app = TestApp::new().await;
    for text in TEXTS {
        let coded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in
            ["executions?user=", "executions?lock=", "executions?cursor=", "audit?user=", "audit?action=", "audit?since=", "audit?cursor="]
        {
            let answer = app.get(&format!("/api/v1/{path}{coded}")).admin().send().await;
            assert!(answer.status.as_u16() < 500, "{path} {text:?}: {}", answer.text());
        }
        for path in ["executions", "images", "secrets", "playbooks", "trace", "claim", "logs", "users/a@x.com/keys"] {
            let answer = app.get(&format!("/api/v1/{path}/{coded}")).admin().send().await;
            assert!(answer.status.as_u16() < 500, "{path} {text:?}: {}", answer.text());
        }
        let explain = format!("/api/v1/access/explain?user=admin@example.com&action=run&command={coded}&image={coded}&secret={coded}");
        assert!(app.get(&explain).admin().send().await.status.as_u16() < 500, "{text:?}");
    }
}
