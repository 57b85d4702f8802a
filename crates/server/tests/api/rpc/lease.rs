//! Leases as our own worker uses them: taken, begun, fed with output, ended.

use std::sync::Arc;

use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use runvoy_engine::Dispatcher;
use runvoy_model::command::{EndAttempt, Fence, Outcome};
use runvoy_model::execution::Execution;
use runvoy_model::id::WorkerId;
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_model::role::Role;
use runvoy_model::spec::Spec;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{
    AppendOutputRequest, AppendOutputResponse, BeginJobRequest, CompleteJobRequest, DequeueJobRequest, DequeueJobResponse,
    FetchMaterialsRequest, ReleaseJobRequest, StoreBlobRequest, WorkerInfo,
};
use serde_json::json;

use super::{Jobs, admin, enqueue, job, lease, look, over_both, refusal};
use crate::app::{NOW, TestApp, key_of};

pub fn info() -> WorkerInfo {
    WorkerInfo {
        id: WorkerId::from_bytes([4; 16]).to_string(),
        name: "w1".into(),
        host: "far".into(),
        runner: "process".into(),
        ..WorkerInfo::default()
    }
}

fn two_step() -> DequeueJobRequest {
    DequeueJobRequest { worker: info().into(), two_step: true, max_jobs: 8, lease_ttl_ms: 2_000, ..DequeueJobRequest::default() }
}

fn begin(leased: &DequeueJobResponse) -> BeginJobRequest {
    BeginJobRequest { task_token: leased.task_token.clone(), ..BeginJobRequest::default() }
}

#[tokio::test]
async fn in_two_steps_a_lease_is_begun_by_its_worker() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let id = enqueue(&client, job("true")).await;
        let leased = lease(&client, two_step()).await;
        let execution: Execution = serde_json::from_slice(&leased.execution).expect("an execution");
        let spec: Spec = serde_json::from_slice(&leased.spec).expect("a spec");
        let held = execution.lease.clone().expect("a lease");
        assert_eq!((execution.id.to_string(), spec.command.as_str(), held.begun), (id.clone(), "true", false));
        assert_eq!((held.worker, held.ttl_ms, leased.attempt), (WorkerId::from_bytes([4; 16]), 2_000, 1));
        assert_eq!(look(&client, &id).await.attempt, 0, "it does not count yet");

        let begun = client.begin_job(begin(&leased)).await.expect("it is held").into_owned();
        let begun: Execution = serde_json::from_slice(&begun.execution).expect("an execution");
        assert_eq!((begun.status, begun.attempt), (Status::Running, 1));
        client.begin_job(begin(&leased)).await.expect("a repeat changes nothing");
        assert_eq!(look(&client, &id).await.attempt, 1);

        let fence = Fence { execution: begun.id, attempt: 1, lease: held.id };
        let end = |end: &EndAttempt| CompleteJobRequest {
            task_token: leased.task_token.clone(),
            end: serde_json::to_vec(end).expect("JSON").into(),
            ..CompleteJobRequest::default()
        };
        let other = end_of(Fence { attempt: 2, ..fence });
        assert_eq!(refusal(client.complete_job(end(&other)).await).0, ErrorCode::InvalidArgument);
        let ended = client.complete_job(end(&end_of(fence))).await.expect("it is held").into_owned();
        let ended: Execution = serde_json::from_slice(&ended.execution).expect("an execution");
        assert_eq!(ended.status, Status::Succeeded);
    })
    .await;
}

fn end_of(fence: Fence) -> EndAttempt {
    EndAttempt { duration_ms: 5, ..EndAttempt::of(fence, Outcome::Exited { code: 0, after_kill: false }) }
}

#[tokio::test]
async fn a_lease_that_was_not_begun_goes_back_uncounted() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let id = enqueue(&client, job("true")).await;
    let leased = lease(&client, two_step()).await;
    let release = ReleaseJobRequest { task_token: leased.task_token.clone(), ..ReleaseJobRequest::default() };
    client.release_job(release).await.expect("it is held");
    let seen = look(&client, &id).await;
    assert_eq!((seen.status.as_str(), seen.attempt), ("PENDING", 0));
    assert_eq!(refusal(client.begin_job(begin(&leased)).await).0, ErrorCode::FailedPrecondition);
    assert_eq!(lease(&client, two_step()).await.job.job_id, id);
}

fn output(leased: &DequeueJobResponse, first_sequence: u64, lines: &[&str]) -> AppendOutputRequest {
    let mut block = BlockBuilder::default();
    for line in lines {
        block.push(Record { at: UnixMs(NOW), stream: Stream::Stdout, cont: false, eol: true, bytes: line.as_bytes() });
    }
    let block = block.take();
    AppendOutputRequest {
        task_token: leased.task_token.clone(),
        first_sequence,
        first_at_ms: block.first_at.0,
        records: block.data,
        ..AppendOutputRequest::default()
    }
}

async fn append(client: &Jobs, request: AppendOutputRequest) -> AppendOutputResponse {
    client.append_output(request).await.expect("it is taken").into_owned()
}

