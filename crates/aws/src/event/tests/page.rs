//! Pages agree with a plain model that looks at everything, on random data: the reference's own way.

use std::collections::BTreeMap;

use runvoy_ports::store::{EventPage, EventQuery, Leaf, Sight, StoredEvent};

use super::*;
use crate::item::{item, n, s};

/// Where the log of these tests begins: its blocks of places are crossed.
const BEGINNING: u64 = 8_900;
const OWNERS: [&str; 3] = ["ann@x", "bob@x", "eve@x"];

struct Model {
    events: BTreeMap<u64, Event>,
    last: u64,
    owners: BTreeMap<Entity, Vec<&'static str>>,
}

impl Model {
    fn asked_for(query: &EventQuery, event: &Event) -> bool {
        query.entity.as_ref().is_none_or(|entity| event.entity == *entity)
            && query.kind.is_none_or(|kind| event.kind == kind)
            && query.from.is_none_or(|from| event.at >= from)
            && query.to.is_none_or(|to| event.at < to)
    }

    fn asked(&self, query: &EventQuery) -> Vec<(u64, &Event)> {
        let (first, last) = match query.after {
            Some(after) if query.descending => (0, after),
            Some(after) => (after.saturating_add(1), u64::MAX),
            None => (0, u64::MAX),
        };
        let within =
            self.events.range(first..last).filter(|(_, event)| Self::asked_for(query, event)).map(|(place, event)| (*place, event));
        if query.descending { within.rev().collect() } else { within.collect() }
    }

    fn events(&self, query: &EventQuery) -> Vec<StoredEvent> {
        let stored = |(place, event): (u64, &Event)| StoredEvent { place, event: event.clone() };
        self.asked(query).into_iter().take(query.limit).map(stored).collect()
    }

    fn seen(&self, query: &EventQuery, sight: &Sight) -> EventPage {
        let asked = self.asked(query);
        let mut asked = asked.into_iter();
        let mut page = EventPage { looked: query.after.unwrap_or(0), ..EventPage::default() };
        let (mut looked_at, mut bytes) = (0, 0);
        while let Some((place, event)) = asked.next() {
            (page.looked, looked_at) = (place, looked_at + 1);
            let owned = |owner: &String| self.owners.get(&event.entity).is_some_and(|owners| owners.contains(&owner.as_str()));
            if (sight.trail || !event.kind.is_trail()) && sight.owner.as_ref().is_none_or(owned) {
                bytes += event.properties.to_string().len() + event.context.to_string().len();
                page.events.push(StoredEvent { place, event: event.clone() });
            }
            if page.events.len() >= query.limit || looked_at >= sight.most_looked_at || bytes >= sight.most_bytes {
                page.more = asked.next().is_some();
                break;
            }
        }
        if !page.more && !query.descending {
            page.looked = page.looked.max(self.last);
        }
        page
    }

    fn leaves(&self, after: u64, max: usize) -> Vec<Leaf> {
        let further = self.events.range(after.saturating_add(1)..).take(max);
        further.map(|(place, event)| Leaf { place: *place, id: event.id, kind: event.kind, mac: event.mac }).collect()
    }
}

const KINDS: [EventType; 6] = [
    EventType::TaskPending,
    EventType::TaskCompleted,
    EventType::TaskHeartbeat,
    EventType::Audit,
    EventType::JobCreated,
    EventType::TaskTimeout,
];

fn subjects() -> Vec<Subject> {
    let task = |n| Subject::new(EntityType::Task, format!("{n:032x}"));
    let job = |n| Subject::new(EntityType::Job, format!("{n:032x}"));
    (0..20).map(task).chain((0..4).map(job)).chain([Subject::new(EntityType::User, "ann@x")]).collect()
}

/// Random events about random subjects, by clocks that differ, and once by much.
async fn filled(stand: &Stand, chance: &mut Chance, count: u64) -> Model {
    let mark = item([("mark", s("place")), ("last", n(BEGINNING)), ("latest", n(0)), ("behind", n(0))]);
    stand.dynamo.put(Table::Marks, mark).await.expect("a mark");
    let mut subjects = subjects();
    let mut model = Model { events: BTreeMap::new(), last: BEGINNING, owners: BTreeMap::new() };
    for subject in &subjects {
        let (by, others) = (OWNERS[chance.below(2)], [OWNERS[chance.below(3)]]);
        let key = |name| (name, s(&*subject.entity.id));
        let known =
            [("user_email", s(by)), ("owners", aws_sdk_dynamodb::types::AttributeValue::L(others.iter().map(|one| s(*one)).collect()))];
        let (table, own, owners) = match subject.entity.kind {
            EntityType::Task => (Table::Executions, item([key("execution_id")]), vec![by, others[0]]),
            // Who else is named there owns no job.
            EntityType::Job => (Table::Jobs, item([key("job_id"), ("entry", s("job"))]), vec![by]),
            _ => continue,
        };
        let known = known.into_iter().map(|(name, value)| (name.to_owned(), value));
        stand.dynamo.put(table, own.into_iter().chain(known).collect()).await.expect("an owner");
        model.owners.insert(subject.entity.clone(), owners);
    }
    let mut left = count;
    while left > 0 {
        let here = left.min(1 + chance.below(38) as u64);
        let mut events = Vec::new();
        for _ in 0..here {
            let subject = chance.below(subjects.len());
            let kind = KINDS[chance.below(KINDS.len() - 1)];
            let place = model.last + 1;
            let at = match chance.below(400) {
                0 => place.saturating_sub(700),
                _ => place + chance.below(20) as u64,
            };
            let at = UnixMs(i64::try_from(at).expect("small") * 10);
            let properties = json!({"n": place, "text": "x".repeat(chance.below(60))});
            let event = subjects[subject].event(id(1, place), kind, at, properties);
            events.push(event.clone());
            model.events.insert(place, event);
            model.last = place;
        }
        stand.commit(StepId(id(2, model.last)), &events, &[]).await;
        left -= here;
    }
    model
}

