//! Named examples of how locks are taken, waited for, kept and handed on.

use super::world::{World, exit, name};
use super::{NETWORK_DOWN, refusal};
use crate::command::{Answer, Command, Fence, Refusal};
use crate::event::EventType;
use crate::execution::LockClaim;
use crate::id::ExecutionId;
use crate::lock::Lock;
use crate::spec::Spec;
use crate::status::{EndCode, Status};

fn locked(spec: &mut Spec) {
    spec.lock = Some(name("prod"));
}

fn waiting(spec: &mut Spec) {
    locked(spec);
    spec.lock_wait_ms = Some(60_000);
}

fn prod(world: &World) -> &Lock {
    &world.locks[&name("prod")]
}

fn fence(world: &World, id: ExecutionId) -> u64 {
    match world.get(id).lock {
        LockClaim::Held { fence } => fence,
        other => panic!("not the holder: {other:?}"),
    }
}

fn end_first(world: &mut World) -> Fence {
    let fence = world.begun();
    world.end(fence, exit(0));
    fence
}

#[test]
fn a_held_lock_is_refused_with_its_holder() {
    let mut world = World::new();
    let holder = world.submit(locked);
    assert_eq!(fence(&world, holder), 1);
    let Refusal::LockHeld(held) = refusal(world.try_submit(locked, None)) else { panic!("held") };
    assert_eq!((held.name.as_str(), held.holder.execution, held.holder.held_by.as_str()), ("prod", holder, "ann@x"));
    assert_eq!(world.executions.len(), 1, "a refused submit leaves nothing");
}

#[test]
fn the_end_of_the_holder_frees_the_lock() {
    let mut world = World::new();
    world.submit(locked);
    end_first(&mut world);
    assert_eq!(prod(&world).holder, None);
    let next = world.submit(locked);
    assert_eq!(fence(&world, next), 2, "the fence rises over every holder");
}

#[test]
fn the_lock_goes_to_the_first_waiter_with_a_higher_fence() {
    let mut world = World::new();
    let holder = world.submit(waiting);
    let (first, second) = (world.submit(waiting), world.submit(waiting));
    let done = end_first(&mut world);
    assert_eq!(done.execution, holder, "a waiter is never leased");
    assert_eq!((fence(&world, first), world.waiters(&name("prod"))), (2, vec![second]));
    assert_eq!(end_first(&mut world).execution, first);
    assert_eq!(fence(&world, second), 3);
}

#[test]
fn a_waiter_is_not_ready_whatever_the_time() {
    let mut world = World::new();
    let holder = world.running(waiting);
    let waiter = world.submit(waiting);
    world.now = world.now.plus_ms(3_600_000);
    assert!(world.lease().is_none());
    assert!(world.get(waiter).ready_key().is_none());
    world.end(holder, exit(0));
    assert_eq!(world.begun().execution, waiter);
}

#[test]
fn killed_while_it_waits_for_a_lock_is_stopped_at_once_and_leaves_the_line() {
    let mut world = World::new();
    let holder = world.running(waiting);
    let (killed, next) = (world.submit(waiting), world.submit(waiting));
    world.kill(killed);
    assert_eq!((world.get(killed).status, world.get(killed).lock), (Status::Stopped, LockClaim::None));
    assert!(prod(&world).is_held_by(holder.execution));
    world.end(holder, exit(0));
    assert!(prod(&world).is_held_by(next));
}

#[test]
fn a_lock_is_held_through_backoff() {
    let mut world = World::new();
    let holder = world.running(|spec| {
        waiting(spec);
        spec.retries = 1;
    });
    let waiter = world.submit(waiting);
    world.end(holder, exit(NETWORK_DOWN));
    assert_eq!(world.get(holder.execution).status, Status::Pending);
    assert_eq!(fence(&world, holder.execution), 1);
    assert!(world.lease().is_none());
    world.now = world.now.plus_ms(60_000);
    let again = world.begun();
    assert_eq!(again.execution, holder.execution);
    world.end(again, exit(NETWORK_DOWN));
    assert_eq!(fence(&world, waiter), 2);
}

#[test]
fn every_way_to_end_hands_the_lock_on() {
    let ends: [fn(&mut World, Fence); 5] = [
        |world, fence| drop(world.end(fence, exit(1))),
        |world, fence| drop(world.end(fence, Outcome::TimedOut { timeout_ms: 1, forced: true })),
        |world, fence| drop(world.reap(fence)),
        |world, fence| {
            world.kill(fence.execution);
            world.play(Command::ConfirmKill(fence.execution, 0));
        },
        |world, fence| {
            world.kill(fence.execution);
            world.end(fence, exit(0));
        },
    ];
    use crate::command::Outcome;
    for end in ends {
        let mut world = World::new();
        let holder = world.running(waiting);
        let waiter = world.submit(waiting);
        end(&mut world, holder);
        assert!(world.get(holder.execution).status.is_terminal());
        assert!(prod(&world).is_held_by(waiter));
        assert_eq!(world.get(holder.execution).lock, LockClaim::None);
    }
}

