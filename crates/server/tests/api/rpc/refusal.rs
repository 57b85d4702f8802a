//! Who is refused, and with what: keys, roles, queues, tokens, fields.

use http::{Method, StatusCode};
use runvoy_model::change::Change;
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{
    CompleteJobRequest, CompleteJobsRequest, DequeueJobRequest, EnqueueJobRequest, GetJobRequest, JobParams, ListJobsRequest,
    UpdateJobRequest,
};
use runvoy_server::App;

use super::{BOTH, admin, enqueue, forged, job, jobs, lease, over_both, refusal, stream_refusal, worker_key};
use crate::app::{ROLES, TestApp, key_of};
use crate::people::audited;

#[tokio::test]
async fn every_rpc_has_a_rule_and_every_rule_an_rpc() {
    let app = TestApp::new().await;
    let mut ruled: Vec<String> = App::rpc_table().iter().map(|rule| rule.path.to_owned()).collect();
    let mut served = app.app.served_rpcs();
    ruled.sort();
    served.sort();
    assert_eq!(served, ruled);
}

#[tokio::test]
async fn a_call_is_refused_in_its_own_protocol() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        for (key, code) in [("", ErrorCode::Unauthenticated), ("nonsense", ErrorCode::Unauthenticated)] {
            let client = jobs(&served, protocol, key);
            assert_eq!(refusal(client.enqueue_job(job("true")).await).0, code, "{key}");
            assert_eq!(stream_refusal(&client, DequeueJobRequest::default()).await.0, code, "{key}");
        }
        for role in ROLES.into_iter().filter(|role| *role != Role::Admin) {
            let client = jobs(&served, protocol, &key_of(role));
            assert_eq!(stream_refusal(&client, DequeueJobRequest::default()).await.0, ErrorCode::PermissionDenied, "{role:?}");
        }
        let viewer = jobs(&served, protocol, &key_of(Role::Viewer));
        assert_eq!(refusal(viewer.enqueue_job(job("true")).await).0, ErrorCode::PermissionDenied);
        let worker = jobs(&served, protocol, &worker_key(&app, "one", &[]).await);
        assert_eq!(refusal(worker.enqueue_job(job("true")).await).0, ErrorCode::PermissionDenied);
        assert_eq!(refusal(worker.list_jobs(ListJobsRequest::default()).await).0, ErrorCode::PermissionDenied);
    })
    .await;
}

#[tokio::test]
async fn a_key_works_in_either_header() {
    let app = TestApp::new().await;
    let answer = app.post("/job.v1.JobService/ListJobs").role(Role::Viewer).text("application/json", "{}").send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert!(answer.headers.contains_key("x-request-id"));
}

#[tokio::test]
async fn whoever_guesses_keys_too_often_is_told_to_wait() {
    for protocol in BOTH {
        let app = TestApp::with(|_| {}, |server| server.failed_keys_per_minute = 3).await;
        let served = app.listen().await;
        admin(&served, protocol).list_jobs(ListJobsRequest::default()).await.expect("a key that works");
        let mut codes = Vec::new();
        for _ in 0..8 {
            codes.push(refusal(jobs(&served, protocol, "rv_guess").list_jobs(ListJobsRequest::default()).await).0);
        }
        assert_eq!(codes.first(), Some(&ErrorCode::Unauthenticated));
        assert_eq!(codes.last(), Some(&ErrorCode::ResourceExhausted), "{codes:?}");
        admin(&served, protocol).list_jobs(ListJobsRequest::default()).await.expect("a key that works is no guess");
    }
}

