//! The disk below the store fails: the power goes at any instant, or a sync is refused. A VFS under the store records what reaches the disk and
//! when it is made durable, and refuses syncs when told to.

#[path = "../store/fixture.rs"]
mod fixture;
mod image;
#[path = "../store/invariant.rs"]
mod invariant;
mod migration;
mod recorder;

use std::sync::Arc;

use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;
use runvoy_ports::store::{ExecutionStore, StoreError};
use runvoy_sqlite::SqliteStore;

use fixture::{count, cycle, open, options, step, submit, submitted};
use image::Disk;
use recorder::{FileKind, Op, Refuse};

/// Records what four submitters do until the log has been carried into the database a few times.
async fn record(directory: &std::path::Path) -> Vec<Op> {
    recorder::start(directory);
    let store = Arc::new(open(&directory.join("store.db")));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for i in 0..150 {
                    let id = submitted(&store, "true").await.id;
                    recorder::push(Op::Acknowledged { id, status: Status::Pending });
                    if i % 2 == 0 {
                        let id = cycle(&store, "true").await.expect("a life").id;
                        recorder::push(Op::Acknowledged { id, status: Status::Succeeded });
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert!(store.stats().checkpoints > 0, "the record holds a checkpoint");
    store.close().await.expect("a clean end");
    recorder::stop()
}

#[tokio::test]
async fn promise_05_a_power_loss_at_any_instant_loses_nothing_that_was_acknowledged() {
    let _alone = recorder::alone().await;
    let directory = tempfile::tempdir().expect("a directory");
    let ops = record(directory.path()).await;
    let images = count(200, 10_000);
    let mut disk = Disk::new(5);
    let mut acknowledged: Vec<(ExecutionId, Status)> = Vec::new();
    let mut tried = 0;
    let mut torn = 0;
    for (i, op) in ops.iter().enumerate() {
        match op {
            Op::Acknowledged { id, status } => acknowledged.push((*id, *status)),
            other => disk.apply(other),
        }
        while tried * ops.len() < images * (i + 1) {
            tried += 1;
            torn += usize::from(disk.has_unsynced());
            check_image(&mut disk, &acknowledged, tried).await;
        }
    }
    assert_eq!(tried, images);
    assert!(torn * 4 > images, "{torn} of {images} images had something to lose");
    println!(
        "PROMISE 05 | a power loss at any instant loses nothing that was acknowledged | {images} images, {torn} with something unsynced | 0 lost"
    );
}

async fn check_image(disk: &mut Disk, acknowledged: &[(ExecutionId, Status)], number: usize) {
    let directory = tempfile::tempdir_in(image::place()).expect("a directory");
    disk.write_image(directory.path());
    let store = match SqliteStore::open(directory.path().join("store.db"), options()) {
        Ok(store) => store,
        Err(error) => panic!("image {number}: {error}: {:?}", std::error::Error::source(&error)),
    };
    store.verify().await.unwrap_or_else(|error| panic!("image {number}: {error}"));
    for (id, status) in acknowledged {
        let found = store.get(*id).await.expect("a read");
        assert_eq!(found.map(|execution| execution.status), Some(*status), "image {number}: {id}");
    }
    if number.is_multiple_of(50) {
        invariant::check(&store, &options().audit_key).await;
    }
    cycle(&store, "true").await.expect("the store goes on");
}

/// Submits until it is refused; returns what was acknowledged.
async fn submit_until_refused(store: &SqliteStore) -> Vec<ExecutionId> {
    let mut acknowledged = Vec::new();
    loop {
        match store.submit(step(), submit("true")).await {
            Ok((execution, _)) => acknowledged.push(execution.id),
            Err(StoreError::Unavailable(_)) => return acknowledged,
            Err(other) => panic!("{other:?}"),
        }
    }
}

async fn check_poisoned(store: &SqliteStore, acknowledged: &[ExecutionId]) {
    let syncs = recorder::syncs();
    for _ in 0..5 {
        assert!(matches!(store.submit(step(), submit("true")).await, Err(StoreError::Unavailable(_))));
        if let Some(id) = acknowledged.first() {
            assert!(matches!(store.get(*id).await, Err(StoreError::Unavailable(_))));
        }
    }
    assert!(store.close().await.is_err());
    assert_eq!(recorder::syncs(), syncs, "a failed sync is not tried again");
}

#[tokio::test]
async fn promise_08_a_failed_sync_stops_the_store_for_good() {
    let _alone = recorder::alone().await;
    for number in 1..=count(12, 50) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.db");
        recorder::start(directory.path());
        let store = open(&path);
        recorder::refuse(Refuse::Any, number);
        let acknowledged = submit_until_refused(&store).await;
        check_poisoned(&store, &acknowledged).await;
        drop(store);
        recorder::stop();
        let stored = invariant::check(&open(&path), &options().audit_key).await;
        assert!(acknowledged.iter().all(|id| stored.contains(id)), "sync {number}");
    }
}

#[tokio::test]
async fn a_failed_sync_of_the_database_stops_the_store_for_good() {
    let _alone = recorder::alone().await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    recorder::start(directory.path());
    let store = open(&path);
    recorder::refuse(Refuse::Only(FileKind::Database), 1);
    let acknowledged = submit_until_refused(&store).await;
    assert!(acknowledged.len() > 50, "the database is synced by a checkpoint");
    check_poisoned(&store, &acknowledged).await;
    drop(store);
    recorder::stop();
    let stored = invariant::check(&open(&path), &options().audit_key).await;
    assert!(acknowledged.iter().all(|id| stored.contains(id)));
}
