//! What a write-ahead log keeps through cuts, flips and repeats.

use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use runvoy_model::id::{ExecutionId, LeaseId};
use tempfile::TempDir;

use super::*;

const ALL: Most = Most { bytes: usize::MAX, frames: usize::MAX };

fn opening() -> Opening {
    let fence = Fence { execution: ExecutionId::from_bytes([1; 16]), attempt: 1, lease: LeaseId::from_bytes([2; 16]) };
    Opening { endpoint: "http://127.0.0.1:1".to_owned(), token: "token".to_owned(), fence }
}

fn block(lines: &[(Stream, &str)]) -> Block {
    let mut builder = BlockBuilder::default();
    for (n, (stream, text)) in lines.iter().enumerate() {
        let at = UnixMs(1_000 + n as i64);
        builder.push(Record { at, stream: *stream, cont: false, eol: true, bytes: text.as_bytes() });
    }
    builder.take()
}

fn out(text: &str) -> Block {
    block(&[(Stream::Stdout, text)])
}

fn texts(batch: &Block) -> Vec<String> {
    batch.records().map(|record| String::from_utf8_lossy(record.expect("own encoding").bytes).into_owned()).collect()
}

/// Everything in a log, in batches.
fn all(wal: &Wal, most: Most) -> Vec<String> {
    let (mut at, mut lines) = (wal.first(), Vec::new());
    while let Some(batch) = wal.read(at, most).expect("readable") {
        assert_eq!(batch.first_seq, at.seq);
        assert_eq!(batch.next.seq, at.seq + u64::from(batch.block.count));
        lines.extend(texts(&batch.block));
        at = batch.next;
    }
    assert_eq!(at, wal.next());
    lines
}

/// A log with three frames of records and an end, and where each frame ends.
fn written(dir: &Path) -> (Wal, Vec<u64>) {
    let mut wal = Wal::create(dir, opening()).expect("a log");
    let mut ends = vec![wal.len()];
    let mut seq = 1;
    for block in [out("one"), block(&[(Stream::Stderr, "two"), (Stream::Stdout, "three")]), out("four")] {
        seq = wal.append(seq, &block).expect("taken");
        ends.push(wal.len());
    }
    wal.set_end(b"the end".to_vec()).expect("written");
    ends.push(wal.len());
    (wal, ends)
}

fn opened(dir: &Path, bytes: &[u8]) -> io::Result<Option<(Wal, u64)>> {
    let path = dir.join("copy.wal");
    fs::write(&path, bytes).expect("written");
    Wal::open(&path)
}

#[test]
fn what_was_written_comes_back_after_the_death_of_the_worker() {
    let dir = TempDir::new().expect("a directory");
    let (wal, _) = written(dir.path());
    let mode = fs::metadata(&wal.path).expect("it is there").permissions().mode() & 0o7777;
    assert_eq!(mode, 0o600, "it holds output and a token");
    let path = wal.path.clone();
    drop(wal);
    let (wal, cut) = Wal::open(&path).expect("readable").expect("a log");
    assert_eq!((wal.opening(), cut), (&opening(), 0));
    assert_eq!(all(&wal, ALL), ["one", "two", "three", "four"]);
    assert_eq!(all(&wal, Most { bytes: 1, frames: 9 }).len(), 4, "a frame is never too large to be read");
    assert_eq!(wal.end(), Some(&b"the end"[..]));
    wal.remove().expect("removed");
    assert!(!path.exists());
}

#[test]
fn every_cut_keeps_what_is_whole() {
    let dir = TempDir::new().expect("a directory");
    let (wal, ends) = written(dir.path());
    let bytes = fs::read(&wal.path).expect("readable");
    for length in 0..=bytes.len() {
        let found = opened(dir.path(), &bytes[..length]).expect("what is cut short is understood");
        let whole = ends.iter().filter(|end| **end <= length as u64).count();
        let Some((mut again, cut)) = found else {
            assert_eq!(whole, 0, "{length}");
            continue;
        };
        assert_eq!(cut, length as u64 - ends[whole - 1], "{length}");
        let lines = [0, 1, 3, 4, 4][whole - 1];
        assert_eq!(all(&again, ALL), ["one", "two", "three", "four"][..lines], "{length}");
        assert_eq!(again.end().is_some(), whole == 5, "{length}");
        if whole < 5 {
            let next = again.next().seq;
            assert_eq!(again.append(next, &out("more")).expect("taken"), next + 1);
            assert_eq!(all(&again, ALL).last().map(String::as_str), Some("more"), "{length}");
        }
    }
}

