//! What may be forgotten is, a little at a time, and nothing else.

use runvoy_model::command::{Extend, Fence, Submit, SubmitKey};
use runvoy_model::event::EventType;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, ExecutionStore, Retention};

use crate::fixture::{START, end_of, lease_to, open, options, step_at, submit};
use crate::invariant;

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

#[tokio::test]
async fn old_heartbeats_go_in_small_steps_and_no_place_is_given_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let asked = Submit { lease_to: Some(lease_to()), ..submit("true") };
    let (execution, _) = store.submit(step_at(START), asked).await.expect("taken");
    let lease = execution.lease.as_ref().expect("a lease");
    let fence = Fence { execution: execution.id, attempt: 1, lease: lease.id };
    for minute in 1..=200 {
        let extend =
            Extend { fence, ttl_ms: 30_000, process_id: None, rss_bytes: None, last_output_at: None, activity: None, preparing: None };
        store.extend(step_at(START + minute * MINUTE), extend).await.expect("a heartbeat");
    }
    let all = store.events(EventQuery { limit: 1000, ..EventQuery::default() }).await.expect("events");
    assert_eq!(all.len(), 203);
    let newest = all.last().expect("an event").place;

    let retention = |before: i64| Retention { heartbeats_before: UnixMs(before), receipts_before: UnixMs(0), max_rows: 40 };
    let half = START + 100 * MINUTE;
    let mut steps = Vec::new();
    loop {
        match store.prune(retention(half)).await.expect("a prune") {
            0 => break,
            rows => steps.push(rows),
        }
    }
    assert_eq!(steps, [40, 40, 19]);
    let left = store.events(EventQuery { limit: 1000, ..EventQuery::default() }).await.expect("events");
    assert!(left.iter().all(|stored| stored.event.kind != EventType::TaskHeartbeat || stored.event.at >= UnixMs(half)));
    assert_eq!(left.len(), 104);
    assert_eq!(store.counts().await.expect("counts").events, 104);

    while store.prune(retention(START + DAY)).await.expect("a prune") > 0 {}
    assert_eq!(store.counts().await.expect("counts").events, 4, "the newest event stays, whatever it is");
    store.end_attempt(step_at(START + DAY), end_of(&execution)).await.expect("an end");
    let last = store.events(EventQuery { limit: 1, descending: true, ..EventQuery::default() }).await.expect("events");
    assert_eq!(last[0].place, newest + 1);
    invariant::check(&store, &options().audit_key).await;
}

#[tokio::test]
async fn old_keys_and_receipts_are_forgotten_and_new_ones_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let keyed = |key: &str| {
        let key = SubmitKey { user: "ana@example.com".into(), key: key.into(), fingerprint: [1; 32] };
        Submit { key: Some(key), ..submit("true") }
    };
    let (old, _) = store.submit(step_at(START), keyed("old")).await.expect("taken");
    let (new, _) = store.submit(step_at(START + 3 * DAY), keyed("new")).await.expect("taken");
    let retention = Retention { heartbeats_before: UnixMs(0), receipts_before: UnixMs(START + 2 * DAY), max_rows: 100 };
    assert_eq!(store.prune(retention).await.expect("a prune"), 2, "one key and one receipt");
    assert_eq!(store.prune(retention).await.expect("a prune"), 0);
    let (again, repeated) = store.submit(step_at(START + 3 * DAY), keyed("new")).await.expect("known");
    assert_eq!((again.id, repeated), (new.id, true));
    let (other, repeated) = store.submit(step_at(START + 3 * DAY), keyed("old")).await.expect("taken anew");
    assert!(!repeated && other.id != old.id);
    assert_eq!(store.counts().await.expect("counts").executions, 3, "no execution was forgotten");
}
