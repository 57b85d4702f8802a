//! Retention and backup: what is old goes, what is not stays, and a copy made meanwhile is whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runvoy_model::time::UnixMs;
use runvoy_ports::log::LogStore;
use runvoy_sqlite::logs::{Config, FileLogStore};

use crate::kit::{Line, NEW, OLD, append, id_at, lines, open, quick, read_all, run, small, text, whole};

#[test]
fn old_logs_go_wherever_they_are_and_others_stay() {
    run(async {
        for stage in ["in the journal", "moved"] {
            let dir = tempfile::tempdir().expect("dir");
            let store = open(dir.path());
            // Small, big, and open, of two ages.
            for (age, n) in [(OLD, 0), (NEW, 10)] {
                for (log, count, sealed) in [(n, 5, true), (n + 1, 700, true), (n + 2, 5, false), (n + 3, 700, false)] {
                    store.append(id_at(age, log), append(1, Some(1), &text(age, count))).await.expect("appends");
                    if sealed {
                        store.seal(id_at(age, log), count).await.expect("seals");
                    }
                }
            }
            // Made long ago, but it wrote until recently.
            store.append(id_at(OLD, 5), append(1, Some(1), &text(NEW, 5))).await.expect("appends");
            store.seal(id_at(OLD, 5), 5).await.expect("seals");
            store.settle();
            if stage == "moved" {
                store.compact().expect("compacts");
            }
            let pruned = store.prune(UnixMs(OLD + 1_000_000)).await.expect("prunes");
            let small_too = stage == "in the journal";
            assert_eq!(pruned.logs, if small_too { 2 } else { 1 }, "{stage}: a pack goes when its youngest log is old");
            assert!(pruned.bytes > 100);
            let next = async |age, log| store.extent(id_at(age, log)).await.expect("extent").next_line;
            assert_eq!(next(OLD, 0).await == 1, small_too, "{stage}");
            assert_eq!(next(OLD, 1).await, 1, "{stage}");
            assert!(store.read(id_at(OLD, 1), 1, 1000).await.expect("reads").is_empty());
            for (age, log, count) in [(OLD, 2, 5), (OLD, 3, 700), (OLD, 5, 5), (NEW, 10, 5), (NEW, 11, 700), (NEW, 12, 5), (NEW, 13, 700)] {
                assert_eq!(whole(&store, id_at(age, log)).await.len(), count, "{stage}, log {log}");
            }
            assert_eq!(store.prune(UnixMs(OLD + 1_000_000)).await.expect("prunes").logs, 0, "nothing is left to prune");
            drop(store);
            let store = open(dir.path());
            assert_eq!(store.extent(id_at(OLD, 1)).await.expect("extent").next_line, 1, "{stage}, opened again");
            assert_eq!(whole(&store, id_at(OLD, 3)).await.len(), 700, "{stage}, opened again");

            let all = store.prune(UnixMs(NEW + 1_000_000)).await.expect("prunes");
            assert!(all.logs >= 3, "{stage}: {all:?}");
            for (age, log) in [(OLD, 5), (NEW, 10), (NEW, 11)] {
                assert_eq!(store.extent(id_at(age, log)).await.expect("extent").next_line, 1, "{stage}, log {log}");
            }
            for (age, log, count) in [(OLD, 2, 5), (OLD, 3, 700), (NEW, 12, 5), (NEW, 13, 700)] {
                assert_eq!(whole(&store, id_at(age, log)).await.len(), count, "{stage}: an open log is never pruned");
            }
        }
    });
}

#[test]
fn a_pack_with_late_records_stays_until_they_are_old() {
    run(async {
        // In one frame, and in the first of several, where only the footer tells.
        for count in [5, 40] {
            let dir = tempfile::tempdir().expect("dir");
            let store = FileLogStore::open_with(dir.path(), Config { reserve_bytes: 0, ..Config::default() }, quick()).expect("opens");
            for (log, at) in [(0, NEW), (1, OLD)] {
                let lines: Vec<_> = (0..count).map(|n| Line::new(at + n, vec![b'x'; 4000])).collect();
                store.append(id_at(OLD, log), append(1, Some(1), &lines)).await.expect("appends");
                store.seal(id_at(OLD, log), count as u64).await.expect("seals");
            }
            store.compact().expect("compacts");
            assert_eq!(store.prune(UnixMs(OLD + 1_000_000)).await.expect("prunes").logs, 0, "{count} lines");
            assert_eq!(whole(&store, id_at(OLD, 0)).await.len(), count as usize);
            assert_eq!(store.prune(UnixMs(NEW + 1_000_000)).await.expect("prunes").logs, 2, "{count} lines");
        }
    });
}