#[test]
fn a_flipped_bit_is_never_believed() {
    let dir = TempDir::new().expect("a directory");
    let (wal, ends) = written(dir.path());
    let bytes = fs::read(&wal.path).expect("readable");
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let whole = ends.iter().filter(|end| **end <= at as u64).count();
        match opened(dir.path(), &flipped) {
            Err(_) => assert_eq!(whole, 0, "{at}"),
            Ok(None) => panic!("it is not empty: {at}"),
            Ok(Some((again, _))) => {
                let lines = [0, 1, 3, 4, 4][whole - 1];
                assert_eq!(all(&again, ALL), ["one", "two", "three", "four"][..lines], "{at}");
                assert_eq!(again.end(), None, "{at}");
            }
        }
    }
}

#[test]
fn damage_under_an_open_log_is_an_error() {
    let dir = TempDir::new().expect("a directory");
    let (wal, ends) = written(dir.path());
    wal.file.write_all_at(b"x", ends[2] - 1).expect("written");
    let first = wal.read(wal.first(), Most { bytes: usize::MAX, frames: 1 }).expect("whole").expect("a batch");
    assert!(wal.read(first.next, ALL).is_err());
}

#[test]
fn a_repeat_is_not_added_and_a_gap_is_told() {
    let dir = TempDir::new().expect("a directory");
    let mut wal = Wal::create(dir.path(), opening()).expect("a log");
    let two = block(&[(Stream::Stdout, "one"), (Stream::Stdout, "two")]);
    assert_eq!(wal.append(1, &two).expect("taken"), 3);
    assert_eq!(wal.append(1, &two).expect("known"), 3);
    assert_eq!(wal.append(2, &block(&[(Stream::Stdout, "two"), (Stream::Stdout, "three")])).expect("half known"), 4);
    assert!(matches!(wal.append(5, &out("five")), Err(Untaken::Gap(4))));
    assert_eq!(all(&wal, ALL), ["one", "two", "three"]);
    wal.set_end(b"first".to_vec()).expect("written");
    wal.set_end(b"second".to_vec()).expect("no change");
    assert_eq!(wal.end(), Some(&b"first"[..]));
    assert!(matches!(wal.append(4, &out("late")), Err(Untaken::Ended)));
}

#[test]
fn a_record_is_found_however_far_away() {
    let dir = TempDir::new().expect("a directory");
    let mut wal = Wal::create(dir.path(), opening()).expect("a log");
    let mut seq = 1;
    for n in 0..80 {
        let text = format!("{n} {}", "x".repeat(40_000));
        seq = wal.append(seq, &block(&[(Stream::Stdout, &text), (Stream::Stderr, "second")])).expect("taken");
    }
    assert!(wal.marks.len() > 1);
    for wanted in [1, 2, 59, 60, 119, 160] {
        let place = wal.seek(wanted).expect("readable").expect("kept");
        let batch = wal.read(place, Most { bytes: 1, frames: 1 }).expect("readable").expect("a batch");
        assert_eq!(batch.first_seq, wanted);
        assert_eq!(texts(&batch.block)[0].starts_with("second"), wanted % 2 == 0, "{wanted}");
    }
    assert_eq!(wal.seek(161).expect("readable"), Some(wal.next()));
    assert_eq!((wal.seek(0).expect("readable"), wal.seek(162).expect("readable")), (None, None));
    let large = wal.len();
    wal.forget().expect("written");
    assert!(wal.len() < large);
    assert_eq!(wal.seek(160).expect("readable"), None);
    assert_eq!(wal.append(161, &out("after")).expect("taken"), 162);
    let (again, _) = Wal::open(&wal.path).expect("readable").expect("a log");
    assert_eq!((again.first().seq, all(&again, ALL)), (161, vec!["after".to_owned()]));
}

#[test]
fn a_log_that_was_forgotten_still_knows_that_something_was_in_it() {
    let dir = TempDir::new().expect("a directory");
    let mut wal = Wal::create(dir.path(), opening()).expect("a log");
    wal.append(1, &block(&[(Stream::Stdout, "one"), (Stream::Stdout, "two")])).expect("taken");
    let frames = wal.frames();
    wal.forget().expect("written");
    wal.forget().expect("written");
    assert_eq!((wal.first(), wal.frames(), all(&wal, ALL)), (wal.next(), frames, Vec::new()));
    let (mut again, cut) = Wal::open(&wal.path).expect("readable").expect("a log");
    assert_eq!((again.next(), again.first(), cut), (wal.next(), wal.next(), 0));
    assert_eq!(again.append(3, &out("three")).expect("taken"), 4);
    assert_eq!(all(&again, ALL), ["three"]);
}

