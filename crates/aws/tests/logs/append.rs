//! What is particular about appending here: blocks that no item can hold, two servers at one log, answers that are lost, the limit.

use runvoy_aws::LogConfig;
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, LogError, LogStore};

use super::stage::{block, execution, installation, items, lines, numbered, open, packing, read_all, read_from};
use crate::emulator::fault::{Faults, Kind};
use crate::emulator::{Emulator, clients_through};

async fn a_block_larger_than_an_item_is_cut(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let (store, id, all) = (open(&clients, &config, LogConfig::default()), execution(), lines(1, 130, 60_000));
    // More than a transaction holds, too.
    let whole = numbered(1, 1, block(0, &all));
    assert_eq!(store.append(id, whole.clone()).await.expect("an append"), Appended { next_line: 131, next_seq: 131 });
    assert!(items(&clients, &config, id).await.len() > 20);
    let other = open(&clients, &config, LogConfig::default());
    assert_eq!(other.append(id, whole).await.expect("a repeat"), Appended { next_line: 131, next_seq: 131 });
    let read = read_all(&other, id).await;
    assert_eq!(read.iter().map(|line| &line.4).collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
    for offset in [0, 60_000, 60_001, 5_000_000, 130 * 60_001 - 1] {
        let place = other.raw_place(id, offset).await.expect("a place").expect("within the output");
        assert_eq!((place.line, place.line_start), (offset / 60_001 + 1, offset / 60_001 * 60_001));
    }
    assert_eq!(other.raw_place(id, 130 * 60_001).await.expect("a place"), None);
    assert_eq!(other.line_at(id, UnixMs(77)).await.expect("a line"), 78);
    assert_eq!(read_from(&other, id, 129, 1).await.len(), 2, "from within a piece, one by one");
    // A writer that does not number sends as much.
    let unnumbered = Append { attempt: 0, first_seq: None, late: false, block: block(0, &all) };
    assert_eq!(store.append(id, unnumbered).await.expect("an append").next_line, 261);
    assert_eq!(read_from(&store, id, 131, 1 << 20).await.into_iter().map(|line| line.4).collect::<Vec<_>>(), all);
}

#[tokio::test]
async fn a_block_larger_than_an_item_is_cut_on_ministack() {
    a_block_larger_than_an_item_is_cut(Emulator::ministack()).await;
}

#[tokio::test]
async fn a_block_larger_than_an_item_is_cut_on_moto() {
    a_block_larger_than_an_item_is_cut(Emulator::moto()).await;
}

async fn two_servers_append_to_one_log(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let id = execution();
    let own = |text: String| {
        let mut builder = BlockBuilder::default();
        builder.push(Record { at: UnixMs(0), stream: Stream::Platform, cont: false, eol: true, bytes: text.as_bytes() });
        Append { attempt: 0, first_seq: None, late: false, block: builder.take() }
    };
    let servers: Vec<_> = (1..=2u32)
        .map(|attempt| {
            let store = open(&clients, &config, LogConfig::default());
            tokio::spawn(async move {
                for seq in 0..25u64 {
                    let appended = store.append(id, numbered(attempt, 2 * seq + 1, block(0, &lines(2 * seq + 1, 2, 30)))).await;
                    assert_eq!(appended.expect("an append").next_seq, 2 * seq + 3);
                    store.append(id, own(format!("### runvoy: {attempt} {seq}"))).await.expect("an append");
                    // The other server sends what this one has, as a worker does that was led elsewhere.
                    let gap = store.append(id, numbered(3 - attempt, 1_000, block(0, &lines(1, 1, 30)))).await;
                    assert!(matches!(gap, Err(LogError::Gap { .. })), "{gap:?}");
                }
            })
        })
        .collect();
    for server in servers {
        server.await.expect("no panic");
    }
    let store = open(&clients, &config, LogConfig::default());
    let read = read_all(&store, id).await;
    assert_eq!(read.len(), 2 * (50 + 25));
    for attempt in 1..=2 {
        let texts: Vec<_> = read.iter().filter(|line| line.2 == attempt).map(|line| line.4.clone()).collect();
        assert_eq!(texts, lines(1, 50, 30), "attempt {attempt}");
        let marks = read.iter().filter(|line| line.4.starts_with(format!("### runvoy: {attempt}").as_bytes())).count();
        assert_eq!(marks, 25);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_append_to_one_log_on_ministack() {
    two_servers_append_to_one_log(Emulator::ministack()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_append_to_one_log_on_moto() {
    two_servers_append_to_one_log(Emulator::moto()).await;
}

/// A second server goes on where the first stood, and the first then judges by what the second wrote.
#[tokio::test]
async fn a_server_that_knew_less_judges_anew() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let (first, second, id) = (open(&clients, &config, packing()), open(&clients, &config, packing()), execution());
    let line = |seq| numbered(1, seq, block(0, &lines(seq, 1, 20)));
    first.append(id, line(1)).await.expect("an append");
    second.append(id, line(2)).await.expect("an append");
    assert_eq!(first.append(id, line(3)).await.expect("no gap"), Appended { next_line: 4, next_seq: 4 });
    assert_eq!(second.append(id, line(3)).await.expect("a repeat").next_seq, 4);
    second.seal(id, 3).await.expect("a seal");
    first.append(id, line(4)).await.expect("an append");
    assert_eq!(read_all(&first, id).await.iter().map(|line| line.3).collect::<Vec<_>>(), [false, false, false, true]);
}

/// Lines without a number are written once, though the answer to them is lost again and again.
async fn a_lost_answer_doubles_nothing(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let faults = Faults::seeded(5).with(Kind::LostAnswer, 300);
    let (store, id) = (open(&clients_through(emulator, &faults).await, &config, LogConfig::default()), execution());
    let mut unknown = 0;
    for number in 0..40 {
        let append = Append { attempt: 0, first_seq: None, late: false, block: block(0, &lines(number, 1, 20)) };
        // All answers to one call can be lost: whoever is told so does not know.
        unknown += usize::from(store.append(id, append).await.is_err());
    }
    assert!(faults.happened(Kind::LostAnswer) > 5 && unknown < 20);
    let mut read: Vec<_> = read_all(&open(&clients, &config, LogConfig::default()), id).await.into_iter().map(|line| line.4).collect();
    let count = read.len();
    assert!((40 - unknown..=40).contains(&count), "{count} lines, {unknown} unknown");
    read.dedup();
    assert_eq!(read.len(), count, "a line is there twice");
}

#[tokio::test]
async fn a_lost_answer_doubles_nothing_on_ministack() {
    a_lost_answer_doubles_nothing(Emulator::ministack()).await;
}

#[tokio::test]
async fn a_lost_answer_doubles_nothing_on_moto() {
    a_lost_answer_doubles_nothing(Emulator::moto()).await;
}

#[tokio::test]
async fn a_full_log_takes_only_the_platforms_own_lines() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let (store, id) = (open(&clients, &config, LogConfig { max_log_bytes: 10_000, ..LogConfig::default() }), execution());
    store.append(id, numbered(1, 1, block(0, &lines(1, 9, 1_000)))).await.expect("an append");
    let more = numbered(1, 10, block(0, &lines(10, 1, 1_000)));
    for _ in 0..2 {
        let full = store.append(id, more.clone()).await;
        assert!(matches!(full, Err(LogError::Full { limit_bytes: 10_000 })), "{full:?}");
    }
    let mut builder = BlockBuilder::default();
    builder.push(Record { at: UnixMs(0), stream: Stream::Platform, cont: false, eol: true, bytes: &[b'#'; 2_000] });
    let own = Append { attempt: 0, first_seq: None, late: false, block: builder.take() };
    assert_eq!(store.append(id, own).await.expect("room").next_line, 11);
    assert_eq!(read_all(&store, id).await.len(), 10);
    // What an attempt brings of them has a bound.
    let mut builder = BlockBuilder::default();
    (0..20).for_each(|_| builder.push(Record { at: UnixMs(0), stream: Stream::Platform, cont: false, eol: true, bytes: &[b'#'; 60_000] }));
    let much = store.append(id, numbered(1, 10, builder.take())).await;
    assert!(matches!(much, Err(LogError::Full { limit_bytes: 10_000 })), "{much:?}");
    builder.push(Record { at: UnixMs(0), stream: Stream::Platform, cont: false, eol: true, bytes: b"exit code 0" });
    assert_eq!(store.append(id, numbered(1, 10, builder.take())).await.expect("room").next_line, 12);
}
