//! The way of a job: submitted, leased, kept, ended, looked at.

use std::time::Duration;

use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{
    CancelJobRequest, CompleteJobRequest, CompleteJobsRequest, DequeueJobRequest, EnqueueJobsRequest, JobParams, JobResult, JobState,
    ReleaseJobRequest, UpdateJobRequest,
};

use super::{Jobs, admin, enqueue, job, lease, look, over_both, refusal, state};
use crate::app::TestApp;

fn over(token: &str, success: bool, exit_code: i32) -> CompleteJobRequest {
    let result = JobResult { success, exit_code, ..JobResult::default() };
    CompleteJobRequest { task_token: token.to_owned(), job_result: result.into(), ..CompleteJobRequest::default() }
}

fn kept(token: &str) -> UpdateJobRequest {
    UpdateJobRequest { task_token: token.to_owned(), ..UpdateJobRequest::default() }
}

#[tokio::test]
async fn a_job_goes_its_way() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let mut request = job("echo hello");
        let params = request.job_params.as_option_mut().expect("params");
        params.environment.insert("GREETING".into(), "hello".into());
        params.metadata.insert("team".into(), "web".into());
        params.owner = "ana@example.com".into();
        let id = enqueue(&client, request).await;
        assert_eq!(state(&client, &id).await, JobState::Scheduled);

        let leased = lease(&client, DequeueJobRequest::default()).await;
        let params = leased.job.job_params.as_option().expect("params");
        assert_eq!((leased.job.job_id.as_str(), params.command.as_str()), (id.as_str(), "sh"));
        assert_eq!(params.args, ["-c", "echo hello"]);
        assert_eq!(params.environment["GREETING"], "hello", "the holder of the lease sees values");
        assert_eq!((params.owner.as_str(), params.metadata["team"].as_str(), params.metadata.len()), ("ana@example.com", "web", 1));
        assert_eq!((leased.attempt, leased.lease_ttl_ms), (1, 300_000));

        let seen = look(&client, &id).await;
        assert_eq!((seen.state.as_known(), seen.attempt), (Some(JobState::Running), 1), "it was begun as it was sent");
        assert!(seen.job_params.environment.is_empty(), "nobody else sees values");

        let told = client.update_job(kept(&leased.task_token)).await.expect("it is held").into_owned();
        assert!(told.kill.is_unset());
        client.complete_job(over(&leased.task_token, true, 0)).await.expect("it is held");
        client.complete_job(over(&leased.task_token, true, 0)).await.expect("a repeat is the same");
        assert_eq!(state(&client, &id).await, JobState::Completed);
        assert_eq!(refusal(client.update_job(kept(&leased.task_token)).await).0, ErrorCode::FailedPrecondition);
    })
    .await;
}

#[tokio::test]
async fn exit_code_and_success_decide_how_it_ended() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    for (success, exit_code, expected, shown) in [
        (true, 0, JobState::Completed, 0),
        (false, 3, JobState::Failed, 3),
        (true, 3, JobState::Failed, 3),
        (false, 0, JobState::Failed, 125),
    ] {
        let id = enqueue(&client, job("true")).await;
        let leased = lease(&client, DequeueJobRequest::default()).await;
        let mut request = over(&leased.task_token, success, exit_code);
        request.job_result.as_option_mut().expect("a result").error_message = "no such image".into();
        client.complete_job(request).await.expect("it is held");
        let ended = look(&client, &id).await;
        assert_eq!((ended.state.as_known(), ended.exit_code.is_some()), (Some(expected), true), "{success} {exit_code}");
        if exit_code != 0 || success {
            assert_eq!(ended.exit_code, Some(shown));
        }
        assert_eq!(ended.end_reason.contains("no such image"), expected == JobState::Failed, "{}", ended.end_reason);
    }
}

#[tokio::test]
async fn the_same_request_id_makes_one_job() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let request = |command: &str| {
            let mut request = job(command);
            request.request_id = "once".into();
            request
        };
        let first = enqueue(&client, request("true")).await;
        assert_eq!(enqueue(&client, request("true")).await, first);
        assert_eq!(refusal(client.enqueue_job(request("false")).await).0, ErrorCode::FailedPrecondition);
        assert_ne!(enqueue(&client, job("true")).await, enqueue(&client, job("true")).await, "without one each is its own");
    })
    .await;
}

