//! Steps share commits, and a step that fails fails alone.

use std::sync::Arc;

use runvoy_model::command::{Command, Kill};
use runvoy_model::status::Status;
use runvoy_ports::store::{ExecutionStore, StoreError};
use rusqlite::config::DbConfig;

use crate::fixture::{open, step, submit, submitted};

#[tokio::test]
async fn concurrent_steps_share_commits() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(&directory.path().join("store.db")));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in 0..10 {
                    submitted(&store, "true").await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let stats = store.stats();
    assert_eq!(stats.steps, 640);
    assert!(stats.commits * 4 < stats.steps, "{stats:?}");
    assert_eq!(stats.failed_commits, 0);
}

#[tokio::test]
async fn a_step_that_fails_fails_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = Arc::new(open(&path));
    let victim = submitted(&store, "true").await;
    spoil(&path, "UPDATE executions SET state = '{' WHERE seq = 1");

    let mut tasks = Vec::new();
    for i in 0..50 {
        let store = Arc::clone(&store);
        let command = match i % 5 {
            0 => Command::Kill(Kill { execution: victim.id, force: false }),
            _ => Command::Submit(submit("true")),
        };
        tasks.push(tokio::spawn(async move { (i, store.apply(step(), command).await) }));
    }
    for task in tasks {
        let (i, answer) = task.await.expect("no panic");
        match answer {
            Err(StoreError::Damaged(_)) => assert_eq!(i % 5, 0),
            other => assert!(other.is_ok() && i % 5 != 0, "{i}: {other:?}"),
        }
    }
    assert!(store.stats().commits < 50, "they were in one batch or few");
    assert!(matches!(store.get(victim.id).await, Err(StoreError::Damaged(_))));
    assert_eq!(store.counts().await.expect("counts").executions, 41);
}

#[tokio::test]
async fn a_terminal_status_is_final_even_where_the_record_lies() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    let execution = submitted(&store, "true").await;
    // The column says that it has ended, the record beside it does not.
    spoil(&path, "UPDATE executions SET status = 4 WHERE seq = 1");
    let killed = store.kill(step(), Kill { execution: execution.id, force: false }).await;
    assert!(matches!(killed, Err(StoreError::Damaged(_))), "{killed:?}");
    let status = read(&path, "SELECT status FROM executions");
    assert_eq!((status, execution.status), (4, Status::Pending));
}

/// Changes the store behind its back. What is changed stays in the WAL, where no page checksum guards it.
pub fn spoil(path: &std::path::Path, sql: &str) {
    let conn = rusqlite::Connection::open(path).expect("a connection");
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("a setting");
    conn.pragma_update(None, "wal_autocheckpoint", 0).expect("a setting");
    conn.execute_batch(sql).expect("a change");
}

pub fn read(path: &std::path::Path, sql: &str) -> i64 {
    let conn = rusqlite::Connection::open(path).expect("a connection");
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("a setting");
    conn.query_row(sql, [], |row| row.get(0)).expect("a number")
}
