//! A migration that is cut off, by the power or by a kill: the store is of one version, whole, and goes on from there.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runvoy_model::change::Change;
use runvoy_model::name::Name;
use runvoy_model::queue::QueueUpdate;
use runvoy_model::record::Kind;
use runvoy_model::status::Status;
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::{ExecutionStore, ListQuery};
use runvoy_sqlite::KNOWN_VERSION;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::fixture::{count, cycle, open, options, step};
use crate::image::{self, Disk};
use crate::{invariant, recorder};

/// The tables of version 3.
const OF_JOBS: &str = "'jobs', 'nodes', 'tasks', 'edges'";
/// A store as an earlier version wrote it.
fn golden(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/store_v{version}.sqlite"))
}

/// The version that a store has, having looked that everything of that version is there and nothing of the other.
fn version_of(path: &Path) -> u32 {
    let conn = Connection::open(path).expect("a connection");
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("a setting");
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u32>(0)).expect(sql);
    let tables = |names: &str| number(&format!("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ({names})"));
    let version = number("PRAGMA user_version");
    match version {
        1 => {
            assert_eq!((tables("'users', 'keys'"), tables("'records', 'key_uses'")), (2, 0));
            assert_eq!((number("SELECT count(*) FROM users"), number("SELECT count(*) FROM keys")), (1, 1));
            assert_eq!(number("SELECT count(*) FROM pragma_table_info('submit_keys') WHERE name = 'made'"), 0);
        }
        2 => {
            assert_eq!((tables("'users', 'keys'"), tables("'records', 'key_uses'")), (0, 2));
            assert!(number("SELECT count(*) FROM records") >= 3, "the admin, their key and the list of admins");
            assert_eq!(number("SELECT count(*) FROM pragma_table_info('submit_keys') WHERE name = 'made'"), 1);
            assert_eq!((tables(OF_JOBS), number("SELECT count(*) FROM pragma_table_info('executions') WHERE name = 'job'")), (0, 0));
        }
        3..=5 => {
            assert_eq!((tables("'users', 'keys'"), tables("'records', 'key_uses'")), (0, 2));
            assert_eq!((tables(OF_JOBS), number("SELECT count(*) FROM pragma_table_info('executions') WHERE name = 'job'")), (4, 1));
            assert_eq!(number("SELECT count(*) FROM sqlite_schema WHERE name = 'executions_queue'"), u32::from(version >= 4));
            assert_eq!(tables("'costs', 'costs_counted'"), if version == 5 { 2 } else { 0 });
        }
        other => panic!("version {other}"),
    }
    version
}

/// Opens what a crash left, once more, and finds everything.
async fn check(path: &Path) {
    let store = open(path);
    assert_eq!(version_of(path), KNOWN_VERSION);
    let stored = invariant::check(&store, &options().audit_key).await;
    assert_eq!(stored.len(), 4);
    let record = store.record(Kind::User, "admin@localhost").await.expect("a read").expect("the admin");
    assert_eq!(record.user().expect("a user").keys[0].hash, [5; 32]);
    let running = ListQuery { statuses: vec![Status::Running], limit: 10, ..ListQuery::default() };
    assert_eq!(store.list(running).await.expect("a list").len(), 1);
    // The queue is paused in the store of version 4.
    let resumed =
        QueueUpdate { name: Name::new("default").expect("a name"), paused: Some(false), reason: None, concurrency: None, per_user: None };
    store.change(step(), Change::PutQueue(resumed), None).await.expect("taken");
    cycle(&store, "true").await.expect("it goes on");
}

#[tokio::test]
async fn promise_23_a_migration_that_loses_its_power_is_done_or_not_begun() {
    let _alone = recorder::alone().await;
    let images = count(2, 100);
    for from in 1..KNOWN_VERSION {
        let (steps, [before, after]) = lose_power(from, images).await;
        assert!(before > 0 && after > 0, "{before} before, {after} after");
        println!(
            "PROMISE 23 | a migration from version {from} that loses its power is done or not begun | {steps} steps × {images} | {before} before, {after} after",
        );
    }
}

