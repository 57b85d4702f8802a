//! What reading promises: from any line, in any size, each record once, also while more is written.

use super::{append, execution, lines, numbered, read_all, read_from, varied};
use crate::chance::Chance;
use crate::harness::Logs;

/// A log that nobody wrote is empty, not an error.
pub async fn an_unwritten_log_reads_as_empty(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    for from in [0, 1, 5] {
        assert!(store.read(id, from, 1_000).await.expect("a read").is_empty());
    }
    let extent = store.extent(id).await.expect("an extent");
    assert_eq!((extent.next_line, extent.first_line, extent.raw_bytes, extent.sealed, extent.lost_records), (1, 1, 0, false, 0));
}

/// A log of every kind of record is read back whole.
pub async fn a_log_is_read_back_whole(harness: Logs<'_>) {
    let id = execution(1);
    let expected = varied(&*harness.store(), id, &mut Chance::new(1)).await;
    assert_eq!(read_all(&*harness.store(), id).await, expected);
    harness.store().sync(id).await.expect("a sync");
    harness.reopen().await;
    assert_eq!(read_all(&*harness.store(), id).await, expected);
    let raw: u64 = harness.store().extent(id).await.expect("an extent").raw_bytes;
    let last = expected.last().expect("a record");
    let last_len = if last.stream == runvoy_model::log::Stream::Platform { 0 } else { last.bytes.len() as u64 + u64::from(last.eol) };
    assert_eq!(raw, last.raw_start + last_len);
}

/// From any line, with any size of piece, the rest of the log follows exactly.
pub async fn any_line_and_any_size_give_the_same_log(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let expected = varied(&*store, id, &mut Chance::new(2)).await;
    for from in [0, 1, 2, 7, expected.len() / 2, expected.len(), expected.len() + 1, expected.len() + 100] {
        for max_bytes in [0, 1, 50, 1_000, 1 << 20] {
            // One record a read takes long where a store is far away: from the first, and from the middle on.
            if max_bytes <= 50 && from != 1 && from < expected.len() / 2 {
                continue;
            }
            let read = read_from(&*store, id, from as u64, max_bytes).await;
            assert_eq!(read, expected.get(from.max(1) - 1..).unwrap_or_default(), "from {from} by {max_bytes}");
        }
    }
}

/// A small piece is small: about what was asked for, not the whole log.
pub async fn a_piece_is_about_as_big_as_asked_for(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let text = "x".repeat(100);
    for seq in 0..200u64 {
        append(&*store, id, numbered(1, seq * 10 + 1, lines(&[&*text; 10]))).await;
    }
    let piece = store.read(id, 1, 10_000).await.expect("a read");
    let bytes: usize = piece.iter().map(|chunk| chunk.block.data.len()).sum();
    assert!((2_500..=150_000).contains(&bytes), "{bytes} bytes of about 10,000");
}

/// Whoever follows while it is written sees every record once.
pub async fn a_follower_sees_every_record_once(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let mut chance = Chance::new(3);
    let mut followers = [Vec::new(), Vec::new(), Vec::new()];
    let mut seq = 1;
    for _ in 0..60 {
        let count = chance.below(5);
        let texts: Vec<String> = (0..count).map(|more| format!("line {}", seq + more as u64)).collect();
        append(&*store, id, numbered(1, seq, lines(&texts.iter().map(String::as_str).collect::<Vec<_>>()))).await;
        seq += count as u64;
        for (number, seen) in followers.iter_mut().enumerate() {
            if chance.percent(40) {
                let from = seen.last().map_or(1, |line: &super::Line| line.number + 1);
                seen.extend(read_from(&*store, id, from, [1, 60, 10_000][number]).await);
            }
        }
    }
    let all = read_all(&*store, id).await;
    assert_eq!(all.len() as u64, seq - 1);
    for seen in followers {
        assert_eq!(seen, all[..seen.len()]);
    }
}

/// A follower beside a writer that never waits sees every record once.
pub async fn a_follower_beside_a_writer_sees_every_record_once(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    let writer = {
        let store = harness.store();
        tokio::spawn(async move {
            for seq in 1..=300u64 {
                append(&*store, id, numbered(1, seq, lines(&[&format!("line {seq}")]))).await;
                tokio::task::yield_now().await;
            }
        })
    };
    let mut seen = Vec::new();
    while seen.len() < 300 {
        let from = seen.last().map_or(1, |line: &super::Line| line.number + 1);
        seen.extend(read_from(&*store, id, from, 200).await);
        tokio::task::yield_now().await;
    }
    writer.await.expect("the writer");
    assert_eq!(seen, read_all(&*store, id).await);
}
