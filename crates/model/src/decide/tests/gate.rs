//! What a lease may take of a queue: pauses, limits, labels, and the order of the line.

use super::world::{World, exit, fence_of, name, spec, worker};
use crate::change::Change;
use crate::command::{Answer, Command, Fence, Kill, LeaseRequest, LeaseTo, Submit, Worker};
use crate::execution::AGE_PER_PRIORITY_MS;
use crate::id::{ExecutionId, LeaseId};
use crate::queue::QueueUpdate;
use crate::record::{Kind, Record};
use crate::status::Status;

const NETWORK_DOWN: i32 = 69;

fn terms(queue: &str) -> QueueUpdate {
    QueueUpdate { name: name(queue), paused: None, reason: None, concurrency: None, per_user: None }
}

fn limit(world: &mut World, concurrency: Option<u32>, per_user: Option<u32>) {
    world.changed(Change::PutQueue(QueueUpdate { concurrency: Some(concurrency), per_user: Some(per_user), ..terms("default") }));
}

fn holders(world: &World) -> Vec<ExecutionId> {
    let record = world.records.get(&(Kind::Permits, "default".to_owned()));
    record.map_or(Vec::new(), |record| record.permits().iter().map(|permit| permit.execution).collect())
}

fn labelled(pairs: &[(&str, &str)]) -> Worker {
    let labels = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Worker { labels, ..worker(1) }
}

fn submit_to(world: &mut World, user: &str) -> ExecutionId {
    let id = ExecutionId::from_bytes(world.fresh());
    let lease = LeaseId::from_bytes(world.fresh());
    let lease_to = Some(LeaseTo { lease, worker: worker(1), ttl_ms: 30_000 });
    world.play(Command::Submit(Submit { id, spec: spec(), created_by: user.into(), key: None, lease_to }));
    id
}

#[test]
fn a_paused_queue_hands_out_nothing_and_what_runs_goes_on() {
    let mut world = World::new();
    let running = world.running(|_| ());
    world.submit(|_| ());
    world.changed(Change::PutQueue(QueueUpdate { paused: Some(true), reason: Some("a new driver".into()), ..terms("default") }));
    assert!(world.lease().is_none());
    let straight = submit_to(&mut world, "ann@x");
    assert_eq!(world.get(straight).status, Status::Pending, "also not to a slot that is free");
    assert!(matches!(world.extend(running), Answer::Extended(_)));
    world.end(running, exit(0));
    assert_eq!(world.get(running.execution).status, Status::Succeeded);
    world.changed(Change::PutQueue(QueueUpdate { paused: Some(false), ..terms("default") }));
    assert!(world.lease().is_some());
}

#[test]
fn whoever_paused_a_queue_stays_named_until_there_is_another_reason() {
    let mut world = World::new();
    let pause =
        |world: &World| world.live(Kind::Queue, "default").and_then(Record::queue).and_then(|terms| terms.paused.clone()).expect("a pause");
    let again = |reason: Option<&str>| QueueUpdate { paused: Some(true), reason: reason.map(Into::into), ..terms("default") };
    world.changed(Change::PutQueue(again(Some("one"))));
    let first = pause(&world);
    world.now = world.now.plus_ms(5);
    world.changed(Change::PutQueue(again(None)));
    world.changed(Change::PutQueue(QueueUpdate { concurrency: Some(Some(3)), ..terms("default") }));
    assert_eq!(pause(&world), first, "a limit says nothing about the pause");
    world.changed(Change::PutQueue(again(Some("two"))));
    assert_eq!((pause(&world).at, pause(&world).reason.as_deref()), (world.now, Some("two")));
    assert_eq!(world.events_about(Kind::Queue, "default").len(), 4, "each change leaves a mark");
}

#[test]
fn a_limit_holds_over_leases_and_submits_and_its_permits_come_back() {
    let mut world = World::new();
    limit(&mut world, Some(2), None);
    let first = submit_to(&mut world, "ann@x");
    assert_eq!(world.get(first).status, Status::Running);
    for _ in 0..3 {
        world.submit(|_| ());
    }
    let leased = world.lease_for(&worker(1), &["default"], 3);
    assert_eq!((leased.len(), holders(&world).len()), (1, 2));
    assert!(world.lease().is_none());
    let late = submit_to(&mut world, "ann@x");
    assert_eq!(world.get(late).status, Status::Pending);
    let lease = world.get(first).lease.clone().expect("a lease");
    world.end(Fence { execution: first, attempt: 1, lease: lease.id }, exit(0));
    assert_eq!(holders(&world), [leased[0].execution]);
    let newest = submit_to(&mut world, "ann@x");
    assert_eq!(world.get(newest).status, Status::Pending, "nobody goes before those who wait");
    assert!(world.lease().is_some_and(|fence| fence.execution != newest));
}

