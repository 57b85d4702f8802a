//! Jobs, events, queues and health at the command line: what is sent, what is shown, which exit code comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::fake::{Fake, Log, Reply, Seen};
use crate::user::{ID, User, answer, body, finish, text, with_stdin};

const JOB: &str = "0192ab000000700080000000000000aa";
const AT: &str = "2026-01-03T14:22:19.000Z";
const FILE: &str = "name: nightly\ndefaults: {command: make}\ntasks:\n  - {taskId: a, args: [x]}\n  - {taskId: b, dependsOn: [a]}\n";

fn job(status: &str, done: u64) -> Value {
    let second = if status == "COMPLETED" { "SUCCEEDED" } else { "FAILED" };
    let second = if done == 0 { "WAITING" } else { second };
    json!({"jobId": JOB, "name": "nightly", "status": status, "createdAt": AT, "createdBy": "ana@example.com", "totalTasks": 2,
        "taskCounts": {"completed": done, "running": u64::from(done == 0), "waiting": u64::from(done == 0), "failed": u64::from(second == "FAILED")},
        "tasks": [{"taskId": "a", "name": "a", "status": "SUCCEEDED", "executionId": ID, "dependsOn": []},
            {"taskId": "b", "name": "b", "status": second, "dependsOn": ["a"], "end_reason": {"code": "exit", "message": "exit code 2"}}]})
}

/// A job that runs when it is first asked for, and then has ended like this.
fn ending(status: &'static str) -> Fake {
    let asked = Arc::new(AtomicUsize::new(0));
    Fake::new(move |seen| jobs(seen, status, &asked))
}

fn jobs(seen: &Seen, status: &str, asked: &AtomicUsize) -> Reply {
    match (seen.method.as_str(), seen.path().trim_start_matches("/api/v1/")) {
        ("POST", "jobs") => Reply::json(201, json!({"jobId": JOB, "totalTasks": 2, "rootTasks": 1})),
        ("GET", "jobs") => Reply::json(200, json!([job(status, 2)])),
        ("GET", path) if path.starts_with("jobs/0192ab") && asked.fetch_add(1, Ordering::SeqCst) == 0 => {
            Reply::json(200, job("RUNNING", 0))
        }
        ("GET", path) if path.starts_with("jobs/0192ab") => Reply::json(200, job(status, 2)),
        ("GET", path) if path.starts_with("jobs/") => Reply::error(404, "NOT_FOUND", "no such job"),
        ("POST", path) if path.ends_with("/tasks") => Reply::json(200, json!({"jobId": JOB, "addedTasks": 1, "totalTasks": 3})),
        ("POST", path) if path.ends_with("/resume") => {
            Reply::json(200, json!({"jobId": JOB, "status": "RUNNING", "message": "2 tasks run again"}))
        }
        ("POST", path) if path.ends_with("/cancel") => {
            Reply::json(200, json!({"jobId": JOB, "status": "CANCELLED", "message": "cancelled"}))
        }
        ("GET", "events") if seen.parameter("follow").is_some() => match seen.parameter("cursor") {
            None => Reply::Answer(200, Vec::new(), format!("{{\"cursor\":\"c0\"}}\n{}\n", event("Job Completed")).into_bytes()),
            Some(_) => Reply::error(403, "FORBIDDEN", "enough"),
        },
        ("GET", "events") if seen.parameter("cursor").is_none() => {
            let headers = vec![("x-next-cursor", "two".to_owned())];
            Reply::Answer(200, headers, serde_json::to_vec(&json!([event("Task Failed")])).expect("plain data"))
        }
        ("GET", "events") if seen.parameter("type") == Some("Task%20Stopped") => Reply::error(403, "FORBIDDEN", "enough"),
        ("GET", "events") => Reply::json(200, json!([event("Task Pending")])),
        ("GET", "queues") => Reply::json(200, json!([{"name": "default", "depth": 3, "oldest": AT, "in_flight": 1, "dead": 2}])),
        ("GET", "queues/default/dead") => Reply::json(
            200,
            json!([{"execution_id": ID, "queue": "default", "attempts": 3, "error": "exit code 1", "error_category": "network", "failed_at": AT}]),
        ),
        ("POST", "queues/default/redrive") => match body(seen).get("after").and_then(Value::as_str) {
            // Nothing of the first part can run.
            None if body(seen).get("execution_ids").is_none() => Reply::json(
                200,
                json!({"queue": "default", "redriven": [], "refused": [{"execution_id": ID, "error": "lock prod is held"}], "left": 4, "next": "n1"}),
            ),
            None | Some("n2") => {
                Reply::json(200, json!({"queue": "default", "redriven": [{"execution_id": ID, "new_execution_id": "x1"}], "left": 0}))
            }
            Some(_) => Reply::json(
                200,
                json!({"queue": "default", "redriven": [{"execution_id": ID, "new_execution_id": "x2"}], "left": 2, "next": "n2"}),
            ),
        },
        ("POST", "queues/over/redrive") => Reply::json(
            200,
            json!({"queue": "over", "redriven": [], "dropped": [{"execution_id": ID, "error": "job 1 is cancelled"}], "left": 0}),
        ),
        ("POST", "queues/stuck/redrive") => Reply::json(200, json!({"queue": "stuck", "redriven": [], "left": 4, "next": "n1"})),
        ("GET", "health/tasks") => Reply::json(
            200,
            json!({"summary": {"totalProcessing": 1, "overtime": 1}, "tasks": [{"requestId": ID, "health": "overtime", "elapsed": 3_800_000,
                "timeSinceLastEvent": 20_000, "lastEventType": "Task Heartbeat"}]}),
        ),
        ("GET", path) if path.starts_with("health/tasks/") => Reply::json(
            200,
            json!({"requestId": ID, "health": "healthy", "elapsed": 1000, "timeSinceLastEvent": 10, "lastEventType": "Task Heartbeat"}),
        ),
        _ => answer(seen, 0),
    }
}

