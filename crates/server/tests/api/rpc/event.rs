//! Events of jobs: published, kept, streamed back.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_rpc::buffa::Message as _;
use runvoy_rpc::connectrpc::client::HttpClient;
use runvoy_rpc::connectrpc::{ConnectError, ErrorCode, Protocol, stream_iter};
use runvoy_rpc::job::v1::__buffa::oneof::job_event::EventData;
use runvoy_rpc::job::v1::{
    AppendOutputRequest, CompleteJobRequest, DequeueJobRequest, DequeueJobResponse, EventType, HeartbeatEvent, JobEvent,
    JobEventsServiceClient, JobResult, OutputBatchEvent, OutputEvent, OutputItem, ProcessEndEvent, ProcessErrorEvent, ProcessStartEvent,
    PublishJobEventsRequest, ReleaseJobRequest, StreamJobEventsRequest, StreamType,
};
use runvoy_rpc::protobuf::Timestamp;
use serde_json::json;

use super::signer::Signer;
use super::{Jobs, admin, enqueue, forged, job, jobs, lease, look, over_both, refusal, spoken, worker_key};
use crate::app::{NOW, Served, TestApp, key_of};

pub type Events = JobEventsServiceClient<HttpClient>;

pub fn events(served: &Served, protocol: Protocol, key: &str) -> Events {
    let (transport, config) = spoken(served, protocol, key);
    JobEventsServiceClient::new(transport, config)
}

fn event(sequence: i64, data: EventData) -> JobEvent {
    let timestamp = Timestamp { seconds: NOW / 1000 + sequence, nanos: 123_456_789, ..Timestamp::default() };
    JobEvent { sequence, timestamp: timestamp.into(), event_data: Some(data), ..JobEvent::default() }
}

fn output(sequence: i64, bytes: &[u8]) -> JobEvent {
    let output = OutputEvent { output: bytes.to_vec().into(), ..OutputEvent::default() };
    JobEvent { event_type: EventType::EVENT_TYPE_OUTPUT.into(), ..event(sequence, EventData::Output(Box::new(output))) }
}

fn batch(sequence: i64, items: &[(StreamType, &[u8])]) -> JobEvent {
    let item = |(to, bytes): &(StreamType, &[u8])| OutputItem {
        output: bytes.to_vec().into(),
        stream_type: (*to).into(),
        ..OutputItem::default()
    };
    let outputs = items.iter().map(item).collect();
    let batch = OutputBatchEvent { outputs, first_timestamp_ms: NOW, ..OutputBatchEvent::default() };
    JobEvent { event_type: EventType::EVENT_TYPE_OUTPUT_BATCH.into(), ..event(sequence, EventData::OutputBatch(Box::new(batch))) }
}

/// What a worker has to say about one attempt.
fn life() -> Vec<JobEvent> {
    let started = ProcessStartEvent { pid: 42, ..ProcessStartEvent::default() };
    let ended = ProcessEndEvent { pid: 42, exit_code: 0, ..ProcessEndEvent::default() };
    vec![
        event(0, EventData::ProcessStart(Box::new(started))),
        output(1, b"one\ntw"),
        event(2, EventData::Heartbeat(Box::new(HeartbeatEvent { process_alive: true, ..HeartbeatEvent::default() }))),
        batch(
            5,
            &[
                (StreamType::STREAM_TYPE_UNSPECIFIED, b"o\n"),
                (StreamType::STREAM_TYPE_STDERR, b"oh\n"),
                (StreamType::STREAM_TYPE_STDOUT, b"\xff\n"),
            ],
        ),
        event(6, EventData::ProcessEnd(Box::new(ended))),
    ]
}

fn told(token: &str, events: &[JobEvent]) -> PublishJobEventsRequest {
    PublishJobEventsRequest { task_token: token.to_owned(), events: events.to_vec(), ..PublishJobEventsRequest::default() }
}

async fn publish(client: &Events, requests: Vec<PublishJobEventsRequest>) -> Result<(), ConnectError> {
    client.publish_job_events(stream_iter(requests)).await.map(drop)
}

fn of(id: &str) -> StreamJobEventsRequest {
    StreamJobEventsRequest { job_id: id.to_owned(), ..StreamJobEventsRequest::default() }
}

/// Every event of a stream, to its end.
async fn read(client: &Events, request: StreamJobEventsRequest) -> Result<Vec<JobEvent>, ConnectError> {
    let mut stream = client.stream_job_events(request).await?;
    let mut events = Vec::new();
    while let Some(message) = stream.message().await? {
        events.extend(message.to_owned_message().event.into_option());
    }
    Ok(events)
}

