//! The event log over HTTP: the shapes of the event contract, pages of it, who sees what of it, and what does not fit into an event.

use std::sync::Arc;

use http::StatusCode;
use runvoy_memory::MemoryBlobStore;
use runvoy_model::event::{EntityType, EventType};
use runvoy_model::role::Role;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::{EventQuery, ExecutionStore as _, StoreError, StoredEvent};
use serde_json::{Value, json};

use crate::app::{NOW, TestApp};

const TENANT: &str = "default";
const APP: &str = "runvoy";

/// Everything that is stored, oldest first.
pub async fn stored(app: &TestApp) -> Vec<StoredEvent> {
    app.store.events(EventQuery { limit: 100_000, ..EventQuery::default() }).await.expect("a memory store")
}

/// The ids of events as they are shown.
pub fn ids(events: &Value) -> Vec<String> {
    let id = |event: &Value| event["SK"].as_str().expect("a key").rsplit('#').next().expect("an id").replace('-', "");
    events.as_array().expect("an array").iter().map(id).collect()
}

async fn query(app: &TestApp, role: Role, query: &str) -> Value {
    let answer = app.get(&format!("/api/v1/events?{query}")).role(role).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
    answer.json()
}

fn task(id: &str, parents: &[&str]) -> Value {
    json!({"taskId": id, "dependsOn": parents, "command": "true", "retries": 0})
}

async fn job_of(app: &TestApp, role: Role, body: &Value) -> String {
    let answer = app.post("/api/v1/jobs").role(role).json(body).send().await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()["jobId"].as_str().expect("an id").to_owned()
}

/// Executions of two people, over an hour and more, and a job: their ids, and the job's.
async fn history(app: &TestApp) -> (Vec<String>, String) {
    let mut made = Vec::new();
    for round in 0..6 {
        let role = if round % 2 == 0 { Role::Admin } else { Role::Developer };
        made.push(app.submit_as(role, json!({"command": "true"})).await);
        app.clock.advance(5 * 60_000);
        let played = app.play().await;
        played.extend().await;
        played.exit(if round % 3 == 0 { 64 } else { 0 }).await;
        app.clock.advance(15 * 60_000);
    }
    let job = job_of(app, Role::Developer, &json!({"tasks": [task("a", &[]), task("b", &["a"])]})).await;
    app.play().await.exit(0).await;
    (made, job)
}

#[tokio::test]
async fn every_shape_finds_what_a_look_at_everything_finds() {
    let app = TestApp::new().await;
    let (made, job) = history(&app).await;
    let all = stored(&app).await;
    let (types, entities) = (["Task Completed", "Task Pending", "Job Created"], [format!("TASK:{}", made[1]), format!("JOB:{job}")]);
    let some = |value: Option<&str>, name: &str| value.map_or(String::new(), |value| format!("&{name}={}", value.replace(' ', "%20")));
    let kinds = types.iter().copied().map(Some).chain([None]);
    let mut asked = 0;
    for kind in kinds {
        for entity in [None, Some(entities[0].as_str()), Some(entities[1].as_str())] {
            for (tenant, app_name) in [(None, None), (None, Some(APP)), (Some(TENANT), None), (Some(TENANT), Some(APP))] {
                if kind.is_none() && tenant.is_some() && (entity.is_some() || app_name.is_some()) {
                    continue;
                }
                let shape = some(kind, "type") + &some(tenant, "tenant") + &some(app_name, "app") + &some(entity, "entity");
                let is_asked = |stored: &&StoredEvent| {
                    let about = format!("{}:{}", stored.event.entity.kind.as_str(), stored.event.entity.id);
                    kind.is_none_or(|kind| stored.event.kind.as_str() == kind) && entity.is_none_or(|entity| about == entity)
                };
                let mut expected: Vec<String> = all.iter().filter(is_asked).map(|stored| stored.event.id.to_string()).collect();
                assert_eq!(ids(&query(&app, Role::Admin, &format!("limit=1000&order=asc{shape}")).await), expected, "{shape}");
                expected.reverse();
                assert_eq!(ids(&query(&app, Role::Admin, &format!("limit=1000{shape}")).await), expected, "newest first: {shape}");
                asked += usize::from(!expected.is_empty());
            }
        }
    }
    assert!(asked > 20, "{asked} shapes found something");
    for (role, part) in [(Role::Admin, &made[0][24..]), (Role::Developer, &job[24..])] {
        let kind = if role == Role::Admin { "TASK" } else { "JOB" };
        assert!(!ids(&query(&app, role, &format!("entity={kind}:{part}")).await).is_empty(), "a part of an id is enough");
    }
}

