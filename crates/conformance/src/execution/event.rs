//! What the events promise: order, numbers, chains, and that they tell the same as the records.

use runvoy_model::command::{Command, EndAttempt};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::fold::{expected, fold};
use runvoy_model::job::Payload;
use runvoy_ports::store::{EventQuery, Leaf, ListQuery, StoredEvent};
use serde_json::json;

use crate::chance::Chance;
use crate::harness::Executions;
use crate::stage::{PASSING_FAILURE, Stage, ended, exit, in_line, name};

/// A little of everything.
async fn mixed(stage: &mut Stage<'_>) {
    let first = stage.running(in_line).await;
    stage.submit(in_line).await;
    stage.extend(first).await;
    stage.pass_ms(1_000);
    stage.end(first, exit(0)).await;
    stage.end(first, exit(1)).await;
    let second = stage.begun().await;
    stage.kill(second.execution).await;
    stage.pass_ms(1_000);
    stage.reap(second).await;
    let third = stage.running(|spec| spec.retries = 1).await;
    stage.end(third, exit(PASSING_FAILURE)).await;
    stage.pass_ms(1_000);
    stage.submit(in_line).await;
    stage.play(Command::ReleaseLock(name("prod"))).await;
    stage.submit(|_| ()).await;
    let fourth = stage.lease_one().await;
    stage.play(Command::GiveBack(fourth)).await;
    let fifth = stage.begun_at_once().await;
    stage.play(Command::Unsend(fifth)).await;
}

/// Every execution's events are the chain that its record names, numbered without a gap, also after a reopen.
pub async fn every_chain_verifies(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    mixed(&mut stage).await;
    for _ in 0..2 {
        for id in stage.list(ListQuery::default()).await {
            stage.verify_chain(id).await;
        }
        stage.reopen().await;
    }
}

/// The events alone tell the status that the record shows.
pub async fn the_events_fold_to_the_status(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    mixed(&mut stage).await;
    for id in stage.list(ListQuery::default()).await {
        let events = stage.events_of(id).await;
        assert_eq!(fold(&events), Ok(Some(expected(stage.get(id).await.status))));
    }
}

/// Places rise in the order of writing, and each page goes on where the one before it ended, in both directions.
pub async fn events_are_paged_in_the_order_of_writing(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    mixed(&mut stage).await;
    let all = stage.events(EventQuery::default()).await;
    assert!(all.len() > 15 && all.is_sorted_by(|one, next| one.place < next.place));
    for descending in [false, true] {
        let mut paged = Vec::new();
        loop {
            let after = paged.last().map(|stored: &runvoy_ports::store::StoredEvent| stored.place);
            let page = stage.events(EventQuery { descending, after, limit: 4, ..EventQuery::default() }).await;
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= 4);
            paged.extend(page);
        }
        if descending {
            paged.reverse();
        }
        assert_eq!(paged, all);
    }
}

/// What the proof of the log takes is what the events have, in the same order and pages.
pub async fn leaves_are_those_of_the_events(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    mixed(&mut stage).await;
    let all = stage.events(EventQuery::default()).await;
    let expected: Vec<Leaf> =
        all.iter().map(|StoredEvent { place, event }| Leaf { place: *place, id: event.id, kind: event.kind, mac: event.mac }).collect();
    assert!(expected.iter().any(|leaf| leaf.mac == [0; 32]) && expected.iter().any(|leaf| leaf.mac != [0; 32]));
    let mut paged: Vec<Leaf> = Vec::new();
    loop {
        let page = stage.store().leaves(paged.last().map_or(0, |leaf| leaf.place), 4).await.expect("a page");
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 4);
        paged.extend(page);
    }
    assert_eq!(paged, expected);
    assert!(stage.store().leaves(u64::MAX, 4).await.expect("a page").is_empty());
}

