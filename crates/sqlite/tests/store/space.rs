//! A full disk refuses and loses nothing; room makes it well again without hands. These tests mount a small file system, as root.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use runvoy_model::command::{Extend, Fence, Kill, Submit};
use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;
use runvoy_ports::store::{ExecutionStore, StoreError};
use runvoy_sqlite::{DiskReserve, Options, SqliteStore};

use crate::fixture::{count, end_of, lease_to, open, options, step, submit, submitted};
use crate::invariant;

/// A small file system of its own, gone at the end.
struct SmallDisk(tempfile::TempDir);

/// Says that a proof is not run here, which in CI is a failure.
fn not_run(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "not run, and CI must run it: {why}");
    eprintln!("not run: {why}");
}

impl SmallDisk {
    /// A tmpfs; `None` where this process may not mount one.
    fn tmpfs(size: &str) -> Option<Self> {
        Self::mount_with(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
    }

    /// An ext4 of its own in a file; `None` where this machine cannot make or mount it.
    fn ext4() -> Option<Self> {
        let image = tempfile::NamedTempFile::new().expect("a file");
        image.as_file().set_len(48 << 20).expect("a sparse file");
        let path = image.path().to_str().expect("text");
        let made = Command::new("mkfs.ext4").args(["-q", "-m", "0", path]).status();
        if !made.is_ok_and(|status| status.success()) {
            not_run("mkfs.ext4 does not work here");
            return None;
        }
        Self::mount_with(&["-o", "loop", path])
    }

    fn mount_with(args: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount").args(args).arg(directory.path()).output().expect("mount runs");
        if !mounted.status.success() {
            not_run(&format!("mount {}: {}", args.join(" "), String::from_utf8_lossy(&mounted.stderr).trim()));
            return None;
        }
        Some(Self(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room there is.
    fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut file = std::fs::File::create(&ballast).expect("a file");
        // The writes are meant to fail: they stop where the disk ends.
        for block in [vec![0; 1 << 20], vec![0; 4096]] {
            while file.write_all(&block).is_ok() {}
        }
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
    let Some(disk) = SmallDisk::tmpfs("6m") else { return };
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
    let extend = Extend { fence, ttl_ms: 30_000, process_id: None, rss_bytes: None, last_output_at: None, activity: None, preparing: None };
    store.extend(step(), extend).await.expect("a heartbeat");
    assert_eq!(store.end_attempt(step(), end_of(&running)).await.expect("an end").status, Status::Succeeded);
    assert_eq!(store.kill(step(), Kill { execution: killed.id, force: false }).await.expect("a kill").status, Status::Stopped);
    assert_eq!(store.counts().await.expect("counts").executions, 3);
}

#[tokio::test]
async fn promise_07_ends_and_kills_are_recorded_on_a_disk_with_nothing_left() {
    let rounds = count(2, 20);
    let disks: Vec<SmallDisk> = [SmallDisk::tmpfs("32m"), SmallDisk::ext4()].into_iter().flatten().collect();
    for disk in &disks {
        let (path, file) = (disk.path().join("store.db"), disk.path().join("reserve"));
        let reserve = DiskReserve::open(&file, 2 << 20);
        for round in 0..rounds {
            // A close empties the write-ahead log, so that it needs room from its first step on.
            let store = SqliteStore::open(&path, Options { reserve: reserve.clone(), ..options() }).expect("it opens");
            assert!(!reserve.is_given_up(), "round {round}");
            let (running, _) = store.submit(step(), Submit { lease_to: Some(lease_to()), ..submit("true") }).await.expect("taken");
            let waiting = submitted(&store, "true").await;
            let ballast = disk.fill();
            // Heartbeats use up what the last block had left.
            let fence = Fence { execution: running.id, attempt: 1, lease: running.lease.as_ref().expect("a lease").id };
            let extend =
                Extend { fence, ttl_ms: 30_000, process_id: None, rss_bytes: None, last_output_at: None, activity: None, preparing: None };
            while !reserve.is_given_up() {
                store.extend(step(), extend.clone()).await.expect("a heartbeat");
            }
            assert!(matches!(store.submit(step(), submit("true")).await, Err(StoreError::NoSpace)), "round {round}");
            assert_eq!(store.end_attempt(step(), end_of(&running)).await.expect("an end").status, Status::Succeeded);
            assert_eq!(store.kill(step(), Kill { execution: waiting.id, force: false }).await.expect("a kill").status, Status::Stopped);
            reserve.tend();
            assert!(reserve.is_given_up(), "there is no room for it yet");
            std::fs::remove_file(ballast).expect("room");
            // Some file systems give blocks back only with their next commit.
            while reserve.is_given_up() {
                std::fs::File::open(disk.path()).and_then(|directory| directory.sync_all()).expect("a sync");
                reserve.tend();
            }
            store.close().await.expect("it closes");
        }
        let stored = invariant::check(&open(&path), &options().audit_key).await;
        assert_eq!(stored.len(), 2 * rounds);
    }
    if !disks.is_empty() {
        let count = disks.len();
        println!(
            "PROMISE 07 | ends and kills are recorded on a disk with nothing left | {rounds} times full on {count} kinds of disk | 0 lost"
        );
    }
}
