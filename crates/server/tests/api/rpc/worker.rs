//! Workers elsewhere: that they are there, and what they are told.

use runvoy_model::id::WorkerId;
use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{AttendWorkerRequest, CancelJobRequest, DequeueJobRequest, EnqueueJobRequest, ReportWorkerRequest};

use super::lease::info;
use super::{admin, caller, enqueue, job, jobs, lease, over_both, refusal, worker_key};
use crate::app::TestApp;

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
    let id = enqueue(&client, in_queue()).await;
    let listed = app.engine.workers(&caller(&app).await).await.expect("a list");
    let seen = listed.iter().find(|seen| seen.worker == WorkerId::from_bytes([4; 16])).expect("it is there");
    assert_eq!((seen.account.as_ref().map(|name| name.as_str()), seen.host.as_str(), seen.running), (Some("one"), "far", 0));
    let request = DequeueJobRequest { worker: info().into(), queues: vec!["gpu".into()], ..DequeueJobRequest::default() };
    assert_eq!(lease(&worker, request).await.job.job_id, id);
    worker.report_worker(ReportWorkerRequest { leaving: true, ..report(vec![]) }).await.expect("it is noted");
    let listed = app.engine.workers(&caller(&app).await).await.expect("a list");
    assert!(listed.iter().all(|seen| seen.worker != WorkerId::from_bytes([4; 16])));
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
                assert_eq!(heard.job_ids, [id.clone()]);
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
