//! Names that are slips of known ones are refused before anything runs; names of other clients' own are not.

use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::TestApp;

/// What is told of a refused request.
async fn refused(app: &TestApp, path: &str, body: &Value) -> String {
    let answer = app.post(path).admin().json(body).send().await;
    assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{path} {body}");
    answer.json()["error"].as_str().expect("details").to_owned()
}

#[tokio::test]
async fn a_slip_in_a_request_to_run_is_refused_with_what_was_meant() {
    let app = TestApp::new().await;
    for (path, body, name, meant) in [
        ("/api/v1/run", json!({"command": "true", "lokc": "prod"}), "lokc", "`lock`"),
        ("/api/v1/executions", json!({"command": "true", "gitRepo": "https://git.example/x.git"}), "gitRepo", "`git_repo`"),
        ("/api/v1/run", json!({"comand": "true"}), "comand", "`command`"),
        ("/api/v1/run", json!({"command": "true", "dry_run": true}), "dry_run", "`?dry_run=true`"),
        ("/api/v1/run", json!({"command": "true", "dryrun": true}), "dryrun", "`?dry_run=true`"),
        ("/api/v1/run?dryrun=true", json!({"command": "true"}), "dryrun", "`dry_run`"),
        ("/api/v1/run?dry-run=1", json!({"command": "true"}), "dry-run", "`dry_run`"),
        ("/api/v1/playbooks/deploy/run", json!({"lock-wait": 3}), "lock-wait", "`lock_wait`"),
        ("/api/v1/playbooks/deploy/run?dryRun=1", json!({}), "dryRun", "`dry_run`"),
    ] {
        let told = refused(&app, path, &body).await;
        assert!(told.contains(name) && told.contains(meant), "{path} {body}: {told}");
    }
    let told = refused(&app, "/api/v1/jobs", &json!({"tasks": [{"taskId": "a", "command": "true", "lokc": "prod"}]})).await;
    assert!(told.contains("lokc"), "{told}");
    let list = app.get("/api/v1/executions").admin().send().await.json();
    assert_eq!(list.as_array().map(Vec::len), Some(0), "nothing ran");
}

#[tokio::test]
async fn names_of_other_clients_own_are_ignored() {
    let app = TestApp::new().await;
    let body = json!({"command": "true", "theirs": {"x": 1}, "comment": "a note", "playbook": null});
    let answer = app.post("/api/v1/run?trace=1").role(Role::Developer).json(&body).send().await;
    assert_eq!(answer.status, 202, "{}", answer.text());
}
