//! A person at a terminal: they are asked before what cannot be undone, and for values of secrets.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use serde_json::json;

use crate::fake::{Fake, Reply};
use crate::user::{User, answer, body, text, with_stdin};

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
    assert!(
        text(&no.stdout).contains("end all rights of bo@example.com and leave their open executions running? [y/N]"),
        "{}",
        text(&no.stdout)
    );
    let yes = typed(&user, "users revoke bo@example.com --kill", "y\n").await;
    assert_eq!((yes.status.code(), fake.seen().len()), (Some(0), 1), "{}", text(&yes.stdout));
    assert!(text(&yes.stdout).contains("and kill their open executions?"), "{}", text(&yes.stdout));
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