fn event(kind: &str) -> Value {
    json!({"SK": "TIMESTAMP#1767453739640#EVENT#e1", "entityType": "TASK", "entityId": ID, "eventType": kind, "timestamp": 1_767_453_739_640_u64,
        "properties": {"error": "exit code 2"}, "cursor": "c1"})
}

async fn user(fake: &Fake) -> User {
    let user = User::of(fake).await;
    std::fs::write(user.home.path().join("job.yaml"), FILE).expect("written");
    user
}

#[tokio::test]
async fn a_job_file_is_submitted_and_its_id_is_all_that_is_data() {
    let fake = ending("COMPLETED");
    let user = user(&fake).await;
    let submitted = user.run(&["job", "submit", "job.yaml", "--request-id", "r1"]).await;
    assert_eq!((submitted.status.code(), text(&submitted.stdout)), (Some(0), format!("{JOB}\n")), "{}", text(&submitted.stderr));
    assert!(text(&submitted.stderr).contains("runvoy job graph --follow"), "{}", text(&submitted.stderr));
    let seen = &fake.seen()[0];
    let sent = json!({"name": "nightly", "requestId": "r1", "defaults": {"command": "make"},
        "tasks": [{"taskId": "a", "args": ["x"]}, {"taskId": "b", "dependsOn": ["a"]}]});
    assert_eq!((body(seen), seen.header("idempotency-key")), (sent, Some("r1")));
    let detached = user.run(&["job", "submit", "job.yaml", "--detach"]).await;
    assert_eq!((text(&detached.stdout), text(&detached.stderr)), (format!("{JOB}\n"), String::new()));
    let piped = with_stdin(user.command(&["job", "submit", "-", "--json"]), FILE).await;
    assert_eq!(serde_json::from_slice::<Value>(&piped.stdout).expect("JSON")["rootTasks"], 1);
}