#[test]
fn a_wait_that_took_too_long_fails_and_says_why() {
    let mut world = World::new();
    let holder = world.running(waiting);
    let waiter = world.submit(waiting);
    assert_eq!(world.play(Command::ExpireWait(waiter)), Answer::Unchanged, "its time is not over");
    world.now = world.now.plus_ms(60_000);
    assert_eq!(world.play(Command::ExpireWait(holder.execution)), Answer::Unchanged, "the holder waits for nothing");
    assert!(matches!(world.play(Command::ExpireWait(waiter)), Answer::Changed(_)));
    let done = world.get(waiter);
    assert_eq!((done.status, done.exit_code), (Status::Failed, Some(125)));
    let reason = done.end_reason.as_ref().expect("a reason");
    assert_eq!((reason.code, reason.message.as_str()), (EndCode::StartFailed, "lock prod was not free within 60 s"));
    assert!(prod(&world).is_held_by(holder.execution));
}

#[test]
fn release_by_force_hands_on_and_the_old_holder_cannot_release_again() {
    let mut world = World::new();
    let holder = world.running(waiting);
    let waiter = world.submit(waiting);
    let Answer::Lock(lock) = world.play(Command::ReleaseLock(name("prod"))) else { panic!("the lock as it is now") };
    assert!(lock.is_held_by(waiter) && lock.fence == 2);
    assert_eq!(world.get(holder.execution).status, Status::Running, "only its worker can end it");
    assert_eq!(world.events_of(holder.execution).last().map(|event| event.kind), Some(EventType::Audit));
    world.end(holder, exit(0));
    assert!(prod(&world).is_held_by(waiter));
}

#[test]
fn a_lock_is_freed_only_of_a_holder_that_has_ended() {
    let mut world = World::new();
    let holder = world.running(waiting);
    let waiter = world.submit(waiting);
    let free = |id| Command::FreeLock(name("prod"), id);
    assert_eq!(world.play(free(holder.execution)), Answer::Unchanged, "it runs");
    world.end(holder, exit(0));
    assert_eq!(world.play(free(holder.execution)), Answer::Unchanged, "the lock went to the next, who keeps it");
    assert!(prod(&world).is_held_by(waiter) && !world.get(waiter).status.is_terminal());
    // What should never be: a holder that is not there.
    world.executions.remove(&waiter);
    let Answer::Lock(lock) = world.play(free(waiter)) else { panic!("freed") };
    assert_eq!(lock.holder, None);
}

#[test]
fn release_by_force_of_a_free_or_unknown_lock_is_not_found() {
    let mut world = World::new();
    assert_eq!(refusal(world.play(Command::ReleaseLock(name("prod")))), Refusal::NotFound);
    world.submit(locked);
    end_first(&mut world);
    assert_eq!(refusal(world.play(Command::ReleaseLock(name("prod")))), Refusal::NotFound);
}

#[test]
fn whoever_lost_its_lock_to_force_never_starts_without_it() {
    let mut world = World::new();
    let pending = world.submit(locked);
    world.play(Command::ReleaseLock(name("prod")));
    assert_eq!(world.get(pending).status, Status::Stopped);
    assert!(world.get(pending).end_reason.as_ref().is_some_and(|reason| reason.message.contains("lock prod was taken from it")));

    let starting = world.submit(locked);
    let fence = world.lease().expect("a ready execution");
    world.play(Command::ReleaseLock(name("prod")));
    assert_eq!(refusal(world.play(Command::Begin(fence))), Refusal::Ended(Status::Stopped));
    assert_eq!(world.get(starting).attempt, 0);

    let running = world.running(|spec| {
        locked(spec);
        spec.retries = 3;
    });
    world.play(Command::ReleaseLock(name("prod")));
    world.end(running, exit(NETWORK_DOWN));
    assert_eq!(
        (world.get(running.execution).status, world.get(running.execution).dead),
        (Status::Failed, true),
        "no attempt without the lock"
    );
    assert_eq!(prod(&world).holder, None);
}

#[test]
fn what_cannot_be_read_is_given_up_and_nothing_else() {
    let mut world = World::new();
    let running = world.running(|_| ());
    let lost = world.submit(|spec| spec.lock = Some(name("prod")));
    for id in [lost, running.execution] {
        assert_eq!(world.play(Command::GiveUp(id, "x".into())), Answer::Unchanged, "its spec is there");
    }
    for id in [lost, running.execution] {
        world.executions.get_mut(&id).expect("submitted").spec.command.clear();
    }
    assert_eq!(world.play(Command::GiveUp(running.execution, "x".into())), Answer::Unchanged, "it runs");
    assert!(matches!(world.play(Command::GiveUp(lost, "no blob".into())), Answer::Ended(_)));
    let given_up = world.get(lost);
    let reason = given_up.end_reason.as_ref().expect("a reason");
    assert_eq!((given_up.status, given_up.dead, reason.code), (Status::Failed, true, EndCode::StartFailed));
    assert!(reason.message.ends_with("no blob") && world.locks[&name("prod")].holder.is_none(), "{reason:?}");
    assert_eq!(world.play(Command::GiveUp(lost, "x".into())), Answer::Unchanged, "it has ended");
}
