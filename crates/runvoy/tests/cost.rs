//! Costs of the real program: whatever kills it while it counts, every execution is counted once.

mod harness;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use self::harness::http::Http;
use self::harness::{Server, Setup, aws, count};

fn with_rates() -> Setup {
    Setup::default().env("RUNVOY_COST_VCPU_HOUR_USD", "360000")
}

/// Millionths of a dollar, in which sums are exact.
#[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
fn micro(cost: &Value) -> i64 {
    (cost["cost_usd"].as_f64().expect("an amount") * 1e6).round() as i64
}

/// Every request has what ended since the last one counted.
fn count_until_it_dies(server: &Server, stop: &AtomicBool) {
    let mut http = Http::new(&server.url, Some(&server.key()));
    while !stop.load(Ordering::Relaxed) && http.send("GET", "/api/v1/cost", &[], &[]).is_ok() {}
}

fn submit_until_it_dies(server: &Server, stop: &AtomicBool) {
    let mut http = Http::new(&server.url, Some(&server.key()));
    while !stop.load(Ordering::Relaxed) && http.try_post("/api/v1/run", &json!({"command": "true"}), &[]).is_ok() {}
}

#[test]
fn kill_9_while_costs_are_counted_counts_nothing_twice() {
    if aws::is_asked_for() {
        return println!("skipped: it lists every execution, of which others are on the same store");
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let rounds = count(8, 200);
    for round in 0..rounds {
        let mut server = with_rates().start_in(&data);
        let stop = AtomicBool::new(false);
        let pid = server.pid();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| submit_until_it_dies(&server, &stop));
                scope.spawn(|| count_until_it_dies(&server, &stop));
            }
            std::thread::sleep(Duration::from_millis(300 + (round as u64 * 97) % 500));
            harness::process::signal(pid, libc::SIGKILL);
            stop.store(true, Ordering::Relaxed);
        });
        server.kill_9();
    }
    let server = with_rates().start_in(&data);
    let mut http = server.http();
    let ended = |http: &mut Http| {
        let all = http.get("/api/v1/executions?limit=0").json();
        let all = all.as_array().expect("a list").clone();
        all.iter().all(|execution| execution["completed_at"].is_string()).then_some(all)
    };
    harness::eventually("everything has ended", || ended(&mut http).is_some());
    let executions = ended(&mut http).expect("they stay ended");
    let report = http.get("/api/v1/cost?by=user").json();
    assert_eq!(report["complete"], true);
    assert_eq!(report["executions"].as_u64(), Some(executions.len() as u64));
    assert_eq!(micro(&report), executions.iter().map(micro).sum::<i64>());
    assert!(micro(&report) > 0 && executions.len() > rounds, "{report}");
    println!("{rounds} kills, {} executions, ${}", executions.len(), report["cost_usd"]);
}

#[test]
fn the_command_shows_what_executions_cost() {
    let server = with_rates().start();
    let before = server.cli(&["cost"]);
    assert!(String::from_utf8_lossy(&before.stderr).contains("No executions have ended since"), "{before:?}");
    server.wait(&server.run("sleep 0.1"));
    let table = String::from_utf8(server.cli(&["cost", "--by", "queue", "--since", "7d"]).stdout).expect("text");
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["QUEUE", "EXECUTIONS", "COST"], "{table}");
    assert_eq!((words[1][0], words[1][1]), ("default", "1"), "{table}");
    let report: Value = serde_json::from_slice(&server.cli(&["cost", "--json"]).stdout).expect("JSON");
    assert!(micro(&report) >= 10_000_000, "a tenth of a second of a vCPU costs ten dollars: {report}");
    assert_eq!(report["items"][0]["executions"], 1);
}