/// Nothing can be written there: the disk is full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn full_disk_names_the_job() {
    let user = user(&ending("COMPLETED")).await;
    let mut command = user.command(&["job", "submit", "job.yaml", "--detach"]);
    command.stdout(std::fs::File::create("/dev/full").expect("a device"));
    let output = tokio::task::spawn_blocking(move || command.stderr(std::process::Stdio::piped()).spawn()?.wait_with_output());
    let output = output.await.expect("it ends").expect("the example is built");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write the output") && stderr.contains(&format!("runvoy job graph --follow {JOB}")), "{stderr}");
}

#[tokio::test]
async fn a_wrong_file_is_told_with_its_place_and_nothing_is_sent() {
    let fake = ending("COMPLETED");
    let user = user(&fake).await;
    let circle = "tasks:\n  - {taskId: a, command: x, dependsOn: [b]}\n  - {taskId: b, command: x, dependsOn: [a]}\n";
    for (file, says) in [
        (circle, "stdin:2:14: tasks depend on each other in a cycle: a → b → a"),
        ("taks: []\n", "stdin:1:1: unknown field taks; did you mean tasks?"),
    ] {
        let refused = with_stdin(user.command(&["job", "submit", "-"]), file).await;
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(says), "{}", text(&refused.stderr));
    }
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn following_returns_zero_only_for_a_job_that_completed() {
    for (status, code) in [("COMPLETED", 0), ("FAILED", 1), ("CANCELLED", 1)] {
        let fake = ending(status);
        let followed = user(&fake).await.run(&["job", "submit", "job.yaml", "--follow"]).await;
        let said = text(&followed.stderr);
        assert_eq!((followed.status.code(), text(&followed.stdout)), (Some(code), String::new()), "{said}");
        assert!(said.contains("0 done · 1 running · 1 waiting · 0 failed") && said.contains(&status.to_ascii_lowercase()), "{said}");
        assert_eq!(said.contains(&format!("runvoy job resume {JOB}")), status == "FAILED", "{said}");
        assert!(
            fake.seen().iter().filter(|seen| seen.method == "GET" && seen.parameter("tasks") == Some("0")).count() >= 2,
            "only counts are polled"
        );
    }
    let json = user(&ending("FAILED")).await.run(&["job", "resume", JOB, "--follow", "--json"]).await;
    assert_eq!(json.status.code(), Some(1));
    assert_eq!(serde_json::from_slice::<Value>(&json.stdout).expect("JSON")["tasks"][1]["status"], "FAILED");
}

#[tokio::test]
async fn a_job_is_shown_drawn_listed_and_moved() {
    let user = user(&ending("FAILED")).await;
    let drawn = user.run(&["job", "graph", "0192ab00"]).await;
    assert_eq!(text(&drawn.stdout), "✓ a  SUCCEEDED\n↓ ✗ b  FAILED · exit code 2\n", "{}", text(&drawn.stderr));
    let live = user.run(&["job", "graph", JOB, "-f"]).await;
    assert_eq!((live.status.code(), text(&live.stdout).as_str()), (Some(1), "a  SUCCEEDED\nb  FAILED\n"));
    assert!(text(&user.run(&["job", "status", JOB]).await.stdout).contains("2: 2 done"));
    assert_eq!(text(&user.run(&["job", "list", "-o", "name", "--status", "failed"]).await.stdout), format!("{JOB}\n"));
    assert_eq!(user.run(&["job", "list", "--status", "lost"]).await.status.code(), Some(2));
    assert!(text(&user.run(&["job", "cancel", JOB]).await.stderr).contains("cancelled"));
    assert!(text(&user.run(&["job", "resume", JOB]).await.stderr).contains("2 tasks run again"));
    let changed = user.run(&["job", "resume", JOB, "--set", "b.command=make -j1"]).await;
    assert!(text(&changed.stderr).contains("2 tasks run again"), "{}", text(&changed.stderr));
    let wrong = user.run(&["job", "resume", JOB, "--set", "b.comand=x"]).await;
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    let added = with_stdin(user.command(&["job", "add-tasks", JOB, "-"]), "- {taskId: c, dependsOn: [a], command: x}\n").await;
    assert!(text(&added.stderr).contains("which now has 3 tasks."), "{}", text(&added.stderr));
    let missing = user.run(&["job", "status", "ffffff"]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("runvoy job list"), "{}", text(&missing.stderr));
}

