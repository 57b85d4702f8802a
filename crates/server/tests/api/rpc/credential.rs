//! Public keys of workers.

use runvoy_model::role::Role;
use runvoy_rpc::connectrpc::client::HttpClient;
use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{DequeueJobRequest, EnqueueJobRequest, GetJobRequest, ListJobsRequest};
use runvoy_rpc::principal::v1::{CredentialServiceClient, ImportCredentialRequest, ListCredentialsRequest, RevokeCredentialRequest};

use super::signer::Signer;
use super::{admin, enqueue, job, jobs, lease, look, over_both, refusal, spoken, stream_refusal, worker_key};
use crate::app::{Served, TestApp, key_of};

fn credentials(served: &Served, protocol: Protocol, role: Role) -> CredentialServiceClient<HttpClient> {
    let (transport, config) = spoken(served, protocol, &key_of(role));
    CredentialServiceClient::new(transport, config)
}

/// A public key and its name, as the public clients give them.
fn import_request() -> ImportCredentialRequest {
    let key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n";
    ImportCredentialRequest {
        name: "ci".into(),
        public_key_pem: key.into(),
        description: "the build server".into(),
        ..ImportCredentialRequest::default()
    }
}

#[tokio::test]
async fn a_public_key_is_registered_listed_and_revoked() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = credentials(&served, protocol, Role::Admin);
        let made = client.import_credential(import_request()).await.expect("it is taken").into_owned();
        assert_eq!((made.name.as_str(), made.roles.as_slice(), made.org_id.as_str()), ("ci", &["worker".to_owned()][..], "default"));
        let nonsense = ImportCredentialRequest { public_key_pem: "nonsense!".into(), ..import_request() };
        let (code, message) = refusal(client.import_credential(nonsense).await);
        assert!(code == ErrorCode::InvalidArgument && message.starts_with("public_key_pem: "), "{message}");
        for name in ["ci", "another name"] {
            let known = ImportCredentialRequest { name: name.replace(' ', "-"), ..import_request() };
            assert_eq!(refusal(client.import_credential(known).await).0, ErrorCode::AlreadyExists, "{name}");
        }
        let accounts = app.get("/api/v1/workers/accounts").admin().send().await.json();
        assert_eq!(accounts[0]["description"], "the build server");

        let list = async |principal_type: &str| {
            let request = ListCredentialsRequest { principal_type: principal_type.into(), ..ListCredentialsRequest::default() };
            client.list_credentials(request).await.expect("a list").into_owned().credentials
        };
        let listed = list("").await;
        assert_eq!((listed.len(), &listed[0].principal_id, &listed[0].fingerprint), (1, &made.principal_id, &made.fingerprint));
        assert_eq!((list("worker").await.len(), list("person").await.len()), (1, 0));

        let revoke = |id: &str| RevokeCredentialRequest { principal_id: id.into(), ..RevokeCredentialRequest::default() };
        client.revoke_credential(revoke(&made.principal_id)).await.expect("it was there");
        assert!(list("").await.is_empty());
        assert_eq!(refusal(client.revoke_credential(revoke("x")).await).0, ErrorCode::InvalidArgument);
        assert_eq!(refusal(client.revoke_credential(revoke("019200000000700080000000000000ff")).await).0, ErrorCode::NotFound);
    })
    .await;
}

#[tokio::test]
async fn listing_credentials_answers_a_connect_get() {
    let app = TestApp::new().await;
    let path = "/principal.v1.CredentialService/ListCredentials?connect=v1&encoding=json&message=%7B%7D";
    let answer = app.get(path).admin().send().await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, serde_json::json!({})));
    let refused = app.get(path).role(Role::Operator).send().await;
    assert_eq!((refused.status.as_u16(), refused.json()["code"].as_str()), (403, Some("permission_denied")));
    let change = app.get("/principal.v1.CredentialService/RevokeCredential?connect=v1&encoding=json&message=%7B%7D").admin().send().await;
    assert_eq!(change.status.as_u16(), 405, "what changes something is never a GET");
}

