//! Followers: they read while the log is written, spilled, sealed, compressed and packed, and see every line once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runvoy_ports::log::LogStore;
use runvoy_sqlite::logs::FileLogStore;

use crate::kit::{append, count, id, lines, open, run};

const LINES: u64 = 6000;

async fn follow(store: Arc<FileLogStore>, log: u64, max_bytes: usize, slow: bool) -> u64 {
    let mut line = 1;
    loop {
        let chunks = store.read(id(log), line, max_bytes).await.expect("reads");
        for chunk in &chunks {
            assert_eq!(chunk.first_line, line);
            for record in chunk.block.records() {
                assert_eq!(record.expect("record").bytes, format!("line {line}").as_bytes());
                line += 1;
            }
        }
        if chunks.is_empty() {
            let extent = store.extent(id(log)).await.expect("extent");
            if extent.sealed && line == extent.next_line {
                return line - 1;
            }
        }
        if chunks.is_empty() || slow {
            tokio::task::yield_now().await;
        }
    }
}

async fn write(store: Arc<FileLogStore>, log: u64) {
    let mut next = 1;
    while next <= LINES {
        let count = (1 + next % 17).min(LINES + 1 - next);
        store.append(id(log), append(1, Some(next), &lines(next, count))).await.expect("appends");
        next += count;
        tokio::task::yield_now().await;
    }
    store.sync(id(log)).await.expect("syncs");
    store.seal(id(log), LINES).await.expect("seals");
}

#[test]
fn ten_followers_of_three_logs_see_every_line_once_while_files_move() {
    let dir = tempfile::tempdir().expect("dir");
    let store = Arc::new(open(dir.path()));
    let done = Arc::new(AtomicBool::new(false));
    let mover = std::thread::spawn({
        let (store, done) = (store.clone(), done.clone());
        move || {
            while !done.load(Ordering::Acquire) {
                store.compact().expect("compacts");
                store.settle();
            }
        }
    });
    let writers: Vec<_> = (0..3)
        .map(|log| {
            std::thread::spawn({
                let store = store.clone();
                move || run(write(store, log))
            })
        })
        .collect();
    let followers: Vec<_> = (0..10u64)
        .map(|n| {
            std::thread::spawn({
                let store = store.clone();
                move || run(follow(store, n % 3, [1, 100, 4000, 1 << 20][(n % 4) as usize], n % 2 == 0))
            })
        })
        .collect();
    for writer in writers {
        writer.join().expect("writer");
    }
    for follower in followers {
        assert_eq!(follower.join().expect("follower"), LINES);
    }
    done.store(true, Ordering::Release);
    mover.join().expect("mover");
}

#[test]
fn a_follower_that_drops_and_resumes_sees_every_line_once() {
    let dir = tempfile::tempdir().expect("dir");
    let store = Arc::new(open(dir.path()));
    run(async {
        let mut dice = crate::kit::Dice(7);
        let (mut written, mut seen) = (0, 0);
        for _ in 0..count(300, 1000) {
            let more = dice.below(12);
            if more > 0 {
                store.append(id(1), append(1, Some(written + 1), &lines(written + 1, more))).await.expect("appends");
                written += more;
            }
            // One connection: it reads a little and is gone; its last line is all that is remembered.
            for _ in 0..dice.below(4) {
                for chunk in store.read(id(1), seen + 1, dice.below(400) as usize).await.expect("reads") {
                    for record in chunk.block.records() {
                        seen += 1;
                        assert_eq!(record.expect("record").bytes, format!("line {seen}").as_bytes());
                    }
                }
            }
        }
        while seen < written {
            for chunk in store.read(id(1), seen + 1, 1000).await.expect("reads") {
                assert_eq!(chunk.first_line, seen + 1);
                seen += u64::from(chunk.block.count);
            }
        }
        assert_eq!(seen, written);
    });
}
