//! The trail says what was run, above all what was refused: the command, what it was asked of, and one name of the action.

use http::{Method, StatusCode};
use runvoy_model::role::Role;
use serde_json::{Value, json};

use runvoy_rpc::connectrpc::ErrorCode;
use runvoy_rpc::job::v1::{CancelJobRequest, EnqueueJobsRequest};

use crate::app::{TestApp, email_of, key_of};
use crate::rpc::{BOTH, job, jobs, refusal};

const SECRET: &str = "canary-8d2f-value";

/// The events that a query of the trail gives, oldest first: action, result, target and command of each.
async fn found(app: &TestApp, query: &str) -> Vec<(String, String, Value, Value)> {
    let answer = app.get(&format!("/api/v1/audit?{query}")).admin().send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert!(!answer.text().contains(SECRET), "no value of a secret is in the trail");
    let word = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let events = answer.json();
    let events = events.as_array().expect("a list").iter().rev();
    events.map(|event| (word(event, "action"), word(event, "result"), event["target"].clone(), event["command"].clone())).collect()
}

fn about(action: &str, result: &str, target: impl Into<Value>, command: impl Into<Value>) -> (String, String, Value, Value) {
    (action.into(), result.into(), target.into(), command.into())
}

#[tokio::test]
async fn security_17_refused_runs_reruns_and_kills_say_what_was_wanted() {
    let app = TestApp::new().await;
    let rule = json!({"name": "no-rm", "effect": "deny", "roles": ["developer"], "commands": ["rm *"]});
    assert!(app.post("/api/v1/rules").admin().json(&rule).send().await.status.is_success());
    let others = app.submit("make deploy").await;
    let kill = format!("/api/v1/executions/{others}/kill");
    let rerun = format!("/api/v1/executions/{others}/rerun");
    let tasks = json!({"tasks": [{"taskId": "a", "command": "make a"}, {"taskId": "b", "command": "make b"}]});
    for (role, path, body) in [
        (Role::Viewer, "/api/v1/run", json!({"command": "rm", "args": ["-rf", "/"]})),
        (Role::Developer, "/api/v1/executions", json!({"command": "rm -rf /srv"})),
        (Role::Viewer, &kill, json!({})),
        (Role::Developer, &kill, json!({})),
        (Role::Viewer, &rerun, json!({})),
        (Role::Developer, &rerun, json!({})),
        (Role::Viewer, "/api/v1/playbooks/ship/run", json!({})),
        (Role::Viewer, "/api/v1/jobs", tasks),
    ] {
        let answer = app.post(path).role(role).json(&body).send().await;
        assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&answer.status), "{path}: {}", answer.text());
    }
    let (forbidden, missing, deploy) = ("denied: FORBIDDEN", "denied: NOT_FOUND", "make deploy");
    let viewer = [
        about("executions.run", forbidden, Value::Null, "rm -rf /"),
        about("executions.kill", forbidden, others.as_str(), deploy),
        about("executions.rerun", forbidden, others.as_str(), deploy),
        about("playbooks.run", forbidden, "ship", Value::Null),
        about("jobs.create", forbidden, Value::Null, "make a\nmake b"),
    ];
    assert_eq!(found(&app, &format!("user={}", email_of(Role::Viewer))).await, viewer);
    let developer = [
        about("executions.run", forbidden, Value::Null, "rm -rf /srv"),
        about("executions.kill", missing, others.as_str(), deploy),
        about("executions.rerun", missing, others.as_str(), deploy),
    ];
    assert_eq!(found(&app, &format!("user={}", email_of(Role::Developer))).await, developer);
    assert_eq!(found(&app, "text=RF%20/SRV").await, [about("executions.run", forbidden, Value::Null, "rm -rf /srv")]);
    assert_eq!(found(&app, "text=nowhere").await, []);
    assert_eq!(found(&app, "text=srv&until=2001-01-01T00:00:00Z").await, []);
}

#[tokio::test]
async fn security_17_a_refused_playbook_shows_its_command_masked() {
    let app = TestApp::new().await;
    let secret = json!({"name": "db", "key_name": "DB", "value": SECRET});
    assert!(app.post("/api/v1/secrets").admin().json(&secret).send().await.status.is_success());
    let body =
        json!({"command": "psql", "args": ["-p", SECRET, "{{table}}"], "secrets": ["db"], "parameters": {"table": {"type": "string"}}});
    let put = app.ask(Method::PUT, "/api/v1/playbooks/ship").admin().json(&body).send().await;
    assert_eq!(put.status, StatusCode::OK, "{}", put.text());
    let answer = app.post("/api/v1/playbooks/ship/run").role(Role::Viewer).json(&json!({"parameters": {"table": "users"}})).send().await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text());
    let found = found(&app, &format!("user={}", email_of(Role::Viewer))).await;
    let [(action, result, target, command)] = &found[..] else { panic!("one event: {found:?}") };
    assert_eq!((action.as_str(), result.as_str(), target), ("playbooks.run", "denied: FORBIDDEN", &json!("ship")));
    let command = command.as_str().expect("a command");
    assert!(command.starts_with("psql -p ") && command.ends_with(" {{table}}"), "{command}");
}

