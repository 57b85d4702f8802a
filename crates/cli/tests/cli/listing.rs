//! Lists on a terminal and in pipes: what fits, what is whole, and whether they stopped early.
#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::{Value, json};

use crate::fake::{Fake, Reply, Seen};
use crate::user::{User, answer, status, text, with_stdin};

const REQUEST: &str = "0192ab34c56d7e8f9a0b1c2d3e4f5a6b";

fn execution(number: u32) -> Value {
    let mut execution = status("PENDING", None);
    execution["execution_id"] = format!("0192ab0000007000800000{number:010x}").into();
    execution["created_by"] = "a.long.name@engineering.example.com".into();
    execution["command"] = "make deploy ENV=production REGION=eu-central-1 VERBOSE=1".into();
    execution["completed_at"] = Value::Null;
    execution["waiting_for"] = json!({"code": "lock", "message": "lock prod, held by bo@example.com"});
    execution
}

fn event(request_id: &str) -> Value {
    json!({"event_id": "e", "at": "2026-01-03T14:22:19Z", "user": "ana@example.com", "action": "executions.run",
        "entity": "SECRET:x", "number": 1, "result": "ok", "request_id": request_id})
}

/// A server with 30 executions that gives as many as it is asked for.
fn answers(seen: &Seen) -> Reply {
    match seen.path().trim_start_matches("/api/v1/") {
        "executions" => {
            let count = seen.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(30_u32).min(30);
            Reply::json(200, Value::Array((0..count).map(execution).collect()))
        }
        "audit" => match seen.parameter("text") {
            Some("4f5a6b") => Reply::json(200, json!([event(REQUEST), event(REQUEST)])),
            Some("aaaaaa") => Reply::json(200, json!([event(&format!("{:a>32}", 1)), event(&"a".repeat(32))])),
            _ => Reply::json(200, json!([])),
        },
        path if path.starts_with("trace/") => {
            let logs = json!([{"timestamp": 0, "message": path, "event_id": "e"}]);
            Reply::json(200, json!({"logs": logs, "related_resources": {}}))
        }
        _ => answer(seen, 0),
    }
}

/// What a command prints on a terminal of 80 columns.
async fn on_terminal(user: &User, words: &str) -> String {
    let inner = user.command(&[]);
    let mut command = Command::new("script");
    let line = format!("stty cols 80 rows 24; {} {words}", inner.get_program().display());
    command.args(["-qefc", &line, "/dev/null"]).current_dir(user.home.path()).env_clear();
    command.env("TERM", "dumb").env("SHELL", "/bin/sh").env("PATH", "/usr/bin:/bin");
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    text(&with_stdin(command, "").await.stdout).replace("\r\n", "\n")
}

#[tokio::test]
async fn a_list_fits_a_terminal_and_is_whole_in_a_pipe() {
    let user = User::of(&Fake::new(answers)).await;
    let shown = on_terminal(&user, "list").await;
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains("\n000003  PENDING") && shown.contains("\n  waiting for lock prod, held by"), "{shown}");
    assert!(shown.ends_with("20 shown, there are more; next: --limit N or --all\n"), "{shown}");
    let wide = on_terminal(&user, "list -o wide").await;
    let piped = text(&user.run(&["list"]).await.stdout);
    for whole in [wide, piped] {
        assert!(whole.contains("0192ab00000070008000000000000003") && whole.contains("REGION=eu-central-1"), "{whole}");
    }
}

#[tokio::test]
async fn a_list_that_stops_early_says_so_and_a_whole_one_does_not() {
    let user = User::of(&Fake::new(answers)).await;
    for (words, count, stops) in
        [(&["list", "-n", "5"][..], 5, true), (&["list", "--limit", "30"], 30, false), (&["list", "--all"], 30, false)]
    {
        let listed = user.run(&[words, &["-o", "name"]].concat()).await;
        assert_eq!(text(&listed.stdout).lines().count(), count, "{words:?}");
        assert_eq!(text(&listed.stderr).contains("--all"), stops, "{words:?}: {}", text(&listed.stderr));
    }
    let both = user.run(&["list", "--all", "--limit", "5"]).await;
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
}

#[tokio::test]
async fn a_request_is_named_by_its_last_digits() {
    let user = User::of(&Fake::new(answers)).await;
    let found = user.run(&["trace", "4F5A6B"]).await;
    assert!(text(&found.stdout).contains(&format!("trace/{REQUEST}")), "{}", text(&found.stderr));
    let several = user.run(&["trace", "aaaaaa"]).await;
    let said = text(&several.stderr);
    assert!(several.status.code() == Some(1) && said.contains("matches several requests"), "{said}");
}
