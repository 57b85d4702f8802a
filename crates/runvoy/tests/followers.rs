//! Very many clients at once: most of them follow what is silent, some of them what is not.

mod harness;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use self::harness::http::Http;
use self::harness::socket::Socket;
use self::harness::{Server, count, process, promise};

/// Fewer than one user may have.
const STREAMS_EACH: usize = 3_000;
const LINES: usize = 50;

/// The key of another operator.
fn operator(server: &Server, number: usize) -> String {
    let invited = server
        .http()
        .post("/api/v1/users/create", &json!({"email": format!("o{number}@example.com"), "role": "operator", "confirm": true}));
    let token = invited.json()["claim_token"].as_str().unwrap_or_else(|| panic!("no token: {}", invited.text())).to_owned();
    let claimed = Http::new(&server.url, None).post(&format!("/api/v1/claim/{token}"), &json!({}));
    claimed.json()["api_key"].as_str().expect("a key").to_owned()
}

fn follow(server: &Server, key: &str, id: &str) -> Socket {
    let path = format!("/api/v1/executions/{id}/stream?last_event_id=0");
    Socket::open(&server.url, Some(key), &path).expect("a stream")
}

/// The moment that a line says it was written at, in seconds since 1970.
fn moment(text: &str) -> Option<f64> {
    text.strip_prefix("at ")?.parse().ok()
}

fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_secs_f64()
}

#[test]
fn promise_16_ten_thousand_streams_cost_little_each() {
    let (streams, active) = (count(600, 10_000), count(20, 100));
    let server = harness::Setup::default().arg("--allow-shared-uid").start();
    let keys: Vec<String> = (0..streams.div_ceil(STREAMS_EACH)).map(|number| operator(&server, number)).collect();
    let silent = server.run("sleep 600");
    server.wait_until(&silent, "RUNNING");
    let before = process::memory(server.pid(), "VmRSS");
    let began = Instant::now();
    let idle: Vec<Socket> = (0..streams - active).map(|number| follow(&server, &keys[number / STREAMS_EACH], &silent)).collect();
    let opened = began.elapsed();
    let with_all = process::memory(server.pid(), "VmRSS");
    let each = with_all.saturating_sub(before) / idle.len() as u64;
    let (cpu, watched) = (process::cpu_seconds(server.pid()), Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let idle_cpu = (process::cpu_seconds(server.pid()) - cpu) / watched.elapsed().as_secs_f64();

    let busy = server.run(&format!("sleep 2; i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); date '+at %s.%N'; sleep 0.05; done"));
    let delays = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..active {
            scope.spawn(|| {
                let mut socket = follow(&server, &keys[0], &busy);
                let mut seen = Vec::new();
                while let Some(line) = socket.next_line() {
                    seen.extend(line["message"].as_str().and_then(moment).map(|at| now() - at));
                }
                assert_eq!(seen.len(), LINES, "every line, once");
                delays.lock().expect("no panic").extend(seen);
            });
        }
    });
    let mut delays = delays.into_inner().expect("no panic");
    delays.sort_by(f64::total_cmp);
    let p99 = delays[delays.len() * 99 / 100] * 1e3;
    // Nobody was lost meanwhile.
    assert_eq!(server.status(&silent)["status"], "RUNNING");
    server.http().post(&format!("/api/v1/executions/{silent}/kill"), &json!({}));
    server.wait(&silent);
    for mut socket in idle {
        let mut last = None;
        while let Some(line) = socket.next_line() {
            last = Some(line);
        }
        assert!(last.is_some_and(|line| line["stream"] == "platform"), "each sees the end");
    }
    let what = format!(
        "{streams} streams opened in {:.1} s, {} KB each, {:.2} cores while silent; {} lines to {active} of them, p99 {p99:.0} ms",
        opened.as_secs_f64(),
        each.div_ceil(1000),
        idle_cpu,
        LINES,
    );
    promise(16, "very many streams cost little each", what, "ok");
    // A fresh server grows by some megabytes of its own at first, whoever comes.
    assert!(each <= 20_000 || streams < 5_000, "{each} bytes each");
}
