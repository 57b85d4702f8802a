//! What pages of events for somebody promise: they see what they may, all of it, once, however little is looked at in one go.

use runvoy_model::bound::{CUT, MOST_EVENT_BYTES};
use runvoy_model::command::{Answer, Command};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventPage, EventQuery, Retention, Sight, StoredEvent};

use crate::harness::Executions;
use crate::stage::{Stage, exit};

/// All of it at once.
const ALL: Sight = Sight { owner: None, trail: true, most_looked_at: usize::MAX, most_bytes: usize::MAX };

fn of(owner: &str) -> Sight {
    Sight { owner: Some(owner.into()), trail: false, ..ALL }
}

async fn seen(stage: &Stage<'_>, query: EventQuery, sight: &Sight) -> EventPage {
    let query = EventQuery { limit: if query.limit == 0 { 100_000 } else { query.limit }, ..query };
    stage.store().seen_events(query, sight.clone()).await.expect("a page")
}

async fn submit_as(stage: &mut Stage<'_>, owner: &str) -> ExecutionId {
    let mut submit = stage.new_submit(|_| ());
    submit.created_by = owner.into();
    let id = submit.id;
    assert!(matches!(stage.play(Command::Submit(submit)).await, Answer::Submitted { .. }));
    id
}

/// Executions of two people in turn, some of which run and end.
async fn shared(stage: &mut Stage<'_>) -> Vec<(ExecutionId, &'static str)> {
    let mut made = Vec::new();
    for round in 0..9 {
        let owner = if round % 3 == 0 { "ann@x" } else { "bob@x" };
        made.push((submit_as(stage, owner).await, owner));
        let fence = stage.begun().await;
        stage.extend(fence).await;
        if round % 2 == 0 {
            stage.pass_ms(500);
            stage.end(fence, exit(0)).await;
        }
    }
    made
}

/// Without an owner everything is seen; with one, what is about their executions; calls only by who may read the trail.
pub async fn somebody_sees_what_is_theirs_and_no_call(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let made = shared(&mut stage).await;
    let all = stage.events(EventQuery::default()).await;
    assert_eq!(seen(&stage, EventQuery::default(), &ALL).await.events, all);
    let calls = |stored: &&StoredEvent| !stored.event.kind.is_trail();
    let without: Vec<_> = all.iter().filter(calls).cloned().collect();
    assert!(without.len() < all.len());
    assert_eq!(seen(&stage, EventQuery::default(), &Sight { trail: false, ..ALL }).await.events, without);
    for owner in ["ann@x", "bob@x", "eve@x"] {
        let theirs = |stored: &&StoredEvent| made.iter().any(|(id, by)| *by == owner && stored.event.entity == Entity::task(*id));
        let expected: Vec<_> = without.iter().filter(theirs).cloned().collect();
        assert_eq!(expected.is_empty(), owner == "eve@x");
        assert_eq!(seen(&stage, EventQuery::default(), &of(owner)).await.events, expected, "{owner}");
        let foreign = made.iter().find(|(_, by)| *by != owner).expect("somebody else's").0;
        let query = EventQuery { entity: Some(Entity::task(foreign)), ..EventQuery::default() };
        assert!(seen(&stage, query, &of(owner)).await.events.is_empty());
    }
}

/// Every shape, in both directions, by small pages and small looks, gives what it gives at once.
pub async fn pages_for_somebody_have_no_gap_and_no_repeat(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let beginning = stage.now;
    let made = shared(&mut stage).await;
    let (mine, from, to) = (Entity::task(made[1].0), beginning.plus_ms(500), beginning.plus_ms(1_500));
    let ended = Some(EventType::TaskCompleted);
    for (entity, kind, from, to) in [
        (None, None, None, None),
        (Some(mine.clone()), None, None, None),
        (None, ended, None, None),
        (Some(mine), Some(EventType::TaskPending), None, None),
        (None, None, Some(from), Some(to)),
        (None, ended, Some(from), None),
    ] {
        for sight in [ALL, of("bob@x")] {
            for descending in [false, true] {
                let query = EventQuery { entity: entity.clone(), kind, from, to, descending, ..EventQuery::default() };
                let whole = seen(&stage, query.clone(), &sight).await;
                assert!(!whole.events.is_empty() && !whole.more, "{query:?}");
                assert_eq!(paged(&stage, &query, &Sight { most_looked_at: 3, ..sight.clone() }).await, whole.events, "{query:?} {sight:?}");
            }
        }
    }
}

