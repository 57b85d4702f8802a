//! What an append promises: numbers over all attempts, nothing twice, no silent hole, bytes exactly.

use runvoy_model::log::{Block, MAX_RECORD_BYTES, Record, Stream};
use runvoy_ports::log::{Append, Appended, LogError};

use super::{append, block, execution, lines, numbered, read_all, record, texts};
use crate::harness::Logs;
use crate::stage::BEGINNING;

/// Records are numbered from 1 over all attempts; sequences begin anew with each.
pub async fn numbers_run_over_all_attempts(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    assert_eq!(append(&*store, id, numbered(1, 1, lines(&["a", "b"]))).await, Appended { next_line: 3, next_seq: 3 });
    assert_eq!(append(&*store, id, numbered(1, 3, lines(&["c"]))).await, Appended { next_line: 4, next_seq: 4 });
    assert_eq!(append(&*store, id, numbered(2, 1, lines(&["d", "e"]))).await, Appended { next_line: 6, next_seq: 3 });
    let read = read_all(&*store, id).await;
    let places: Vec<_> = read.iter().map(|line| (line.number, line.attempt, line.seq)).collect();
    assert_eq!(places, [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 1), (5, 2, 2)]);
}

/// The server's own lines have no sequence, stand between the others, and do not count as output.
pub async fn the_servers_own_lines_are_records_too(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let own = |text: &'static str| {
        let block = block([record(0, Stream::Platform, text.as_bytes())]);
        Append { attempt: 0, first_seq: None, late: false, block }
    };
    assert_eq!(append(&*store, id, own("### runvoy: queued")).await.next_line, 2);
    append(&*store, id, numbered(1, 1, lines(&["a"]))).await;
    assert_eq!(append(&*store, id, own("### runvoy: queued")).await.next_line, 4, "the same words twice are two lines");
    assert_eq!(append(&*store, id, numbered(1, 2, lines(&["b"]))).await, Appended { next_line: 5, next_seq: 3 });
    assert_eq!(texts(&*store, id).await, ["### runvoy: queued", "a", "### runvoy: queued", "b"]);
    assert_eq!(store.extent(id).await.expect("an extent").raw_bytes, 4);
}

