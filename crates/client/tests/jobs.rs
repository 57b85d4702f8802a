//! Calls about jobs, events, queues and health: where each goes and what it carries; and a stream of events through lost connections.

mod fake;

use fake::{Fake, Reply, Seen};
use runvoy_client::wire::{AddTasksRequest, CreateJobRequest, JobStatus, RedriveRequest, ResumeJobRequest, TaskRequest};
use runvoy_client::{Client, ClientError, Endpoint, EventsQuery, JobsQuery, Options, Retry, Streamed};
use serde_json::{Value, json};

const AT: &str = "2026-01-03T14:22:19Z";

async fn client(fake: &Fake) -> Client {
    let endpoint = format!("http://{}", fake.tcp().await).parse::<Endpoint>().expect("an endpoint");
    Client::new(Options { api_key: Some("rv_caller".to_owned()), retry: Retry::NONE, ..Options::new(endpoint) }).expect("plain options")
}

fn answering(body: Value) -> Fake {
    Fake::new(move |_| Reply::json(200, &body))
}

/// What was asked last: method, target, body, idempotency key.
fn last(fake: &Fake) -> (String, Value, Option<String>) {
    let seen: Seen = fake.seen().pop().expect("a request");
    let body = if seen.body.is_empty() { Value::Null } else { serde_json::from_slice(&seen.body).expect("JSON") };
    (format!("{} {}", seen.method, seen.target), body, seen.header("idempotency-key").map(str::to_owned))
}

fn task(id: &str) -> TaskRequest {
    TaskRequest { task_id: id.into(), command: Some("true".into()), ..TaskRequest::default() }
}

#[tokio::test]
async fn a_job_is_submitted_under_its_own_key_and_moved() {
    let fake =
        answering(json!({"jobId": "j1", "totalTasks": 1, "rootTasks": 1, "addedTasks": 1, "status": "RUNNING", "message": "resumed",
        "createdAt": AT, "createdBy": "ana"}));
    let client = client(&fake).await;
    let request = CreateJobRequest { request_id: Some("r1".into()), tasks: vec![task("a")], ..CreateJobRequest::default() };
    assert_eq!(client.submit_job(&request).await.expect("submitted").root_tasks, 1);
    let body = json!({"requestId": "r1", "tasks": [{"taskId": "a", "command": "true"}]});
    assert_eq!(last(&fake), ("POST /api/v1/jobs".to_owned(), body, Some("r1".to_owned())));
    client.submit_job(&CreateJobRequest { request_id: None, ..request }).await.expect("submitted");
    assert_eq!(last(&fake).2.map(|key| key.len()), Some(32), "a key of its own");
    client.add_tasks("j1", &AddTasksRequest { defaults: None, tasks: vec![task("b")] }).await.expect("added");
    assert_eq!(last(&fake).0, "POST /api/v1/jobs/j1/tasks");
    assert!(last(&fake).2.is_some());
    assert_eq!(client.resume_job("j1", &ResumeJobRequest::default()).await.expect("resumed").status, JobStatus::Running);
    assert_eq!(last(&fake).0, "POST /api/v1/jobs/j1/resume");
    client.cancel_job("j1").await.expect("cancelled");
    assert_eq!(last(&fake).0, "POST /api/v1/jobs/j1/cancel");
    client.job("j1").await.expect("shown");
    assert_eq!(last(&fake).0, "GET /api/v1/jobs/j1");
    client.job_counts("j1").await.expect("shown");
    assert_eq!(last(&fake).0, "GET /api/v1/jobs/j1?tasks=0");
}

#[tokio::test]
async fn lists_say_which_part_is_meant() {
    let fake = answering(json!([]));
    let client = client(&fake).await;
    let query =
        JobsQuery { limit: Some(5), status: vec![JobStatus::Failed, JobStatus::Running], cursor: Some("c".into()), ..JobsQuery::default() };
    client.jobs(&query).await.expect("a page");
    assert_eq!(last(&fake).0, "GET /api/v1/jobs?limit=5&status=FAILED%2CRUNNING&cursor=c");
    client.task_events("j1", "a/b").await.expect("a list");
    assert_eq!(last(&fake).0, "GET /api/v1/jobs/j1/tasks/a%2Fb/events");
    let query = EventsQuery {
        kind: Some("Task Failed".into()),
        entity: Some("TASK:01".into()),
        order: Some("asc".into()),
        ..EventsQuery::default()
    };
    client.query_events(&query).await.expect("a page");
    assert_eq!(last(&fake).0, "GET /api/v1/events?type=Task%20Failed&entity=TASK%3A01&order=asc");
    client.queues().await.expect("a list");
    assert_eq!(last(&fake).0, "GET /api/v1/queues");
    client.dead_letters("a/b", Some(2), None).await.expect("a page");
    assert_eq!(last(&fake).0, "GET /api/v1/queues/a%2Fb/dead?limit=2");
}

#[tokio::test]
async fn what_was_given_up_is_run_again_and_health_is_asked_for() {
    let fake = answering(json!({"queue": "q", "redriven": null, "summary": {"totalProcessing": 1}, "tasks": [],
        "requestId": "01", "health": "warning", "elapsed": 1, "timeSinceLastEvent": 2}));
    let client = client(&fake).await;
    client.redrive("q", &RedriveRequest { execution_ids: Some(vec!["01".into()]), after: None }).await.expect("redriven");
    let (target, body, key) = last(&fake);
    assert_eq!((target.as_str(), body, key.is_some()), ("POST /api/v1/queues/q/redrive", json!({"execution_ids": ["01"]}), true));
    client.redrive("q", &RedriveRequest { execution_ids: None, after: Some("n1".into()) }).await.expect("redriven");
    assert_eq!(last(&fake).1, json!({"after": "n1"}));
    assert_eq!(client.task_health().await.expect("a summary").summary.total_processing, 1);
    assert_eq!(client.health_of("01").await.expect("one").time_since_last_event, 2);
    assert_eq!(last(&fake).0, "GET /api/v1/health/tasks/01");
}

#[tokio::test]
async fn a_stream_of_events_goes_on_where_it_was_cut() {
    let fake = Fake::new(|seen| {
        let lines = match seen.parameter("cursor") {
            None => "{\"cursor\":\"c0\"}\n{\"eventType\":\"Task Pending\",\"cursor\":\"c1\"}\n",
            Some("c1") => "{\"cursor\":\"c1\"}\n\n{\"eventType\":\"Task Completed\",\"cursor\":\"c2\"}\n",
            Some(_) => return Reply::error(400, "INVALID_REQUEST", "enough"),
        };
        Reply::Answer(200, Vec::new(), lines.as_bytes().to_vec())
    });
    let query = EventsQuery { kind: Some("x".into()), ..EventsQuery::default() };
    let mut stream = client(&fake).await.follow_events(query);
    for expected in ["Task Pending", "Task Completed"] {
        match stream.next().await.expect("an event") {
            Streamed::Event(event) => assert_eq!(event.0, json!({"eventType": expected}), "the cursor is no part of it"),
            Streamed::Interrupted(error) => panic!("{error}"),
        }
    }
    assert!(matches!(stream.next().await, Err(ClientError::Refused(_))));
    assert!(fake.seen().iter().all(|seen| seen.parameter("follow") == Some("1") && seen.parameter("type") == Some("x")));
}