async fn complete(client: &Jobs, leased: &DequeueJobResponse) {
    let job_result = JobResult { success: true, ..JobResult::default() }.into();
    let request = CompleteJobRequest { task_token: leased.task_token.clone(), job_result, ..CompleteJobRequest::default() };
    client.complete_job(request).await.expect("it is held");
}

async fn leased(client: &Jobs) -> (String, DequeueJobResponse) {
    let id = enqueue(client, job("true")).await;
    (id, lease(client, DequeueJobRequest::default()).await)
}

fn sequences(events: &[JobEvent]) -> Vec<i64> {
    events.iter().map(|event| event.sequence).collect()
}

#[tokio::test]
async fn what_was_published_is_streamed_back_as_it_was() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let (jobs, client) = (admin(&served, protocol), events(&served, protocol, &key_of(Role::Admin)));
        let (id, leased) = leased(&jobs).await;
        let live = {
            let (client, id) = (events(&served, protocol, &key_of(Role::Viewer)), id.clone());
            tokio::spawn(async move { read(&client, of(&id)).await.expect("a stream") })
        };
        let all = life();
        publish(&client, vec![told(&leased.task_token, &all[..2]), told("", &all[2..4])]).await.expect("kept");
        publish(&client, vec![told(&leased.task_token, &all)]).await.expect("what is there is passed over");
        publish(&client, vec![]).await.expect("nothing to keep");
        complete(&jobs, &leased).await;
        assert_eq!(live.await.expect("no panic"), all);
        assert_eq!(read(&client, of(&id)).await.expect("a stream"), all);

        let log = app.get(&format!("/api/v1/executions/{id}/logs")).admin().send().await;
        for line in ["\"one\"", "\"oh\""] {
            assert_eq!(log.text().matches(line).count(), 1, "{}", log.text());
        }
    })
    .await;
}

#[tokio::test]
async fn an_event_without_a_time_gets_the_servers() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (jobs, client) = (admin(&served, Protocol::Grpc), events(&served, Protocol::Grpc, &key_of(Role::Admin)));
    let (id, leased) = leased(&jobs).await;
    let mut timeless = output(1, b"x\n");
    timeless.timestamp = Default::default();
    publish(&client, vec![told(&leased.task_token, &[timeless])]).await.expect("kept");
    complete(&jobs, &leased).await;
    let events = read(&client, of(&id)).await.expect("a stream");
    assert_eq!(events[0].timestamp.seconds, NOW / 1000);
}

fn filters(id: &str) -> Vec<(StreamJobEventsRequest, Vec<i64>)> {
    let kinds = |kinds: &[EventType]| StreamJobEventsRequest { event_filter: kinds.iter().map(|kind| (*kind).into()).collect(), ..of(id) };
    vec![
        (of(id), vec![0, 1, 2, 5, 6]),
        (StreamJobEventsRequest { from_sequence: 3, ..of(id) }, vec![5, 6]),
        (StreamJobEventsRequest { from_timestamp: NOW / 1000 * 1000 + 2_000, ..of(id) }, vec![2, 5, 6]),
        (kinds(&[EventType::EVENT_TYPE_PROCESS_START, EventType::EVENT_TYPE_OUTPUT_BATCH]), vec![0, 5]),
        (kinds(&[EventType::EVENT_TYPE_UNSPECIFIED]), vec![0, 1, 2, 5, 6]),
        (StreamJobEventsRequest { from_sequence: 1, from_timestamp: NOW + 3_000, ..kinds(&[EventType::EVENT_TYPE_PROCESS_END]) }, vec![6]),
    ]
}

#[tokio::test]
async fn filters_hold_for_what_was_and_for_what_comes() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let (jobs, client) = (admin(&served, protocol), events(&served, protocol, &key_of(Role::Admin)));
        let (id, leased) = leased(&jobs).await;
        let live: Vec<_> = filters(&id)
            .into_iter()
            .map(|(request, expected)| {
                let client = events(&served, protocol, &key_of(Role::Admin));
                (tokio::spawn(async move { read(&client, request).await.expect("a stream") }), expected)
            })
            .collect();
        for event in life() {
            publish(&client, vec![told(&leased.task_token, &[event])]).await.expect("kept");
        }
        complete(&jobs, &leased).await;
        for (reader, expected) in live {
            assert_eq!(sequences(&reader.await.expect("no panic")), expected);
        }
        for (request, expected) in filters(&id) {
            assert_eq!(sequences(&read(&client, request).await.expect("a stream")), expected);
        }
    })
    .await;
}

