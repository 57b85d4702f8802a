//! What a job was sent with is what whoever leases it or looks at it is given; and who may take what our own workers would not do as it says.

use runvoy_model::role::Role;
use runvoy_model::rpc::{JOB_V1, PROTOCOL_LABEL};
use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{
    ContainerConfig, ContainerMount, DequeueJobRequest, EnqueueJobRequest, GitCloneConfig, JobParams, ListJobsRequest, ProcessType,
    WorkerInfo,
};
use serde_json::json;

use super::lease::info;
use super::{Jobs, admin, enqueue, job, lease, look, over_both, refusal, stream_refusal};
use crate::app::TestApp;

async fn register(app: &TestApp, image: &str) -> String {
    let answer = app.post("/api/v1/images/register").admin().json(&json!({"image": image})).send().await;
    answer.json()["image_id"].as_str().expect("an id").to_owned()
}

fn request(params: JobParams) -> EnqueueJobRequest {
    EnqueueJobRequest { job_params: params.into(), ..EnqueueJobRequest::default() }
}

/// A job with something in every field that other implementations share.
fn everything() -> JobParams {
    let texts = |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mount = ContainerMount { source: "/srv/cache".into(), target: "/cache".into(), read_only: true, ..ContainerMount::default() };
    JobParams {
        repository: "https://git.example.com/team/app.git".into(),
        commit: "0123abc".into(),
        branch: "main".into(),
        environment: texts(&[("GREETING", "hello")]),
        metadata: texts(&[
            ("team", "web"),
            ("owner", "somebody else"),
            ("branch", "of another thing"),
            ("message", "Fix it\n\nAt last.\n"),
            ("build url", "https://ci.example.com/7"),
        ]),
        owner: "ana@example.com".into(),
        command: "make".into(),
        args: vec!["all".into()],
        process_type: ProcessType::Pty.into(),
        timeout_seconds: 60,
        working_directory: "src".into(),
        container: ContainerConfig {
            enabled: true,
            image: "alpine:3".into(),
            runtime: "podman".into(),
            mounts: vec![mount],
            ..ContainerConfig::default()
        }
        .into(),
        git_clone: GitCloneConfig { enabled: true, submodules: "recursive".into(), ..GitCloneConfig::default() }.into(),
        priority: 3,
        worker_labels: texts(&[("gpu", "a100")]),
        ..JobParams::default()
    }
}

/// A job with nothing that our own workers would not do, and everything that is kept apart.
fn ours() -> JobParams {
    JobParams {
        repository: "https://git.example.com/team/app.git".into(),
        commit: "v1.2".into(),
        container: ContainerConfig { image: "alpine:3".into(), runtime: "podman".into(), ..ContainerConfig::default() }.into(),
        git_clone: GitCloneConfig { enabled: true, depth: 1, ..GitCloneConfig::default() }.into(),
        working_directory: ".".into(),
        worker_labels: Default::default(),
        ..everything()
    }
}

/// A job that clones nothing, and runs somewhere.
fn elsewhere() -> JobParams {
    JobParams {
        repository: format!("https://git.example.com/{}", "x".repeat(300)),
        container: Default::default(),
        git_clone: GitCloneConfig { depth: 9, ..GitCloneConfig::default() }.into(),
        working_directory: "/srv/app".into(),
        process_type: ProcessType::Pipe.into(),
        worker_labels: Default::default(),
        ..everything()
    }
}

fn of_gpu() -> DequeueJobRequest {
    let labels = [("gpu".to_owned(), "a100".to_owned())].into_iter().collect();
    DequeueJobRequest { worker: WorkerInfo { labels, ..info() }.into(), ..DequeueJobRequest::default() }
}

#[tokio::test]
async fn what_was_sent_is_what_is_leased_and_seen() {
    over_both(|app, protocol| async move {
        register(&app, "alpine:3").await;
        let served = app.listen().await;
        let client = admin(&served, protocol);
        for sent in [everything(), ours(), elsewhere()] {
            let id = enqueue(&client, request(sent.clone())).await;
            let leased = lease(&client, of_gpu()).await;
            assert_eq!(leased.job.job_id, id);
            assert_eq!(leased.job.job_params.as_option(), Some(&sent));
            let seen = JobParams { environment: Default::default(), ..sent };
            assert_eq!(look(&client, &id).await.job_params.as_option(), Some(&seen));
            let listed = client.list_jobs(ListJobsRequest::default()).await.expect("a page").into_owned().jobs;
            let listed = listed.iter().find(|job| job.job_id == id).expect("it is listed");
            assert_eq!(listed.job_params.as_option(), Some(&seen));
        }
    })
    .await;
}

