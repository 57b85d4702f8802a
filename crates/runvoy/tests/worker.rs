//! A worker elsewhere: what it runs, what becomes of it when server, worker or both are gone, and how it stops.

mod harness;

use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use self::harness::worker::{Worker, WorkerSetup};
use self::harness::{Server, Setup, eventually, process};

/// A directory for both, a server that runs nothing itself, and a worker of it.
fn pair(args: &[&str]) -> (TempDir, Server, WorkerSetup) {
    let dir = TempDir::new().expect("a temporary directory");
    let server = Setup::default().arg("--no-worker").start_in(&dir.path().join("data"));
    let setup = WorkerSetup::of(&server, "w1").args(args);
    (dir, server, setup)
}

/// The same server again, where it was.
fn again(server: &Server) -> Server {
    let address = server.url.strip_prefix("http://").expect("a plain URL");
    Setup::default().arg("--no-worker").arg("--listen").arg(address).start_in(&server.data)
}

/// What the command wrote, without the platform's lines.
fn output(server: &Server, id: &str) -> String {
    String::from_utf8_lossy(&server.raw(id)).into_owned()
}

fn numbered(count: usize) -> String {
    (0..count).map(|n| format!("line {n}\n")).collect()
}

/// Writes numbered lines for some seconds.
fn writes(count: usize) -> String {
    format!("i=0; while [ $i -lt {count} ]; do echo line $i; i=$((i+1)); [ $((i % 20)) = 0 ] && sleep 0.05; done; true")
}

/// Writes a line, waits for a file, and does something else then.
fn held_by(file: &Path, then: &str) -> String {
    format!("echo begun; while [ ! -e {} ]; do sleep 0.05; done; {then}", file.display())
}

/// Nothing that the command started is there any more.
fn is_gone(id: &str) -> bool {
    process::with_env(&format!("RUNVOY_EXECUTION_ID={id}")).is_empty()
}

#[test]
fn a_worker_runs_what_the_server_hands_out_and_its_log_is_complete() {
    let (_dir, server, setup) = pair(&["--queue", "default", "--concurrency", "3", "--name", "ada", "--labels", "region=eu"]);
    let worker = setup.start();
    assert_eq!(worker.ready.trim(), format!("worker ada serves default at {}", server.url));
    let ids: Vec<String> = (0..6).map(|n| server.run(&format!("{}; exit {n}", writes(40)))).collect();
    let missing = server.cli(&["run", "--", "nosuchprogram", "a"]);
    assert_eq!(missing.status.code(), Some(127), "as on the server's own machine: {}", String::from_utf8_lossy(&missing.stderr));
    for (n, id) in ids.iter().enumerate() {
        let status = server.wait(id);
        assert_eq!(status["exit_code"], json!(n), "{status}");
        assert_eq!(output(&server, id), numbered(40), "{id}");
    }
    let seen: Value = server.get("/api/v1/workers").json();
    let text = seen.to_string();
    assert!(text.contains("\"ada\"") && text.contains("region"), "{text}");
    eventually("nothing is left on the worker", || worker.left() == 0);
}

#[test]
fn tasks_of_a_job_find_what_others_gave() {
    let (_dir, server, setup) = pair(&[]);
    let _worker = setup.start();
    let big = "{ printf '{\"text\": \"'; head -c 400000 /dev/zero | tr '\\0' x; printf '\"}'; } > \"$RUNVOY_OUTPUT\"";
    let count = "tr -cd x < \"$RUNVOY_INPUT\" | wc -c";
    let body = json!({"tasks": [{"taskId": "big", "command": big}, {"taskId": "count", "dependsOn": ["big"], "command": count}]});
    let made = server.http().post("/api/v1/jobs", &body).json();
    let job = || server.get(&format!("/api/v1/jobs/{}", made["jobId"].as_str().expect("an id"))).json();
    eventually("the job is done", || job()["status"] == "COMPLETED");
    let done = job();
    let counting = done["tasks"].as_array().and_then(|tasks| tasks.iter().find(|task| task["taskId"] == "count")).expect("a task");
    // One x is in the name of a field.
    assert_eq!(output(&server, counting["executionId"].as_str().expect("an id")).trim(), "400001", "{done}");
}

