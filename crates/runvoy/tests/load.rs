//! Many at once: rates that are printed, limits that hold.

mod harness;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use self::harness::http::Http;
use self::harness::{Server, Setup, count, process, promise};

/// Submits from `clients` connections until `total` were answered; each answer's status and time.
fn submit_many(server: &Server, clients: usize, total: usize, request: &serde_json::Value) -> Vec<(u16, Duration)> {
    let answers = Mutex::new(Vec::with_capacity(total));
    let (url, key) = (server.url.clone(), server.key());
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut http = Http::new(&url, Some(&key));
                let mut own = Vec::new();
                for _ in 0..total / clients {
                    let began = Instant::now();
                    let answer = http.try_post("/api/v1/run", request, &[]).expect("an answer");
                    own.push((answer.status, began.elapsed()));
                }
                answers.lock().expect("no panic").extend(own);
            });
        }
    });
    answers.into_inner().expect("no panic")
}

fn percentile(answers: &[(u16, Duration)], percent: usize) -> Duration {
    let mut times: Vec<Duration> = answers.iter().map(|(_, time)| *time).collect();
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

#[test]
fn promise_20_submits_are_durable_and_many() {
    let total = count(2_000, 50_000);
    // Nobody runs them, so that the rate is that of the queue alone.
    let server = Setup::default().arg("--no-worker").start();
    let began = Instant::now();
    let answers = submit_many(&server, 32, total, &json!({"command": "true"}));
    let rate = answers.len() as f64 / began.elapsed().as_secs_f64();
    assert!(answers.iter().all(|(status, _)| *status == 202));
    let what = format!("{} submits, {rate:.0}/s, p99 {:.1} ms", answers.len(), percentile(&answers, 99).as_secs_f64() * 1e3);
    promise(20, "durable submits", what, "measured");
}

#[test]
fn promise_19_overload_is_refused_clearly_and_memory_stays_bounded() {
    let total = count(4_000, 200_000);
    let server = Setup::default().arg("--concurrency").arg("2").start();
    let before = process::memory(server.pid(), "VmRSS");
    let answers = submit_many(&server, 64, total, &json!({"command": "true"}));
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|(status, _)| *status == 202);
    assert!(refused.iter().all(|(status, _)| *status == 429), "only 202 and 429 are answers to overload");
    let grown = process::memory(server.pid(), "VmRSS").saturating_sub(before) >> 20;
    assert!(grown < 128, "RSS grew by {grown} MiB");
    let what = format!("{} taken, {} refused, {grown} MiB more RSS", taken.len(), refused.len());
    promise(19, "overload is refused clearly", what, "ok");
}

#[test]
fn ten_thousand_executions_leave_no_zombie_no_descriptor_and_no_cgroup() {
    let total = count(500, 10_000);
    let server = Server::start();
    server.wait(&server.run("true"));
    let files = process::open_files(server.pid());
    let ids: Vec<String> = (0..total).map(|_| server.run("true")).collect();
    for id in &ids {
        assert_eq!(server.wait(id)["status"], "SUCCEEDED");
    }
    let zombies = process::children(server.pid()).iter().filter(|(_, state)| *state == 'Z').count();
    assert_eq!(zombies, 0);
    let after = process::open_files(server.pid());
    assert!(after <= files + 8, "{files} descriptors became {after}");
}
