//! Copies of a running store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runvoy_ports::store::ExecutionStore;
use runvoy_sqlite::{BackupError, SqliteStore};

use crate::fixture::{count, cycle, open, options, submitted};
use crate::invariant;

#[tokio::test]
async fn promise_24_a_backup_under_load_is_a_whole_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(&directory.path().join("store.db")));
    for _ in 0..200 {
        cycle(&store, "true").await.expect("a life");
    }
    let rounds = count(3, 50);
    for round in 0..rounds {
        let before = submitted(&store, "true").await;
        let path = directory.path().join(format!("copy-{round}.db"));
        back_up_under_load(&store, &path).await;
        let copy = open(&path);
        let stored = invariant::check(&copy, &options().audit_key).await;
        assert!(stored.contains(&before.id), "what was acknowledged before the backup is in it");
        assert!(stored.len() > 200);
        cycle(&copy, "true").await.expect("a copy is a store like any other");
        copy.close().await.expect("a clean end");
        drop(copy);
        std::fs::remove_file(path).expect("room");
    }
    invariant::check(&store, &options().audit_key).await;
    println!("PROMISE 24 | a backup under load is a whole store | {rounds} backups | every one passes the invariants");
}

/// Copies the store while eight write; they stop with it, so that the store does not outgrow the checks.
async fn back_up_under_load(store: &Arc<SqliteStore>, path: &Path) {
    let done = Arc::new(AtomicBool::new(false));
    let write = |store: Arc<SqliteStore>, done: Arc<AtomicBool>| async move {
        while !done.load(Ordering::Relaxed) {
            cycle(&store, "true").await.expect("a life");
        }
    };
    let writers: Vec<_> = (0..8).map(|_| tokio::spawn(write(Arc::clone(store), Arc::clone(&done)))).collect();
    store.backup_to(path).await.expect("a backup");
    done.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_backup_replaces_nothing_and_leaves_nothing_half_done() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let existing = directory.path().join("existing");
    std::fs::write(&existing, "precious").expect("a file");
    assert!(matches!(store.backup_to(&existing).await, Err(BackupError::Exists(path)) if path == existing));
    assert_eq!(std::fs::read(&existing).expect("the file"), b"precious");
    let nowhere = directory.path().join("missing/copy.db");
    assert!(store.backup_to(&nowhere).await.is_err());
    submitted(&store, "true").await;
    let copy = directory.path().join("copy.db");
    store.backup_to(&copy).await.expect("a backup");
    store.close().await.expect("a clean end");
    assert!(store.backup_to(directory.path().join("late.db")).await.is_err());
    let names: Vec<_> = std::fs::read_dir(directory.path()).expect("files").map(|file| file.expect("a file").file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("partial") && name != "late.db"), "{names:?}");
    assert_eq!(open(&copy).counts().await.expect("counts").executions, 1);
}
