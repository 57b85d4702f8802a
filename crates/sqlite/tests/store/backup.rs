//! Copies of a running store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runvoy_ports::store::ExecutionStore;
use runvoy_sqlite::BackupError;

use crate::fixture::{count, cycle, open, options, submitted};
use crate::invariant;

#[tokio::test]
async fn promise_24_a_backup_under_load_is_a_whole_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(&directory.path().join("store.db")));
    for _ in 0..200 {
        cycle(&store, "true").await.expect("a life");
    }
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    cycle(&store, "true").await.expect("a life");
                }
            })
        })
        .collect();
    for round in 0..count(3, 50) {
        let before = submitted(&store, "true").await;
        let path = directory.path().join(format!("copy-{round}.db"));
        store.backup_to(&path).await.expect("a backup");
        let copy = open(&path);
        let stored = invariant::check(&copy, &options().audit_key).await;
        assert!(stored.contains(&before.id), "what was acknowledged before the backup is in it");
        assert!(stored.len() > 200);
        cycle(&copy, "true").await.expect("a copy is a store like any other");
        copy.close().await.expect("a clean end");
        drop(copy);
        std::fs::remove_file(path).expect("room");
    }
    done.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("no panic");
    }
    invariant::check(&store, &options().audit_key).await;
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