#[test]
fn what_another_version_wrote_is_not_taken_for_nothing() {
    let dir = TempDir::new().expect("a directory");
    let (wal, _) = written(dir.path());
    let mut bytes = fs::read(&wal.path).expect("readable");
    let other_opening = [&MAGIC[..], &frame::encode(Kind::Opening, &[b"{\"fence\":7}"])].concat();
    let zeros = vec![0; 4096];
    bytes[7] += 1;
    for unknown in [bytes, other_opening, zeros] {
        assert!(opened(dir.path(), &unknown).is_err());
    }
}

#[test]
fn output_that_nobody_stores_leaves_a_remark_and_the_platforms_lines() {
    let dir = TempDir::new().expect("a directory");
    let mut wal = Wal::create(dir.path(), opening()).expect("a log");
    let mut seq = wal.append(1, &out("stored")).expect("taken");
    let mixed = [(Stream::Stdout, "12345"), (Stream::Platform, "### runvoy: said"), (Stream::Stderr, "67")];
    seq = wal.append(seq, &block(&mixed)).expect("taken");
    let from = wal.seek(2).expect("readable").expect("kept");
    wal.drop_output(from, UnixMs(1), |bytes| format!("{bytes} bytes")).expect("written");
    assert_eq!((wal.first().seq, all(&wal, ALL)), (2, vec!["9 bytes".to_owned(), "### runvoy: said".to_owned()]));
    let platform = block(&[(Stream::Platform, "last")]);
    assert_eq!(wal.append(seq, &platform).expect("the writer's own numbers go on"), seq + 1);
    assert_eq!(wal.append(seq, &platform).expect("known"), seq + 1);
    assert_eq!(wal.next().seq, 5);
    wal.set_end(b"end".to_vec()).expect("written");
    wal.drop_output(wal.seek(4).expect("readable").expect("kept"), UnixMs(1), |bytes| format!("{bytes} bytes")).expect("written");
    let (again, _) = Wal::open(&wal.path).expect("readable").expect("a log");
    assert_eq!((all(&again, ALL), again.end()), (vec!["0 bytes".to_owned(), "last".to_owned()], Some(&b"end"[..])));
    assert_eq!(fs::read_dir(dir.path()).expect("the directory").count(), 1);
}

#[test]
fn an_end_that_was_written_stays_whatever_else_goes_wrong() {
    let dir = TempDir::new().expect("a directory");
    let (mut wal, _) = written(dir.path());
    let before = fs::read(&wal.path).expect("readable");
    wal.forget().expect("nothing is done");
    // Nothing can be made where another log would be written.
    fs::create_dir(wal.path.with_extension(UNFINISHED)).expect("made");
    let first = wal.first();
    wal.drop_output(first, UnixMs(1), |bytes| format!("{bytes} bytes")).expect_err("it cannot be written");
    assert_eq!((wal.end(), all(&wal, ALL).len()), (Some(&b"the end"[..]), 4));
    assert_eq!(fs::read(&wal.path).expect("readable"), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn batches_of_any_size_hold_every_record_once(
        frames in prop::collection::vec(prop::collection::vec("[a-z]{0,40}", 1..5), 0..12),
        most_bytes in 1usize..200,
        most_frames in 1usize..6,
        from in 1u64..40,
    ) {
        let dir = TempDir::new().expect("a directory");
        let mut wal = Wal::create(dir.path(), opening()).expect("a log");
        let mut seq = 1;
        for lines in &frames {
            let lines: Vec<_> = lines.iter().map(|line| (Stream::Stdout, line.as_str())).collect();
            seq = wal.append(seq, &block(&lines)).expect("taken");
        }
        let expected: Vec<String> = frames.concat();
        prop_assert_eq!(all(&wal, Most { bytes: most_bytes, frames: most_frames }), expected.clone());
        if let Some(place) = wal.seek(from).expect("readable") {
            let rest = wal.read(place, ALL).expect("readable").map(|batch| texts(&batch.block)).unwrap_or_default();
            prop_assert_eq!(&rest[..], &expected[from as usize - 1..]);
        } else {
            prop_assert!(from > expected.len() as u64 + 1);
        }
    }
}