#[tokio::test]
async fn lines_of_our_own_worker_are_events_too() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (jobs, client) = (admin(&served, Protocol::Grpc), events(&served, Protocol::Grpc, &key_of(Role::Admin)));
    let (id, leased) = leased(&jobs).await;
    let mut block = BlockBuilder::default();
    for (stream, bytes, eol) in
        [(Stream::Platform, &b"### runvoy: started"[..], true), (Stream::Stdout, b"one", true), (Stream::Stderr, b"tw", false)]
    {
        block.push(Record { at: UnixMs(NOW + 5), stream, cont: false, eol, bytes });
    }
    let block = block.take();
    let append = AppendOutputRequest {
        task_token: leased.task_token.clone(),
        first_sequence: 1,
        first_at_ms: block.first_at.0,
        records: block.data,
        ..AppendOutputRequest::default()
    };
    jobs.append_output(append).await.expect("it is taken");
    complete(&jobs, &leased).await;
    let events = read(&client, of(&id)).await.expect("a stream");
    assert_eq!(sequences(&events), [1, 2, 3, 4], "dense, and the end is the last and one more");
    let kinds: Vec<i32> = events.iter().map(|event| event.event_type.to_i32()).collect();
    assert_eq!(kinds, [1, 5, 5, 2]);
    let written: Vec<(Option<StreamType>, &[u8])> = events
        .iter()
        .filter_map(|event| match &event.event_data {
            Some(EventData::Output(output)) => Some((output.stream_type.as_known(), &output.output[..])),
            _ => None,
        })
        .collect();
    assert_eq!(written, [(Some(StreamType::STREAM_TYPE_STDOUT), &b"one\n"[..]), (Some(StreamType::STREAM_TYPE_STDERR), b"tw")]);
}

#[tokio::test]
async fn readers_that_come_back_at_any_place_read_the_same_bytes() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (jobs, client) = (admin(&served, Protocol::Grpc), events(&served, Protocol::Grpc, &key_of(Role::Admin)));
    let (id, leased) = leased(&jobs).await;
    let all: Vec<JobEvent> =
        (0..200).map(|number| output(number, format!("line {number}\n").repeat(1 + number as usize % 7).as_bytes())).collect();
    let reader = {
        let (client, id) = (events(&served, Protocol::Grpc, &key_of(Role::Admin)), id.clone());
        tokio::spawn(async move {
            let (mut seen, mut reconnects) = (Vec::<JobEvent>::new(), 0);
            loop {
                let from_sequence = seen.last().map_or(0, |event| event.sequence + 1);
                let mut stream = client.stream_job_events(StreamJobEventsRequest { from_sequence, ..of(&id) }).await.expect("a stream");
                // Each goes away after a few events, in the middle of what comes.
                for _ in 0..1 + reconnects * 7 % 13 {
                    match stream.message().await.expect("an event") {
                        Some(message) => seen.extend(message.to_owned_message().event.into_option()),
                        None => return (seen, reconnects),
                    }
                }
                reconnects += 1;
            }
        })
    };
    for message in all.chunks(3) {
        publish(&client, vec![told(&leased.task_token, message)]).await.expect("kept");
    }
    complete(&jobs, &leased).await;
    let (seen, reconnects) = reader.await.expect("no panic");
    assert!(reconnects >= 20, "{reconnects}");
    let bytes = |events: &[JobEvent]| events.iter().flat_map(|event| event.encode_to_vec()).collect::<Vec<u8>>();
    assert!(bytes(&seen) == bytes(&all));
    for number in 0..50 {
        let from = (number * 37) % 200;
        let again = read(&client, StreamJobEventsRequest { from_sequence: from, ..of(&id) }).await.expect("a stream");
        assert!(bytes(&again) == bytes(&all[usize::try_from(from).expect("small")..]), "from {from}");
    }
}

#[tokio::test]
async fn a_large_output_comes_in_parts_and_is_whole_in_the_log() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (jobs, client) = (admin(&served, Protocol::Grpc), events(&served, Protocol::Grpc, &key_of(Role::Admin)));
    let (id, leased) = leased(&jobs).await;
    let large: Vec<u8> = (0..5_000_000u32).map(|n| if n % 100 == 99 { b'\n' } else { b'a' + (n % 23) as u8 }).collect();
    publish(&client, vec![told(&leased.task_token, &[output(1, &large), output(2, b"end\n")])]).await.expect("kept");
    publish(&client, vec![told(&leased.task_token, &[output(1, &large)])]).await.expect("known");
    complete(&jobs, &leased).await;
    let events = read(&client, of(&id)).await.expect("a stream");
    let parts: Vec<(i64, u32, u32)> = events.iter().map(|event| (event.sequence, event.part, event.parts)).collect();
    assert_eq!(parts, [(1, 1, 5), (1, 2, 5), (1, 3, 5), (1, 4, 5), (1, 5, 5), (2, 0, 0)]);
    let mut whole = Vec::new();
    for event in &events[..5] {
        let Some(EventData::Output(output)) = &event.event_data else { panic!("output") };
        whole.extend_from_slice(&output.output);
    }
    assert!(whole == large);
}

