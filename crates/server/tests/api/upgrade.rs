//! Repeats across an upgrade: the fingerprints of requests are those that earlier versions stored. The texts below are what they hashed.

use http::StatusCode;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewKey};
use runvoy_model::command::SubmitKey;
use runvoy_model::id::{Id, StepId};
use runvoy_model::key::key_hash;
use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::ExecutionStore as _;
use runvoy_rpc::connectrpc::Protocol;
use runvoy_rpc::job::v1::EnqueueJobRequest;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::app::{NOW, TestApp, email_of};
use crate::rpc::{admin, enqueue, job};

/// What a request with this key left in the store.
async fn left(app: &TestApp, key: &str) -> [u8; 32] {
    let (_, fingerprint) = app.store.made_by(&email_of(Role::Admin), key).await.expect("a memory store").expect("it was kept");
    fingerprint
}

fn hashed(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

const OVER_HTTP: &str = concat!(
    r#"{"action":"executions.run","asked":{"args":null,"command":"make","env":{},"git_path":null,"git_ref":null,"git_repo":null,"#,
    r#""git_token":null,"image":null,"labels":{},"lock":null,"lock_wait":null,"priority":null,"queue":null,"retries":null,"secrets":[],"#,
    r#""timeout":60,"worker_labels":{}}}"#,
);

/// Of a time when a job without `retries` had none.
const OVER_RPC: &str = concat!(
    r#"{"action":"executions.run","asked":{"args":null,"command":"make","env":{},"git_path":null,"git_ref":null,"git_repo":null,"#,
    r#""git_token":null,"image":null,"labels":{},"lock":null,"lock_wait":null,"priority":null,"queue":null,"retries":0,"secrets":[],"#,
    r#""timeout":null,"worker_labels":{}}}"#,
);

#[tokio::test]
async fn a_run_has_the_fingerprint_that_it_always_had() {
    let app = TestApp::new().await;
    let run = app.post("/api/v1/run").admin().header("idempotency-key", "k1").json(&json!({"command": "make", "timeout": 60})).send().await;
    assert_eq!(run.status, StatusCode::ACCEPTED);
    assert_eq!(left(&app, "k1").await, hashed(OVER_HTTP));
    let served = app.listen().await;
    enqueue(&admin(&served, Protocol::Connect), EnqueueJobRequest { request_id: "k2".into(), ..job("make") }).await;
    assert_eq!(left(&app, "k2").await, hashed(OVER_RPC));
}

#[tokio::test]
async fn an_invitation_of_an_earlier_version_is_known_again() {
    let app = TestApp::new().await;
    let brought = "n7Qx9LbT-z4WkP6sE-Vd3MyH8c-R2fJq5Gu";
    let hash = key_hash(brought);
    let asked = json!({"email": "ana@example.com", "key": runvoy_model::hex::hex(&hash), "role": "viewer"});
    let fingerprint = hashed(&format!(r#"{{"action":"users.create","asked":{asked}}}"#));
    let by = InvitedBy::Key(NewKey { hash, prefix: brought.chars().take(8).collect(), name: None, expires_at: None });
    let invited = Change::InviteUser(Invitation { email: "ana@example.com".into(), role: Role::Viewer, by });
    let step = Step::system(StepId(Id::from_bytes([9; 16])), UnixMs(NOW), "test");
    let key = SubmitKey { user: email_of(Role::Admin), key: "k1".into(), fingerprint };
    app.store.change(step, invited, Some(key)).await.expect("a memory store");
    let send = async |role: &str| {
        let body = json!({"email": "ana@example.com", "role": role, "api_key": brought});
        app.post("/api/v1/users/create").admin().header("idempotency-key", "k1").json(&body).send().await
    };
    let again = send("viewer").await;
    assert_eq!(again.status, StatusCode::CREATED, "{}", again.text());
    assert_eq!(send("developer").await.code(), (409, "CONFLICT".into()), "another request");
}
