//! Packs of beginnings: what waits stands in them together, they lose what goes, and no damaged file holds up the rest.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, LogError, LogStore};
use runvoy_sqlite::logs::{Config, FileLogStore};

use crate::kit::{
    Line, NEW, OLD, append, begin, end, next_line, old, open, packs, quick, read_all, run, spoil_first_frame, spoil_footer, text, whole,
};

/// Makes a file as old as what is in it, as time would.
fn age(path: &Path) {
    let at = UNIX_EPOCH + Duration::from_millis(OLD as u64 + 10_000);
    File::options().write(true).open(path).and_then(|file| file.set_modified(at)).expect("a time is set");
}

fn open_packs(dir: &Path) -> usize {
    packs(dir).0.len()
}

#[test]
fn the_beginning_of_a_log_is_kept_as_long_as_the_log() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = open(dir.path());
        // All begin together; some end soon, one ends late, one goes on.
        begin(&store, 0..5).await;
        store.compact().expect("compacts");
        assert_eq!(open_packs(dir.path()), 1);
        let more = |at: i64| [Line::new(at, "more")];
        for (log, at) in [(0, OLD + 10), (1, OLD + 10), (2, NEW)] {
            store.append(old(log), append(1, Some(3), &more(at))).await.expect("appends");
            store.seal(old(log), 3).await.expect("seals");
        }
        store.compact().expect("compacts");
        // Sealed, and still in the journal.
        store.append(old(3), append(1, Some(3), &more(NEW))).await.expect("appends");
        store.seal(old(3), 3).await.expect("seals");
        for _ in 0..2 {
            store.prune(UnixMs(OLD + 1_000_000)).await.expect("prunes");
        }
        store.close().expect("closes");
        drop(store);
        let store = open(dir.path());
        for (log, count) in [(2, 3), (3, 3), (4, 2)] {
            let lines = whole(&store, old(log)).await;
            assert_eq!((&lines[..2], lines.len()), (&text(OLD, 2)[..], count), "log {log}");
        }
        store.append(old(4), append(1, Some(3), &more(NEW))).await.expect("appends");
        assert_eq!(whole(&store, old(4)).await.len(), 3);
        store.seal(old(4), 3).await.expect("seals");
        store.settle();
        store.prune(UnixMs(NEW + 1_000_000)).await.expect("prunes");
        for log in 0..5 {
            assert_eq!(next_line(&store, log).await, 1, "log {log} is gone whole");
        }
        assert_eq!(packs(dir.path()), (vec![], vec![]));
    });
}

#[test]
fn a_log_that_ended_long_ago_goes_with_its_beginning() {
    run(async {
        for moved in [false, true] {
            let dir = tempfile::tempdir().expect("dir");
            let store = open(dir.path());
            begin(&store, [0]).await;
            store.compact().expect("compacts");
            end(&store, [0]).await;
            if moved {
                store.compact().expect("compacts");
            }
            let pruned = store.prune(UnixMs(NEW)).await.expect("prunes");
            assert_eq!((pruned.logs, open_packs(dir.path())), (1, 0), "moved: {moved}");
            assert_eq!(next_line(&store, 0).await, 1, "moved: {moved}");
            drop(store);
            let usage = open(dir.path()).usage().expect("usage");
            assert_eq!((usage.packs, usage.big_logs, usage.journal_logs), (0, 0, 0), "{usage:?}");
        }
    });
}

