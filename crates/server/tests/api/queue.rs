//! Queues over the API: their numbers, what was given up in them, and running that again.

use http::StatusCode;
use runvoy_engine::Dispatcher;
use runvoy_model::event::EventType;
use runvoy_model::role::Role;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use serde_json::{Value, json};

use crate::app::{Answer, ROLES, TestApp, email_of};

async fn dead(app: &TestApp, role: Role, query: &str) -> Answer {
    let answer = app.get(&format!("/api/v1/queues/default/dead{query}")).role(role).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer
}

fn ids(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    json.as_array().expect("a bare array").iter().map(|letter| letter["execution_id"].as_str().expect("an id").to_owned()).collect()
}

/// The executions that an answer tells this of.
fn of(answer: &Value, what: &str) -> Vec<String> {
    let told = answer[what].as_array().map(Vec::as_slice).unwrap_or_default();
    told.iter().map(|one| one["execution_id"].as_str().expect("an id").to_owned()).collect()
}

async fn redrive(app: &TestApp, role: Role, body: Value) -> Value {
    let answer = app.post("/api/v1/queues/default/redrive").role(role).json(&body).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

async fn execution(app: &TestApp, id: &Value) -> Value {
    app.get(&format!("/api/v1/executions/{}", id.as_str().expect("an id"))).admin().send().await.json()
}

#[tokio::test]
async fn queues_are_listed_with_their_numbers() {
    let app = TestApp::new().await;
    let empty = app.get("/api/v1/queues").role(Role::Viewer).send().await;
    assert_eq!(
        empty.json(),
        json!([{"name": "default", "depth": 0, "in_flight": 0, "dead": 0, "workers": 0}]),
        "what is served here is shown"
    );
    app.given_up(Role::Developer, json!({"command": "true"})).await;
    app.submit("sleep 1").await;
    let running = app.play().await;
    let waits = app.submit("sleep 2").await;
    app.submit_as(Role::Admin, json!({"command": "true", "queue": "a/b"})).await;
    let since = &execution(&app, &waits.into()).await["submitted_at"];
    app.clock.advance(5_000);
    for role in ROLES {
        let queues = app.get("/api/v1/queues").role(role).send().await.json();
        let expected = json!([
            {"name": "a/b", "depth": 1, "oldest": since, "in_flight": 0, "dead": 0, "workers": 0},
            {"name": "default", "depth": 1, "oldest": since, "in_flight": 1, "dead": 1, "workers": 0},
        ]);
        assert_eq!(queues, expected, "{role:?}");
    }
    running.exit(0).await;
}

#[tokio::test]
async fn a_queue_is_stopped_limited_and_goes_on() {
    let app = TestApp::new().await;
    let put = async |role: Role, body: Value| app.ask(http::Method::PUT, "/api/v1/queues/gpu").role(role).json(&body).send().await;
    let stopped = put(Role::Operator, json!({"paused": true, "reason": "a new driver"})).await.json();
    assert_eq!((&stopped["paused"]["by"], &stopped["paused"]["reason"]), (&json!(email_of(Role::Operator)), &json!("a new driver")));
    assert_eq!(stopped["message"], "queue gpu is paused; running executions go on");
    let limited = put(Role::Admin, json!({"concurrency": 2, "per_user": 1})).await.json();
    assert_eq!(
        (&limited["concurrency"], &limited["per_user"], limited["paused"].is_object()),
        (&json!(2), &json!(1), true),
        "what is absent stays"
    );
    let id = app.submit_as(Role::Developer, json!({"command": "true", "queue": "gpu"})).await;
    let status = app.get(&format!("/api/v1/executions/{id}/status")).role(Role::Developer).send().await.json();
    assert!(status["waiting_for"]["message"].as_str().is_some_and(|why| why.contains("a new driver")), "{status}");
    let queues = app.get("/api/v1/queues").role(Role::Viewer).send().await.json();
    let gpu = queues.as_array().and_then(|all| all.iter().find(|queue| queue["name"] == "gpu")).expect("the queue").clone();
    assert_eq!(
        (&gpu["depth"], &gpu["concurrency"], &gpu["places_taken"], &gpu["paused"]["reason"]),
        (&json!(1), &json!(2), &json!(0), &json!("a new driver"))
    );
    let goes_on = put(Role::Operator, json!({"paused": false, "concurrency": 0})).await.json();
    assert_eq!((goes_on.get("paused"), goes_on.get("concurrency"), &goes_on["per_user"]), (None, None, &json!(1)));
    let delete = async || app.ask(http::Method::DELETE, "/api/v1/queues/gpu").admin().send().await;
    assert_eq!(delete().await.json()["message"], "queue gpu is not paused");
    assert_eq!(delete().await.code().0, 404);
    for role in [Role::Developer, Role::Viewer] {
        assert_eq!(put(role, json!({"paused": true})).await.code().0, 403, "{role:?}");
    }
    for bad in [json!({"concurrency": 1001}), json!({"concurrency": -1}), json!({"reason": "why"}), json!({"what": 1})] {
        assert_eq!(put(Role::Admin, bad.clone()).await.code().0, 400, "{bad}");
    }
}

#[tokio::test]
async fn dead_letters_are_listed_newest_first_and_developers_see_their_own() {
    let app = TestApp::new().await;
    let mut given = Vec::new();
    for role in [Role::Developer, Role::Operator, Role::Developer, Role::Admin] {
        given.insert(0, app.given_up(role, json!({"command": "curl https://example.com"})).await);
    }
    let all = dead(&app, Role::Viewer, "").await;
    assert_eq!((ids(&all), all.header("x-next-cursor")), (given.clone(), ""));
    let first = &all.json()[0];
    assert_eq!((&first["queue"], &first["attempts"], &first["error_category"]), (&json!("default"), &json!(2), &json!("network")));
    assert_eq!((&first["command"], &first["error"]), (&json!("curl https://example.com"), &json!("exit code 69")));
    assert_eq!((&first["created_by"], first.get("job_id")), (&json!("admin@example.com"), None));
    assert_eq!(first["failed_at"], execution(&app, &first["execution_id"]).await["completed_at"]);
    assert_eq!(ids(&dead(&app, Role::Developer, "").await), [given[1].clone(), given[3].clone()]);
    let (mut paged, mut query) = (Vec::new(), "?limit=3".to_owned());
    loop {
        let page = dead(&app, Role::Admin, &query).await;
        paged.extend(ids(&page));
        match page.header("x-next-cursor") {
            "" => break,
            cursor => query = format!("?limit=3&cursor={cursor}"),
        }
    }
    assert_eq!(paged, given);
    assert!(ids(&app.get("/api/v1/queues/a%2Fb/dead").admin().send().await).is_empty());
    for bad in ["default/dead?cursor=x", "default/dead?limit=0", "default/dead?cursor=1.2", "%20/dead"] {
        assert_eq!(app.get(&format!("/api/v1/queues/{bad}")).admin().send().await.code().0, 400, "{bad}");
    }
}

#[tokio::test]
async fn what_was_given_up_runs_again_for_its_owner_once() {
    let app = TestApp::new().await;
    let old = app.given_up(Role::Developer, json!({"command": "true", "labels": {"team": "x"}})).await;
    assert_eq!(execution(&app, &json!(old)).await["dead"], true);
    let answer = redrive(&app, Role::Operator, json!({})).await;
    let new = &answer["redriven"][0]["new_execution_id"];
    assert_eq!(
        answer,
        json!({
            "queue": "default", "redriven": [{"execution_id": old, "new_execution_id": new}], "refused": [], "dropped": [],
            "left": 0, "message": "1 run again"
        })
    );
    let made = execution(&app, new).await;
    assert_eq!(
        (&made["created_by"], &made["status"], &made["labels"]),
        (&json!(email_of(Role::Developer)), &json!("PENDING"), &json!({"team": "x"}))
    );
    assert!(ids(&dead(&app, Role::Admin, "").await).is_empty());
    let again = redrive(&app, Role::Operator, json!({"execution_ids": [old]})).await;
    assert_eq!(&again["redriven"][0]["new_execution_id"], new, "it goes on there already");
    let log = app.get(&format!("/api/v1/executions/{}/logs?from_line=1", new.as_str().expect("an id"))).admin().send().await.text();
    assert!(log.contains(&format!("this execution runs dead letter {old} again")), "{log}");
    let played = app.play().await;
    assert_eq!(json!(played.execution.id.to_string()), *new);
    played.exit(0).await;
    let old = execution(&app, &json!(old)).await;
    assert_eq!((&old["status"], &old["redriven_as"], old.get("dead")), (&json!("FAILED"), new, None), "what ended stays ended");
}

#[tokio::test]
async fn a_repeat_with_the_same_key_does_nothing_more() {
    let app = TestApp::new().await;
    app.given_up(Role::Admin, json!({"command": "true"})).await;
    let ask = |body: Value| app.post("/api/v1/queues/default/redrive").admin().header("idempotency-key", "k1").json(&body).send();
    let first = ask(json!({})).await.json();
    app.play().await.exit(0).await;
    let later = app.given_up(Role::Admin, json!({"command": "true"})).await;
    let again = ask(json!({})).await.json();
    assert_eq!((&again["redriven"], &again["left"]), (&first["redriven"], &json!(1)));
    assert_eq!(ids(&dead(&app, Role::Admin, "").await), std::slice::from_ref(&later));
    assert_eq!(ask(json!({"execution_ids": [later]})).await.code(), (409, "CONFLICT".into()));
}

#[tokio::test]
async fn only_an_operator_or_an_admin_has_it_run_again() {
    let app = TestApp::new().await;
    let given_up = app.given_up(Role::Developer, json!({"command": "true"})).await;
    let path = "/api/v1/queues/default/redrive";
    let named = json!({"execution_ids": [given_up]});
    for role in [Role::Viewer, Role::Developer] {
        assert_eq!(app.post(path).role(role).json(&named).send().await.code(), (403, "FORBIDDEN".into()), "{role:?}");
    }
    assert_eq!(ids(&dead(&app, Role::Admin, "").await), std::slice::from_ref(&given_up));
    assert_eq!(redrive(&app, Role::Operator, named).await["redriven"][0]["execution_id"], json!(given_up));
    for bad in [json!({"execution_ids": []}), json!({"executions": ["x"]}), json!({"execution_ids": vec!["x"; 51]})] {
        assert_eq!(app.post(path).admin().json(&bad).send().await.code().0, 400, "{bad}");
    }
}

#[tokio::test]
async fn what_rules_forbid_the_caller_does_not_run_again() {
    let app = TestApp::new().await;
    let forbidden = app.given_up(Role::Developer, json!({"command": "deploy prod"})).await;
    let allowed = app.given_up(Role::Developer, json!({"command": "make"})).await;
    let rule = json!({"name": "no-deploy", "effect": "deny", "commands": ["deploy *"], "users": [email_of(Role::Operator)]});
    let answer = app.post("/api/v1/rules").admin().json(&rule).send().await;
    assert!(answer.status.is_success(), "{}", answer.text());
    let answer = redrive(&app, Role::Operator, json!({})).await;
    assert_eq!((&answer["redriven"][0]["execution_id"], &answer["left"]), (&json!(allowed), &json!(0)));
    assert_eq!(answer["refused"][0]["execution_id"], json!(forbidden));
    assert!(answer["refused"][0]["error"].as_str().is_some_and(|why| why.contains("no-deploy")), "{answer}");
    assert_eq!(ids(&dead(&app, Role::Admin, "").await), std::slice::from_ref(&forbidden), "its mark stays");
    let query = EventQuery { kind: Some(EventType::Audit), limit: 1_000, ..EventQuery::default() };
    let trail = app.store.events(query).await.expect("a memory store");
    let denied = |stored: &&runvoy_ports::store::StoredEvent| {
        stored.event.properties["action"] == "queues.redrive" && stored.event.properties["result"] != "ok"
    };
    assert_eq!(trail.iter().filter(denied).count(), 1, "that somebody tried is kept");
    let trail = app.get("/api/v1/audit?action=queues.redrive").admin().send().await.json();
    let tried = trail.as_array().expect("a list").iter().find(|event| event["result"] != "ok").expect("it is kept");
    assert_eq!((&tried["target"], &tried["command"]), (&json!(forbidden), &json!("deploy prod")), "and of what");
    assert_eq!(redrive(&app, Role::Admin, json!({})).await["redriven"][0]["execution_id"], json!(forbidden), "whom the rule does not name");
}

#[tokio::test]
async fn what_cannot_run_again_is_said_for_each() {
    let app = TestApp::new().await;
    let locked = json!({"command": "true", "lock": "prod"});
    let one = app.given_up(Role::Admin, locked.clone()).await;
    let two = app.given_up(Role::Admin, locked).await;
    let ended = app.ran(&["x"]).await;
    let answer = redrive(&app, Role::Admin, json!({"execution_ids": [one, two, ended]})).await;
    assert_eq!(answer["redriven"].as_array().expect("a list").len(), 1, "{answer}");
    let why = |at: usize| answer["refused"][at]["error"].as_str().expect("why").to_owned();
    assert!(why(0).contains("lock prod is held") && why(1).contains("SUCCEEDED: it is not a dead letter"), "{answer}");
    assert_eq!(answer["message"], "1 run again, 2 cannot");
    let elsewhere = app.post("/api/v1/queues/other/redrive").admin().json(&json!({"execution_ids": [two]})).send().await.json();
    assert_eq!(elsewhere["refused"][0]["error"], "it is of queue default");
}

#[tokio::test]
async fn many_run_again_part_by_part() {
    let app = TestApp::new().await;
    let mut given = Vec::new();
    for _ in 0..120 {
        given.push(app.given_up(Role::Admin, json!({"command": "true"})).await);
    }
    let (mut redriven, mut body) = (Vec::new(), json!({}));
    for left in [70, 20, 0] {
        let answer = redrive(&app, Role::Admin, body).await;
        assert_eq!((&answer["left"], answer.get("next").is_some()), (&json!(left), left > 0));
        redriven.extend(of(&answer, "redriven"));
        body = json!({"after": answer["next"]});
    }
    assert_eq!(redriven, given, "the oldest first");
    assert_eq!(redrive(&app, Role::Admin, json!({})).await["redriven"], json!([]));
}

#[tokio::test]
async fn those_that_cannot_run_keep_none_from_running() {
    let app = TestApp::new().await;
    let mut forbidden = Vec::new();
    for _ in 0..130 {
        forbidden.push(app.given_up(Role::Developer, json!({"command": "deploy prod"})).await);
    }
    let allowed = app.given_up(Role::Developer, json!({"command": "make"})).await;
    let rule = json!({"name": "no-deploy", "effect": "deny", "commands": ["deploy *"], "users": [email_of(Role::Operator)]});
    assert!(app.post("/api/v1/rules").admin().json(&rule).send().await.status.is_success());
    let keyed = |key: &'static str, body: Value| {
        app.post("/api/v1/queues/default/redrive").role(Role::Operator).header("idempotency-key", key).json(&body).send()
    };
    let first = keyed("k1", json!({})).await.json();
    let refused = of(&first, "refused");
    assert!(refused.len() >= 100 && of(&first, "redriven").is_empty(), "{first}");
    assert_eq!((&refused[..], &first["left"]), (&forbidden[..refused.len()], &json!(131 - refused.len())));
    let later = app.given_up(Role::Developer, json!({"command": "make"})).await;
    let second = keyed("k2", json!({"after": first["next"]})).await.json();
    assert_eq!(of(&second, "redriven"), [allowed], "who comes after them has its turn, and nobody who was given up meanwhile");
    assert_eq!((second["left"].as_u64(), second.get("next")), (Some(0), None));
    assert_eq!(
        (of(&second, "refused"), ids(&dead(&app, Role::Admin, "?limit=1").await)),
        (forbidden[refused.len()..].to_vec(), vec![later])
    );
    assert_eq!(keyed("k2", json!({"after": first["next"]})).await.json(), second, "a repeat is answered as the first was");
    assert_eq!(keyed("k2", json!({})).await.code(), (409, "CONFLICT".into()), "where it goes on is part of the request");
    for bad in [json!({"after": "x"}), json!({"after": "1.2.3"}), json!({"after": first["next"], "execution_ids": [forbidden[0]]})] {
        let answer = app.post("/api/v1/queues/default/redrive").admin().json(&bad).send().await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{bad}");
    }
}

