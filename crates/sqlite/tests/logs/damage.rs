//! Torn and spoiled files: a reader gets what is good, is told where it ends, and never gets a bad record.

use std::path::{Path, PathBuf};

use runvoy_model::id::ExecutionId;
use runvoy_ports::log::{LogError, LogStore};
use runvoy_sqlite::logs::{Config, FileLogStore};

use crate::kit::{Dice, Line, append, copy_dir, count, files, id, lines, quick, read_all, run, small, with_extension};

fn limits() -> Config {
    Config { journal_bytes: 1 << 20, spill_bytes: 40 << 10, segment_bytes: 1 << 20, ..small() }
}

fn open(dir: &Path) -> FileLogStore {
    FileLogStore::open_with(dir, limits(), quick()).expect("opens whatever is damaged")
}

/// Five interleaved logs, the fifth with files of its own.
async fn fill(dir: &Path) -> Vec<Vec<Line>> {
    let store = open(dir);
    let mut all = vec![Vec::new(); 5];
    let mut dice = Dice(42);
    for round in 0..400u64 {
        let log = if round < 80 { 4 } else { dice.below(5) };
        let text: &mut Vec<Line> = &mut all[log as usize];
        let more = (0..1 + dice.below(6))
            .map(|n| Line::new(round as i64, format!("log {log} round {round} line {n} {}", "x".repeat(dice.below(150) as usize))));
        let more: Vec<Line> = more.collect();
        store.append(id(log), append(1, Some(text.len() as u64 + 1), &more)).await.expect("appends");
        text.extend(more);
    }
    all
}

/// Every record served, of the `last` ones of each log, is the one that was written under that number; says how many there are in all.
async fn only_good_records(store: &FileLogStore, expected: &[Vec<Line>], last: u64, what: &str) -> (usize, usize) {
    let (mut served, mut damaged) = (0, 0);
    for (log, text) in expected.iter().enumerate() {
        let from = store.extent(id(log as u64)).await.expect("extent").next_line.saturating_sub(last).max(1);
        let (read, error) = read_all(store, id(log as u64), from, 20_000).await;
        for (number, line) in &read {
            assert_eq!(Some(line), text.get(*number as usize - 1), "{what}, log {log}, line {number}");
        }
        match error {
            None => {}
            Some(LogError::Damaged { after_line }) => {
                assert_eq!(after_line, from - 1 + read.len() as u64, "{what}, log {log}: damage is where reading stopped");
                damaged += 1;
            }
            Some(other) => panic!("{what}, log {log}: {other:?}"),
        }
        served += from as usize - 1 + read.len();
    }
    (served, damaged)
}

async fn goes_on(store: &FileLogStore, log: ExecutionId, what: &str) {
    let extent = store.extent(log).await.expect("extent");
    store.append(log, append(9, None, &lines(1, 2))).await.expect("appends");
    let (read, error) = read_all(store, log, extent.next_line, 1000).await;
    assert!(error.is_none() && read.len() == 2, "{what}: {error:?} {read:?}");
}

/// Cuts one file, which is opened alone: there is no second copy of anything.
async fn cut_everywhere(source: &Path, file: &Path, log: u64, expected: &[Vec<Line>]) {
    let name = file.strip_prefix(source).expect("below").to_owned();
    let bytes = std::fs::read(file).expect("read");
    let last = bytes.len().saturating_sub(64 << 10);
    let total: usize = expected.iter().map(Vec::len).sum();
    let cuts = count(150, 64 << 10).min(bytes.len());
    let mut previous = 0;
    for i in 0..cuts {
        let at = last + (bytes.len() - last) * i / cuts;
        let what = format!("{} cut at {at}", name.display());
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir_all(dir.path().join(&name).parent().expect("a directory")).expect("create");
        std::fs::write(dir.path().join(&name), &bytes[..at]).expect("write");
        let store = open(dir.path());
        let (served, damaged) = only_good_records(&store, expected, 20, &what).await;
        assert!(damaged == 0, "{what}: a cut tail is not damage");
        assert!(served < total && served >= previous, "{what}: {served} of {total}, {previous} with a byte less");
        previous = served;
        goes_on(&store, id(log), &what).await;
    }
}

#[test]
fn promise_06_a_torn_journal_is_cut_at_the_last_good_record() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let mut expected = fill(dir.path()).await;
        // The log with its own files is not in question here, so that every cut line counts.
        expected.pop();
        let journal = with_extension(dir.path(), "rvj").pop().expect("a journal");
        cut_everywhere(dir.path(), &journal, 1, &expected).await;
        println!("PROMISE 06 | a torn journal is cut at the last good record | {} cuts | ok", count(150, 64 << 10));
    });
}

#[test]
fn promise_06_a_torn_segment_is_cut_at_the_last_good_record() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let expected = fill(dir.path()).await;
        let segment = with_extension(dir.path(), "seg").pop().expect("a segment");
        let mut only_big = vec![Vec::new(); 4];
        only_big.push(expected[4].clone());
        cut_everywhere(dir.path(), &segment, 4, &only_big).await;
        println!("PROMISE 06 | a torn segment is cut at the last good record | {} cuts | ok", count(150, 64 << 10));
    });
}