#[test]
fn what_waits_stays_together_while_others_go() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let mut store = open(dir.path());
        begin(&store, 0..50).await;
        store.compact().expect("compacts");
        let inode = |dir: &Path| std::fs::metadata(&packs(dir).0[0]).expect("a pack").ino();
        let before = inode(dir.path());
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 0);
        assert_eq!(inode(dir.path()), before, "where everything waits there is nothing to do");
        // Some end in a pack, one in files of its own.
        let goes_on = old(20);
        end(&store, 0..10).await;
        store.append(goes_on, append(1, Some(3), &text(OLD, 700))).await.expect("appends");
        store.seal(goes_on, 702).await.expect("seals");
        store.settle();
        store.compact().expect("compacts");
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 11);
        for _ in 0..2 {
            let usage = store.usage().expect("usage");
            assert_eq!((usage.packs, usage.big_logs), (1, 0), "{usage:?}");
            for log in 0..50 {
                let is_gone = log < 10 || old(log) == goes_on;
                assert_eq!(next_line(&store, log).await, if is_gone { 1 } else { 3 }, "log {log}");
            }
            drop(store);
            store = open(dir.path());
        }
        assert!(store.verify().expect("verifies").damage.is_empty());
        end(&store, (10..50).filter(|log| old(*log) != goes_on)).await;
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 39);
        assert_eq!(packs(dir.path()), (vec![], vec![]));
    });
}

#[test]
fn a_pack_that_cannot_be_written_anew_keeps_its_own_and_nothing_else() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = open(dir.path());
        begin(&store, [1, 2, 9]).await;
        store.compact().expect("compacts");
        end(&store, [1]).await;
        store.compact().expect("compacts");
        // Inside the range of the beginnings, and none of them.
        begin(&store, [5]).await;
        end(&store, [5]).await;
        store.compact().expect("compacts");
        let obstacle = dir.path().join("pack/next-open.tmp");
        std::fs::create_dir(&obstacle).expect("a directory where a file should be");
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 1);
        assert_eq!((next_line(&store, 1).await, next_line(&store, 5).await), (4, 1));
        assert!(store.extent(old(1)).await.expect("extent").sealed);
        std::fs::remove_dir(&obstacle).expect("removes");
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 1);
        for (log, next) in [(1, 1), (2, 3), (9, 3)] {
            assert_eq!(next_line(&store, log).await, next, "log {log}");
        }
    });
}

/// Packs of ended logs, before and after the one with beginnings and around all that is in it. Logs 2 and 3 still wait.
async fn surround_what_waits(dir: &Path) {
    let store = open(dir);
    begin(&store, 0..6).await;
    end(&store, [0, 5]).await;
    store.compact().expect("compacts");
    begin(&store, [6]).await;
    end(&store, [1, 6]).await;
    store.compact().expect("compacts");
    // And one that goes on after both.
    begin(&store, [7]).await;
    end(&store, [4, 7]).await;
    store.compact().expect("compacts");
    store.close().expect("closes");
    let (open, ended) = packs(dir);
    assert!(open.len() == 1 && ended.len() == 3 && ended[0] < open[0] && open[0] < ended[1], "the test has what it is about");
}

#[test]
fn a_damaged_pack_stops_neither_retention_nor_what_waits() {
    run(async {
        for spoil in [spoil_first_frame, spoil_footer] {
            for spoiled in [0, 1] {
                let dir = tempfile::tempdir().expect("dir");
                surround_what_waits(dir.path()).await;
                let (_, ended) = packs(dir.path());
                spoil(&ended[spoiled]);
                let store = open(dir.path());
                for (log, is_lost) in [(0, spoiled == 0), (5, spoiled == 0), (1, spoiled == 1), (6, spoiled == 1), (4, false), (7, false)] {
                    let (lines, error) = read_all(&store, old(log), 1, 1 << 20).await;
                    assert_eq!((lines.len() < 3, error.is_some()), (is_lost, is_lost), "log {log}: {error:?}");
                }
                // It was open when its beginning was packed, so that what was packed before is none of it.
                assert_eq!(read_all(&store, old(3), 1, 1 << 20).await.1.is_none(), spoiled == 0);
                // What comes late for a log that may be there is not taken: nobody knows its numbers.
                let lost = if spoiled == 0 { 0 } else { 6 };
                let late = store.append(old(lost), Append { late: true, ..append(1, Some(4), &text(OLD, 1)) }).await;
                assert!(matches!(late, Err(LogError::Damaged { .. })), "{late:?}");
                let more = store.append(old(2), append(1, Some(3), &text(OLD + 2, 1))).await.expect("a log that waits takes output");
                assert_eq!((more.next_line, more.next_seq), (4, 4));
                assert_eq!((whole(&store, old(2)).await.len(), store.usage().expect("usage").big_logs), (3, spoiled as u64));
                drop(store);
                age(&ended[spoiled]);
                let store = open(dir.path());
                assert_eq!(whole(&store, old(2)).await.len(), 3, "opened again");
                store.prune(UnixMs(NEW)).await.expect("prunes");
                assert_eq!((packs(dir.path()).1, open_packs(dir.path())), (vec![], 1), "all that is old is gone");
                for (log, next) in [(2, 4), (3, 3), (4, 1), (5, 1), (6, 1), (7, 1)] {
                    assert_eq!(next_line(&store, log).await, next, "log {log}");
                }
                store.append(old(3), append(1, Some(3), &text(OLD + 2, 1))).await.expect("appends");
                assert_eq!(whole(&store, old(3)).await.len(), 3);
            }
        }
    });
}

