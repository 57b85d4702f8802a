//! What survives a crash: acknowledged executions, the truth of every status, and no process.

mod harness;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use self::harness::http::Http;
use self::harness::{Server, Setup, aws, count, eventually, process, promise};

/// Numbers that differ from run to run but not within one: good enough to spread crashes over time.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
        Self(u64::try_from(nanos & u128::from(u64::MAX)).expect("masked") | 1)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A journal that is on disk before the next submit: what the client was told, in its own hand.
#[derive(Clone)]
struct Journal(Arc<Mutex<(std::fs::File, Vec<String>)>>);

impl Journal {
    fn new(path: &std::path::Path) -> Self {
        let file = std::fs::File::create(path).expect("a journal");
        Self(Arc::new(Mutex::new((file, Vec::new()))))
    }

    fn acknowledged(&self, id: &str) {
        let mut journal = self.0.lock().expect("no writer panicked");
        writeln!(journal.0, "{id}").expect("written");
        journal.0.sync_data().expect("synced");
        journal.1.push(id.to_owned());
    }

    fn ids(&self) -> Vec<String> {
        self.0.lock().expect("no writer panicked").1.clone()
    }
}

fn submit_until_it_dies(url: &str, key: &str, journal: &Journal, stop: &AtomicBool) {
    let mut http = Http::new(url, Some(key));
    while !stop.load(Ordering::Relaxed) {
        match http.try_post("/api/v1/run", &json!({"command": "echo out"}), &[]) {
            Ok(answer) if answer.status == 202 => journal.acknowledged(answer.json()["execution_id"].as_str().expect("an id")),
            Ok(answer) => assert!(matches!(answer.status, 429 | 503), "{}: {}", answer.status, answer.text()),
            Err(_) => return,
        }
    }
}

#[test]
fn promise_01_acknowledged_executions_survive_kill_9() {
    let cycles = count(8, 1_000);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let journal = Journal::new(&dir.path().join("journal"));
    let mut dice = Dice::new();
    for _ in 0..cycles {
        let mut server = Setup::default().start_in(&data);
        let (url, key, stop) = (server.url.clone(), server.key(), Arc::new(AtomicBool::new(false)));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| submit_until_it_dies(&url, &key, &journal, &stop));
            }
            std::thread::sleep(Duration::from_millis(5 + dice.below(296)));
            server.kill_9();
            stop.store(true, Ordering::Relaxed);
        });
    }
    let server = Setup::default().start_in(&data);
    let ids = journal.ids();
    assert!(!ids.is_empty(), "nothing was submitted");
    let mut http = server.http();
    for id in &ids {
        let answer = http.get(&format!("/api/v1/executions/{id}/status"));
        assert_eq!(answer.status, 200, "an acknowledged execution is gone: {id}");
    }
    for id in &ids {
        let status = server.wait(id);
        let (word, reason) = (&status["status"], &status["end_reason"]["code"]);
        let truthful = *word == "SUCCEEDED" || (*word == "FAILED" && *reason == "worker_lost");
        assert!(truthful, "{status}");
        if *word == "SUCCEEDED" {
            assert_eq!(server.raw(id), b"out\n", "{id}");
        }
    }
    promise(1, "acknowledged executions survive kill -9 of the server", format!("{cycles} kills, {} executions", ids.len()), "0 lost");
}

#[test]
fn promise_26_no_descendant_outlives_the_server() {
    let rounds = count(3, 50);
    for _ in 0..rounds {
        let mut server = Server::start();
        let hostile =
            "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; sleep 1000' & (setsid nohup sleep 1000 >/dev/null 2>&1 &) ; sleep 1000";
        let id = server.run(hostile);
        let mark = format!("RUNVOY_EXECUTION_ID={id}");
        eventually("the command and its descendants run", || process::with_env(&mark).len() >= 4);
        server.kill_9();
        eventually("every descendant is gone", || process::with_env(&mark).is_empty());
        let server = Setup::default().start_in(&server.data);
        let status = server.wait(&id);
        assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
        assert_eq!(status["exit_code"], 125);
    }
    promise(26, "no descendant outlives the server", format!("{rounds} kills"), "0 left");
}

