//! The mirror: what is appended appears in CloudWatch Logs within its limits, and no trouble there is one of the log.

use std::time::{SystemTime, UNIX_EPOCH};

use runvoy_aws::{Clients, Config, DynamoLogStore, LogConfig, Mirror, MirrorConfig};
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, LogStore};

use super::stage::{block, execution, installation, lines, numbered, read_all};
use super::wire::{Cut, Wire};
use crate::emulator::Emulator;

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis()).expect("before the end of time")
}

fn open(clients: &Clients, config: &Config, mirror: &Mirror) -> DynamoLogStore {
    DynamoLogStore::open(clients, config, LogConfig::default(), Some(mirror.clone())).expect("opened")
}

/// What stands in a stream, in its order.
async fn mirrored(clients: &Clients, config: &Config, id: ExecutionId, attempt: u32) -> Vec<String> {
    let stream = format!("{}{id}/{attempt}", config.log_stream_prefix);
    let group = config.log_group.clone().expect("there is a group");
    let (mut texts, mut token) = (Vec::new(), None);
    loop {
        let request = clients.logs.get_log_events().log_group_name(&group).log_stream_name(&stream).start_from_head(true);
        let page = request.set_next_token(token.clone()).send().await.expect("a stream");
        if page.events().is_empty() {
            return texts;
        }
        texts.extend(page.events().iter().map(|event| event.message().unwrap_or_default().to_owned()));
        token = page.next_forward_token().map(str::to_owned);
    }
}

async fn every_line_appears_in_the_stream_of_its_attempt(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let mirror = Mirror::start(&clients, &config, MirrorConfig::default()).expect("a mirror");
    let (store, ids) = (open(&clients, &config, &mirror), [execution(), execution()]);
    let at = now();
    for (place, id) in ids.iter().enumerate() {
        let mut builder = BlockBuilder::default();
        let texts = [(Stream::Platform, "### runvoy: begins"), (Stream::Stdout, "out"), (Stream::Stderr, "err"), (Stream::Stdout, "")];
        for (stream, text) in texts {
            builder.push(Record { at: UnixMs(at), stream, cont: false, eol: true, bytes: text.as_bytes() });
        }
        let append = numbered(2, 1, builder.take());
        // A repeat is mirrored as often as it is stored.
        for _ in 0..=place {
            store.append(*id, append.clone()).await.expect("an append");
        }
    }
    let own = Append { attempt: 0, first_seq: None, late: false, block: block(at, &[b"queued".to_vec()]) };
    store.append(ids[0], own).await.expect("an append");
    mirror.idle().await;
    for id in ids {
        assert_eq!(mirrored(&clients, &config, id, 2).await, ["### runvoy: begins", "out", "err", " "]);
    }
    assert_eq!(mirrored(&clients, &config, ids[0], 0).await, ["queued"]);
    assert_eq!(mirror.left_out(), 0);
}

#[tokio::test]
async fn every_line_appears_in_the_stream_of_its_attempt_on_ministack() {
    every_line_appears_in_the_stream_of_its_attempt(Emulator::ministack()).await;
}

#[tokio::test]
async fn every_line_appears_in_the_stream_of_its_attempt_on_moto() {
    every_line_appears_in_the_stream_of_its_attempt(Emulator::moto()).await;
}

#[tokio::test]
async fn no_call_is_beyond_a_limit() {
    let emulator = Emulator::ministack();
    let (clients, config) = installation(emulator).await;
    let wire = Wire::new(Cut::Never);
    let mirror = Mirror::start(&wire.clients(emulator).await, &config, MirrorConfig::default()).expect("a mirror");
    let (store, id, at) = (open(&clients, &config, &mirror), execution(), now() - 100_000);
    // More events than a call takes, then more bytes, then times that fall.
    store.append(id, numbered(1, 1, block(at, &vec![b"x".to_vec(); 12_000]))).await.expect("an append");
    store.append(id, numbered(1, 12_001, block(at + 20_000, &lines(1, 40, 60_000)))).await.expect("an append");
    store.append(id, numbered(1, 12_041, block(at + 10, &lines(1, 5, 30)))).await.expect("an append");
    mirror.idle().await;
    let calls = wire.sent("PutLogEvents");
    let mut arrived = 0;
    for call in &calls {
        let events = call["logEvents"].as_array().expect("events");
        let times: Vec<_> = events.iter().map(|event| event["timestamp"].as_i64().expect("a time")).collect();
        let sizes = events.iter().map(|event| event["message"].as_str().expect("a text").len() + 26);
        assert!(events.len() <= 10_000 && sizes.clone().sum::<usize>() <= 1 << 20 && sizes.max() <= Some(256 << 10));
        assert!(times.is_sorted());
        arrived += events.len();
    }
    // The stream was made before anything was sent to it.
    assert_eq!(arrived, 12_045);
    assert_eq!((mirrored(&clients, &config, id, 1).await.len(), mirror.left_out()), (12_045, 0));
}