#[tokio::test]
async fn what_is_too_much_for_one_message_is_refused() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let (jobs, client) = (admin(&served, Protocol::Grpc), events(&served, Protocol::Grpc, &key_of(Role::Admin)));
    let (_, leased) = leased(&jobs).await;
    let refused = publish(&client, vec![told(&leased.task_token, &[output(1, &vec![b'x'; 17 << 20])])]).await;
    assert_eq!(refusal(refused).0, ErrorCode::ResourceExhausted);
}

#[tokio::test]
async fn a_secret_that_a_worker_tells_is_masked() {
    let app = TestApp::new().await;
    let made = json!({"name": "db", "key_name": "DB_URL", "value": "pg://s3cr3t-value"});
    assert!(app.post("/api/v1/secrets").admin().json(&made).send().await.status.is_success());
    let served = app.listen().await;
    let (jobs, client) = (admin(&served, Protocol::Connect), events(&served, Protocol::Connect, &key_of(Role::Admin)));
    let mut request = job("true");
    request.job_params.as_option_mut().expect("params").secrets = vec!["db".into()];
    let id = enqueue(&jobs, request).await;
    let leased = lease(&jobs, DequeueJobRequest::default()).await;
    let failed = ProcessErrorEvent { error_message: "no pg://s3cr3t-value".into(), ..ProcessErrorEvent::default() };
    let told_all = [output(1, b"at pg://s3cr3t-value\n"), event(2, EventData::ProcessError(Box::new(failed)))];
    publish(&client, vec![told(&leased.task_token, &told_all)]).await.expect("kept");
    complete(&jobs, &leased).await;
    let events = read(&client, of(&id)).await.expect("a stream");
    assert!(matches!(&events[0].event_data, Some(EventData::Output(output)) if output.output[..] == *b"at ***\n"), "{events:?}");
    assert!(matches!(&events[1].event_data, Some(EventData::ProcessError(failed)) if failed.error_message == "no ***"), "{events:?}");
    let log = app.get(&format!("/api/v1/executions/{id}/logs")).admin().send().await;
    assert!(log.text().contains("at ***") && !log.text().contains("s3cr3t"), "{}", log.text());
}

#[tokio::test]
async fn who_may_not_is_refused() {
    over_both(|app, protocol| async move {
        let served = app.listen().await;
        let jobs = admin(&served, protocol);
        let (id, leased) = leased(&jobs).await;
        let all = [output(1, b"x\n")];
        let of_admin = events(&served, protocol, &key_of(Role::Admin));
        for (token, code) in [("", ErrorCode::InvalidArgument), ("nonsense!", ErrorCode::InvalidArgument)] {
            assert_eq!(refusal(publish(&of_admin, vec![told(token, &all)]).await).0, code, "{token}");
        }
        let other = forged(&leased.task_token);
        assert_eq!(refusal(publish(&of_admin, vec![told(&other, &all)]).await).0, ErrorCode::PermissionDenied);
        let viewer = events(&served, protocol, &key_of(Role::Viewer));
        assert_eq!(refusal(publish(&viewer, vec![told(&leased.task_token, &all)]).await).0, ErrorCode::PermissionDenied);
        let developer = events(&served, protocol, &key_of(Role::Developer));
        for unknown in [id.as_str(), "0192ab00ff107abc8def000102030405", "", "x"] {
            assert_eq!(refusal(read(&developer, of(unknown)).await).0, ErrorCode::NotFound, "not yours and not there look the same");
        }
        assert_eq!(refusal(read(&of_admin, of(&id[..20])).await).0, ErrorCode::NotFound, "a part of an id is none");
        let worker = events(&served, protocol, &worker_key(&app, "w", &["default"]).await);
        assert_eq!(refusal(read(&worker, of(&id)).await).0, ErrorCode::PermissionDenied, "a worker publishes and does not read");
        let stolen = refusal(publish(&worker, vec![told(&leased.task_token, &all)]).await);
        assert_eq!(stolen.0, ErrorCode::PermissionDenied, "the lease is another account's");
        let elsewhere = events(&served, protocol, &worker_key(&app, "x", &["gpu"]).await);
        assert_eq!(refusal(publish(&elsewhere, vec![told(&leased.task_token, &all)]).await).0, ErrorCode::PermissionDenied);
        let negative = publish(&of_admin, vec![told(&leased.task_token, &[output(-1, b"x")])]).await;
        assert_eq!(refusal(negative).0, ErrorCode::InvalidArgument);
    })
    .await;
}

