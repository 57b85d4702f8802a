//! The end of a log: it is packed into objects whoever dies at whichever call, it reads the same before, while and after, and pruning leaves
//! nothing of it.

use std::sync::Arc;

use runvoy_aws::{Clients, Config, LogConfig};
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogStore, Search};
use runvoy_ports::search::Stop;

use super::stage::{block, execution, installation, items, lines, numbered, objects, open, packing, read_all, read_from, write};
use super::wire::{Cut, Wire};
use crate::emulator::Emulator;

/// After every record.
const FAR: UnixMs = UnixMs(4_102_444_800_000);

async fn a_sealed_log_is_in_objects(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let (store, id) = (open(&clients, &config, packing()), execution());
    write(&store, id, 60, 1_000).await;
    let before = read_all(&store, id).await;
    store.seal(id, 60).await.expect("a seal");
    store.settled().await;
    assert!(items(&clients, &config, id).await.is_empty(), "nothing is left in the table");
    assert!(objects(&clients, &config, id).await.len() > 4);
    assert_eq!(read_all(&store, id).await, before);
    store.append(id, numbered(1, 61, block(1_000, &lines(61, 3, 40)))).await.expect("late output");
    for store in [store, open(&clients, &config, packing())] {
        let all = read_all(&store, id).await;
        assert_eq!((all.len(), &all[..60]), (63, &before[..]));
        assert!(all[60..].iter().all(|line| line.3), "late");
        for from in [1, 8, 9, 31, 60, 61, 63, 64] {
            assert_eq!(read_from(&store, id, from, 3_000).await, all[from as usize - 1..], "from {from}");
        }
        for (number, at, ..) in &all {
            assert_eq!(store.line_at(id, *at).await.expect("a line"), *number);
        }
        assert_eq!(store.line_at(id, FAR).await.expect("a line"), 64);
        for line in [1u64, 2, 30, 60] {
            let place = store.raw_place(id, line * 1_001 - 1).await.expect("a place").expect("within the output");
            assert_eq!((place.line, place.line_start), (line, (line - 1) * 1_001));
        }
        assert_eq!(store.raw_place(id, 60 * 1_001 + 41).await.expect("a place").expect("late").line, 62);
        let search = Search { pattern: "line [0-9]*7 ".into(), regex: true, from_line: 1, limit: 3, stream: None, stop: Stop::default() };
        let found = store.search(id, search).await.expect("a search");
        assert_eq!((found.total, found.next_line), (6, Some(37)));
        assert_eq!(found.hits.iter().map(|hit| hit.0).collect::<Vec<_>>(), [7, 17, 27]);
    }
}

#[tokio::test]
async fn a_sealed_log_is_in_objects_on_ministack() {
    a_sealed_log_is_in_objects(Emulator::ministack()).await;
}

#[tokio::test]
async fn a_sealed_log_is_in_objects_on_moto() {
    a_sealed_log_is_in_objects(Emulator::moto()).await;
}

#[tokio::test]
async fn a_small_log_stays_in_the_table_until_it_is_pruned() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let (store, id) = (open(&clients, &config, LogConfig::default()), execution());
    write(&store, id, 5, 100).await;
    store.seal(id, 5).await.expect("a seal");
    store.settled().await;
    assert_eq!((items(&clients, &config, id).await.len(), objects(&clients, &config, id).await.len()), (5, 0));
    assert_eq!(store.prune(FAR).await.expect("pruning").logs, 1);
    assert!(items(&clients, &config, id).await.is_empty());
}

#[tokio::test]
async fn a_log_that_is_shorter_than_its_execution_says_so() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let (store, id) = (open(&clients, &config, packing()), execution());
    write(&store, id, 3, 20).await;
    store.seal(id, 5).await.expect("a seal");
    assert_eq!(store.extent(id).await.expect("an extent").lost_records, 2);
    // Who seals again changes nothing, whatever they say.
    store.seal(id, 9).await.expect("a seal");
    assert_eq!(store.extent(id).await.expect("an extent").lost_records, 2);
}

/// A log of a few objects.
async fn written(clients: &Clients, config: &Config) -> ExecutionId {
    let (store, id) = (open(clients, config, packing()), execution());
    for first in (1..=18).step_by(3) {
        let block = block(i64::try_from(first * 10).expect("small"), &lines(first, 3, 1_000));
        store.append(id, numbered(1, first, block)).await.expect("an append");
    }
    id
}

fn cuts() -> impl Iterator<Item = Cut> {
    (0..200).flat_map(|call| [Cut::Before(call), Cut::Within(call)])
}

/// Whoever seals dies before or within its first call, its second, and so on until it needs no more calls.
async fn a_seal_can_be_killed_anywhere(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let (healthy, mut killed) = (open(&clients, &config, packing()), 0);
    for cut in cuts() {
        let id = written(&clients, &config).await;
        let before = read_all(&healthy, id).await;
        let wire = Wire::new(cut);
        let mortal = open(&wire.clients(emulator).await, &config, packing());
        let _ = mortal.seal(id, 18).await;
        mortal.settled().await;
        assert_eq!(read_all(&healthy, id).await, before, "{cut:?}");
        // What comes late finds the log as the dead left it.
        healthy.append(id, numbered(1, 19, block(500, &lines(19, 1, 50)))).await.expect("late output");
        let after = read_all(&healthy, id).await;
        assert_eq!((after.len(), &after[..18]), (19, &before[..]), "{cut:?}");
        // Either the execution's end is told again, or pruning finds what was left.
        if killed % 4 < 2 || !healthy.extent(id).await.expect("an extent").sealed {
            healthy.seal(id, 18).await.expect("a seal");
            healthy.settled().await;
        } else {
            healthy.prune(UnixMs(-1)).await.expect("pruning");
        }
        assert_eq!(read_all(&healthy, id).await, after, "{cut:?}");
        let is_late = usize::from(after[18].3);
        assert_eq!(items(&clients, &config, id).await.len(), is_late, "{cut:?}: only what came late is left in the table");
        if !wire.was_cut() {
            assert!(killed > 12, "a seal makes more calls than {killed}");
            return;
        }
        killed += 1;
    }
    panic!("a seal never ends");
}

