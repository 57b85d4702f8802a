//! What was acknowledged is there: after a drop, after a kill in the middle of writing, and once only.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use runvoy_model::command::{Submit, SubmitKey};
use runvoy_model::id::ExecutionId;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery};
use runvoy_sqlite::SqliteStore;

use crate::fixture::{self, count, cycle, open, step, submit, submitted};
use crate::invariant;

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_drop_and_after_a_close() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let mut expected = Vec::new();
    for round in 0..4 {
        let store = open(&path);
        for id in [submitted(&store, &format!("echo {round}")).await.id, cycle(&store, "true").await.expect("a life").id] {
            expected.push(store.get(id).await.expect("a read").expect("it is there"));
        }
        let found = store.list(ListQuery { limit: 100, ..ListQuery::default() }).await.expect("a list");
        assert_eq!(found.iter().rev().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        if round % 2 == 0 {
            store.close().await.expect("a clean end");
            assert!(store.get(expected[0].id).await.is_err(), "a closed store answers nothing");
            assert!(store.submit(step(), submit("true")).await.is_err());
        }
    }
    invariant::check(&open(&path), &fixture::options().audit_key).await;
}

#[tokio::test]
async fn a_closed_store_is_one_file_without_a_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    submitted(&store, "true").await;
    let wal = directory.path().join("store.db-wal");
    assert!(wal.metadata().expect("a log").len() > 0);
    store.close().await.expect("a clean end");
    assert_eq!(wal.metadata().map_or(0, |file| file.len()), 0);
}

#[tokio::test]
async fn a_repeated_step_is_answered_as_before_also_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (again, asked) = (step(), submit("true"));
    let (first, repeated) = open(&path).submit(again.clone(), asked.clone()).await.expect("taken");
    assert!(!repeated);
    let store = open(&path);
    let (second, repeated) = store.submit(again, asked).await.expect("known");
    assert_eq!((second.id, second.version, repeated), (first.id, first.version, true));
    assert_eq!(store.events(EventQuery { limit: 10, ..EventQuery::default() }).await.expect("events").len(), 2);
}

#[tokio::test]
async fn promise_11_a_key_makes_one_execution() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let keyed = || {
        let key = SubmitKey { user: "ana@example.com".into(), key: "deploy-42".into(), fingerprint: [3; 32] };
        Submit { key: Some(key), ..submit("make deploy") }
    };
    let store = Arc::new(open(&path));
    let tasks: Vec<_> = (0..count(200, 1_000))
        .map(|_| {
            let (store, asked) = (Arc::clone(&store), keyed());
            tokio::spawn(async move { store.submit(step(), asked).await.expect("taken or known") })
        })
        .collect();
    let mut made = Vec::new();
    for task in tasks {
        let (execution, repeated) = task.await.expect("no panic");
        made.push((execution.id, repeated));
    }
    assert_eq!(made.iter().filter(|(_, repeated)| !repeated).count(), 1);
    assert!(made.iter().all(|(id, _)| *id == made[0].0));
    drop(store);
    let (execution, repeated) = open(&path).submit(step(), keyed()).await.expect("known");
    assert_eq!((execution.id, repeated), (made[0].0, true));
}

const CHILD: &str = "RUNVOY_STORE_TEST_CHILD";

/// Runs itself as a child that submits without end, and kills it.
#[tokio::test]
async fn promise_01_a_kill_loses_nothing_that_was_acknowledged() {
    if let Some(path) = std::env::var_os(CHILD) {
        return submit_for_ever(path.as_ref()).await;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let mut acknowledged = Vec::new();
    for round in 0..count(5, 1_000) {
        let program = std::env::current_exe().expect("this program");
        let name = "durable::promise_01_a_kill_loses_nothing_that_was_acknowledged";
        let mut child =
            Command::new(program).args(["--exact", name, "--nocapture"]).env(CHILD, &path).stdout(Stdio::piped()).spawn().expect("a child");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let enough = 1 + round * 37 % 100;
        let mut of_round = 0;
        while let Some(Ok(line)) = lines.next() {
            if let Some(id) = line.strip_prefix("acknowledged ") {
                acknowledged.push(id.parse::<ExecutionId>().expect("an id"));
                of_round += 1;
            }
            if of_round == enough {
                child.kill().expect("a kill");
            }
        }
        child.wait().expect("an end");
        assert!(of_round >= enough, "the child ended by itself");
        let store = open(&path);
        for id in &acknowledged[acknowledged.len() - of_round..] {
            assert!(store.get(*id).await.expect("an answer").is_some(), "{id} is lost");
        }
    }
    let stored = invariant::check(&open(&path), &fixture::options().audit_key).await;
    assert!(acknowledged.iter().all(|id| stored.contains(id)));
    println!(
        "PROMISE 01 | kill -9 of the store's process loses nothing acknowledged | {} kills | 0 of {} lost",
        count(5, 1_000),
        acknowledged.len()
    );
}

async fn submit_for_ever(path: &std::path::Path) {
    let store = Arc::new(open(path));
    let live = |store: Arc<SqliteStore>| async move {
        loop {
            let id = cycle(&store, "true").await.expect("a life").id;
            // One write, so that a kill never cuts a line that was acknowledged into two.
            std::io::stdout().write_all(format!("acknowledged {id}\n").as_bytes()).expect("a parent");
        }
    };
    for _ in 0..7 {
        tokio::spawn(live(Arc::clone(&store)));
    }
    live(store).await;
}
