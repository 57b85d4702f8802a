//! A job whose worker was lost is delivered again: three times in all, unless it says how often.

use std::sync::Arc;

use runvoy_engine::Reaper;
use runvoy_rpc::connectrpc::Protocol;
use runvoy_rpc::job::v1::{CompleteJobRequest, DequeueJobRequest, EnqueueJobRequest, Job, JobResult, JobState};

use super::{Jobs, admin, enqueue, job, lease, look, over_both};
use crate::app::TestApp;

/// Longer than any wait before a next attempt.
const BACKOFF_MS: i64 = 300_000;

fn with_retries(retries: Option<u32>) -> EnqueueJobRequest {
    let mut request = job("sleep 900");
    request.job_params.as_option_mut().expect("params").retries = retries;
    request
}

/// Takes the job, says nothing more of it, and lets its lease lapse.
async fn lose(app: &TestApp, client: &Jobs) -> u32 {
    let ask = DequeueJobRequest { visibility_timeout_seconds: 60, ..DequeueJobRequest::default() };
    let attempt = lease(client, ask).await.attempt;
    // It watches in steps: a clock that jumps begins its watch anew.
    let mut reaper = Reaper::new(Arc::clone(&app.engine));
    for _ in 0..75 {
        app.clock.advance(1_000);
        reaper.look().await.expect("the store answers");
    }
    app.clock.advance(BACKOFF_MS);
    attempt
}

/// How often a job is delivered when every worker is lost, and how it is seen then.
async fn deliveries(app: &TestApp, client: &Jobs, id: &str) -> (u32, Job) {
    loop {
        let attempt = lose(app, client).await;
        let seen = look(client, id).await;
        if seen.state != JobState::Scheduled {
            return (attempt, seen);
        }
    }
}

#[tokio::test]
async fn a_lapsed_lease_is_delivered_three_times_in_all() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        for (retries, expected) in [(None, 3), (Some(0), 1), (Some(1), 2), (Some(4), 5)] {
            let id = enqueue(&client, with_retries(retries)).await;
            let (count, seen) = deliveries(&app, &client, &id).await;
            assert_eq!((count, seen.attempt), (expected, expected), "{retries:?}");
            assert_eq!((seen.state.as_known(), seen.exit_code), (Some(JobState::Failed), Some(125)));
            assert_eq!(seen.job_params.as_option().expect("params").retries, retries, "what was said is seen");
        }
        let dead = app.get("/api/v1/queues/default/dead").admin().send().await.json();
        assert_eq!(dead.as_array().map_or(0, Vec::len), 3, "all but what was delivered once: {dead}");
    })
    .await;
}

#[tokio::test]
async fn the_second_delivery_ends_the_job() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Connect);
    let id = enqueue(&client, with_retries(None)).await;
    lose(&app, &client).await;
    let leased = lease(&client, DequeueJobRequest::default()).await;
    assert_eq!((leased.job.job_id.as_str(), leased.attempt), (id.as_str(), 2));
    let result = JobResult { success: false, exit_code: 1, ..JobResult::default() };
    let end = CompleteJobRequest { task_token: leased.task_token, job_result: result.into(), ..CompleteJobRequest::default() };
    client.complete_job(end).await.expect("it is held");
    let seen = look(&client, &id).await;
    assert_eq!(
        (seen.state.as_known(), seen.exit_code, seen.attempt),
        (Some(JobState::Failed), Some(1), 2),
        "a command that fails is not repeated"
    );
}

#[tokio::test]
async fn a_run_over_http_is_delivered_once() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let id = app.submit("sleep 900").await;
    let (count, seen) = deliveries(&app, &client, &id).await;
    assert_eq!((count, seen.state.as_known()), (1, Some(JobState::Failed)));
    assert_eq!(seen.job_params.as_option().expect("params").retries, Some(0));
}

#[tokio::test]
async fn a_repeat_of_a_job_that_says_nothing_of_retries_is_the_same_job() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let request = EnqueueJobRequest { request_id: "once".into(), ..with_retries(None) };
    let id = enqueue(&client, request.clone()).await;
    assert_eq!(enqueue(&client, request).await, id);
    let said = EnqueueJobRequest { request_id: "once".into(), ..with_retries(Some(0)) };
    assert!(client.enqueue_job(said).await.is_err(), "another request with the same id");
}
