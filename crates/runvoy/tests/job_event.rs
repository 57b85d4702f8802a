//! Events of jobs through the real binary: a foreign worker publishes, readers come and go, servers are killed.

mod harness;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::harness::connect::{Stream, call, upload};
use self::harness::{Server, Setup, count, process, promise};

const PUBLISH: &str = "JobEventsService/PublishJobEvents";
const EVENTS: &str = "JobEventsService/StreamJobEvents";

/// A job that a foreign worker has leased.
struct Leased {
    id: String,
    token: String,
}

fn lease(server: &Server) -> Leased {
    let (url, key) = (&server.url, &server.key());
    let made = call(url, key, "JobService/EnqueueJob", &json!({"jobParams": {"command": "true"}})).expect("it is taken");
    let request = json!({"maxJobs": 1, "visibilityTimeoutSeconds": 43_200});
    let first = Stream::open(url, key, "JobService/DequeueJob", &request).expect("a stream").next().expect("a lease").expect("one");
    let first: Value = serde_json::from_slice(&first).expect("JSON");
    Leased { id: text(&made["jobId"]), token: text(&first["taskToken"]) }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn complete(server: &Server, leased: &Leased) {
    let request = json!({"taskToken": leased.token, "jobResult": {"success": true}});
    call(&server.url, &server.key(), "JobService/CompleteJob", &request).expect("it is held");
}

/// The event of a number; its output is of a size of its own.
fn event(number: usize) -> Value {
    let output = "QUJD".repeat(1 + number % 50) + "Cg==";
    let timestamp = format!("2030-01-01T00:{:02}:{:02}.5Z", number / 60 % 60, number % 60);
    json!({"sequence": number.to_string(), "timestamp": timestamp, "eventType": "EVENT_TYPE_OUTPUT", "output": {"output": output}})
}

fn message(token: &str, numbers: std::ops::Range<usize>) -> Value {
    json!({"taskToken": token, "events": numbers.map(event).collect::<Vec<_>>()})
}

fn from(id: &str, sequence: usize) -> Value {
    json!({"jobId": id, "fromSequence": sequence.to_string()})
}

/// Chance that is the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % most.max(1)
    }
}

#[test]
fn promise_14_events_are_the_same_from_any_cursor_though_the_server_is_killed() {
    let (kills, reconnects, events) = (count(4, 50), count(400, 10_000), count(400, 5_000));
    let directory = tempfile::tempdir().expect("a directory");
    let start = || Setup::default().arg("--no-worker").start_in(&directory.path().join("data"));
    let mut server = start();
    let (leased, mut chance) = (lease(&server), Chance(14));
    let (mut acknowledged, mut killed) = (0, 0);
    while acknowledged < events {
        let to = (acknowledged + 1 + chance.below(20)).min(events);
        // It says again what it is not sure of, as a worker does with its write-ahead log.
        let again = acknowledged - chance.below(acknowledged.min(5) + 1);
        let messages = [message(&leased.token, again..to)];
        let (url, key) = (server.url.clone(), server.key());
        let is_doomed = killed < kills && acknowledged * (kills + 1) >= events * (killed + 1);
        if !is_doomed {
            upload(&url, &key, PUBLISH, &messages).expect("kept");
            acknowledged = to;
            continue;
        }
        std::thread::scope(|scope| {
            let told = scope.spawn(|| upload(&url, &key, PUBLISH, &messages));
            std::thread::sleep(Duration::from_micros(chance.below(4_000) as u64));
            server.kill_9();
            if told.join().expect("no panic").is_ok() {
                acknowledged = to;
            }
        });
        killed += 1;
        server = start();
        let mut stream = Stream::open(&server.url, &server.key(), EVENTS, &from(&leased.id, 0)).expect("a stream");
        for number in 0..acknowledged {
            let seen = stream.next().expect("what was acknowledged").expect("is there");
            assert_eq!(serde_json::from_slice::<Value>(&seen).expect("JSON")["event"]["sequence"], number.to_string());
        }
    }
    complete(&server, &leased);
    let whole = read(&server, &leased.id, 0, usize::MAX);
    assert_eq!(whole.len(), events);
    for (number, seen) in whole.iter().enumerate() {
        let (seen, said) = (serde_json::from_slice::<Value>(seen).expect("JSON"), event(number));
        assert_eq!((&seen["event"]["output"], &seen["event"]["sequence"]), (&said["output"], &said["sequence"]));
    }
    for _ in 0..reconnects {
        let begin = chance.below(events);
        let most = 1 + chance.below(200);
        let part = read(&server, &leased.id, begin, most);
        assert!(part == whole[begin..(begin + most).min(events)], "from {begin}");
    }
    let what = format!("{events} events, {killed} kills, {reconnects} reconnects");
    promise(14, "job events are the same from any cursor", what, "byte-identical");
}