#[tokio::test]
async fn a_field_that_is_wrong_is_named() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let with = |change: fn(&mut JobParams)| {
        let mut request = job("true");
        change(request.job_params.as_option_mut().expect("params"));
        request
    };
    let queue = |queue: &str| EnqueueJobRequest { queue: queue.into(), ..job("true") };
    for (request, field) in [
        (EnqueueJobRequest::default(), "job_params"),
        (job(""), "job_params.command"),
        (job("a\0b"), "job_params.command"),
        (with(|params| params.timeout_seconds = -1), "job_params.timeout_seconds"),
        (with(|params| drop(params.environment.insert("1A".into(), "x".into()))), "job_params.environment.1A"),
        (with(|params| drop(params.metadata.insert("nul".into(), "\0".into()))), "job_params.metadata.nul"),
        (with(|params| params.process_type = 77.into()), "job_params.process_type"),
        (with(|params| params.priority = 9), "job_params.priority"),
        (queue("nobody-serves-this"), "queue"),
        (queue("../x"), "queue"),
        (EnqueueJobRequest { request_id: "a b".into(), ..job("true") }, "request_id"),
    ] {
        let (code, message) = refusal(client.enqueue_job(request).await);
        assert_eq!(code, ErrorCode::InvalidArgument, "{field}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{field}: {message}");
    }
    for (request, field) in [
        (DequeueJobRequest { max_jobs: 1_001, ..DequeueJobRequest::default() }, "max_jobs"),
        (DequeueJobRequest { visibility_timeout_seconds: 43_201, ..DequeueJobRequest::default() }, "visibility_timeout_seconds"),
        (DequeueJobRequest { queue: "nobody-serves-this".into(), ..DequeueJobRequest::default() }, "queue"),
    ] {
        let (code, message) = stream_refusal(&client, request).await;
        assert_eq!(code, ErrorCode::InvalidArgument, "{field}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{field}: {message}");
    }
    let nobody = |job_id: &str| GetJobRequest { job_id: job_id.into(), ..GetJobRequest::default() };
    for unknown in ["", "x", "019200", "019200000000700080000000000000ff"] {
        assert_eq!(refusal(client.get_job(nobody(unknown)).await).0, ErrorCode::NotFound, "{unknown}");
    }
}

#[tokio::test]
async fn a_worker_key_serves_its_own_queues_alone() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let worker = jobs(&served, protocol, &worker_key(&app, "one", &["gpu"]).await);
        let other = DequeueJobRequest { queue: "default".into(), ..DequeueJobRequest::default() };
        assert_eq!(stream_refusal(&worker, other).await.0, ErrorCode::PermissionDenied);
        let admin = admin(&served, protocol);
        enqueue(&admin, job("true")).await;
        let id = enqueue(&admin, EnqueueJobRequest { queue: "gpu".into(), ..job("true") }).await;
        let leased = lease(&worker, DequeueJobRequest::default()).await;
        assert_eq!(leased.job.job_id, id, "without a queue it is its own");
        let theirs = lease(&admin, DequeueJobRequest::default()).await;
        let update = UpdateJobRequest { task_token: theirs.task_token, ..UpdateJobRequest::default() };
        assert_eq!(refusal(worker.update_job(update).await).0, ErrorCode::PermissionDenied);
    })
    .await;
}

#[tokio::test]
async fn a_key_that_is_revoked_ends_whoever_waits_with_it() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let worker = jobs(&served, protocol, &worker_key(&app, "one", &[]).await);
        let mut leases = worker.dequeue_job(DequeueJobRequest::default()).await.expect("a stream");
        let client = admin(&served, protocol);
        app.change(Change::RevokeWorker(Name::new("one").expect("a name"))).await;
        enqueue(&client, job("true")).await;
        assert_eq!(refusal(leases.message().await.map(drop)).0, ErrorCode::Unauthenticated);
        let leased = lease(&client, DequeueJobRequest::default()).await;
        assert_eq!(leased.attempt, 1, "it was given to nobody before");
    })
    .await;
}

fn update(token: &str) -> UpdateJobRequest {
    UpdateJobRequest { task_token: token.to_owned(), ..UpdateJobRequest::default() }
}

