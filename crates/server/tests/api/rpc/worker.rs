//! Workers elsewhere: that they are there, and what they are told.

use std::sync::Arc;

use runvoy_engine::Reaper;
use runvoy_model::id::WorkerId;
use runvoy_rpc::connectrpc::{ErrorCode, Protocol, stream_iter};
use runvoy_rpc::job::v1::{
    AttendWorkerRequest, CancelJobRequest, CompleteJobRequest, DequeueJobRequest, EnqueueJobRequest, JobResult, PublishJobEventsRequest,
    ReportWorkerRequest, UpdateJobRequest,
};
use serde_json::{Value, json};

use super::event::events;
use super::lease::info;
use super::{admin, caller, enqueue, job, jobs, lease, over_both, refusal, stream_refusal, worker_key};
use crate::app::TestApp;
use crate::people::audited;

fn report(job_ids: Vec<String>) -> ReportWorkerRequest {
    ReportWorkerRequest { worker: info().into(), queues: vec!["gpu".into()], job_ids, ..ReportWorkerRequest::default() }
}

#[tokio::test]
async fn a_worker_that_reports_is_listed_and_makes_its_queues_known() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (client, worker) = (admin(&served, Protocol::Grpc), jobs(&served, Protocol::Grpc, &worker_key(&app, "one", &[]).await));
    let in_queue = || EnqueueJobRequest { queue: "gpu".into(), ..job("true") };
    assert_eq!(refusal(client.enqueue_job(in_queue()).await).0, ErrorCode::InvalidArgument);
    worker.report_worker(report(vec![])).await.expect("it is noted");
    let keyed = || EnqueueJobRequest { request_id: "again".into(), ..in_queue() };
    let id = enqueue(&client, keyed()).await;
    let listed = app.engine.workers(&caller(&app).await).await.expect("a list");
    let seen = listed.iter().find(|seen| seen.worker == WorkerId::from_bytes([4; 16])).expect("it is there");
    assert_eq!((seen.account.as_ref().map(|name| name.as_str()), seen.host.as_str(), seen.running), (Some("one"), "far", 0));
    let request = DequeueJobRequest { worker: info().into(), queues: vec!["gpu".into()], ..DequeueJobRequest::default() };
    assert_eq!(lease(&worker, request).await.job.job_id, id);
    worker.report_worker(ReportWorkerRequest { leaving: true, ..report(vec![]) }).await.expect("it is noted");
    let listed = app.engine.workers(&caller(&app).await).await.expect("a list");
    assert!(listed.iter().all(|seen| seen.worker != WorkerId::from_bytes([4; 16])));
    assert_eq!(refusal(client.enqueue_job(in_queue()).await).0, ErrorCode::InvalidArgument, "nobody knows it any more");
    assert_eq!(enqueue(&client, keyed()).await, id, "a repeat is answered as the first one was");
}

#[tokio::test]
async fn a_drained_worker_is_told_and_gets_nothing_until_it_is_resumed() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let (client, key) = (admin(&served, protocol), worker_key(&app, "one", &[]).await);
        let worker = jobs(&served, protocol, &key);
        let answer = worker.report_worker(report(vec![])).await.expect("it is noted").into_owned();
        assert!(!answer.drained);
        let queues = || vec!["gpu".to_owned()];
        let own = || DequeueJobRequest { worker: info().into(), queues: queues(), wait_ms: Some(0), ..DequeueJobRequest::default() };
        let ask = async |name: &str, verb: &str| app.post(&format!("/api/v1/workers/{name}/{verb}")).admin().send().await.status;
        enqueue(&client, EnqueueJobRequest { queue: "gpu".into(), ..job("true") }).await;
        assert_eq!(ask(&answer.name, "drain").await, http::StatusCode::OK);
        assert!(worker.report_worker(report(vec![])).await.expect("it is noted").into_owned().drained);
        let mut none = worker.dequeue_job(own()).await.expect("a stream");
        assert!(none.message().await.expect("an end").is_none(), "a drained worker gets nothing");
        assert_eq!(ask(&answer.name, "resume").await, http::StatusCode::OK);
        assert!(!worker.report_worker(report(vec![])).await.expect("it is noted").into_owned().drained);
        lease(&worker, own()).await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_of_others_that_is_drained_gets_no_lease() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let worker = jobs(&served, Protocol::Grpc, &worker_key(&app, "one", &[]).await);
    let ask = || DequeueJobRequest { wait_ms: Some(0), ..DequeueJobRequest::default() };
    let mut nothing = worker.dequeue_job(ask()).await.expect("a stream");
    assert!(nothing.message().await.expect("an end").is_none());
    assert_eq!(app.post("/api/v1/workers/one/drain").admin().send().await.status, http::StatusCode::OK);
    enqueue(&admin(&served, Protocol::Grpc), job("true")).await;
    let mut nothing = worker.dequeue_job(ask()).await.expect("a stream");
    assert!(nothing.message().await.expect("an end").is_none(), "its lease is empty");
    assert_eq!(app.post("/api/v1/workers/one/resume").admin().send().await.status, http::StatusCode::OK);
    lease(&worker, DequeueJobRequest::default()).await;
}

