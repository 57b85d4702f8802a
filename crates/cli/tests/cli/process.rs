//! The commands as processes against a small server: streams, exit codes, formats, configuration.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use crate::fake::{Fake, Reply, Seen};
use crate::user::{ID, User, answer, finish, log, server, text};
use runvoy_wire::LogEvent;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

#[tokio::test]
async fn run_passes_bytes_and_exit_codes_through_unchanged() {
    for code in [0, 1, 42, 137, 143] {
        let output = User::of(&server(code)).await.run(&["run", "x"]).await;
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert_eq!(output.stdout, b"hello \xff\x1b]0;title\x07\nno newline");
        let word = if code == 0 { "✓ succeeded" } else { "✗ failed" };
        assert_eq!(text(&output.stderr), format!("### runvoy: started\noops\n{word} · exit code {code} · 1.2s · {ID}\n"));
    }
}

#[tokio::test]
async fn quiet_leaves_out_progress_and_very_quiet_everything() {
    let user = User::of(&server(0)).await;
    assert_eq!(text(&user.run(&["run", "-q", "x"]).await.stderr), format!("oops\n✓ succeeded · exit code 0 · 1.2s · {ID}\n"));
    assert_eq!(text(&user.run(&["run", "-qq", "x"]).await.stderr), "oops\n");
}

#[tokio::test]
async fn detach_prints_only_the_id() {
    let fake = server(0);
    let output = User::of(&fake).await.run(&["run", "-d", "--lock", "prod", "--wait", "10m", "--", "ls", "-l"]).await;
    assert_eq!((text(&output.stdout), text(&output.stderr)), (format!("{ID}\n"), String::new()));
    let body: Value = serde_json::from_slice(&fake.seen()[0].body).expect("JSON");
    assert_eq!(body, json!({"command": "ls", "args": ["-l"], "lock": "prod", "lock_wait": 600}));
}

