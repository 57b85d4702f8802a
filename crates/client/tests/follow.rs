//! Following a log: every record once and in order, whatever happens to the connection.

mod fake;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fake::{Dice, Fake, Log, Reply, cutting_proxy};
use runvoy_client::wire::{Control, Stream};
use runvoy_client::{Client, ClientError, Endpoint, Followed, Options, Retry, Start};
use tokio_tungstenite::tungstenite::Message;

const ID: &str = "0192ab00000070008000000000000001";

fn client(address: std::net::SocketAddr) -> Client {
    Client::new(Options::new(format!("http://{address}").parse::<Endpoint>().expect("an address"))).expect("plain options")
}

fn log(lines: usize, seed: u64) -> Log {
    let mut dice = Dice(seed);
    let lines = (0..lines)
        .map(|_| {
            let stream = if dice.roll(2) == 0 { Stream::Stdout } else { Stream::Stderr };
            let bytes = (0..dice.roll(80)).map(|_| u8::try_from(dice.roll(256)).expect("a byte")).collect();
            (stream, bytes, dice.roll(10) > 0)
        })
        .collect();
    Log { id: ID.to_owned(), lines }
}

fn start() -> Start {
    Start { from_line: 1, websocket_url: None, live: true }
}

/// Follows to the end; gives the lines with their numbers, and the gaps that were told.
async fn read_all(client: &Client, start: Start) -> Result<(Log, Vec<u64>, usize), ClientError> {
    let (mut log, mut numbers, mut gaps) = (Log { id: ID.to_owned(), lines: Vec::new() }, Vec::new(), 0);
    let mut follow = client.follow(ID, start);
    while let Some(item) = follow.next().await {
        match item? {
            Followed::Batch(batch) => {
                for (line, record) in batch.records() {
                    numbers.push(line);
                    log.lines.push((record.stream, record.bytes.to_vec(), record.eol));
                }
            }
            Followed::Gap { .. } => gaps += 1,
            Followed::Status(_) | Followed::Interrupted(_) => {}
        }
    }
    Ok((log, numbers, gaps))
}

