//! Playbooks in files and on the server, and dry runs.

use serde_json::{Value, json};

use crate::fake::{Fake, Reply, Seen};
use crate::user::{ID, User, answer, body, log, text};

const AT: &str = "2026-01-03T14:22:19.000Z";

fn storing(seen: &Seen) -> Reply {
    let submitted = json!({"execution_id": ID, "log_url": "", "status": "PENDING", "websocket_url": log().websocket_url()});
    let plan = |allowed: bool| json!({"allowed": allowed, "image_id": "local", "image": "local", "command": "make", "queue": "default", "priority": 3, "retries": 0});
    let deploy = json!({"name": "deploy", "version": 2, "command": "make deploy", "description": "the server's", "created_at": AT,
        "parameters": {"region": {"type": "choice", "choices": ["eu", "us"]}}});
    match (seen.method.as_str(), seen.path().trim_start_matches("/api/v1/")) {
        ("POST", "run") if seen.parameter("dry_run").is_some() => Reply::json(200, plan(body(seen)["lock"].is_null())),
        ("GET", "playbooks") => Reply::json(200, json!({"playbooks": [deploy]})),
        ("GET", "playbooks/deploy") if seen.parameter("version") == Some("9") => {
            Reply::error(404, "NOT_FOUND", "playbook deploy not found")
        }
        ("GET", "playbooks/deploy") => Reply::json(200, deploy),
        ("PUT", path) if path.starts_with("playbooks/") => {
            Reply::json(200, json!({"name": &path[10..], "version": 3, "message": "pushed"}))
        }
        ("POST", "playbooks/deploy/run") if seen.parameter("dry_run").is_some() => Reply::json(200, plan(true)),
        ("POST", "playbooks/deploy/run") => Reply::json(202, submitted),
        _ => answer(seen, 3),
    }
}

async fn user_with_files(fake: &Fake) -> User {
    let user = User::of(fake).await;
    std::fs::create_dir(user.home.path().join(".runvoy")).expect("made");
    for (name, content) in [
        ("plan.yaml", "description: Plan\nimage: terraform:1\nenv: {REGION: eu}\ncommands:\n  - terraform init\n  - terraform plan\n"),
        ("deploy.yaml", "description: the file's\ncommands: [make deploy-from-file]\n"),
        ("broken.yaml", "commands: [ls]\nimag: x\n"),
    ] {
        std::fs::write(user.home.path().join(".runvoy").join(name), content).expect("written");
    }
    user
}

#[tokio::test]
async fn a_file_runs_as_a_script_with_flags_instead_of_its_own_keys() {
    let fake = Fake::new(storing);
    let user = user_with_files(&fake).await;
    let ran = user.run(&["playbook", "run", "plan", "-e", "REGION=us", "--", "--image", "terraform:2", "--timeout", "5m"]).await;
    assert_eq!(ran.status.code(), Some(3), "the command's own exit code: {}", text(&ran.stderr));
    assert!(text(&ran.stdout).contains("no newline"), "its output is followed");
    let sent = fake.seen().into_iter().find(|seen| seen.method == "POST").expect("submitted");
    let expected =
        json!({"command": "set -eu\nterraform init\nterraform plan", "image": "terraform:2", "env": {"REGION": "us"}, "timeout": 300});
    assert_eq!((sent.path(), body(&sent)), ("/api/v1/run", expected));
    let detached = user.run(&["playbook", "run", "plan", "-d"]).await;
    assert_eq!(text(&detached.stdout), format!("{ID}\n"));
    let refused = user.run(&["playbook", "run", "plan", "-p", "region=eu"]).await;
    assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("no parameters"), "{}", text(&refused.stderr));
}

#[tokio::test]
async fn a_name_that_is_both_means_the_server_s_unless_told_otherwise() {
    let fake = Fake::new(storing);
    let user = user_with_files(&fake).await;
    let last = |fake: &Fake| fake.seen().into_iter().rfind(|seen| seen.method == "POST").expect("submitted");
    let ran = user.run(&["playbook", "run", "deploy@2", "-d", "-p", "region=eu", "--wait", "1m"]).await;
    assert!(ran.status.success() && text(&ran.stderr).contains("--local"), "{}", text(&ran.stderr));
    let sent = last(&fake);
    assert_eq!(
        (sent.path(), body(&sent)),
        ("/api/v1/playbooks/deploy/run", json!({"parameters": {"region": "eu"}, "version": 2, "lock_wait": 60}))
    );
    assert!(sent.header("idempotency-key").is_some());
    assert!(user.run(&["playbook", "run", "deploy", "-d", "--local"]).await.status.success());
    let sent = last(&fake);
    assert_eq!((sent.path(), body(&sent)["command"].as_str()), ("/api/v1/run", Some("set -eu\nmake deploy-from-file")));
    let refused = user.run(&["playbook", "run", "deploy", "--image", "x"]).await;
    assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("as it was pushed"), "{}", text(&refused.stderr));
    assert!(text(&user.run(&["playbook", "show", "deploy"]).await.stdout).contains("the server's"));
    assert!(text(&user.run(&["playbook", "show", "deploy", "--local"]).await.stdout).contains("the file's"));
}

