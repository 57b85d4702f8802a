//! A crash between the steps of moving records: the directory as it is after each step is put together from the directories before
//! and after, opened, and must show every record exactly once, also after the interrupted work is done again.

use std::path::{Path, PathBuf};

use runvoy_model::time::UnixMs;
use runvoy_ports::log::LogStore;
use tempfile::TempDir;

use crate::kit::{Line, append, copy_dir, files, id, lines, open, run, whole, with_extension};

/// Lines of the log with files of its own.
const BIG: u64 = 2500;

/// Logs of every kind: sealed small, open small, open big; and what is in them.
async fn fill(dir: &Path) -> Vec<Vec<Line>> {
    let store = open(dir);
    let mut all = Vec::new();
    for log in 0..8u64 {
        let text = lines(1, 5 + log);
        for (i, line) in text.iter().enumerate() {
            store.append(id(log), append(1, Some(i as u64 + 1), std::slice::from_ref(line))).await.expect("appends");
        }
        if log % 2 == 0 {
            store.seal(id(log), text.len() as u64).await.expect("seals");
        }
        all.push(text);
    }
    let big = lines(1, BIG);
    for (i, part) in big.chunks(50).enumerate() {
        store.append(id(8), append(1, Some(i as u64 * 50 + 1), part)).await.expect("appends");
    }
    all.push(big);
    store.settle();
    all
}

/// Those that `fill` has sealed.
fn is_even(log: usize) -> bool {
    log < 8 && log.is_multiple_of(2)
}

async fn check(dir: &Path, expected: &[Vec<Line>], is_sealed: fn(usize) -> bool, what: &str) {
    for round in ["as found", "done again", "opened again"] {
        let store = open(dir);
        for (log, text) in expected.iter().enumerate() {
            assert_eq!(&whole(&store, id(log as u64)).await, text, "{what}, {round}, log {log}");
            let extent = store.extent(id(log as u64)).await.expect("extent");
            assert_eq!(extent.sealed, is_sealed(log), "{what}, {round}, log {log}");
            let repeat = store.append(id(log as u64), append(1, Some(1), &text[..3])).await.expect("a repeat");
            assert_eq!((repeat.next_line, repeat.next_seq), (text.len() as u64 + 1, text.len() as u64 + 1), "{what}, {round}");
        }
        store.compact().expect("compacts");
        store.settle();
        let damage = store.verify().expect("verifies").damage;
        assert!(damage.is_empty(), "{what}, {round}: {damage:?}");
    }
}

fn state(before: &Path, add: &[(PathBuf, Vec<u8>)]) -> TempDir {
    let dir = tempfile::tempdir().expect("temporary directory");
    copy_dir(before, dir.path());
    for (path, bytes) in add {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("create");
        std::fs::write(path, bytes).expect("write");
    }
    dir
}

/// The files that `after` has and `before` has not, with their bytes.
fn added(before: &Path, after: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let relative = |root: &Path| files(root).into_iter().map(|p| p.strip_prefix(root).expect("below").to_owned()).collect::<Vec<_>>();
    let known = relative(before);
    let new = relative(after).into_iter().filter(|path| !known.contains(path));
    new.map(|path| (path.clone(), std::fs::read(after.join(path)).expect("read"))).collect()
}

/// The same without the journal that is written next.
fn moved(before: &Path, after: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    added(before, after).into_iter().filter(|(path, _)| path.extension().is_none_or(|extension| extension != "rvj")).collect()
}

fn of_kind(files: &[(PathBuf, Vec<u8>)], extension: &str) -> Vec<(PathBuf, Vec<u8>)> {
    files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == extension)).cloned().collect()
}

