//! Jobs from the command line to the processes: real files, real commands, real ends.

mod harness;

use std::path::Path;
use std::process::Output;

use runvoy_ports::memory::DEFAULT_BUDGET_BYTES;
use serde_json::{Value, json};

use self::harness::{Server, Setup, eventually, process};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn written(server: &Server, name: &str, contents: &str) -> String {
    let path = server.data.join(name);
    std::fs::write(&path, contents).expect("written");
    path.display().to_string()
}

/// Submits a file and gives the job's id.
fn submitted(server: &Server, file: &str) -> String {
    let answer = server.cli(&["job", "submit", file]);
    assert_eq!(answer.status.code(), Some(0), "{}", text(&answer.stderr));
    text(&answer.stdout).trim().to_owned()
}

fn job(server: &Server, id: &str) -> Value {
    server.get(&format!("/api/v1/jobs/{id}")).json()
}

fn ended(server: &Server, id: &str, status: &str) -> Value {
    eventually(&format!("the job is {status}"), || job(server, id)["status"] == status);
    job(server, id)
}

fn followed(server: &Server, file: &str) -> Output {
    server.cli(&["job", "submit", file, "--follow"])
}

#[test]
fn tasks_pass_data_on_and_following_ends_with_the_job() {
    let server = Server::start();
    let file = written(
        &server,
        "build.yaml",
        r#"
name: nightly
defaults: {command: "true", timeout: 60}
concurrency: 2
tasks:
  - {taskId: fetch, command: 'echo "{\"rows\": 3, \"usage\": {\"inputTokens\": 7}}" > "$RUNVOY_OUTPUT"'}
  - {taskId: left, dependsOn: [fetch], input: {depth: 2}, command: 'cat "$RUNVOY_INPUT"'}
  - {taskId: right, dependsOn: [fetch]}
  - {taskId: report, dependsOn: [left, right], command: 'echo "$RUNVOY_JOB_ID/$RUNVOY_TASK_ID"'}
"#,
    );
    let answer = followed(&server, &file);
    assert_eq!(answer.status.code(), Some(0), "{}", text(&answer.stderr));
    assert!(text(&answer.stderr).contains("4 done"), "{}", text(&answer.stderr));
    let id = text(&server.cli(&["job", "list", "-o", "name"]).stdout).trim().to_owned();
    let logs = text(&server.cli(&["job", "logs", &id]).stdout);
    let input = r#"left │ {"input":{"depth":2},"dependencyOutputs":{"fetch":{"rows":3,"usage":{"inputTokens":7}}}}"#;
    assert!(logs.contains(input) && logs.contains(&format!("report │ {id}/report")), "{logs}");
    let graph = text(&server.cli(&["job", "graph", &id]).stdout);
    assert!(graph.contains("✓ fetch") && graph.contains("└─ ✓ right"), "{graph}");
    let done = server.get(&format!("/api/v1/events?type=Task%20Completed&entity=TASK:{}", task(&job(&server, &id), "fetch"))).json();
    assert_eq!(done[0]["properties"]["usage"], json!({"inputTokens": 7}), "{done}");
    let silent = server.get(&format!("/api/v1/jobs/{id}/tasks/right/events")).json();
    let mut events = silent.as_array().expect("events").iter();
    assert!(events.all(|event| event["properties"].get("remark").is_none()), "a task that needs no output has no remark: {silent}");
}

/// The newest execution of a task.
fn task(job: &Value, name: &str) -> String {
    let tasks = job["tasks"].as_array().expect("tasks");
    let task = tasks.iter().find(|task| task["taskId"] == name).expect("the task");
    task["executionId"].as_str().expect("an execution").to_owned()
}

#[test]
fn a_large_output_reaches_the_child_and_is_part_of_a_backup() {
    let server = Server::start();
    let big = "{ printf '{\"text\": \"'; head -c 400000 /dev/zero | tr '\\0' x; printf '\"}'; } > \"$RUNVOY_OUTPUT\"";
    let count = "tr -cd x < \"$RUNVOY_INPUT\" | wc -c";
    let body = json!({"tasks": [{"taskId": "big", "command": big}, {"taskId": "count", "dependsOn": ["big"], "command": count}]});
    let made = server.http().post("/api/v1/jobs", &body).json();
    let id = made["jobId"].as_str().expect("an id").to_owned();
    let done = ended(&server, &id, "COMPLETED");
    assert!(done["tasks"][0]["outputBytes"].as_u64().is_some_and(|bytes| bytes > 400_000), "{done}");
    // One x is in the name of a field.
    let counted = text(&server.raw(&task(&done, "count")));
    assert_eq!(counted.trim(), "400001", "{counted}");
    // Where everything is on AWS there are no files to copy.
    if harness::aws::is_asked_for() {
        return;
    }
    let copy = server.data.with_extension("copy");
    let (to, data) = (copy.display().to_string(), server.data.display().to_string());
    let backup = server.cli(&["backup", &to, "--data-dir", &data]);
    assert_eq!(backup.status.code(), Some(0), "{}", text(&backup.stderr));
    assert_eq!(files(&copy.join("blobs")), files(&server.data.join("blobs")));
    assert!(files(&copy.join("blobs")) > 0);
    std::fs::remove_dir_all(&copy).expect("removed");
}

