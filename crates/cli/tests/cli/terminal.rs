//! A person at a terminal: they are asked before what cannot be undone, and for values of secrets.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use serde_json::json;

use crate::fake::{Fake, Reply};
use crate::user::{ID, User, answer, body, text, with_stdin};

/// Runs a command on a terminal of its own, with this typed.
async fn typed(user: &User, words: &str, input: &str) -> Output {
    let inner = user.command(&[]);
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("{} {words}", inner.get_program().display()), "/dev/null"]);
    command.current_dir(user.home.path()).env_clear().env("TERM", "dumb").env("SHELL", "/bin/sh").env("PATH", "/usr/bin:/bin");
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    with_stdin(command, input).await
}

fn server() -> Fake {
    Fake::new(|seen| match seen.path() {
        "/api/v1/users/revoke" => Reply::json(200, json!({"message": "revoked", "email": "bo@example.com"})),
        "/api/v1/secrets" => Reply::json(201, json!({"message": "saved"})),
        _ => answer(seen, 0),
    })
}

#[tokio::test]
async fn what_cannot_be_undone_is_asked_for_and_no_is_no() {
    let fake = server();
    let user = User::of(&fake).await;
    let no = typed(&user, "users revoke bo@example.com", "n\n").await;
    assert_eq!((no.status.code(), fake.seen().len()), (Some(2), 0), "{}", text(&no.stdout));
    assert!(text(&no.stdout).contains("Revoke bo@example.com and leave their executions running? [y/N]"), "{}", text(&no.stdout));
    let yes = typed(&user, "users revoke bo@example.com --kill", "y\n").await;
    assert_eq!((yes.status.code(), fake.seen().len()), (Some(0), 1), "{}", text(&yes.stdout));
    assert!(text(&yes.stdout).contains("and kill their executions?"), "{}", text(&yes.stdout));
    let never = typed(&user, "users revoke bo@example.com --no-input", "y\n").await;
    assert_eq!((never.status.code(), fake.seen().len()), (Some(2), 1), "{}", text(&never.stdout));
}

#[tokio::test]
async fn a_value_is_asked_for_and_not_looked_for_on_stdin() {
    let fake = server();
    let user = User::of(&fake).await;
    let asked = typed(&user, "secrets create github GITHUB_TOKEN", "hunter9\n").await;
    assert!(text(&asked.stdout).contains("the value (hidden):"), "{}", text(&asked.stdout));
    assert_eq!(asked.status.code(), Some(0), "{}", text(&asked.stdout));
    assert_eq!(body(&fake.seen()[0])["value"], "hunter9");
    let never = typed(&user, "secrets create github GITHUB_TOKEN --no-input", "hunter9\n").await;
    assert_eq!((never.status.code(), fake.seen().len()), (Some(2), 1), "{}", text(&never.stdout));
}

fn key(prefix: &str) -> serde_json::Value {
    json!({"prefix": prefix, "created_at": "2026-01-03T14:22:19Z", "revoked": false})
}

/// One rule: at a terminal they ask unless told `--yes`, and without one they go ahead.
#[tokio::test]
async fn kill_cancel_and_rotate_ask_alike() {
    let fake = Fake::new(|seen| match (seen.method.as_str(), seen.path()) {
        ("DELETE", _) => Reply::json(200, json!({"execution_id": ID, "message": "asked"})),
        (_, path) if path.ends_with("/cancel") => Reply::json(200, json!({"jobId": ID, "status": "CANCELLED", "message": "cancelled"})),
        ("POST", _) => Reply::json(201, json!({"api_key": "rv_new", "key": key("rv_new"), "message": "made"})),
        ("GET", path) if path.ends_with("/keys") => Reply::json(200, json!({"keys": [key("rv_other1")]})),
        _ => answer(seen, 0),
    });
    let user = User::of(&fake).await;
    let changed = || fake.seen().iter().filter(|seen| seen.method != "GET").count();
    for words in [format!("kill {ID}"), format!("job cancel {ID}"), "keys rotate rv_other1".to_owned()] {
        let before = changed();
        let no = typed(&user, &words, "n\n").await;
        assert_eq!((no.status.code(), changed() - before), (Some(2), 0), "{words}: {}", text(&no.stdout));
        assert!(text(&no.stdout).contains("? [y/N]"), "{words}: {}", text(&no.stdout));
        let never = typed(&user, &format!("{words} --no-input"), "\n").await;
        assert_eq!((never.status.code(), changed() - before), (Some(2), 0), "{words}: {}", text(&never.stdout));
        let yes = typed(&user, &format!("{words} --yes"), "\n").await;
        assert_eq!(changed() - before, 1, "{words}: {}", text(&yes.stdout));
        let script = user.run(&words.split(' ').collect::<Vec<_>>()).await;
        assert_eq!(changed() - before, 2, "{words}: {}", text(&script.stderr));
    }
}

#[tokio::test]
async fn a_profile_that_asks_has_its_name_typed_before_anything_that_changes() {
    let fake = Fake::new(crate::user::endless);
    let user = User::of(&fake).await;
    let endpoint = user.endpoint.clone();
    let configure = user.command(&["configure", "--profile", "prod", "--confirm", "--endpoint", &endpoint, "--api-key-stdin"]);
    let configured = with_stdin(configure, "rv_hunter2\n").await;
    assert_eq!(configured.status.code(), Some(0), "{}", text(&configured.stderr));
    let changed = || fake.seen().iter().filter(|seen| seen.method == "DELETE").count();
    let kill = |more: &[&'static str]| -> Vec<&'static str> { [&["--profile", "prod", "kill", "--yes", ID][..], more].concat() };
    let refused = user.run(&kill(&[])).await;
    assert_eq!((refused.status.code(), changed()), (Some(2), 0), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--confirm prod"), "{}", text(&refused.stderr));
    let direct = user.run(&["kill", "--endpoint", &endpoint, ID, "--yes"]).await;
    assert!(text(&direct.stderr).contains("--confirm prod"), "the address alone goes round nothing: {}", text(&direct.stderr));
    let other = user.run(&kill(&["--confirm", "test"])).await;
    assert_eq!((other.status.code(), changed()), (Some(2), 0), "{}", text(&other.stderr));
    let given = user.run(&kill(&["--confirm", "prod"])).await;
    assert_eq!((given.status.code(), changed()), (Some(0), 1), "{}", text(&given.stderr));
    let line = format!("--profile prod kill --yes {ID}");
    let wrong = typed(&user, &line, "y\n").await;
    assert_eq!((wrong.status.code(), changed()), (Some(2), 1), "{}", text(&wrong.stdout));
    let right = typed(&user, &line, "prod\n").await;
    assert_eq!((right.status.code(), changed()), (Some(0), 2), "{}", text(&right.stdout));
    let read = user.run(&["--profile", "prod", "status", ID]).await;
    assert_eq!(read.status.code(), Some(0), "reading asks nothing: {}", text(&read.stderr));
    let direct = user.run(&["kill", "--confirm", "prod", ID]).await;
    assert_eq!((direct.status.code(), changed()), (Some(0), 3), "its address without it: {}", text(&direct.stderr));
    let elsewhere = user.run(&["kill", "--endpoint", "http://127.0.0.1:9", "--confirm", "prod", ID]).await;
    assert_eq!((elsewhere.status.code(), changed()), (Some(2), 3), "another server: {}", text(&elsewhere.stderr));
}