#[tokio::test]
async fn nobody_speaks_for_a_worker_of_another_account() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let one = jobs(&served, Protocol::Grpc, &worker_key(&app, "one", &[]).await);
    let other = jobs(&served, Protocol::Grpc, &worker_key(&app, "other", &[]).await);
    one.report_worker(report(vec![])).await.expect("it is noted");
    assert_eq!(refusal(other.report_worker(report(vec![])).await).0, ErrorCode::PermissionDenied);
    let leaving = || ReportWorkerRequest { leaving: true, ..report(vec![]) };
    assert_eq!(refusal(other.report_worker(leaving()).await).0, ErrorCode::PermissionDenied);
    let as_it = DequeueJobRequest { worker: report(vec![]).worker, ..DequeueJobRequest::default() };
    assert_eq!(stream_refusal(&other, as_it).await.0, ErrorCode::PermissionDenied);
    let kept = audited(&app).await;
    let theirs = kept.iter().filter(|(user, action, _)| user == "worker:other" && action == "POST /job.v1.JobService/ReportWorker");
    assert_eq!(theirs.map(|(.., result)| result.as_str()).collect::<Vec<_>>(), ["denied: FORBIDDEN"; 2]);
    one.report_worker(leaving()).await.expect("it is its own");
    other.report_worker(report(vec![])).await.expect("it is nobody's now");
}

#[tokio::test]
async fn a_worker_names_so_many_queues() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let worker = jobs(&served, Protocol::Grpc, &worker_key(&app, "one", &[]).await);
    let named = |count: usize| ReportWorkerRequest { queues: (0..count).map(|n| format!("q{n}")).collect(), ..report(vec![]) };
    worker.report_worker(named(100)).await.expect("it is noted");
    let (code, message) = refusal(worker.report_worker(named(101)).await);
    assert!(code == ErrorCode::InvalidArgument && message.contains("queues"), "{message}");
}

#[tokio::test]
async fn a_worker_is_told_of_what_it_should_end() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let id = enqueue(&client, job("sleep 9")).await;
        let request = DequeueJobRequest { worker: info().into(), ..DequeueJobRequest::default() };
        assert_eq!(lease(&client, request).await.job.job_id, id);
        let attend = AttendWorkerRequest { worker_id: info().id, ..AttendWorkerRequest::default() };
        let mut told = client.attend_worker(attend).await.expect("a stream");
        assert!(client.report_worker(report(vec![id.clone()])).await.expect("it is noted").into_owned().job_ids.is_empty());
        let cancel = CancelJobRequest { job_id: id.clone(), ..CancelJobRequest::default() };
        client.cancel_job(cancel).await.expect("it runs");
        loop {
            let heard = told.message().await.expect("a call").expect("a call").to_owned_message();
            if !heard.job_ids.is_empty() {
                assert_eq!(heard.job_ids, std::slice::from_ref(&id));
                break;
            }
        }
        let answer = client.report_worker(report(vec![id.clone()])).await.expect("it is noted").into_owned();
        assert_eq!(answer.job_ids, [id], "and again by whoever asks");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_ends_whoever_waits() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let mut leases = client.dequeue_job(DequeueJobRequest::default()).await.expect("a stream");
        let attend = AttendWorkerRequest { worker_id: info().id, ..AttendWorkerRequest::default() };
        let mut told = client.attend_worker(attend).await.expect("a stream");
        served.stop().await;
        assert_eq!(refusal(leases.message().await.map(drop)).0, ErrorCode::Unavailable);
        assert_eq!(refusal(told.message().await.map(drop)).0, ErrorCode::Unavailable);
    })
    .await;
}

#[tokio::test]
async fn a_user_has_so_many_streams_of_every_kind_together() {
    let app = TestApp::with(|_| {}, |config| config.max_streams_per_user = 1).await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let attend = AttendWorkerRequest { worker_id: info().id, ..AttendWorkerRequest::default() };
    let told = client.attend_worker(attend).await.expect("a stream");
    let asked = async {
        let request = DequeueJobRequest { wait_ms: Some(1), ..DequeueJobRequest::default() };
        client.dequeue_job(request).await?.message().await.map(drop)
    };
    assert_eq!(refusal(asked.await).0, ErrorCode::ResourceExhausted);
    drop(told);
}

#[tokio::test]
async fn a_worker_that_says_nothing_of_itself_is_seen_while_it_waits_and_gone_where_it_took_nothing() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let worker = jobs(&served, Protocol::Grpc, &worker_key(&app, "one", &["gpu"]).await);
    let waiting = worker.dequeue_job(DequeueJobRequest { max_jobs: 3, ..DequeueJobRequest::default() }).await.expect("a stream");
    let workers = async || app.get("/api/v1/workers").admin().send().await.json();
    let seen = workers().await[0].clone();
    for (field, value) in [("account", json!("one")), ("runner", json!("rpc")), ("queues", json!(["gpu"])), ("live", json!(true))] {
        assert_eq!(seen[field], value, "{seen}");
    }
    assert_eq!((&seen["concurrency"], &seen["version"]), (&json!(3), &json!("unknown")));
    let queues = app.get("/api/v1/queues").admin().send().await.json();
    let gpu = queues.as_array().and_then(|queues| queues.iter().find(|queue| queue["name"] == "gpu")).expect("it is listed");
    assert_eq!(gpu["workers"], 1, "{gpu}");
    drop(waiting);
    app.clock.advance(31_000);
    assert_eq!(workers().await[0]["live"], false);
}