fn random_query(chance: &mut Chance, model: &Model) -> EventQuery {
    let place = |chance: &mut Chance| BEGINNING - 10 + chance.below(usize::try_from(model.last - BEGINNING + 20).expect("small")) as u64;
    let time = |chance: &mut Chance| UnixMs(i64::try_from(place(chance)).expect("small") * 10);
    EventQuery {
        entity: chance.percent(25).then(|| subjects()[chance.below(25)].entity.clone()),
        kind: chance.percent(45).then(|| KINDS[chance.below(KINDS.len())]),
        from: chance.percent(30).then(|| time(chance)),
        to: chance.percent(30).then(|| time(chance)),
        descending: chance.percent(50),
        after: chance.percent(60).then(|| place(chance)),
        limit: [0, 1, 2, 10, 120, usize::MAX][chance.below(6)],
    }
}

fn random_sight(chance: &mut Chance) -> Sight {
    Sight {
        owner: chance.percent(60).then(|| OWNERS[chance.below(3)].to_owned()),
        trail: chance.percent(50),
        most_looked_at: [1, 3, 50, usize::MAX][chance.below(4)],
        most_bytes: [1, 400, usize::MAX][chance.below(3)],
    }
}

#[tokio::test]
async fn pages_agree_with_a_look_at_everything() {
    let stand = Stand::new().await;
    let mut chance = Chance::new(5);
    let model = filled(&stand, &mut chance, 2_600).await;
    let log = stand.log();
    assert_eq!(log.last_place().await.expect("a place"), model.last);
    for _ in 0..45 {
        let query = random_query(&mut chance, &model);
        let found = log.events(query.clone()).await.expect("events");
        let expected = model.events(&query);
        assert_eq!(
            found.iter().map(|stored| stored.place).collect::<Vec<_>>(),
            expected.iter().map(|stored| stored.place).collect::<Vec<_>>(),
            "{query:?}"
        );
        assert_eq!(found, expected);
        let sight = random_sight(&mut chance);
        assert_eq!(log.seen_events(query.clone(), sight.clone()).await.expect("a page"), model.seen(&query, &sight), "{query:?} {sight:?}");
        let (after, max) = (model.last.saturating_sub(chance.below(3_000) as u64), chance.below(300));
        assert_eq!(log.leaves(after, max).await.expect("leaves"), model.leaves(after, max));
    }
    assert!(log.leaves(u64::MAX, 4).await.expect("none").is_empty());
}

#[tokio::test]
async fn old_heartbeats_go_and_everything_else_stays() {
    let stand = Stand::new().await;
    let mut chance = Chance::new(6);
    let mut model = filled(&stand, &mut chance, 2_300).await;
    let log = stand.log();
    let all = model.events.len();
    // Some of them within what the index is trusted for, and some not.
    let before = UnixMs(i64::try_from(BEGINNING + 900).expect("small") * 10);
    let old = |event: &Event| event.kind == EventType::TaskHeartbeat && event.at < before;
    let expected = model.events.values().filter(|event| old(event)).count();
    assert!(expected > 100);
    let mut gone = 0;
    loop {
        let now = log.prune_heartbeats(before, 40).await.expect("pruning");
        assert!(now <= 40);
        gone += now;
        if now == 0 {
            break;
        }
    }
    model.events.retain(|_, event| !old(event));
    assert_eq!((gone, model.events.len()), (expected, all - expected));
    let query = EventQuery { limit: usize::MAX, ..EventQuery::default() };
    assert_eq!(log.events(query.clone()).await.expect("events"), model.events(&query));
    assert_eq!(log.leaves(0, usize::MAX).await.expect("leaves"), model.leaves(0, usize::MAX));
    for _ in 0..20 {
        let (query, sight) = (random_query(&mut chance, &model), random_sight(&mut chance));
        assert_eq!(log.seen_events(query.clone(), sight.clone()).await.expect("a page"), model.seen(&query, &sight), "{query:?} {sight:?}");
    }
}
