//! Changed bytes on the disk are noticed, at the start or when they are read, and never served as good.

use std::path::Path;

use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, hash_name};
use runvoy_model::spec::Needs;
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery, StoreError};
use runvoy_sqlite::{OpenError, SqliteStore};

use crate::fixture::{count, cycle, open, options, step, submit, submitted};
use crate::golden::first_admin;

/// Small numbers that look random and are the same at every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn flip(&mut self, bytes: &mut [u8]) -> usize {
        let place = self.roll(bytes.len());
        bytes[place] ^= 1 + self.roll(255) as u8;
        place
    }
}

/// One text for everything that one read says.
type Read = Result<String, StoreError>;

/// Everything that can be read, each by its own call.
async fn read_all(store: &SqliteStore, ids: &[ExecutionId]) -> Vec<Read> {
    let mut reads = Vec::new();
    let mut add = |read: Read| reads.push(read);
    for id in ids {
        add(store.get(*id).await.map(|found| format!("{found:?}")));
    }
    add(store.list(ListQuery { limit: 1000, ..ListQuery::default() }).await.map(|found| format!("{found:?}")));
    let by_user = ListQuery { created_by: Some("ana@example.com".into()), limit: 1000, ..ListQuery::default() };
    add(store.list(by_user).await.map(|found| format!("{found:?}")));
    add(store.events(EventQuery { limit: 10_000, ..EventQuery::default() }).await.map(|found| format!("{found:?}")));
    add(store.open_leases().await.map(|found| format!("{found:?}")));
    add(store.locks().await.map(|found| format!("{found:?}")));
    add(store.next_ready(&[Name::new("default").expect("a name")], &Needs::ALL).await.map(|found| format!("{found:?}")));
    for kind in Kind::ALL {
        add(store.records(kind).await.map(|found| format!("{found:?}")));
    }
    add(store.record(Kind::Key, &hash_name(&[5; 32])).await.map(|found| format!("{found:?}")));
    add(store.key_uses(&[[5; 32]]).await.map(|found| format!("{found:?}")));
    add(store.find(&ids[0].to_string()[20..], 100).await.map(|found| format!("{found:?}")));
    add(store.counts().await.map(|found| format!("{:?}", (found.pending, found.active, found.executions, found.events))));
    reads
}

async fn sample(path: &Path) -> (Vec<ExecutionId>, Vec<String>) {
    let store = open(path);
    store.change(step(), first_admin(), None).await.expect("made");
    store.touch_key([5; 32], step().at).await.expect("touched");
    let mut ids = Vec::new();
    for i in 0..30 {
        ids.push(cycle(&store, "true").await.expect("a life").id);
        let mut asked = submit("false");
        asked.spec.lock = (i % 5 == 0).then(|| Name::new(format!("lock-{i}")).expect("a name"));
        ids.push(store.submit(step(), asked).await.expect("taken").0.id);
    }
    let truth = read_all(&store, &ids).await.into_iter().map(|read| read.expect("a read")).collect();
    store.close().await.expect("a clean end");
    (ids, truth)
}

#[tokio::test]
async fn promise_28_a_changed_byte_in_the_database_is_never_served() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (ids, truth) = sample(&path).await;
    let good = std::fs::read(&path).expect("the file");
    let mut dice = Dice(28);
    let mut unnoticed = 0;
    for round in 0..count(50, 1_000) {
        let flipped = directory.path().join(format!("flipped-{round}.db"));
        let mut bytes = good.clone();
        let place = dice.flip(&mut bytes);
        std::fs::write(&flipped, bytes).expect("a copy");
        match SqliteStore::open(&flipped, options()) {
            Err(OpenError::Damaged(_)) => {}
            Err(other) => panic!("byte {place}: {other:?}"),
            Ok(store) => {
                let mut noticed = false;
                for (read, expected) in read_all(&store, &ids).await.into_iter().zip(&truth) {
                    match read {
                        Ok(found) => assert_eq!(found, *expected, "byte {place} was served"),
                        Err(StoreError::Damaged(_)) => noticed = true,
                        Err(other) => panic!("byte {place}: {other:?}"),
                    }
                }
                noticed |= matches!(store.verify().await, Err(StoreError::Damaged(_)));
                unnoticed += usize::from(!noticed);
            }
        }
        for beside in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{beside}", flipped.display()));
        }
    }
    assert_eq!(unnoticed, 0, "every page is read or verified");
    println!("PROMISE 28 | a changed byte in the database is never served | {} flips | 0 unnoticed", count(50, 1_000));
}

#[tokio::test]
async fn promise_28_a_changed_byte_in_the_log_loses_no_commit_but_the_last() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let mut ids = Vec::new();
    {
        let store = open(&path);
        for _ in 0..25 {
            ids.push(submitted(&store, "true").await.id);
        }
    }
    let good = std::fs::read(directory.path().join("store.db-wal")).expect("the log");
    let mut dice = Dice(82);
    let (mut refused, mut cut) = (0, 0);
    for round in 0..count(50, 1_000) {
        let flipped = directory.path().join(format!("flipped-{round}.db"));
        let wal = directory.path().join(format!("flipped-{round}.db-wal"));
        std::fs::copy(&path, &flipped).expect("a copy");
        let mut bytes = good.clone();
        let place = dice.flip(&mut bytes);
        std::fs::write(&wal, bytes).expect("a copy");
        match SqliteStore::open(&flipped, options()) {
            Err(OpenError::Damaged(_)) => refused += 1,
            Err(other) => panic!("byte {place}: {other:?}"),
            Ok(store) => {
                for id in &ids[..ids.len() - 1] {
                    assert!(store.get(*id).await.expect("a read").is_some(), "byte {place}: {id} is lost without a word");
                }
                cut += 1;
            }
        }
        for file in [flipped.clone(), wal, directory.path().join(format!("flipped-{round}.db-shm"))] {
            let _ = std::fs::remove_file(file);
        }
    }
    assert!(refused > cut, "{refused} refused, {cut} taken for a torn end");
    println!("PROMISE 28 | a changed byte in the write-ahead log loses no commit but the last | {} flips | 0 lost", count(50, 1_000));
}
