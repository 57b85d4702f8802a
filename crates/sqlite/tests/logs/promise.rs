//! Single promises of the port and of the files, one by one.

use runvoy_model::log::Stream;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, LogError, LogStore, Search};
use runvoy_ports::search::Stop;
use runvoy_sqlite::logs::{Config, FileLogStore};

use crate::kit::{Line, append, block, count, id, in_order, lines, open, quick, read_all, run, small, whole, with_extension};

#[test]
fn a_log_that_was_never_written_is_empty() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = open(dir.path());
        let extent = store.extent(id(1)).await.expect("extent");
        assert_eq!((extent.first_line, extent.next_line, extent.raw_bytes, extent.sealed), (1, 1, 0, false));
        assert!(store.read(id(1), 1, 1000).await.expect("reads").is_empty());
        assert!(store.read(id(1), 50, 1000).await.expect("reads").is_empty());
        assert_eq!(store.line_at(id(1), UnixMs(0)).await.expect("line_at"), 1);
        assert_eq!(store.raw_place(id(1), 0).await.expect("raw_place"), None);
        assert_eq!(store.sync(id(1)).await.expect("syncs").next_line, 1);
    });
}

#[test]
fn a_repeat_is_dropped_and_a_gap_told_also_after_a_restart_and_in_a_packed_log() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let mut store = open(dir.path());
        store.append(id(1), append(1, Some(1), &lines(1, 10))).await.expect("appends");
        for stage in ["written", "reopened", "sealed", "packed", "packed and reopened"] {
            let again = store.append(id(1), append(1, Some(4), &lines(4, 7))).await.expect("repeat");
            assert_eq!((again.next_line, again.next_seq), (11, 11), "{stage}");
            let gap = store.append(id(1), append(1, Some(12), &lines(12, 1))).await;
            assert!(matches!(gap, Err(LogError::Gap { expected: 11 })), "{stage}: {gap:?}");
            let other = store.append(id(1), append(2, Some(2), &lines(1, 1))).await;
            assert!(matches!(other, Err(LogError::Gap { expected: 1 })), "{stage}: {other:?}");
            assert_eq!(whole(&store, id(1)).await, lines(1, 10), "{stage}");
            match stage {
                "written" | "packed" => {
                    drop(store);
                    store = open(dir.path());
                }
                "reopened" => store.seal(id(1), 10).await.expect("seals"),
                "sealed" => {
                    store.compact().expect("compacts");
                    assert_eq!(store.usage().expect("usage").packs, 1);
                }
                _ => {}
            }
        }
        let overlap = store.append(id(1), append(1, Some(9), &lines(9, 4))).await.expect("overlap");
        assert_eq!((overlap.next_line, overlap.next_seq), (13, 13));
        assert_eq!(whole(&store, id(1)).await, lines(1, 12));
    });
}

#[test]
fn what_comes_after_the_seal_is_kept_and_marked_late() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = open(dir.path());
        store.append(id(1), append(1, Some(1), &lines(1, 3))).await.expect("appends");
        store.append(id(1), Append { attempt: 2, first_seq: Some(1), late: true, block: block(&lines(4, 1)) }).await.expect("appends");
        store.seal(id(1), 4).await.expect("seals");
        store.seal(id(1), 4).await.expect("a repeated seal is fine");
        store.append(id(1), append(1, Some(4), &lines(5, 1))).await.expect("appends");
        store.compact().expect("compacts");
        store.append(id(1), append(1, Some(5), &lines(6, 1))).await.expect("appends");
        let chunks = store.read(id(1), 1, 1 << 20).await.expect("reads");
        let late: Vec<_> = chunks.iter().map(|chunk| (chunk.first_line, chunk.attempt, chunk.first_seq, chunk.late)).collect();
        assert_eq!(late, [(1, 1, 1, false), (4, 2, 1, true), (5, 1, 4, true), (6, 1, 5, true)]);
        store.compact().expect("compacts");
        assert_eq!(whole(&store, id(1)).await, lines(1, 6));
        let extent = store.extent(id(1)).await.expect("extent");
        assert!(extent.sealed && extent.lost_records == 0);
    });
}