#[tokio::test]
async fn whoever_waits_is_given_work_when_there_is_some() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let mut leases = client.dequeue_job(DequeueJobRequest::default()).await.expect("a stream");
        let nothing = tokio::time::timeout(Duration::from_millis(50), leases.message()).await;
        assert!(nothing.is_err(), "there is nothing yet");
        let id = enqueue(&client, job("true")).await;
        let leased = leases.message().await.expect("a lease").expect("one").to_owned_message();
        assert_eq!(leased.job.job_id, id);
    })
    .await;
}

#[tokio::test]
async fn a_stream_ends_after_as_many_as_were_wanted_or_after_the_wait() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        for _ in 0..3 {
            enqueue(&client, job("true")).await;
        }
        let request = DequeueJobRequest { max_jobs: 2, ..DequeueJobRequest::default() };
        let mut leases = client.dequeue_job(request).await.expect("a stream");
        for _ in 0..2 {
            leases.message().await.expect("a lease").expect("one");
        }
        assert!(leases.message().await.expect("an end").is_none());
        let request = DequeueJobRequest { max_jobs: 5, wait_ms: Some(0), ..DequeueJobRequest::default() };
        let mut leases = client.dequeue_job(request).await.expect("a stream");
        leases.message().await.expect("a lease").expect("the one that was left");
        assert!(leases.message().await.expect("an end").is_none());
    })
    .await;
}

/// So much environment, and none of it the same, that a few of them fill every buffer between the two.
fn wide() -> JobParams {
    let mut seed = 1_u64;
    let mut letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"[(seed >> 59) as usize])
    };
    let environment = (0..9).map(|n| (format!("WIDE_{n}"), (0..100_000).map(|_| letter()).collect())).collect();
    JobParams { command: "true".into(), environment, ..JobParams::default() }
}

async fn enqueue_wide(client: &Jobs, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let mut request = job("true");
        request.job_params = wide().into();
        ids.push(enqueue(client, request).await);
    }
    ids
}

/// Waits until what was not under way to a client is in line again, and was never an attempt; how many were.
async fn sent_of(client: &Jobs, ids: &[String]) -> usize {
    tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let mut jobs = Vec::new();
            for id in ids {
                jobs.push(look(client, id).await);
            }
            let waiting = jobs.iter().filter(|job| job.status == "PENDING").count();
            if waiting > 0 && jobs.iter().all(|job| (job.status == "PENDING") == (job.attempt == 0)) {
                return jobs.len() - waiting;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("leases come back")
}

#[tokio::test]
async fn what_a_client_did_not_wait_for_goes_back_uncounted() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let ids = enqueue_wide(&client, 30).await;
        let request = DequeueJobRequest { max_jobs: 30, ..DequeueJobRequest::default() };
        let mut leases = client.dequeue_job(request).await.expect("a stream");
        leases.message().await.expect("a lease").expect("one");
        drop((leases, client));
        let sent = sent_of(&admin(&served, protocol), &ids).await;
        assert!((1..30).contains(&sent), "{sent} were sent");
    })
    .await;
}

#[tokio::test]
async fn what_a_client_does_not_read_goes_to_others() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let ids = enqueue_wide(&client, 30).await;
        let request = DequeueJobRequest { max_jobs: 30, ..DequeueJobRequest::default() };
        let mut leases = client.dequeue_job(request).await.expect("a stream");
        leases.message().await.expect("a lease").expect("one");
        let sent = sent_of(&admin(&served, protocol), &ids).await;
        assert!((1..30).contains(&sent), "{sent} were sent");
        let others = DequeueJobRequest { wait_ms: Some(10_000), ..DequeueJobRequest::default() };
        let other = admin(&served, protocol).dequeue_job(others).await.expect("a stream").message().await;
        assert!(other.expect("a lease").is_some());
    })
    .await;
}