#[tokio::test]
async fn the_list_has_both_and_says_what_is_broken() {
    let user = user_with_files(&Fake::new(storing)).await;
    let listed: Value = serde_json::from_slice(&user.run(&["playbook", "list", "--json"]).await.stdout).expect("JSON");
    let rows: Vec<(&str, &str)> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| (row["name"].as_str().expect("text"), row["where"].as_str().expect("text")))
        .collect();
    assert_eq!(rows, [("deploy", "server"), ("broken", "home"), ("deploy", "home"), ("plan", "home")]);
    assert!(listed[1]["error"].as_str().expect("told").contains("broken.yaml:2:1: unknown field imag; did you mean image?"), "{listed}");
    assert_eq!(text(&user.run(&["playbook", "list", "-o", "name"]).await.stdout), "deploy\nbroken\nplan\n", "each name once");
    let old = user.run(&["playbook", "show", "deploy@9"]).await;
    assert!(old.status.code() == Some(1) && text(&old.stderr).contains("playbook deploy has no version 9"), "{}", text(&old.stderr));
    let mut away = user.command(&["playbook", "list", "--local"]);
    away.env("RUNVOY_API_ENDPOINT", "http://127.0.0.1:1");
    assert!(crate::user::finish(away).await.status.success(), "files need no server");
    let broken = user.run(&["playbook", "run", "broken"]).await;
    assert_eq!(broken.status.code(), Some(2));
    assert!(text(&broken.stderr).contains("broken.yaml:2:1: "), "{}", text(&broken.stderr));
}

#[tokio::test]
async fn a_push_takes_its_name_from_the_file_and_refuses_slips() {
    let fake = Fake::new(storing);
    let user = user_with_files(&fake).await;
    let pushed = user.run(&["playbook", "push", ".runvoy/plan.yaml"]).await;
    assert_eq!(text(&pushed.stderr), "plan@3: pushed\n");
    let sent = fake.seen().pop().expect("pushed");
    assert_eq!((sent.method.as_str(), sent.path()), ("PUT", "/api/v1/playbooks/plan"));
    assert_eq!(body(&sent)["command"], "set -eu\nterraform init\nterraform plan");
    user.run(&["playbook", "push", ".runvoy/plan.yaml", "--name", "plan-eu"]).await;
    assert_eq!(fake.seen().pop().expect("pushed").path(), "/api/v1/playbooks/plan-eu");
    let asked = fake.seen().len();
    assert_eq!(user.run(&["playbook", "push", ".runvoy/broken.yaml"]).await.status.code(), Some(2));
    assert_eq!(fake.seen().len(), asked);
}

#[tokio::test]
async fn a_dry_run_submits_nothing_and_its_code_says_whether_it_would() {
    let fake = Fake::new(storing);
    let user = user_with_files(&fake).await;
    let would = user.run(&["run", "--dry-run", "--secret", "aws", "make"]).await;
    assert!(would.status.success() && text(&would.stdout).starts_with("This run would start.\n"), "{}", text(&would.stdout));
    assert_eq!(
        (fake.seen()[0].target.as_str(), body(&fake.seen()[0])),
        ("/api/v1/run?dry_run=1", json!({"command": "make", "secrets": ["aws"]}))
    );
    let refused = user.run(&["run", "--dry-run", "--json", "--lock", "prod", "make"]).await;
    let plan: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!((refused.status.code(), plan["allowed"].as_bool()), (Some(1), Some(false)));
    assert!(user.run(&["playbook", "run", "deploy", "-p", "region=eu", "--dry-run"]).await.status.success());
    assert!(user.run(&["playbook", "run", "plan", "--dry-run"]).await.status.success());
    assert!(fake.seen().iter().filter(|seen| seen.method == "POST").all(|seen| seen.parameter("dry_run").is_some()));
}