#[test]
fn a_permit_comes_back_however_an_attempt_ends() {
    type End = fn(&mut World, Fence);
    let ends: [(&str, bool, End); 7] = [
        ("an end", true, |world, fence| drop(world.end(fence, exit(0)))),
        ("a retry", true, |world, fence| drop(world.end(fence, exit(NETWORK_DOWN)))),
        ("a reap", true, |world, fence| drop(world.reap(fence))),
        ("a reap before it began", false, |world, fence| drop(world.reap(fence))),
        ("given back", false, |world, fence| drop(world.play(Command::GiveBack(fence)))),
        ("killed before it began", false, |world, fence| drop(world.kill(fence.execution))),
        ("a kill that nobody confirms", true, |world, fence| {
            world.kill(fence.execution);
            world.play(Command::ConfirmKill(fence.execution, 0));
        }),
    ];
    for (way, begin, end) in ends {
        let mut world = World::new();
        limit(&mut world, Some(1), None);
        world.submit(|spec| spec.retries = 1);
        let fence = world.lease().expect("a place");
        assert_eq!(holders(&world), [fence.execution], "{way}");
        if begin {
            world.play(Command::Begin(fence));
        }
        end(&mut world, fence);
        assert!(holders(&world).is_empty(), "{way}");
        assert!(world.get(fence.execution).lease.is_none(), "{way}");
    }
}

#[test]
fn taking_its_lock_away_frees_its_place_too() {
    let mut world = World::new();
    limit(&mut world, Some(1), None);
    world.submit(|spec| spec.lock = Some(name("db")));
    let fence = world.lease().expect("a place");
    world.play(Command::ReleaseLock(name("db")));
    assert!(world.get(fence.execution).status.is_terminal() && holders(&world).is_empty());
}

#[test]
fn a_user_has_no_more_than_their_share_and_keeps_nobody_waiting() {
    let mut world = World::new();
    limit(&mut world, Some(5), Some(2));
    for _ in 0..2_000 {
        world.submit_for("ann@x", |_| ());
    }
    let bob = world.submit_for("bob@x", |_| ());
    let (leased, looks) = (world.lease_for(&worker(1), &["default"], 4), world.looks);
    assert_eq!(leased.len(), 3);
    assert_eq!(leased[2].execution, bob, "behind two thousand");
    assert!(looks <= 6, "{looks} looks");
    assert!(world.lease().is_none());
    world.looks = 0;
    let eve = world.submit_for("eve@x", |_| ());
    assert_eq!(world.lease().map(|fence| fence.execution), Some(eve));
    assert!(world.looks <= 3, "{} looks", world.looks);
}

#[test]
fn many_users_at_their_share_are_passed_over_at_once() {
    let mut world = World::new();
    limit(&mut world, None, Some(1));
    for user in 0..100 {
        for _ in 0..2 {
            world.submit_for(&format!("user-{user}@x"), |_| ());
        }
    }
    assert_eq!(world.lease_for(&worker(1), &["default"], 200).len(), 100);
    let last = world.submit_for("last@x", |_| ());
    world.looks = 0;
    assert_eq!(world.lease().map(|fence| fence.execution), Some(last));
    assert!(world.looks <= 3, "{} looks", world.looks);
}

#[test]
fn a_limit_counts_what_was_leased_under_it_alone() {
    let mut world = World::new();
    let before = world.running(|_| ());
    limit(&mut world, Some(1), None);
    world.submit(|_| ());
    assert!(world.lease().is_some(), "what ran before the limit does not count");
    world.end(before, exit(0));
    assert_eq!(holders(&world).len(), 1);
    world.changed(Change::RemoveQueue(name("default")));
    let holder = holders(&world)[0];
    world.submit(|_| ());
    assert!(world.lease().is_some_and(|fence| !world.get(fence.execution).lease.as_ref().expect("a lease").permit));
    world.kill(holder);
    assert!(holders(&world).is_empty(), "a permit comes back also after the limit is gone");
}

#[test]
fn a_full_or_paused_queue_keeps_no_other_waiting() {
    let mut world = World::new();
    limit(&mut world, Some(1), None);
    world.changed(Change::PutQueue(QueueUpdate { paused: Some(true), ..terms("stopped") }));
    for _ in 0..100 {
        world.submit(|_| ());
        world.submit(|spec| spec.queue = name("stopped"));
    }
    let other = world.submit(|spec| spec.queue = name("other"));
    let leased = world.lease_for(&worker(1), &["default", "stopped", "other"], 4);
    assert_eq!(leased.len(), 2);
    assert_eq!(leased[1].execution, other);
}