#[tokio::test]
async fn a_job_that_somebody_ends_is_told_to_its_worker_and_ends_cancelled() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let (waits, runs) = (enqueue(&client, job("sleep 1")).await, enqueue(&client, job("sleep 2")).await);
        let cancel = |id: &str| CancelJobRequest { job_id: id.to_owned(), ..CancelJobRequest::default() };
        client.cancel_job(cancel(&waits)).await.expect("it waits");
        assert_eq!(state(&client, &waits).await, JobState::Cancelled);
        let leased = lease(&client, DequeueJobRequest::default()).await;
        assert_eq!(leased.job.job_id, runs, "what has ended is not handed out");
        client.cancel_job(cancel(&runs)).await.expect("it runs");
        let told = client.update_job(kept(&leased.task_token)).await.expect("it is held").into_owned();
        assert_eq!(told.kill.as_option().map(|kill| kill.by.as_str()), Some("admin@example.com"));
        client.complete_job(over(&leased.task_token, false, 143)).await.expect("it is held");
        assert_eq!(state(&client, &runs).await, JobState::Cancelled);
        assert_eq!(refusal(client.cancel_job(cancel(&runs)).await).0, ErrorCode::FailedPrecondition);
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_is_handed_back_untouched_does_not_count() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Connect);
    let id = enqueue(&client, job("true")).await;
    let leased = lease(&client, DequeueJobRequest::default()).await;
    let release = |token: &str| ReleaseJobRequest { task_token: token.to_owned(), ..ReleaseJobRequest::default() };
    client.release_job(release(&leased.task_token)).await.expect("it is held");
    let back = look(&client, &id).await;
    assert_eq!((back.status.as_str(), back.attempt), ("PENDING", 0));
    assert_eq!(refusal(client.release_job(release(&leased.task_token)).await).0, ErrorCode::FailedPrecondition);

    let leased = lease(&client, DequeueJobRequest::default()).await;
    let extend = UpdateJobRequest { task_token: leased.task_token.clone(), ..UpdateJobRequest::default() };
    client.update_job(extend).await.expect("it is held");
    client.release_job(release(&leased.task_token)).await.expect("it is held");
    let back = look(&client, &id).await;
    assert_eq!((back.status.as_str(), back.attempt), ("PENDING", 1), "somebody ran it: that delivery counts");
}

#[tokio::test]
async fn what_an_attempt_that_is_tried_again_returned_is_not_the_job_s_end() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let mut request = job("false");
    request.job_params.as_option_mut().expect("params").retries = Some(1);
    let id = enqueue(&client, request).await;
    let leased = lease(&client, DequeueJobRequest::default()).await;
    client.complete_job(over(&leased.task_token, false, 3)).await.expect("it is held");
    let waits = look(&client, &id).await;
    assert_eq!((waits.state.as_known(), waits.attempt), (Some(JobState::Scheduled), 1));
    assert_eq!((waits.exit_code, waits.end_reason.as_str()), (None, ""));
}

#[tokio::test]
async fn so_many_and_so_long_are_the_default_where_they_are_none() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    for _ in 0..2 {
        enqueue(&client, job("true")).await;
    }
    let request = DequeueJobRequest { max_jobs: -1, visibility_timeout_seconds: -1, ..DequeueJobRequest::default() };
    let mut leases = client.dequeue_job(request).await.expect("a stream");
    let leased = leases.message().await.expect("a lease").expect("one").to_owned_message();
    assert_eq!(leased.lease_ttl_ms, 300_000);
    assert!(leases.message().await.expect("an end").is_none());
    let update = UpdateJobRequest { visibility_timeout_seconds: -1, ..kept(&leased.task_token) };
    assert_eq!(client.update_job(update).await.expect("it is held").into_owned().lease_ttl_ms, 300_000);
}

#[tokio::test]
async fn many_at_once_are_answered_each_for_itself() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let jobs = vec![job("true"), job(""), job("false")];
        let made = client.enqueue_jobs(EnqueueJobsRequest { jobs, ..EnqueueJobsRequest::default() }).await.expect("a call").into_owned();
        let refused = made.results[1].error.as_option().expect("it was refused");
        assert_eq!(refused.code, 3, "InvalidArgument");
        assert!(refused.message.contains("job_params.command"), "{}", refused.message);
        assert!(made.results[0].error.is_unset() && made.results[2].job.is_set());

        let request = DequeueJobRequest { max_jobs: 2, ..DequeueJobRequest::default() };
        let mut leases = client.dequeue_job(request).await.expect("a stream");
        let mut ends = vec![over("nonsense", true, 0)];
        while let Some(leased) = leases.message().await.expect("a lease") {
            ends.push(over(&leased.to_owned_message().task_token, true, 0));
        }
        let ended =
            client.complete_jobs(CompleteJobsRequest { jobs: ends, ..CompleteJobsRequest::default() }).await.expect("a call").into_owned();
        assert_eq!(ended.results.iter().map(|one| one.error.is_set()).collect::<Vec<_>>(), [true, false, false]);
    })
    .await;
}
