//! What a command gets and cannot get, through the real binary: environment, rights, limits, and no way to outlive its kill.

mod harness;

use serde_json::json;

use self::harness::{Server, Setup, eventually, process};

fn output_of(server: &Server, command: &str) -> String {
    let id = server.run(command);
    server.wait(&id);
    String::from_utf8(server.raw(&id)).expect("text")
}

#[test]
fn the_environment_is_built_from_nothing() {
    let server = Setup::default().env("RUNVOY_TEST_SECRET", "from-the-server").env("AWS_SECRET_ACCESS_KEY", "from-the-server").start();
    let id = server.run_with(json!({"command": "env", "env": {"OWN": "a\nb=c'\""}}));
    server.wait(&id);
    let env = String::from_utf8(server.raw(&id)).expect("text");
    assert!(!env.contains("from-the-server"), "{env}");
    for name in ["PATH=", "HOME=", "LANG=", "TERM=", "RUNVOY_ATTEMPT=1", "RUNVOY_USER=admin@localhost", "USER_EMAIL=admin@localhost"] {
        assert!(env.lines().any(|line| line.starts_with(name)), "{name} is missing: {env}");
    }
    assert!(env.contains(&format!("RUNVOY_EXECUTION_ID={id}\n")) && env.contains("OWN=a\nb=c'\"\n"), "{env}");
}

#[test]
fn a_command_has_three_descriptors_its_own_directory_and_no_input() {
    let server = Server::start();
    assert_eq!(
        output_of(&server, "for fd in /proc/self/fd/*; do case ${fd##*/} in 0|1|2) ;; *) [ -e $fd ] && readlink $fd; esac; done; true"),
        ""
    );
    assert_eq!(output_of(&server, "umask; cat; stat -c %a ."), "0077\n700\n");
    let one = output_of(&server, "pwd; touch mine; ls");
    let two = output_of(&server, "pwd; ls");
    assert!(one.ends_with("mine\n") && !two.contains("mine"), "{one}{two}");
}

#[test]
fn a_server_may_open_what_it_is_allowed_to_and_its_commands_get_what_was_there_before() {
    let wrapper = ["sh", "-c", "ulimit -Sn 300; exec \"$@\"", "sh"].map(str::to_owned).to_vec();
    let server = Setup { wrapper, ..Setup::default() }.start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).expect("its limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
    assert_eq!(output_of(&server, "ulimit -Sn; ulimit -Hn"), format!("300\n{}\n", numbers[1]));
}

#[test]
fn a_user_of_their_own_has_no_rights_left() {
    let server = Setup::default().arg("--run-as").arg("nobody").start();
    let status = output_of(
        &server,
        "grep -E '^(Uid|NoNewPrivs|CapEff|CapPrm|CapBnd)' /proc/self/status; cat /etc/shadow; touch /etc/x; ls $HOME/..; true",
    );
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("CapEff:\t0000000000000000"), "{status}");
    assert!(!status.contains("Uid:\t0") && !status.contains("root:"), "{status}");
    let data = server.data.display().to_string();
    let peek = output_of(&server, &format!("cat {data}/admin.key {data}/runvoy.db {data}/keys/* 2>&1 | head -c 300"));
    assert!(!peek.contains("rv_") && !peek.contains("SQLite"), "{peek}");
}

#[test]
fn security_30_a_kill_leaves_no_descendant_whatever_it_did() {
    let server = Setup::default().arg("--grace").arg("300ms").start();
    let hostile = "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; (sleep 1000 &) ; sleep 1000' &) ; nohup sleep 1000 >/dev/null 2>&1 & sleep 1000";
    let id = server.run(hostile);
    let mark = format!("RUNVOY_EXECUTION_ID={id}");
    eventually("all of it runs", || process::with_env(&mark).len() >= 5);
    server.http().post(&format!("/api/v1/executions/{id}/kill"), &json!({}));
    assert_eq!(server.wait(&id)["status"], "STOPPED");
    assert!(process::with_env(&mark).is_empty(), "a descendant outlived the kill");
}

#[test]
fn what_a_command_leaves_in_the_background_ends_with_it() {
    let server = Server::start();
    let id = server.run("sleep 1000 & setsid sleep 1000 & echo done");
    let status = server.wait(&id);
    assert_eq!(status["status"], "SUCCEEDED");
    assert!(process::with_env(&format!("RUNVOY_EXECUTION_ID={id}")).is_empty());
}

#[test]
fn security_29_limits_hold_and_say_so() {
    let server = Setup::default().env("RUNVOY_LIMIT_MEMORY_BYTES", "64MiB").env("RUNVOY_LIMIT_PIDS", "40").start();
    let id = server.run("tail /dev/zero");
    let status = server.wait(&id);
    assert_eq!(status["end_reason"]["code"], "oom", "{status}");
    let bomb = server.run("f() { f | f & }; f; sleep 1; echo survived");
    server.wait(&bomb);
    let other = server.run("echo fine");
    assert_eq!(server.wait(&other)["status"], "SUCCEEDED", "another command is not harmed");
}

#[test]
fn what_cannot_start_says_why() {
    let server = Server::start();
    let id = server.run_with(json!({"command": "/no/such/program", "args": []}));
    let status = server.wait(&id);
    assert_eq!((&status["end_reason"]["code"], &status["exit_code"]), (&json!("start_failed"), &json!(127)), "{status}");
    let message = status["end_reason"]["message"].as_str().expect("text");
    assert!(message.contains("/no/such/program"), "{message}");
}

#[test]
fn commands_are_refused_the_servers_own_user_once_there_is_a_second_one() {
    let mut server = Server::start();
    server.run("true");
    let invited = server.http().post("/api/v1/users/create", &json!({"email": "eve@example.com", "role": "developer", "confirm": true}));
    assert_eq!(invited.status, 201, "{}", invited.text());
    let answer = server.http().post("/api/v1/run", &json!({"command": "true"}));
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(answer.text().contains("--run-as"), "{}", answer.text());
    server.stop();
    let allowed = Setup::default().arg("--allow-shared-uid").start_in(&server.data);
    assert_eq!(allowed.http().post("/api/v1/run", &json!({"command": "true"})).status, 202);
    let doctor = allowed.get("/api/v1/doctor").text();
    assert!(doctor.contains("--allow-shared-uid"), "{doctor}");
}

#[test]
fn a_kill_leaves_the_whole_grace_also_when_it_is_asked_for_twice() {
    let server = Setup::default().arg("--grace").arg("20s").start();
    let id = server.run("trap 'sleep 12; echo tidied up; exit 9' TERM; echo ready; while :; do sleep 0.1; done");
    eventually("it is ready", || server.raw(&id) == b"ready\n");
    for _ in 0..2 {
        server.http().post(&format!("/api/v1/executions/{id}/kill"), &json!({}));
    }
    let status = server.wait(&id);
    assert_eq!((&status["status"], &status["exit_code"]), (&json!("STOPPED"), &json!(130)), "{status}");
    assert!(status["end_reason"]["message"].as_str().expect("text").contains("exit code 9"), "{status}");
    assert!(server.raw(&id).ends_with(b"tidied up\n"), "the command had its time");
}