#[tokio::test]
async fn only_an_admin_registers_keys() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = credentials(&served, Protocol::Grpc, Role::Operator);
    assert_eq!(refusal(client.list_credentials(ListCredentialsRequest::default()).await).0, ErrorCode::PermissionDenied);
}

fn of(job_id: &str) -> GetJobRequest {
    GetJobRequest { job_id: job_id.to_owned(), ..GetJobRequest::default() }
}

fn in_queue(queue: &str) -> ListJobsRequest {
    ListJobsRequest { queue: queue.to_owned(), ..ListJobsRequest::default() }
}

#[tokio::test]
async fn a_registered_key_does_what_its_stored_role_may() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let admin = admin(&served, protocol);
        let developer = jobs(&served, protocol, &Signer::registered(&app, "ci", "developer").await.token(600));
        let viewer = jobs(&served, protocol, &Signer::registered(&app, "eye", "viewer").await.token(600));
        let (own, foreign) = (enqueue(&developer, job("true")).await, enqueue(&admin, job("true")).await);
        assert_eq!(look(&developer, &own).await.job_params.owner, "worker:ci");
        assert_eq!(refusal(developer.get_job(of(&foreign)).await).0, ErrorCode::NotFound, "whatever its token claims");
        assert_eq!(developer.list_jobs(in_queue("")).await.expect("a list").into_owned().jobs.len(), 1);
        assert_eq!(stream_refusal(&developer, DequeueJobRequest::default()).await.0, ErrorCode::PermissionDenied, "it is no worker");
        assert_eq!(viewer.list_jobs(in_queue("")).await.expect("a list").into_owned().jobs.len(), 2);
        assert_eq!(refusal(viewer.enqueue_job(job("true")).await).0, ErrorCode::PermissionDenied);

        let listed = credentials(&served, protocol, Role::Admin).list_credentials(ListCredentialsRequest::default()).await;
        let roles: Vec<String> = listed.expect("a list").into_owned().credentials.into_iter().flat_map(|one| one.roles).collect();
        assert_eq!(roles, ["developer", "viewer"]);
    })
    .await;
}

#[tokio::test]
async fn what_a_registered_key_submits_is_given_the_secrets_that_its_role_may_use() {
    let app = TestApp::new().await;
    let secret = serde_json::json!({"name": "db", "key_name": "DB_URL", "value": "pg://secret"});
    assert!(app.post("/api/v1/secrets").admin().json(&secret).send().await.status.is_success());
    let served = app.listen().await;
    let operator = jobs(&served, Protocol::Grpc, &Signer::registered(&app, "ci", "operator").await.token(600));
    let mut request = job("true");
    request.job_params.get_or_insert_default().secrets = vec!["db".into()];
    enqueue(&operator, request).await;
    let leased = lease(&admin(&served, Protocol::Grpc), DequeueJobRequest::default()).await;
    assert_eq!(leased.job.job_params.environment["DB_URL"], "pg://secret");
}

#[tokio::test]
async fn a_worker_leases_and_finishes_and_reads_nothing_not_even_what_it_runs() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let id = enqueue(&admin(&served, protocol), EnqueueJobRequest { queue: "default".into(), ..job("true") }).await;
        for (name, queues) in [("one", &["default"][..]), ("two", &[])] {
            let worker = jobs(&served, protocol, &worker_key(&app, name, queues).await);
            assert_eq!(refusal(worker.get_job(of(&id)).await).0, ErrorCode::PermissionDenied, "{name}");
            assert_eq!(refusal(worker.list_jobs(in_queue("default")).await).0, ErrorCode::PermissionDenied, "{name}");
        }
        let worker = jobs(&served, protocol, &worker_key(&app, "three", &["default"]).await);
        let leased = lease(&worker, DequeueJobRequest::default()).await;
        assert_eq!((leased.job.job_id.as_str(), refusal(worker.get_job(of(&id)).await).0), (id.as_str(), ErrorCode::PermissionDenied));
    })
    .await;
}
