//! Values of secrets: how they come in, and that they go nowhere else.

use serde_json::{Value, json};

use crate::fake::{Fake, Reply, Seen};
use crate::user::{User, answer, body, text, with_stdin};

const AT: &str = "2026-01-03T14:22:19.000Z";

fn secret(value: Option<&str>) -> Value {
    let mut secret = json!({"name": "github", "key_name": "GITHUB_TOKEN", "created_by": "ana@example.com", "owned_by": ["ana@example.com"],
        "created_at": AT, "updated_at": AT, "updated_by": "ana@example.com"});
    if let Some(value) = value {
        secret["value"] = value.into();
    }
    secret
}

fn keeping(seen: &Seen) -> Reply {
    match (seen.method.as_str(), seen.path().trim_start_matches("/api/v1/")) {
        ("GET", "secrets") => Reply::json(200, json!({"secrets": [secret(Some("hunter9"))], "total": 1})),
        ("GET", "secrets/github") => Reply::json(200, json!({"secret": secret(Some("hunter9"))})),
        ("GET", "secrets/theirs") => Reply::json(200, json!({"secret": secret(None)})),
        ("POST", "secrets") => Reply::json(201, json!({"message": "saved"})),
        ("PUT", "secrets/github") => Reply::json(200, json!({"message": "saved"})),
        ("POST", "sealing-key/rotate") => {
            Reply::json(200, json!({"key_id": "k2", "resealed": 3, "message": "3 secrets are sealed with key k2"}))
        }
        _ => answer(seen, 0),
    }
}

#[tokio::test]
async fn a_value_comes_from_stdin_or_a_file_and_is_told_to_nobody() {
    let fake = Fake::new(keeping);
    let user = User::of(&fake).await;
    let made =
        with_stdin(user.command(&["-vv", "secrets", "create", "github", "GITHUB_TOKEN", "--use-by", "group:ops"]), "hunter9\n").await;
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert!(!text(&made.stderr).contains("hunter9") && made.stdout.is_empty(), "{}", text(&made.stderr));
    assert_eq!(body(&fake.seen()[0]), json!({"name": "github", "key_name": "GITHUB_TOKEN", "value": "hunter9", "use_by": ["group:ops"]}));
    let pem = "-----BEGIN\nhunter9\n-----END\n";
    std::fs::write(user.home.path().join("key.pem"), pem).expect("written");
    assert!(user.run(&["secrets", "create", "tls", "TLS_KEY", "--value-file", "key.pem"]).await.status.success());
    assert_eq!(body(&fake.seen()[1])["value"], pem, "several lines stay as they are");
    for (words, code) in [
        (&["secrets", "create", "x", "X"][..], 2),
        (&["secrets", "create", "x", "X", "--value", "hunter9"], 2),
        (&["secrets", "create", "x", "X", "hunter9"], 2),
        (&["secrets", "create", "x", "X", "--value-file", "missing"], 2),
    ] {
        assert_eq!(user.run(words).await.status.code(), Some(code), "{words:?}");
    }
    assert_eq!(fake.seen().len(), 2, "nothing else was sent");
}

#[tokio::test]
async fn a_value_is_shown_only_to_whoever_asks_for_it_and_may() {
    let user = User::of(&Fake::new(keeping)).await;
    for words in
        [&["secrets", "get", "github"][..], &["secrets", "get", "github", "--json"], &["secrets", "list"], &["secrets", "list", "--json"]]
    {
        let shown = user.run(words).await;
        assert!(shown.status.success() && text(&shown.stdout).contains("GITHUB_TOKEN"), "{words:?}: {}", text(&shown.stdout));
        assert!(!text(&shown.stdout).contains("hunter9"), "{words:?}: {}", text(&shown.stdout));
    }
    assert!(text(&user.run(&["secrets", "get", "github"]).await.stdout).contains("--show-value"));
    assert_eq!(text(&user.run(&["secrets", "get", "github", "--show-value"]).await.stdout), "hunter9\n");
    let json: Value =
        serde_json::from_slice(&user.run(&["secrets", "get", "github", "--show-value", "--json"]).await.stdout).expect("JSON");
    assert_eq!(json["value"], "hunter9");
    let theirs = user.run(&["secrets", "get", "theirs", "--show-value"]).await;
    assert!(theirs.status.code() == Some(1) && text(&theirs.stderr).contains("--secret theirs"), "{}", text(&theirs.stderr));
}

#[tokio::test]
async fn an_update_changes_what_is_named_and_otherwise_the_value() {
    let fake = Fake::new(keeping);
    let user = User::of(&fake).await;
    let put = || fake.seen().into_iter().rfind(|seen| seen.method == "PUT").map(|seen| body(&seen));
    assert!(with_stdin(user.command(&["secrets", "update", "github"]), "hunter10").await.status.success());
    assert_eq!(put(), Some(json!({"value": "hunter10"})));
    assert!(user.run(&["secrets", "update", "github", "--description", "for CI"]).await.status.success());
    assert_eq!(put(), Some(json!({"description": "for CI"})), "the value stays");
    assert!(
        with_stdin(user.command(&["secrets", "update", "github", "--value-file", "-", "--use-by-nobody"]), "hunter11")
            .await
            .status
            .success()
    );
    assert_eq!(put(), Some(json!({"value": "hunter11", "use_by": []})));
    let rotated = user.run(&["secrets", "rotate-key"]).await;
    assert_eq!(text(&rotated.stderr), "3 secrets are sealed with key k2\n");
}