#[test]
fn promise_10_a_frozen_server_runs_nothing_twice() {
    if aws::is_asked_for() {
        return println!(
            "skipped: what may be tried again ends there before its lease lapses, and one server alone has nobody to run it twice"
        );
    }
    let (rounds, frozen) = (count(1, 20), Duration::from_secs(count(8, 60) as u64));
    let server = Server::start();
    let marks = tempfile::tempdir().expect("a temporary directory");
    for round in 0..rounds {
        let mark = marks.path().join(format!("ran-{round}"));
        let command = format!("echo x >> {}; sleep {}", mark.display(), frozen.as_secs() + 3);
        let id = server.run_with(json!({"command": command, "retries": 3}));
        eventually("it runs", || mark.exists());
        process::signal(server.pid(), libc::SIGSTOP);
        std::thread::sleep(frozen);
        process::signal(server.pid(), libc::SIGCONT);
        let status = server.wait(&id);
        assert_eq!(status["status"], "SUCCEEDED", "{status}");
        assert_eq!(std::fs::read_to_string(&mark).expect("the mark"), "x\n", "it ran more than once");
    }
    promise(10, "a frozen server runs nothing twice", format!("{rounds} × {} s", frozen.as_secs()), "0 double runs");
}

#[test]
fn promise_11_one_key_is_one_execution_also_after_a_restart() {
    let parallel = count(100, 1_000);
    let mut server = Server::start();
    let request = json!({"command": "echo once"});
    let submit = |url: &str, key: &str| {
        let headers = [("idempotency-key", "deploy-42")];
        let answer = Http::new(url, Some(key)).try_post("/api/v1/run", &request, &headers).expect("an answer");
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["execution_id"].as_str().expect("an id").to_owned()
    };
    let (url, key) = (server.url.clone(), server.key());
    let ids = Mutex::new(std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                for _ in 0..(parallel / 20).max(1) {
                    ids.lock().expect("no panic").insert(submit(&url, &key));
                }
            });
        }
    });
    server.kill_9();
    let server = Setup::default().start_in(&server.data);
    ids.lock().expect("no panic").insert(submit(&server.url, &key));
    let ids = ids.into_inner().expect("no panic");
    assert_eq!(ids.len(), 1, "{ids:?}");
    let other = server.http().try_post("/api/v1/run", &json!({"command": "echo other"}), &[("idempotency-key", "deploy-42")]);
    assert_eq!(other.expect("an answer").status, 409, "the same key for another request");
    promise(11, "one key is one execution, also after a restart", format!("{parallel} submits"), "1 execution");
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let server = Server::start();
    let said = Setup::default().try_start_in(&server.data).err().expect("refused");
    assert!(said.contains("another server") && said.contains(&server.pid().to_string()), "{said}");
}

#[test]
fn a_store_without_its_keys_is_refused() {
    if aws::is_asked_for() {
        return println!("skipped: its keys are no files there; tests of the adapter ask this");
    }
    let mut server = Server::start();
    server.stop();
    std::fs::remove_file(server.data.join("keys/audit.key")).expect("the key was there");
    let said = Setup::default().try_start_in(&server.data).err().expect("refused");
    assert!(said.contains("audit.key"), "{said}");
}

#[test]
fn what_waits_is_run_by_the_next_start() {
    let mut server = Setup::default().arg("--concurrency").arg("1").start();
    let first = server.run("sleep 1000");
    let second = server.run("echo later");
    server.wait_until(&first, "RUNNING");
    assert_eq!(server.status(&second)["waiting_for"]["code"], "worker");
    server.kill_9();
    let server = Setup::default().start_in(&server.data);
    assert_eq!(server.wait(&second)["status"], "SUCCEEDED");
    assert_eq!(server.wait(&first)["end_reason"]["code"], "worker_lost");
}
