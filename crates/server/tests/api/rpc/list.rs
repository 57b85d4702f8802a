//! Lists of jobs.

use runvoy_rpc::connectrpc::{ErrorCode, Protocol};
use runvoy_rpc::job::v1::{DequeueJobRequest, EnqueueJobRequest, JobState, ListJobsRequest};

use super::{admin, enqueue, job, lease, over_both, refusal, worker_key};
use crate::app::TestApp;

#[tokio::test]
async fn a_list_is_read_by_pages_and_by_cursor() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let empty = client.list_jobs(ListJobsRequest::default()).await.expect("a page").into_owned();
        assert_eq!((empty.jobs.len(), empty.last_page), (0, 1));
        let mut ids = Vec::new();
        for _ in 0..7 {
            app.clock.advance(1_000);
            ids.push(enqueue(&client, job("true")).await);
        }
        ids.reverse();
        let list = |page, page_size, cursor: &str| {
            let cursor = cursor.to_owned();
            client.list_jobs(ListJobsRequest { page, page_size, cursor, ..ListJobsRequest::default() })
        };
        let mut paged = Vec::new();
        for page in 1..=3 {
            let answer = list(page, 3, "").await.expect("a page").into_owned();
            assert_eq!(answer.last_page, 3);
            paged.extend(answer.jobs.into_iter().map(|job| job.job_id));
        }
        assert_eq!(paged, ids);
        let beyond = list(4, 3, "").await.expect("a page").into_owned();
        assert_eq!((beyond.jobs.len(), beyond.last_page), (0, 3));
        assert_eq!(list(0, 0, "").await.expect("a page").into_owned().jobs.len(), 7);

        let (mut read, mut cursor) = (Vec::new(), list(1, 2, "").await.expect("a page").into_owned());
        loop {
            read.extend(cursor.jobs.iter().map(|job| job.job_id.clone()));
            if cursor.next_cursor.is_empty() {
                break;
            }
            cursor = list(0, 2, &cursor.next_cursor).await.expect("a page").into_owned();
        }
        assert_eq!(read, ids);
    })
    .await;
}

#[tokio::test]
async fn a_list_is_of_a_queue_and_a_state() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Connect);
    worker_key(&app, "one", &["gpu"]).await;
    let first = enqueue(&client, job("true")).await;
    let second = enqueue(&client, job("true")).await;
    let third = enqueue(&client, EnqueueJobRequest { queue: "gpu".into(), ..job("true") }).await;
    let leased = lease(&client, DequeueJobRequest::default()).await.job.job_id.clone();
    assert_eq!(leased, first);
    let list = async |queue: &str, state: JobState| {
        let request = ListJobsRequest { queue: queue.into(), state: state.into(), ..ListJobsRequest::default() };
        let listed = client.list_jobs(request).await.expect("a page").into_owned().jobs;
        let mut ids: Vec<String> = listed.into_iter().map(|job| job.job_id).collect();
        ids.sort();
        ids
    };
    assert_eq!(list("gpu", JobState::Unspecified).await, std::slice::from_ref(&third));
    assert_eq!(list("", JobState::Running).await, std::slice::from_ref(&first));
    assert_eq!(list("default", JobState::Scheduled).await, std::slice::from_ref(&second));
    assert_eq!(list("", JobState::Unspecified).await, [first, second, third]);
    assert!(list("", JobState::Cancelled).await.is_empty());
}

#[tokio::test]
async fn what_is_no_page_is_refused() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    for request in [
        ListJobsRequest { page: -1, ..ListJobsRequest::default() },
        ListJobsRequest { page_size: -1, ..ListJobsRequest::default() },
        ListJobsRequest { page_size: 1_001, ..ListJobsRequest::default() },
        ListJobsRequest { page: 1_000_000, page_size: 1_000, ..ListJobsRequest::default() },
        ListJobsRequest { cursor: "x".into(), ..ListJobsRequest::default() },
        ListJobsRequest { state: 77.into(), ..ListJobsRequest::default() },
        ListJobsRequest { queue: "a b".into(), ..ListJobsRequest::default() },
    ] {
        assert_eq!(refusal(client.list_jobs(request.clone()).await).0, ErrorCode::InvalidArgument, "{request:?}");
    }
}

#[tokio::test]
async fn a_page_is_cut_where_it_is_too_large_and_nothing_is_left_out() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let mut ids = Vec::new();
    for _ in 0..40 {
        app.clock.advance(1_000);
        ids.push(enqueue(&client, job(&"x".repeat(100_000))).await);
    }
    ids.reverse();
    let list = |page, page_size, cursor: &str| {
        let cursor = cursor.to_owned();
        client.list_jobs(ListJobsRequest { page, page_size, cursor, ..ListJobsRequest::default() })
    };
    let mut page = list(0, 40, "").await.expect("a page").into_owned();
    assert!((1..40).contains(&page.jobs.len()), "{}", page.jobs.len());
    let mut read: Vec<String> = page.jobs.iter().map(|job| job.job_id.clone()).collect();
    while !page.next_cursor.is_empty() {
        page = list(0, 40, &page.next_cursor).await.expect("a page").into_owned();
        read.extend(page.jobs.iter().map(|job| job.job_id.clone()));
    }
    assert_eq!(read, ids);

    let (code, message) = refusal(list(1, 40, "").await);
    assert!(code == ErrorCode::InvalidArgument && message.starts_with("page_size: "), "{message}");
    let mut counted = Vec::new();
    for page in 1..=2 {
        counted.extend(list(page, 20, "").await.expect("a page").into_owned().jobs.into_iter().map(|job| job.job_id));
    }
    assert_eq!(counted, ids);
}
