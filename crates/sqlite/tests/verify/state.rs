//! State that was changed by another hand does not follow from the events, and is named; whatever a store does by itself follows from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runvoy_conformance::dag::ends_as_it_must;
use runvoy_conformance::harness::{AUDIT_KEY, Opener, TransactionalStore};
use runvoy_model::job::JobStatus;
use runvoy_sqlite::{Options, SqliteStore, compare_state};
use rusqlite::Connection;

use crate::used::Used;

async fn opener(path: PathBuf) -> Opener<dyn TransactionalStore> {
    Opener::new(move || {
        let options = Options { reserve_bytes: 0, ..Options::new(AUDIT_KEY) };
        let opened: Arc<dyn TransactionalStore> = Arc::new(SqliteStore::open(path.clone(), options).expect("it opens"));
        async { opened }
    })
    .await
}

/// A store in which a job was completed, after failures and crashes, and then closed.
async fn played() -> (tempfile::TempDir, PathBuf) {
    for seed in 0.. {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.db");
        let played = ends_as_it_must(seed, 30, &opener(path.clone()).await).await;
        if played.end == JobStatus::Completed && played.compared > 20 {
            // Into one file, without a log beside it.
            let options = Options { reserve_bytes: 0, ..Options::new(AUDIT_KEY) };
            SqliteStore::open(path.clone(), options).expect("it opens").close().await.expect("a clean end");
            return (dir, path);
        }
    }
    unreachable!("some DAG is completed")
}

/// Changes it as `sqlite3` would; tells what is named then.
fn named(path: &Path, sql: &str) -> (String, String) {
    let conn = Connection::open(path).expect("it opens");
    assert!(conn.execute(sql, []).unwrap_or_else(|error| panic!("{sql}: {error}")) > 0, "{sql} changes nothing");
    drop(conn);
    let first = compare_state(path).expect("it can be read").first.unwrap_or_else(|| panic!("{sql} is not found"));
    (first.entity, first.field)
}

fn last_place(path: &Path) -> u32 {
    let conn = Connection::open(path).expect("it opens");
    conn.query_row("SELECT max(place) FROM nodes", [], |row| row.get(0)).expect("a place")
}

#[tokio::test]
async fn state_that_was_changed_is_named() {
    let (dir, whole) = played().await;
    let found = compare_state(&whole).expect("it can be read");
    assert_eq!(found.first, None);
    assert!(found.compared > 20, "{}", found.compared);
    let last = format!("tasks.t{}", last_place(&whole));
    let changes = [
        ("UPDATE executions SET status = 5, state = json_set(state, '$.status', 'FAILED') WHERE seq = 1", "TASK:", "status"),
        ("UPDATE executions SET state = json_set(state, '$.attempt', 7) WHERE seq = 1", "TASK:", "attempt"),
        ("UPDATE executions SET status = 5 WHERE seq = 1", "TASK:", "record"),
        ("UPDATE executions SET state = '{' WHERE seq = 1", "TASK:", "record"),
        ("UPDATE executions SET job = NULL WHERE seq = 1", "TASK:", "job"),
        ("UPDATE jobs SET status = 2, state = json_set(state, '$.status', 'FAILED')", "JOB:", "status"),
        ("UPDATE jobs SET state = json_set(state, '$.counts.completed', 999)", "JOB:", "counts.completed"),
        ("UPDATE jobs SET state = json_set(state, '$.generation', 99)", "JOB:", "generation"),
        ("UPDATE jobs SET status = 9", "JOB:", "record"),
        ("UPDATE nodes SET phase = 1 WHERE place = 0", "JOB:", "tasks.t0.phase"),
        ("UPDATE nodes SET open_parents = 9 WHERE place = 0", "JOB:", "tasks.t0.open_parents"),
        ("UPDATE nodes SET execution = randomblob(16) WHERE place = 0", "JOB:", "tasks.t0.execution"),
        ("UPDATE tasks SET output = '{\"inline\":77}' WHERE id & 4294967295 = 0", "JOB:", "tasks.t0.output"),
        ("DELETE FROM nodes WHERE place = (SELECT max(place) FROM nodes)", "JOB:", last.as_str()),
        ("DELETE FROM executions WHERE seq = 1", "JOB:", "tasks.t0.execution"),
        ("INSERT INTO locks (name, fence, holder, held_by, since) VALUES ('ghost', 1, randomblob(16), 'ann@x', 0)", "LOCK:ghost", "holder"),
        ("DELETE FROM events WHERE entity_kind = 0 AND entity = 1 AND kind IN (3, 4, 5, 7)", "TASK:", "status"),
        ("DELETE FROM events WHERE kind = 13", "JOB:", "status"),
    ];
    for (sql, entity, field) in changes {
        let copy = dir.path().join("copy.db");
        std::fs::copy(&whole, &copy).expect("a copy");
        let found = named(&copy, sql);
        assert!(found.0.starts_with(entity) && found.1 == field, "{sql}: {found:?}");
        for beside in ["copy.db", "copy.db-wal", "copy.db-shm"] {
            std::fs::remove_file(dir.path().join(beside)).ok();
        }
    }
}

#[tokio::test]
async fn executions_of_nobodys_job_and_the_people_beside_them_follow_too() {
    let used = Used::new().await;
    let found = compare_state(&used.path()).expect("it can be read");
    assert_eq!((found.first, found.compared), (None, 4 + 10));
    used.tamper("UPDATE executions SET status = 6, state = json_set(state, '$.status', 'STOPPED') WHERE seq = 3");
    let first = compare_state(&used.path()).expect("it can be read").first.expect("found");
    assert!(first.entity.starts_with("TASK:") && first.field == "status", "{first:?}");
    assert_eq!(first.message, "is STOPPED, but the events say SUCCEEDED");
}

#[tokio::test]
async fn a_store_is_compared_while_it_is_written_to_and_gives_no_false_alarm() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store.db");
    let opener = opener(path.clone()).await;
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let comparing = tokio::task::spawn_blocking(move || {
        let mut rounds = 0;
        while is_done.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            let found = compare_state(&path).expect("it can be read");
            assert_eq!(found.first, None, "in round {rounds}");
            rounds += 1;
        }
        rounds
    });
    ends_as_it_must(11, 120, &opener).await;
    done.send(()).expect("somebody compares");
    assert!(comparing.await.expect("no panic") > 1);
}