#[test]
fn hostile_bytes_come_back_exactly() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = open(dir.path());
        let mut hostile = vec![
            Line::new(0, vec![0u8; 300]),
            Line::new(0, (0..=255u8).collect::<Vec<_>>()),
            Line::new(0, b"\xff\xfe\xc3\x28".to_vec()),
            Line::new(0, b"progress 1%\rprogress 2%\r".to_vec()),
            Line::new(-62_000_000_000_000, b"RVE1RVE1RVE1".to_vec()),
            Line::new(253_000_000_000_000, Vec::new()),
        ];
        hostile.push(Line { eol: false, stream: Stream::Stderr, ..Line::new(-1, "prompt> ") });
        store.append(id(1), append(1, Some(1), &hostile)).await.expect("appends");
        assert_eq!(whole(&store, id(1)).await, in_order(&hostile));
        store.seal(id(1), hostile.len() as u64).await.expect("seals");
        store.compact().expect("compacts");
        assert_eq!(whole(&store, id(1)).await, in_order(&hostile));
    });
}

#[test]
fn a_huge_line_is_ordinary_input() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(dir.path(), Config { reserve_bytes: 0, ..Config::default() }, quick()).expect("opens");
        let pieces = count(200, 1600) as u64;
        let piece = |n: u64, pieces: u64| Line { cont: n > 0, eol: n + 1 == pieces, ..Line::new(5, vec![(n % 251) as u8; 64 << 10]) };
        let mut sent = 0;
        while sent < pieces {
            let batch: Vec<_> = (sent..(sent + 40).min(pieces)).map(|n| piece(n, pieces)).collect();
            store.append(id(1), append(1, Some(sent + 1), &batch)).await.expect("appends");
            sent += batch.len() as u64;
        }
        store.seal(id(1), pieces).await.expect("seals");
        store.settle();
        assert!(!with_extension(dir.path(), "segz").is_empty() && with_extension(dir.path(), "seg").is_empty());
        let extent = store.extent(id(1)).await.expect("extent");
        assert_eq!((extent.next_line, extent.raw_bytes), (pieces + 1, pieces * (64 << 10) + 1));
        let mut line = 1;
        while let Some(last) = store.read(id(1), line, 1 << 20).await.expect("reads").last() {
            for chunk in store.read(id(1), line, 1 << 20).await.expect("reads") {
                for record in chunk.block.records() {
                    assert_eq!(Line::from(record.expect("record")), piece(line - 1, pieces));
                    line += 1;
                }
            }
            assert_eq!(line, last.next_line());
        }
        assert_eq!(line, pieces + 1);
        let place = store.raw_place(id(1), 150 * (64 << 10) + 7).await.expect("raw_place").expect("inside");
        assert_eq!((place.line, place.line_start), (151, 150 * (64 << 10)));
    });
}