#[tokio::test]
async fn an_image_is_told_by_what_it_is_pulled_by() {
    let app = TestApp::new().await;
    let image = register(&app, "ghcr.io/team/tool:v1").await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    app.submit_as(Role::Developer, json!({"command": "true", "image": image})).await;
    let leased = lease(&client, DequeueJobRequest::default()).await;
    let container = leased.job.job_params.as_option().expect("params").container.clone();
    assert_eq!((container.enabled, container.image.as_str()), (true, "ghcr.io/team/tool:v1"));
}

/// What a worker of this program is given now.
async fn for_our_own(client: &Jobs) -> Option<String> {
    let request =
        DequeueJobRequest { worker: info().into(), two_step: true, max_jobs: 8, wait_ms: Some(0), ..DequeueJobRequest::default() };
    let mut leases = client.dequeue_job(request).await.expect("a stream");
    leases.message().await.expect("an answer").map(|leased| leased.to_owned_message().job.job_id.clone())
}

#[tokio::test]
async fn what_our_own_workers_would_not_do_is_left_to_those_that_read_it_themselves() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let id = enqueue(&client, request(elsewhere())).await;
        assert_eq!(for_our_own(&client).await, None);
        let waiting = look(&client, &id).await.waiting_for;
        assert_eq!(waiting, "a worker of queue default that speaks job.v1");
        assert_eq!(lease(&client, DequeueJobRequest::default()).await.job.job_id, id);
        let id = enqueue(&client, request(ours())).await;
        assert_eq!(for_our_own(&client).await, Some(id), "that is for anybody");
    })
    .await;
}

#[tokio::test]
async fn nobody_asks_for_the_label_of_the_protocol_or_claims_to_have_it() {
    let app = TestApp::new().await;
    let body = json!({"command": "true", "worker_labels": {PROTOCOL_LABEL: JOB_V1}});
    let answer = app.post("/api/v1/run").admin().json(&body).send().await;
    assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()));
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let label = || [(PROTOCOL_LABEL.to_owned(), JOB_V1.to_owned())].into_iter().collect();
    let mut asked = job("true");
    asked.job_params.as_option_mut().expect("params").worker_labels = label();
    let (code, message) = refusal(client.enqueue_job(asked).await);
    assert!(code == ErrorCode::InvalidArgument && message.starts_with("job_params.worker_labels"), "{message}");
    let worker = WorkerInfo { labels: label(), ..info() };
    let claimed = DequeueJobRequest { worker: worker.into(), two_step: true, ..DequeueJobRequest::default() };
    let (code, message) = stream_refusal(&client, claimed).await;
    assert!(code == ErrorCode::InvalidArgument && message.starts_with("worker.labels"), "{message}");
}

#[tokio::test]
async fn what_is_too_large_to_be_kept_is_refused_by_name() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Connect);
    for (change, field) in [
        ((|params| drop(params.metadata.insert("log".into(), "x".repeat(66_000)))) as fn(&mut JobParams), "job_params.metadata"),
        (|params| params.working_directory = "x".repeat(1_025), "job_params.working_directory"),
        (|params| params.container.get_or_insert_default().runtime = "x".repeat(65), "job_params.container.runtime"),
        (|params| params.container.get_or_insert_default().mounts = vec![ContainerMount::default()], "job_params.container.mounts"),
        (|params| params.git_clone.get_or_insert_default().submodules = "x".repeat(65), "job_params.git_clone.submodules"),
        (|params| params.commit = "x".repeat(300), "job_params.commit"),
        (|params| params.owner = "x".repeat(300), "job_params.owner"),
    ] {
        let mut asked = job("true");
        change(asked.job_params.as_option_mut().expect("params"));
        let (code, message) = refusal(client.enqueue_job(asked).await);
        assert_eq!(code, ErrorCode::InvalidArgument, "{field}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{field}: {message}");
    }
}