#[test]
fn a_crash_while_a_journal_is_emptied_neither_loses_nor_repeats_a_record() {
    run(async {
        let (before, after) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let expected = fill(before.path()).await;
        copy_dir(before.path(), after.path());
        open(after.path()).compact().expect("compacts");
        let new = moved(before.path(), after.path());
        let packs = of_kind(&new, "pack");
        assert!(packs.len() == 2 && of_kind(&new, "seg").is_empty(), "the test has what it is about: {} packs", packs.len());

        check(state(before.path(), &[]).path(), &expected, is_even, "before anything").await;
        for (number, pack) in packs.iter().enumerate() {
            check(
                state(before.path(), std::slice::from_ref(pack)).path(),
                &expected,
                is_even,
                &format!("pack {number} there, journal too"),
            )
            .await;
        }
        check(state(before.path(), &new).path(), &expected, is_even, "all there, journal too").await;
        for (name, (_, bytes)) in ["pack/next.tmp", "pack/next-open.tmp"].iter().zip(&packs) {
            let temporary = [(PathBuf::from(name), bytes[..bytes.len() / 2].to_vec())];
            check(state(before.path(), &temporary).path(), &expected, is_even, "half a pack under its temporary name").await;
        }
        check(after.path(), &expected, is_even, "after everything").await;
    });
}

#[test]
fn a_crash_while_logs_whose_beginning_is_packed_are_moved_neither_loses_nor_repeats_a_record() {
    run(async {
        let (before, after) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let mut expected = fill(before.path()).await;
        {
            let store = open(before.path());
            store.compact().expect("compacts");
            for log in [1, 3, 5, 7] {
                let (next, line) = (expected[log].len() as u64 + 1, Line::new(5_000, "goes on"));
                store.append(id(log as u64), append(1, Some(next), std::slice::from_ref(&line))).await.expect("appends");
                expected[log].push(line);
            }
            store.seal(id(7), expected[7].len() as u64).await.expect("seals");
        }
        copy_dir(before.path(), after.path());
        open(after.path()).compact().expect("compacts");
        let new = moved(before.path(), after.path());
        let (packs, segments) = (of_kind(&new, "pack"), of_kind(&new, "seg"));
        assert!(packs.len() == 1 && segments.len() == 3, "the test has what it is about: {} {}", packs.len(), segments.len());
        let is_sealed = |log| is_even(log) || log == 7;

        check(state(before.path(), &[]).path(), &expected, is_sealed, "before anything").await;
        check(state(before.path(), &packs).path(), &expected, is_sealed, "pack there, journal too").await;
        check(state(before.path(), &segments).path(), &expected, is_sealed, "segments there, journal too").await;
        check(state(before.path(), &new).path(), &expected, is_sealed, "all there, journal too").await;
        for part in [0, 7, 16, 40, 130, 300] {
            let torn: Vec<_> = segments.iter().map(|(path, bytes)| (path.clone(), bytes[..bytes.len().min(part)].to_vec())).collect();
            check(state(before.path(), &torn).path(), &expected, is_sealed, "segments cut short, journal there").await;
        }
        check(after.path(), &expected, is_sealed, "after everything").await;
    });
}

#[test]
fn a_crash_while_retention_takes_logs_and_their_beginnings_leaves_none_without_its_end() {
    run(async {
        let (before, after) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let mut expected = fill(before.path()).await;
        {
            let store = open(before.path());
            store.compact().expect("compacts");
            let line = Line::new(5_000, "ends");
            store.append(id(7), append(1, Some(expected[7].len() as u64 + 1), std::slice::from_ref(&line))).await.expect("appends");
            expected[7].push(line);
            store.seal(id(7), expected[7].len() as u64).await.expect("seals");
            store.compact().expect("compacts");
        }
        copy_dir(before.path(), after.path());
        assert_eq!(open(after.path()).prune(ALL).await.expect("prunes").logs, 5);
        let relative = |root: &Path, path: &Path| path.strip_prefix(root).expect("below").to_owned();
        let packs = |dir: &Path| with_extension(dir, "pack").iter().map(|path| relative(dir, path)).collect::<Vec<_>>();
        let is_open = |path: &PathBuf| path.to_string_lossy().ends_with("-open.pack");
        let (open_packs, ended): (Vec<_>, Vec<_>) = packs(before.path()).into_iter().partition(is_open);
        assert_eq!((packs(after.path()), ended.len()), (open_packs.clone(), 2), "the test has what it is about");
        let rest = std::fs::read(after.path().join(&open_packs[0])).expect("read");
        assert!(rest.len() < std::fs::read(before.path().join(&open_packs[0])).expect("read").len(), "something was taken out");

        check_taken(&state(before.path(), &[]), &expected, "before anything").await;
        for part in [rest.len() / 2, rest.len()] {
            let temporary = [(PathBuf::from("pack/next-open.tmp"), rest[..part].to_vec())];
            check_taken(&state(before.path(), &temporary), &expected, "the rest of the pack under its temporary name").await;
        }
        for gone in 0..=ended.len() {
            let dir = state(before.path(), &[(open_packs[0].clone(), rest.clone())]);
            ended[..gone].iter().for_each(|path| std::fs::remove_file(dir.path().join(path)).expect("remove"));
            check_taken(&dir, &expected, &format!("beginnings are taken out, {gone} packs are gone")).await;
        }
    });
}