#[tokio::test]
async fn the_log_of_a_task_is_its_execution_s_and_that_of_a_job_names_its_tasks() {
    let user = user(&ending("FAILED")).await;
    let one = user.run(&["job", "logs", JOB, "a"]).await;
    assert_eq!(one.stdout, b"hello \xff\x1b]0;title\x07\noops\nno newline", "{}", text(&one.stderr));
    let all = user.run(&["job", "logs", JOB, "-f"]).await;
    assert_eq!(all.status.code(), Some(0), "{}", text(&all.stderr));
    assert!(text(&all.stdout).ends_with("a │ oops\na │ no newline\n"), "{}", text(&all.stdout));
    assert!(text(&all.stderr).contains("a │ ### runvoy: started"), "{}", text(&all.stderr));
    let json = user.run(&["job", "logs", JOB, "--json"]).await;
    let first: Value = serde_json::from_str(text(&json.stdout).lines().next().expect("a line")).expect("JSON");
    assert_eq!((first["taskId"].as_str(), first["executionId"].as_str(), first["line"].as_u64()), (Some("a"), Some(ID), Some(1)));
    for (task, says) in [("b", "has no log yet"), ("c", "has no task c")] {
        let none = user.run(&["job", "logs", JOB, task]).await;
        assert_eq!(none.status.code(), Some(1));
        assert!(text(&none.stderr).contains(says), "{}", text(&none.stderr));
    }
}

/// A job whose first tasks say nothing, and whose last one says something, until it was asked for six times.
fn crowded(quiet: &'static str) -> Fake {
    let asked = AtomicUsize::new(0);
    Fake::new(move |seen| {
        let over = asked.load(Ordering::SeqCst) >= 6;
        let status = if over { "SUCCEEDED" } else { quiet };
        match seen.path().trim_start_matches("/api/v1/") {
            path if path.starts_with("jobs/") => {
                let over = asked.fetch_add(1, Ordering::SeqCst) >= 5;
                let task = |n: usize| {
                    let (execution, status) = if n == 40 { (ID.to_owned(), "RUNNING") } else { (format!("quiet{n}"), quiet) };
                    json!({"taskId": format!("t{n}"), "name": "t", "executionId": execution, "dependsOn": [], "status": if over { "SUCCEEDED" } else { status }})
                };
                let status = if over { "COMPLETED" } else { "RUNNING" };
                let tasks: Vec<Value> = (0..=40).map(task).collect();
                Reply::json(200, json!({"jobId": JOB, "status": status, "createdAt": AT, "totalTasks": 41, "tasks": tasks}))
            }
            path if path.contains(ID) => answer(seen, 0),
            path if path.ends_with("/stream") => Reply::WebSocket(Vec::new()),
            _ if seen.parameter("format").is_some() => Reply::Answer(200, Vec::new(), Vec::new()),
            path => Log { id: path.split('/').nth(1).unwrap_or_default().to_owned(), lines: Vec::new() }.logs(status),
        }
    })
}

#[tokio::test]
async fn a_task_that_runs_is_heard_however_many_others_say_nothing() {
    let follow = async |quiet: &'static str| {
        let fake = crowded(quiet);
        let shown = user(&fake).await.run(&["job", "logs", JOB, "-f"]).await;
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
        assert!(text(&shown.stdout).contains("t40 │ oops\n"), "{}", text(&shown.stdout));
        let seen: Vec<String> = fake.seen().iter().map(|seen| seen.path().to_owned()).collect();
        let last_look = seen.iter().rposition(|path| path.contains("/jobs/")).expect("it was asked for");
        assert!(seen[..last_look].iter().any(|path| path.contains(ID)), "it was heard only when all was over: {seen:?}");
        let waited_for = seen[..last_look].iter().any(|path| path.contains("quiet"));
        assert_eq!(waited_for, quiet == "RUNNING", "{seen:?}");
    };
    tokio::join!(follow("PENDING"), follow("RUNNING"));
}

