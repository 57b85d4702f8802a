//! Many at once: rates that are printed, limits that hold.

mod harness;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use self::harness::http::Http;
use self::harness::{Server, Setup, aws, count, eventually, process, promise};

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
    let total = if aws::is_asked_for() { 400 } else { count(4_000, 200_000) };
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
    let run = |count: usize| {
        let ids: Vec<String> = (0..count).map(|_| server.run("true")).collect();
        for id in &ids {
            assert_eq!(server.wait(id)["status"], "SUCCEEDED");
        }
    };
    // Connections to AWS are kept for a while: as many as it takes are there before anything is counted.
    run(if aws::is_asked_for() { 50 } else { 1 });
    let files = process::open_files(server.pid());
    run(total);
    let zombies = process::children(server.pid()).iter().filter(|(_, state)| *state == 'Z').count();
    assert_eq!(zombies, 0);
    let after = process::open_files(server.pid());
    let kept = if aws::is_asked_for() { 16 } else { 8 };
    assert!(after <= files + kept, "{files} descriptors became {after}");
}

#[test]
fn samples_of_metrics_are_added_up_although_nobody_scrapes() {
    let server = Server::start();
    eventually("the metrics were kept up", || server.get("/metrics").text().contains("\nrunvoy_metrics_upkeeps_total "));
}

#[test]
fn promise_21_a_start_does_not_grow_with_history() {
    if aws::is_asked_for() {
        return println!("skipped: the history is written into files; what a start asks of AWS does not depend on it");
    }
    let stored = count(2_000, 1_000_000);
    let mut server = Server::start();
    server.stop();
    store_history(&server.data, stored);
    let began = Instant::now();
    let server = Setup::default().start_in(&server.data);
    let ready = began.elapsed();
    let began = Instant::now();
    let page = server.get("/api/v1/executions?limit=10").json();
    let list = began.elapsed();
    assert_eq!(page.as_array().expect("a list").len(), 10);
    assert_eq!(server.wait(&server.run("true"))["status"], "SUCCEEDED");
    let what = format!("{stored} executions, ready in {} ms, first list in {} ms", ready.as_millis(), list.as_millis());
    promise(21, "a start does not grow with history", what, "measured");
}

/// Writes executions that have ended, as fast as the store takes them.
fn store_history(data: &std::path::Path, executions: usize) {
    use runvoy_model::chain::AuditKey;
    use runvoy_sqlite::{Options, SqliteStore};
    let key = std::fs::read(data.join("keys/audit.key")).expect("the key").try_into().expect("32 bytes");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = std::sync::Arc::new(SqliteStore::open(data.join("runvoy.db"), Options::new(AuditKey::new(key))).expect("the store"));
        let lanes: Vec<_> = (0..64u8)
            .map(|lane| {
                let store = std::sync::Arc::clone(&store);
                tokio::spawn(async move {
                    for n in (usize::from(lane)..executions).step_by(64) {
                        history::one(&*store, n as u64).await;
                    }
                })
            })
            .collect();
        for lane in lanes {
            lane.await.expect("no panic");
        }
        store.close().await.expect("closed");
    });
}

mod history {
    //! One execution from its submit to its end, written straight into a store.

    use runvoy_model::command::{EndAttempt, Fence, LeaseTo, Outcome, Submit, Worker};
    use runvoy_model::id::{ExecutionId, LeaseId, StepId, WorkerId};
    use runvoy_model::name::Name;
    use runvoy_model::spec::{Needs, Spec};
    use runvoy_model::step::Step;
    use runvoy_model::time::UnixMs;
    use runvoy_ports::store::ExecutionStore;

    pub async fn one(store: &dyn ExecutionStore, n: u64) {
        // The time half of the id grows with the number, the other half tells the four ids of one execution apart.
        let id = |kind: u8| {
            let mut bytes = [kind; 16];
            bytes[..8].copy_from_slice(&((1_700_000_000_000 << 16) + n).to_be_bytes());
            bytes
        };
        let at = UnixMs(1_700_000_000_000 + i64::try_from(n).expect("small"));
        let (host, runner, serves) = ("earlier".into(), "process".into(), vec![Needs::Process]);
        let worker = Worker { id: WorkerId::from_bytes([9; 16]), host, runner, in_process: true, serves, labels: Default::default() };
        let spec = Spec {
            command: "true".into(),
            args: None,
            image: "local".into(),
            env: std::collections::BTreeMap::new(),
            timeout_ms: None,
            lock: None,
            lock_wait_ms: None,
            queue: Name::new("default").expect("a name"),
            priority: 3,
            labels: std::collections::BTreeMap::new(),
            worker_labels: Default::default(),
            terminal: false,
            retries: 0,
            redeliveries: 0,
            secrets: Vec::new(),
            git: None,
            task: None,
            playbook: None,
            rpc: None,
            container: None,
        };
        let (execution, lease) = (ExecutionId::from_bytes(id(1)), LeaseId::from_bytes(id(2)));
        let lease_to = Some(LeaseTo { lease, worker, ttl_ms: 30_000 });
        let submit = Submit { id: execution, spec, created_by: "ada@example.com".into(), key: None, lease_to };
        store.submit(Step::system(StepId::from_bytes(id(3)), at, "test"), submit).await.expect("submitted");
        let ended = EndAttempt {
            fence: Fence { execution, attempt: 1, lease },
            outcome: Outcome::Exited { code: 0, after_kill: false },
            log_end: 0,
            duration_ms: 1,
            process_id: None,
            cost_micro_usd: 0,
            output: None,
            said: None,
            usage: None,
            remark: None,
        };
        store.end_attempt(Step::system(StepId::from_bytes(id(4)), at, "test"), ended).await.expect("ended");
    }
}
