//! A user at the command line, and the server they talk to: the stage of the process tests.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use runvoy_wire::Stream;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::fake::{Fake, Log, Reply, Seen};

pub const ID: &str = "0192ab00000070008000000000000001";

pub fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("a test has a path");
    path.pop();
    path.pop();
    path.join("examples/client")
}

/// A user with a home of their own and a server to talk to.
pub struct User {
    pub home: TempDir,
    pub endpoint: String,
}

impl User {
    pub async fn of(fake: &Fake) -> Self {
        Self { home: tempfile::tempdir().expect("a directory"), endpoint: format!("http://{}", fake.tcp().await) }
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(words).env_clear().current_dir(self.home.path()).stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("RUNVOY_API_ENDPOINT", &self.endpoint).env("RUNVOY_API_KEY", "rv_hunter2");
        command
    }

    pub async fn run(&self, words: &[&str]) -> Output {
        finish(self.command(words)).await
    }
}

pub async fn finish(mut command: Command) -> Output {
    spawn_blocking(move || command.output().expect("the example is built")).await.expect("it ends")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn log() -> Log {
    let lines = vec![
        (Stream::Platform, b"### runvoy: started".to_vec(), true),
        (Stream::Stdout, b"hello \xff\x1b]0;title\x07".to_vec(), true),
        (Stream::Stderr, b"oops".to_vec(), true),
        (Stream::Stdout, b"no newline".to_vec(), false),
    ];
    Log { id: ID.to_owned(), lines }
}

pub fn status(status: &str, exit_code: Option<i32>) -> Value {
    json!({"execution_id": ID, "status": status, "command": "x", "image_id": "", "started_at": "2026-01-03T14:22:19.000Z",
        "completed_at": "2026-01-03T14:22:20.200Z", "exit_code": exit_code, "attempt": 1, "end_reason": {"code": "exit", "message": "exited"}})
}

/// A server with one execution that ended with `exit_code`.
pub fn server(exit_code: i32) -> Fake {
    Fake::new(move |seen| answer(seen, exit_code))
}

pub fn answer(seen: &Seen, exit_code: i32) -> Reply {
    let word = if exit_code == 0 { "SUCCEEDED" } else { "FAILED" };
    match (seen.method.as_str(), seen.path().trim_start_matches("/api/v1/")) {
        ("POST", "run") => {
            let body = json!({"execution_id": ID, "log_url": "", "status": "PENDING", "command": "x", "image_id": "", "websocket_url": log().websocket_url()});
            Reply::json(202, body)
        }
        ("GET", path) if path.ends_with("/stream") => Reply::WebSocket(log().frames(seen, 3)),
        ("GET", path) if path.ends_with("/wait") || path.ends_with("/status") => Reply::json(200, status(word, Some(exit_code))),
        ("GET", path) if path.ends_with("/logs") && seen.parameter("format") == Some("ndjson") => log().ndjson(seen),
        ("GET", path) if path.ends_with("/logs") && seen.parameter("tail").is_some() => {
            let events = log().events(ID, 3);
            Reply::json(200, json!({"execution_id": ID, "events": events, "status": word, "next_line": 5}))
        }
        ("GET", path) if path.ends_with("/logs") => log().logs(word),
        ("GET", "executions") => Reply::json(200, json!([status(word, Some(exit_code))])),
        ("GET", "executions/aaaaaa") => Reply::json(
            409,
            json!({"error": "`aaaaaa` is not unique", "code": "CONFLICT", "details": "aaaaaa00000070008000000000000001, aaaaaa00000070008000000000000002"}),
        ),
        ("GET", path) if path.starts_with("executions/") => Reply::json(200, status(word, Some(exit_code))),
        ("GET", "health") => Reply::Answer(
            200,
            Vec::new(),
            serde_json::to_vec(&json!({"status": "ok", "version": env!("CARGO_PKG_VERSION"), "provider": "local"})).expect("plain data"),
        ),
        ("GET", "whoami") if seen.header("x-api-key") == Some("rv_hunter2") => {
            Reply::json(200, json!({"email": "ana@example.com", "role": "admin", "key_prefix": "rv_hun", "server_version": "0.1.0"}))
        }
        ("GET", "whoami") => Reply::error(401, "INVALID_API_KEY", "the API key is not valid"),
        ("GET", "doctor") => Reply::json(200, json!({"probes": [{"name": "disk", "status": "ok", "detail": "80% free"}]})),
        _ => Reply::error(404, "NOT_FOUND", "no such thing"),
    }
}

/// A server whose execution never ends and, after its first lines, never says anything more.
pub fn endless(seen: &Seen) -> Reply {
    match seen.path() {
        path if path.ends_with("/stream") => {
            let mut frames = log().frames(seen, 2);
            frames.pop();
            Reply::OpenWebSocket(frames)
        }
        path if path.ends_with("/logs") => log().logs("RUNNING"),
        _ if seen.method == "DELETE" => Reply::json(200, json!({"execution_id": ID, "message": "asked"})),
        _ => answer(seen, 0),
    }
}

pub async fn until_it_speaks(mut command: Command) -> (Child, BufReader<std::process::ChildStdout>) {
    spawn_blocking(move || {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example is built");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_until(b'\n', &mut Vec::new()).expect("a first line");
        (child, stdout)
    })
    .await
    .expect("it speaks")
}

pub async fn end(mut child: Child) -> (Option<i32>, String) {
    spawn_blocking(move || {
        let mut stderr = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        (child.wait().expect("it ends").code(), stderr)
    })
    .await
    .expect("it ends")
}

/// Runs a command with this on its stdin.
pub async fn with_stdin(mut command: Command, input: &str) -> Output {
    let input = input.as_bytes().to_vec();
    spawn_blocking(move || {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example is built");
        // A command that reads nothing may have left.
        let _ = std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &input);
        child.wait_with_output().expect("it ends")
    })
    .await
    .expect("it ends")
}

/// The JSON that a request carried.
pub fn body(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.body).expect("JSON")
}