/// Later than all ids.
const ALL: UnixMs = UnixMs(1_800_000_000_000);

/// What has ended is there whole, or gone whole, and gone once the interrupted work is done again; what goes on is there.
async fn check_taken(dir: &TempDir, expected: &[Vec<Line>], what: &str) {
    for round in ["as found", "done again", "opened again"] {
        let store = open(dir.path());
        for (log, text) in expected.iter().enumerate() {
            let (extent, lines) = (store.extent(id(log as u64)).await.expect("extent"), whole(&store, id(log as u64)).await);
            let has_ended = is_even(log) || log == 7;
            if has_ended && (lines.is_empty() || round != "as found") {
                assert_eq!((extent.next_line, extent.sealed), (1, false), "{what}, {round}, log {log}");
            } else {
                assert_eq!((&lines, extent.sealed), (text, has_ended), "{what}, {round}, log {log}");
            }
        }
        store.prune(ALL).await.expect("prunes");
        let damage = store.verify().expect("verifies").damage;
        assert!(damage.is_empty(), "{what}, {round}: {damage:?}");
    }
}

#[test]
fn a_crash_while_a_log_is_compressed_neither_loses_nor_repeats_a_record() {
    run(async {
        let (before, after) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let big = fill(before.path()).await.pop().expect("the big one");
        copy_dir(before.path(), after.path());
        {
            let store = open(after.path());
            store.seal(id(8), BIG).await.expect("seals");
            store.settle();
        }
        let compressed = with_extension(after.path(), "segz");
        assert!(compressed.len() > 2, "the test has what it is about: {compressed:?}");
        let relative = |root: &Path, path: &Path| path.strip_prefix(root).expect("below").to_owned();
        let bytes = |path: &Path| std::fs::read(path).expect("read");
        let one = &compressed[1];
        let name = relative(after.path(), one).with_extension("seg");
        let both = (name.clone(), bytes(&before.path().join(name)));
        let half = (relative(after.path(), one).with_extension("tmp"), bytes(one)[..100].to_vec());
        let spoiled = (relative(after.path(), one), bytes(one)[..bytes(one).len() - 9].to_vec());
        for (what, add) in
            [("both there", vec![both.clone()]), ("half a file", vec![half]), ("the compressed one is damaged", vec![both, spoiled])]
        {
            let dir = state(after.path(), &add);
            let store = open(dir.path());
            assert_eq!(whole(&store, id(8)).await, big, "{what}");
            assert!(store.extent(id(8)).await.expect("extent").sealed, "{what}");
            drop(store);
            let store = open(dir.path());
            store.settle();
            assert_eq!(whole(&store, id(8)).await, big, "{what}, again");
        }
    });
}

#[test]
fn a_log_that_lost_its_end_says_by_how_much() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        {
            let store = open(dir.path());
            store.append(id(1), append(1, Some(1), &lines(1, 7))).await.expect("appends");
        }
        let store = open(dir.path());
        store.seal(id(1), 10).await.expect("seals");
        assert_eq!(store.extent(id(1)).await.expect("extent").lost_records, 3);
        drop(store);
        let store = open(dir.path());
        store.compact().expect("compacts");
        let extent = store.extent(id(1)).await.expect("extent");
        assert_eq!((extent.lost_records, extent.next_line, extent.sealed), (3, 8, true));
        // What arrives late takes the next numbers; the loss stays told.
        store.append(id(1), append(1, Some(8), &lines(8, 1))).await.expect("appends");
        let extent = store.extent(id(1)).await.expect("extent");
        assert_eq!((extent.lost_records, extent.next_line), (3, 9));
    });
}