#[tokio::test]
async fn the_keys_are_those_of_the_contract() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Developer, json!({"command": "true"})).await;
    let event = query(&app, Role::Developer, "type=Task%20Pending").await[0].clone();
    let (sk, time) = (event["SK"].as_str().expect("a key"), format!("TIMESTAMP#{NOW}"));
    assert!(sk.starts_with(&format!("{time}#EVENT#")) && sk.len() == time.len() + 7 + 36, "{sk}");
    let (entity, kind) = (format!("TASK#{id}"), "EVENT#Task Pending");
    for (key, value) in [
        ("PK", "TENANT#default".to_owned()),
        ("GSI1PK", entity.clone()),
        ("GSI1SK", format!("TASK#{time}")),
        ("GSI2PK", "APP#runvoy".into()),
        ("GSI2SK", time.clone()),
        ("GSI3PK", "APP#runvoy".into()),
        ("GSI3SK", format!("{entity}#{time}")),
        ("GSI4PK", kind.into()),
        ("GSI4SK", format!("TENANT#default#{time}")),
        ("GSI5PK", kind.into()),
        ("GSI5SK", format!("TENANT#default#{entity}#{time}")),
        ("GSI6PK", kind.into()),
        ("GSI6SK", format!("TENANT#default#APP#runvoy#{time}")),
        ("GSI7PK", kind.into()),
        ("GSI7SK", format!("TENANT#default#APP#runvoy#{entity}#{time}")),
        ("entityId", id.clone()),
        ("entityType", "TASK".into()),
        ("tenantId", "default".into()),
        ("eventType", "Task Pending".into()),
    ] {
        assert_eq!(event[key], value.as_str(), "{key}");
    }
    assert_eq!((&event["timestamp"], &event["receivedAt"]), (&json!(NOW), &json!(NOW)));
    assert_eq!((&event["context"]["environment"], &event["properties"]["requestId"]), (&json!("local"), &json!(id)));
}

#[tokio::test]
async fn only_a_heartbeat_says_when_it_is_forgotten() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let played = app.play().await;
    played.extend().await;
    played.exit(0).await;
    let events = query(&app, Role::Admin, &format!("entity=TASK:{id}")).await;
    let kept: Vec<_> = events.as_array().expect("events").iter().filter(|event| event.get("ttl").is_some()).collect();
    assert_eq!((kept.len(), &kept[0]["eventType"], &kept[0]["ttl"]), (1, &json!("Task Heartbeat"), &json!(NOW / 1_000 + 7 * 86_400)));
    let own = app.get(&format!("/api/v1/executions/{id}/events")).admin().send().await.json();
    assert_eq!(own.as_array().expect("events").iter().filter(|event| event.get("ttl").is_some()).count(), 1);
}

#[tokio::test]
async fn pages_have_no_gap_and_no_duplicate() {
    let app = TestApp::new().await;
    history(&app).await;
    let from = "2026-01-03T14:40:00Z";
    for shape in ["order=asc", "order=desc", "type=Task%20Pending&order=asc", &format!("from={from}&to=2026-01-03T15:30:00Z&order=desc")] {
        for role in [Role::Admin, Role::Developer] {
            let whole = ids(&query(&app, role, &format!("limit=1000&{shape}")).await);
            assert!(whole.len() > 3, "{shape}: {whole:?}");
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = app.get(&format!("/api/v1/events?limit=3&{shape}{cursor}")).role(role).send().await;
                let found = ids(&page.json());
                assert!(found.len() <= 3);
                seen.extend(found);
                match page.header("x-next-cursor") {
                    "" => break,
                    next => cursor = format!("&cursor={next}"),
                }
            }
            assert_eq!(seen, whole, "{shape}");
        }
    }
    let timed = query(&app, Role::Admin, &format!("limit=1000&from={from}&to=2026-01-03T15:30:00Z")).await;
    let times: Vec<i64> = timed.as_array().expect("events").iter().map(|event| event["timestamp"].as_i64().expect("a time")).collect();
    assert!(times.iter().all(|at| (1_767_451_200_000..1_767_454_200_000).contains(at)), "{times:?}");
}

#[tokio::test]
async fn another_tenant_or_app_has_no_events() {
    let app = TestApp::with(|config| config.events.tenant = "acme".into(), |_| {}).await;
    let id = app.submit("true").await;
    for shape in [
        "tenant=default".to_owned(),
        "app=other".to_owned(),
        format!("app=other&entity=TASK:{id}"),
        "type=Task%20Pending&tenant=default".to_owned(),
        format!("type=Task%20Pending&tenant=default&entity=TASK:{id}"),
        format!("type=Task%20Pending&tenant=acme&app=other&entity=TASK:{id}"),
    ] {
        assert_eq!(query(&app, Role::Admin, &shape).await, json!([]), "{shape}");
    }
    let own = query(&app, Role::Admin, &format!("type=Task%20Pending&tenant=acme&app=runvoy&entity=TASK:{id}")).await;
    assert_eq!(own[0]["GSI4SK"], format!("TENANT#acme#TIMESTAMP#{NOW}"));
}