/// How often workers have said that they are there.
fn reports(server: &Server) -> u64 {
    let text = server.get("/metrics").text();
    let counts = text.lines().filter(|line| line.starts_with("runvoy_http_requests_total{") && line.contains("JobService/ReportWorker\""));
    counts.map(|line| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count")).sum()
}

#[test]
fn a_kill_is_pushed_to_the_worker() {
    // It would ask again in hours. A report is answered with what was killed too, but comes every few seconds only.
    let (_dir, server, setup) = pair(&["--lease", "12h", "--lost-after", "12h"]);
    let _worker = setup.start();
    let kill = || {
        let id = server.run("echo begun; sleep 600");
        eventually("it runs", || output(&server, &id).contains("begun"));
        let before = reports(&server);
        eventually("it has just reported", || reports(&server) > before);
        let before = reports(&server);
        assert!(server.cli(&["kill", &id]).status.success());
        let status = server.wait(&id);
        assert_eq!((&status["status"], &status["exit_code"]), (&json!("STOPPED"), &json!(130)), "{status}");
        assert!(is_gone(&id));
        reports(&server) == before
    };
    // On a machine that is busy enough, a report may come between all the same.
    assert!((0..5).any(|_| kill()), "it heard of every kill by a report");
}

#[test]
fn every_line_is_stored_once_although_the_server_is_killed_while_they_come() {
    let (_dir, mut server, setup) = pair(&[]);
    let worker = setup.start();
    let id = server.run(&writes(1500));
    for _ in 0..3 {
        let before = output(&server, &id).len();
        eventually("more is stored", || output(&server, &id).len() > before + 500 || !server.status(&id)["exit_code"].is_null());
        server.kill_9();
        std::thread::sleep(Duration::from_millis(300));
        server = again(&server);
    }
    let status = server.wait(&id);
    assert_eq!(status["status"], "SUCCEEDED", "{status}");
    assert_eq!(output(&server, &id), numbered(1500));
    eventually("nothing is left on the worker", || worker.left() == 0);
}

#[test]
fn a_command_that_ends_while_the_server_is_away_is_recorded_as_it_ended() {
    let (dir, mut server, setup) = pair(&[]);
    let worker = setup.start();
    let go_on = dir.path().join("go-on");
    let id = server.run(&held_by(&go_on, "echo ended; exit 7"));
    eventually("it runs", || output(&server, &id).contains("begun"));
    server.kill_9();
    std::fs::write(&go_on, "").expect("written");
    eventually("it has ended", || is_gone(&id));
    assert_eq!(worker.left(), 1);
    let server = again(&server);
    let status = server.wait(&id);
    assert_eq!((&status["exit_code"], output(&server, &id).as_str()), (&json!(7), "begun\nended\n"), "{status}");
}

/// The keys that sign task tokens, by name.
fn signing_keys(data: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(data.join("keys/signing")).expect("a ring").map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut keys: Vec<_> = entries.map(|path| (name(&path), std::fs::read(&path).expect("a key"))).collect();
    keys.sort();
    keys
}

#[test]
fn what_runs_goes_on_after_a_new_signing_key_and_a_restart() {
    let (dir, mut server, setup) = pair(&["--lease", "2s"]);
    let worker = setup.start();
    let go_on = dir.path().join("go-on");
    let id = server.run(&held_by(&go_on, "echo ended; exit 7"));
    eventually("it runs", || output(&server, &id).contains("begun"));
    let first = signing_keys(&server.data);
    let rotated = server.cli(&["workers", "rotate-signing-key", "--json"]);
    assert!(rotated.status.success(), "{}", String::from_utf8_lossy(&rotated.stderr));
    let rotated: Value = serde_json::from_slice(&rotated.stdout).expect("JSON");
    let both = signing_keys(&server.data);
    assert_eq!((first.len(), both.len(), &both[0], both[1].1.len()), (1, 2, &first[0], 32));
    assert_eq!(both[1].0, format!("{}.key", rotated["key_id"].as_str().expect("a name")));
    for (name, _) in &both {
        let file = std::fs::metadata(server.data.join("keys/signing").join(name)).expect("a key");
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
    // For longer than the lease, before and after the restart.
    std::thread::sleep(Duration::from_secs(4));
    server.kill_9();
    let server = again(&server);
    std::thread::sleep(Duration::from_secs(4));
    std::fs::write(&go_on, "").expect("written");
    let status = server.wait(&id);
    assert_eq!((&status["exit_code"], output(&server, &id).as_str()), (&json!(7), "begun\nended\n"), "{status}");
    eventually("nothing is left on the worker", || worker.left() == 0);
}

#[test]
fn the_ring_of_signing_keys_is_in_a_backup_and_a_store_without_one_gets_it() {
    let (dir, mut server, _) = pair(&[]);
    assert!(server.cli(&["workers", "rotate-signing-key"]).status.success());
    let (copy, restored) = (dir.path().join("copy"), dir.path().join("restored"));
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let kept = signing_keys(&server.data);
    assert!(server.cli(&["backup", &text(&copy), "--data-dir", &text(&server.data)]).status.success());
    server.stop();
    assert!(server.cli(&["restore", &text(&copy), "--data-dir", &text(&restored)]).status.success());
    assert_eq!((kept.len(), signing_keys(&copy), signing_keys(&restored)), (2, kept.clone(), kept.clone()));

    std::fs::remove_dir_all(server.data.join("keys/signing")).expect("removed");
    let server = again(&server);
    let first = signing_keys(&server.data);
    assert!(first.len() == 1 && first[0].0 > kept[1].0, "as one from before there was a ring: {first:?}");
}

#[test]
fn what_a_killed_worker_ran_is_gone_and_told_by_the_next_one() {
    let (_dir, server, setup) = pair(&[]);
    let mut worker = setup.start();
    let lost = server.run("echo begun; (trap '' TERM; setsid sleep 600) & sleep 600");
    let retried = server.run_with(json!({"command": "echo attempt $RUNVOY_ATTEMPT; [ $RUNVOY_ATTEMPT = 2 ] || sleep 600", "retries": 1}));
    eventually("both run", || output(&server, &lost).contains("begun") && output(&server, &retried).contains("attempt 1"));
    worker.kill_9();
    eventually("no descendant is left", || is_gone(&lost) && is_gone(&retried));
    let _next = setup.start_in(&worker.dir);
    let status = server.wait(&lost);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
    let status = server.wait(&retried);
    assert_eq!(status["status"], "SUCCEEDED", "{status}");
    assert_eq!(output(&server, &retried), "attempt 1\nattempt 2\n");
}

#[test]
fn what_was_written_before_the_lease_lapsed_comes_late() {
    let (dir, mut server, setup) = pair(&["--lease", "1s", "--lost-after", "15s"]);
    let mut worker = setup.start();
    let go_on = dir.path().join("go-on");
    let id = server.run(&held_by(&go_on, "echo unheard; sleep 600"));
    eventually("it runs", || output(&server, &id).contains("begun"));
    server.kill_9();
    std::fs::write(&go_on, "").expect("written");
    let unheard = |dir: &Path| {
        let logs = std::fs::read_dir(dir.join("wal")).expect("the directory of logs");
        logs.filter_map(Result::ok).any(|log| std::fs::read(log.path()).is_ok_and(|bytes| bytes.windows(7).any(|text| text == b"unheard")))
    };
    eventually("it is written down", || unheard(&worker.dir));
    worker.kill_9();
    let server = again(&server);
    let status = server.wait(&id);
    assert_eq!(status["end_reason"]["code"], "worker_lost", "{status}");
    assert_eq!(output(&server, &id), "begun\n");
    let next = setup.start_in(&worker.dir);
    eventually("it is there", || output(&server, &id) == "begun\nunheard\n");
    eventually("nothing is left on the worker", || next.left() == 0);
    assert_eq!(server.status(&id)["status"], "FAILED", "what comes late changes nothing else");
}

#[test]
fn the_first_signal_drains_and_the_second_ends_what_runs() {
    let (_dir, server, setup) = pair(&["--concurrency", "2", "--grace", "300ms"]);
    let mut worker = setup.start();
    let (short, long) = (server.run("echo begun; sleep 2; echo done"), server.run("trap '' TERM; echo begun; while :; do sleep 1; done"));
    eventually("both run", || [&short, &long].iter().all(|id| output(&server, id).contains("begun")));
    worker.signal(libc::SIGTERM);
    let status = server.wait(&short);
    assert_eq!((&status["status"], output(&server, &short).as_str()), (&json!("SUCCEEDED"), "begun\ndone\n"), "{status}");
    let waiting = server.run("echo never");
    assert_eq!(server.status(&long)["status"], "RUNNING", "what runs has its time");
    worker.signal(libc::SIGTERM);
    assert_eq!(worker.wait().code(), Some(0));
    let status = server.status(&long);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
    assert!(is_gone(&long));
    assert_eq!(server.status(&waiting)["status"], "PENDING");
    assert_eq!(worker.left(), 0);
}

#[test]
fn a_stop_waits_for_attempts_that_were_given_up() {
    let (_dir, mut server, setup) = pair(&["--lease", "1s"]);
    let mut worker = setup.start();
    let id = server.run_with(json!({"command": "echo begun; sleep 600", "retries": 1}));
    eventually("it runs", || output(&server, &id).contains("begun"));
    server.kill_9();
    eventually("it is given up", || is_gone(&id));
    worker.signal(libc::SIGTERM);
    let _server = again(&server);
    assert_eq!((worker.wait().code(), worker.left()), (Some(0), 0), "the server has heard everything");
}

#[test]
fn what_the_server_has_not_heard_is_said_and_kept() {
    let (dir, mut server, setup) = pair(&["--lease", "1s"]);
    let (place, go_on) = (dir.path().join("worker"), dir.path().join("go-on"));
    let mut child = setup.spawn_in(&place);
    let command = format!("echo begun; [ -e {} ] || sleep 600", go_on.display());
    let id = server.run_with(json!({"command": command, "retries": 1}));
    eventually("it runs", || output(&server, &id).contains("begun"));
    server.kill_9();
    eventually("it is given up", || is_gone(&id));
    process::signal(child.id(), libc::SIGTERM);
    let status = child.wait().expect("it ends");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.contains("does not have everything of 1 attempt")), "{said}");
    std::fs::write(&go_on, "").expect("written");
    let server = again(&server);
    let next = setup.start_in(&place);
    assert_eq!(server.wait(&id)["status"], "SUCCEEDED", "it was tried again");
    eventually("the next start brings it", || next.left() == 0);
}