#[tokio::test]
async fn failures_of_our_own_have_their_codes() {
    let refusing = Fake::new(|_| Reply::error(401, "API_KEY_REVOKED", "the API key was revoked"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (nobody, server_up) = (format!("http://{}", listener.local_addr().expect("bound")), User::of(&server(0)).await);
    drop(listener);
    let refused = User::of(&refusing).await;
    let away = User { endpoint: nobody, home: tempfile::tempdir().expect("a directory") };
    let mut keyless = Vec::new();
    for words in [&["run", "x"][..], &["list"]] {
        let mut command = server_up.command(words);
        command.env_remove("RUNVOY_API_KEY");
        keyless.push(finish(command).await);
    }
    for (name, output, code, says) in [
        ("run, revoked key", refused.run(&["run", "x"]).await, 4, "API_KEY_REVOKED"),
        ("list, revoked key", refused.run(&["list"]).await, 4, "API_KEY_REVOKED"),
        ("run, no key", keyless.remove(0), 4, "no API key"),
        ("list, no key", keyless.remove(0), 4, "RUNVOY_API_KEY"),
        ("run, server away", away.run(&["run", "x"]).await, 125, "cannot reach the server"),
        ("list, server away", away.run(&["list"]).await, 1, "UNREACHABLE"),
        ("logs, server away", away.run(&["logs", ID]).await, 1, "UNREACHABLE"),
        ("unknown command", server_up.run(&["lost"]).await, 2, "similar"),
        ("bad duration", server_up.run(&["run", "--timeout", "soon", "x"]).await, 2, "not a duration"),
        ("bad endpoint", server_up.run(&["--endpoint", "ftp://x", "list"]).await, 2, "not an endpoint"),
        ("not found", server_up.run(&["locks", "list"]).await, 1, "NOT_FOUND"),
    ] {
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(says), "{name}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{name}");
        if name.ends_with("server away") {
            let told = text(&output.stderr);
            // What is tried again is told before.
            let told: Vec<&str> = told.lines().filter(|line| !line.starts_with("### runvoy: ")).collect();
            let parts: Vec<&str> = told.iter().map(|line| line.split(':').next().unwrap_or_default().trim()).collect();
            assert!(parts.starts_with(&["error", "why", "next"]) && told.concat().contains(&away.endpoint), "{told:?}");
        }
    }
}

#[tokio::test]
async fn a_held_lock_is_explained() {
    let held = |seen: &Seen| {
        let body = json!({"error": "lock prod is held by bo", "code": "LOCK_HELD", "details": "", "lock_name": "prod", "held_by": "bo@example.com",
            "since": "2026-01-03T14:22:19Z", "execution_id": ID, "log_url": "http://x/logs"});
        if seen.method == "POST" { Reply::json(409, body) } else { answer(seen, 0) }
    };
    let hidden = move |seen: &Seen| if seen.method == "POST" { held(seen) } else { Reply::error(404, "NOT_FOUND", "no such thing") };
    let of_others = User::of(&Fake::new(hidden)).await.run(&["run", "--lock", "prod", "x"]).await;
    let said = text(&of_others.stderr);
    assert!(said.contains("bo@example.com") && !said.contains("runvoy logs"), "what cannot be seen is not offered: {said}");
    let output = User::of(&Fake::new(held)).await.run(&["run", "--lock", "prod", "x"]).await;
    assert_eq!(output.status.code(), Some(125));
    let stderr = text(&output.stderr);
    for part in ["bo@example.com", "2026-01-03T14:22:19.000Z", ID, "runvoy logs -f", "--wait", "LOCK_HELD", "request id"] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
}

#[tokio::test]
async fn logs_are_data_in_the_shape_that_was_asked_for() {
    let user = User::of(&server(0)).await;
    let plain = user.run(&["logs", ID]).await;
    assert_eq!(plain.stdout, b"hello \xff\x1b]0;title\x07\noops\nno newline");
    assert!(text(&plain.stderr).ends_with("### runvoy: started\n"), "{}", text(&plain.stderr));
    assert_eq!(user.run(&["logs", "--stream", "stderr", ID]).await.stdout, b"oops\n");
    assert_eq!(user.run(&["logs", "-f", "--tail", "2", ID]).await.stdout, b"oops\nno newline");
    let prefixed = user.run(&["logs", "--timestamps", "--lines", "--stream", "stderr", ID]).await;
    assert_eq!(text(&prefixed.stdout), "     3 2026-01-03T14:22:19.640Z oops\n");
    let json = user.run(&["logs", "--json", ID]).await;
    let events: Vec<LogEvent> = text(&json.stdout).lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert_eq!(events, log().events(ID, 1));
}

#[tokio::test]
async fn reads_are_written_as_json_yaml_and_names() {
    let user = User::of(&server(0)).await;
    let list: Value = serde_json::from_slice(&user.run(&["list", "--json"]).await.stdout).expect("JSON");
    assert_eq!((list[0]["execution_id"].as_str(), list[0]["status"].as_str()), (Some(ID), Some("SUCCEEDED")));
    assert_eq!(text(&user.run(&["list", "-o", "name"]).await.stdout), format!("{ID}\n"));
    assert!(text(&user.run(&["status", "-o", "yaml", ID]).await.stdout).contains("status: SUCCEEDED"));
    let whoami: Value = serde_json::from_slice(&user.run(&["whoami", "--json"]).await.stdout).expect("JSON");
    assert_eq!((whoami["email"].as_str(), whoami["endpoint"].as_str()), (Some("ana@example.com"), Some(user.endpoint.as_str())));
    let waited = user.run(&["wait", ID]).await;
    assert_eq!((waited.status.code(), waited.stdout.is_empty()), (Some(0), true));
}

#[tokio::test]
async fn debugging_never_shows_the_key() {
    let user = User::of(&server(0)).await;
    for words in [&["-vv", "run", "-e", "PASSWORD=hunter2", "x"][..], &["-vv", "whoami"], &["config", "show", "--origin"], &["doctor"]] {
        let output = user.run(words).await;
        let both = text(&output.stdout) + &text(&output.stderr);
        assert!(!both.contains("hunter2"), "{words:?}: {both}");
    }
    assert!(text(&user.run(&["-v", "whoami"]).await.stderr).contains("/api/v1/whoami -> 200"));
}

#[tokio::test]
async fn configure_stores_what_it_was_given_and_keeps_the_rest() {
    let user = User::of(&server(0)).await;
    let path = user.home.path().join(".runvoy/config.yaml");
    std::fs::create_dir(user.home.path().join(".runvoy")).expect("made");
    std::fs::write(&path, "web_url: http://kept\n").expect("written");
    let endpoint = user.endpoint.clone();
    let mut command = user.command(&["configure", "--endpoint", &endpoint, "--api-key-stdin"]);
    command.env_remove("RUNVOY_API_KEY").env_remove("RUNVOY_API_ENDPOINT");
    let output = spawn_blocking(move || {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example is built");
        child.stdin.take().expect("piped").write_all(b"rv_hunter2\n").expect("read");
        child.wait_with_output().expect("it ends")
    })
    .await
    .expect("it ends");
    assert!(output.status.success() && text(&output.stderr).contains("Signed in as ana@example.com"), "{}", text(&output.stderr));
    assert_eq!(std::fs::metadata(&path).expect("written").permissions().mode() & 0o777, 0o600);
    let mut command = user.command(&["config", "show", "--origin", "--json"]);
    command.env_remove("RUNVOY_API_KEY").env_remove("RUNVOY_API_ENDPOINT");
    let shown: Value = serde_json::from_slice(&finish(command).await.stdout).expect("JSON");
    assert_eq!(shown["web_url"]["value"], "http://kept");
    assert_eq!(shown["api_endpoint"]["value"], endpoint.as_str());
    assert_eq!(shown["api_key"]["value"], "********");
    assert!(shown["api_key"]["origin"].as_str().expect("text").starts_with("user file"));
}

#[tokio::test]
async fn nothing_is_asked_without_a_terminal() {
    let user = User::of(&server(0)).await;
    for words in [&["configure", "--endpoint", "http://127.0.0.1:1"][..], &["locks", "release", "prod"]] {
        let output = user.run(words).await;
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("next:"), "{}", text(&output.stderr));
    }
}

