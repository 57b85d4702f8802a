//! How what runs is judged, and what the events of a lease tell: until when it lasts, what the command does, what it used.

use serde_json::{Value, json};

use super::world::{World, ended, exit, name, worker};
use crate::command::{Answer, Command, Extend, Fence, LeaseRequest, Refusal};
use crate::event::EventType;
use crate::health::{Check, Health, MOST_TOLD, TaskHealth, Thresholds};
use crate::id::LeaseId;
use crate::job::Payload;

const MINUTE: i64 = 60_000;

fn health(world: &World, fence: Fence) -> TaskHealth {
    TaskHealth::of(world.get(fence.execution), world.now, Thresholds::default()).expect("it runs")
}

fn extend(world: &mut World, fence: Fence, activity: Option<Value>) -> Value {
    let at = world.now;
    let extend = Extend {
        fence,
        ttl_ms: 45_000,
        process_id: Some(42),
        rss_bytes: Some(1 << 20),
        last_output_at: Some(at),
        activity,
        preparing: None,
    };
    assert!(matches!(world.play(Command::Extend(extend)), Answer::Extended(_)));
    world.events_of(fence.execution).last().expect("events").properties.clone()
}

#[test]
fn health_goes_by_the_last_event_of_the_worker_and_by_the_length_of_the_attempt() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let began = world.now;
    for (after, expected) in [
        (0, Health::Healthy),
        (40_000, Health::Healthy),
        (40_001, Health::Warning),
        (10 * MINUTE, Health::Warning),
        (10 * MINUTE + 1, Health::Critical),
        (60 * MINUTE, Health::Critical),
        (60 * MINUTE + 1, Health::Overtime),
    ] {
        world.now = began.plus_ms(after);
        let health = health(&world, fence);
        assert_eq!((health.health, health.elapsed_ms, health.silent_ms), (expected, after, after));
        assert_eq!((health.last_event, health.worker), (EventType::TaskProcessingStarted, worker(1).id));
    }
    assert!(health(&world, fence).is_silent, "overtime or not, nothing is heard of it");
    world.kill(fence.execution);
    assert!(health(&world, fence).is_silent, "somebody's wish is no sign of life");
    extend(&mut world, fence, None);
    world.now = world.now.plus_ms(MINUTE);
    let heard = health(&world, fence);
    assert_eq!((heard.health, heard.last_event, heard.silent_ms), (Health::Overtime, EventType::TaskHeartbeat, MINUTE));
    assert!(heard.is_overtime && !heard.is_silent);
}

#[test]
fn what_has_a_long_lease_is_healthy_for_as_long_as_it_was_heard_of_lately() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let hour =
        Extend { fence, ttl_ms: 3_600_000, process_id: None, rss_bytes: None, last_output_at: None, activity: None, preparing: None };
    assert!(matches!(world.play(Command::Extend(hour)), Answer::Extended(_)));
    let heard = world.now;
    for (after, expected) in [(5 * MINUTE, Health::Healthy), (5 * MINUTE + 1, Health::Warning)] {
        world.now = heard.plus_ms(after);
        assert_eq!(health(&world, fence).health, expected);
    }
}

#[test]
fn what_does_not_run_has_no_health() {
    let mut world = World::new();
    let id = world.submit(|_| ());
    let of = |world: &World| TaskHealth::of(world.get(id), world.now, Thresholds::default());
    assert_eq!(of(&world), None, "it waits");
    let fence = world.lease().expect("a lease");
    assert_eq!(of(&world), None, "it is only reserved");
    world.play(Command::Begin(fence));
    assert!(of(&world).is_some());
    world.end(fence, exit(0));
    assert_eq!(of(&world), None, "it has ended");
}

#[test]
fn a_look_counts_all_and_names_the_worst_first() {
    let mut world = World::new();
    let quiet = world.running(|_| ());
    world.now = world.now.plus_ms(11 * MINUTE);
    let others: Vec<Fence> = (0..MOST_TOLD + 5).map(|_| world.running(|_| ())).collect();
    let all = std::iter::once(&quiet).chain(&others).rev().map(|fence| health(&world, *fence)).collect();
    let check = Check::of(all);
    let total = MOST_TOLD + 6;
    assert_eq!((check.summary.total_processing, check.summary.critical), (total as u64, 1));
    assert_eq!((check.summary.healthy, check.tasks[0].execution), (total as u64 - 1, quiet.execution));
    let told = check.properties();
    assert_eq!((told["tasks"].as_array().map(Vec::len), &told["tasksLeftOut"]), (Some(MOST_TOLD), &json!(6)));
    let row = json!({
        "requestId": quiet.execution, "health": "critical", "elapsed": 11 * MINUTE, "timeSinceLastEvent": 11 * MINUTE,
        "lastEventType": "Task Processing Started", "workerId": worker(1).id,
    });
    assert_eq!(told["tasks"][0], row);
    assert_eq!(Check::of(Vec::new()).properties().get("tasksLeftOut"), None);
}