#[tokio::test]
async fn what_is_wrong_is_refused_by_name() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    for (bad, field) in [
        ("type=Nothing", "type"),
        ("type=task%20pending", "type"),
        ("entity=TASK", "entity"),
        ("entity=TASK:", "entity"),
        ("entity=THING:1", "entity"),
        ("order=up", "order"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=x", "cursor"),
        ("from=yesterday", "from"),
        ("follow=1&to=2026-01-03T15:30:00Z", "to"),
        ("follow=1&order=desc", "order"),
        ("follow=1&cursor=1000", "cursor"),
        ("tenant=default&app=runvoy", "tenant"),
        (&format!("tenant=default&entity=TASK:{id}"), "tenant"),
    ] {
        let answer = app.get(&format!("/api/v1/events?{bad}")).admin().send().await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()), "{bad}");
        assert!(answer.json()["error"].as_str().expect("details").starts_with(field), "{bad}: {}", answer.text());
    }
    for unknown in ["entity=TASK:ffffffffffffffffffffffffffffffff", "entity=JOB:ffffffffffffffffffffffffffffffff"] {
        assert_eq!(app.get(&format!("/api/v1/events?{unknown}")).admin().send().await.code(), (404, "NOT_FOUND".into()));
    }
    assert_eq!(query(&app, Role::Admin, "entity=USER:nobody@example.com").await, json!([]));
}

