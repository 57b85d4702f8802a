//! Two servers on one installation: whatever one of them does, the other one knows; and if one dies, the other one goes on.
#![cfg(feature = "aws")]

mod harness;

use std::time::Duration;

use harness::{Server, Setup, aws, eventually, eventually_within};
use serde_json::json;

/// Two servers of one installation, with a key that both know.
fn two() -> (tempfile::TempDir, Server, Server) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let prefix = aws::prefix_of(dir.path());
    let start = |name: &str| Setup { env: aws::environment(&prefix), ..Setup::default() }.start_in(&dir.path().join(name));
    let one = start("one");
    std::fs::create_dir_all(dir.path().join("two")).expect("a directory");
    std::fs::copy(one.data.join("admin.key"), dir.path().join("two/admin.key")).expect("the key");
    let other = start("two");
    (dir, one, other)
}

#[test]
fn what_one_server_takes_the_other_one_knows() {
    let (_dir, one, other) = two();
    let id = one.run("echo from one; sleep 1; echo done");
    assert_eq!(other.wait(&id)["exit_code"], 0);
    assert_eq!(other.raw(&id), b"from one\ndone\n");
    let listed = other.get("/api/v1/executions?limit=5").json();
    assert_eq!(listed[0]["execution_id"], id.as_str(), "{listed}");
    let again = other.http().post("/api/v1/run", &json!({"command": "true"}));
    assert_eq!(again.status, 202);
    assert_eq!(one.wait(again.json()["execution_id"].as_str().expect("an id"))["exit_code"], 0);
}

#[test]
fn a_lock_is_held_across_servers() {
    let (_dir, one, other) = two();
    let holder = one.run_with(json!({"command": "sleep 60", "lock": "prod"}));
    one.wait_until(&holder, "RUNNING");
    let refused = other.http().post("/api/v1/run", &json!({"command": "true", "lock": "prod"}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    let waiting = other.run_with(json!({"command": "echo mine", "lock": "prod", "lock_wait": 60}));
    let killed = other.http().post(&format!("/api/v1/executions/{holder}/kill"), &json!({}));
    assert_eq!(killed.status, 200, "{}", killed.text());
    assert_eq!(one.wait(&holder)["status"], "STOPPED");
    assert_eq!(one.wait(&waiting)["exit_code"], 0);
}

#[test]
fn a_job_goes_on_when_one_of_its_servers_is_killed() {
    let (_dir, mut one, other) = two();
    let tasks: Vec<_> = (0..12).map(|number| json!({"taskId": format!("t{number}"), "command": "sleep 0.3; echo ok"})).collect();
    let last = json!({"taskId": "last", "command": "echo all", "dependsOn": (0..12).map(|n| format!("t{n}")).collect::<Vec<_>>()});
    let tasks: Vec<_> = tasks.into_iter().chain([last]).collect();
    let answer = one.http().post("/api/v1/jobs", &json!({"name": "pair", "tasks": tasks}));
    assert_eq!(answer.status, 201, "{}", answer.text());
    let job = answer.json()["jobId"].as_str().expect("an id").to_owned();
    std::thread::sleep(Duration::from_millis(700));
    one.kill_9();
    let status = || other.get(&format!("/api/v1/jobs/{job}")).json()["status"].clone();
    // What the dead server ran is given up when its leases have lapsed, and tried again.
    eventually_within(Duration::from_secs(180), "the job ends", || status() == "COMPLETED");
}

#[test]
fn a_log_is_followed_across_servers() {
    let (_dir, one, other) = two();
    let id = one.run("for i in 1 2 3 4 5; do echo line $i; sleep 0.4; done");
    one.wait_until(&id, "RUNNING");
    let followed = other.cli(&["logs", "--follow", &id]);
    assert!(followed.status.success(), "{followed:?}");
    let text = String::from_utf8_lossy(&followed.stdout);
    for number in 1..=5 {
        assert!(text.contains(&format!("line {number}")), "{text}");
    }
}

#[test]
fn whoever_is_revoked_on_one_server_is_nobody_on_the_other() {
    let (_dir, one, other) = two();
    let made = one.http().post("/api/v1/users/create", &json!({"email": "eve@example.com", "role": "developer", "confirm": true}));
    assert_eq!(made.status, 201, "{}", made.text());
    let token = made.json()["claim_token"].as_str().expect("a token").to_owned();
    let claimed = other.http().post(&format!("/api/v1/claim/{token}"), &json!({}));
    assert_eq!(claimed.status, 200, "{}", claimed.text());
    let key = claimed.json()["api_key"].as_str().expect("a key").to_owned();
    let as_eve = |server: &Server| harness::http::Http::new(&server.url, Some(&key)).get("/api/v1/executions").status;
    assert_eq!(as_eve(&other), 200);
    let revoked = one.http().post("/api/v1/users/revoke", &json!({"email": "eve@example.com"}));
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    eventually("she is refused", || as_eve(&other) == 401);
}