#[tokio::test]
async fn events_are_asked_for_by_page_and_followed() {
    let fake = ending("COMPLETED");
    let user = user(&fake).await;
    let shown = user
        .run(&["events", "--type", "Task Failed", "--entity", &format!("task:{ID}"), "--from", "1970-01-01T00:00:00Z", "--limit", "0"])
        .await;
    let lines = text(&shown.stdout);
    assert!(lines.contains("Task Failed") && lines.contains("Task Pending") && lines.contains("error=exit code 2"), "{lines}");
    let seen = &fake.seen()[0];
    assert_eq!((seen.parameter("entity"), seen.parameter("order")), (Some(format!("TASK%3A{ID}").as_str()), Some("desc")));
    assert_eq!(seen.parameter("from"), Some("1970-01-01T00%3A00%3A00.000Z"));
    let whole = user.run(&["events", "--json", "--limit", "0"]).await;
    let events: Value = serde_json::from_str(&text(&whole.stdout)).expect("one array");
    assert_eq!((events[0]["eventType"].as_str(), events[1]["eventType"].as_str()), (Some("Task Failed"), Some("Task Pending")));
    let array = serde_json::to_string_pretty(&events).expect("plain data") + "\n";
    assert_eq!(text(&whole.stdout), array, "written as one");
    for format in ["json", "name"] {
        let broken = user.run(&["events", "--type", "Task Stopped", "--output", format, "--limit", "0"]).await;
        assert!(broken.status.code() != Some(0) && !broken.stdout.is_empty(), "a page is shown when it is there: {format}");
    }
    let followed = user.run(&["events", "follow", "--json"]).await;
    assert_eq!(followed.status.code(), Some(1));
    let event: Value = serde_json::from_str(text(&followed.stdout).trim()).expect("one line");
    assert_eq!((event["eventType"].as_str(), event.get("cursor")), (Some("Job Completed"), None));
    assert_eq!(user.run(&["events", "--entity", "0192"]).await.status.code(), Some(2));
}

