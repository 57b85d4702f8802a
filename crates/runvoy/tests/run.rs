//! `runvoy run` and its kin as a person types them.

mod harness;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use self::harness::{Server, Setup, binary, eventually, process};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The binary in a home of its own with nothing configured.
fn alone(home: &std::path::Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Ends the local server that a test left behind, if there is one.
fn end_local_server(home: &std::path::Path) {
    let lock = home.join(".runvoy/data/lock");
    if let Some(pid) = std::fs::read_to_string(lock).ok().and_then(|pid| pid.trim().parse().ok()) {
        process::signal(pid, libc::SIGTERM);
        eventually("the local server is gone", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn the_first_minute_needs_nothing_set_up() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = alone(home.path(), &["run", "echo hello"]).output().expect("it runs");
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("hello\n", Some(0)), "{}", text(&output.stderr));
    let listed = alone(home.path(), &["list", "--json"]).output().expect("it runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed[0]["command"], "echo hello");
    end_local_server(home.path());
}

#[test]
fn a_command_on_a_terminal_writes_one_stream_and_its_exit_code_comes_back() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let script = "test -t 0 && test -t 1 && test -t 2 && echo $TERM; cat; echo err >&2; stty size; exit 3";
    let output = alone(home.path(), &["run", "--tty", script]).output().expect("it runs");
    let expected = "xterm-256color\nerr\n24 80\n";
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), (expected, Some(3)), "{}", text(&output.stderr));
    end_local_server(home.path());
}

#[test]
fn two_first_runs_at_once_share_one_server() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let children: Vec<_> = (0..6)
        .map(|n| alone(home.path(), &["run", &format!("echo {n}")]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"))
        .collect();
    for (n, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(text(&output.stdout), format!("{n}\n"), "{}", text(&output.stderr));
    }
    end_local_server(home.path());
}

#[test]
fn a_detached_run_outlives_its_client_and_the_server_leaves_after_it() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = alone(home.path(), &["run", "--detach", "sleep 2; echo done"]).output().expect("it runs");
    let id = text(&output.stdout).trim().to_owned();
    assert_eq!(id.len(), 32, "only the id goes to stdout: {id:?} {}", text(&output.stderr));
    let waited = alone(home.path(), &["wait", &id]).output().expect("it runs");
    assert_eq!(waited.status.code(), Some(0), "{}", text(&waited.stderr));
    let logs = alone(home.path(), &["logs", &id]).output().expect("it runs");
    assert_eq!(text(&logs.stdout), "done\n");
    let socket = home.path().join(".runvoy/data/sock");
    eventually("the server has left by itself", || !socket.exists());
}

#[test]
fn the_remote_exit_code_comes_back_unchanged() {
    let server = Server::start();
    for (command, code) in
        [("exit 0", 0), ("exit 1", 1), ("exit 42", 42), ("kill -9 $$", 137), ("kill -15 $$", 143), ("nosuchprogram", 127)]
    {
        let output = server.cli(&["run", command]);
        assert_eq!(output.status.code(), Some(code), "{command}: {}", text(&output.stderr));
    }
    // A program has the codes that a shell gives.
    for (words, code) in [(&["nosuchprogram", "a"][..], 127), (&["/etc/passwd", "a"], 126)] {
        let output = server.cli(&[&["run", "--"][..], words].concat());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("start_failed"), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn output_is_the_commands_own_bytes() {
    let server = Server::start();
    let file = server.data.join("bytes");
    let bytes: Vec<u8> = (0..200_000u32).map(|n| u8::try_from((n.wrapping_mul(n) / 7) % 256).expect("a byte")).collect();
    std::fs::write(&file, &bytes).expect("written");
    let output = server.cli(&["run", "--", "cat", file.to_str().expect("a path")]);
    assert!(output.stdout == bytes, "other bytes came back: {} of {}", output.stdout.len(), bytes.len());
    let output = server.cli(&["run", "echo out; echo err >&2"]);
    assert_eq!(text(&output.stdout), "out\n");
    assert!(text(&output.stderr).contains("err\n"), "{}", text(&output.stderr));
    let quiet = server.cli(&["-qq", "run", "echo out"]);
    assert_eq!((text(&quiet.stdout).as_str(), quiet.stderr.len()), ("out\n", 0), "{}", text(&quiet.stderr));
}

#[test]
fn arguments_after_two_dashes_are_those_very_arguments() {
    let server = Server::start();
    let output = server.cli(&["run", "-q", "echo", "kubectl", "delete", "pods", "-l", "app=web", "-v"]);
    assert_eq!(text(&output.stdout), "kubectl delete pods -l app=web -v\n", "its options are its own");
    let output = server.cli(&["run", "--", "printf", "[%s]", "a b", "$HOME", "*", "'q'", ";", ""]);
    assert_eq!(text(&output.stdout), "[a b][$HOME][*]['q'][;][]");
}

#[test]
fn a_held_lock_is_refused_with_its_holder_and_a_wait_gets_it_in_turn() {
    let server = Server::start();
    let first = server.run_with(json!({"command": "sleep 2", "lock": "prod"}));
    let refused = server.cli(&["run", "--lock", "prod", "echo no"]);
    assert_eq!(refused.status.code(), Some(125));
    let said = text(&refused.stderr);
    assert!(said.contains("admin@localhost") && said.contains(&first), "{said}");
    let waited = server.cli(&["run", "--lock", "prod", "--wait", "1m", "echo \"fence $RUNVOY_LOCK_FENCE of $RUNVOY_LOCK\""]);
    assert_eq!(text(&waited.stdout), "fence 2 of prod\n", "{}", text(&waited.stderr));
    assert_eq!(server.get("/api/v1/locks").json(), json!([]));
}

#[test]
fn a_timeout_ends_the_command_with_124() {
    let server = Setup::default().arg("--grace").arg("300ms").start();
    let output = server.cli(&["run", "--timeout", "1s", "trap '' TERM; echo begun; while :; do sleep 1; done"]);
    assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "begun\n");
    assert!(text(&output.stderr).contains("timeout"), "{}", text(&output.stderr));
}

#[test]
fn retries_are_further_attempts_and_only_for_what_may_pass() {
    let server = Server::start();
    let marks = server.data.join("marks");
    let flaky = format!("echo x >> {0}; [ $(wc -l < {0}) -ge 3 ]", marks.display());
    let output = server.cli(&["run", "--retries", "3", &flaky]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&marks).expect("marks"), "x\nx\nx\n");
    let id = server.run_with(json!({"command": "exit 64", "retries": 5}));
    let status = server.wait(&id);
    assert_eq!((&status["attempt"], &status["exit_code"]), (&json!(1), &json!(64)), "usage errors are not retried");
}