#[test]
fn a_worker_whose_key_is_revoked_ends_what_it_runs_and_says_why() {
    let (dir, server, setup) = pair(&["--concurrency", "1", "--lease", "3s"]);
    let mut child = setup.spawn_in(&dir.path().join("worker"));
    let id = server.run("echo begun; sleep 600");
    eventually("it runs", || output(&server, &id).contains("begun"));
    assert!(server.cli(&["workers", "revoke", "w1", "--yes"]).status.success());
    let status = child.wait().expect("it ends");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.starts_with("error: the server does not accept the key")), "{said}");
    assert!(is_gone(&id));
    let status = server.wait(&id);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
}

#[test]
fn a_worker_without_work_stops_at_once() {
    let (_dir, _server, setup) = pair(&[]);
    let mut worker = setup.start();
    worker.signal(libc::SIGTERM);
    assert_eq!(worker.wait().code(), Some(0));
}

#[test]
fn a_wrong_key_a_queue_that_is_not_its_own_and_a_shared_user_are_errors() {
    let server = Setup::default().arg("--no-worker").start();
    let made = server.cli(&["workers", "create", "gpu", "--queue", "gpu"]);
    let key = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let other = WorkerSetup::of(&server, "w1");
    for (setup, code, word) in [
        (other.clone().key("rv_wrong"), 4, "key"),
        (other.clone().key(&key).args(&["--queue", "default"]), 2, "default"),
        (other.clone().args(&["--lease", "soon"]), 2, "--lease"),
        (other.clone().url("ftp://server"), 2, "https://HOST"),
        (other.clone().bare(), 2, "--allow-shared-uid"),
    ] {
        let mut child = setup.spawn_in(dir.path());
        let status = child.wait().expect("it ends");
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert_eq!(status.code(), Some(code), "{said}");
        assert!(said.lines().last().is_some_and(|line| line.starts_with("error: ") && line.contains(word)), "{said}");
    }
}