#[tokio::test]
async fn queues_and_health_are_shown_and_what_was_given_up_is_run_again() {
    let fake = ending("COMPLETED");
    let user = user(&fake).await;
    assert!(text(&user.run(&["queues", "list"]).await.stdout).contains("default  3"));
    assert!(text(&user.run(&["queues", "dead", "default"]).await.stdout).contains("network   exit code 1"));
    assert_eq!(user.run(&["queues", "redrive", "default"]).await.status.code(), Some(2), "everything needs --yes");
    let one = user.run(&["queues", "redrive", "default", "--task", ID]).await;
    assert!(text(&one.stderr).contains("Queued 1 execution again in default."), "{}", text(&one.stderr));
    assert_eq!(body(fake.seen().last().expect("a request")), json!({"execution_ids": [ID]}));
    let all = user.run(&["queues", "redrive", "default", "--yes"]).await;
    assert_eq!(body(fake.seen().last().expect("a request")), json!({"after": "n2"}), "to the end, also past those that cannot");
    assert_eq!(all.status.code(), Some(1));
    let said = text(&all.stderr);
    assert!(
        said.contains("Queued 2 executions again in default.") && said.contains("lock prod is held") && !said.contains(" left: repeat"),
        "{said}"
    );
    let over = user.run(&["queues", "redrive", "over", "--yes"]).await;
    assert_eq!(over.status.code(), Some(0), "what never can run again is no failure");
    assert!(text(&over.stderr).contains("is dropped: job 1 is cancelled"), "{}", text(&over.stderr));
    let asked = fake.seen().len();
    let stuck = user.run(&["queues", "redrive", "stuck", "--yes"]).await;
    assert!(fake.seen().len() < asked + 4, "a server that does not move on is not asked for ever");
    assert!(text(&stuck.stderr).contains("4 dead letters left"), "{}", text(&stuck.stderr));
    let health = user.run(&["health", "tasks"]).await;
    assert_eq!(health.status.code(), Some(1));
    assert!(text(&health.stdout).contains("overtime  1h 03m"), "{}", text(&health.stdout));
    assert_eq!(user.run(&["health", "tasks", ID]).await.status.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_terminal_sees_the_tree_drawn_anew() {
    let user = user(&ending("COMPLETED")).await;
    let inner = user.command(&[]);
    let mut command = std::process::Command::new("script");
    command.args(["-qefc", &format!("{} job graph --follow {JOB}", inner.get_program().display()), "/dev/null"]);
    command
        .current_dir(user.home.path())
        .env_clear()
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .env("PATH", "/usr/bin:/bin")
        .env("NO_COLOR", "1");
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(std::process::Stdio::null());
    let output = finish(command).await;
    let shown = text(&output.stdout).replace("\r\n", "\n");
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("↓ · b  WAITING") && shown.contains("\x1b[3A\r\x1b[J✓ a  SUCCEEDED\n↓ ✓ b  SUCCEEDED"), "{shown:?}");
}

/// A job of two tasks with the same log; the second of them failed.
fn logged(seen: &Seen) -> Reply {
    const FAILED: &str = "0192ab00000070008000000000000002";
    match seen.path().trim_start_matches("/api/v1/") {
        path if path.starts_with("jobs/") => {
            let mut job = job("FAILED", 2);
            job["tasks"][1]["executionId"] = FAILED.into();
            Reply::json(200, job)
        }
        path if path.ends_with("/logs/search") => {
            let is_hit = path.contains(FAILED) && seen.parameter("q") == Some("oops");
            let hits = if is_hit { vec![json!({"line": 3, "message": "oops"})] } else { Vec::new() };
            Reply::json(200, json!({"total": hits.len(), "hits": hits, "next_line": null}))
        }
        _ => answer(seen, 1),
    }
}

#[tokio::test]
async fn the_logs_of_a_job_are_cut_searched_and_narrowed_to_what_failed() {
    let user = User::of(&Fake::new(logged)).await;
    for (words, code, expected) in [
        (&["--tail", "2"][..], 0, "a │ oops\na │ no newline\nb │ oops\nb │ no newline\n"),
        (&["--tail", "2", "-f"], 0, "oops"),
        (&["--tail", "2", "--failed"], 0, "b │ oops\nb │ no newline\n"),
        (&["a", "--tail", "2"], 0, "oops\nno newline"),
        (&["--search", "oops"], 0, "b │ oops\n"),
        (&["--search", "oops", "--failed"], 0, "b │ oops\n"),
        (&["a", "--search", "oops"], 1, ""),
        (&["--search", "none"], 1, ""),
        (&["--search", "oops", "--tail", "2"], 2, ""),
        (&["a", "--failed"], 2, ""),
    ] {
        let output = user.run(&[&["job", "logs", JOB][..], words].concat()).await;
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output.stderr));
        let shown = text(&output.stdout);
        if words.contains(&"-f") {
            assert_eq!((shown.matches("oops").count(), shown.contains("hello")), (2, false), "{words:?}: {shown}");
        } else {
            assert_eq!(shown, expected, "{words:?}");
        }
    }
    let json = user.run(&["job", "logs", JOB, "--search", "oops", "--json"]).await;
    let hit: Value = serde_json::from_slice(&json.stdout).expect("one object");
    assert_eq!((hit["taskId"].as_str(), hit["line"].as_u64()), (Some("b"), Some(3)), "{hit}");
}