/// Loses the power of a migration after everything that reached the disk; tells how many stores were as before and how many were done.
async fn lose_power(from: u32, images: usize) -> (usize, [usize; 2]) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    std::fs::copy(golden(from), &path).expect("the golden store");
    recorder::start(directory.path());
    drop(open(&path));
    let ops = recorder::stop();
    assert!(ops.len() > 10, "only {} things reached the disk", ops.len());
    let mut disk = Disk::holding(23, std::fs::read(golden(from)).expect("the golden store"));
    let mut versions = [0, 0];
    for op in std::iter::once(None).chain(ops.iter().map(Some)) {
        if let Some(op) = op {
            disk.apply(op);
        }
        for _ in 0..images {
            let directory = tempfile::tempdir_in(image::place()).expect("a directory");
            disk.write_image(directory.path());
            let path = directory.path().join("store.db");
            versions[usize::from(is_done(from, version_of(&path)))] += 1;
            check(&path).await;
        }
    }
    (ops.len(), versions)
}

/// A store is never of a version between: all migrations are one step.
fn is_done(from: u32, version: u32) -> bool {
    assert!(version == from || version == KNOWN_VERSION, "it is of version {version}");
    version == KNOWN_VERSION
}

const CHILD: &str = "RUNVOY_MIGRATION_TEST_CHILD";

/// Runs itself as a child that migrates and is held before one thing that the disk would see, and kills it there.
#[tokio::test]
async fn promise_23_a_migration_that_is_killed_is_done_or_not_begun() {
    let _alone = recorder::alone().await;
    if let Ok(told) = std::env::var(CHILD) {
        return migrate_and_be_held(&told);
    }
    let rounds = count(1, 100);
    for from in 1..KNOWN_VERSION {
        let (mut versions, mut steps) = ([0, 0], 0);
        for _ in 0..rounds {
            steps = 0;
            while killed_at(from, steps + 1, &mut versions).await {
                steps += 1;
            }
        }
        let [before, after] = versions;
        assert!(steps > 10 && before > 0 && after > 0, "{steps} steps, {versions:?}");
        println!(
            "PROMISE 23 | a migration from version {from} that is killed is done or not begun | {steps} steps × {rounds} | {before} before, {after} after",
        );
    }
}

/// Kills a migration at a step; `false` if it has not so many.
async fn killed_at(from: u32, step: usize, versions: &mut [usize; 2]) -> bool {
    let directory = tempfile::tempdir_in(image::place()).expect("a directory");
    let path = directory.path().join("store.db");
    std::fs::copy(golden(from), &path).expect("the golden store");
    let program = std::env::current_exe().expect("this program");
    let name = "migration::promise_23_a_migration_that_is_killed_is_done_or_not_begun";
    let told = format!("{step} {}", path.display());
    let mut child =
        Command::new(program).args(["--exact", name, "--nocapture"]).env(CHILD, told).stdout(Stdio::piped()).spawn().expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let was_held = lines.map_while(Result::ok).any(|line| line.ends_with(recorder::HELD));
    if was_held {
        child.kill().expect("a kill");
    }
    let status = child.wait().expect("an end");
    assert!(was_held || status.success(), "step {step}: the child failed by itself");
    let version = version_of(&path);
    assert!(was_held || version == KNOWN_VERSION);
    versions[usize::from(is_done(from, version))] += usize::from(was_held);
    check(&path).await;
    was_held
}

fn migrate_and_be_held(told: &str) {
    let (step, path) = told.split_once(' ').expect("a step and a path");
    let path = Path::new(path);
    recorder::start(path.parent().expect("a directory"));
    recorder::hold_at(step.parse().expect("a number"));
    drop(open(path));
}