async fn paged(stage: &Stage<'_>, query: &EventQuery, sight: &Sight) -> Vec<StoredEvent> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = seen(stage, EventQuery { after, limit: 2, ..query.clone() }, sight).await;
        assert!(page.events.len() <= 2);
        found.extend(page.events);
        if !page.more {
            return found;
        }
        assert_ne!(after, Some(page.looked), "a page that may be followed by another moves on");
        after = Some(page.looked);
    }
}

/// A page ends with the event that makes it as large as asked for, and has at least that one.
pub async fn a_page_is_as_large_as_asked_for(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    shared(&mut stage).await;
    let page = seen(&stage, EventQuery::default(), &Sight { most_bytes: 1, ..ALL }).await;
    assert_eq!((page.events.len(), page.more), (1, true));
    let page = seen(&stage, EventQuery { descending: true, ..EventQuery::default() }, &Sight { most_bytes: 400, ..ALL }).await;
    assert!((2..20).contains(&page.events.len()) && page.more, "{}", page.events.len());
}

/// Whoever follows and sees nothing goes on from the end of the log, and misses nothing that comes after.
pub async fn whoever_sees_nothing_moves_on(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let empty = seen(&stage, EventQuery::default(), &of("eve@x")).await;
    assert_eq!((empty.looked, empty.more), (0, false));
    shared(&mut stage).await;
    let last = stage.events(EventQuery::default()).await.last().expect("events").place;
    let page = seen(&stage, EventQuery { after: Some(0), ..EventQuery::default() }, &of("eve@x")).await;
    assert_eq!((page.events.len(), page.looked, page.more), (0, last, false));
    let kind = Some(EventType::TaskTimeout);
    assert_eq!(seen(&stage, EventQuery { kind, after: Some(1), ..EventQuery::default() }, &ALL).await.looked, last);
    let id = submit_as(&mut stage, "eve@x").await;
    let page = seen(&stage, EventQuery { after: Some(last), ..EventQuery::default() }, &of("eve@x")).await;
    assert_eq!(page.events.len(), 1);
    assert_eq!(page.events[0].event.entity, Entity::task(id));
    let again = seen(&stage, EventQuery { after: Some(page.looked), ..EventQuery::default() }, &of("eve@x")).await;
    assert!(again.events.is_empty());
}

/// A place that was given is not given again, also when the newest event was forgotten and the store opened anew.
pub async fn a_place_is_given_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.extend(fence).await;
    let last = stage.events(EventQuery::default()).await.last().expect("events").clone();
    assert_eq!(last.event.kind, EventType::TaskHeartbeat);
    stage.pass_ms(1_000_000);
    let retention = Retention { heartbeats_before: stage.now, receipts_before: UnixMs(0), max_rows: 100 };
    stage.store().prune(retention).await.expect("pruning");
    stage.reopen().await;
    stage.end(fence, exit(0)).await;
    let end = stage.events(EventQuery { kind: Some(EventType::TaskCompleted), ..EventQuery::default() }).await;
    assert!(end[0].place > last.place);
    let followed = seen(&stage, EventQuery { after: Some(last.place), ..EventQuery::default() }, &ALL).await;
    assert_eq!(followed.events, end);
}

/// What would make an event too large is left out with a mark, and the chain is over what is kept.
pub async fn an_event_is_held_to_its_size(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let submit = stage.new_submit(|_| ());
    let (id, mut step) = (submit.id, stage.step());
    step.audit.as_mut().expect("a call").from = "x".repeat(MOST_EVENT_BYTES);
    stage.apply(&step, &Command::Submit(submit)).await;
    let audit = stage.events_of(id).await.into_iter().find(|event| event.kind == EventType::Audit).expect("a call");
    assert!(audit.canonical().len() < MOST_EVENT_BYTES);
    assert_eq!(audit.properties["user"], "ann@x");
    assert_eq!(audit.properties[CUT]["from"]["bytes"], MOST_EVENT_BYTES + 2, "with its quotes");
    stage.verify_chain(id).await;
}