#[test]
fn a_damaged_pack_of_beginnings_goes_when_it_is_old_and_stops_nobody_until_then() {
    run(async {
        for spoil in [spoil_first_frame, spoil_footer] {
            let dir = tempfile::tempdir().expect("dir");
            let store = open(dir.path());
            begin(&store, 0..3).await;
            store.compact().expect("compacts");
            end(&store, [0]).await;
            store.compact().expect("compacts");
            store.close().expect("closes");
            let pack = packs(dir.path()).0.remove(0);
            spoil(&pack);
            let store = open(dir.path());
            assert_eq!(whole(&store, old(0)).await.len(), 3, "the whole of it stands in the pack of ended logs");
            let (_, error) = read_all(&store, old(1), 1, 1 << 20).await;
            assert!(matches!(error, Some(LogError::Damaged { after_line: 0 })), "{error:?}");
            store.append(old(1), append(2, Some(1), &text(OLD, 1))).await.expect("a log that waits takes output");
            assert_eq!(whole(&store, old(1)).await.len(), 1);
            assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 1, "what has ended goes");
            assert_eq!(open_packs(dir.path()), 1);
            age(&pack);
            store.prune(UnixMs(NEW)).await.expect("prunes");
            assert_eq!(packs(dir.path()), (vec![], vec![]));
            assert_eq!((next_line(&store, 1).await, next_line(&store, 2).await), (2, 1));
        }
    });
}

#[test]
fn what_is_damaged_among_beginnings_stays_told_when_others_are_taken_out() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(dir.path(), Config { reserve_bytes: 0, ..Config::default() }, quick()).expect("opens");
        // More than one frame holds.
        for log in 0..90 {
            store.append(old(log), append(1, Some(1), &[Line::new(OLD, vec![b'x'; 4_000])])).await.expect("appends");
        }
        store.compact().expect("compacts");
        for log in [80, 81] {
            store.seal(old(log), 1).await.expect("seals");
        }
        store.compact().expect("compacts");
        store.close().expect("closes");
        let pack = packs(dir.path()).0.remove(0);
        spoil_first_frame(&pack);
        let store = open(dir.path());
        let damage = store.verify().expect("verifies").damage;
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 2);
        assert_eq!((store.verify().expect("verifies").damage, damage.len()), (damage, 1));
        for (log, next) in [(79, 2), (80, 1), (81, 1), (82, 2)] {
            assert_eq!(next_line(&store, log).await, next, "log {log}");
        }
        assert_eq!(whole(&store, old(89)).await, [Line::new(OLD, vec![b'x'; 4_000])]);
        let (_, error) = read_all(&store, old(3), 1, 1 << 20).await;
        assert!(matches!(error, Some(LogError::Damaged { after_line: 0 })), "{error:?}");
    });
}
