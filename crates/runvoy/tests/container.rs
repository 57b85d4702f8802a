//! Commands in containers, through the real binary and a real Docker daemon: what they see, how they end, and that nothing of them outlives
//! its kill, its worker or its daemon.

mod harness;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use self::harness::docker::{Docker, IMAGE};
use self::harness::worker::WorkerSetup;
use self::harness::{Server, Setup, eventually, eventually_within, process};

/// A server that uses this daemon, with the test's image.
fn server(docker: &Docker) -> Server {
    let server = setup(docker).start();
    register(&server, IMAGE, &[]);
    server
}

fn setup(docker: &Docker) -> Setup {
    Setup::default().env("DOCKER_HOST", &docker.host()).arg("--runner").arg("process,container").arg("--grace").arg("1s")
}

fn register(server: &Server, image: &str, args: &[&str]) {
    let answer = server.cli(&[&["images", "register", image][..], args].concat());
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
}

fn run(server: &Server, command: &str) -> String {
    run_with(server, json!({"command": command}))
}

fn run_with(server: &Server, mut request: Value) -> String {
    if request.get("image").is_none() {
        request["image"] = IMAGE.into();
    }
    server.run_with(request)
}

fn output(server: &Server, id: &str) -> String {
    String::from_utf8_lossy(&server.raw(id)).into_owned()
}

/// What a command wrote that must succeed.
fn output_of(server: &Server, request: Value) -> String {
    let id = run_with(server, request);
    let status = server.wait(&id);
    let output = output(server, &id);
    assert_eq!(status["exit_code"], 0, "{status} {output}");
    output
}

fn log(server: &Server, id: &str) -> Value {
    server.get(&format!("/api/v1/executions/{id}/logs")).json()
}

fn kill(server: &Server, id: &str) {
    let answer = server.http().post(&format!("/api/v1/executions/{id}/kill"), &json!({}));
    assert!(answer.status < 300, "{}", answer.text());
}

/// Where the work directory of every command is gone when it has ended.
fn work_directories(server: &Server) -> usize {
    std::fs::read_dir(server.data.join("work")).into_iter().flatten().flatten().filter(|entry| entry.file_name().len() > 33).count()
}

#[test]
fn a_command_in_a_container_means_what_it_means_without() {
    let Some(docker) = Docker::start() else { return };
    let server = server(&docker);
    let hello = server.cli(&["run", "--image", IMAGE, "echo hello; echo problem >&2; exit 7"]);
    assert_eq!(hello.status.code(), Some(7), "{}", String::from_utf8_lossy(&hello.stderr));
    assert_eq!(String::from_utf8_lossy(&hello.stdout), "hello\n");
    assert!(String::from_utf8_lossy(&hello.stderr).contains("problem"));
    // Arguments reach the program as they are, and what no shell is asked for none expands.
    assert_eq!(output_of(&server, json!({"command": "echo", "args": ["$HOME", "a  b", "*"]})), "$HOME a  b *\n");
    let missing = run_with(&server, json!({"command": "nosuchprogram", "args": ["a"]}));
    assert_eq!(server.wait(&missing)["exit_code"], 127);
    let env = output_of(&server, json!({"command": "env", "env": {"OWN": "a\nb=c'\""}}));
    for line in ["HOME=/workspace", "OF_IMAGE=yes", "OWN=a", "RUNVOY_USER=admin@localhost", "RUNVOY_ATTEMPT=1"] {
        assert!(env.lines().any(|have| have == line), "{line} is missing: {env}");
    }
    assert!(!env.contains("DOCKER_HOST") && !env.contains("RUNVOY_API") && !env.contains("CARGO"), "{env}");
    let dotenv = output_of(&server, json!({"command": "pwd; cat .env; echo x > made; ls", "env": {"A": "b"}}));
    assert!(dotenv.starts_with("/workspace\n") && dotenv.contains("A=") && dotenv.ends_with("made\n"), "{dotenv}");
    let said = r#"echo '{"category": "auth", "message": "no such token"}' > "$RUNVOY_ERROR"; exit 3"#;
    let id = run(&server, said);
    assert!(server.wait(&id)["end_reason"]["message"].as_str().expect("a reason").contains("no such token"));
    let shown = server.get(&format!("/api/v1/executions/{id}")).json();
    assert!(shown["runner"].as_str().expect("a runner").starts_with("container (Docker "), "{shown}");
    let local = output_of(&server, json!({"command": "cat /etc/os-release | head -1", "image": "local"}));
    assert!(local.contains('='), "the machine's own file: {local}");
    eventually("no container is left", || docker.containers().is_empty());
    eventually("no work directory is left", || work_directories(&server) == 0);
}

