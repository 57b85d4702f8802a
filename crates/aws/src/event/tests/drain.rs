//! Places are given once, in an order that respects what caused what, whoever drains and wherever it is cut off.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use runvoy_ports::store::{EventQuery, StoredEvent};

use super::*;
use crate::event::mark;

/// What a writer did: its steps in order, each with its events.
type Written = Vec<(StepId, Vec<Event>)>;

/// Steps of one writer about subjects of its own. Their names say nothing about their order; each names the one before it.
async fn write(stand: &Stand, seed: u64, steps: usize) -> Written {
    let mut chance = Chance::new(seed);
    let mut subjects: Vec<Subject> = (0..5).map(|n| Subject::new(EntityType::Task, format!("{seed}-{n}"))).collect();
    let mut written: Written = Vec::new();
    for _ in 0..steps {
        let step = StepId(scattered(&mut chance));
        let mut events = Vec::new();
        for _ in 0..=chance.below(4) {
            let at = chance.below(subjects.len());
            let kind = if chance.percent(20) && subjects[at].head.count > 0 { EventType::TaskHeartbeat } else { EventType::Audit };
            events.push(subjects[at].event(scattered(&mut chance), kind, UnixMs(1), json!({"seed": seed})));
        }
        let before: Vec<StepId> = written.last().map(|(step, _)| *step).into_iter().collect();
        stand.commit(step, &events, &before).await;
        written.push((step, events));
    }
    written
}

async fn everything(log: &EventLog) -> Vec<StoredEvent> {
    log.events(EventQuery { limit: usize::MAX, ..EventQuery::default() }).await.expect("events")
}

/// Everything has one place, places have no gap, and what one writer did is in the order it was done.
fn assert_placed(placed: &[StoredEvent], writers: &[Written]) {
    let places: Vec<u64> = placed.iter().map(|stored| stored.place).collect();
    assert_eq!(places, (1..=placed.len() as u64).collect::<Vec<_>>());
    let by_id: HashMap<Id, u64> = placed.iter().map(|stored| (stored.event.id, stored.place)).collect();
    assert_eq!(by_id.len(), placed.len(), "an event has two places");
    assert_eq!(placed.len(), writers.iter().flatten().map(|(_, events)| events.len()).sum::<usize>(), "an event is lost");
    for written in writers {
        let order: Vec<u64> = written.iter().flat_map(|(_, events)| events).map(|event| by_id[&event.id]).collect();
        assert!(order.is_sorted(), "an effect stands before its cause: {order:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_drains_give_each_place_once_and_keep_the_order() {
    let stand = Arc::new(Stand::new().await);
    let is_over = Arc::new(AtomicBool::new(false));
    let drains: Vec<_> = (0..2)
        .map(|_| {
            let (stand, is_over) = (Arc::clone(&stand), Arc::clone(&is_over));
            tokio::spawn(async move {
                let log = stand.log();
                while !is_over.load(Ordering::SeqCst) {
                    log.drain().await.expect("a drain");
                }
            })
        })
        .collect();
    let writers = futures_util::future::join_all((1..=4).map(|seed| write(&stand, seed, 25))).await;
    is_over.store(true, Ordering::SeqCst);
    for drain in drains {
        drain.await.expect("a drain");
    }
    let placed = everything(&stand.log()).await;
    assert_placed(&placed, &writers);
}

#[tokio::test]
async fn a_drain_sees_everything_that_was_committed_before_it() {
    let stand = Stand::new().await;
    let log = stand.log();
    for seed in 1..=3 {
        let written = write(&stand, seed, 5).await;
        let before = log.last_place().await.expect("a place");
        let ids: HashSet<Id> = everything(&stand.log()).await.into_iter().map(|stored| stored.event.id).collect();
        assert!(written.iter().flat_map(|(_, events)| events).all(|event| ids.contains(&event.id)));
        assert_eq!(before, ids.len() as u64);
    }
    // Many at once share the work, and each of them has seen it done.
    write(&stand, 9, 5).await;
    let lasts = futures_util::future::join_all((0..8).map(|_| log.last_place())).await;
    let last = stand.log().last_place().await.expect("a place");
    assert!(lasts.into_iter().all(|place| place.expect("a place") == last));
}

/// Drops something that waited so many times and would wait again; whether it had to.
async fn is_cut_after(waits: usize, work: impl Future) -> bool {
    let (mut work, mut left) = (pin!(work), waits);
    poll_fn(|context| match (work.as_mut().poll(context), left) {
        (Poll::Ready(_), _) => Poll::Ready(false),
        (Poll::Pending, 0) => Poll::Ready(true),
        (Poll::Pending, _) => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

#[tokio::test]
async fn a_drain_that_is_cut_anywhere_is_repeated_harmlessly() {
    let stand = Stand::new().await;
    let mut writers = Vec::new();
    let mut chance = Chance::new(77);
    let mut cuts = 0;
    for seed in 1..=6 {
        writers.push(write(&stand, seed, 12).await);
        for _ in 0..6 {
            // Nobody waits for the answer any more; whether it was done is not known.
            cuts += usize::from(is_cut_after(chance.below(12), stand.log().drain()).await);
        }
    }
    assert!(cuts > 5, "only {cuts} drains were cut");
    let log = stand.log();
    let placed = everything(&log).await;
    assert_placed(&placed, &writers);
    let last = mark::placed(&stand.dynamo).await.expect("a mark").last;
    assert_eq!(last, placed.len() as u64);
    log.drain().await.expect("nothing to do");
    assert_eq!(everything(&stand.log()).await, placed);
}

#[tokio::test]
async fn large_steps_are_placed_in_parts_and_in_order() {
    let stand = Stand::new().await;
    let mut subject = Subject::new(EntityType::Job, "large");
    let mut events = Vec::new();
    for n in 0..130 {
        let text = if n % 30 == 7 { "x".repeat(230_000) } else { "y".repeat(100) };
        events.push(subject.event(id(1, n), EventType::Audit, UnixMs(5), json!({"n": n, "text": text})));
    }
    let step = StepId(id(9, 1));
    stand.commit(step, &events, &[]).await;
    let placed = everything(&stand.log()).await;
    assert_eq!(placed.iter().map(|stored| stored.event.clone()).collect::<Vec<_>>(), events);
    assert_placed(&placed, &[vec![(step, events)]]);
}

#[tokio::test]
async fn more_than_one_look_holds_is_placed_in_order() {
    let stand = Stand::new().await;
    let mut subject = Subject::new(EntityType::User, "ann@x");
    let mut written = Vec::new();
    // All in one partition of the journal, and the later ones are named before the earlier ones.
    for n in 0..150_u64 {
        let mut bytes = [3; 16];
        bytes[..8].copy_from_slice(&(u64::MAX - n).to_be_bytes());
        let (step, event) = (StepId::from_bytes(bytes), subject.event(id(1, n), EventType::Audit, UnixMs(5), json!({})));
        written.push((step, vec![event]));
    }
    futures_util::future::join_all(written.iter().map(|(step, events)| stand.commit(*step, events, &[]))).await;
    assert_placed(&everything(&stand.log()).await, &[written]);
}