#[test]
fn events_of_a_lease_say_until_when_it_lasts() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let started = world.events_of(fence.execution).last().expect("events").properties.clone();
    assert_eq!(started["effectiveUntil"], world.now.plus_ms(30_000).seconds());
    world.now = world.now.plus_ms(10_000);
    let beat = extend(&mut world, fence, None);
    let expected = json!({
        "requestId": fence.execution, "attempt": 1, "effectiveUntil": world.now.plus_ms(45_000).seconds(), "heartbeatNumber": 1,
        "elapsedMs": 10_000, "workerId": worker(1).id, "processId": 42, "memoryUsage": {"rss": 1 << 20},
        "lastActivity": {"type": "output", "timestamp": world.now.seconds()},
    });
    assert_eq!(beat, expected);
}

#[test]
fn what_the_command_says_it_does_goes_before_its_output() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let now = |world: &World| world.now.seconds();
    let said = extend(&mut world, fence, Some(json!({"type": "sdk_query", "stepName": "color-tags"})));
    assert_eq!(said["lastActivity"], json!({"type": "sdk_query", "stepName": "color-tags", "timestamp": now(&world)}));
    world.now = world.now.plus_ms(MINUTE);
    let said = extend(&mut world, fence, Some(json!({"type": "waiting", "timestamp": 7})));
    assert_eq!(said["lastActivity"], json!({"type": "waiting", "timestamp": 7}), "it knows best when");
    world.now = world.now.plus_ms(MINUTE);
    let said = extend(&mut world, fence, Some(json!("sorting")));
    assert_eq!(said["lastActivity"], json!({"type": "said", "said": "sorting", "timestamp": now(&world)}));
    world.now = world.now.plus_ms(MINUTE);
    let said = extend(&mut world, fence, Some(Value::Null));
    assert_eq!(said["lastActivity"]["type"], "output");
}

#[test]
fn the_begin_of_an_attempt_renews_its_lease() {
    let mut world = World::new();
    world.submit(|_| ());
    let fence = world.lease().expect("a lease");
    world.now = world.now.plus_ms(20_000);
    for _ in 0..2 {
        assert!(matches!(world.play(Command::Begin(fence)), Answer::Begun(_)));
        let lease = world.get(fence.execution).lease.as_ref().expect("a lease");
        assert_eq!((lease.extensions, lease.deadline), (1, world.now.plus_ms(30_000)), "a second begin is the first one");
    }
}

#[test]
fn nobody_else_begins_what_is_leased_until_then() {
    let mut world = World::new();
    world.submit(|_| ());
    let fence = world.lease().expect("a lease");
    let until = world.get(fence.execution).lease.as_ref().expect("a lease").deadline;
    world.now = until.plus_ms(-1);
    let other = LeaseId::from_bytes([9; 16]);
    let request = |begin| LeaseRequest {
        worker: worker(2),
        queues: vec![name("default")],
        leases: vec![other],
        ttl_ms: 30_000,
        begin,
        lost_after_ms: None,
    };
    for begin in [false, true] {
        assert_eq!(world.play(Command::Lease(request(begin))), Answer::Leased(Vec::new()));
    }
    let stolen = Fence { lease: other, ..fence };
    assert_eq!(super::refusal(world.play(Command::Begin(stolen))), Refusal::Lapsed);
    assert!(matches!(world.play(Command::Begin(fence)), Answer::Begun(_)));
    assert_eq!(super::refusal(world.play(Command::Begin(stolen))), Refusal::Lapsed);
    assert_eq!(super::refusal(world.play(Command::EndAttempt(ended(stolen, exit(0))))), Refusal::Lapsed);
    assert_eq!(world.get(fence.execution).attempt, 1);
}

#[test]
fn usage_is_told_also_where_the_output_lies_elsewhere() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let mut end = ended(fence, exit(0));
    end.output = Some(Payload::Blob { key: "k".into(), bytes: 300_000 });
    end.usage = Some(json!({"inputTokens": 12_000}));
    world.play(Command::EndAttempt(end));
    let completed = world.events_of(fence.execution).last().expect("events").properties.clone();
    assert_eq!((&completed["usage"], &completed["_s3Overflow"]["key"]), (&json!({"inputTokens": 12_000}), &json!("k")));
}
