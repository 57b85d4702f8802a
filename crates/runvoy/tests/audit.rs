//! The audit trail of a real server: changed with plain `sqlite3` it says so and names the event; and where it cannot be written, nothing
//! happens.

mod harness;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use self::harness::{Server, Setup, binary, eventually};

/// What `sqlite3` does with a store.
fn sqlite3(data: &Path, sql: &str) -> String {
    let output = Command::new("sqlite3").arg(data.join("runvoy.db")).arg(sql).output().expect("sqlite3 runs");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Asks the files of a directory, without a server.
fn verify_files(data: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(["audit", "verify", "--data-dir"]).arg(data).args(more).env_clear().env("HOME", data).output().expect("it runs")
}

fn found_in_files(data: &Path) -> Value {
    let output = verify_files(data, &["--json"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(output.status.code(), Some(i32::from(found["ok"] != true)), "{found}");
    found
}

fn lines(data: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(data.join("checkpoints.ndjson")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn put_group(server: &Server, name: &str) {
    let answer = server.http().post("/api/v1/groups", &json!({"name": name, "members": []}));
    assert!(answer.status < 300, "{}", answer.text());
}

/// A directory in which a server made three groups and ran a command, and stopped.
fn used() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let mut server = Setup::default().start_in(&data);
    for _ in 0..3 {
        put_group(&server, "ops");
    }
    server.wait(&server.run("true"));
    server.stop();
    (dir, data)
}

const OPS: &str = "(SELECT seq FROM records WHERE kind = 4 AND name = 'ops')";

#[test]
fn security_15_what_sqlite3_changed_is_named() {
    let changes = [
        (format!("UPDATE events SET properties = replace(properties, 'ok', 'no') WHERE entity = {OPS} AND number = 2"), 2, "altered"),
        (format!("UPDATE events SET at = at - 1000 WHERE entity = {OPS} AND number = 3"), 3, "altered"),
        (format!("DELETE FROM events WHERE entity = {OPS} AND number = 2"), 2, "removed"),
        (format!("DELETE FROM events WHERE entity = {OPS} AND number = 3"), 3, "removed"),
        (format!("UPDATE events SET number = 5 - number WHERE entity = {OPS} AND number IN (2, 3)"), 2, "altered"),
    ];
    let (_dir, whole) = used();
    assert_eq!(found_in_files(&whole)["ok"], true);
    for (n, (sql, number, problem)) in changes.iter().enumerate() {
        let copy = tempfile::tempdir().expect("a temporary directory");
        let data = copy.path().join("data");
        assert!(Command::new("cp").arg("-a").arg(&whole).arg(&data).status().expect("cp runs").success());
        sqlite3(&data, sql);
        let found = found_in_files(&data);
        let bad = &found["first_bad"];
        assert_eq!((&bad["entity"], &bad["number"], &bad["problem"]), (&json!("GROUP:ops"), &json!(number), &json!(problem)), "{sql}");
        let said = String::from_utf8_lossy(&verify_files(&data, &[]).stdout).into_owned();
        assert!(said.contains("NOT intact") && said.contains("GROUP:ops") && said.contains(problem), "{said}");
        if n == 0 {
            // Where a server still starts, because it has not met the page yet, it names the same.
            let server = Setup::default().start_in(&data);
            assert_eq!(server.get("/api/v1/audit/verify").json()["first_bad"], *bad);
        }
    }
}

#[test]
fn a_store_that_the_server_refuses_can_still_be_proved() {
    let (_dir, data) = used();
    sqlite3(&data, "CREATE TABLE mine (x)");
    let said = Setup::default().try_start_in(&data).err().expect("no server starts on it");
    assert!(said.contains("damaged") && said.contains("runvoy audit verify --data-dir"), "{said}");
    let found = found_in_files(&data);
    assert_eq!((&found["first_bad"]["entity"], &found["first_bad"]["problem"]), (&json!("STORE"), &json!("altered")), "{found}");
    assert!(found["checked"].as_u64().is_some_and(|checked| checked > 5), "every event was looked at: {found}");
    let nothing = verify_files(&data.join("nothing"), &[]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no store"), "{nothing:?}");
}

#[test]
fn security_15_a_running_server_names_what_was_changed_under_it() {
    let server = Server::start();
    put_group(&server, "ops");
    put_group(&server, "ops");
    let verify = || server.get("/api/v1/audit/verify").json();
    assert_eq!(verify()["ok"], true, "{}", verify());
    let by_cli = server.cli(&["audit", "verify", "--data-dir", server.data.to_str().expect("a path")]);
    assert_eq!(by_cli.status.code(), Some(0), "{}", String::from_utf8_lossy(&by_cli.stderr));
    sqlite3(&server.data, &format!("UPDATE events SET at = at + 1 WHERE entity = {OPS} AND number = 1"));
    let found = verify();
    let bad = &found["first_bad"];
    assert_eq!((&bad["entity"], &bad["number"], &bad["problem"]), (&json!("GROUP:ops"), &json!(1), &json!("altered")), "{found}");
    assert!(bad["event_id"].as_str().is_some_and(|id| id.len() == 32), "{found}");
    let by_cli = server.cli(&["audit", "verify"]);
    assert_eq!(by_cli.status.code(), Some(1), "{}", String::from_utf8_lossy(&by_cli.stdout));
}

#[test]
fn security_15_a_stop_leaves_a_signed_checkpoint_beside_the_store_and_rest_leaves_none() {
    let (_dir, data) = used();
    let first = lines(&data);
    assert_eq!(first.len(), 1, "{first:?}");
    for field in ["number", "time", "up_to", "leaves", "root", "mac"] {
        assert!(!first[0][field].is_null(), "{field}: {}", first[0]);
    }
    // Nothing happens in this life but its start and its end.
    Setup::default().start_in(&data).stop();
    assert_eq!(lines(&data), first);
    let mut server = Setup::default().start_in(&data);
    put_group(&server, "dev");
    server.stop();
    assert_eq!(lines(&data).len(), 2);
    assert!(found_in_files(&data)["checkpoint_at"].is_string());
    // A whole group with all its traces, and the store put right around it: the checkpoints still know of it.
    let of_dev = "(SELECT seq FROM records WHERE kind = 4 AND name = 'dev')";
    sqlite3(&data, &format!("DELETE FROM events WHERE entity_kind = 2 AND entity = {of_dev}; DELETE FROM records WHERE seq = {of_dev}"));
    let found = found_in_files(&data);
    assert_eq!((&found["first_bad"]["entity"], &found["first_bad"]["problem"]), (&json!("LEDGER:only"), &json!("removed")), "{found}");
}

#[test]
fn a_crash_leaves_a_trail_that_is_whole() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    for _ in 0..2 {
        let mut server = Setup::default().start_in(&data);
        put_group(&server, "ops");
        server.run("sleep 100");
        server.kill_9();
        let found = found_in_files(&data);
        assert_eq!(found["ok"], true, "{found}");
    }
    let mut server = Setup::default().start_in(&data);
    assert_eq!(server.get("/api/v1/audit/verify").json()["ok"], true);
    server.stop();
    assert_eq!(found_in_files(&data)["ok"], true);
}

#[test]
fn state_that_does_not_follow_from_the_events_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let mut server = Setup::default().start_in(&data);
    let id = server.run("exit 3");
    server.wait(&id);
    server.run("sleep 100");
    // A healthy store, while it runs, after a crash, and through both ways of asking.
    let online = |server: &Server| server.get("/api/v1/audit/verify?state=true").json();
    let found = online(&server);
    assert_eq!((&found["ok"], &found["first_mismatch"]), (&json!(true), &Value::Null), "{found}");
    // Both executions, and the admin with their key.
    let has_compared = |found: &Value| found["compared"].as_u64().is_some_and(|compared| compared >= 2 + 3);
    assert!(has_compared(&found), "{found}");
    server.kill_9();
    let said = verify_files(&data, &["--state"]);
    let told = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.status.code(), Some(0), "{told}");
    assert!(told.contains("all records agree with it") && told.contains("records compared  "), "{told}");
    let mut server = Setup::default().start_in(&data);
    assert_eq!(online(&server)["ok"], true);
    assert_eq!(server.get("/api/v1/audit/verify").json()["compared"], Value::Null, "only where it is asked for");
    assert_eq!(server.get("/api/v1/audit/verify?state=maybe").status, 400);
    server.stop();
    sqlite3(
        &data,
        &format!("UPDATE executions SET status = 4, state = json_set(state, '$.status', 'SUCCEEDED', '$.exit_code', 0) WHERE id = x'{id}'"),
    );
    let said = verify_files(&data, &["--state", "--json"]);
    let found: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!((said.status.code(), &found["ok"]), (Some(1), &json!(false)), "{found}");
    assert_eq!(
        found["first_mismatch"],
        json!({"entity": format!("TASK:{id}"), "field": "status", "message": "is SUCCEEDED, but the events say FAILED"})
    );
    assert!(has_compared(&found), "{found}");
}

/// A small file system of its own, gone with the value.
struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(dir.path()).status();
        assert!(mounted.expect("mount runs").success(), "this test mounts a tmpfs and needs to be root");
        Self { dir }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.dir.path()).status().ok();
    }
}