#[tokio::test]
async fn security_17_what_was_run_and_ended_is_in_the_trail_masked() {
    let app = TestApp::new().await;
    let secret = json!({"name": "db", "key_name": "DB", "value": SECRET});
    assert!(app.post("/api/v1/secrets").admin().json(&secret).send().await.status.is_success());
    let id = app.submit_as(Role::Admin, json!({"command": format!("psql -p {SECRET}"), "secrets": ["db"]})).await;
    let again = app.post(&format!("/api/v1/executions/{id}/rerun")).admin().send().await;
    let again = again.json()["execution_id"].as_str().expect("an id").to_owned();
    app.post(&format!("/api/v1/executions/{again}/kill")).admin().send().await;
    let job = app.post("/api/v1/jobs").admin().json(&json!({"tasks": [{"taskId": "a", "command": "make a"}]})).send().await;
    let job = job.json()["job_id"].as_str().or(job.json()["jobId"].as_str()).expect("an id").to_owned();
    app.post(&format!("/api/v1/jobs/{job}/cancel")).admin().send().await;
    let run = json!({"command": format!("echo {SECRET}"), "secrets": ["db"]});
    app.post("/api/v1/run").role(Role::Viewer).json(&run).send().await;
    let mut found = found(&app, "action=executions").await;
    found.extend(self::found(&app, "action=jobs").await);
    let commands: Vec<_> = found.iter().map(|(action, _, target, _)| (action.as_str(), target.clone())).collect();
    let expected = [
        ("executions.run", json!(id)),
        ("executions.rerun", json!(id)),
        ("executions.kill", json!(again)),
        ("executions.run", Value::Null),
        ("jobs.create", json!(job)),
        ("jobs.cancel", json!(job)),
    ];
    assert_eq!(commands, expected);
    for (.., command) in &found[..3] {
        let command = command.as_str().expect("a command");
        assert!(command.starts_with("psql -p ") && command.len() < "psql -p ".len() + SECRET.len(), "{command}");
    }
    assert!(found[3].3.as_str().is_some_and(|command| command.starts_with("echo ")), "{:?}", found[3]);
    assert_eq!(found[4].3, "make a");
}

#[tokio::test]
async fn security_17_a_refusal_by_a_part_of_an_id_names_the_whole_one() {
    let app = TestApp::new().await;
    let others = app.submit("make deploy").await;
    for path in ["kill", "rerun"] {
        let answer = app.post(&format!("/api/v1/executions/{}/{path}", &others[..20])).role(Role::Developer).json(&json!({})).send().await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text());
    }
    let missing = "denied: NOT_FOUND";
    let expected = [
        about("executions.kill", missing, others.as_str(), "make deploy"),
        about("executions.rerun", missing, others.as_str(), "make deploy"),
    ];
    assert_eq!(found(&app, &format!("user={}", email_of(Role::Developer))).await, expected);
}

#[tokio::test]
async fn security_17_calls_refused_over_rpc_say_what_was_wanted() {
    for protocol in BOTH {
        let app = TestApp::new().await;
        let others = app.submit("make deploy").await;
        let secret = json!({"name": "db", "key_name": "DB", "value": SECRET});
        assert!(app.post("/api/v1/secrets").admin().json(&secret).send().await.status.is_success());
        let served = app.listen().await;
        let (viewer, developer) = (jobs(&served, protocol, &key_of(Role::Viewer)), jobs(&served, protocol, &key_of(Role::Developer)));
        let mut with_secret = job(&format!("psql {SECRET}"));
        with_secret.job_params.as_option_mut().expect("params").secrets = vec!["db".into()];
        assert_eq!(refusal(viewer.enqueue_job(with_secret).await).0, ErrorCode::PermissionDenied);
        let many = EnqueueJobsRequest { jobs: vec![job("make a"), job("make b")], ..EnqueueJobsRequest::default() };
        assert_eq!(refusal(viewer.enqueue_jobs(many).await).0, ErrorCode::PermissionDenied);
        let cancel = || CancelJobRequest { job_id: others.clone(), ..CancelJobRequest::default() };
        assert_eq!(refusal(viewer.cancel_job(cancel()).await).0, ErrorCode::PermissionDenied);
        assert_eq!(refusal(developer.cancel_job(cancel()).await).0, ErrorCode::NotFound);
        let (forbidden, missing, deploy) = ("denied: FORBIDDEN", "denied: NOT_FOUND", "make deploy");
        let by_viewer = found(&app, &format!("user={}", email_of(Role::Viewer))).await;
        assert_eq!(
            by_viewer[1..],
            [
                about("executions.run", forbidden, Value::Null, "make a\nmake b"),
                about("executions.kill", forbidden, others.as_str(), deploy),
            ]
        );
        let masked = by_viewer[0].3.as_str().expect("a command");
        assert!(masked.starts_with("psql ") && !masked.contains(SECRET), "{masked}");
        let by_developer = found(&app, &format!("user={}", email_of(Role::Developer))).await;
        assert_eq!(by_developer, [about("executions.kill", missing, others.as_str(), deploy)]);
    }
}