#[test]
fn security_29_eight_of_the_largest_outputs_at_once_share_one_budget() {
    let server = Setup::default().arg("--concurrency").arg("8").start();
    let largest = "{ printf '\"'; head -c 16000000 /dev/zero | tr '\\0' x; printf '\"'; } > \"$RUNVOY_OUTPUT\"";
    let tasks: Vec<Value> = (0..8).map(|n| json!({"taskId": format!("t{n}"), "command": largest})).collect();
    process::reset_peak(server.pid());
    let before = process::memory(server.pid(), "VmRSS");
    let made = server.http().post("/api/v1/jobs", &json!({ "tasks": tasks })).json();
    let done = ended(&server, made["jobId"].as_str().expect("an id"), "COMPLETED");
    for n in 0..8 {
        assert!(done["tasks"][n]["outputBytes"].as_u64().is_some_and(|bytes| bytes > 16_000_000), "{done}");
    }
    // Each output counts three times against the budget that all share (docs/security.md, 29): one
    // of the largest fits at a time. Half as much is for what no budget counts: stacks, caches of
    // the store, and pages that the allocator keeps between two outputs. Without the budget, eight
    // outputs would take 8 × 3 × 16 MiB = 384 MiB.
    let most = u64::try_from(DEFAULT_BUDGET_BYTES + DEFAULT_BUDGET_BYTES / 2).expect("a number of bytes") >> 20;
    let grown = process::memory(server.pid(), "VmHWM").saturating_sub(before) >> 20;
    println!("eight of the largest outputs at once: the peak grew by {grown} MiB");
    assert!(grown <= most, "the peak grew by {grown} MiB, and {most} are allowed");
}

/// How many files there are under a directory.
fn files(root: &Path) -> usize {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

#[test]
fn a_failed_job_is_resumed_and_only_what_failed_or_waited_runs_again() {
    let server = Server::start();
    let door = server.data.join("door");
    let file = written(
        &server,
        "fail.yaml",
        &format!(
            "tasks:\n  - {{taskId: good, command: 'echo ran >> {0}.good'}}\n  - {{taskId: bad, command: 'test -e {0}', retries: 0}}\n  \
             - {{taskId: after, dependsOn: [bad], command: 'echo after'}}\n",
            door.display()
        ),
    );
    let answer = followed(&server, &file);
    assert_eq!(answer.status.code(), Some(1), "{}", text(&answer.stderr));
    assert!(text(&answer.stderr).contains("bad: exit code 1"), "{}", text(&answer.stderr));
    let id = text(&server.cli(&["job", "list", "-o", "name"]).stdout).trim().to_owned();
    std::fs::write(&door, "").expect("written");
    assert_eq!(server.cli(&["job", "resume", &id]).status.code(), Some(0));
    ended(&server, &id, "COMPLETED");
    let runs = std::fs::read_to_string(door.with_extension("good")).expect("it ran");
    assert_eq!(runs, "ran\n", "what was done is not done again");
    let more = written(&server, "more.yaml", "tasks: [{taskId: late, command: 'true'}]\n");
    let late = server.cli(&["job", "add-tasks", &id, &more]);
    assert_eq!(late.status.code(), Some(1), "a completed job takes no more: {}", text(&late.stdout));
}

#[test]
fn cancelling_kills_what_runs_and_starts_nothing_more() {
    let server = Server::start();
    let file = written(
        &server,
        "long.yaml",
        "tasks:\n  - {taskId: long, command: 'sleep 600 & sleep 600', env: {JOB_TEST: cancelled-one}}\n  - {taskId: next, dependsOn: [long], command: 'true'}\n",
    );
    let id = submitted(&server, &file);
    eventually("it runs", || !process::with_env("JOB_TEST=cancelled-one").is_empty());
    assert_eq!(server.cli(&["job", "cancel", &id, "--yes"]).status.code(), Some(0));
    eventually("nothing of it runs", || process::with_env("JOB_TEST=cancelled-one").is_empty());
    let long = task(&job(&server, &id), "long");
    let end = server.wait(&long);
    assert_eq!((&end["status"], &end["exit_code"]), (&json!("STOPPED"), &json!(130)), "{end}");
    let cancelled = job(&server, &id);
    assert_eq!((&cancelled["status"], &cancelled["tasks"][1]["status"]), (&json!("CANCELLED"), &json!("WAITING")));
}

#[test]
fn a_cancel_that_a_crash_cut_off_is_finished_by_the_next_start() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let data = own.path().join("data");
    let mut server = Setup::default().start_in(&data);
    let tasks: Vec<Value> = (0..60).map(|n| json!({"taskId": format!("t{n}"), "command": "sleep 600", "retries": 2})).collect();
    let made = server.http().post("/api/v1/jobs", &json!({"tasks": tasks})).json();
    let id = made["jobId"].as_str().expect("an id").to_owned();
    assert_eq!(server.http().post(&format!("/api/v1/jobs/{id}/cancel"), &json!({})).json()["status"], "CANCELLED");
    server.kill_9();
    let server = Setup::default().start_in(&data);
    eventually("nothing of it is open", || {
        let open = server.get(&format!("/api/v1/executions?job={id}&status=PENDING,STARTING,RUNNING,TERMINATING")).json();
        open == json!([])
    });
}