async fn flip_bits(source: &Path, expected: &[Vec<Line>], flips: usize, seed: u64) {
    let mut dice = Dice(seed);
    let total: usize = expected.iter().map(Vec::len).sum();
    let candidates: Vec<PathBuf> = files(source).into_iter().filter(|path| std::fs::metadata(path).expect("size").len() > 16).collect();
    let mut noticed = 0;
    for flip in 0..flips {
        let file = &candidates[dice.below(candidates.len() as u64) as usize];
        let mut bytes = std::fs::read(file).expect("read");
        let bit = dice.below(bytes.len() as u64 * 8) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let name = file.strip_prefix(source).expect("below");
        let what = format!("flip {flip}, bit {bit} of {}", name.display());
        let dir = tempfile::tempdir().expect("dir");
        copy_dir(source, dir.path());
        std::fs::write(dir.path().join(name), bytes).expect("write");
        let store = open(dir.path());
        let (served, damaged) = only_good_records(&store, expected, u64::MAX, &what).await;
        // A second copy may have stood in for what is damaged; then nothing is missing.
        noticed += usize::from(served < total || damaged > 0);
        goes_on(&store, id(77), &what).await;
    }
    assert!(noticed * 2 > flips, "{noticed} of {flips} flips hit something that readers need");
}

#[test]
fn promise_06_a_flipped_bit_in_files_being_written_is_never_served() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let expected = fill(dir.path()).await;
        flip_bits(dir.path(), &expected, count(120, 1000), 1234).await;
        println!("PROMISE 06 | a flipped bit in log files being written is never served | {} flips | ok", count(120, 1000));
    });
}

#[test]
fn promise_06_a_flipped_bit_in_packs_and_compressed_segments_is_never_served() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let expected = fill(dir.path()).await;
        {
            let store = open(dir.path());
            for (log, text) in expected.iter().enumerate() {
                store.seal(id(log as u64), text.len() as u64).await.expect("seals");
            }
            store.compact().expect("compacts");
            store.settle();
        }
        assert!(with_extension(dir.path(), "pack").len() == 1 && with_extension(dir.path(), "segz").len() == 1);
        flip_bits(dir.path(), &expected, count(120, 1000), 99).await;
        println!("PROMISE 06 | a flipped bit in packs and compressed segments is never served | {} flips | ok", count(120, 1000));
    });
}

#[test]
fn damage_in_the_middle_of_a_shared_journal_stops_only_the_log_it_hit() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        {
            let store = open(dir.path());
            for part in 0..3u64 {
                for log in [1, 2] {
                    store.append(id(log), append(1, Some(part * 4 + 1), &lines(part * 4 + 1, 4))).await.expect("appends");
                }
            }
        }
        let journal = with_extension(dir.path(), "rvj").remove(0);
        let bytes = std::fs::read(&journal).expect("read");
        let starts: Vec<usize> = (0..bytes.len() - 4).filter(|at| &bytes[*at..at + 4] == b"RVE1").collect();
        assert_eq!(starts.len(), 6);
        for (part_of_entry, what) in [(20, "header"), (100, "payload")] {
            let mut bad = bytes.clone();
            bad[starts[2] + part_of_entry] ^= 0x10;
            std::fs::write(&journal, bad).expect("write");
            let store = open(dir.path());
            let (read, error) = read_all(&store, id(1), 1, 1 << 20).await;
            assert!(matches!(error, Some(LogError::Damaged { after_line: 4 })), "{what}: {error:?}");
            assert_eq!(read.len(), 4, "{what}");
            let (behind, error) = read_all(&store, id(1), 9, 1 << 20).await;
            assert!(error.is_none() && behind.len() == 4, "{what}: lines behind the damage can still be read");
            let (other, error) = read_all(&store, id(2), 1, 1 << 20).await;
            assert!(error.is_none() && other.len() == 12, "{what}");
            assert_eq!(store.verify().expect("verifies").damage.len(), 1, "{what}");
            let appended = store.append(id(1), append(1, Some(13), &lines(13, 1))).await.expect("appends");
            assert_eq!(appended.next_line, 14, "{what}");
        }
    });
}

#[test]
fn output_that_imitates_an_entry_is_not_taken_for_one() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let forged = {
            // A real entry of another store, for the victim's log.
            let other = tempfile::tempdir().expect("dir");
            open(other.path()).append(id(1), append(1, Some(1), &[Line::new(0, "forged")])).await.expect("appends");
            std::fs::read(with_extension(other.path(), "rvj").remove(0)).expect("read")[16..].to_vec()
        };
        {
            let store = open(dir.path());
            store.append(id(2), append(1, Some(1), &[Line::new(0, forged)])).await.expect("appends");
            store.append(id(3), append(1, Some(1), &lines(1, 1))).await.expect("appends");
        }
        let journal = with_extension(dir.path(), "rvj").remove(0);
        let mut bytes = std::fs::read(&journal).expect("read");
        bytes[16 + 30] ^= 1;
        std::fs::write(&journal, bytes).expect("write");
        let store = open(dir.path());
        assert_eq!(store.extent(id(1)).await.expect("extent").next_line, 1, "nobody wrote to that log");
        assert_eq!(store.extent(id(3)).await.expect("extent").next_line, 2);
    });
}

#[test]
fn a_file_of_a_newer_version_is_refused_with_a_clear_message() {
    let dir = tempfile::tempdir().expect("dir");
    drop(open(dir.path()));
    let journal = with_extension(dir.path(), "rvj").remove(0);
    let mut bytes = std::fs::read(&journal).expect("read");
    bytes[6] = 9;
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&journal, bytes).expect("write");
    let error = FileLogStore::open(dir.path(), Config::default()).err().expect("refused");
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(cause.contains("format 9") && cause.contains("newer runvoy"), "{cause}");
}
