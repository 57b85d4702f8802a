//! What the end of a log promises: its numbers stay, late output may follow, and only retention takes it.

use runvoy_model::time::UnixMs;
use runvoy_ports::log::Append;

use super::{append, execution, lines, numbered, read_all, texts, varied};
use crate::chance::Chance;
use crate::harness::Logs;

/// A time after every record and after every test.
const FAR: UnixMs = UnixMs(4_102_444_800_000);

/// A sealed log reads as before, also after a reopen, and sealing twice is sealing once.
pub async fn a_sealed_log_reads_as_before(harness: Logs<'_>) {
    let id = execution(1);
    let expected = varied(&*harness.store(), id, &mut Chance::new(6)).await;
    let extent = harness.store().sync(id).await.expect("a sync");
    for _ in 0..2 {
        harness.store().seal(id, extent.next_line - 1).await.expect("a seal");
    }
    for _ in 0..2 {
        let sealed = harness.store().extent(id).await.expect("an extent");
        assert_eq!((sealed.next_line, sealed.raw_bytes, sealed.lost_records), (extent.next_line, extent.raw_bytes, 0));
        assert!(sealed.sealed);
        assert_eq!(read_all(&*harness.store(), id).await, expected);
        harness.reopen().await;
    }
}

/// What comes after the seal is numbered on and marked late, also after a reopen; repeats are still dropped.
pub async fn late_output_follows_a_seal(harness: Logs<'_>) {
    let id = execution(1);
    append(&*harness.store(), id, numbered(1, 1, lines(&["a", "b"]))).await;
    harness.store().sync(id).await.expect("a sync");
    harness.store().seal(id, 2).await.expect("a seal");
    let late = |seq, text: &str| Append { late: true, ..numbered(1, seq, lines(&[text])) };
    assert_eq!(append(&*harness.store(), id, late(2, "b")).await.next_line, 3, "a repeat");
    assert_eq!(append(&*harness.store(), id, late(3, "c")).await.next_line, 4);
    harness.store().sync(id).await.expect("a sync");
    harness.reopen().await;
    assert_eq!(append(&*harness.store(), id, late(3, "c")).await.next_line, 4, "a repeat");
    assert_eq!(append(&*harness.store(), id, late(4, "d")).await.next_line, 5);
    let read = read_all(&*harness.store(), id).await;
    assert_eq!(read.iter().map(|line| (line.number, line.late)).collect::<Vec<_>>(), [(1, false), (2, false), (3, true), (4, true)]);
    assert_eq!(texts(&*harness.store(), id).await, ["a", "b", "c", "d"]);
    assert!(harness.store().extent(id).await.expect("an extent").sealed);
}

/// Whatever follows a seal is late, also if its writer does not know that.
pub async fn all_that_follows_a_seal_is_late(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    append(&*store, id, numbered(1, 1, lines(&["a"]))).await;
    store.seal(id, 1).await.expect("a seal");
    append(&*store, id, numbered(1, 2, lines(&["b"]))).await;
    assert_eq!(read_all(&*store, id).await.into_iter().map(|line| line.late).collect::<Vec<_>>(), [false, true]);
}

/// A log that nothing was written to can be sealed.
pub async fn an_empty_log_can_be_sealed(harness: Logs<'_>) {
    let (store, id) = (harness.store(), execution(1));
    store.seal(id, 0).await.expect("a seal");
    assert!(read_all(&*store, id).await.is_empty());
    assert_eq!(store.extent(id).await.expect("an extent").next_line, 1);
}

/// Retention takes ended logs and no others, and says that they are gone.
pub async fn pruning_takes_ended_logs_only(harness: Logs<'_>) {
    let (ended, open) = (execution(1), execution(2));
    for id in [ended, open] {
        append(&*harness.store(), id, numbered(1, 1, lines(&["a", "b"]))).await;
        harness.store().sync(id).await.expect("a sync");
    }
    harness.store().seal(ended, 2).await.expect("a seal");
    assert_eq!(harness.store().prune(UnixMs(0)).await.expect("pruning").logs, 0, "nothing ended that long ago");
    assert_eq!(texts(&*harness.store(), ended).await, ["a", "b"]);
    // A store whose index lags takes it with a later pruning, and a pruning that failed half-way has not told what it took.
    let (mut pruned, mut left) = (0, true);
    for _ in 0..100 {
        pruned += harness.store().prune(FAR).await.expect("pruning").logs;
        let extent = harness.store().extent(ended).await.expect("an extent");
        left = extent.first_line < extent.next_line;
        if !left {
            break;
        }
    }
    assert!(!left && pruned <= 1, "nothing is left of it, and it is counted once at most: {pruned}");
    assert_eq!(texts(&*harness.store(), open).await, ["a", "b"]);
    assert!(read_all(&*harness.store(), ended).await.is_empty());
    assert_eq!(harness.store().prune(FAR).await.expect("pruning").logs, 0, "gone is gone");
}