#[tokio::test]
async fn output_is_kept_once_and_a_gap_is_told() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let id = enqueue(&client, job("true")).await;
        let leased = lease(&client, DequeueJobRequest::default()).await;
        assert_eq!(append(&client, output(&leased, 1, &["one", "two"])).await.stored_through, 2);
        assert_eq!(append(&client, output(&leased, 1, &["one", "two", "three"])).await.stored_through, 3);
        let gap = append(&client, output(&leased, 7, &["seven"])).await;
        assert_eq!((gap.expected, gap.stored_through), (Some(4), 3));
        let synced = AppendOutputRequest { sync: true, ..output(&leased, 4, &["four"]) };
        assert_eq!(append(&client, synced).await.stored_through, 4);
        assert_eq!(refusal(client.append_output(output(&leased, 0, &["none"])).await).0, ErrorCode::InvalidArgument);
        let broken = AppendOutputRequest { records: vec![0xff; 9].into(), ..output(&leased, 5, &[]) };
        assert_eq!(refusal(client.append_output(broken).await).0, ErrorCode::InvalidArgument);

        let over = CompleteJobRequest {
            task_token: leased.task_token.clone(),
            job_result: runvoy_rpc::job::v1::JobResult { success: true, ..Default::default() }.into(),
            ..CompleteJobRequest::default()
        };
        client.complete_job(over).await.expect("it is held");
        assert_eq!(append(&client, output(&leased, 5, &["late"])).await.stored_through, 5, "for a day it is taken, and marked");
        let log = app.get(&format!("/api/v1/executions/{id}/logs")).admin().send().await;
        for line in ["one", "two", "three", "four", "late"] {
            assert_eq!(log.text().matches(&format!("\"message\":\"{line}\"")).count(), 1, "{line}: {}", log.text());
        }
        app.clock.advance(25 * 3600 * 1000);
        assert_eq!(refusal(client.append_output(output(&leased, 6, &["too late"])).await).0, ErrorCode::FailedPrecondition);
    })
    .await;
}

#[tokio::test]
async fn security_29_materials_hold_their_memory_until_they_are_sent() {
    let app = TestApp::new().await;
    let wide = json!({"tasks": [{"taskId": "a", "command": "true", "input": {"wide": "x".repeat(300_000)}}]});
    let submitted = app.post("/api/v1/jobs").admin().json(&wide).send().await;
    assert!(submitted.status.is_success(), "{}", submitted.text());
    Dispatcher::new(Arc::clone(&app.engine)).look().await.expect("a memory store");
    let served = app.listen().await;
    let client = admin(&served, Protocol::Connect);
    let leased = lease(&client, two_step()).await;
    client.begin_job(begin(&leased)).await.expect("it is held");
    let request = Request::post("/job.v1.JobService/FetchMaterials")
        .header("authorization", format!("Bearer {}", key_of(Role::Admin)))
        .header("content-type", "application/json")
        .body(Body::from(json!({"taskToken": leased.task_token}).to_string()))
        .expect("a request");
    let before = app.engine.memory().free_bytes();
    let response = app.app.answer(request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(app.engine.memory().free_bytes() + 300_000 <= before, "nothing is sent yet");
    let sent = response.into_body().collect().await.expect("a whole body").to_bytes();
    assert!(sent.len() > 300_000);
    drop(sent);
    assert_eq!(app.engine.memory().free_bytes(), before);
}

#[tokio::test]
async fn the_values_of_secrets_are_for_the_holder_of_the_lease() {
    over_both(|app, protocol| async move {
        let made =
            app.post("/api/v1/secrets").admin().json(&json!({"name": "db", "key_name": "DB_URL", "value": "pg://secret"})).send().await;
        assert!(made.status.is_success(), "{}", made.text());
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let mut request = job("true");
        request.job_params.as_option_mut().expect("params").secrets = vec!["db".into()];
        let (first, second) = (enqueue(&client, request.clone()).await, enqueue(&client, request).await);
        let leased = lease(&client, DequeueJobRequest::default()).await;
        assert_eq!(leased.job.job_params.environment["DB_URL"], "pg://secret");

        let leased = lease(&client, two_step()).await;
        assert!(leased.job.job_params.environment.is_empty(), "our own worker asks for them");
        let fetch = || FetchMaterialsRequest { task_token: leased.task_token.clone(), ..FetchMaterialsRequest::default() };
        assert_eq!(refusal(client.fetch_materials(fetch()).await).0, ErrorCode::FailedPrecondition, "it has not begun");
        client.begin_job(begin(&leased)).await.expect("it is held");
        let materials = client.fetch_materials(fetch()).await.expect("it is held").into_owned();
        assert_eq!((materials.secrets[0].key_name.as_str(), materials.secrets[0].value.as_str()), ("DB_URL", "pg://secret"));

        app.delete("/api/v1/secrets/db").admin().send().await;
        let refused = client.fetch_materials(fetch()).await.expect("it is held").into_owned();
        assert!(refused.refused.is_some_and(|why| why.contains("db")) && refused.secrets.is_empty());
        assert_ne!(first, second);
    })
    .await;
}

#[tokio::test]
async fn what_a_command_gave_is_kept_for_its_holder() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    enqueue(&client, job("true")).await;
    let leased = lease(&client, DequeueJobRequest::default()).await;
    // Larger than a call usually may be.
    let data = format!("\"{}\"", "x".repeat(6 << 20)).into_bytes();
    let request = StoreBlobRequest { task_token: leased.task_token.clone(), data: data.clone().into(), ..StoreBlobRequest::default() };
    let kept = client.store_blob(request).await.expect("it is held").into_owned();
    let payload: runvoy_model::job::Payload = serde_json::from_slice(&kept.payload).expect("a payload");
    assert!(matches!(payload, runvoy_model::job::Payload::Blob { bytes, .. } if bytes == data.len() as u64));
}