#[test]
fn an_unreadable_log_stops_neither_compaction_nor_retention() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let (sick, small, large) = (id_at(OLD, 1), id_at(OLD, 2), id_at(OLD, 3));
        let store = open(dir.path());
        for (log, at, count) in [(sick, NEW, 5), (small, NEW, 5), (large, OLD, 700)] {
            store.append(log, append(1, Some(1), &text(at, count))).await.expect("appends");
            store.seal(log, count).await.expect("seals");
        }
        drop(store);
        let name = sick.to_string();
        let obstacle = dir.path().join("big").join(&name[30..]).join(&name);
        std::fs::create_dir_all(obstacle.join("000001.seg")).expect("a directory where a file should be");

        let store = open(dir.path());
        store.compact().expect("compacts");
        assert!(store.extent(sick).await.is_err(), "the obstacle is one");
        assert_eq!(std::fs::read_dir(dir.path().join("pack")).expect("lists").count(), 1, "the other log was packed");
        assert_eq!(whole(&store, small).await, text(NEW, 5));
        assert_eq!(store.prune(UnixMs(OLD + 1_000_000)).await.expect("prunes").logs, 1, "the large one");
        store.settle();

        std::fs::remove_dir_all(&obstacle).expect("removes");
        store.compact().expect("compacts");
        assert_eq!(whole(&store, sick).await, text(NEW, 5), "its journal was kept");
        assert_eq!(whole(&store, small).await, text(NEW, 5));
        assert_eq!(std::fs::read_dir(dir.path().join("journal")).expect("lists").count(), 1, "only the active one is left");
        assert_eq!(store.prune(UnixMs(NEW + 1_000_000)).await.expect("prunes").logs, 2);
    });
}

#[test]
fn a_backup_of_a_busy_store_is_whole() {
    let dir = tempfile::tempdir().expect("dir");
    let config = Config { segment_bytes: 1 << 20, ..small() };
    let store = Arc::new(FileLogStore::open_with(dir.path(), config, quick()).expect("opens"));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..3u64)
        .map(|log| {
            let (store, stop) = (store.clone(), stop.clone());
            std::thread::spawn(move || {
                run(async move {
                    let mut next = 1;
                    while !stop.load(Ordering::Acquire) {
                        if next > 100_000 {
                            // Enough to be busy; more would only make the copies large.
                            tokio::task::yield_now().await;
                            continue;
                        }
                        store.append(id_at(NEW, log), append(1, Some(next), &lines(next, 7))).await.expect("appends");
                        next += 7;
                    }
                    next
                })
            })
        })
        .collect();
    run(async {
        store.append(id_at(OLD, 1), append(1, Some(1), &lines(1, 9))).await.expect("appends");
        store.seal(id_at(OLD, 1), 9).await.expect("seals");
        store.compact().expect("compacts");
        for round in 0..5 {
            let target = tempfile::tempdir().expect("dir");
            let mut synced = Vec::new();
            for log in 0..3 {
                synced.push(store.sync(id_at(NEW, log)).await.expect("syncs").next_line);
            }
            store.backup_to(target.path()).expect("backs up");
            assert!(store.backup_to(target.path()).is_err(), "a second backup into the same directory is refused");
            let copy = open(target.path());
            assert_eq!(whole(&copy, id_at(OLD, 1)).await, lines(1, 9));
            for (log, synced) in synced.into_iter().enumerate() {
                let (read, error) = read_all(&copy, id_at(NEW, log as u64), 1, 1 << 20).await;
                assert!(error.is_none(), "round {round}, log {log}: {error:?}");
                let got = read.into_iter().map(|(_, line)| line).collect::<Vec<_>>();
                assert!(got.len() as u64 + 1 >= synced, "round {round}, log {log}: {} of {synced}", got.len());
                assert_eq!(got, lines(1, got.len() as u64));
            }
            copy.compact().expect("the copy is a store like any other");
            assert!(copy.verify().expect("verifies").damage.is_empty());
        }
    });
    stop.store(true, Ordering::Release);
    for (log, writer) in writers.into_iter().enumerate() {
        let next = writer.join().expect("writer");
        assert_eq!(run(store.extent(id_at(NEW, log as u64))).expect("extent").next_line, next);
    }
}
