//! What pruning promises: it takes what it may, a little at a time, and nothing else.

use runvoy_model::command::Answer;
use runvoy_model::event::EventType;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, ListQuery, Retention};

use crate::dump::Dump;
use crate::harness::Executions;
use crate::stage::{Stage, exit, submitted};

const DAY_MS: i64 = 86_400_000;
const NOTHING: Retention = Retention { heartbeats_before: UnixMs(0), receipts_before: UnixMs(0), max_rows: 1_000 };

async fn prune_all(stage: &Stage<'_>, retention: Retention) -> usize {
    let mut taken = 0;
    loop {
        let rows = stage.store().prune(retention).await.expect("pruning");
        if rows == 0 {
            return taken;
        }
        assert!(rows <= retention.max_rows, "a step of {rows} rows");
        taken += rows;
    }
}

/// Old heartbeats go; every other event, and every newer heartbeat, stays; the chains still verify.
pub async fn pruning_takes_old_heartbeats_and_no_other_event(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    for _ in 0..5 {
        stage.extend(fence).await;
        stage.pass_ms(10 * DAY_MS);
    }
    let before = stage.now.plus_ms(-25 * DAY_MS);
    stage.end(fence, exit(0)).await;
    let mut expected = stage.events(EventQuery::default()).await;
    expected.retain(|stored| stored.event.kind != EventType::TaskHeartbeat || stored.event.at >= before);
    let all = stage.events(EventQuery::default()).await.len();
    // Whoever prunes through lost answers may not know of all that they took.
    assert!(prune_all(&stage, Retention { heartbeats_before: before, max_rows: 2, ..NOTHING }).await <= 3);
    assert_eq!(all - expected.len(), 3);
    assert_eq!(stage.events(EventQuery::default()).await, expected);
    stage.verify_chain(fence.execution).await;
    stage.reopen().await;
    assert_eq!(stage.events(EventQuery::default()).await, expected);
}

/// Old keys and receipts go and newer ones stay; no execution, lock or event goes with them.
pub async fn pruning_takes_old_keys_and_receipts_only(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let old = submitted(stage.submit_keyed("ann@x", "old", 1).await);
    stage.pass_ms(20 * DAY_MS);
    let new = submitted(stage.submit_keyed("ann@x", "new", 1).await);
    let before = Dump::of(&*stage.store()).await;
    let retention = Retention { receipts_before: stage.now.plus_ms(-10 * DAY_MS), ..NOTHING };
    prune_all(&stage, retention).await;
    Dump::of(&*stage.store()).await.assert_same(&before, "pruning");
    assert_eq!(submitted(stage.submit_keyed("ann@x", "new", 1).await), new);
    let again = stage.submit_keyed("ann@x", "old", 1).await;
    assert!(matches!(&again, Answer::Submitted { execution, .. } if execution.id != old), "the old key is free again");
    assert_eq!(stage.list(ListQuery::default()).await.len(), 3);
}

/// Where nothing is old nothing goes.
pub async fn pruning_takes_nothing_that_is_not_old(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.extend(fence).await;
    let before = Dump::of(&*stage.store()).await;
    assert_eq!(prune_all(&stage, NOTHING).await, 0);
    Dump::of(&*stage.store()).await.assert_same(&before, "pruning");
}