#[test]
fn a_long_log_keeps_a_small_index_and_any_line_is_found() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(dir.path(), Config { reserve_bytes: 0, segment_bytes: 4 << 20, ..Config::default() }, quick())
            .expect("opens");
        let total = count(100_000, 10_000_000) as u64;
        let text = |n: u64| Line::new(n as i64, format!("{n:063}"));
        let mut sent = 0;
        while sent < total {
            let batch: Vec<_> = (sent + 1..=(sent + 2000).min(total)).map(text).collect();
            sent = store.append(id(1), append(1, Some(sent + 1), &batch)).await.expect("appends").next_line - 1;
        }
        let bytes = total * 66;
        for stage in ["open", "compressed", "reopened"] {
            let points = store.usage().expect("usage").index_points;
            assert!(points * 32 <= bytes / 2000 + 64, "{stage}: {points} points for {bytes} bytes");
            for line in [1, 2, 1999, 2001, total / 2, total - 1, total] {
                let chunk = store.read(id(1), line, 1).await.expect("reads").remove(0);
                let record = chunk.block.records().next().expect("one").expect("good");
                assert_eq!((chunk.first_line, Line::from(record)), (line, text(line)), "{stage}");
                assert_eq!(store.line_at(id(1), UnixMs(line as i64)).await.expect("line_at"), line, "{stage}");
                let place = store.raw_place(id(1), (line - 1) * 64 + 63).await.expect("raw_place").expect("inside");
                assert_eq!((place.line, place.line_start), (line, (line - 1) * 64), "{stage}");
            }
            let search = Search {
                pattern: format!("{:020}$", total - 3),
                regex: true,
                from_line: total / 2,
                limit: 5,
                stream: None,
                stop: Stop::default(),
            };
            let found = store.search(id(1), search).await.expect("searches");
            assert_eq!((found.total, found.hits[0].0, found.next_line), (1, total - 3, None), "{stage}");
            if stage == "open" {
                store.seal(id(1), total).await.expect("seals");
                store.settle();
            }
        }
    });
}

#[test]
fn large_hits_come_in_several_answers() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = open(dir.path());
        let large: Vec<_> = (0..40).map(|n| Line::new(n, vec![b'x'; 64 << 10])).collect();
        store.append(id(1), append(1, Some(1), &large)).await.expect("appends");
        let (mut from_line, mut lines, mut left) = (Some(1), Vec::new(), 40);
        while let Some(line) = from_line {
            let search = Search { pattern: "x".into(), regex: false, from_line: line, limit: 1000, stream: None, stop: Stop::default() };
            let found = store.search(id(1), search).await.expect("searches");
            assert_eq!(found.total, left, "all are counted");
            assert!((1..=16).contains(&found.hits.len()), "{} hits at once", found.hits.len());
            left -= found.hits.len() as u64;
            lines.extend(found.hits.into_iter().map(|(line, _)| line));
            from_line = found.next_line;
        }
        assert_eq!(lines, (1..=40).collect::<Vec<_>>());
    });
}

#[test]
fn hostile_patterns_are_refused_or_harmless() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = open(dir.path());
        store.append(id(1), append(1, Some(1), &[Line::new(0, vec![b'a'; 60_000]), Line::new(0, "b [x")])).await.expect("appends");
        let search = |pattern: &str, regex| {
            store.search(id(1), Search { pattern: pattern.into(), regex, from_line: 0, limit: 10, stream: None, stop: Stop::default() })
        };
        for bad in ["(", "a{1000}{1000}{1000}", "[x", "(?-u:\\xff", &"x".repeat(10_000), &"(".repeat(3000), "\\p{Nonsense}"] {
            assert!(matches!(search(bad, true).await, Err(LogError::Pattern(_))), "{}", &bad[..bad.len().min(20)]);
        }
        assert_eq!(search("(a*)*b", true).await.expect("linear").hits, [(2, b"b [x".to_vec())]);
        assert_eq!(search("(x+x+)+y", true).await.expect("linear").total, 0);
        assert_eq!(search("[x", false).await.expect("a literal").total, 1);
        assert_eq!(search("", false).await.expect("everything").total, 2);
    });
}

