//! Logs through the real binary: large, hostile, followed, resumed, slow.

mod harness;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::harness::socket::{Frame, Socket};
use self::harness::{Server, Setup, count, process, promise};

fn stream_path(id: &str, after: u64) -> String {
    format!("/api/v1/executions/{id}/stream?last_event_id={after}")
}

#[test]
fn promise_17_a_huge_log_stays_cheap() {
    let lines = count(500_000, 10_000_000);
    let server = Server::start();
    let began = Instant::now();
    // 100 bytes a line: ten million of them are a gigabyte.
    let id = server.run(&format!("yes \"$(printf '%099d' 7)\" | head -n {lines}; echo needle at the end"));
    let mut largest = 0;
    while server.status(&id)["exit_code"].is_null() {
        largest = largest.max(process::memory(server.pid(), "VmRSS"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ingest = began.elapsed();
    assert_eq!(server.wait(&id)["status"], "SUCCEEDED");
    let tail = server.get(&format!("/api/v1/executions/{id}/logs?tail=2")).json();
    let texts: Vec<&str> = tail["events"].as_array().expect("events").iter().map(|e| e["message"].as_str().expect("text")).collect();
    assert!(texts[0].contains("needle at the end"), "{texts:?}");
    let began = Instant::now();
    let found = server.get(&format!("/api/v1/executions/{id}/logs/search?q=needle")).json();
    let search = began.elapsed();
    assert_eq!((&found["total"], found["hits"][0]["line"].as_u64()), (&json!(1), Some(lines as u64 + 2)), "{found}");
    let middle = lines as u64 / 2;
    let page = server.get(&format!("/api/v1/executions/{id}/logs?from_line={middle}&limit=3")).json();
    assert_eq!(page["events"].as_array().expect("events").len(), 3);
    assert_eq!(page["events"][0]["line"], middle);
    largest = largest.max(process::memory(server.pid(), "VmHWM"));
    assert!(largest < 200 << 20, "the server grew to {} MiB", largest >> 20);
    let mb = lines as f64 * 100.0 / 1e6;
    let what = format!(
        "{lines} lines, {:.0} MB/s, peak RSS {} MiB, search {:.2} s",
        mb / ingest.as_secs_f64(),
        largest >> 20,
        search.as_secs_f64()
    );
    promise(17, "a huge log stays cheap", what, "ok");
}

#[test]
fn promise_18_hostile_output_comes_back_exactly() {
    let server = Server::start();
    let megabytes = count(10, 100);
    let cases: [(&str, String, Vec<u8>); 4] = [
        ("one long line", format!("head -c {megabytes}000000 /dev/zero | tr '\\0' x"), vec![b'x'; megabytes * 1_000_000]),
        ("NUL and invalid UTF-8", r"printf 'a\000b\377\376\nc\200'".into(), b"a\0b\xff\xfe\nc\x80".to_vec()),
        ("carriage returns", r"yes '' | head -n 1000000 | tr '\n' '\r'".into(), vec![b'\r'; 1_000_000]),
        ("no newline at the end", "printf 'first\nsecond'".into(), b"first\nsecond".to_vec()),
    ];
    for (name, command, expected) in &cases {
        let id = server.run(command);
        assert_eq!(server.wait(&id)["status"], "SUCCEEDED", "{name}");
        let raw = server.raw(&id);
        assert_eq!(raw.len(), expected.len(), "{name}");
        assert!(raw == *expected, "{name}: other bytes came back");
    }
    promise(18, "hostile output comes back exactly", format!("{megabytes} MB line, NUL, invalid UTF-8, 10⁶ CR"), "ok");
}

/// What each line says behind its number.
const TEXT: &str = "0123456789012345678901234567890123456789012345678901234567";

/// What a load did to the server and to the follower that keeps up.
struct Load {
    peak: u64,
    took: Duration,
}

/// A command writes this many lines while one follower keeps up and so many read 1 KB a second. All see the same bytes; the slow ones, who read on when the
/// command has ended, have missed nothing.
fn load(server: &Server, lines: u64, slow: usize) -> Load {
    let go = server.data.join(format!("go-{slow}"));
    let id = server.run(&format!("while [ ! -e {} ]; do sleep 0.02; done; yes {TEXT} | head -n {lines} | cat -n", go.display()));
    let open = || Follower::open(server, &id);
    let (fast, slow): (Follower, Vec<Follower>) = (open(), (0..slow).map(|_| open()).collect());
    std::thread::scope(|scope| {
        let mut until_dropped = Vec::new();
        for mut follower in slow {
            let (stop, stopped) = channel::<()>();
            until_dropped.push(stop);
            scope.spawn(move || {
                while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                    follower.read(1_000);
                }
                follower.read(usize::MAX);
                assert_eq!(follower.seen, lines, "a slow one missed something");
            });
        }
        process::reset_peak(server.pid());
        std::fs::write(&go, "").expect("written");
        let (mut fast, began) = (fast, Instant::now());
        fast.read(usize::MAX);
        assert_eq!(fast.seen, lines, "the fast one missed something");
        Load { peak: process::memory(server.pid(), "VmHWM"), took: began.elapsed() }
    })
}

/// Whoever follows numbered lines, and knows what they must be.
struct Follower {
    socket: Socket,
    /// Lines of every kind.
    line: u64,
    /// Lines of the command.
    seen: u64,
}

impl Follower {
    fn open(server: &Server, id: &str) -> Self {
        let socket = Socket::open(&server.url, Some(&server.key()), &stream_path(id, 0)).expect("a stream");
        Self { socket, line: 0, seen: 0 }
    }

    /// Reads lines until they were so many bytes, or until the end.
    fn read(&mut self, bytes: usize) {
        let mut read = 0;
        while read < bytes {
            let Some(line) = self.socket.next_line() else { return };
            self.line += 1;
            assert_eq!(line["line"], self.line, "a gap or a repeat");
            let text = line["message"].as_str().expect("text");
            if line["stream"] == "stdout" {
                self.seen += 1;
                assert_eq!(text, format!("{:6}\t{TEXT}", self.seen), "other bytes came");
            }
            read += text.len();
        }
    }
}

#[test]
fn promise_15_a_slow_follower_costs_little_and_delays_nobody() {
    let (megabytes, slow) = (count(40, 400), count(4, 16));
    let server = Server::start();
    let lines = megabytes as u64 * 1_000_000 / (TEXT.len() as u64 + 8);
    let alone = load(&server, lines, 0);
    let beside = load(&server, lines, slow);
    let grown = beside.peak.saturating_sub(alone.peak);
    let share = grown / slow as u64;
    let what = format!(
        "{megabytes} MB written: peak RSS {} MB with one fast follower, {} MB with {slow} at 1 KB/s beside it; it had everything after {:.1} s and {:.1} s",
        alone.peak / 1_000_000,
        beside.peak / 1_000_000,
        alone.took.as_secs_f64(),
        beside.took.as_secs_f64(),
    );
    promise(15, "a slow follower costs little", what, format!("{:.1} MB each", share as f64 / 1e6));
    // The peak of the same load differs by some megabytes from one time to the next, most of all on AWS.
    let noise = 16_000_000;
    assert!(grown < slow as u64 * 16_000_000 + noise, "a slow follower costs {share} bytes");
}

#[test]
fn a_follower_that_drops_and_resumes_sees_every_line_once() {
    let rounds = count(60, 1_000);
    let server = Server::start();
    let lines = 3_000u64;
    let id = server.run(&format!("i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo line $i; done"));
    let (mut after, mut texts, mut dropped) = (0u64, Vec::new(), 0);
    loop {
        let mut socket = Socket::open(&server.url, Some(&server.key()), &stream_path(&id, after)).expect("a stream");
        // Leaves after a number of lines that is different every time.
        let leave_after = if dropped < rounds { 1 + (dropped as u64 * 7919) % 97 } else { u64::MAX };
        let mut ended = false;
        for _ in 0..leave_after {
            let Some(line) = socket.next_line() else {
                ended = true;
                break;
            };
            assert_eq!(line["line"], after + 1, "a gap or a repeat");
            after += 1;
            if line["stream"] == "stdout" {
                texts.push(line["message"].as_str().expect("text").to_owned());
            }
        }
        if ended {
            break;
        }
        dropped += 1;
    }
    let expected: Vec<String> = (1..=lines).map(|n| format!("line {n}")).collect();
    assert!(texts == expected, "{} lines of {lines}", texts.len());
}

#[test]
fn a_stream_ends_with_its_marker_and_a_normal_close() {
    let server = Server::start();
    let id = server.run("echo one; echo two >&2");
    let mut socket = Socket::open(&server.url, Some(&server.key()), &stream_path(&id, 0)).expect("a stream");
    let mut frames = Vec::new();
    while let Some(frame) = socket.next() {
        frames.push(frame);
    }
    assert_eq!(frames.pop(), Some(Frame::Close(1000)));
    let Some(Frame::Text(marker)) = frames.pop() else { panic!("no marker") };
    assert_eq!(serde_json::from_slice::<Value>(&marker).expect("JSON"), json!({"type": "disconnect", "reason": "execution_completed"}));
    let lines: Vec<Value> = frames
        .iter()
        .map(|frame| match frame {
            Frame::Text(text) => serde_json::from_slice(text).expect("JSON"),
            other => panic!("{other:?}"),
        })
        .collect();
    let command: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| line["stream"] != "platform")
        .map(|line| (line["stream"].as_str().expect("text"), line["message"].as_str().expect("text")))
        .collect();
    assert!(command.contains(&("stdout", "one")) && command.contains(&("stderr", "two")), "{command:?}");
}

#[test]
fn raw_output_can_be_had_in_parts() {
    let server = Server::start();
    let id = server.run("seq 1 5000");
    server.wait(&id);
    let whole = server.raw(&id);
    let path = format!("/api/v1/executions/{id}/logs?format=raw");
    let mut http = server.http();
    for (from, to) in [(0, 0), (5, 17), (4000, 9999), (whole.len() - 3, whole.len() - 1)] {
        let range = format!("bytes={from}-{to}");
        let part = http.send("GET", &path, &[("range", &range)], b"").expect("an answer");
        assert_eq!(part.status, 206, "{}", part.text());
        assert_eq!(part.body, &whole[from..=to], "{range}");
        assert_eq!(part.header("content-range"), Some(format!("bytes {from}-{to}/{}", whole.len()).as_str()));
    }
    assert_eq!(http.send("GET", &path, &[("range", "bytes=999999999-")], b"").expect("an answer").status, 416);
}

#[test]
fn a_full_log_says_so_and_the_command_goes_on() {
    let server = Setup::default().env("RUNVOY_LOG_MAX_BYTES", "20000").start();
    let id = server.run("seq 1 20000; exit 7");
    let status = server.wait(&id);
    assert_eq!((&status["status"], &status["exit_code"]), (&json!("FAILED"), &json!(7)), "{status}");
    let text = server.get(&format!("/api/v1/executions/{id}/logs?format=text")).text();
    assert!(text.len() < 40_000, "{} bytes", text.len());
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(last[0].contains("exit code 7") && last[1].contains("the log is full"), "{last:?}");
}