#[test]
fn both_streams_of_a_container_are_told_apart_and_a_terminal_is_one() {
    let Some(docker) = Docker::start() else { return };
    let server = server(&docker);
    let id = run(&server, "for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf 'no newline'");
    server.wait(&id);
    let log = log(&server, &id);
    let of = |stream: &str| {
        let events = log["events"].as_array().expect("events").iter();
        events
            .filter(|event| event["stream"] == stream)
            .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("stdout"), ["out 1", "out 2", "out 3", "no newline"], "{log}");
    assert_eq!(of("stderr"), ["err 1", "err 2", "err 3"], "{log}");
    // Whoever reads finds the end of input, and the terminal has a size.
    let terminal = json!({"command": "[ -t 1 ] && [ -t 2 ] && echo a terminal; cat; sleep 1; stty size; echo err >&2", "terminal": true, "timeout": 30});
    let text = output_of(&server, terminal).replace("\r\n", "\n");
    assert_eq!(text, "a terminal\n24 80\nerr\n");
}

#[test]
fn security_30_a_container_is_closed_and_its_kill_leaves_nothing() {
    let Some(docker) = Docker::start() else { return };
    let server = server(&docker);
    let look = "id -u; touch /made 2>&1; touch /tmp/made && echo tmp; touch made && echo work; \
                grep -E '^(NoNewPrivs|CapEff|CapPrm|CapBnd)' /proc/self/status; ls /var/run/docker.sock 2>&1; ls /sys/class/net; ls /proc | grep -c '^[0-9]'";
    let seen = output_of(&server, json!({"command": look}));
    let lines: Vec<&str> = seen.lines().collect();
    assert_ne!(lines[0], "0", "{seen}");
    assert!(seen.contains("Read-only file system") && seen.contains("tmp\nwork\n"), "{seen}");
    assert!(
        seen.contains("NoNewPrivs:\t1") && seen.contains("CapEff:\t0000000000000000") && seen.contains("CapBnd:\t0000000000000000"),
        "{seen}"
    );
    assert!(seen.contains("docker.sock: No such file"), "{seen}");
    let hostile = "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep 1000' &); sleep 1000 & while :; do sleep 1; done";
    let id = run(&server, hostile);
    let mark = format!("RUNVOY_EXECUTION_ID={id}");
    eventually("all of it runs", || process::with_env(&mark).len() >= 4);
    let began = Instant::now();
    kill(&server, &id);
    assert_eq!(server.wait(&id)["status"], "STOPPED");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let left: Vec<String> = process::with_env(&mark).into_iter().map(command_line).collect();
    assert!(left.is_empty(), "a descendant outlived the kill: {left:?}");
    assert!(docker.containers().is_empty(), "{:?}", docker.containers());
    // One that listens ends by SIGTERM, at once.
    let gentle = run(&server, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.1; done");
    eventually("it is ready", || output(&server, &gentle).contains("ready"));
    kill(&server, &gentle);
    assert_eq!(server.wait(&gentle)["status"], "STOPPED");
    assert!(output(&server, &gentle).contains("bye"));
    let late = run_with(&server, json!({"command": "sleep 1000", "timeout": 1}));
    assert_eq!(server.wait(&late)["end_reason"]["code"], "timeout");
    assert!(docker.containers().is_empty(), "{:?}", docker.containers());
}

#[test]
fn registered_limits_hold_and_too_much_memory_is_told_as_such() {
    let Some(docker) = Docker::start() else { return };
    let server = setup(&docker).start();
    register(&server, IMAGE, &["--memory", "32Mi", "--cpu", "0.5"]);
    let id = run(&server, "x=a; while :; do x=$x$x; done");
    let status = server.wait(&id);
    assert_eq!((&status["exit_code"], &status["end_reason"]["code"]), (&json!(137), &json!("oom")), "{status}");
    let id = run(&server, "sleep 30");
    eventually("it runs", || !docker.containers().is_empty());
    let name = docker.containers().remove(0);
    let held = docker.done(&[
        "inspect",
        "--format",
        "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}}",
        &name,
    ]);
    assert_eq!(held, "33554432 33554432 500000000 4096");
    let labels = docker.done(&[
        "inspect",
        "--format",
        "{{index .Config.Labels \"runvoy.execution\"}} {{index .Config.Labels \"runvoy.attempt\"}}",
        &name,
    ]);
    assert_eq!(labels, format!("{id} 1"));
    kill(&server, &id);
    server.wait(&id);
}

#[test]
fn an_image_that_cannot_be_had_is_told_with_the_next_step() {
    let Some(mut docker) = Docker::start() else { return };
    let registry = docker.registry("tools:1");
    let server = setup(&docker).start();
    let missing = registry.reference.replace("tools:1", "nothing:1");
    register(&server, &missing, &[]);
    let id = run_with(&server, json!({"command": "true", "image": missing, "retries": 3}));
    let status = server.wait(&id);
    assert_eq!((&status["end_reason"]["code"], &status["attempt"]), (&json!("image_failed"), &json!(1)), "{status}");
    let message = status["end_reason"]["message"].as_str().expect("a message");
    assert!(message.contains(&missing) && message.contains("check name and tag"), "{message}");
    // A registry that is away may come back.
    let away = "127.0.0.1:1/tools:1";
    register(&server, away, &[]);
    let id = run_with(&server, json!({"command": "true", "image": away, "retries": 1}));
    let status = server.wait(&id);
    assert_eq!((&status["end_reason"]["code"], &status["attempt"]), (&json!("image_failed"), &json!(2)), "{status}");
    assert!(status["end_reason"]["message"].as_str().expect("a message").contains("reaches the registry"), "{status}");
    docker.kill_9();
    let id = run_with(&server, json!({"command": "true", "image": missing}));
    let status = server.wait(&id);
    assert_eq!(status["end_reason"]["code"], "image_failed", "{status}");
    assert!(status["end_reason"]["message"].as_str().expect("a message").contains("container daemon"), "{status}");
}

#[test]
fn a_pull_is_shown_is_one_for_all_and_can_be_killed() {
    let Some(docker) = Docker::start() else { return };
    let registry = docker.registry("tools:1");
    let server = setup(&docker).start();
    register(&server, &registry.reference, &[]);
    let request = json!({"command": "echo pulled", "image": registry.reference, "timeout": 20});
    registry.freeze(true);
    let ids: Vec<String> = (0..3).map(|_| server.run_with(request.clone())).collect();
    for id in &ids {
        eventually("the pull is shown", || {
            let status = server.status(id);
            let waiting = status["waiting_for"]["message"].as_str().unwrap_or_default().to_owned();
            status["status"] == "STARTING" && waiting.contains(&registry.reference) && waiting.contains("(pulling")
        });
    }
    kill(&server, &ids[2]);
    assert_eq!(server.wait(&ids[2])["status"], "STOPPED");
    registry.freeze(false);
    for id in &ids[..2] {
        let status = server.wait(id);
        assert_eq!((&status["status"], &output(&server, id)), (&json!("SUCCEEDED"), &"pulled\n".to_owned()), "{status}");
        let log = log(&server, id).to_string();
        assert!(log.contains("pulled image"), "{log}");
    }
    assert!(docker.containers().is_empty(), "{:?}", docker.containers());
}

#[test]
fn no_container_survives_a_kill_of_its_server() {
    let Some(docker) = Docker::start() else { return };
    let mut server = server(&docker);
    let id = run(&server, "echo begun; sleep 1000");
    eventually("it runs", || output(&server, &id).contains("begun"));
    server.kill_9();
    eventually_within(Duration::from_secs(20), "the guard removes the container", || docker.containers().is_empty());
    let again = setup(&docker).start_in(&server.data);
    let status = again.wait(&id);
    assert_eq!(status["end_reason"]["code"], "worker_lost", "{status}");
    assert!(output(&again, &id).contains("begun"));
    // Without a guard, the next start removes it; a container of somebody else stays.
    docker.done(&["run", "--detach", "--name", "other", "--label", "runvoy.instance=another", IMAGE, "sleep", "1000"]);
    let id = run(&again, "echo begun; sleep 1000");
    eventually("it runs", || output(&again, &id).contains("begun"));
    let guards: Vec<u32> = process::children(again.pid()).into_iter().map(|(pid, _)| pid).filter(|pid| is_guard(*pid)).collect();
    assert_eq!(guards.len(), 1);
    process::signal(guards[0], libc::SIGKILL);
    let mut again = again;
    again.kill_9();
    assert_eq!(docker.containers().len(), 2);
    let last = setup(&docker).start_in(&server.data);
    assert_eq!(docker.containers(), ["other"]);
    assert_eq!(last.wait(&id)["end_reason"]["code"], "worker_lost");
    assert_eq!(output_of(&last, json!({"command": "echo whole"})), "whole\n");
}

fn is_guard(pid: u32) -> bool {
    command_line(pid).contains("__container-guard")
}

fn command_line(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

#[test]
fn a_daemon_that_dies_ends_its_commands_truthfully() {
    let Some(mut docker) = Docker::start() else { return };
    let server = server(&docker);
    let id = run(&server, "echo begun; sleep 1000");
    eventually("it runs", || output(&server, &id).contains("begun"));
    let mark = format!("RUNVOY_EXECUTION_ID={id}");
    docker.kill_9();
    let began = Instant::now();
    let status = server.wait(&id);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(status["end_reason"]["code"], "worker_lost", "{status}");
    assert!(status["end_reason"]["message"].as_str().expect("a message").contains("container daemon"), "{status}");
    assert!(output(&server, &id).contains("begun"));
    assert!(process::with_env(&mark).is_empty(), "the command outlived its daemon");
    docker.restart();
    eventually("the container is removed", || docker.containers().is_empty());
    assert_eq!(output_of(&server, json!({"command": "echo again"})), "again\n");
}

#[test]
fn a_daemon_that_hangs_keeps_no_command_from_being_killed() {
    let Some(docker) = Docker::start() else { return };
    let server = server(&docker);
    let id = run(&server, "trap '' TERM; echo begun; sleep 1000");
    eventually("it runs", || output(&server, &id).contains("begun"));
    docker.freeze(true);
    let began = Instant::now();
    server.http().post(&format!("/api/v1/executions/{id}/kill"), &json!({}));
    let status = server.wait(&id);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(status["status"], "STOPPED", "{status}");
    assert!(process::with_env(&format!("RUNVOY_EXECUTION_ID={id}")).is_empty(), "the command outlived its kill");
    docker.freeze(false);
    eventually("the container is removed", || docker.containers().is_empty());
}

#[test]
fn a_log_of_100_megabytes_is_whole_and_takes_little_memory() {
    let Some(docker) = Docker::start() else { return };
    let server = server(&docker);
    let before = process::memory(server.pid(), "VmRSS");
    process::reset_peak(server.pid());
    // 100 lines of 1 MB would be one record each; these are 1,600,000 lines of 64 bytes.
    let line = "x".repeat(63);
    let id = run(&server, &format!("yes {line} | head -c 102400000; echo problem >&2"));
    assert_eq!(server.wait(&id)["exit_code"], 0);
    let grown = process::memory(server.pid(), "VmHWM").saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    let raw = server.raw(&id);
    let lines = raw.split(|byte| *byte == b'\n').filter(|have| *have == line.as_bytes()).count();
    assert_eq!(lines, 1_600_000);
    assert!(docker.containers().is_empty(), "{:?}", docker.containers());
}

#[test]
fn an_image_waits_for_a_worker_with_containers_whose_death_leaves_none() {
    let Some(docker) = Docker::start() else { return };
    let dir = TempDir::new().expect("a temporary directory");
    let server = Setup::default().arg("--runner").arg("process").start_in(&dir.path().join("data"));
    register(&server, IMAGE, &[]);
    let waiting = run(&server, "echo begun; sleep 1000");
    eventually("it says what it waits for", || {
        server.status(&waiting)["waiting_for"]["message"].as_str().is_some_and(|told| told.contains("run only image local"))
    });
    let setup = WorkerSetup::of(&server, "w1").args(&["--lease", "3s", "--lost-after", "6s"]).env("DOCKER_HOST", &docker.host());
    let mut worker = setup.start();
    eventually("it runs", || output(&server, &waiting).contains("begun"));
    let listed = server.cli(&["workers", "list", "--json"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("container (Docker "), "{}", String::from_utf8_lossy(&listed.stdout));
    worker.kill_9();
    let began = Instant::now();
    eventually_within(Duration::from_secs(20), "the guard removes the container", || docker.containers().is_empty());
    let status = server.wait(&waiting);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(status["end_reason"]["code"], "worker_lost", "{status}");
    // A worker that is frozen is as good as dead: its container ends with its lease.
    let worker = setup.start();
    let id = run(&server, "echo begun; sleep 1000");
    eventually("it runs", || output(&server, &id).contains("begun"));
    worker.signal(libc::SIGSTOP);
    eventually_within(Duration::from_secs(30), "the guard ends what a frozen worker cannot", || docker.containers().is_empty());
    worker.signal(libc::SIGCONT);
    assert_eq!(server.wait(&id)["end_reason"]["code"], "worker_lost");
}

#[test]
fn a_task_in_a_container_has_input_and_output() {
    let Some(docker) = Docker::start() else { return };
    let server = server(&docker);
    let file = server.data.join("job.yaml");
    let text = format!(
        "name: nightly\ndefaults: {{image: \"{IMAGE}\"}}\ntasks:\n  - {{taskId: fetch, command: 'echo \"{{\\\"rows\\\": 3}}\" > \"$RUNVOY_OUTPUT\"'}}\n  \
         - {{taskId: report, dependsOn: [fetch], command: 'cat \"$RUNVOY_INPUT\"'}}\n"
    );
    std::fs::write(&file, text).expect("written");
    let answer = server.cli(&["job", "submit", &file.display().to_string(), "--follow"]);
    assert_eq!(answer.status.code(), Some(0), "{}", String::from_utf8_lossy(&answer.stderr));
    let id = String::from_utf8_lossy(&server.cli(&["job", "list", "-o", "name"]).stdout).trim().to_owned();
    let logs = String::from_utf8_lossy(&server.cli(&["job", "logs", &id]).stdout).into_owned();
    assert!(logs.contains(r#""fetch":{"rows":3}"#), "{logs}");
}