#[test]
fn memory_does_not_grow_with_the_number_of_executions() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let config = Config { journal_bytes: 256 << 10, remembered_logs: 64, reserve_bytes: 0, ..Config::default() };
        let store = FileLogStore::open_with(dir.path(), config.clone(), quick()).expect("opens");
        let executions = count(6000, 100_000) as u64;
        for n in 0..executions {
            store.append(id(n), append(1, Some(1), &[Line::new(n as i64, format!("hello from {n}"))])).await.expect("appends");
            store.seal(id(n), 1).await.expect("seals");
        }
        store.settle();
        let check = async |store: &FileLogStore, stage: &str| {
            let usage = store.usage().expect("usage");
            assert!(usage.journal_logs < 1500, "{stage}: {usage:?}");
            assert!(usage.loaded_logs <= 70, "{stage}: {usage:?}");
            assert!(usage.tail_bytes == 0 && usage.index_points == 0 && usage.big_logs == 0, "{stage}: {usage:?}");
            assert!(usage.packs >= executions / 2000, "{stage}: {usage:?}");
            for n in [0, 1, executions / 3, executions / 2, executions - 2, executions - 1] {
                assert_eq!(whole(store, id(n)).await, [Line::new(n as i64, format!("hello from {n}"))], "{stage}");
            }
        };
        check(&store, "running").await;
        drop(store);
        let store = FileLogStore::open_with(dir.path(), config, quick()).expect("opens");
        check(&store, "reopened").await;
        let damage = store.verify().expect("verifies").damage;
        assert!(damage.is_empty(), "{damage:?}");
    });
}

#[test]
fn an_open_log_that_nobody_uses_costs_a_place_in_the_index_and_no_more() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let config = Config { open_logs: 50, remembered_logs: 20, reserve_bytes: 0, ..Config::default() };
        let store = FileLogStore::open_with(dir.path(), config.clone(), quick()).expect("opens");
        let logs = count(20_000, 200_000) as u64;
        for n in 0..logs {
            store.append(id(n), append(0, None, &[Line::new(0, format!("{n} waits"))])).await.expect("appends");
        }
        let usage = store.usage().expect("usage");
        assert_eq!((usage.journal_logs, usage.big_logs), (logs, 0), "{usage:?}");
        assert!(usage.loaded_logs <= 70, "{usage:?}");
        assert!(usage.tail_bytes < 50 * 500, "{usage:?}");
        let some = [0, 1, logs / 3, logs - 51, logs - 1];
        for n in some {
            // Read before it is written again: this one comes from the files.
            assert_eq!(whole(&store, id(n)).await, [Line::new(0, format!("{n} waits"))]);
            let appended = store.append(id(n), append(1, Some(1), &[Line::new(1, "runs")])).await.expect("appends");
            assert_eq!((appended.next_line, appended.next_seq), (3, 2));
        }
        for n in (0..logs).step_by(37) {
            store.extent(id(n)).await.expect("stands");
        }
        for n in some {
            // A repeat of what was sent before the log was forgotten is still known, and so is a gap.
            let again = store.append(id(n), append(1, Some(1), &[Line::new(1, "runs")])).await.expect("repeats");
            assert_eq!(again.next_line, 3);
            let gap = store.append(id(n), append(1, Some(3), &[Line::new(1, "?")])).await;
            assert!(matches!(gap, Err(LogError::Gap { expected: 2 })), "{gap:?}");
            store.append(id(n), append(1, Some(2), &[Line::new(2, "ends")])).await.expect("appends");
            let followed = store.read(id(n), 3, 1 << 20).await.expect("the new line alone");
            assert_eq!((followed.len(), followed[0].first_line, followed[0].block.count), (1, 3, 1));
            store.seal(id(n), 3).await.expect("seals");
        }
        let usage = store.usage().expect("usage");
        assert!(usage.loaded_logs <= 70, "{usage:?}");
        drop(store);
        let store = FileLogStore::open_with(dir.path(), config, quick()).expect("opens");
        for n in some {
            let expected = [Line::new(0, format!("{n} waits")), Line::new(1, "runs"), Line::new(2, "ends")];
            assert_eq!(whole(&store, id(n)).await, expected);
        }
    });
}