#[test]
fn a_server_that_is_not_there_yet_is_waited_for() {
    let (dir, mut server, setup) = pair(&[]);
    server.kill_9();
    let starting = std::thread::spawn({
        let (setup, place) = (setup.clone(), dir.path().join("worker"));
        move || setup.start_in(&place)
    });
    std::thread::sleep(Duration::from_millis(500));
    let server = again(&server);
    let worker: Worker = starting.join().expect("it has started");
    assert_eq!(server.wait(&server.run("true"))["status"], "SUCCEEDED");
    drop(worker);
}

#[test]
fn a_drain_ends_in_time_although_the_server_is_away() {
    let (dir, mut server, setup) = pair(&["--drain-timeout", "1s", "--grace", "300ms"]);
    let place = dir.path().join("worker");
    let mut child = setup.spawn_in(&place);
    let id = server.run("echo begun; sleep 600");
    eventually("it runs", || output(&server, &id).contains("begun"));
    server.kill_9();
    process::signal(child.id(), libc::SIGTERM);
    let mut ended = None;
    eventually("the worker ends", || {
        ended = child.try_wait().expect("its own child");
        ended.is_some()
    });
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    let last = said.lines().last().unwrap_or_default();
    assert_eq!(ended.and_then(|status| status.code()), Some(1), "{said}");
    assert!(last.contains("does not have everything of 1 attempt") && !last.contains("could not be killed"), "{said}");
    assert!(is_gone(&id));
    let (server, next) = (again(&server), setup.start_in(&place));
    let status = server.wait(&id);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
    eventually("nothing is left on the worker", || next.left() == 0);
}