#[tokio::test]
async fn a_token_works_at_every_server_with_the_same_key_and_no_other() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        enqueue(&client, job("true")).await;
        let token = lease(&client, DequeueJobRequest::default()).await.task_token;

        let replica = app.restarted(|_| {});
        let other = replica.listen().await;
        admin(&other, protocol).update_job(update(&token)).await.expect("the same key, the same store");

        let stranger = TestApp::with(|_| {}, |server| server.ticket_key = [6; 32]).await;
        let elsewhere = stranger.listen().await;
        assert_eq!(refusal(admin(&elsewhere, protocol).update_job(update(&token)).await).0, ErrorCode::PermissionDenied);
        let empty = TestApp::new().await;
        let without_it = empty.listen().await;
        let unknown = admin(&without_it, protocol);
        assert_eq!(refusal(unknown.update_job(update(&token)).await).0, ErrorCode::NotFound);
        let over = CompleteJobRequest { task_token: token.clone(), job_result: Default::default(), ..CompleteJobRequest::default() };
        assert_eq!(refusal(unknown.complete_job(over).await).0, ErrorCode::InvalidArgument, "job_result is looked at first");
    })
    .await;
}

#[tokio::test]
async fn a_token_that_was_changed_or_is_none_is_refused() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    enqueue(&client, job("true")).await;
    let token = lease(&client, DequeueJobRequest::default()).await.task_token;
    for bad in ["", "x", "not a token!", &token[..40]] {
        assert_eq!(refusal(client.update_job(update(bad)).await).0, ErrorCode::InvalidArgument, "{bad}");
    }
    assert_eq!(refusal(client.update_job(update(&forged(&token))).await).0, ErrorCode::PermissionDenied);
    let forged_early = format!("{}{}", &token[..30], token[30..].chars().rev().collect::<String>());
    let (code, _) = refusal(client.update_job(update(&forged_early)).await);
    assert!(matches!(code, ErrorCode::PermissionDenied | ErrorCode::InvalidArgument), "{code:?}");
    let wrong_queue = UpdateJobRequest { queue: "other".into(), ..update(&token) };
    assert_eq!(refusal(client.update_job(wrong_queue).await).0, ErrorCode::InvalidArgument);
    client.update_job(update(&token)).await.expect("the token itself is good");
}

#[tokio::test]
async fn a_page_elsewhere_may_call_where_it_is_configured() {
    let app = TestApp::with(|_| {}, |server| server.cors_origins = vec!["https://web.example.com".into()]).await;
    let path = "/job.v1.JobService/ListJobs";
    let ask = |origin: &str| app.ask(Method::OPTIONS, path).header("origin", origin).header("access-control-request-method", "POST");
    let allowed = ask("https://web.example.com").send().await;
    assert_eq!(allowed.status, StatusCode::NO_CONTENT);
    let headers = allowed.headers["access-control-allow-headers"].to_str().expect("text").to_ascii_lowercase();
    assert!(headers.contains("x-grpc-web") && headers.contains("connect-protocol-version"), "{headers}");
    assert!(!ask("https://evil.example.com").send().await.headers.contains_key("access-control-allow-headers"));
    let foreign = app.post(path).admin().header("origin", "https://evil.example.com").text("application/json", "{}").send().await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    // gRPC-Web: an empty message in its frame.
    let framed = app.post(path).admin().header("origin", "https://web.example.com").header("x-grpc-web", "1");
    let answer = framed.text("application/grpc-web+proto", vec![0u8; 5]).send().await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.headers["access-control-expose-headers"].to_str().expect("text").contains("Grpc-Status"));
    assert!(answer.text().contains("grpc-status: 0") || answer.text().contains("grpc-status:0"), "{}", answer.text());
}

#[tokio::test]
async fn a_refused_change_is_kept_in_the_trail() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let viewer = jobs(&served, Protocol::Grpc, &key_of(Role::Viewer));
    refusal(viewer.enqueue_job(job("true")).await);
    let trail = app.get("/api/v1/audit").admin().send().await;
    assert!(trail.text().contains("executions.run"), "{}", trail.text());
}