#[tokio::test]
async fn doctor_walks_from_the_name_to_the_server_s_own_probes() {
    let user = User::of(&server(0)).await;
    let report = |output: &Output| -> Vec<(String, String)> {
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let probes = report["probes"].as_array().expect("a list").clone();
        probes
            .iter()
            .map(|probe| (probe["name"].as_str().expect("text").to_owned(), probe["status"].as_str().expect("text").to_owned()))
            .collect()
    };
    let good = user.run(&["doctor", "--json"]).await;
    let names: Vec<String> = report(&good).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["configuration", "endpoint", "dns", "connection", "version", "clock", "websocket", "authentication", "server disk"]);
    assert_eq!(good.status.code(), Some(0), "{}", text(&good.stdout));
    let mut command = user.command(&["doctor", "--json"]);
    command.env("RUNVOY_API_KEY", "wrong");
    let bad = finish(command).await;
    assert_eq!(bad.status.code(), Some(1));
    assert_eq!(report(&bad).last(), Some(&("authentication".to_owned(), "fail".to_owned())));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let nobody = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);
    let away = user.run(&["doctor", "--json", "--endpoint", &nobody]).await;
    assert_eq!(report(&away).last(), Some(&("connection".to_owned(), "fail".to_owned())));
}

#[tokio::test]
async fn every_shell_has_a_script_and_ids_complete_from_the_server() {
    let user = User::of(&server(0)).await;
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = user.run(&["completion", shell]).await;
        assert!(script.status.success() && text(&script.stdout).contains("COMPLETE"), "{shell}");
    }
    let complete = |endpoint: &str| {
        let mut command = user.command(&["--", "runvoy", "status", "0192"]);
        command.env("COMPLETE", "fish").env("RUNVOY_API_ENDPOINT", endpoint);
        command
    };
    let found = finish(complete(&user.endpoint)).await;
    assert!(text(&found.stdout).starts_with(ID), "{}", text(&found.stdout));
    let silent = finish(complete("http://127.0.0.1:1")).await;
    assert_eq!((text(&silent.stdout), text(&silent.stderr)), (String::new(), String::new()));
}

#[tokio::test]
async fn without_an_endpoint_the_local_socket_is_used_and_no_key_is_sent() {
    let fake = server(0);
    let user = User::of(&fake).await;
    let data = user.home.path().join(".runvoy/data");
    std::fs::create_dir_all(&data).expect("made");
    fake.unix(&data.join("sock"));
    let mut command = user.command(&["run", "x"]);
    command.env_remove("RUNVOY_API_ENDPOINT");
    let output = finish(command).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(output.stdout, b"hello \xff\x1b]0;title\x07\nno newline");
    assert!(fake.seen().iter().all(|seen| seen.header("x-api-key").is_none()));
}

