//! The promises about the roster of workers: what a worker last said of itself is there until it leaves or is forgotten, and nothing else changes by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use runvoy_model::id::WorkerId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::store::EventQuery;

use crate::harness::{Records, TransactionalStore};
use crate::stage::{BEGINNING, name};

fn presence(number: u8, text: &str, seen_ms: i64) -> Presence {
    Presence {
        worker: WorkerId::from_bytes([number; 16]),
        account: number.is_multiple_of(2).then(|| name("gpu")),
        name: text.into(),
        host: "é.example".into(),
        version: "0.1.0".into(),
        runner: "process".into(),
        queues: vec![name("default"), name("gpu/large")],
        labels: BTreeMap::from([("zone".into(), "a".into())]),
        concurrency: 4,
        running: u32::from(number),
        in_process: number == 1,
        draining: false,
        since: BEGINNING,
        seen_at: BEGINNING.plus_ms(seen_ms),
        busy_until: None,
        place: None,
    }
}

async fn note(store: &Arc<dyn TransactionalStore>, presence: &Presence) {
    store.note(presence.clone()).await.expect("noted");
}

async fn present(harness: Records<'_>) -> Vec<Presence> {
    harness.store().present().await.expect("a roster")
}

/// What a worker said is read back as it was said, also after a reopen, by name and then by id.
pub async fn workers_are_listed_as_they_were_noted(harness: Records<'_>) {
    let (one, two, three) = (presence(3, "a", 0), presence(1, "b", 5), presence(2, "b", 3));
    for worker in [&three, &two, &one] {
        note(&harness.store(), worker).await;
    }
    assert_eq!(present(harness).await, [one.clone(), two.clone(), three.clone()]);
    harness.reopen().await;
    assert_eq!(present(harness).await, [one, two, three]);
}

/// The newest word counts, in whatever order they come.
pub async fn what_a_worker_says_takes_the_place_of_what_it_said(harness: Records<'_>) {
    note(&harness.store(), &presence(1, "a", 0)).await;
    let newer = Presence { running: 9, queues: Vec::<Name>::new(), draining: true, labels: BTreeMap::new(), ..presence(1, "z", 10) };
    note(&harness.store(), &newer).await;
    assert_eq!(present(harness).await, std::slice::from_ref(&newer));
    note(&harness.store(), &presence(1, "late", 9)).await;
    assert_eq!(present(harness).await, std::slice::from_ref(&newer), "what comes late changes nothing");
    let again = Presence { running: 2, ..newer };
    note(&harness.store(), &again).await;
    assert_eq!(present(harness).await, [again], "of two from one moment the later one");
}

/// Whoever leaves is gone at once, and nobody else is.
pub async fn a_worker_that_left_is_gone(harness: Records<'_>) {
    for number in 1..=3 {
        note(&harness.store(), &presence(number, "a", 0)).await;
    }
    let store = harness.store();
    store.leave(WorkerId::from_bytes([2; 16])).await.expect("gone");
    store.leave(WorkerId::from_bytes([2; 16])).await.expect("gone before");
    store.leave(WorkerId::from_bytes([9; 16])).await.expect("never there");
    drop(store);
    assert_eq!(present(harness).await, [presence(1, "a", 0), presence(3, "a", 0)]);
}

/// Whoever was not heard of for long is forgotten; whoever was is not.
pub async fn workers_that_were_not_heard_of_are_forgotten(harness: Records<'_>) {
    for number in 1..=40 {
        note(&harness.store(), &presence(number, "a", i64::from(number))).await;
    }
    let before = BEGINNING.plus_ms(31);
    let forgotten = harness.store().forget(before).await.expect("forgotten");
    assert!(forgotten <= 30, "{forgotten}");
    let left: Vec<UnixMs> = present(harness).await.into_iter().map(|worker| worker.seen_at).collect();
    assert_eq!(left, (31..=40).map(|ms| BEGINNING.plus_ms(ms)).collect::<Vec<_>>());
    assert_eq!(harness.store().forget(before).await.expect("nothing more"), 0);
}

/// It is no step: it leaves no event, and nobody reads records anew because of it.
pub async fn a_worker_that_is_noted_leaves_no_trace(harness: Records<'_>) {
    let before = harness.store().authority();
    note(&harness.store(), &presence(1, "a", 0)).await;
    harness.store().leave(WorkerId::from_bytes([1; 16])).await.expect("gone");
    let store = harness.store();
    assert_eq!(store.events(EventQuery { limit: 10, ..EventQuery::default() }).await.expect("events"), []);
    assert_eq!(store.authority(), before);
}
