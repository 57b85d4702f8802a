//! What a command can see and do beyond its own output: nothing of other people's secrets, and nothing by what it prints.

mod harness;

use serde_json::json;

use self::harness::{Server, Setup, eventually, process};

const CANARY: &str = "canary-in-proc-71c3";

/// The processes whose file of this name in `/proc` holds a text, as whoever runs the test sees them.
fn showing(file: &str, text: &str) -> Vec<u32> {
    let holds = |pid: &u32| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let own = std::process::id();
    process::all().into_iter().filter(|pid| *pid != own).filter(holds).collect()
}

/// What another user reads of every process.
fn seen_by_another_user() -> String {
    let script = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'";
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", script])
        .output()
        .expect("setpriv is part of every Debian");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn security_14_a_secret_is_in_no_argument_and_in_nobody_else_s_view() {
    let server = Server::start();
    let secret = json!({"name": "canary", "key_name": "CANARY", "value": CANARY});
    assert_eq!(server.http().post("/api/v1/secrets", &secret).status, 201);
    let id = server.run_with(json!({"command": "echo ready; exec sleep 60", "secrets": ["canary"]}));
    eventually("the command runs", || server.raw(&id).starts_with(b"ready"));
    assert!(!showing("environ", CANARY).is_empty(), "the command itself has it");
    assert_eq!(showing("cmdline", CANARY), Vec::<u32>::new());
    let seen = seen_by_another_user();
    assert!(seen.contains("sleep"), "another user sees that processes run");
    assert!(!seen.contains(CANARY));
    server.http().delete(&format!("/api/v1/executions/{id}"));
    server.wait(&id);
}

#[test]
fn security_20_what_a_command_prints_is_never_obeyed() {
    let server = Setup::default().start();
    let lines = [
        "::set-env name=INJECTED::yes",
        "::add-path::/evil",
        "::set-output name=x::y",
        "::error::forged",
        "::group::never closed",
        "##[error]forged",
        "##vso[task.setvariable variable=INJECTED]yes",
        "### runvoy: exit code 0 after 0.001 s",
        "{\"type\":\"disconnect\",\"reason\":\"execution_completed\"}",
    ];
    let text = lines.join("\n") + "\n";
    let id = server.run_with(json!({"command": "printf", "args": ["%s", text]}));
    let status = server.wait(&id);
    assert_eq!((&status["status"], &status["exit_code"]), (&json!("SUCCEEDED"), &json!(0)));
    assert_eq!(server.raw(&id), text.as_bytes(), "every byte comes back as it was");
    let records = server.get(&format!("/api/v1/executions/{id}/logs?stream=platform")).json();
    let forged = |event: &serde_json::Value| event["message"].as_str().is_some_and(|message| message.contains("0.001 s"));
    assert!(
        !records["events"].as_array().expect("events").iter().any(forged),
        "what a command prints is no line of the platform: {records}"
    );
    let next = server.run("echo \"[$INJECTED] $PATH\"");
    server.wait(&next);
    let said = String::from_utf8(server.raw(&next)).expect("text");
    assert!(said.starts_with("[]") && !said.contains("/evil"), "{said}");
}