/// What is there already is dropped, whole or in part, also after a reopen.
pub async fn a_repeat_is_dropped(harness: Logs<'_>) {
    let id = execution(1);
    let store = harness.store();
    append(&*store, id, numbered(1, 1, lines(&["a", "b", "c"]))).await;
    let whole = numbered(1, 1, lines(&["a", "b", "c"]));
    assert_eq!(append(&*store, id, whole.clone()).await, Appended { next_line: 4, next_seq: 4 });
    assert_eq!(append(&*store, id, numbered(1, 2, lines(&["b"]))).await, Appended { next_line: 4, next_seq: 4 });
    let partly = numbered(1, 2, lines(&["b", "c", "d", "e"]));
    assert_eq!(append(&*store, id, partly.clone()).await, Appended { next_line: 6, next_seq: 6 });
    store.sync(id).await.expect("a sync");
    drop(store);
    harness.reopen().await;
    let store = harness.store();
    for repeat in [whole, partly] {
        assert_eq!(append(&*store, id, repeat).await, Appended { next_line: 6, next_seq: 6 });
    }
    assert_eq!(texts(&*store, id).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(store.extent(id).await.expect("an extent").raw_bytes, 10);
}

/// An append of nothing writes nothing, and tells how far the log and the attempt are.
pub async fn an_append_of_nothing_tells_how_far_it_is(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let nothing = |attempt| numbered(attempt, 1, lines(&[]));
    assert_eq!(append(&*store, id, nothing(1)).await, Appended { next_line: 1, next_seq: 1 });
    append(&*store, id, numbered(1, 1, lines(&["a", "b", "c"]))).await;
    assert_eq!(append(&*store, id, nothing(1)).await, Appended { next_line: 4, next_seq: 4 });
    assert_eq!(append(&*store, id, nothing(2)).await, Appended { next_line: 4, next_seq: 1 });
    store.seal(id, 3).await.expect("a seal");
    assert_eq!(append(&*store, id, nothing(1)).await, Appended { next_line: 4, next_seq: 4 });
    assert_eq!(texts(&*store, id).await, ["a", "b", "c"]);
}

/// A hole is refused with what is missing, and nothing is written.
pub async fn a_gap_is_told(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let gap = |result: Result<Appended, LogError>| match result {
        Err(LogError::Gap { expected }) => expected,
        other => panic!("no gap: {other:?}"),
    };
    assert_eq!(gap(store.append(id, numbered(1, 2, lines(&["b"]))).await), 1);
    append(&*store, id, numbered(1, 1, lines(&["a"]))).await;
    assert_eq!(gap(store.append(id, numbered(1, 3, lines(&["c"]))).await), 2);
    assert_eq!(gap(store.append(id, numbered(2, 2, lines(&["b"]))).await), 1, "each attempt counts for itself");
    assert_eq!(texts(&*store, id).await, ["a"]);
}

/// An empty append writes nothing and tells where the log stands.
pub async fn an_empty_append_writes_nothing(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    append(&*store, id, numbered(1, 1, lines(&["a"]))).await;
    assert_eq!(append(&*store, id, numbered(1, 2, lines(&[]))).await, Appended { next_line: 2, next_seq: 2 });
    assert_eq!(texts(&*store, id).await, ["a"]);
}

/// NUL, invalid UTF-8, carriage returns, empty and longest records, unfinished lines: all come back exactly.
pub async fn bytes_come_back_exactly(harness: Logs<'_>) {
    let id = execution(1);
    let all: Vec<u8> = (0..=255).collect();
    let longest = vec![0xfe; MAX_RECORD_BYTES];
    let bytes: [&[u8]; 7] = [b"", b"\0", &all, b"\xff\xfe\xc3\x28", b"10%\r20%\r", &longest, "é\u{2028}".as_bytes()];
    let records: Vec<Record<'_>> = bytes
        .iter()
        .enumerate()
        .flat_map(|(number, bytes)| {
            let stream = if number % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
            [(false, true), (true, true), (false, false), (true, false)].map(|(cont, eol)| Record {
                cont,
                eol,
                ..record(i64::try_from(number).expect("small"), stream, bytes)
            })
        })
        .collect();
    append(&*harness.store(), id, numbered(1, 1, block(records.iter().copied()))).await;
    harness.store().sync(id).await.expect("a sync");
    for _ in 0..2 {
        let read = read_all(&*harness.store(), id).await;
        assert_eq!(read.len(), records.len());
        for (line, record) in read.iter().zip(&records) {
            let back = Record { at: line.at, stream: line.stream, cont: line.cont, eol: line.eol, bytes: &line.bytes };
            assert_eq!(back, *record);
        }
        harness.reopen().await;
    }
}

/// Two logs never mix, even if their ids differ in one digit and they are written in turns.
pub async fn two_logs_never_mix(harness: Logs<'_>) {
    let store = harness.store();
    let ids = [execution(1), execution(2), execution(3)];
    for seq in 1..=20u64 {
        for (number, id) in ids.iter().enumerate() {
            let text = format!("{number}-{seq}");
            append(&*store, *id, numbered(1, seq, lines(&[&text]))).await;
        }
    }
    for (number, id) in ids.iter().enumerate() {
        let expected: Vec<_> = (1..=20).map(|seq| format!("{number}-{seq}")).collect();
        assert_eq!(texts(&*store, *id).await, expected);
    }
}

/// What was synced is there after a reopen, with every number as before, and the log goes on.
pub async fn a_log_survives_a_reopen_and_goes_on(harness: Logs<'_>) {
    let id = execution(1);
    append(&*harness.store(), id, numbered(1, 1, lines(&["a", "b"]))).await;
    append(&*harness.store(), id, numbered(2, 1, lines(&["c"]))).await;
    let extent = harness.store().sync(id).await.expect("a sync");
    assert_eq!((extent.next_line, extent.first_line, extent.raw_bytes, extent.sealed), (4, 1, 6, false));
    let before = read_all(&*harness.store(), id).await;
    harness.reopen().await;
    assert_eq!(read_all(&*harness.store(), id).await, before);
    assert_eq!(harness.store().extent(id).await.expect("an extent"), extent);
    let on = append(&*harness.store(), id, numbered(2, 2, lines(&["d"]))).await;
    assert_eq!(on, Appended { next_line: 5, next_seq: 3 });
}

/// The output of a lapsed attempt is kept in its order, marked late.
pub async fn late_output_is_marked(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    append(&*store, id, numbered(1, 1, lines(&["a"]))).await;
    append(&*store, id, numbered(2, 1, lines(&["b"]))).await;
    append(&*store, id, Append { late: true, ..numbered(1, 2, lines(&["c"])) }).await;
    append(&*store, id, numbered(2, 2, lines(&["d"]))).await;
    let late: Vec<_> = read_all(&*store, id).await.into_iter().map(|line| (line.number, line.attempt, line.seq, line.late)).collect();
    assert_eq!(late, [(1, 1, 1, false), (2, 2, 1, false), (3, 1, 2, true), (4, 2, 2, false)]);
}

/// Many writers of one attempt at the same time (a repeat racing its original) leave each record once.
pub async fn racing_repeats_leave_each_record_once(harness: Logs<'_>) {
    let id = execution(1);
    let blocks: Vec<Block> = (0..10).map(|number| lines(&[&format!("{number}a"), &format!("{number}b")])).collect();
    for (number, block) in blocks.iter().enumerate() {
        let racing: Vec<_> = (0..8)
            .map(|_| {
                let (store, append) = (harness.store(), numbered(1, number as u64 * 2 + 1, block.clone()));
                tokio::spawn(async move { store.append(id, append).await })
            })
            .collect();
        for one in racing {
            assert_eq!(one.await.expect("no panic").expect("an append").next_seq, number as u64 * 2 + 3);
        }
    }
    assert_eq!(texts(&*harness.store(), id).await.len(), 20);
}

/// Times never go back: not between writers whose clocks differ, not where a clock is set back, not in the next attempt, and not by a repeat.
pub async fn times_never_go_back(harness: Logs<'_>) {
    let id = execution(1);
    let at = |times: &[i64]| block(times.iter().map(|ms| record(*ms, Stream::Stdout, b"x")));
    let own = |ms| Append { attempt: 0, first_seq: None, late: false, block: block([record(ms, Stream::Platform, b"### runvoy: note")]) };
    append(&*harness.store(), id, own(50)).await;
    append(&*harness.store(), id, numbered(1, 1, at(&[10, 60, 40]))).await;
    append(&*harness.store(), id, own(55)).await;
    harness.store().sync(id).await.expect("a sync");
    harness.reopen().await;
    append(&*harness.store(), id, numbered(1, 1, at(&[10, 60, 40, 20, 70]))).await;
    append(&*harness.store(), id, numbered(2, 1, at(&[5, 80]))).await;
    let times = |read: Vec<super::Line>| read.iter().map(|line| line.at.ms_since(BEGINNING)).collect::<Vec<_>>();
    let expected = [50, 50, 60, 60, 60, 60, 70, 70, 80];
    assert_eq!(times(read_all(&*harness.store(), id).await), expected);
    // Job events are compared with what stands there: they keep the times that they were sent with.
    append(&*harness.store(), id.event_log(), numbered(1, 1, at(&[30, 20]))).await;
    append(&*harness.store(), id.event_log(), numbered(1, 3, at(&[10]))).await;
    assert_eq!(times(read_all(&*harness.store(), id.event_log()).await), [30, 20, 10]);
}