#[test]
fn open_logs_with_files_of_their_own_do_not_keep_them_open() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let config = Config { open_logs: 10, remembered_logs: 10, reserve_bytes: 0, ..Config::default() };
        let store = FileLogStore::open_with(dir.path(), config, quick()).expect("opens");
        let logs = 600;
        for n in 0..logs {
            store.append(id(n), append(1, Some(1), &[Line::new(0, format!("{n} begins"))])).await.expect("appends");
        }
        store.compact().expect("compacts");
        // Every use makes some room.
        for n in 0..logs {
            store.extent(id(n)).await.expect("stands");
        }
        let usage = store.usage().expect("usage");
        assert_eq!((usage.journal_logs, usage.big_logs, usage.packs), (0, 0, 1), "{usage:?}");
        assert!(usage.loaded_logs <= 20, "{usage:?}");
        for n in 0..logs {
            store.append(id(n), append(1, Some(2), &[Line::new(1, "goes on")])).await.expect("appends");
            assert_eq!(whole(&store, id(n)).await, [Line::new(0, format!("{n} begins")), Line::new(1, "goes on")]);
        }
        // What is more than a beginning gets files of its own, and they do not stay open.
        store.compact().expect("compacts");
        for n in 0..logs {
            store.extent(id(n)).await.expect("stands");
        }
        let usage = store.usage().expect("usage");
        assert_eq!((usage.journal_logs, usage.big_logs, usage.packs), (0, logs, 1), "{usage:?}");
        assert!(usage.loaded_logs <= 20, "{usage:?}");
        let open = std::fs::read_dir("/proc/self/fd").expect("fds").filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        let ours = open.filter(|path| path.starts_with(dir.path().join("big"))).count();
        assert!(ours <= 20, "{ours}");
        assert_eq!(whole(&store, id(7)).await, [Line::new(0, "7 begins"), Line::new(1, "goes on")]);
    });
}

#[test]
fn bytes_that_were_not_flushed_keep_their_file_open_until_they_are() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(dir.path(), Config { open_logs: 2, ..small() }, quick()).expect("opens");
        let much = [Line::new(0, vec![b'a'; 7_000])];
        for n in 0..20 {
            store.append(id(n), append(1, Some(1), &much)).await.expect("appends");
        }
        let usage = store.usage().expect("usage");
        assert_eq!((usage.big_logs, usage.loaded_logs), (20, 20), "{usage:?}");
        for n in 0..20 {
            store.sync(id(n)).await.expect("syncs");
        }
        for n in 0..20 {
            store.extent(id(n)).await.expect("stands");
        }
        let usage = store.usage().expect("usage");
        assert!(usage.loaded_logs <= 10, "{usage:?}");
        assert_eq!(whole(&store, id(0)).await, much);
    });
}

#[test]
fn an_append_is_visible_at_once_and_reading_needs_no_sync() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(dir.path(), Config { tails_bytes: 0, ..small() }, quick()).expect("opens");
        for n in 1..200 {
            store.append(id(1), append(1, Some(n), &lines(n, 1))).await.expect("appends");
            let (read, error) = read_all(&store, id(1), n, 10).await;
            assert!(error.is_none() && read.len() == 1 && read[0].1 == lines(n, 1)[0]);
        }
        assert_eq!(store.usage().expect("usage").tail_bytes, 0, "read from the files, not from memory");
    });
}

#[test]
fn closing_flushes_and_then_nothing_is_accepted() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open(dir.path(), small()).expect("opens");
        store.append(id(1), append(1, Some(1), &lines(1, 5))).await.expect("appends");
        store.close().expect("closes");
        store.close().expect("closing twice is fine");
        assert!(matches!(store.append(id(1), append(1, Some(6), &lines(6, 1))).await, Err(LogError::Storage(_))));
        assert!(matches!(store.sync(id(1)).await, Err(LogError::Storage(_))));
        assert!(matches!(store.prune(UnixMs(i64::MAX)).await, Err(LogError::Storage(_))));
        assert_eq!(whole(&store, id(1)).await, lines(1, 5));
    });
}