#[test]
fn an_interrupt_detaches_and_says_how_to_go_on() {
    let server = Server::start();
    let mut child = server.cli_command(&["run", "sleep 3; echo late"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    let id = loop {
        let listed = server.get("/api/v1/executions?status=RUNNING").json();
        if let Some(id) = listed[0]["execution_id"].as_str() {
            break id.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    process::signal(child.id(), libc::SIGINT);
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(said.contains("runvoy logs -f") && said.contains("runvoy kill") && said.contains(&id), "{said}");
    assert_eq!(server.wait(&id)["status"], "SUCCEEDED", "an interrupt detaches, it does not kill");
}

#[test]
fn an_interrupt_takes_the_spinner_away_before_it_speaks() {
    let server = Server::start();
    let inner = server.cli_command(&[]);
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("{} run 'sleep 60'", binary()), "/dev/null"]).env_clear().current_dir(&server.data);
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    while !text(&shown).contains("running") {
        let read = stdout.read(&mut piece).expect("open");
        assert_ne!(read, 0, "{}", text(&shown));
        shown.extend_from_slice(&piece[..read]);
    }
    stdin.write_all(b"\x03").expect("it listens");
    stdout.read_to_end(&mut shown).expect("open");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let shown = text(&shown);
    let (before, _) = shown.split_once("Detached").expect("it says so");
    assert!(before.rsplit("\x1b[K").next().is_some_and(|line| !line.contains("running")), "{shown:?}");
}

#[test]
fn a_kill_is_told_everywhere() {
    let server = Server::start();
    let id = server.run("sleep 1000");
    server.wait_until(&id, "RUNNING");
    let killed = server.cli(&["kill", &id]);
    assert_eq!(killed.status.code(), Some(0), "{}", text(&killed.stderr));
    let status = server.wait(&id);
    assert_eq!((&status["status"], &status["exit_code"]), (&json!("STOPPED"), &json!(130)), "{status}");
    assert!(status["end_reason"]["message"].as_str().expect("text").contains("admin@localhost"), "{status}");
    let again = server.http().post(&format!("/api/v1/executions/{id}/kill"), &json!({}));
    assert_eq!(again.status, 400);
    assert_eq!(server.http().delete(&format!("/api/v1/executions/{id}")).status, 204);
    let waited = server.cli(&["wait", &id]);
    assert_eq!(waited.status.code(), Some(130));
}

#[test]
fn a_pending_execution_is_stopped_at_once() {
    let server = Setup::default().arg("--concurrency").arg("1").start();
    let runs = server.run("sleep 1000");
    let waits = server.run("echo never");
    let answer = server.http().delete(&format!("/api/v1/executions/{waits}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(server.status(&waits)["status"], "STOPPED");
    server.http().post(&format!("/api/v1/executions/{runs}/kill?force=true"), &json!({}));
    assert_eq!(server.wait(&runs)["status"], "STOPPED");
    assert!(server.raw(&waits).is_empty());
}

#[test]
fn ids_may_be_shortened_at_either_end() {
    let server = Server::start();
    let id = server.run("echo short");
    server.wait(&id);
    for part in [&id[..30], &id[20..]] {
        let output = server.cli(&["logs", part]);
        assert_eq!(text(&output.stdout), "short\n", "{}", text(&output.stderr));
    }
    assert_eq!(server.cli(&["status", "ffffffffff"]).status.code(), Some(1));
}

#[test]
fn a_server_that_is_away_is_told_apart_from_a_command_that_fails() {
    let mut server = Server::start();
    let (run, list) = (server.cli_command(&["run", "true"]), server.cli_command(&["list"]));
    let no_key = {
        let mut command = server.cli_command(&["list"]);
        command.env_remove("RUNVOY_API_KEY");
        command
    };
    let code = |mut command: Command| command.output().expect("it runs").status.code();
    assert_eq!(code(no_key), Some(4));
    server.stop();
    assert_eq!(code(run), Some(125));
    assert_eq!(code(list), Some(1));
}
