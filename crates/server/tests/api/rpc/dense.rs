//! A client that numbers what it receives, as public monitors do, finds nothing missing.

use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_rpc::connectrpc::stream_iter;
use runvoy_rpc::job::v1::__buffa::oneof::job_event::EventData;
use runvoy_rpc::job::v1::{
    AppendOutputRequest, CompleteJobRequest, DequeueJobRequest, EventType, JobEvent, JobResult, OutputEvent, PublishJobEventsRequest,
    StreamJobEventsRequest,
};

use super::event::{Events, events};
use super::{Jobs, admin, enqueue, job, lease, over_both};
use crate::app::{NOW, key_of};

/// Follows a job to its end and counts what is missing: every event is one more than the one before, from 1.
async fn monitored(client: Events, id: String) -> (i64, i64) {
    let request = StreamJobEventsRequest { job_id: id, ..StreamJobEventsRequest::default() };
    let mut stream = client.stream_job_events(request).await.expect("a stream");
    let (mut next, mut missing) = (1, 0);
    while let Some(message) = stream.message().await.expect("an event") {
        let sequence = message.to_owned_message().event.sequence;
        missing += (sequence - next).abs();
        next = sequence + 1;
    }
    (next - 1, missing)
}

async fn complete(client: &Jobs, token: &str) {
    let job_result = JobResult { success: true, ..JobResult::default() }.into();
    let request = CompleteJobRequest { task_token: token.to_owned(), job_result, ..CompleteJobRequest::default() };
    client.complete_job(request).await.expect("it is held");
}

#[tokio::test]
async fn nothing_is_missing_of_what_our_own_worker_ran() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let id = enqueue(&client, job("true")).await;
        let token = lease(&client, DequeueJobRequest::default()).await.task_token;
        let live = tokio::spawn(monitored(events(&served, protocol, &key_of(Role::Viewer)), id.clone()));
        for first_sequence in [1u64, 11, 21] {
            let mut block = BlockBuilder::default();
            for line in 0..10 {
                let stream = if line % 3 == 0 { Stream::Platform } else { Stream::Stdout };
                block.push(Record { at: UnixMs(NOW + 5), stream, cont: false, eol: true, bytes: b"x" });
            }
            let block = block.take();
            let append = AppendOutputRequest {
                task_token: token.clone(),
                first_sequence,
                first_at_ms: block.first_at.0,
                records: block.data,
                ..AppendOutputRequest::default()
            };
            client.append_output(append).await.expect("it is taken");
        }
        complete(&client, &token).await;
        let expected = (1 + 3 * 6 + 1, 0);
        assert_eq!(live.await.expect("no panic"), expected);
        assert_eq!(monitored(events(&served, protocol, &key_of(Role::Viewer)), id).await, expected);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_missing_where_requests_overtake_each_other() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let (client, publisher) = (admin(&served, protocol), events(&served, protocol, &key_of(Role::Admin)));
        let id = enqueue(&client, job("true")).await;
        let token = lease(&client, DequeueJobRequest::default()).await.task_token;
        for sequences in [&[2, 4][..], &[1], &[5, 6], &[3], &[9], &[7, 8]] {
            let event = |sequence: &i64| JobEvent {
                sequence: *sequence,
                event_type: EventType::EVENT_TYPE_OUTPUT.into(),
                event_data: Some(EventData::Output(Box::new(OutputEvent { output: b"x\n".to_vec().into(), ..OutputEvent::default() }))),
                ..JobEvent::default()
            };
            let told = PublishJobEventsRequest {
                task_token: token.clone(),
                events: sequences.iter().map(event).collect(),
                ..PublishJobEventsRequest::default()
            };
            publisher.publish_job_events(stream_iter(vec![told])).await.expect("kept");
        }
        let live = tokio::spawn(monitored(events(&served, protocol, &key_of(Role::Viewer)), id.clone()));
        complete(&client, &token).await;
        assert_eq!(live.await.expect("no panic"), (9, 0));
        assert_eq!(monitored(events(&served, protocol, &key_of(Role::Viewer)), id).await, (9, 0));
    })
    .await;
}
