//! Retries, what a command says about its failure, dead letters and running them again, with real commands.

mod harness;

use serde_json::{Value, json};

use self::harness::{Server, eventually};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn events(server: &Server, id: &str) -> Vec<Value> {
    let events = server.get(&format!("/api/v1/executions/{id}/events")).json();
    events.as_array().expect("events").clone()
}

fn of_type(events: &[Value], kind: &str) -> Vec<Value> {
    events.iter().filter(|event| event["eventType"] == kind).map(|event| event["properties"].clone()).collect()
}

/// Fails as a network does until a file is there.
fn flaky(door: &std::path::Path) -> String {
    let said = r#"{"category": "network", "message": "the door is shut", "retryAfter": 1.5}"#;
    format!("test -e {} || {{ echo '{said}' > \"$RUNVOY_ERROR\"; exit 3; }}; echo open", door.display())
}

#[test]
fn a_passing_failure_is_retried_dies_is_listed_redriven_and_succeeds() {
    let server = Server::start();
    let door = server.data.join("door");
    let id = server.run_with(json!({"command": flaky(&door), "retries": 1}));
    let end = server.wait(&id);
    assert_eq!((&end["status"], &end["exit_code"], &end["attempt"]), (&json!("FAILED"), &json!(3), &json!(2)), "{end}");
    assert_eq!(end["end_reason"]["message"], "exit code 3: the door is shut");
    let told = events(&server, &id);
    let attempts = of_type(&told, "Task Processing Failed");
    let numbers: Vec<_> = attempts.iter().map(|told| (told["attemptNumber"].as_u64(), told["errorCategory"].as_str())).collect();
    assert_eq!(numbers, [(Some(1), Some("network")), (Some(2), Some("network"))]);
    let failed = &of_type(&told, "Task Failed")[0];
    assert_eq!((&failed["source"], &failed["retryCount"]), (&json!("dlq"), &json!(2)));
    // It waited as long as the command asked for.
    let started: Vec<_> = told.iter().filter(|event| event["eventType"] == "Task Processing Started").collect();
    let waited = started[1]["timestamp"].as_i64().expect("a time") - started[0]["timestamp"].as_i64().expect("a time");
    assert!(waited >= 1_500, "{waited} ms");
    let log = server.get(&format!("/api/v1/executions/{id}/logs?from_line=1")).text();
    assert!(log.contains("waiting for attempt 2, which begins in"), "{log}");

    let listed = server.cli(&["queues", "list", "--json"]);
    let queues: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!((&queues[0]["name"], &queues[0]["dead"]), (&json!("default"), &json!(1)), "{queues}");
    let dead = text(&server.cli(&["queues", "dead", "default"]).stdout);
    assert!(dead.contains(&id) && dead.contains("network") && dead.contains("the door is shut"), "{dead}");

    std::fs::write(&door, "").expect("written");
    let redriven = server.cli(&["queues", "redrive", "default", "--task", &id, "-o", "name"]);
    assert_eq!(redriven.status.code(), Some(0), "{}", text(&redriven.stderr));
    let new = text(&redriven.stdout).trim().to_owned();
    assert!(new.len() == 32 && new != id, "{new:?}");
    assert_eq!(server.wait(&new)["status"], "SUCCEEDED");
    assert_eq!(server.raw(&new), b"open\n");
    assert_eq!(server.status(&id)["status"], "FAILED", "what ended stays ended");
    assert!(!text(&server.cli(&["queues", "dead", "default"]).stdout).contains(&id));
    let again = server.cli(&["queues", "redrive", "default", "--task", &id, "-o", "name"]);
    assert_eq!(text(&again.stdout).trim(), new, "it runs again once");
}

#[test]
fn what_no_attempt_can_cure_is_not_tried_again_and_an_unknown_word_is_said() {
    let server = Server::start();
    let auth = r#"echo '{"category": "auth", "message": "the key is wrong"}' > "$RUNVOY_ERROR"; exit 1"#;
    let id = server.run_with(json!({"command": auth, "retries": 3}));
    assert_eq!(server.wait(&id)["attempt"], 1);
    let failed = &of_type(&events(&server, &id), "Task Failed")[0];
    assert_eq!((&failed["source"], &failed["errorCategory"]), (&json!("worker"), &json!("auth")));
    let unknown = r#"echo '{"category": "weather", "message": "rain"}' > "$RUNVOY_ERROR"; exit 64"#;
    let id = server.run_with(json!({"command": unknown, "retries": 3}));
    let end = server.wait(&id);
    assert_eq!((&end["attempt"], &end["end_reason"]["message"]), (&json!(1), &json!("exit code 64")), "its exit code counts");
    let log = server.get(&format!("/api/v1/executions/{id}/logs?from_line=1")).text();
    assert!(log.contains("RUNVOY_ERROR") && log.contains("expected timeout, network"), "{log}");
    assert_eq!(server.get("/api/v1/queues/default/dead").json(), json!([]));
}

#[test]
fn a_task_that_was_given_up_goes_on_in_its_job() {
    let mut server = Server::start();
    let door = server.data.join("door");
    let job = json!({"tasks": [
        {"taskId": "fetch", "command": flaky(&door), "retries": 1},
        {"taskId": "load", "command": "true", "dependsOn": ["fetch"]},
    ]});
    let created = server.http().post("/api/v1/jobs", &job);
    assert_eq!(created.status, 201, "{}", created.text());
    let id = created.json()["jobId"].as_str().expect("an id").to_owned();
    let status = |server: &Server| server.get(&format!("/api/v1/jobs/{id}?tasks=0")).json()["status"].clone();
    eventually("the job has failed", || status(&server) == "FAILED");
    // A dead letter outlives the server.
    let data = server.data.clone();
    let keep = std::fs::read(data.join("admin.key")).expect("a key");
    server.kill_9();
    let server = harness::Setup::default().start_in(&data);
    assert_eq!(std::fs::read(data.join("admin.key")).expect("a key"), keep);
    std::fs::write(&door, "").expect("written");
    let redriven = server.cli(&["queues", "redrive", "default", "--yes", "--json"]);
    let answer: Value = serde_json::from_slice(&redriven.stdout).expect("JSON");
    assert_eq!((&answer["redriven"][0]["job_id"], &answer["left"]), (&json!(id), &json!(0)), "{answer}");
    eventually("the job is complete", || status(&server) == "COMPLETED");
}
