//! The embedded store keeps every promise, plain and through faults, and agrees with the reference over random histories.

use std::path::Path;
use std::sync::Arc;

use runvoy_conformance::fault::ThroughFaults;
use runvoy_conformance::harness::{AUDIT_KEY, Opener, TransactionalStore};
use runvoy_ports::log::LogStore;
use runvoy_ports::store::ExecutionStore;
use runvoy_sqlite::logs::{Config, FileLogStore};
use runvoy_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// In memory where the system has a place for that: these promises are about what is kept, and other tests ask how well.
fn directory() -> TempDir {
    let shared_memory = Path::new("/dev/shm");
    if shared_memory.is_dir() { TempDir::new_in(shared_memory) } else { TempDir::new() }.expect("a directory")
}

fn open(dir: &TempDir) -> SqliteStore {
    let options = Options { reserve_bytes: 0, ..Options::new(AUDIT_KEY) };
    SqliteStore::open(dir.path().join("store.db"), options).expect("a store that can be opened")
}

async fn executions() -> Opener<dyn ExecutionStore> {
    let dir = directory();
    Opener::new(move || {
        let opened: Arc<dyn ExecutionStore> = Arc::new(open(&dir));
        async { opened }
    })
    .await
}

async fn records() -> Opener<dyn TransactionalStore> {
    let dir = directory();
    Opener::new(move || {
        let opened: Arc<dyn TransactionalStore> = Arc::new(open(&dir));
        async { opened }
    })
    .await
}

/// Logs that outgrow every size soon, so that a short test walks through journal, segments and packs.
async fn logs(config: Config) -> Opener<dyn LogStore> {
    let dir = directory();
    Opener::new(move || {
        let config = Config { reserve_bytes: 0, ..config.clone() };
        let store = FileLogStore::open(&dir.path().join("logs"), config).expect("logs that can be opened");
        let opened: Arc<dyn LogStore> = Arc::new(store);
        async { opened }
    })
    .await
}

fn tiny_files() -> Config {
    Config {
        journal_bytes: 4 << 10,
        spill_bytes: 1 << 10,
        segment_bytes: 2 << 10,
        tail_bytes: 512,
        tails_bytes: 1 << 10,
        open_logs: 1,
        remembered_logs: 1,
        ..Config::default()
    }
}

mod plain {
    use super::Config;

    runvoy_conformance::execution_store_conformance!(super::executions().await);
    runvoy_conformance::record_store_conformance!(super::records().await);
    runvoy_conformance::roster_conformance!(super::records().await);
    runvoy_conformance::cost_store_conformance!(super::records().await);
    runvoy_conformance::job_store_conformance!(super::records().await);
    runvoy_conformance::log_store_conformance!(super::logs(Config::default()).await);
}

mod through_faults {
    use super::{ThroughFaults, tiny_files};

    runvoy_conformance::execution_store_conformance!(ThroughFaults::new(super::executions().await, 0xfa17));
    runvoy_conformance::record_store_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::roster_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::cost_store_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::job_store_conformance!(ThroughFaults::new(super::records().await, 0xfa17));
    runvoy_conformance::log_store_conformance!(ThroughFaults::new(super::logs(tiny_files()).await, 0xfa17));
}

mod tiny_log_files {
    runvoy_conformance::log_store_conformance!(super::logs(super::tiny_files()).await);
}

/// Promises of the whole system that the store answers for, counted. `RUNVOY_PROVE` asks for the full counts.
mod proofs {
    use runvoy_conformance::dag::ends_as_it_must;
    use runvoy_conformance::execution::gate::nobody_starves_behind;
    use runvoy_conformance::execution::submit;
    use runvoy_conformance::history::agree_with_reference;
    use runvoy_conformance::race;
    use runvoy_memory::MemoryStore;

    use super::{AUDIT_KEY, ThroughFaults, executions, records};

    fn count(little: usize, full: usize) -> usize {
        if std::env::var_os("RUNVOY_PROVE").is_some() { full } else { little }
    }

    async fn agree(seeds: std::ops::Range<u64>, steps: usize) {
        for seed in seeds {
            agree_with_reference(seed, steps, &MemoryStore::new(AUDIT_KEY), &records().await).await;
        }
    }

    #[tokio::test]
    async fn promise_03_no_double_finish_in_any_interleaving() {
        let interleavings = count(1_000, 100_000);
        race::no_double_finish(3, interleavings, &executions().await).await;
        println!("PROMISE 03 | no double finish | {interleavings} interleavings | ok");
    }

    #[tokio::test]
    async fn two_thousand_that_cannot_be_taken_starve_nobody() {
        nobody_starves_behind(2_000, &executions().await).await;
    }

    #[tokio::test]
    async fn promise_03_random_histories_agree_with_the_reference() {
        let histories = count(100, 5_000);
        agree(0..histories as u64, 60).await;
        println!("PROMISE 03 | random histories agree with the reference | {histories} histories of 60 steps | ok");
    }

    #[tokio::test]
    async fn promise_13_every_dag_ends_as_it_must_through_crashes() {
        let dags = count(12, 10_000);
        let (mut crashes, mut compared) = (0, 0);
        for seed in 0..dags as u64 {
            // Some of them lose answers, too, and make their steps again.
            let played = match seed % 4 {
                3 => ends_as_it_must(seed, 200, &ThroughFaults::new(records().await, seed)).await,
                _ => ends_as_it_must(seed, 200, &records().await).await,
            };
            (crashes, compared) = (crashes + played.crashes, compared + played.compared);
        }
        assert!(crashes > dags, "{crashes} crashes");
        println!(
            "PROMISE 13 | every random DAG ends as it must though the store is dropped and opened at any step | {dags} DAGs of up to 200 tasks, {crashes} crashes | ok, {compared} states follow from the events"
        );
    }

    #[tokio::test]
    async fn promise_04_a_lock_is_never_held_by_two_holders() {
        let operations = count(2_000, 100_000);
        race::a_lock_is_never_held_by_two(4, operations, &executions().await).await;
        println!("PROMISE 04 | a lock is never held by two | {operations} operations | ok");
    }

    #[tokio::test]
    async fn promise_11_a_thousand_submits_with_one_key_make_one_execution() {
        submit::a_thousand_parallel_submits_with_one_key_make_one_execution(&executions().await).await;
        println!("PROMISE 11 | idempotent submit, also after a restart | 1000 parallel submits | ok");
    }
}