#[tokio::test]
async fn what_needs_no_configuration_works_without_one_that_can_be_read() {
    let user = User::of(&server(0)).await;
    let doctor = |output: Output| serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["probes"][0].clone();
    let probe = doctor(user.run(&["doctor", "--json"]).await);
    assert!(probe["detail"].as_str().is_some_and(|detail| detail.ends_with("does not exist; defaults are used")), "{probe}");
    std::fs::create_dir(user.home.path().join(".runvoy")).expect("made");
    std::fs::write(user.home.path().join(".runvoy/config.yaml"), "api_key: [hunter2\n").expect("written");
    for words in [&["version"][..], &["completion", "bash"], &["exit-codes"], &["help", "error", "lock_held"]] {
        assert_eq!(user.run(words).await.status.code(), Some(0), "{words:?}");
    }
    assert_eq!(user.run(&["list"]).await.status.code(), Some(2));
    let looked = user.run(&["doctor", "--json"]).await;
    assert_eq!(looked.status.code(), Some(1), "{}", text(&looked.stderr));
    let probe = doctor(looked);
    assert_eq!((&probe["name"], &probe["status"]), (&json!("configuration"), &json!("fail")));
    assert!(probe["detail"].as_str().is_some_and(|detail| detail.contains("config.yaml") && !detail.contains("hunter2")), "{probe}");
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_used_with_a_warning() {
    let user = User::of(&server(0)).await;
    let path = user.home.path().join("ana.key");
    std::fs::write(&path, "rv_hunter2\n").expect("written");
    let file = path.to_str().expect("a path");
    for (mode, warned) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("permissions");
        let mut by_variable = user.command(&["whoami"]);
        by_variable.env_remove("RUNVOY_API_KEY").env("RUNVOY_API_KEY_FILE", file);
        for output in [user.run(&["whoami", "--api-key-file", file]).await, finish(by_variable).await] {
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{said}");
            assert_eq!(said.contains(&format!("chmod 600 {file}")), warned, "{said}");
        }
    }
}

#[tokio::test]
async fn a_stream_has_no_documents() {
    let fake = server(0);
    let user = User::of(&fake).await;
    for words in [
        &["run", "-o", "yaml", "x"][..],
        &["run", "-o", "name", "x"],
        &["logs", "-o", "yaml", ID],
        &["job", "logs", "-o", "yaml", ID],
        &["rerun", "-o", "name", ID],
    ] {
        let output = user.run(words).await;
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("-o json"), "{words:?}");
    }
    assert!(fake.seen().is_empty(), "nothing is submitted");
}

#[tokio::test]
async fn a_password_in_an_address_is_not_shown() {
    let user = User::of(&server(0)).await;
    for words in [&["list", "--endpoint", "http://ana:hunter2@127.0.0.1:1"][..], &["config", "show", "--endpoint", "http://ana:hunter2@h"]]
    {
        let output = user.run(words).await;
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("…@") && !said.contains("hunter2"), "{said}");
    }
}

#[tokio::test]
async fn a_project_cannot_redirect_the_key() {
    let user = User::of(&server(0)).await;
    std::fs::create_dir(user.home.path().join(".runvoy")).expect("made");
    std::fs::write(user.home.path().join(".runvoy/project.yaml"), "api_endpoint: http://evil\n").expect("written");
    let output = user.run(&["list"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("may not set `api_endpoint`"), "{}", text(&output.stderr));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_terminal_gets_colours_and_no_other_escapes() {
    let user = User::of(&server(1)).await;
    let inner = user.command(&["run", "x"]);
    let mut command = Command::new("script");
    let line = format!("{} run x", inner.get_program().display());
    command.args(["-qefc", &line, "/dev/null"]).stdin(Stdio::null()).current_dir(user.home.path()).env_clear().env("TERM", "xterm");
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("SHELL", "/bin/sh").env("PATH", "/usr/bin:/bin");
    let output = finish(command).await;
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout).replace("\r\n", "\n");
    assert!(shown.contains("\x1b[2m### runvoy: started\x1b[0m\n"), "{shown:?}");
    assert!(shown.contains("hello \u{fffd}\n") && !shown.contains("title"), "{shown:?}");
    assert!(shown.contains("no newline\n\x1b[1m\x1b[31m✗ failed\x1b[0m"), "{shown:?}");
}