#[test]
fn a_worker_takes_only_what_its_labels_allow() {
    let mut world = World::new();
    for _ in 0..2_000 {
        world.submit(|spec| drop(spec.worker_labels.insert("gpu".into(), "a100".into())));
    }
    let plain = world.submit(|_| ());
    assert_eq!(world.lease().map(|fence| fence.execution), Some(plain), "what others wait for stands in nobody's way");
    assert!(world.lease().is_none());
    assert!(world.lease_for(&labelled(&[("gpu", "t4")]), &["default"], 1).is_empty());
    assert_eq!(world.lease_for(&labelled(&[("gpu", "a100"), ("zone", "b")]), &["default"], 3).len(), 3);
    let id = ExecutionId::from_bytes([9; 16]);
    let mut asked = spec();
    asked.worker_labels.insert("gpu".into(), "a100".into());
    let lease_to = Some(LeaseTo { lease: LeaseId::from_bytes([9; 16]), worker: worker(1), ttl_ms: 30_000 });
    world.play(Command::Submit(Submit { id, spec: asked, created_by: "ann@x".into(), key: None, lease_to }));
    assert_eq!(world.get(id).status, Status::Pending);
}

#[test]
fn higher_priorities_go_first_and_age_makes_up_for_a_lower_one() {
    let mut world = World::new();
    let low = world.submit(|spec| spec.priority = 5);
    let mut order = vec![world.submit(|spec| spec.priority = 1), world.submit(|spec| spec.priority = 4)];
    world.now = world.now.plus_ms(4 * AGE_PER_PRIORITY_MS - 1);
    order.push(world.submit(|spec| spec.priority = 1));
    order.push(low);
    world.now = world.now.plus_ms(2);
    order.push(world.submit(|spec| spec.priority = 1));
    let leased = world.lease_for(&worker(1), &["default"], 9);
    assert_eq!(leased.iter().map(|fence| fence.execution).collect::<Vec<_>>(), order);
}

/// What else a spec asks for.
type Asked = fn(&mut crate::spec::Spec);

#[test]
fn a_silent_worker_is_waited_for_only_where_nobody_depends_on_its_end() {
    let cases: [(Asked, Option<u64>); 5] = [
        (|_| (), Some(3_600_000)),
        (|spec| spec.retries = 1, None),
        (|spec| spec.redeliveries = 1, None),
        (|spec| spec.lock = Some(name("db")), None),
        (|spec| (spec.lock, spec.lock_wait_ms) = (Some(name("other")), Some(1_000)), None),
    ];
    for (change, expected) in cases {
        let mut world = World::new();
        world.submit(change);
        let request = LeaseRequest {
            worker: worker(1),
            queues: vec![name("default")],
            leases: vec![LeaseId::from_bytes([1; 16])],
            ttl_ms: 30_000,
            begin: true,
            lost_after_ms: Some(3_600_000),
        };
        let Answer::Leased(leased) = world.play(Command::Lease(request.clone())) else { panic!("leased") };
        assert_eq!(leased[0].lease.as_ref().expect("a lease").lost_after_ms, expected);
        if leased[0].spec.attempts_after_loss() == 1 {
            world.reap(fence_of(&leased[0]));
            world.now = world.now.plus_ms(600_000);
            let last = LeaseRequest { leases: vec![LeaseId::from_bytes([2; 16])], ..request };
            let Answer::Leased(leased) = world.play(Command::Lease(last)) else { panic!("leased") };
            assert_eq!(leased[0].lease.as_ref().expect("a lease").lost_after_ms, Some(3_600_000), "no attempt is left");
        }
    }
}

#[test]
fn a_permit_that_nobody_holds_any_more_can_be_freed_and_no_other() {
    let mut world = World::new();
    limit(&mut world, Some(1), None);
    world.submit(|_| ());
    let fence = world.lease().expect("a place");
    assert_eq!(world.play(Command::FreePermit(name("default"), fence.execution)), Answer::Unchanged, "it is with a worker");
    // What no step can leave behind, a store that was put back from an older copy can.
    world.executions.get_mut(&fence.execution).expect("it is there").lease = None;
    assert!(matches!(world.play(Command::FreePermit(name("default"), fence.execution)), Answer::Record { .. }));
    assert!(holders(&world).is_empty());
    assert_eq!(world.play(Command::FreePermit(name("default"), fence.execution)), Answer::Unchanged);
}

#[test]
fn a_worker_is_out_of_reach_when_its_lease_should_have_been_extended() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let deadline = world.get(fence.execution).lease.as_ref().expect("a lease").deadline;
    assert_eq!(world.get(fence.execution).worker_unreachable(deadline.plus_ms(10_000)), None);
    assert_eq!(world.get(fence.execution).worker_unreachable(deadline.plus_ms(10_001)), Some(deadline));
    world.play(Command::Kill(Kill { execution: fence.execution, force: false }));
    world.reap(fence);
    assert_eq!(world.get(fence.execution).worker_unreachable(deadline.plus_ms(99_999)), None, "it has ended");
}