#[tokio::test]
async fn every_byte_arrives_once_through_connections_cut_at_any_byte() {
    for seed in 0..6 {
        let sent = log(200, seed);
        let shown = sent.clone();
        let fake = Fake::new(move |seen| match seen.path().rsplit('/').next() {
            Some("stream") => Reply::WebSocket(shown.frames(seen, 7)),
            Some("logs") if seen.parameter("format").is_some() => shown.ndjson(seen),
            _ => shown.logs("RUNNING"),
        });
        let upstream = fake.tcp().await;
        let dice = Mutex::new(Dice(seed));
        let proxy = cutting_proxy(upstream, move |_| 300 + usize::try_from(dice.lock().expect("free").roll(2_500)).expect("small")).await;
        let (received, numbers, gaps) = read_all(&client(proxy), start()).await.expect("it gets through");
        assert_eq!(numbers, (1..=200).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(received.lines, sent.lines, "seed {seed}");
        assert_eq!(gaps, 0);
        assert!(fake.connections() > 5, "the proxy cut only {} connections", fake.connections());
    }
}

#[tokio::test]
async fn a_stored_log_that_breaks_off_is_read_on_from_where_it_broke() {
    let sent = log(300, 9);
    let shown = sent.clone();
    let fake = Fake::new(move |seen| if seen.parameter("format").is_some() { shown.ndjson(seen) } else { shown.logs("FAILED") });
    let proxy = cutting_proxy(fake.tcp().await, |number| 2_000 + number * 500).await;
    for live in [true, false] {
        let (received, numbers, _) = read_all(&client(proxy), Start { live, ..start() }).await.expect("it gets through");
        assert_eq!(numbers, (1..=300).collect::<Vec<_>>());
        assert_eq!(received.lines, sent.lines);
    }
}

#[tokio::test]
async fn who_does_not_stay_is_told_at_once_that_nobody_answers() {
    let nobody = "http://127.0.0.1:1".parse::<Endpoint>().expect("an address");
    let client = Client::new(Options { retry: Retry::NONE, ..Options::new(nobody) }).expect("plain options");
    let first = client.follow(ID, Start { live: false, ..start() }).next().await;
    assert!(matches!(first, Some(Err(ClientError::Unreachable { .. }))), "{first:?}");
}

#[tokio::test]
async fn who_stays_is_told_once_that_the_server_is_away() {
    let (shown, asked) = (log(3, 4), AtomicUsize::new(0));
    let fake = Fake::new(move |seen| match seen.path().rsplit('/').next() {
        Some("stream") => Reply::WebSocket(shown.frames(seen, 2)),
        _ if asked.fetch_add(1, Ordering::SeqCst) < 4 => Reply::error(503, "SERVICE_UNAVAILABLE", "not now"),
        _ => shown.logs("RUNNING"),
    });
    let mut follow = client(fake.tcp().await).follow(ID, start());
    let mut told = 0;
    while let Some(item) = follow.next().await {
        told += usize::from(matches!(item.expect("it comes back"), Followed::Interrupted(_)));
    }
    assert_eq!(told, 1);
}

#[tokio::test]
async fn a_refused_upgrade_falls_back_to_polling() {
    let sent = log(20, 3);
    let (shown, polls) = (sent.clone(), Arc::new(AtomicUsize::new(0)));
    let fake = Fake::new(move |seen| match seen.path().rsplit('/').next() {
        Some("stream") => Reply::error(400, "INVALID_REQUEST", "no upgrade here"),
        Some("logs") if seen.parameter("format").is_some() => {
            // The log grows between two polls.
            let known = if polls.load(Ordering::SeqCst) > 1 { 20 } else { 5 };
            Log { lines: shown.lines[..known].to_vec(), ..shown.clone() }.ndjson(seen)
        }
        _ => shown.logs(if polls.fetch_add(1, Ordering::SeqCst) > 0 { "SUCCEEDED" } else { "RUNNING" }),
    });
    let (received, numbers, _) = read_all(&client(fake.tcp().await), start()).await.expect("polling needs no upgrade");
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(received.lines, sent.lines);
}

#[tokio::test]
async fn the_ticket_of_a_submit_is_used_at_once_and_replaced_when_it_has_aged() {
    let shown = log(4, 1);
    let fake = Fake::new(move |seen| match seen.path().rsplit('/').next() {
        Some("stream") if seen.parameter("token") == Some("aged") => Reply::error(401, "UNAUTHORIZED", "the ticket expired"),
        Some("stream") => Reply::WebSocket(shown.frames(seen, 2)),
        _ => shown.logs("RUNNING"),
    });
    let client = client(fake.tcp().await);
    for (token, requests) in [("ticket", vec!["stream"]), ("aged", vec!["stream", "logs", "stream"])] {
        let before = fake.seen().len();
        let url = format!("ws://public.invalid/api/v1/executions/{ID}/stream?token={token}");
        let (_, numbers, _) = read_all(&client, Start { websocket_url: Some(url), ..start() }).await.expect("a good ticket in the end");
        assert_eq!(numbers, [1, 2, 3, 4]);
        let seen: Vec<String> =
            fake.seen()[before..].iter().map(|seen| seen.path().rsplit('/').next().expect("a path").to_owned()).collect();
        assert_eq!(seen, requests);
    }
}

#[tokio::test]
async fn a_hole_is_filled_from_the_store_and_told_only_where_the_store_has_it_too() {
    for (store_has_it, expected, gaps) in [(true, (1..=10).collect::<Vec<u64>>(), 0), (false, vec![1, 2, 6, 7, 8, 9, 10], 1)] {
        let shown = log(10, 5);
        let fake = Fake::new(move |seen| match seen.path().rsplit('/').next() {
            Some("stream") => {
                let end = Message::Text(serde_json::to_string(&Control::completed()).expect("plain data").into());
                let batches = [shown.batch(1, 2), shown.batch(6, 5)];
                Reply::WebSocket(batches.iter().map(|batch| Message::Binary(batch.encode())).chain([end]).collect())
            }
            Some("logs") if seen.parameter("format").is_some() => {
                let events = shown.events("e", 3).into_iter().filter(|event| store_has_it || event.line > 5);
                let lines = events.map(|event| serde_json::to_string(&event).expect("plain data") + "\n").collect::<String>();
                Reply::Answer(200, Vec::new(), lines.into_bytes())
            }
            _ => shown.logs("RUNNING"),
        });
        let (_, numbers, told) = read_all(&client(fake.tcp().await), start()).await.expect("the log ends");
        assert_eq!((numbers, told), (expected, gaps));
    }
}

#[tokio::test]
async fn frames_of_public_clients_are_understood_too() {
    let shown = log(6, 8);
    let expected = shown.lines.clone();
    let fake = Fake::new(move |seen| match seen.path().rsplit('/').next() {
        Some("stream") => {
            let mut frames: Vec<Message> =
                shown.events("e", 1).iter().map(|event| Message::Text(serde_json::to_string(event).expect("plain data").into())).collect();
            frames.extend(shown.frames(seen, 100).pop());
            Reply::WebSocket(frames)
        }
        _ => shown.logs("RUNNING"),
    });
    let (received, ..) = read_all(&client(fake.tcp().await), start()).await.expect("text frames are fine");
    assert_eq!(received.lines, expected);
}

#[tokio::test]
async fn an_unknown_execution_is_told_at_once() {
    let fake = Fake::new(|_| Reply::error(404, "NOT_FOUND", "no such execution"));
    let error = read_all(&client(fake.tcp().await), start()).await.expect_err("nothing to follow");
    assert!(matches!(error, ClientError::NotFound(_)), "{error:?}");
    assert_eq!(fake.seen().len(), 1);
}