#[tokio::test]
async fn a_seal_can_be_killed_anywhere_on_ministack() {
    a_seal_can_be_killed_anywhere(Emulator::ministack()).await;
}

#[tokio::test]
async fn a_seal_can_be_killed_anywhere_on_moto() {
    a_seal_can_be_killed_anywhere(Emulator::moto()).await;
}

/// The same for pruning: what is not gone is whole, what is gone leaves nothing in the end.
#[tokio::test]
async fn pruning_can_be_killed_anywhere() {
    let emulator = Emulator::ministack();
    let (clients, config) = installation(emulator).await;
    let (healthy, mut killed) = (open(&clients, &config, packing()), 0);
    for cut in cuts() {
        let id = written(&clients, &config).await;
        healthy.seal(id, 18).await.expect("a seal");
        healthy.settled().await;
        let before = read_all(&healthy, id).await;
        let wire = Wire::new(cut);
        let mortal = open(&wire.clients(emulator).await, &config, packing());
        let _ = mortal.prune(FAR).await;
        let read = read_all(&healthy, id).await;
        assert!(read.is_empty() || read == before, "{cut:?}");
        healthy.prune(FAR).await.expect("pruning");
        assert!(read_all(&healthy, id).await.is_empty());
        assert!(items(&clients, &config, id).await.is_empty() && objects(&clients, &config, id).await.is_empty(), "{cut:?}");
        let extent = healthy.extent(id).await.expect("an extent");
        assert_eq!((extent.first_line, extent.next_line, extent.raw_bytes), (19, 19, 18 * 1_001));
        if !wire.was_cut() {
            assert!(killed > 10, "pruning makes more calls than {killed}");
            return;
        }
        killed += 1;
    }
    panic!("pruning never ends");
}

#[tokio::test]
async fn what_comes_after_pruning_is_kept_and_pruned_in_its_turn() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let store = open(&clients, &config, packing());
    let id = written(&clients, &config).await;
    store.seal(id, 18).await.expect("a seal");
    assert_eq!(store.prune(FAR).await.expect("pruning").logs, 1);
    store.append(id, numbered(1, 18, block(5, &lines(18, 2, 50)))).await.expect("an overlap");
    let read = read_from(&store, id, 19, 1 << 20).await;
    assert_eq!(read.iter().map(|line| (line.0, line.1, line.3)).collect::<Vec<_>>(), [(19, UnixMs(6), true)]);
    assert_eq!(store.line_at(id, UnixMs(1)).await.expect("a line"), 19);
    assert_eq!(store.line_at(id, UnixMs(7)).await.expect("a line"), 20);
    assert_eq!(store.raw_place(id, 3).await.expect("a place"), None, "that byte is gone");
    assert_eq!(store.raw_place(id, 18 * 1_001).await.expect("a place").expect("kept").line, 19);
    assert_eq!(store.prune(UnixMs(6)).await.expect("pruning").logs, 0);
    assert_eq!(store.prune(UnixMs(7)).await.expect("pruning").logs, 1);
    assert!(items(&clients, &config, id).await.is_empty());
}

/// Readers in another process, from any line, while a log is packed and swept.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_reads_the_same_while_it_is_packed() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let (store, reader) = (open(&clients, &config, packing()), Arc::new(open(&clients, &config, packing())));
    let id = execution();
    write(&store, id, 120, 1_000).await;
    let before = Arc::new(read_all(&store, id).await);
    let readers: Vec<_> = (0..3u64)
        .map(|number| {
            let (reader, before) = (Arc::clone(&reader), Arc::clone(&before));
            tokio::spawn(async move {
                for round in 0..12 {
                    let from = (number * 37 + round * 11) % 120 + 1;
                    assert_eq!(read_from(&*reader, id, from, 5_000).await, before[from as usize - 1..], "from {from}");
                    let (line, at, ..) = before[from as usize - 1];
                    assert_eq!(reader.line_at(id, at).await.expect("a line"), line);
                    assert_eq!(reader.raw_place(id, (line - 1) * 1_001).await.expect("a place").expect("kept").line, line);
                }
            })
        })
        .collect();
    // Two servers pack it at once.
    let other = open(&clients, &config, packing());
    let (one, two) = tokio::join!(store.seal(id, 120), other.seal(id, 120));
    one.and(two).expect("a seal");
    tokio::join!(store.settled(), other.settled());
    for reader in readers {
        reader.await.expect("a reader");
    }
    assert!(items(&clients, &config, id).await.is_empty());
    assert_eq!(read_all(&open(&clients, &config, packing()), id).await, *before);
}
