//! What looking into a log promises: by time, by byte, by words.

use runvoy_model::log::Stream;
use runvoy_ports::log::{LogError, Search};
use runvoy_ports::search::Stop;

use super::{Line, append, block, execution, lines, numbered, record, varied};
use crate::chance::Chance;
use crate::harness::Logs;
use crate::stage::BEGINNING;

fn raw_len(line: &Line) -> u64 {
    if line.stream == Stream::Platform { 0 } else { line.bytes.len() as u64 + u64::from(line.eol) }
}

fn search(pattern: &str) -> Search {
    Search { pattern: pattern.into(), regex: false, from_line: 1, limit: 1_000, stream: None, stop: Stop::default() }
}

/// The first record at a time or later.
pub async fn a_line_is_found_by_its_time(harness: Logs<'_>) {
    let id = execution(1);
    assert_eq!(harness.store().line_at(id, BEGINNING).await.expect("a line"), 1, "an empty log has none: its next");
    let expected = varied(&*harness.store(), id, &mut Chance::new(4)).await;
    harness.store().sync(id).await.expect("a sync");
    let last = expected.last().expect("a record").at;
    for _ in 0..2 {
        for ms in -1..=last.ms_since(BEGINNING) + 2 {
            let at = BEGINNING.plus_ms(ms);
            let line = expected.iter().find(|line| line.at >= at).map_or(expected.len() as u64 + 1, |line| line.number);
            assert_eq!(harness.store().line_at(id, at).await.expect("a line"), line, "{ms} ms");
        }
        harness.reopen().await;
    }
}

/// Every byte of the raw output is found in its record; there is none beyond the end.
pub async fn a_byte_is_found_in_its_record(harness: Logs<'_>) {
    let id = execution(1);
    let expected = varied(&*harness.store(), id, &mut Chance::new(5)).await;
    harness.store().sync(id).await.expect("a sync");
    let end: u64 = expected.iter().map(raw_len).sum();
    for _ in 0..2 {
        for line in expected.iter().filter(|line| raw_len(line) > 0) {
            for offset in [line.raw_start, line.raw_start + raw_len(line) / 2, line.raw_start + raw_len(line) - 1] {
                let place = harness.store().raw_place(id, offset).await.expect("a place").expect("within the output");
                assert_eq!((place.line, place.line_start), (line.number, line.raw_start), "byte {offset}");
            }
        }
        assert_eq!(harness.store().raw_place(id, end).await.expect("a place"), None);
        assert_eq!(harness.store().raw_place(id, u64::MAX).await.expect("a place"), None);
        assert_eq!(harness.store().raw_place(execution(2), 0).await.expect("a place"), None);
        harness.reopen().await;
    }
}

/// A literal is found as it is, whatever it would mean as a pattern.
pub async fn a_literal_is_found_as_it_is(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    append(&*store, id, numbered(1, 1, lines(&["a.c", "abc", "A.C", "", "x a.c a.c"]))).await;
    let found = store.search(id, search("a.c")).await.expect("a search");
    assert_eq!((found.total, found.next_line), (2, None));
    assert_eq!(found.hits, [(1, b"a.c".to_vec()), (5, b"x a.c a.c".to_vec())]);
    let none = store.search(id, search("zzz")).await.expect("a search");
    assert_eq!((none.total, none.hits.len(), none.next_line), (0, 0, None));
    let empty = store.search(execution(2), search("a")).await.expect("a search");
    assert_eq!((empty.total, empty.next_line), (0, None));
}

