//! Emptying a journal: each log goes to one place, whatever else goes wrong meanwhile.

use std::path::{Path, PathBuf};

use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogError, LogStore};
use runvoy_sqlite::logs::{Config, FileLogStore};

use crate::kit::{
    NEW, OLD, append, begin, copy_dir, end, next_line, old, open, packs, quick, read_all, run, small, spoil_first_frame, spoil_footer,
    text, whole, with_extension,
};

#[test]
fn a_beginning_that_arrived_before_a_crash_is_not_packed_again() {
    run(async {
        let (dir, copy) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let store = open(dir.path());
        begin(&store, 0..20).await;
        // The journal as it was, beside the pack that it was emptied into: what a crash leaves before the journal is removed.
        let journal = dir.path().join("journal/00000001.rvj");
        let kept = copy.path().join("kept");
        std::fs::copy(&journal, &kept).expect("a copy");
        store.compact().expect("compacts");
        store.close().expect("closes");
        assert!(!journal.exists());
        std::fs::copy(&kept, &journal).expect("a copy");
        let store = open(dir.path());
        store.settle();
        let usage = store.usage().expect("usage");
        assert_eq!((usage.big_logs, usage.packs, usage.journal_logs), (0, 1, 0), "{usage:?}");
        for log in 0..20 {
            assert_eq!(whole(&store, old(log)).await, text(OLD, 2), "log {log}");
        }
    });
}

#[test]
fn a_log_that_ends_in_a_later_journal_than_it_begins_in_is_whole_in_one_pack() {
    run(async {
        let [first, second, dir] = [(); 3].map(|()| tempfile::tempdir().expect("dir"));
        {
            let store = open(first.path());
            begin(&store, 0..2).await;
            // Young, and as short, so that its pack stays.
            store.append(old(2), append(1, Some(1), &text(NEW, 2))).await.expect("appends");
            store.seal(old(2), 2).await.expect("seals");
        }
        copy_dir(first.path(), second.path());
        {
            // An empty file takes a journal's number, so that another is begun.
            std::fs::write(second.path().join("journal/00000002.rvj"), b"").expect("writes");
            let store = open(second.path());
            store.settle();
            end(&store, [0]).await;
        }
        // Both journals, as they are before the first is emptied.
        copy_dir(&first.path().join("journal"), &dir.path().join("journal"));
        let last = with_extension(second.path(), "rvj").pop().expect("a journal");
        std::fs::copy(&last, dir.path().join("journal").join(last.file_name().expect("a name"))).expect("a copy");
        let store = open(dir.path());
        store.settle();
        assert_eq!(with_extension(dir.path(), "rvj").len(), 1, "the first is emptied, the second is written");
        store.compact().expect("compacts");
        let (open_packs, ended) = packs(dir.path());
        assert_eq!((open_packs.len(), ended.len()), (1, 1));
        store.prune(UnixMs(OLD + 1_000_000)).await.expect("prunes");
        assert!(store.extent(old(0)).await.expect("extent").sealed, "it goes with its pack, no part of it before");
        assert_eq!(whole(&store, old(0)).await.len(), 3);
        store.prune(UnixMs(NEW + 1_000_000)).await.expect("prunes");
        assert_eq!((next_line(&store, 0).await, next_line(&store, 1).await), (1, 3));
    });
}

#[test]
fn a_pack_that_is_there_is_not_written_again_because_the_next_failed() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(
            dir.path(),
            Config { journal_bytes: 1 << 20, open_logs: 100, remembered_logs: 100, ..small() },
            quick(),
        )
        .expect("opens");
        begin(&store, 0..8).await;
        end(&store, 0..4).await;
        let obstacle = dir.path().join(format!("pack/00000002-{}-{}-open.pack", old(4), old(7)));
        std::fs::create_dir(&obstacle).expect("a directory where a file should be");
        for _ in 0..2 {
            assert!(store.compact().is_err(), "the obstacle is one");
        }
        std::fs::remove_dir(&obstacle).expect("removes");
        store.compact().expect("compacts");
        let (open, ended) = packs(dir.path());
        assert_eq!((open.len(), ended.len()), (1, 1));
        for log in 0..8 {
            assert_eq!(whole(&store, old(log)).await.len(), if log < 4 { 3 } else { 2 }, "log {log}");
        }
    });
}

#[test]
fn a_good_journal_is_not_set_aside_for_what_is_lost_elsewhere() {
    run(async {
        for spoil in [spoil_first_frame, spoil_footer] {
            let dir = tempfile::tempdir().expect("dir");
            let store = open(dir.path());
            begin(&store, 0..3).await;
            store.compact().expect("compacts");
            end(&store, 0..3).await;
            store.close().expect("closes");
            spoil(&packs(dir.path()).0[0]);
            let store = open(dir.path());
            store.compact().expect("compacts");
            assert_eq!(std::fs::read_dir(dir.path().join("journal")).expect("lists").count(), 1, "only the active one is left");
            let (_, error) = read_all(&store, old(1), 1, 1 << 20).await;
            assert!(matches!(error, Some(LogError::Damaged { after_line: 0 })), "{error:?}");
            let (lines, error) = read_all(&store, old(1), 3, 1 << 20).await;
            assert!(lines.len() == 1 && error.is_none(), "{error:?}");
        }
    });
}

/// Something where the files of a log should be, so that the log cannot be loaded.
fn obstruct(dir: &Path, log: u64) -> PathBuf {
    let name = old(log).to_string();
    let obstacle = dir.join("big").join(&name[30..]).join(&name);
    std::fs::create_dir_all(obstacle.join("000001.seg")).expect("a directory where a file should be");
    obstacle
}

#[test]
fn a_log_of_which_a_journal_still_holds_a_part_is_not_taken() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let (sick, log) = (1, 2);
        begin(&open(dir.path()), [sick, log]).await;
        let obstacle = obstruct(dir.path(), sick);
        let store = open(dir.path());
        store.settle();
        store.compact().expect("compacts");
        end(&store, [log]).await;
        store.compact().expect("compacts");
        assert_eq!((packs(dir.path()).1.len(), with_extension(dir.path(), "rvj").len()), (1, 2), "the first journal is kept");
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 0);
        assert!(store.extent(old(log)).await.expect("extent").sealed, "it would look as if it went on");
        std::fs::remove_dir_all(&obstacle).expect("removes");
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 1);
        assert_eq!((next_line(&store, log).await, next_line(&store, sick).await), (1, 3));
    });
}

#[test]
fn a_log_in_two_journals_is_not_taken_from_one() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let (log, sick) = (1, 2);
        let store = open(dir.path());
        store.settle();
        begin(&store, [log]).await;
        let no_pack = dir.path().join("pack/next-open.tmp");
        std::fs::create_dir(&no_pack).expect("a directory where a file should be");
        assert!(store.compact().is_err(), "the first journal is closed and not emptied");
        std::fs::remove_dir(&no_pack).expect("removes");
        end(&store, [log]).await;
        begin(&store, [sick]).await;
        obstruct(dir.path(), sick);
        // So many that the sick one is forgotten, and has to be loaded.
        begin(&store, 10..20).await;
        assert!(store.extent(old(sick)).await.is_err(), "the obstacle is one");
        store.prune(UnixMs(NEW)).await.expect("prunes");
        assert_eq!(with_extension(dir.path(), "rvj").len(), 2, "the second journal is kept");
        assert_eq!(whole(&store, old(log)).await.len(), 3);
    });
}
