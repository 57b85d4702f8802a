//! A server that cannot go on leaves by itself, so that the next start can tell what is true.

mod harness;

use serde_json::json;

use self::harness::{Server, Setup, eventually, process};

fn exit_code(server: &mut Server) -> Option<i32> {
    let mut status = None;
    eventually("it has ended by itself", || {
        status = server.ended();
        status.is_some()
    });
    status.expect("ended").code()
}

#[test]
fn a_server_whose_disk_failed_leaves_and_the_next_one_records_the_truth() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    Setup::default().start_in(&data).stop();
    let strace =
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", "inject=fdatasync,fsync:error=EIO:when=25+"];
    let setup = Setup { wrapper: strace.iter().map(|word| (*word).to_owned()).collect(), ..Setup::default() };
    let mut server = setup.start_in(&data);
    let running = server.run("sleep 1000");
    let mut http = server.http();
    let taken = |answer: std::io::Result<harness::http::Answer>| answer.is_ok_and(|answer| answer.status == 202);
    let failed = (0..1_000).any(|_| !taken(http.try_post("/api/v1/run", &json!({"command": "true"}), &[])));
    assert!(failed, "no fsync was made to fail");
    assert_eq!(exit_code(&mut server), Some(1));
    assert!(!data.join("endpoint").exists());
    let server = Setup::default().start_in(&data);
    let status = server.status(&running);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
    assert!(process::with_env(&format!("RUNVOY_EXECUTION_ID={running}")).is_empty(), "the command outlived its server");
}

/// The process that starts commands for a server.
fn spawner_of(server: u32) -> u32 {
    let of_server = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        status.contains(&format!("PPid:\t{server}\n")) && command.contains("__spawner")
    };
    process::all().into_iter().find(of_server).expect("a spawner")
}

#[test]
fn a_stop_ends_although_a_command_cannot_be_ended() {
    let mut server = Setup::default().arg("--stop-patience").arg("100ms").arg("--grace").arg("100ms").start();
    let id = server.run("sleep 1000");
    let mark = format!("RUNVOY_EXECUTION_ID={id}");
    eventually("it runs", || !process::with_env(&mark).is_empty());
    let spawner = spawner_of(server.pid());
    process::signal(spawner, libc::SIGSTOP);
    let code = server.stop();
    process::signal(spawner, libc::SIGCONT);
    assert_eq!(code, Some(1), "what was not recorded is not called a success");
    let server = Setup::default().start_in(&server.data);
    let status = server.status(&id);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
    assert!(process::with_env(&mark).is_empty(), "it outlived its server");
}

#[test]
fn a_server_without_a_worker_ends_what_an_earlier_one_left() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let mut server = Setup::default().start_in(&data);
    let id = server.run("sleep 1000");
    let mark = format!("RUNVOY_EXECUTION_ID={id}");
    eventually("it runs", || !process::with_env(&mark).is_empty());
    // Its spawner cannot end the command either.
    let spawner = spawner_of(server.pid());
    process::signal(spawner, libc::SIGSTOP);
    server.kill_9();
    assert!(!process::with_env(&mark).is_empty(), "it still runs");
    let server = Setup::default().arg("--no-worker").start_in(&data);
    assert!(process::with_env(&mark).is_empty(), "it is recorded as ended and still runs");
    let status = server.status(&id);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
    process::signal(spawner, libc::SIGCONT);
}
