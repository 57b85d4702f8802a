//! Whatever goes wrong on the way to the bus, every event gets there, and readers of the table find it before.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_ports::clock::Clock;
use serde_json::Value;

use super::*;
use crate::config::EventLayout;
use crate::event::publisher::bus::{Bus, Letter};
use crate::event::{Consumer, Publisher, mark};
use crate::fault::Fault;
use crate::item::Read;

/// Long after today: an emulator tidies away what has expired.
const BEGINNING: i64 = 4_000_000_000_000;

/// A clock that tests move.
#[derive(Default)]
struct Hand(Mutex<i64>);

impl Clock for Hand {
    fn now(&self) -> UnixMs {
        UnixMs(*self.0.lock())
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A bus that often takes nothing, or some, or takes and does not answer.
#[derive(Clone)]
struct Unsteady {
    chance: Arc<Mutex<Chance>>,
    /// How often each detail was taken.
    taken: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Unsteady {
    fn new(seed: u64) -> Self {
        Self { chance: Arc::new(Mutex::new(Chance::new(seed))), taken: Arc::default() }
    }
}

#[async_trait]
impl Bus for Unsteady {
    async fn put(&self, letters: &[&Letter]) -> Result<Vec<Option<String>>, Fault> {
        assert!(letters.len() <= 10 && letters.iter().map(|letter| letter.detail.len()).sum::<usize>() <= 256 * 1024);
        let lost = || Fault::Unavailable { service: "EventBridge", code: "lost".into(), source: "lost".into() };
        let mut chance = self.chance.lock();
        if chance.percent(15) {
            return Err(lost());
        }
        let results: Vec<_> = letters.iter().map(|_| chance.percent(25).then(|| "ThrottlingException".to_owned())).collect();
        let mut taken = self.taken.lock();
        for (letter, _) in letters.iter().zip(&results).filter(|(_, error)| error.is_none()) {
            *taken.entry(letter.detail.clone()).or_default() += 1;
        }
        if chance.percent(10) { Err(lost()) } else { Ok(results) }
    }
}

fn publisher(stand: &Stand, bus: &Unsteady, clock: &Arc<Hand>, name: &str) -> Publisher {
    Publisher::with_bus(&stand.clients, Arc::clone(&stand.config), Arc::clone(clock) as Arc<dyn Clock>, name.into(), Box::new(bus.clone()))
}

async fn events(stand: &Stand, count: u64) -> Vec<Event> {
    let mut subject = Subject::new(EntityType::Task, "t1");
    let mut all = Vec::new();
    for n in 0..count {
        let text = if n % 40 == 20 { "z".repeat(230_000) } else { String::new() };
        let event = subject.event(id(1, n), EventType::Audit, UnixMs(BEGINNING + n.cast_signed()), json!({"n": n, "text": text}));
        stand.commit(StepId(id(2, n)), std::slice::from_ref(&event), &[]).await;
        all.push(event);
    }
    all
}

#[tokio::test]
async fn a_bus_that_fails_loses_nothing() {
    let stand = Stand::with(|config| config.events_ttl_days = Some(3)).await;
    let all = events(&stand, 130).await;
    let (bus, clock) = (Unsteady::new(3), Arc::new(Hand(Mutex::new(5_000))));
    let publishers = [publisher(&stand, &bus, &clock, "one"), publisher(&stand, &bus, &clock, "two")];
    let (mut failures, mut done) = (0, 0);
    for turn in 0..400 {
        // The turn goes over to the other one now and then.
        *clock.0.lock() += 3_000;
        failures += usize::from(publishers[turn / 5 % 2].turn().await.is_err());
        let now = mark::published(&stand.dynamo).await.expect("a mark");
        assert!(now >= done, "the mark went back");
        done = now;
        if done == all.len() as u64 {
            break;
        }
    }
    assert_eq!(done, all.len() as u64, "not all were published");
    assert!(failures > 0, "nothing went wrong");
    let taken = bus.taken.lock().clone();
    assert_eq!(taken.len(), all.len());
    for event in &all {
        let wire = event.to_wire(&stand.config.scope);
        let found = taken.keys().find(|detail| detail.contains(wire["SK"].as_str().expect("a key"))).expect("published");
        let detail: Value = serde_json::from_str(found).expect("JSON");
        let item = crate::item::item([
            ("PK", crate::item::s(wire["PK"].as_str().expect("a key"))),
            ("SK", crate::item::s(wire["SK"].as_str().expect("a key"))),
        ]);
        let kept = stand.dynamo.get(Table::Events, item).await.expect("read").expect("the contract's item");
        assert!(kept.number::<i64>("receivedAt").expect("a time") >= 5_000);
        assert_eq!(kept.number::<i64>("ttl").expect("a time"), event.at.seconds() + 3 * 86_400);
        assert_eq!(kept.text("GSI7SK").expect("a key"), wire["GSI7SK"]);
        if event.properties["text"] == "" {
            assert_eq!(detail, wire);
        } else {
            assert_overflow(&stand, event, &detail).await;
        }
    }
}

async fn assert_overflow(stand: &Stand, event: &Event, detail: &Value) {
    assert_eq!(detail["properties"]["n"], event.properties["n"]);
    let named = &detail["properties"]["_s3Overflow"];
    let (bucket, key) = (named["bucket"].as_str().expect("a bucket"), named["key"].as_str().expect("a key"));
    let found = stand.clients.s3.get_object().bucket(bucket).key(key).send().await.expect("an object");
    let bytes = found.body.collect().await.expect("its bytes").into_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&bytes).expect("JSON")["text"], event.properties["text"]);
}

#[tokio::test]
async fn one_has_the_turn_until_it_is_over() {
    let stand = Stand::with(|config| config.layout = EventLayout::Sharded).await;
    let all = events(&stand, 3).await;
    let (bus, clock) = (Unsteady::new(4), Arc::new(Hand::default()));
    let (one, two) = (publisher(&stand, &bus, &clock, "one"), publisher(&stand, &bus, &clock, "two"));
    assert!(mark::take_turn(&stand.dynamo, "one", clock.now(), clock.now().plus_ms(10_000)).await.expect("a turn"));
    assert_eq!(two.turn().await.expect("no turn"), 0);
    assert_eq!(two.handed_on(), None, "it says nothing of a turn that it has not");
    assert!(bus.taken.lock().is_empty());
    while one.turn().await.is_err() {
        assert!(matches!(one.handed_on(), Some(Err(_))));
    }
    assert_eq!(one.handed_on(), Some(Ok(())));
    assert_eq!(bus.taken.lock().len(), all.len());
    *clock.0.lock() += 20_000;
    assert!(mark::take_turn(&stand.dynamo, "two", clock.now(), clock.now().plus_ms(10_000)).await.expect("a turn"));
    let of_tenant = crate::dynamo::Query::of(Table::Events, "PK", crate::item::s("TENANT#default"));
    assert!(stand.dynamo.query(of_tenant).await.expect("a query").is_empty(), "no items of the contract in this layout");
}

/// What the bus was told, once there is nothing more that it may be told now.
async fn told(publisher: &Publisher, bus: &Unsteady) -> Vec<Value> {
    while !matches!(publisher.turn().await, Ok(0)) {}
    bus.taken.lock().keys().map(|detail| serde_json::from_str(detail).expect("JSON")).collect()
}

/// The processes that the starts of a task name.
fn processes(told: &[Value], task: &str) -> Vec<Option<u64>> {
    let starts = told.iter().filter(|event| event["eventType"] == "Task Processing Started" && event["entityId"] == task);
    starts.map(|event| event["properties"]["processId"].as_u64()).collect()
}

#[tokio::test]
async fn bus_is_told_of_a_start_with_its_process() {
    let stand = Stand::with(|config| config.layout = EventLayout::Sharded).await;
    let (bus, clock) = (Unsteady::new(5), Arc::new(Hand(Mutex::new(BEGINNING + 1_000))));
    let publisher = publisher(&stand, &bus, &clock, "one");
    let (mut long, mut silent, mut other) =
        (Subject::new(EntityType::Task, "long"), Subject::new(EntityType::Task, "silent"), Subject::new(EntityType::Task, "other"));
    let began = UnixMs(BEGINNING);
    let commit = async |number: u64, event: Event| {
        let before: Vec<StepId> = number.checked_sub(1).map(|last| StepId(id(2, last))).into_iter().collect();
        stand.commit(StepId(id(2, number)), std::slice::from_ref(&event), &before).await;
    };
    commit(0, long.event(id(1, 0), EventType::TaskPending, began, json!({}))).await;
    commit(1, long.event(id(1, 1), EventType::TaskProcessingStarted, began, json!({"attempt": 1}))).await;
    assert_eq!(told(&publisher, &bus).await.len(), 1, "the start waits for its process");
    assert_eq!(told(&publisher, &bus).await.len(), 1, "still");

    // More than a page of events is between the start and what tells its process.
    for number in 2..112 {
        commit(number, other.event(id(1, number), EventType::Audit, began, json!({"n": number}))).await;
    }
    commit(112, long.event(id(1, 112), EventType::TaskHeartbeat, began, json!({"attempt": 1, "processId": 42}))).await;
    let now = told(&publisher, &bus).await;
    assert_eq!((now.len(), processes(&now, "long")), (113, vec![Some(42)]));

    commit(113, silent.event(id(1, 113), EventType::TaskProcessingStarted, began, json!({"attempt": 1}))).await;
    assert_eq!(told(&publisher, &bus).await.len(), 113);
    *clock.0.lock() += 5_000;
    let now = told(&publisher, &bus).await;
    assert_eq!((now.len(), processes(&now, "silent")), (114, vec![None]), "a worker that names none is not waited for");
}

#[tokio::test]
async fn the_bus_itself_takes_events_and_hands_them_on() {
    let stand = Stand::new().await;
    let all = events(&stand, 12).await;
    let sqs = &stand.clients.sqs;
    let queue = sqs.create_queue().queue_name(format!("{}-heard", stand.config.prefix)).send().await.expect("a queue");
    let url = queue.queue_url().expect("its address").to_owned();
    let arn = sqs.get_queue_attributes().queue_url(&url).attribute_names("QueueArn".into()).send().await.expect("attributes");
    let arn = arn.attributes().expect("some")[&"QueueArn".into()].clone();
    let bus = &stand.config.event_bus;
    let pattern = json!({"detail-type": ["log-event"], "source": ["task-workflow.runvoy"]}).to_string();
    stand.clients.events.put_rule().name("hear").event_bus_name(bus).event_pattern(pattern).send().await.expect("a rule");
    let target = aws_sdk_eventbridge::types::Target::builder().id("queue").arn(arn).build().expect("a target");
    stand.clients.events.put_targets().rule("hear").event_bus_name(bus).targets(target).send().await.expect("a target");
    let publisher = Publisher::new(&stand.clients, Arc::clone(&stand.config), Arc::new(Hand(Mutex::new(9_000))), "one".into());
    assert_eq!(publisher.turn().await.expect("published"), all.len());
    assert_eq!(publisher.turn().await.expect("nothing more"), 0);
    let consumer = Consumer::new(&stand.clients, Arc::clone(&stand.config));
    let mut heard = BTreeMap::new();
    for _ in 0..20 {
        let answer = sqs.receive_message().queue_url(&url).max_number_of_messages(10).wait_time_seconds(1).send().await.expect("messages");
        for message in answer.messages() {
            let body: Value = serde_json::from_str(message.body().expect("a body")).expect("JSON");
            assert!(!consumer.save_event(&body["detail"], UnixMs(1)).await.expect("saved"), "the publisher put it before");
            heard.insert(body["detail"]["SK"].as_str().expect("a key").to_owned(), body["detail"].clone());
            sqs.delete_message().queue_url(&url).receipt_handle(message.receipt_handle().expect("a handle")).send().await.expect("deleted");
        }
        if heard.len() == all.len() {
            break;
        }
    }
    let expected =
        all.iter().map(|event| event.to_wire(&stand.config.scope)).map(|wire| (wire["SK"].as_str().expect("a key").to_owned(), wire));
    assert_eq!(heard, expected.collect());
}

#[tokio::test]
async fn a_consumer_saves_an_event_once() {
    let stand = Stand::new().await;
    let consumer = Consumer::new(&stand.clients, Arc::clone(&stand.config));
    let mut subject = Subject::new(EntityType::Task, "t9");
    let detail = subject.event(id(1, 1), EventType::TaskPending, UnixMs(7), json!({"a": [1.5, null]})).to_wire(&stand.config.scope);
    assert!(consumer.save_event(&detail, UnixMs(70)).await.expect("saved"));
    assert!(!consumer.save_event(&detail, UnixMs(80)).await.expect("there already"));
    let query = crate::dynamo::Query::of(Table::Events, "PK", crate::item::s("TENANT#default"));
    let kept = stand.dynamo.query(query).await.expect("a query");
    assert_eq!((kept.len(), kept[0].number::<i64>("receivedAt").expect("a time")), (1, 70));
    let forged = json!({"PK": "TASK#t9", "SK": "PLACE#00000000000000000001"});
    assert!(consumer.save_event(&forged, UnixMs(1)).await.is_err());
}