#[tokio::test]
async fn what_only_calls_can_ask_for_and_may_not_is_kept_in_the_trail() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let stranger = TestApp::with(|_| {}, |server| server.ticket_key = [6; 32]).await;
        let forged = token_of(&stranger, protocol).await;
        let unknown = token_of(&TestApp::new().await, protocol).await;
        let worker = jobs(&served, protocol, &worker_key(&app, "one", &["gpu"]).await);
        let before = audited(&app).await.len();

        let other_queue = DequeueJobRequest { queue: "default".into(), ..DequeueJobRequest::default() };
        assert_eq!(stream_refusal(&worker, other_queue).await.0, ErrorCode::PermissionDenied);
        assert_eq!(refusal(worker.update_job(update(&forged)).await).0, ErrorCode::PermissionDenied);
        assert_eq!(refusal(admin(&served, protocol).update_job(update(&unknown)).await).0, ErrorCode::NotFound);
        let item = |token: &str| CompleteJobRequest { task_token: token.to_owned(), ..CompleteJobRequest::default() };
        let batch = CompleteJobsRequest { jobs: vec![item(&forged), item(&forged), item("none")], ..CompleteJobsRequest::default() };
        let answered = worker.complete_jobs(batch).await.expect("each is answered for itself").into_owned();
        assert!(answered.results.iter().all(|result| result.error.is_set()));
        let look = GetJobRequest { job_id: "0192ab00ff107abc8def000102030405".into(), ..GetJobRequest::default() };
        assert_eq!(refusal(worker.get_job(look).await).0, ErrorCode::PermissionDenied);

        let by = |user: &str, method: &str, result: &str| (user.to_owned(), format!("POST /job.v1.JobService/{method}"), result.to_owned());
        let expected = [
            by("worker:one", "DequeueJob", "denied: FORBIDDEN"),
            by("worker:one", "UpdateJob", "denied: FORBIDDEN"),
            by("admin@example.com", "UpdateJob", "denied: NOT_FOUND"),
            by("worker:one", "CompleteJobs", "denied: FORBIDDEN"),
        ];
        assert_eq!(audited(&app).await.split_off(before), expected, "what is unreadable or only looks leaves none");
    })
    .await;
}

#[tokio::test]
async fn every_item_says_what_was_wrong_with_it_however_often_its_caller_was_refused() {
    let app = TestApp::with(|config| config.denials_per_minute = 1, |_| {}).await;
    let served = app.listen().await;
    let stranger = TestApp::with(|_| {}, |server| server.ticket_key = [6; 32]).await;
    let forged = token_of(&stranger, Protocol::Grpc).await;
    let client = admin(&served, Protocol::Grpc);
    assert_eq!(refusal(client.update_job(update(&forged)).await).0, ErrorCode::PermissionDenied);
    assert_eq!(refusal(client.update_job(update(&forged)).await).0, ErrorCode::ResourceExhausted, "no more of them are kept");
    let before = audited(&app).await.len();
    let item = |token: &str| CompleteJobRequest { task_token: token.to_owned(), ..CompleteJobRequest::default() };
    let batch = CompleteJobsRequest { jobs: vec![item(&forged), item("none"), item(&forged)], ..CompleteJobsRequest::default() };
    let answered = client.complete_jobs(batch).await.expect("each is answered for itself").into_owned();
    let codes: Vec<i32> = answered.results.iter().map(|result| result.error.code).collect();
    assert_eq!(codes, [7, 3, 7], "permission denied, invalid argument");
    assert_eq!(audited(&app).await.len(), before);
}

/// The token of a lease that a server gave.
async fn token_of(app: &TestApp, protocol: Protocol) -> String {
    let served = app.listen().await;
    let client = admin(&served, protocol);
    enqueue(&client, job("true")).await;
    lease(&client, DequeueJobRequest::default()).await.task_token
}
