//! One registered key that leases and submits, as public clients have it.

use runvoy_model::role::Role;
use runvoy_rpc::connectrpc::{ErrorCode, Protocol, stream_iter};
use runvoy_rpc::job::v1::__buffa::oneof::job_event::EventData;
use runvoy_rpc::job::v1::{
    CancelJobRequest, CompleteJobRequest, DequeueJobRequest, EventType, GetJobRequest, JobEvent, JobResult, JobState, ListJobsRequest,
    OutputEvent, PublishJobEventsRequest, StreamJobEventsRequest,
};
use runvoy_rpc::principal::v1::{CredentialServiceClient, ListCredentialsRequest};
use serde_json::json;

use super::event::events;
use super::signer::Signer;
use super::{admin, enqueue, job, jobs, lease, look, over_both, refusal, spoken, state};
use crate::app::{TestApp, key_of};

fn of(job_id: &str) -> GetJobRequest {
    GetJobRequest { job_id: job_id.to_owned(), ..GetJobRequest::default() }
}

fn cancel(job_id: &str) -> CancelJobRequest {
    CancelJobRequest { job_id: job_id.to_owned(), ..CancelJobRequest::default() }
}

#[tokio::test]
async fn one_key_enqueues_leases_streams_and_completes() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let token = Signer::submitting(&app, "ci").await.token(600);
        let (client, reader) = (jobs(&served, protocol, &token), events(&served, protocol, &token));
        let id = enqueue(&client, job("true")).await;
        let leased = lease(&client, DequeueJobRequest::default()).await;
        assert_eq!((leased.job.job_id.as_str(), leased.job.job_params.owner.as_str()), (id.as_str(), "worker:ci"));
        let output = OutputEvent { output: b"hello\n".to_vec().into(), ..OutputEvent::default() };
        let event = JobEvent {
            sequence: 1,
            event_type: EventType::EVENT_TYPE_OUTPUT.into(),
            event_data: Some(EventData::Output(Box::new(output))),
            ..JobEvent::default()
        };
        let task_token = leased.task_token.clone();
        let told = PublishJobEventsRequest { task_token: task_token.clone(), events: vec![event], ..PublishJobEventsRequest::default() };
        reader.publish_job_events(stream_iter(vec![told])).await.expect("kept");
        let result = JobResult { success: true, ..JobResult::default() };
        let end = CompleteJobRequest { task_token, job_result: result.into(), ..CompleteJobRequest::default() };
        client.complete_job(end).await.expect("it is held");
        assert_eq!(state(&client, &id).await, JobState::Completed);
        let request = StreamJobEventsRequest { job_id: id.clone(), ..StreamJobEventsRequest::default() };
        let mut stream = reader.stream_job_events(request).await.expect("its own");
        assert_eq!(stream.message().await.expect("an event").expect("one").to_owned_message().event.sequence, 1);

        let (transport, config) = spoken(&served, protocol, &key_of(Role::Admin));
        let listed = CredentialServiceClient::new(transport, config).list_credentials(ListCredentialsRequest::default()).await;
        assert_eq!(listed.expect("a list").into_owned().credentials[0].roles, ["worker", "submit"]);
    })
    .await;
}

#[tokio::test]
async fn it_sees_and_ends_its_own_and_nothing_else() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let token = Signer::submitting(&app, "ci").await.token(600);
    let client = jobs(&served, Protocol::Grpc, &token);
    let (own, foreign) = (enqueue(&client, job("true")).await, enqueue(&admin(&served, Protocol::Grpc), job("true")).await);
    assert_eq!(look(&client, &own).await.job_id, own);
    assert_eq!(refusal(client.get_job(of(&foreign)).await).0, ErrorCode::NotFound);
    assert_eq!(refusal(client.cancel_job(cancel(&foreign)).await).0, ErrorCode::NotFound);
    assert_eq!(client.list_jobs(ListJobsRequest::default()).await.expect("a list").into_owned().jobs.len(), 1);
    let request = StreamJobEventsRequest { job_id: foreign, ..StreamJobEventsRequest::default() };
    let refused = events(&served, Protocol::Grpc, &token).stream_job_events(request).await;
    let code = match refused {
        Ok(mut stream) => refusal(stream.message().await.map(drop)).0,
        Err(error) => error.code,
    };
    assert_eq!(code, ErrorCode::NotFound);
    client.cancel_job(cancel(&own)).await.expect("its own");
    assert_eq!(state(&client, &own).await, JobState::Cancelled);
    for path in ["/api/v1/secrets", "/api/v1/workers", "/api/v1/users"] {
        let refused = app.get(path).header("authorization", &format!("Bearer {token}")).send().await;
        assert_eq!(refused.status.as_u16(), 403, "{path}");
    }
}

#[tokio::test]
async fn without_the_right_it_only_works() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = jobs(&served, Protocol::Connect, &Signer::registered(&app, "ci", "worker").await.token(600));
    assert_eq!(refusal(client.enqueue_job(job("true")).await).0, ErrorCode::PermissionDenied);
    assert_eq!(refusal(client.list_jobs(ListJobsRequest::default()).await).0, ErrorCode::PermissionDenied);
}

#[tokio::test]
async fn it_submits_to_its_own_queues_and_keeps_its_public_key() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = jobs(&served, Protocol::Grpc, &Signer::submitting_to(&app, "ci", &["gpu"]).await.token(600));
    assert_eq!(refusal(client.enqueue_job(job("true")).await).0, ErrorCode::PermissionDenied);
    let rotated = app.post("/api/v1/workers/accounts/ci/rotate").admin().send().await;
    assert_eq!(rotated.code().0, 409, "{}", rotated.text());
}

#[tokio::test]
async fn it_is_given_no_secret_of_others_and_rules_hold_for_it() {
    let app = TestApp::new().await;
    let secret = json!({"name": "db", "key_name": "DB_URL", "value": "pg://secret"});
    assert!(app.post("/api/v1/secrets").admin().json(&secret).send().await.status.is_success());
    let rule = json!({"name": "no-rm", "effect": "deny", "commands": ["rm *"]});
    assert!(app.post("/api/v1/rules").admin().json(&rule).send().await.status.is_success());
    let served = app.listen().await;
    let client = jobs(&served, Protocol::Grpc, &Signer::submitting(&app, "ci").await.token(600));
    let mut with_secret = job("true");
    with_secret.job_params.get_or_insert_default().secrets = vec!["db".into()];
    assert!(client.enqueue_job(with_secret).await.is_err());
    assert_eq!(refusal(client.enqueue_job(job("rm -rf /srv")).await).0, ErrorCode::PermissionDenied);
    enqueue(&client, job("true")).await;
}