/// A regular expression is one, also over bytes that are not UTF-8; a bad one is told.
pub async fn a_regular_expression_is_one(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let bytes: [&[u8]; 4] = [b"error 12", b"\xff\xfe error 7", b"errors", b"warning 3"];
    append(&*store, id, numbered(1, 1, block(bytes.map(|bytes| record(0, Stream::Stdout, bytes))))).await;
    let found = store.search(id, Search { regex: true, ..search(r"error \d+") }).await.expect("a search");
    assert_eq!(found.hits.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(found.hits[1].1, bytes[1]);
    let anchored = store.search(id, Search { regex: true, ..search("^error") }).await.expect("a search");
    assert_eq!(anchored.hits.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3]);
    let bad = store.search(id, Search { regex: true, ..search("(") }).await;
    let in_one_line = |why: &str| why.contains("unclosed group") && !why.contains('\n');
    assert!(matches!(&bad, Err(LogError::Pattern(why)) if in_one_line(why)), "{bad:?}");
}

/// By stream and from a line on.
pub async fn a_search_can_be_narrowed(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let streams = [Stream::Stdout, Stream::Stderr, Stream::Platform, Stream::Stderr];
    append(&*store, id, numbered(1, 1, block(streams.map(|stream| record(0, stream, b"hit"))))).await;
    let stderr = store.search(id, Search { stream: Some(Stream::Stderr), ..search("hit") }).await.expect("a search");
    assert_eq!(stderr.hits.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4]);
    let later = store.search(id, Search { from_line: 3, ..search("hit") }).await.expect("a search");
    assert_eq!((later.total, later.hits[0].0), (2, 3));
    let beyond = store.search(id, Search { from_line: 9, ..search("hit") }).await.expect("a search");
    assert_eq!(beyond.total, 0);
}

/// A search that is stopped says how far it came, and whoever goes on from there finds every hit once.
pub async fn a_stopped_search_says_where_to_go_on(harness: Logs<'_>) {
    let id = execution(1);
    for seq in 0..30u64 {
        append(&*harness.store(), id, numbered(1, seq * 3 + 1, lines(&["hay", "needle", "hay"]))).await;
    }
    harness.store().sync(id).await.expect("a sync");
    for regex in [false, true] {
        let (mut seen, mut counted, mut from, mut stopped) = (Vec::new(), 0, Some(1), 0);
        while let Some(from_line) = from {
            let what = Search { from_line, regex, ..search("needle") };
            what.stop.set();
            let found = harness.store().search(id, what).await.expect("a search");
            assert_eq!(found.next_line.is_some(), found.is_stopped, "from line {from_line}");
            assert!(found.next_line.is_none_or(|next| next > from_line), "it goes on from line {from_line}");
            counted += found.total;
            stopped += u64::from(found.is_stopped);
            seen.extend(found.hits.into_iter().map(|(line, _)| line));
            from = found.next_line;
        }
        assert_eq!((counted, seen), (30, (0..30).map(|seq| seq * 3 + 2).collect::<Vec<u64>>()));
        assert!(stopped > 0, "it was stopped");
        harness.reopen().await;
    }
}

/// All hits are counted, and those beyond the limit follow page by page, each once.
pub async fn hits_are_counted_and_paged(harness: Logs<'_>) {
    let id = execution(1);
    for seq in 0..100u64 {
        let text = if seq % 3 == 0 { "needle" } else { "hay" };
        append(&*harness.store(), id, numbered(1, seq * 2 + 1, lines(&[text, "stack"]))).await;
    }
    harness.store().sync(id).await.expect("a sync");
    for _ in 0..2 {
        let (mut seen, mut from) = (Vec::new(), Some(1));
        while let Some(from_line) = from {
            let found = harness.store().search(id, Search { from_line, limit: 5, ..search("needle") }).await.expect("a search");
            assert_eq!(found.total, 34 - seen.len() as u64, "counting goes on to the end");
            assert!(found.hits.len() <= 5);
            seen.extend(found.hits.into_iter().map(|(line, _)| line));
            from = found.next_line;
        }
        assert_eq!(seen, (0..100).filter(|seq| seq % 3 == 0).map(|seq| seq * 2 + 1).collect::<Vec<u64>>());
        harness.reopen().await;
    }
}
