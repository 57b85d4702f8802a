//! Random histories against a plain list of lines: appends of several executions and attempts, repeats, seals, late output,
//! rotation, spilling, packing, compression and restarts. Whatever the files do meanwhile, a reader must see the list.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use runvoy_model::log::Stream;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogStore, Search};
use runvoy_ports::search::Stop;
use runvoy_sqlite::logs::FileLogStore;

use crate::kit::{Dice, Line, append, count, id, in_order, open, read_all, run};

#[derive(Debug, Clone)]
enum Op {
    Append { log: u64, attempt: u32, numbered: bool, again: u64, lines: Vec<Line> },
    Seal { log: u64 },
    Reopen,
    Compact,
    Settle,
    Read { log: u64, from: u64, max_bytes: usize },
}

#[derive(Debug, Default, Clone)]
struct Model {
    lines: Vec<Line>,
    sent: [Vec<Line>; 3],
    sealed: Option<u64>,
}

const LOGS: u64 = 4;

fn line() -> impl Strategy<Value = Line> {
    let stream = prop_oneof![4 => Just(Stream::Stdout), 2 => Just(Stream::Stderr), 1 => Just(Stream::Platform)];
    let bytes = prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::collection::vec(any::<u8>(), 500..1500),
        1 => Just(b"a needle in it".to_vec()),
    ];
    (0i64..50_000, stream, any::<bool>(), any::<bool>(), bytes).prop_map(|(at, stream, cont, eol, bytes)| Line {
        at,
        stream,
        cont,
        eol,
        bytes,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..LOGS, 0u32..3, any::<bool>(), 0u64..4, prop::collection::vec(line(), 1..12))
            .prop_map(|(log, attempt, numbered, again, lines)| Op::Append { log, attempt, numbered, again, lines }),
        2 => (0..LOGS).prop_map(|log| Op::Seal { log }),
        1 => Just(Op::Reopen),
        1 => Just(Op::Compact),
        1 => Just(Op::Settle),
        4 => (0..LOGS, 0u64..300, prop_oneof![Just(1usize), 10usize..5000, Just(1 << 20)])
            .prop_map(|(log, from, max_bytes)| Op::Read { log, from, max_bytes }),
    ]
}

async fn play(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut models = vec![Model::default(); LOGS as usize];
    let mut store = open(dir.path());
    for op in ops {
        match op {
            Op::Append { log, attempt, numbered, again, lines } => {
                write(&store, &mut models[log as usize], (log, attempt, numbered, again), lines).await?;
            }
            Op::Seal { log } => {
                let model = &mut models[log as usize];
                let end = model.lines.len() as u64;
                store.seal(id(log), end).await.expect("seals");
                model.sealed.get_or_insert(end);
            }
            Op::Reopen => {
                drop(store);
                store = open(dir.path());
            }
            Op::Compact => store.compact().expect("compacts"),
            Op::Settle => store.settle(),
            Op::Read { log, from, max_bytes } => {
                let (read, error) = read_all(&store, id(log), from.max(1), max_bytes).await;
                prop_assert!(error.is_none(), "{error:?}");
                let expected = models[log as usize].lines.iter().cloned().enumerate().map(|(i, line)| (i as u64 + 1, line));
                prop_assert_eq!(read, expected.filter(|(line, _)| *line >= from).collect::<Vec<_>>());
            }
        }
    }
    for (log, model) in models.iter().enumerate() {
        compare(&store, log as u64, model).await?;
    }
    drop(store);
    let store = open(dir.path());
    store.compact().expect("compacts");
    store.settle();
    for (log, model) in models.iter().enumerate() {
        compare(&store, log as u64, model).await?;
    }
    let verified = store.verify().expect("verifies");
    prop_assert!(verified.damage.is_empty(), "{:?}", verified.damage);
    Ok(())
}

async fn write(
    store: &FileLogStore,
    model: &mut Model,
    (log, attempt, numbered, again): (u64, u32, bool, u64),
    lines: Vec<Line>,
) -> Result<(), TestCaseError> {
    let sent = &mut model.sent[attempt as usize];
    // The writer sends its last lines once more, as after a lost answer.
    let again = if numbered { again.min(sent.len() as u64) } else { 0 };
    let mut batch = sent[sent.len() - again as usize..].to_vec();
    batch.extend(lines.iter().cloned());
    let first_seq = numbered.then_some(sent.len() as u64 + 1 - again);
    let appended = store.append(id(log), append(attempt, first_seq, &batch)).await.expect("appends");
    if numbered {
        sent.extend(lines.iter().cloned());
    }
    model.lines.extend(lines);
    model.lines = in_order(&model.lines);
    prop_assert_eq!(appended.next_line, model.lines.len() as u64 + 1);
    prop_assert_eq!(appended.next_seq, model.sent[attempt as usize].len() as u64 + 1);
    Ok(())
}

async fn compare(store: &FileLogStore, log: u64, model: &Model) -> Result<(), TestCaseError> {
    let id = id(log);
    let lines = &model.lines;
    let extent = store.extent(id).await.expect("extent");
    let raw_bytes: u64 = lines.iter().map(Line::raw_len).sum();
    prop_assert_eq!((extent.first_line, extent.next_line), (1, lines.len() as u64 + 1));
    prop_assert_eq!((extent.raw_bytes, extent.sealed, extent.lost_records), (raw_bytes, model.sealed.is_some(), 0));
    let (read, error) = read_all(store, id, 1, 3000).await;
    prop_assert!(error.is_none(), "{error:?}");
    prop_assert_eq!(&read.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), lines);

    let mut dice = Dice(0x5eed + log);
    for _ in 0..12 {
        let at = dice.below(50_001) as i64;
        let expected = lines.iter().position(|line| line.at >= at).unwrap_or(lines.len()) as u64 + 1;
        prop_assert_eq!(store.line_at(id, UnixMs(at)).await.expect("line_at"), expected, "time {}", at);
        let offset = dice.below(raw_bytes + 10);
        let place = store.raw_place(id, offset).await.expect("raw_place").map(|place| (place.line, place.line_start));
        prop_assert_eq!(place, place_of(lines, offset), "offset {}", offset);
    }
    for regex in [false, true] {
        let search =
            Search { pattern: "a needle".into(), regex, from_line: 3, limit: 2, stream: Some(Stream::Stdout), stop: Stop::default() };
        let found = store.search(id, search).await.expect("searches");
        let hits: Vec<u64> = (1..)
            .zip(lines)
            .filter(|(line, l)| *line >= 3 && l.stream == Stream::Stdout && l.bytes.starts_with(b"a needle"))
            .map(|(line, _)| line)
            .collect();
        prop_assert_eq!(found.total, hits.len() as u64);
        prop_assert_eq!(found.hits.iter().map(|(line, _)| *line).collect::<Vec<_>>(), hits.iter().take(2).copied().collect::<Vec<_>>());
        prop_assert_eq!(found.next_line, hits.get(2).copied());
    }
    Ok(())
}

fn place_of(lines: &[Line], offset: u64) -> Option<(u64, u64)> {
    let mut start = 0;
    for (number, line) in (1..).zip(lines) {
        if offset < start + line.raw_len() {
            return Some((number, start));
        }
        start += line.raw_len();
    }
    None
}

#[test]
fn whatever_the_files_do_a_reader_sees_the_lines_that_were_written() {
    let cases = u32::try_from(count(48, 2000)).expect("small");
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 400, ..ProptestConfig::default() };
    proptest!(config, |(ops in prop::collection::vec(op(), 1..90))| run(play(ops))?);
}
