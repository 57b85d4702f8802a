//! Jobs over HTTP: what is taken and what is refused, who sees what, and how they move.

use std::sync::Arc;

use http::StatusCode;
use runvoy_engine::{Dispatcher, LocalLeases};
use runvoy_model::command::Fence;
use runvoy_model::id::{LeaseId, StepId};
use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_ports::lease::{LeaseError, Leases as _};
use runvoy_ports::store::ExecutionStore as _;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp};
use crate::people::join;

fn task(id: &str, parents: &[&str]) -> Value {
    json!({"taskId": id, "dependsOn": parents, "command": format!("echo {id}")})
}

async fn submit_as(app: &TestApp, role: Role, body: &Value) -> Answer {
    app.post("/api/v1/jobs").role(role).json(body).send().await
}

/// Submits a job of a developer and returns its id.
async fn submitted(app: &TestApp, tasks: &[Value]) -> String {
    let answer = submit_as(app, Role::Developer, &json!({"name": "nightly", "tasks": tasks})).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()["jobId"].as_str().expect("an id").to_owned()
}

async fn job(app: &TestApp, id: &str) -> Value {
    let answer = app.get(&format!("/api/v1/jobs/{id}")).role(Role::Developer).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

fn statuses(job: &Value) -> Vec<String> {
    let tasks = job["tasks"].as_array().expect("tasks");
    tasks.iter().map(|task| format!("{} {}", task["taskId"].as_str().expect("an id"), task["status"].as_str().expect("a status"))).collect()
}

async fn refused(app: &TestApp, body: Value) -> String {
    let answer = submit_as(app, Role::Developer, &body).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
    answer.json()["error"].as_str().expect("details").to_owned()
}

#[tokio::test]
async fn a_job_runs_in_the_order_of_its_graph_and_completes() {
    let app = TestApp::new().await;
    let tasks = [task("a", &[]), task("b", &["a"]), task("c", &["a"]), task("d", &["b", "c"])];
    let answer = submit_as(&app, Role::Developer, &json!({"name": "nightly", "tasks": tasks, "concurrency": 5})).await.json();
    assert_eq!((&answer["totalTasks"], &answer["rootTasks"]), (&json!(4), &json!(1)));
    let id = answer["jobId"].as_str().expect("an id").to_owned();
    assert_eq!(statuses(&job(&app, &id).await), ["a PENDING", "b WAITING", "c WAITING", "d WAITING"]);
    app.play().await.exit(0).await;
    assert_eq!(statuses(&job(&app, &id).await), ["a SUCCEEDED", "b PENDING", "c PENDING", "d WAITING"]);
    for _ in 0..3 {
        app.play().await.exit(0).await;
    }
    let done = job(&app, &id).await;
    assert_eq!(
        (&done["status"], &done["name"], &done["createdBy"]),
        (&json!("COMPLETED"), &json!("nightly"), &json!("developer@example.com"))
    );
    assert_eq!(done["taskCounts"], json!({"waiting": 0, "running": 0, "completed": 4, "failed": 0}));
    let counts = app.get(&format!("/api/v1/jobs/{id}?tasks=0")).role(Role::Developer).send().await.json();
    assert!(counts.get("tasks").is_none() && counts["totalTasks"] == 4, "{counts}");
    let executions = app.get(&format!("/api/v1/executions?job={id}")).role(Role::Developer).send().await.json();
    assert_eq!(executions.as_array().map(Vec::len), Some(4));
    let part = app.get(&format!("/api/v1/jobs/{}", &id[24..])).role(Role::Developer).send().await.json();
    assert_eq!(part["jobId"], id.as_str(), "the end of an id is enough");
}

#[tokio::test]
async fn what_is_wrong_is_named_and_nothing_is_written() {
    let app = TestApp::new().await;
    let circle = refused(&app, json!({"tasks": [task("a", &["c"]), task("b", &["a"]), task("c", &["b"])]})).await;
    assert!(circle.contains("cycle") && circle.matches('→').count() == 3, "{circle}");
    assert!(refused(&app, json!({"tasks": [task("a", &["x"])]})).await.contains("task a depends on x"));
    assert!(refused(&app, json!({"tasks": [task("a", &[]), task("a", &[])]})).await.contains("task a is defined twice"));
    assert!(refused(&app, json!({"tasks": [task("a", &[]), task("b", &["a", "a"])]})).await.contains("lists a twice"));
    assert!(refused(&app, json!({"tasks": []})).await.contains("1 to 20000 tasks"));
    assert!(refused(&app, json!({"tasks": [{"taskId": "a"}]})).await.contains("tasks[0].command"));
    assert!(refused(&app, json!({"tasks": [{"taskId": "a", "command": "true", "timeout": 0}]})).await.contains("tasks[0].timeout"));
    assert!(refused(&app, json!({"tasks": [{"taskId": "a b", "command": "true"}]})).await.contains("taskId"));
    assert!(refused(&app, json!({"tasks": [{"taskId": "a", "command": "true", "dependson": []}]})).await.contains("dependson"));
    assert!(refused(&app, json!({"concurrency": 0, "tasks": [task("a", &[])]})).await.contains("concurrency"));
    assert_eq!(app.get("/api/v1/jobs").admin().send().await.json(), json!([]));
    assert_eq!(submit_as(&app, Role::Viewer, &json!({"tasks": [task("a", &[])]})).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn defaults_hold_where_a_task_says_nothing() {
    let app = TestApp::new().await;
    let body = json!({
        "defaults": {"command": "make", "args": ["all"], "env": {"A": "1", "B": "1"}, "retries": 0, "timeout": 5},
        "tasks": [{"taskId": "a", "env": {"B": "2"}}, {"taskId": "b", "command": "true", "timeout": 9}],
    });
    assert_eq!(submit_as(&app, Role::Developer, &body).await.status, StatusCode::CREATED);
    let first = app.play().await.execution.spec;
    assert_eq!((first.command.as_str(), first.args, first.timeout_ms, first.retries), ("make", Some(vec!["all".into()]), Some(5_000), 0));
    assert_eq!((first.env["A"].as_str(), first.env["B"].as_str()), ("1", "2"));
    let second = app.play().await.execution.spec;
    assert_eq!((second.command.as_str(), second.args, second.timeout_ms), ("true", None, Some(9_000)));
}

#[tokio::test]
async fn defaults_that_would_make_a_large_job_of_a_small_body_are_refused_before_they_are_copied() {
    let app = TestApp::new().await;
    let tasks: Vec<Value> = (0..700).map(|n| json!({"taskId": format!("t{n}")})).collect();
    let defaults = json!({"command": "true", "env": {"A": "x".repeat(100_000)}});
    let large = refused(&app, json!({"defaults": defaults, "tasks": tasks})).await;
    assert!(large.contains("of 700 tasks come to more than 64 MiB"), "{large}");
    let id = submitted(&app, &[task("a", &[])]).await;
    let add = app.post(&format!("/api/v1/jobs/{id}/tasks")).role(Role::Developer).json(&json!({"defaults": defaults, "tasks": tasks}));
    let added = add.send().await;
    assert!(added.status == StatusCode::BAD_REQUEST && added.text().contains("of 700 tasks"), "{}", added.text());
    let many: Vec<Value> = (0..20_001).map(|n| json!({"taskId": format!("t{n}")})).collect();
    // Nothing of it was looked at: not one has a command.
    assert!(refused(&app, json!({"tasks": many})).await.contains("not 20001"));
    assert!(refused(&app, json!({"tasks": [{"taskId": "a", "dependsOn": ["x"]}]})).await.contains("depends on x"), "the shape comes first");
    let whole: serde_json::Map<String, Value> = (0..11).map(|n| (format!("V{n}"), json!("x".repeat(100_000)))).collect();
    let start = refused(&app, json!({"tasks": [{"taskId": "a", "command": "true", "env": whole}]})).await;
    assert!(start.contains("tasks[0].env") && start.contains("1048576"), "{start}");
}

#[tokio::test]
async fn the_same_key_is_the_same_job_and_another_request_with_it_is_refused() {
    let app = TestApp::new().await;
    let send = |body: Value| app.post("/api/v1/jobs").role(Role::Developer).header("Idempotency-Key", "night-1").json(&body).send();
    let body = json!({"tasks": [task("a", &[]), task("b", &["a"])]});
    let first = send(body.clone()).await.json();
    let second = send(body.clone()).await;
    assert_eq!((second.status, second.json()), (StatusCode::CREATED, first.clone()));
    assert_eq!(send(json!({"tasks": [task("a", &[])]})).await.status, StatusCode::CONFLICT);
    let as_request_id = json!({"requestId": "night-2", "tasks": [task("a", &[])]});
    let one = submit_as(&app, Role::Developer, &as_request_id).await.json();
    assert_eq!(submit_as(&app, Role::Developer, &as_request_id).await.json(), one);
    assert_eq!(app.get("/api/v1/jobs").admin().send().await.json().as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_failed_job_tells_which_task_and_can_be_resumed_once_for_each_key() {
    let app = TestApp::new().await;
    let mut bad = task("a", &[]);
    bad["retries"] = json!(0);
    let id = submitted(&app, &[bad, task("b", &["a"])]).await;
    app.play().await.exit(3).await;
    let failed = job(&app, &id).await;
    assert_eq!((&failed["status"], &failed["failedTaskId"]), (&json!("FAILED"), &json!("a")));
    let resume = || app.post(&format!("/api/v1/jobs/{id}/resume")).role(Role::Developer).header("Idempotency-Key", "again").send();
    assert_eq!(resume().await.json()["status"], "RUNNING");
    app.play().await.exit(0).await;
    app.play().await.exit(0).await;
    assert_eq!(job(&app, &id).await["status"], "COMPLETED");
    assert_eq!(resume().await.status, StatusCode::OK, "a repeat is answered, whatever came of it since");
    let unkeyed = app.post(&format!("/api/v1/jobs/{id}/resume")).role(Role::Developer).send().await;
    assert_eq!(unkeyed.status, StatusCode::CONFLICT, "{}", unkeyed.text());
}

async fn resumed(app: &TestApp, id: &str, key: &'static str, body: &Value) -> Answer {
    let ask = app.post(&format!("/api/v1/jobs/{id}/resume")).role(Role::Developer).header("Idempotency-Key", key);
    ask.json(body).send().await
}

/// A job whose first task failed, and whose second waits for it.
async fn failed(app: &TestApp) -> String {
    let mut bad = task("a", &[]);
    bad["retries"] = json!(0);
    let id = submitted(app, &[bad, task("b", &["a"])]).await;
    app.play().await.exit(3).await;
    id
}

#[tokio::test]
async fn a_resume_changes_what_a_failed_task_runs_and_keeps_both_versions() {
    let app = TestApp::new().await;
    let id = failed(&app).await;
    let body = json!({"tasks": [{"taskId": "a", "command": "make -j1"}, {"taskId": "b", "env": {"X": "1"}}]});
    let answer = resumed(&app, &id, "k1", &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(resumed(&app, &id, "k1", &body).await.json(), answer.json(), "a repeat is answered");
    let other = resumed(&app, &id, "k1", &json!({"tasks": [{"taskId": "a", "command": "other"}]})).await;
    assert_eq!(other.status, StatusCode::CONFLICT, "the key was used for another change");
    let shown = job(&app, &id).await;
    let revision = json!({"generation": 2, "command": "make -j1", "originalCommand": "echo a"});
    assert_eq!(shown["tasks"][0]["revision"], revision);
    let execution = shown["tasks"][0]["executionId"].as_str().expect("an id");
    let execution = app.get(&format!("/api/v1/executions/{execution}")).role(Role::Developer).send().await.json();
    assert_eq!(execution["command"], "make -j1", "{execution}");
    for _ in 0..2 {
        app.play().await.exit(0).await;
    }
    assert_eq!(job(&app, &id).await["status"], "COMPLETED");
    let trail = app.get("/api/v1/audit?action=jobs.resume").admin().send().await;
    let told = json!({"taskId": "a", "fields": ["command"], "from": {"command": "echo a"}, "to": {"command": "make -j1"}});
    assert!(trail.text().contains(&told.to_string()), "{}", trail.text());
}

#[tokio::test]
async fn a_change_is_judged_like_a_submitted_task() {
    let app = TestApp::new().await;
    let id = failed(&app).await;
    let rule = json!({"name": "no-rm", "effect": "deny", "commands": ["rm *"]});
    assert!(app.post("/api/v1/rules").admin().json(&rule).send().await.status.is_success());
    for (change, status, says) in [
        (json!({"taskId": "a", "command": "rm x"}), StatusCode::FORBIDDEN, "task a"),
        (json!({"taskId": "a", "secrets": ["nosuch"]}), StatusCode::BAD_REQUEST, "tasks.a.secrets"),
        (json!({"taskId": "a", "timeout": 0}), StatusCode::BAD_REQUEST, "tasks.a.timeout"),
        (json!({"taskId": "a", "replace": true}), StatusCode::BAD_REQUEST, "tasks.a.command"),
        (json!({"taskId": "nosuch", "command": "x"}), StatusCode::NOT_FOUND, "nosuch"),
        (json!({"taskId": "a", "dependsOn": ["b"]}), StatusCode::BAD_REQUEST, "dependsOn"),
    ] {
        let answer = resumed(&app, &id, "k", &json!({"tasks": [change]})).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(says), "{says}: {}", answer.text());
    }
    assert_eq!(job(&app, &id).await["status"], "FAILED", "a refused change resumes nothing");
}

#[tokio::test]
async fn a_task_that_is_done_is_not_changed_and_the_answer_says_why() {
    let app = TestApp::new().await;
    let id = submitted(&app, &[task("a", &[]), task("b", &["a"])]).await;
    app.play().await.exit(0).await;
    app.play().await.exit(64).await;
    let body = json!({"tasks": [{"taskId": "a", "command": "x"}, {"taskId": "b", "command": "y"}]});
    let answer = resumed(&app, &id, "k1", &body).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    let told = answer.json();
    assert!(told["error"].as_str().is_some_and(|error| error.contains("task a is completed")), "{told}");
    assert!(told["details"].as_str().is_some_and(|details| details.contains("leave the task out")), "{told}");
    // A task as it was is no change: an edited job file has all of them.
    let body = json!({"tasks": [{"taskId": "a", "command": "echo a", "replace": true}, {"taskId": "b", "command": "y", "replace": true}]});
    let answer = resumed(&app, &id, "k2", &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(job(&app, &id).await["tasks"][1]["revision"]["command"], "y");
}

#[tokio::test]
async fn tasks_can_be_added_while_a_job_is_open() {
    let app = TestApp::new().await;
    let id = submitted(&app, &[task("a", &[])]).await;
    let add = |tasks: Value, key: &'static str| {
        app.post(&format!("/api/v1/jobs/{id}/tasks"))
            .role(Role::Developer)
            .header("Idempotency-Key", key)
            .json(&json!({"tasks": tasks}))
            .send()
    };
    let more = json!([task("b", &["a"]), task("c", &["b"])]);
    let added = add(more.clone(), "k1").await;
    assert_eq!(added.json(), json!({"jobId": id, "addedTasks": 2, "totalTasks": 3}), "{}", added.text());
    assert_eq!(add(more, "k1").await.status, StatusCode::OK, "a repeat adds nothing");
    assert_eq!(add(json!([task("b", &[])]), "k2").await.status, StatusCode::BAD_REQUEST, "a name is taken once");
    for _ in 0..3 {
        app.play().await.exit(0).await;
    }
    assert_eq!(job(&app, &id).await["status"], "COMPLETED");
    assert_eq!(add(json!([task("d", &[])]), "k3").await.status, StatusCode::CONFLICT, "it is closed");
}

#[tokio::test]
async fn a_cancelled_job_starts_nothing_more_and_what_waits_is_stopped() {
    let app = TestApp::new().await;
    let id = submitted(&app, &[task("a", &[]), task("b", &[]), task("c", &["a"])]).await;
    let running = app.play().await;
    let cancel = || app.post(&format!("/api/v1/jobs/{id}/cancel")).role(Role::Developer).send();
    assert_eq!(cancel().await.json()["status"], "CANCELLED");
    // A dispatcher that looked a moment before the cancel goes on with what it saw.
    let step = Step::system(StepId(app.engine.ports().ids.next_id()), app.engine.now(), "test");
    app.store.advance_job(step, id.parse().expect("an id")).await.expect("a memory store");
    Dispatcher::new(Arc::clone(&app.engine)).look().await.expect("a memory store");
    assert_eq!(statuses(&job(&app, &id).await), ["a TERMINATING", "b STOPPED", "c WAITING"]);
    running.exit(0).await;
    let ended = job(&app, &id).await;
    assert_eq!(ended["status"], "CANCELLED");
    assert_eq!(statuses(&ended)[2], "c WAITING", "nobody releases it");
    let stopped = ended["tasks"][1]["end_reason"]["message"].as_str().expect("a reason").to_owned();
    assert!(stopped.contains("developer@example.com"), "{stopped}");
    assert_eq!(cancel().await.status, StatusCode::OK, "cancelled is cancelled");
}

#[tokio::test]
async fn what_is_not_yours_is_not_there() {
    let app = TestApp::new().await;
    let id = submitted(&app, &[task("a", &[])]).await;
    let key = join(&app, "eve@example.com", "developer").await;
    let as_eve = |method: &str, path: &str| {
        let ask = if method == "GET" { app.get(path) } else { app.post(path) };
        let body = if path.ends_with("/resume") { json!({}) } else { json!({"tasks": [task("z", &[])]}) };
        ask.header("X-API-Key", &key).json(&body).send()
    };
    for (method, path) in [("GET", ""), ("POST", "/tasks"), ("POST", "/resume"), ("POST", "/cancel")] {
        let answer = as_eve(method, &format!("/api/v1/jobs/{id}{path}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}: {}", answer.text());
    }
    assert_eq!(as_eve("GET", "/api/v1/jobs").await.json(), json!([]));
    assert_eq!(as_eve("GET", "/api/v1/jobs?user=developer@example.com").await.json(), json!([]));
    assert_eq!(app.get(&format!("/api/v1/jobs/{id}")).role(Role::Viewer).send().await.status, StatusCode::OK);
    assert_eq!(app.post(&format!("/api/v1/jobs/{id}/cancel")).role(Role::Viewer).send().await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.post(&format!("/api/v1/jobs/{id}/cancel")).role(Role::Operator).send().await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_rule_holds_for_every_task_and_the_one_it_forbids_is_named() {
    let app = TestApp::new().await;
    let rule = json!({"name": "no-rm", "effect": "deny", "commands": ["rm *"]});
    assert!(app.post("/api/v1/rules").admin().json(&rule).send().await.status.is_success());
    let body = json!({"tasks": [task("a", &[]), {"taskId": "b", "command": "rm x"}]});
    let answer = submit_as(&app, Role::Developer, &body).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.text().contains("task b"), "{}", answer.text());
    assert_eq!(app.get("/api/v1/jobs").admin().send().await.json(), json!([]));
}

#[tokio::test]
async fn pages_of_jobs_have_all_of_them_once() {
    let app = TestApp::new().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(submitted(&app, &[task("a", &[])]).await);
    }
    made.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let after = if cursor.is_empty() { String::new() } else { format!("&cursor={cursor}") };
        let page = app.get(&format!("/api/v1/jobs?limit=2{after}")).role(Role::Developer).send().await;
        seen.extend(page.json().as_array().expect("jobs").iter().map(|job| job["jobId"].as_str().expect("an id").to_owned()));
        cursor = page.header("x-next-cursor").to_owned();
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(seen, made);
    let running = app.get("/api/v1/jobs?status=RUNNING,").role(Role::Developer).send().await.json();
    assert_eq!(running.as_array().map(Vec::len), Some(5), "an empty word is none");
    let completed = app.get("/api/v1/jobs?status=COMPLETED,FAILED").role(Role::Developer).send().await.json();
    assert_eq!(completed, json!([]));
}

#[tokio::test]
async fn a_large_job_is_whole_before_anything_of_it_runs() {
    let app = TestApp::new().await;
    let mut tasks = vec![task("first", &[])];
    tasks.extend((0..300).map(|n| task(&format!("t{n}"), &["first"])));
    let all: Vec<String> = (0..300).map(|n| format!("t{n}")).collect();
    tasks.push(task("last", &all.iter().map(String::as_str).collect::<Vec<_>>()));
    let id = submitted(&app, &tasks).await;
    let dispatcher = Dispatcher::new(Arc::clone(&app.engine));
    for _ in 0..302 {
        dispatcher.look().await.expect("a memory store");
        app.play().await.exit(0).await;
    }
    let done = job(&app, &id).await;
    assert_eq!((&done["status"], done["tasks"].as_array().map(Vec::len)), (&json!("COMPLETED"), Some(302)));
}

#[tokio::test]
async fn a_task_is_given_its_input_and_what_its_parents_gave() {
    let app = TestApp::new().await;
    let mut second = task("b", &["a"]);
    second["input"] = json!({"style": "modern"});
    submitted(&app, &[task("a", &[]), second]).await;
    app.play().await.gives(json!({"colour": "red"})).await;
    let materials = app.play().await.materials().await.expect("a lease that holds");
    let input: Value = serde_json::from_slice(&materials.input.expect("an input")).expect("JSON");
    assert_eq!(input, json!({"input": {"style": "modern"}, "dependencyOutputs": {"a": {"colour": "red"}}}));
}

#[tokio::test]
async fn a_task_is_given_large_and_small_outputs_of_many_parents() {
    let app = TestApp::new().await;
    let names: Vec<String> = (0..130).map(|n| format!("t{n}")).collect();
    let mut tasks: Vec<Value> = names.iter().map(|name| task(name, &[])).collect();
    let mut last = task("last", &names.iter().map(String::as_str).collect::<Vec<_>>());
    last["input"] = json!({"wide": "x".repeat(300_000)});
    tasks.push(last.clone());
    submitted(&app, &tasks).await;
    let mut outputs = serde_json::Map::new();
    let dispatcher = Dispatcher::new(Arc::clone(&app.engine));
    for n in 0..names.len() {
        dispatcher.look().await.expect("a memory store");
        let played = app.play().await;
        let name = played.execution.spec.task.as_ref().expect("a task").task.to_string();
        let output = if n % 50 == 7 { json!({"n": n, "wide": "y".repeat(300_000)}) } else { json!(n) };
        match n % 50 {
            7 => drop(played.gives_large(&output).await),
            9 => drop(played.exit(0).await),
            _ => drop(played.gives(output.clone()).await),
        }
        outputs.insert(name, if n % 50 == 9 { Value::Null } else { output });
    }
    dispatcher.look().await.expect("a memory store");
    let free = || app.engine.memory().free_bytes();
    let before = free();
    let mut materials = app.play().await.materials().await.expect("a lease that holds");
    let document = materials.input.take().expect("an input");
    assert!(free() + document.len() <= before, "security 29: its memory is reserved");
    drop(materials);
    assert_eq!(free(), before);
    let input: Value = serde_json::from_slice(&document).expect("JSON");
    assert!(input == json!({"input": last["input"], "dependencyOutputs": outputs}), "another document");
}

#[tokio::test]
async fn only_who_holds_the_lease_keeps_an_output() {
    let app = TestApp::new().await;
    submitted(&app, &[task("a", &[])]).await;
    let played = app.play().await;
    let execution = played.execution.clone();
    let leases = LocalLeases::new(Arc::clone(&app.engine));
    let lease = execution.lease.as_ref().expect("it was leased").id;
    let fence = Fence { execution: execution.id, attempt: execution.attempt, lease };
    for wrong in [Fence { attempt: fence.attempt + 1, ..fence }, Fence { lease: LeaseId::from_bytes([9; 16]), ..fence }] {
        assert!(matches!(leases.put_blob(wrong, b"{}".to_vec()).await, Err(LeaseError::Lost(_))));
    }
    leases.put_blob(fence, b"{}".to_vec()).await.expect("its own");
    played.exit(0).await;
    assert!(matches!(leases.put_blob(fence, b"[]".to_vec()).await, Err(LeaseError::Lost(_))), "it ended");
}

#[tokio::test]
async fn revoking_with_kill_cancels_the_jobs_too() {
    let app = TestApp::new().await;
    let id = submitted(&app, &[task("a", &[]), task("b", &["a"])]).await;
    let body = json!({"email": "developer@example.com", "kill": true});
    let answer = app.post("/api/v1/users/revoke").admin().json(&body).send().await.json();
    assert_eq!((&answer["cancelled_jobs"], &answer["open_jobs"]), (&json!(1), &json!(0)), "{answer}");
    assert_eq!(app.get(&format!("/api/v1/jobs/{id}")).admin().send().await.json()["status"], "CANCELLED");
}

#[tokio::test]
async fn an_execution_of_a_task_names_its_job_and_its_task() {
    let app = TestApp::new().await;
    let tasks = json!({"tasks": [{"taskId": "build", "command": "true"}]});
    let job = app.post("/api/v1/jobs").admin().json(&tasks).send().await.json();
    let job = job["jobId"].as_str().expect("an id");
    let list = app.get(&format!("/api/v1/executions?job={job}")).admin().send().await.json();
    assert_eq!((&list[0]["job_id"], &list[0]["task_id"]), (&json!(job), &json!("build")));
    let alone = app.submit("true").await;
    let alone = app.get(&format!("/api/v1/executions/{alone}")).admin().send().await.json();
    assert_eq!((alone.get("job_id"), alone.get("task_id")), (None, None));
}
