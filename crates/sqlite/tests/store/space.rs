//! A full disk refuses and loses nothing; room makes it well again without hands. These tests mount a small file system, as root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use runvoy_model::command::{Extend, Fence, Kill, Submit};
use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;
use runvoy_ports::store::{ExecutionStore, StoreError};
use runvoy_sqlite::{Options, SqliteStore};

use crate::fixture::{count, end_of, lease_to, open, options, step, submit, submitted};
use crate::invariant;

/// A small file system of its own, gone at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(directory.path()).status();
        assert!(mounted.expect("mount").success(), "these tests need the right to mount");
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room there is.
    fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        // The write is meant to fail: it stops where the disk ends.
        let _ = std::fs::write(&ballast, vec![0; 8 << 20]);
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// What a start would find if everything ended here. Nothing is written meanwhile.
async fn left_by_a_crash(path: &Path) -> BTreeSet<ExecutionId> {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let copy = elsewhere.path().join("store.db");
    for end in ["", "-wal"] {
        let name = |path: &Path| format!("{}{end}", path.display());
        std::fs::copy(name(path), name(&copy)).expect("a copy");
    }
    invariant::check(&open(&copy), &options().audit_key).await.into_iter().collect()
}

#[tokio::test]
async fn promise_07_a_full_disk_refuses_and_recovers() {
    let disk = SmallDisk::mount();
    let path = disk.path().join("store.db");
    let store = open(&path);
    let known = (step(), submit("true"));
    let mut acknowledged = vec![store.submit(known.0.clone(), known.1.clone()).await.expect("there is room").0.id];
    for round in 0..count(3, 100) {
        match store.submit(step(), submit("true")).await {
            Ok((execution, _)) => acknowledged.push(execution.id),
            // What was acknowledged fills the disk in the end: then there is nothing left to recover from.
            Err(StoreError::NoSpace) if round > 2 => break,
            Err(other) => panic!("round {round}: {other:?}"),
        }
        let ballast = disk.fill();
        let mut refused = 0;
        while refused < 20 {
            match store.submit(step(), submit("true")).await {
                Ok((execution, _)) => acknowledged.push(execution.id),
                Err(StoreError::NoSpace) => refused += 1,
                Err(other) => panic!("round {round}: {other:?}"),
            }
            assert!(acknowledged.len() < 100_000, "the disk never got full");
        }
        assert!(store.get(acknowledged[0]).await.expect("reads go on").is_some());
        std::fs::remove_file(ballast).expect("room");
        // Neither room nor a look by the writer brings back what was refused: a crash at this moment leaves what was acknowledged.
        assert!(store.submit(known.0.clone(), known.1.clone()).await.expect("known before").1);
        assert_eq!(left_by_a_crash(&path).await, acknowledged.iter().copied().collect(), "round {round}");
    }
    drop(store);
    let stored = invariant::check(&open(&path), &options().audit_key).await;
    assert_eq!(stored.len(), acknowledged.len());
    assert!(acknowledged.iter().all(|id| stored.contains(id)));
    println!("PROMISE 07 | the store on a full disk refuses and recovers | {} executions | 0 lost", acknowledged.len());
}

#[tokio::test]
async fn at_the_reserve_nothing_new_is_taken_and_what_runs_can_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (running, killed, repeat) = {
        let store = open(&path);
        let (running, _) = store.submit(step(), Submit { lease_to: Some(lease_to()), ..submit("true") }).await.expect("taken");
        let repeat = (step(), submit("true"));
        store.submit(repeat.0.clone(), repeat.1.clone()).await.expect("taken");
        (running, submitted(&store, "true").await, repeat)
    };
    let store = SqliteStore::open(&path, Options { reserve_bytes: u64::MAX, ..options() }).expect("it opens");
    assert!(matches!(store.submit(step(), submit("true")).await, Err(StoreError::NoSpace)));
    assert!(store.submit(repeat.0, repeat.1).await.expect("known before").1);
    let lease = running.lease.clone().expect("a lease");
    let fence = Fence { execution: running.id, attempt: 1, lease: lease.id };
    let extend = Extend { fence, ttl_ms: 30_000, process_id: None, rss_bytes: None, last_output_at: None, activity: None };
    store.extend(step(), extend).await.expect("a heartbeat");
    assert_eq!(store.end_attempt(step(), end_of(&running)).await.expect("an end").status, Status::Succeeded);
    assert_eq!(store.kill(step(), Kill { execution: killed.id, force: false }).await.expect("a kill").status, Status::Stopped);
    assert_eq!(store.counts().await.expect("counts").executions, 3);
}