#[tokio::test]
async fn a_reader_whose_key_is_revoked_reads_no_more() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let jobs = admin(&served, Protocol::Grpc);
    let (id, leased) = leased(&jobs).await;
    let client = events(&served, Protocol::Grpc, &key_of(Role::Viewer));
    publish(&events(&served, Protocol::Grpc, &key_of(Role::Admin)), vec![told(&leased.task_token, &[output(1, b"x\n")])])
        .await
        .expect("kept");
    let mut stream = client.stream_job_events(of(&id)).await.expect("a stream");
    stream.message().await.expect("an event").expect("one");
    let gone = json!({"email": crate::app::email_of(Role::Viewer)});
    assert!(app.post("/api/v1/users/revoke").admin().json(&gone).send().await.status.is_success());
    let ended = tokio::time::timeout(Duration::from_secs(30), stream.message()).await.expect("in time");
    assert_eq!(refusal(ended.map(drop)).0, ErrorCode::Unauthenticated);
}

#[tokio::test]
async fn an_upload_holds_what_is_not_kept_yet_and_no_more() {
    let app = TestApp::with(|_| {}, |server| server.max_request_bytes = 1 << 20).await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Grpc);
    let (_, leased) = leased(&client).await;
    let events = events(&served, Protocol::Grpc, &key_of(Role::Admin));
    let message = |sequence, bytes| told(&leased.task_token, &[output(sequence, &vec![b'x'; bytes])]);
    let many = (1..=30).map(|sequence| message(sequence, 100_000)).collect();
    publish(&events, many).await.expect("what was kept makes room");
    let (code, _) = refusal(publish(&events, vec![message(31, 1 << 20)]).await);
    assert_eq!(code, ErrorCode::Unavailable);
    publish(&events, vec![message(31, 100)]).await.expect("the room is free again");
}

#[tokio::test]
async fn a_worker_publishes_for_as_long_as_its_lease_lasts_whenever_its_token_ends() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let signer = Signer::registered(&app, "ci", "worker").await;
    let id = enqueue(&admin(&served, Protocol::Grpc), job("true")).await;
    let token = signer.token(600);
    let leased = lease(&jobs(&served, Protocol::Grpc, &token), DequeueJobRequest::default()).await.task_token;
    let reader = events(&served, Protocol::Grpc, &key_of(Role::Admin));
    let (clock, first, second) = (Arc::clone(&app.clock), told(&leased, &[output(1, b"x\n")]), told(&leased, &[output(2, b"y\n")]));
    let after_the_end = async move {
        let mut stream = reader.stream_job_events(of(&id)).await.expect("a stream");
        stream.message().await.expect("an event").expect("the first is kept");
        clock.advance(3_600_000);
        // Whoever publishes is looked at once a second.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        second
    };
    let messages = stream::iter([first]).chain(stream::once(after_the_end));
    let client = events(&served, Protocol::Grpc, &token);
    client.publish_job_events(messages).await.expect("its lease is good");
    let anew = client.publish_job_events(stream_iter(vec![told(&leased, &[output(3, b"z\n")])])).await;
    assert_eq!(refusal(anew).0, ErrorCode::Unauthenticated, "a new call needs a token that is good");
}

#[tokio::test]
async fn a_lease_under_which_something_was_published_counts_when_it_is_handed_back() {
    let app = TestApp::new().await;
    let served = app.listen().await;
    let client = admin(&served, Protocol::Connect);
    let (id, leased) = leased(&client).await;
    let events = events(&served, Protocol::Connect, &key_of(Role::Admin));
    publish(&events, vec![told(&leased.task_token, &[output(1, b"x\n")])]).await.expect("it is kept");
    let release = ReleaseJobRequest { task_token: leased.task_token.clone(), ..ReleaseJobRequest::default() };
    client.release_job(release).await.expect("it is held");
    let back = look(&client, &id).await;
    assert_eq!((back.status.as_str(), back.attempt), ("PENDING", 1), "it was not left as it was");
}