/// A number that a command gives is the same number when it is read again: the chain is over its text.
pub async fn numbers_are_read_again_as_they_were(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut given = Vec::new();
    let mut chance = Chance::new(7);
    for _ in 0..8 {
        let numbers: Vec<f64> = std::iter::repeat_with(|| f64::from_bits(chance.number())).filter(|n| n.is_finite()).take(50).collect();
        let output = json!({"numbers": numbers, "known": [0.1, 5e-324, f64::MAX, 1e23, 9_007_199_254_740_993_i64, u64::MAX, i64::MIN]});
        let fence = stage.running(|_| ()).await;
        let end = EndAttempt { output: Some(Payload::Inline(output.clone())), ..ended(fence, exit(0)) };
        stage.play(Command::EndAttempt(end)).await;
        given.push((fence.execution, output));
    }
    for _ in 0..2 {
        for (id, output) in &given {
            stage.verify_chain(*id).await;
            let events = stage.events_of(*id).await;
            let told = events.iter().find(|event| event.kind == EventType::TaskCompleted).expect("its end");
            assert_eq!(told.properties["output"], *output);
        }
        stage.reopen().await;
    }
}

/// By what they are about, by type and by time, alone and together.
pub async fn events_are_found_by_entity_type_and_time(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let beginning = stage.now;
    mixed(&mut stage).await;
    let all = stage.events(EventQuery::default()).await;
    let about = all[0].event.entity.clone();
    let (from, to) = (Some(beginning.plus_ms(1_000)), Some(beginning.plus_ms(2_000)));
    for (entity, kind, from, to) in [
        (Some(about.clone()), None, None, None),
        (None, Some(EventType::TaskPending), None, None),
        (None, None, from, to),
        (None, None, from, None),
        (None, None, None, to),
        (Some(about.clone()), Some(EventType::TaskCompleted), from, to),
        (Some(about.clone()), None, None, from),
        (None, Some(EventType::Audit), from, to),
        (Some(Entity { id: "nothing".into(), ..about }), None, None, None),
    ] {
        let mut matching = all.clone();
        matching.retain(|stored| {
            entity.as_ref().is_none_or(|entity| stored.event.entity == *entity)
                && kind.is_none_or(|kind| stored.event.kind == kind)
                && from.is_none_or(|from| stored.event.at >= from)
                && to.is_none_or(|to| stored.event.at < to)
        });
        let query = EventQuery { entity, kind, from, to, ..EventQuery::default() };
        assert_eq!(stage.events(query.clone()).await, matching, "{query:?}");
        matching.reverse();
        assert_eq!(stage.events(EventQuery { descending: true, ..query.clone() }).await, matching, "{query:?} descending");
    }
}

/// Whoever follows by place sees every event once, in order, while more are written.
pub async fn a_follower_sees_every_event_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut followed = Vec::new();
    for round in 0..12 {
        let fence = stage.running(|_| ()).await;
        if round % 3 != 0 {
            stage.end(fence, exit(0)).await;
        }
        let after = followed.last().map(|stored: &runvoy_ports::store::StoredEvent| stored.place);
        followed.extend(stage.events(EventQuery { after, limit: 3, ..EventQuery::default() }).await);
    }
    let after = followed.last().map(|stored| stored.place);
    followed.extend(stage.events(EventQuery { after, ..EventQuery::default() }).await);
    assert_eq!(followed, stage.events(EventQuery::default()).await);
}

/// A call through the API leaves one audit event: who, what, from where, which request.
pub async fn a_call_leaves_one_audit_event(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = stage.submit(|_| ()).await;
    stage.kill(id).await;
    let events = stage.events_of(id).await;
    let audits: Vec<_> = events.iter().filter(|event| event.kind == EventType::Audit).collect();
    assert_eq!(audits.len(), 2, "one of the submit, one of the kill");
    for audit in audits {
        assert_eq!(audit.properties["user"], "ann@x");
        assert_eq!(audit.properties["action"], "executions.test");
        assert_eq!(audit.properties["from"], "127.0.0.1");
        assert!(audit.properties["apiRequestId"].is_string());
    }
}