#[tokio::test]
async fn security_08_a_developer_sees_events_of_their_own_and_only_admins_see_calls() {
    let app = TestApp::new().await;
    let (made, job) = history(&app).await;
    let all = stored(&app).await;
    let own = |stored: &&StoredEvent| {
        let properties = &stored.event.properties;
        let theirs = made.iter().skip(1).step_by(2).any(|id| stored.event.entity.id == *id) || properties["jobId"] == job.as_str();
        theirs && stored.event.kind != EventType::Audit
    };
    let id = |stored: &StoredEvent| stored.event.id.to_string();
    let expected: Vec<String> = all.iter().filter(own).map(id).collect();
    assert_eq!(ids(&query(&app, Role::Developer, "limit=1000&order=asc").await), expected);
    let plain: Vec<String> = all.iter().filter(|stored| stored.event.kind != EventType::Audit).map(id).collect();
    for role in [Role::Operator, Role::Viewer] {
        assert_eq!(ids(&query(&app, role, "limit=1000&order=asc").await), plain);
        assert_eq!(query(&app, role, &format!("entity=TASK:{}&type=Task%20Pending", made[0])).await.as_array().map(Vec::len), Some(1));
    }
    assert_eq!(ids(&query(&app, Role::Admin, "limit=1000&order=asc").await).len(), all.len());
    assert!(!query(&app, Role::Admin, "entity=USER:viewer@example.com").await.as_array().expect("events").is_empty());
    let foreign = format!("entity=TASK:{}", made[0]);
    assert_eq!(app.get(&format!("/api/v1/events?{foreign}")).role(Role::Developer).send().await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(app.get(&format!("/api/v1/events?follow=1&{foreign}")).role(Role::Developer).send().await.code(), (404, "NOT_FOUND".into()));
    let of_people: Vec<String> = EntityType::ALL.map(EntityType::as_str)[2..9].iter().map(|kind| format!("entity={kind}:x")).collect();
    for forbidden in of_people.iter().map(String::as_str).chain(["type=Audit", "type=Audit%20Checkpoint"]) {
        for role in [Role::Operator, Role::Developer, Role::Viewer] {
            for follow in ["", "&follow=1"] {
                let answer = app.get(&format!("/api/v1/events?{forbidden}{follow}")).role(role).send().await;
                assert_eq!(answer.code(), (403, "FORBIDDEN".into()), "{forbidden}");
            }
        }
    }
    for all in ["type=Task%20Health%20Check", "entity=HEALTH:all"] {
        assert_eq!(app.get(&format!("/api/v1/events?{all}")).role(Role::Developer).send().await.code(), (403, "FORBIDDEN".into()));
        query(&app, Role::Viewer, all).await;
    }
}

#[tokio::test]
async fn what_does_not_fit_into_an_event_can_be_had_by_who_may_see_it() {
    let app = TestApp::new().await;
    let tasks: Vec<Value> =
        (0..300).map(|n| json!({"taskId": format!("t{n}"), "command": "true", "input": {"text": "x".repeat(1_000)}})).collect();
    let job = job_of(&app, Role::Developer, &json!({"tasks": tasks})).await;
    let shape = format!("entity=JOB:{job}&type=Job%20Created");
    let created = query(&app, Role::Developer, &shape).await[0]["properties"].clone();
    assert_eq!((&created["totalTasks"], created.get("tasks")), (&json!(300), None));
    assert_eq!(created["_s3Overflow"]["fields"], json!(["tasks"]));
    assert!(created["_s3Overflow"]["bytes"].as_u64() > Some(300_000) && created["_s3Overflow"]["key"].is_string());
    let whole = query(&app, Role::Developer, &format!("{shape}&resolve=1")).await[0]["properties"].clone();
    assert_eq!((whole["tasks"].as_array().map(Vec::len), whole.get("_s3Overflow")), (Some(300), None));
    assert_eq!(whole["tasks"][7]["input"]["text"].as_str().map(str::len), Some(1_000));
}

/// Blobs of which none is what was put there.
struct Rotten;

#[async_trait::async_trait]
impl BlobStore for Rotten {
    async fn put(&self, _: &str, _: Vec<u8>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Err(StoreError::Damaged(format!("blob {key} is not what was written")))
    }
}

#[tokio::test]
async fn what_lies_elsewhere_comes_as_the_text_that_lies_there_and_its_loss_keeps_nobody_from_the_rest() {
    let app = TestApp::new().await;
    job_of(&app, Role::Developer, &json!({"tasks": [task("a", &[])]})).await;
    let output = json!({"rows": "x".repeat(300_000)});
    let execution = app.play().await.gives_large(&output).await.id;
    let path = format!("/api/v1/events?resolve=1&order=asc&entity=TASK:{execution}");
    let ask = async |app: &TestApp| app.get(&path).role(Role::Developer).send().await;
    let plain = query(&app, Role::Developer, &format!("type=Task%20Completed&entity=TASK:{execution}")).await;
    let key = plain[0]["properties"]["_s3Overflow"]["key"].as_str().expect("a key").to_owned();
    let blobs = &app.engine.ports().blobs;
    // Deeper than values can be read, and spaced as nothing here would write it.
    let text = format!("{{\"rows\":  {}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
    blobs.put(&key, text.clone().into_bytes()).await.expect("kept");
    assert!(ask(&app).await.text().contains(&format!("\"output\":{text}")));
    blobs.put(&key, b"{".to_vec()).await.expect("kept");
    let (broken, rotten, gone) =
        (ask(&app).await, ask(&app.with_blobs(Arc::new(Rotten))).await, ask(&app.with_blobs(Arc::new(MemoryBlobStore::default()))).await);
    for (answer, how) in [(broken, "damaged"), (rotten, "damaged"), (gone, "missing")] {
        let events = answer.json();
        let overflow = &events[2]["properties"]["_s3Overflow"];
        assert_eq!((events.as_array().map(Vec::len), &overflow[how], &overflow["key"]), (Some(3), &json!(true), &json!(key)), "{events}");
    }
}

#[tokio::test]
async fn the_calls_about_an_execution_are_shown_to_who_may_read_the_trail() {
    let app = TestApp::new().await;
    let body = json!({"command": "true"});
    let answer = app.post("/api/v1/run").role(Role::Developer).json(&body).send().await.json();
    let path = format!("/api/v1/executions/{}/events", answer["execution_id"].as_str().expect("an id"));
    let kinds = async |role: Role| -> Vec<String> {
        let events = app.get(&path).role(role).send().await.json();
        events.as_array().expect("events").iter().map(|event| event["eventType"].as_str().expect("a type").to_owned()).collect()
    };
    assert_eq!(kinds(Role::Admin).await, ["Audit", "Task Pending"]);
    for role in [Role::Developer, Role::Operator, Role::Viewer] {
        assert_eq!(kinds(role).await, ["Task Pending"], "{role:?}");
    }
}

#[tokio::test]
async fn an_input_that_could_not_be_read_again_is_refused() {
    let app = TestApp::new().await;
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let submit = async |levels| {
        let body = json!({"tasks": [{"taskId": "a", "command": "true", "input": nested(levels)}]});
        app.post("/api/v1/jobs").role(Role::Developer).json(&body).send().await
    };
    assert_eq!(submit(64).await.status, StatusCode::CREATED);
    let refused = submit(65).await;
    assert_eq!(refused.code(), (400, "INVALID_REQUEST".into()));
    assert!(refused.text().contains("tasks[0].input") && refused.text().contains("nested deeper than 64 levels"), "{}", refused.text());
    query(&app, Role::Viewer, "type=Job%20Created").await;
}

#[tokio::test]
async fn a_task_has_the_events_of_all_that_it_has_been() {
    let app = TestApp::new().await;
    let job = job_of(&app, Role::Developer, &json!({"tasks": [task("a/1", &[]), task("b", &["a/1"])]})).await;
    let first = app.play().await.exit(64).await.id.to_string();
    let resumed = app.post(&format!("/api/v1/jobs/{job}/resume")).role(Role::Developer).send().await;
    assert_eq!(resumed.status, StatusCode::OK, "{}", resumed.text());
    let output = json!({"rows": "x".repeat(300_000)});
    let second = app.play().await.gives_large(&output).await.id.to_string();
    let path = |task: &str| format!("/api/v1/jobs/{job}/tasks/{task}/events");
    let events = app.get(&path("a%2F1")).role(Role::Developer).send().await.json();
    let found: Vec<(&str, &str)> = events
        .as_array()
        .expect("events")
        .iter()
        .map(|event| (event["entityId"].as_str().expect("an id"), event["eventType"].as_str().expect("a type")))
        .collect();
    let life = |id, end| [(id, "Task Pending"), (id, "Task Processing Started"), (id, end)];
    assert_eq!(found, [life(first.as_str(), "Task Failed"), life(second.as_str(), "Task Completed")].concat());
    assert_eq!((&events[5]["properties"]["_s3Overflow"]["fields"], events[5]["properties"].get("output")), (&json!(["output"]), None));
    let whole = app.get(&format!("{}?resolve=1", path("a%2F1"))).role(Role::Developer).send().await.json();
    assert_eq!((&whole[5]["properties"]["output"], whole[5]["properties"].get("_s3Overflow")), (&output, None));
    let waiting = app.get(&path("b")).role(Role::Developer).send().await.json();
    assert_eq!(waiting.as_array().map(Vec::len), Some(1), "it waits for a worker: {waiting}");
    assert_eq!(app.get(&path("c")).role(Role::Developer).send().await.code(), (404, "NOT_FOUND".into()));
    let other = job_of(&app, Role::Admin, &json!({"tasks": [task("a", &[]), task("b", &["a"])]})).await;
    let foreign = format!("/api/v1/jobs/{other}/tasks/a/events");
    assert_eq!(app.get(&foreign).role(Role::Developer).send().await.code(), (404, "NOT_FOUND".into()));
    assert_eq!(app.get(&foreign).role(Role::Viewer).send().await.json().as_array().map(Vec::len), Some(1));
    assert_eq!(app.get(&foreign.replace("/a/", "/b/")).admin().send().await.json(), json!([]), "nothing has happened to it yet");
}

#[tokio::test]
async fn a_start_names_its_process_once_it_is_known_and_no_two_events_have_one_number() {
    let app = TestApp::new().await;
    let id = app.submit("sleep 200").await;
    let played = app.play().await;
    let shown = async || app.get(&format!("/api/v1/executions/{id}/events")).admin().send().await.json();
    let of_start = |events: &Value| {
        let start = events.as_array().expect("an array").iter().find(|event| event["eventType"] == "Task Processing Started");
        start.expect("it began")["properties"]["processId"].clone()
    };
    assert_eq!(of_start(&shown().await), Value::Null, "nobody knows yet");
    for _ in 0..3 {
        app.clock.advance(61_000);
        played.extend().await;
    }
    played.exit(0).await;
    let events = shown().await;
    assert_eq!(of_start(&events), 7);
    assert_eq!(of_start(&query(&app, Role::Admin, &format!("order=asc&entity=TASK:{id}")).await), 7);
    let beats = events.as_array().expect("an array").iter().filter(|event| event["eventType"] == "Task Heartbeat").count();
    let mut numbers: Vec<u64> =
        events.as_array().expect("an array").iter().map(|event| event["number"].as_u64().expect("a number")).collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((beats, numbers.len()), (3, count), "{events}");
    let starts = query(&app, Role::Admin, "type=Task%20Processing%20Started").await;
    assert_eq!((starts.as_array().map(Vec::len), of_start(&starts)), (Some(1), json!(7)), "a page of starts alone too");
    let kept = stored(&app).await.into_iter().find(|stored| stored.event.kind == EventType::TaskProcessingStarted);
    assert_eq!(kept.expect("it is stored").event.properties.get("processId"), None, "what is stored is as it was written");
}