#[test]
fn security_16_without_room_for_the_audit_event_a_call_is_refused_and_nothing_runs() {
    let disk = SmallDisk::mount("32m");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let data = disk.dir.path().join("data");
    let server = Setup::default().env("RUNVOY_DISK_RESERVE_BYTES", "4MiB").start_in(&data);
    let actions = || -> Vec<String> {
        let list = server.get("/api/v1/audit?limit=1000").json();
        list.as_array().expect("events").iter().map(|event| event["action"].as_str().expect("an action").to_owned()).collect()
    };
    let before = actions();
    let ballast = disk.dir.path().join("ballast");
    let filled = Command::new("dd").args(["if=/dev/zero", "bs=64k", "status=none"]).arg(format!("of={}", ballast.display())).output();
    assert!(!filled.expect("dd runs").status.success(), "the disk is full");
    let mark = elsewhere.path().join("ran");
    let command = json!({"command": format!("touch {}", mark.display())});
    for (path, body) in [("/api/v1/run", command.clone()), ("/api/v1/groups", json!({"name": "ops", "members": []}))] {
        let refused = server.http().post(path, &body);
        assert_eq!(refused.status, 503, "{path}: {}", refused.text());
    }
    assert_eq!(actions(), before, "no event of what was refused");
    std::fs::remove_file(&ballast).expect("room again");
    let mut id = String::new();
    eventually("calls are taken again", || {
        assert!(!mark.exists(), "what was refused ran");
        let answer = server.http().post("/api/v1/run", &command);
        id = answer.json()["execution_id"].as_str().unwrap_or_default().to_owned();
        answer.status == 202
    });
    assert_eq!(server.wait(&id)["status"], "SUCCEEDED");
    assert!(mark.exists());
    assert_eq!(actions().len(), before.len() + 1);
    assert_eq!(server.get("/api/v1/audit/verify").json()["ok"], true);
}

#[test]
fn a_store_does_not_start_with_an_audit_key_that_is_not_its_own() {
    let mut server = Server::start();
    server.wait(&server.run("true"));
    server.stop();
    std::fs::write(server.data.join("keys/audit.key"), [7; 32]).expect("a file");
    let refused = Setup::default().try_start_in(&server.data).err().expect("it is refused");
    assert!(refused.contains("audit key"), "{refused}");
}