/// Whether the only worker is shown as live, and how many executions it runs of how many.
async fn shown(app: &TestApp) -> (Value, Value, Value) {
    let workers = app.get("/api/v1/workers").admin().send().await.json();
    assert_eq!(workers.as_array().map(Vec::len), Some(1), "{workers}");
    (workers[0]["live"].clone(), workers[0]["running"].clone(), workers[0]["concurrency"].clone())
}

async fn workers_of(app: &TestApp, queue: &str) -> Value {
    let queues = app.get("/api/v1/queues").admin().send().await.json();
    let found = queues.as_array().and_then(|queues| queues.iter().find(|found| found["name"] == queue)).cloned();
    found.expect("it is listed")["workers"].clone()
}

#[tokio::test]
async fn a_worker_that_says_nothing_of_itself_is_there_while_it_works() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let (client, worker) = (admin(&served, protocol), jobs(&served, protocol, &worker_key(&app, "one", &["gpu"]).await));
        let mut reaper = Reaper::new(Arc::clone(&app.engine));
        let in_queue = || EnqueueJobRequest { queue: "gpu".into(), ..job("sleep 900") };
        enqueue(&client, in_queue()).await;
        let leased = lease(&worker, DequeueJobRequest::default()).await;
        let next = enqueue(&client, in_queue()).await;
        let waits_for = async || app.get(&format!("/api/v1/executions/{next}/status")).admin().send().await.json()["waiting_for"].clone();
        reaper.look().await.expect("the store answers");
        app.clock.advance(200_000);
        assert_eq!(
            waits_for().await,
            json!({"code": "worker", "message": "a free worker of queue gpu"}),
            "before anybody asks for workers"
        );
        assert_eq!(shown(&app).await, (json!(true), json!(1), json!(1)));
        assert_eq!(workers_of(&app, "gpu").await, 1);

        let kept = UpdateJobRequest { task_token: leased.task_token.clone(), ..UpdateJobRequest::default() };
        worker.update_job(kept).await.expect("it is held");
        app.clock.advance(200_000);
        assert_eq!(shown(&app).await, (json!(true), json!(1), json!(1)), "until the end of what it has kept");
        assert_eq!(waits_for().await["message"], "a free worker of queue gpu");

        let result = JobResult { success: true, ..JobResult::default() };
        let over = CompleteJobRequest { task_token: leased.task_token, job_result: result.into(), ..CompleteJobRequest::default() };
        worker.complete_job(over).await.expect("it is held");
        app.clock.advance(29_000);
        assert_eq!(shown(&app).await, (json!(true), json!(0), json!(1)), "it was just heard of");
        app.clock.advance(2_000);
        assert_eq!(shown(&app).await, (json!(false), json!(0), json!(1)));
        assert_eq!(
            (workers_of(&app, "gpu").await, &waits_for().await["message"]),
            (json!(0), &json!("a worker: no worker serves queue gpu"))
        );
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_says_nothing_of_itself_is_heard_of_with_what_it_publishes() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let key = worker_key(&app, "one", &[]).await;
    enqueue(&admin(&served, Protocol::Grpc), job("sleep 900")).await;
    let leased = lease(&jobs(&served, Protocol::Grpc, &key), DequeueJobRequest::default()).await;
    app.clock.advance(60_000);
    let nothing = PublishJobEventsRequest { task_token: leased.task_token, ..PublishJobEventsRequest::default() };
    events(&served, Protocol::Grpc, &key).publish_job_events(stream_iter(vec![nothing])).await.expect("it is held");
    let seen = app.engine.workers(&caller(&app).await).await.expect("a list").remove(0);
    assert_eq!(seen.seen_at, app.engine.now());
}

#[tokio::test]
async fn what_a_worker_that_says_nothing_of_itself_holds_lapses() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (client, worker) = (admin(&served, Protocol::Grpc), jobs(&served, Protocol::Grpc, &worker_key(&app, "one", &[]).await));
    for _ in 0..2 {
        enqueue(&client, job("sleep 900")).await;
        lease(&worker, DequeueJobRequest { visibility_timeout_seconds: 60, ..DequeueJobRequest::default() }).await;
    }
    Reaper::new(Arc::clone(&app.engine)).look().await.expect("the store answers");
    assert_eq!(shown(&app).await, (json!(true), json!(2), json!(2)), "several with one key are seen as one");
    app.clock.advance(59_999);
    assert_eq!(shown(&app).await, (json!(true), json!(2), json!(2)));
    app.clock.advance(1);
    assert_eq!(shown(&app).await, (json!(false), json!(0), json!(1)));
}