/// At most so many messages from a sequence on.
fn read(server: &Server, id: &str, sequence: usize, most: usize) -> Vec<Vec<u8>> {
    let mut stream = Stream::open(&server.url, &server.key(), EVENTS, &from(id, sequence)).expect("a stream");
    let mut messages = Vec::new();
    while messages.len() < most {
        match stream.next().expect("the stream holds") {
            Some(message) => messages.push(message),
            None => break,
        }
    }
    messages
}

#[test]
fn promise_15_many_followers_of_one_jobs_events_and_a_slow_one_cost_little() {
    let (followers, events) = (count(100, 1_000), count(300, 2_000));
    let server = Setup::default().arg("--no-worker").start();
    let leased = lease(&server);
    let (url, key, id) = (&server.url, &server.key(), &leased.id);
    let mut slow = Stream::open(url, key, EVENTS, &from(id, 0)).expect("a stream");
    let before = process::memory(server.pid(), "VmRSS");
    let (waiting, mut most) = (AtomicUsize::new(0), before);
    let mut delays = std::thread::scope(|scope| {
        let follow = || {
            let mut stream = Stream::open(url, key, EVENTS, &from(id, 0)).expect("a stream");
            waiting.fetch_add(1, Ordering::Relaxed);
            let mut last = Instant::now();
            for number in 0..events {
                let seen = stream.next().expect("the stream holds").expect("an event");
                assert!(
                    seen.windows(20).any(|part| part.starts_with(format!("\"{number}\"").as_bytes())),
                    "{number} comes once and in order"
                );
                last = Instant::now();
            }
            assert_eq!(stream.next(), Ok(None));
            last
        };
        let builder = || std::thread::Builder::new().stack_size(256 << 10);
        let readers: Vec<_> = (0..followers).map(|_| builder().spawn_scoped(scope, follow).expect("a thread")).collect();
        while waiting.load(Ordering::Relaxed) < followers {
            std::thread::sleep(Duration::from_millis(5));
        }
        let with_all = process::memory(server.pid(), "VmRSS");
        for begin in (0..events).step_by(10) {
            upload(url, key, PUBLISH, &[message(&leased.token, begin..(begin + 10).min(events))]).expect("kept");
            slow.sip(16);
            most = most.max(process::memory(server.pid(), "VmRSS"));
        }
        let published = Instant::now();
        complete(&server, &leased);
        let each_kb = with_all.saturating_sub(before) / 1024 / followers as u64;
        assert!(each_kb < 256, "a follower costs {each_kb} KiB");
        let delay =
            |reader: std::thread::ScopedJoinHandle<'_, Instant>| reader.join().expect("no panic").saturating_duration_since(published);
        readers.into_iter().map(delay).collect::<Vec<_>>()
    });
    delays.sort_unstable();
    let grown = most.saturating_sub(before) >> 20;
    let last = delays.last().copied().unwrap_or_default().as_secs_f64() * 1e3;
    let what =
        format!("{followers} followers and one at 1 KB/s, {events} events, {grown} MiB more RSS, the last has all {last:.0} ms after");
    promise(15, "many followers of job events cost little", what, "ok");
    assert!(grown < 16 + followers as u64 / 8, "RSS grew by {grown} MiB");
}