#[tokio::test]
async fn nothing_runs_again_for_an_owner_who_was_revoked() {
    let app = TestApp::new().await;
    let of_developer = app.given_up(Role::Developer, json!({"command": "true"})).await;
    let of_operator = app.given_up(Role::Operator, json!({"command": "true"})).await;
    app.revoke(Role::Developer).await;
    let answer = redrive(&app, Role::Admin, json!({})).await;
    assert_eq!((of(&answer, "redriven"), of(&answer, "refused")), (vec![of_operator], vec![of_developer.clone()]));
    assert!(answer["refused"][0]["error"].as_str().is_some_and(|why| why.contains("was revoked")), "{answer}");
    assert_eq!(ids(&dead(&app, Role::Admin, "").await), [of_developer]);
}

/// A job of which every task was given up.
async fn given_up_job(app: &TestApp, tasks: usize) -> String {
    let tasks: Vec<Value> = (0..tasks).map(|number| json!({"taskId": format!("t{number}"), "command": "curl", "retries": 1})).collect();
    let created = app.post("/api/v1/jobs").admin().json(&json!({"tasks": tasks})).send().await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    Dispatcher::new(std::sync::Arc::clone(&app.engine)).look().await.expect("a memory store");
    for _ in 0..2 {
        for _ in 0..tasks.len() {
            app.play().await.exit(69).await;
        }
        app.clock.advance(600_000);
    }
    created.json()["jobId"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_rerun_of_a_task_is_no_task() {
    let app = TestApp::new().await;
    let job = given_up_job(&app, 1).await;
    let task = ids(&dead(&app, Role::Admin, "").await).remove(0);
    let rerun = app.post(&format!("/api/v1/executions/{task}/rerun")).admin().send().await;
    assert!(rerun.status.is_success(), "{}", rerun.text());
    let played = app.play().await;
    assert_eq!((played.execution.spec.command.as_str(), &played.execution.spec.task), ("curl", &None));
    played.exit(69).await;
    app.clock.advance(600_000);
    let plain = app.play().await.exit(69).await;
    let answer = redrive(&app, Role::Admin, json!({"execution_ids": [plain.id, task]})).await;
    assert!(answer["redriven"][0]["new_execution_id"].is_string(), "a dead letter of its own: {answer}");
    assert_eq!(answer["redriven"][1], json!({"execution_id": task, "job_id": job}), "the task is as it was");
}

#[tokio::test]
async fn a_cancelled_job_leaves_no_dead_letters() {
    let app = TestApp::new().await;
    let job = given_up_job(&app, 130).await;
    let kept = app.given_up(Role::Admin, json!({"command": "true"})).await;
    assert_eq!(ids(&dead(&app, Role::Admin, "?limit=1000").await).len(), 131);
    let answer = app.post(&format!("/api/v1/jobs/{job}/cancel")).admin().send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    // More than one step buries; who comes before the dispatcher drops what it meets.
    let all = redrive(&app, Role::Admin, json!({})).await;
    assert_eq!((of(&all, "redriven"), of(&all, "refused").len()), (vec![kept], 0));
    assert!(all["message"].as_str().is_some_and(|message| message.starts_with("1 run again, 10 never can")), "{all}");
    app.play().await.exit(0).await;
    let other = given_up_job(&app, 130).await;
    assert!(app.post(&format!("/api/v1/jobs/{other}/cancel")).admin().send().await.status.is_success());
    assert!(!ids(&dead(&app, Role::Admin, "").await).is_empty());
    Dispatcher::new(std::sync::Arc::clone(&app.engine)).look().await.expect("a memory store");
    assert!(ids(&dead(&app, Role::Admin, "").await).is_empty());
}

#[tokio::test]
async fn a_task_that_was_given_up_runs_again_in_its_job_alone() {
    let app = TestApp::new().await;
    let job = json!({"tasks": [
        {"taskId": "fetch", "command": "curl", "retries": 1},
        {"taskId": "check", "command": "false"},
        {"taskId": "load", "command": "true", "dependsOn": ["fetch"]},
    ]});
    let created = app.post("/api/v1/jobs").admin().json(&job).send().await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    let id = created.json()["jobId"].as_str().expect("an id").to_owned();
    let dispatcher = Dispatcher::new(std::sync::Arc::clone(&app.engine));
    dispatcher.look().await.expect("a memory store");
    app.play().await.exit(69).await;
    app.play().await.exit(64).await;
    app.clock.advance(600_000);
    let given_up = app.play().await.exit(69).await;
    let letters = dead(&app, Role::Admin, "").await.json();
    assert_eq!(
        (&letters[0]["execution_id"], &letters[0]["job_id"], &letters[0]["task_id"]),
        (&json!(given_up.id), &json!(id), &json!("fetch"))
    );
    let answer = redrive(&app, Role::Admin, json!({})).await;
    assert_eq!(answer["redriven"], json!([{"execution_id": given_up.id, "job_id": id}]));
    dispatcher.look().await.expect("a memory store");
    let played = app.play().await;
    assert_eq!(played.execution.spec.task.as_ref().map(|task| task.task.to_string()).as_deref(), Some("fetch"));
    played.exit(0).await;
    dispatcher.look().await.expect("a memory store");
    app.play().await.exit(0).await;
    let shown = app.get(&format!("/api/v1/jobs/{id}")).admin().send().await.json();
    assert_eq!((&shown["status"], &shown["failedTaskId"]), (&json!("FAILED"), &json!("check")), "{shown}");
    assert!(dead(&app, Role::Admin, "").await.json().as_array().is_some_and(Vec::is_empty));
}