#[tokio::test]
async fn a_mirror_that_cannot_be_reached_harms_nobody_and_says_what_is_missing() {
    let emulator = Emulator::ministack();
    let (clients, config) = installation(emulator).await;
    let wire = Wire::new(Cut::Before(0));
    let mirror = Mirror::start(&wire.clients(emulator).await, &config, MirrorConfig::default()).expect("a mirror");
    let (store, id, at) = (open(&clients, &config, &mirror), execution(), now());
    store.append(id, numbered(1, 1, block(at, &lines(1, 7, 20)))).await.expect("an append");
    mirror.idle().await;
    assert_eq!(mirror.left_out(), 7);
    wire.cut(Cut::Never);
    store.append(id, numbered(1, 8, block(at + 100, &[b"back".to_vec()]))).await.expect("an append");
    mirror.idle().await;
    let stream = mirrored(&clients, &config, id, 1).await;
    assert_eq!(stream.len(), 2, "{stream:?}");
    assert!(stream.iter().any(|text| text == "back"));
    assert!(stream.iter().any(|text| text.starts_with("### runvoy: 7 lines are missing")), "{stream:?}");
    assert_eq!(read_all(&store, id).await.len(), 8, "the log is whole");
}

#[tokio::test]
async fn a_stream_that_is_there_and_cannot_be_made_is_written_to() {
    let emulator = Emulator::ministack();
    let (clients, config) = installation(emulator).await;
    let first = Mirror::start(&clients, &config, MirrorConfig::default()).expect("a mirror");
    let (id, at) = (execution(), now());
    open(&clients, &config, &first).append(id, numbered(1, 1, block(at, &[b"one".to_vec()]))).await.expect("an append");
    first.idle().await;
    // Another process, whose calls for a new stream fail.
    let wire = Wire::new(Cut::Of("CreateLogStream"));
    let second = Mirror::start(&wire.clients(emulator).await, &config, MirrorConfig::default()).expect("a mirror");
    open(&clients, &config, &second).append(id, numbered(1, 2, block(at + 10, &[b"two".to_vec()]))).await.expect("an append");
    second.idle().await;
    assert!(!wire.sent("CreateLogStream").is_empty());
    assert_eq!(mirrored(&clients, &config, id, 1).await, ["one", "two"]);
    assert_eq!(second.left_out(), 0);
}

#[tokio::test]
async fn what_the_mirror_has_no_room_for_is_left_out() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let mirror = Mirror::start(&clients, &config, MirrorConfig { most_bytes: 2_000, most_blocks: 100 }).expect("a mirror");
    let (store, id, at) = (open(&clients, &config, &mirror), execution(), now());
    store.append(id, numbered(1, 1, block(at, &lines(1, 3, 1_000)))).await.expect("an append");
    store.append(id, numbered(1, 4, block(at + 10, &[b"small".to_vec()]))).await.expect("an append");
    mirror.idle().await;
    assert_eq!(mirror.left_out(), 3);
    let stream = mirrored(&clients, &config, id, 1).await;
    assert!(stream.iter().any(|text| text == "small") && stream.iter().any(|text| text.starts_with("### runvoy: 3 lines")), "{stream:?}");
}

#[tokio::test]
async fn without_a_group_there_is_no_mirror() {
    let (clients, config) = installation(Emulator::ministack()).await;
    assert!(Mirror::start(&clients, &Config { log_group: None, ..config }, MirrorConfig::default()).is_none());
}
