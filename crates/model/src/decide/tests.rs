//! Named examples of every decision, and random histories that must keep the invariants.

mod authority;
mod bound;
mod cast;
mod dag;
mod gate;
mod health;
mod identity;
mod job;
mod large;
mod lock;
mod lost;
mod people;
mod property;
mod redelivery;
mod redrive;
mod registry;
mod secret;
mod server_death;
mod state;
mod worker;
mod world;

use world::{World, ended, exit, fence_of, name, reap_of, worker};

use crate::change::Made;
use crate::command::{Answer, Command, Extended, Fence, Kill, LeaseRequest, LeaseTo, Outcome, Refusal, Submit, SubmitKey};
use crate::event::EventType;
use crate::id::{ExecutionId, LeaseId};
use crate::retry::backoff_ms;
use crate::status::{EndCode, Status};

const NETWORK_DOWN: i32 = 69;

fn refusal(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn is_late(world: &World, id: ExecutionId) -> bool {
    world.events_of(id).last().is_some_and(|event| event.properties["late"] == true)
}

#[test]
fn a_life_from_submit_to_exit_zero() {
    let mut world = World::new();
    let id = world.submit(|_| ());
    assert_eq!(world.get(id).status, Status::Pending);
    let fence = world.lease().expect("a ready execution");
    assert_eq!((world.get(id).status, world.get(id).attempt), (Status::Starting, 0), "a lease is not an attempt yet");
    world.play(Command::Begin(fence));
    assert_eq!((world.get(id).status, world.get(id).attempt), (Status::Running, 1));
    world.now = world.now.plus_ms(5_000);
    world.end(fence, exit(0));
    let done = world.get(id);
    assert_eq!((done.status, done.exit_code, done.log_end, done.cost_micro_usd), (Status::Succeeded, Some(0), Some(7), Some(5)));
    assert_eq!(done.end_reason.as_ref().map(|reason| reason.code), Some(EndCode::Exit));
    assert_eq!(done.duration_ms(world.now), Some(1_234));
    assert!(done.lease.is_none());
    assert_eq!(world.kinds(id), [EventType::TaskPending, EventType::TaskProcessingStarted, EventType::TaskCompleted]);
}

#[test]
fn with_a_free_slot_submit_lease_and_begin_are_one_step() {
    let mut world = World::new();
    let lease_to = Some(LeaseTo { lease: LeaseId::from_bytes([9; 16]), worker: worker(1), ttl_ms: 30_000 });
    let id = ExecutionId::from_bytes([1; 16]);
    world.play(Command::Submit(Submit { id, spec: world::spec(), created_by: "ann@x".into(), key: None, lease_to }));
    assert_eq!((world.get(id).status, world.get(id).attempt), (Status::Running, 1));
    assert_eq!(world.kinds(id), [EventType::TaskPending, EventType::TaskProcessingStarted]);
    assert!(world.lease().is_none());
}

#[test]
fn pending_and_killed_is_stopped_at_once() {
    let mut world = World::new();
    let id = world.submit(|_| ());
    assert!(matches!(world.kill(id), Answer::Changed(_)));
    let killed = world.get(id);
    assert_eq!((killed.status, killed.exit_code), (Status::Stopped, Some(130)));
    assert_eq!(killed.end_reason.as_ref().map(|reason| reason.message.as_str()), Some("killed by ann@x; it had not started"));
    assert!(world.lease().is_none());
}

#[test]
fn killed_in_backoff_is_stopped_at_once() {
    let mut world = World::new();
    let fence = world.running(|spec| spec.retries = 2);
    world.end(fence, exit(NETWORK_DOWN));
    assert_eq!(world.get(fence.execution).status, Status::Pending);
    world.kill(fence.execution);
    assert_eq!(world.get(fence.execution).status, Status::Stopped);
    world.now = world.now.plus_ms(3_600_000);
    assert!(world.lease().is_none());
}

#[test]
fn starting_and_killed_is_stopped_and_its_begin_is_refused() {
    let mut world = World::new();
    world.submit(|_| ());
    let fence = world.lease().expect("a ready execution");
    world.kill(fence.execution);
    assert_eq!(world.get(fence.execution).status, Status::Stopped);
    assert_eq!(refusal(world.play(Command::Begin(fence))), Refusal::Ended(Status::Stopped));
    assert_eq!(world.get(fence.execution).attempt, 0);
}

#[test]
fn a_running_one_is_asked_to_end_through_its_lease() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    assert!(matches!(world.extend(fence), Answer::Extended(Extended { kill: None, .. })));
    world.kill(fence.execution);
    assert_eq!(world.get(fence.execution).status, Status::Terminating);
    let Answer::Extended(Extended { kill: Some(kill), .. }) = world.extend(fence) else { panic!("the extend carries the kill") };
    assert_eq!((kill.by.as_str(), kill.force), ("ann@x", false));
    world.play(Command::Kill(Kill { execution: fence.execution, force: true }));
    let Answer::Extended(Extended { kill: Some(kill), .. }) = world.extend(fence) else { panic!("the extend carries the kill") };
    assert!(kill.force, "a second kill may be harsher");
}

#[test]
fn terminating_and_its_own_exit_before_a_signal_is_that_exit() {
    for (outcome, status, code) in
        [(exit(0), Status::Succeeded, 0), (exit(3), Status::Failed, 3), (Outcome::OutOfMemory, Status::Failed, 137)]
    {
        let mut world = World::new();
        let fence = world.running(|spec| spec.retries = 5);
        world.kill(fence.execution);
        world.end(fence, outcome);
        let done = world.get(fence.execution);
        assert_eq!((done.status, done.exit_code, done.dead), (status, Some(code), false), "never back to PENDING");
    }
}

#[test]
fn terminating_and_ended_by_the_signal_is_stopped_with_the_real_exit_in_the_reason() {
    let after = [
        (Outcome::Exited { code: 0, after_kill: true }, "exit code 0"),
        (Outcome::Exited { code: 7, after_kill: true }, "exit code 7"),
        (Outcome::Signalled { signal: 15, after_kill: true }, "ended by signal 15 (SIGTERM)"),
        (Outcome::Lost { message: "gone".into() }, "gone"),
        (Outcome::WorkerStopped, "its worker was stopped"),
        (Outcome::StartFailed { message: "ended before its command was started".into(), exit_code: None }, "before its command"),
        (Outcome::TimedOut { timeout_ms: 1_000, forced: true }, "timeout of 1 s"),
    ];
    for (outcome, words) in after {
        let mut world = World::new();
        let fence = world.running(|spec| spec.retries = 5);
        world.kill(fence.execution);
        world.end(fence, outcome);
        let done = world.get(fence.execution);
        assert_eq!((done.status, done.exit_code), (Status::Stopped, Some(130)), "{words}");
        let reason = done.end_reason.as_ref().expect("a reason");
        assert_eq!(reason.code, EndCode::Killed);
        assert!(reason.message.contains(words), "{}", reason.message);
    }
}

#[test]
fn terminating_and_reaped_is_stopped_never_pending() {
    let mut world = World::new();
    let fence = world.running(|spec| spec.retries = 5);
    world.kill(fence.execution);
    world.reap(fence);
    assert_eq!(world.get(fence.execution).status, Status::Stopped);
}

#[test]
fn a_kill_that_nobody_confirms_ends_and_says_so() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    assert_eq!(world.play(Command::ConfirmKill(fence.execution, 0)), Answer::Unchanged, "nobody asked for its end");
    world.kill(fence.execution);
    world.play(Command::ConfirmKill(fence.execution, 0));
    let done = world.get(fence.execution);
    assert_eq!(done.status, Status::Stopped);
    assert!(done.end_reason.as_ref().is_some_and(|reason| reason.message.contains("did not confirm")));
    assert_eq!(world.play(Command::ConfirmKill(fence.execution, 0)), Answer::Unchanged);
}

#[test]
fn terminal_and_anything_is_unchanged() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    world.end(fence, exit(0));
    let before = world.get(fence.execution).clone();
    world.kill(fence.execution);
    world.end(fence, exit(1));
    world.extend(fence);
    world.reap(fence);
    for command in [
        Command::Begin(fence),
        Command::GiveBack(fence),
        Command::Unsend(fence),
        Command::ConfirmKill(fence.execution, 0),
        Command::ExpireWait(fence.execution),
    ] {
        world.play(command);
    }
    let mut after = world.get(fence.execution).clone();
    // What came late was kept in the chain; that alone moves these three.
    (after.chain, after.version) = (before.chain, before.version);
    after.modified_by_request_id.clone_from(&before.modified_by_request_id);
    assert_eq!(after, before);
}

#[test]
fn a_late_finish_is_kept_and_marked_and_refused() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    world.reap(fence);
    assert_eq!(world.get(fence.execution).status, Status::Failed);
    assert_eq!(refusal(world.end(fence, exit(0))), Refusal::Ended(Status::Failed));
    assert_eq!(world.get(fence.execution).exit_code, Some(125), "the late exit code changes nothing");
    assert!(is_late(&world, fence.execution));
    assert_eq!(world.kinds(fence.execution).last(), Some(&EventType::TaskCompleted));
}

#[test]
fn a_lapsed_worker_can_do_no_harm_to_the_next_attempt() {
    let mut world = World::new();
    let old = world.running(|spec| spec.retries = 1);
    world.reap(old);
    world.now = world.now.plus_ms(60_000);
    let new = world.begun();
    assert_eq!((new.execution, new.attempt), (old.execution, 2));
    assert_eq!(refusal(world.extend(old)), Refusal::Lapsed);
    assert_eq!(refusal(world.play(Command::Begin(old))), Refusal::Lapsed);
    assert_eq!(refusal(world.play(Command::GiveBack(old))), Refusal::Lapsed);
    assert_eq!(refusal(world.end(old, exit(0))), Refusal::Lapsed);
    let mixed = Fence { attempt: old.attempt, ..new };
    assert_eq!(refusal(world.end(mixed, exit(0))), Refusal::Lapsed, "all of the fence counts");
    assert_eq!(world.get(new.execution).status, Status::Running);
    world.end(new, exit(0));
    assert_eq!(world.get(new.execution).status, Status::Succeeded);
}

#[test]
fn a_repeated_begin_does_not_permit_what_has_lapsed_since() {
    let mut world = World::new();
    world.submit(|_| ());
    let fence = world.lease().expect("a ready execution");
    let step = world.step();
    assert!(matches!(world.apply(&step, &Command::Begin(fence)), Answer::Begun(_)));
    assert!(matches!(world.apply(&step, &Command::Begin(fence)), Answer::Begun(_)));
    assert_eq!(world.get(fence.execution).attempt, 1);
    world.reap(fence);
    assert_eq!(refusal(world.apply(&step, &Command::Begin(fence))), Refusal::Ended(Status::Failed));
}

#[test]
fn a_lost_worker_without_retries_fails_the_execution() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    world.reap(fence);
    let done = world.get(fence.execution);
    assert_eq!((done.status, done.exit_code, done.dead, done.log_end), (Status::Failed, Some(125), false, Some(9)));
    assert_eq!(done.end_reason.as_ref().map(|reason| reason.code), Some(EndCode::WorkerLost));
}

#[test]
fn reaping_an_unbegun_lease_returns_it_uncounted() {
    let mut world = World::new();
    let id = world.submit(|_| ());
    let fence = world.lease().expect("a ready execution");
    world.reap(fence);
    assert_eq!((world.get(id).status, world.get(id).attempt), (Status::Pending, 0));
    assert_eq!(world.begun().attempt, 1);
}

#[test]
fn only_an_unbegun_lease_may_be_handed_back() {
    let mut world = World::new();
    let id = world.submit(|_| ());
    let fence = world.lease().expect("a ready execution");
    assert!(matches!(world.play(Command::GiveBack(fence)), Answer::Changed(_)));
    assert_eq!((world.get(id).status, world.get(id).attempt), (Status::Pending, 0));
    let fence = world.begun();
    assert_eq!(refusal(world.play(Command::GiveBack(fence))), Refusal::Lapsed);
    assert_eq!(world.get(id).status, Status::Running);
}

#[test]
fn what_nobody_was_told_of_was_never_begun() {
    let mut world = World::new();
    let fence = world.running_at_once(|_| ());
    assert!(matches!(world.play(Command::Unsend(fence)), Answer::Changed(_)));
    let back = world.get(fence.execution);
    assert_eq!((back.status, back.attempt, back.started_at, back.lease.is_none()), (Status::Pending, 0, None, true));
    assert_eq!(world.begun().attempt, 1, "the next one is the first");
}

#[test]
fn whoever_was_told_keeps_what_was_begun() {
    let mut world = World::new();
    let fence = world.running_at_once(|_| ());
    world.extend(fence);
    assert_eq!(refusal(world.play(Command::Unsend(fence))), Refusal::Lapsed);
    let begun = world.running(|_| ());
    assert_eq!(refusal(world.play(Command::Unsend(begun))), Refusal::Lapsed, "its worker said so");
    let killed = world.running_at_once(|_| ());
    world.play(Command::Kill(Kill { execution: killed.execution, force: false }));
    assert_eq!(refusal(world.play(Command::Unsend(killed))), Refusal::Lapsed);
    world.submit(|_| ());
    let unbegun = world.lease().expect("a ready execution");
    assert_eq!(refusal(world.play(Command::Unsend(unbegun))), Refusal::Lapsed);
    let locked = world.running_at_once(|spec| spec.lock = Some(name("prod")));
    world.play(Command::ReleaseLock(name("prod")));
    assert_eq!(refusal(world.play(Command::Unsend(locked))), Refusal::Lapsed, "it would begin again without its lock");
}

#[test]
fn a_reap_acts_only_on_the_lease_that_was_watched() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    world.extend(fence);
    assert_eq!(world.play(Command::Reap(reap_of(fence, 0))), Answer::Unchanged, "it was extended since");
    let other = Fence { lease: LeaseId::from_bytes([0xee; 16]), ..fence };
    assert_eq!(world.play(Command::Reap(reap_of(other, 1))), Answer::Unchanged, "it is another lease");
    assert_eq!(world.get(fence.execution).status, Status::Running);
    assert!(matches!(world.play(Command::Reap(reap_of(fence, 2))), Answer::Ended(_)));
}

#[test]
fn only_retryable_failures_are_retried_and_only_as_often_as_asked() {
    let mut world = World::new();
    let fence = world.running(|spec| spec.retries = 2);
    world.end(fence, exit(127));
    assert_eq!((world.get(fence.execution).status, world.get(fence.execution).dead), (Status::Failed, false), "not found stays not found");

    let first = world.running(|spec| spec.retries = 2);
    for attempt in 1..=2 {
        let fence = if attempt == 1 { first } else { world.begun() };
        assert_eq!(fence.attempt, attempt);
        world.end(fence, exit(NETWORK_DOWN));
        let waiting = world.get(first.execution);
        assert_eq!(waiting.status, Status::Pending);
        let backoff = i64::try_from(backoff_ms(first.execution, attempt)).expect("small");
        assert_eq!(waiting.ready_at, world.now.plus_ms(backoff));
        assert!(world.lease().is_none(), "not before its backoff is over");
        world.now = world.now.plus_ms(backoff);
    }
    let last = world.begun();
    world.end(last, exit(NETWORK_DOWN));
    let done = world.get(first.execution);
    assert_eq!((done.status, done.attempt, done.dead, done.cost_micro_usd), (Status::Failed, 3, true, Some(15)));
}

#[test]
fn the_same_key_gives_the_same_execution_and_another_request_is_a_conflict() {
    let mut world = World::new();
    let key = |user: &str, fingerprint| Some(SubmitKey { user: user.into(), key: "k".into(), fingerprint: [fingerprint; 32] });
    let Answer::Submitted { execution: first, repeated: false } = world.try_submit(|_| (), key("ann@x", 1)) else { panic!("new") };
    let Answer::Submitted { execution: again, repeated: true } = world.try_submit(|_| (), key("ann@x", 1)) else { panic!("repeat") };
    assert_eq!(again.id, first.id);
    assert_eq!(refusal(world.try_submit(|_| (), key("ann@x", 2))), Refusal::KeyReused(Made::Execution(first.id)));
    assert!(matches!(world.try_submit(|_| (), key("bob@x", 2)), Answer::Submitted { repeated: false, .. }));
    assert_eq!(world.executions.len(), 2);
}

#[test]
fn the_same_key_is_one_link_made_when_it_was_first_asked_for() {
    let mut world = World::new();
    let id = world.submit(|_| ());
    let key = |fingerprint| Some(SubmitKey { user: "ann@x".into(), key: "k".into(), fingerprint: [fingerprint; 32] });
    let made = Made::Link(id, world.now);
    assert!(matches!(world.play(Command::NoteLink(id, world.now.plus_ms(9), key(1))), Answer::Changed(_)));
    let (events, version) = (world.events.len(), world.get(id).version);
    world.now = world.now.plus_ms(5_000);
    assert!(matches!(world.play(Command::NoteLink(id, world.now.plus_ms(9), key(1))), Answer::Changed(_)));
    assert_eq!((world.events.len(), world.get(id).version), (events, version), "a repeat writes nothing");
    assert_eq!(refusal(world.play(Command::NoteLink(id, world.now, key(2)))), Refusal::KeyReused(made.clone()));
    assert_eq!(refusal(world.try_submit(|_| (), key(1))), Refusal::KeyReused(made));
}

#[test]
fn a_repeated_step_writes_nothing() {
    let mut world = World::new();
    let id = world.submit(|_| ());
    let fence = world.begun();
    let (step, command) = (world.step(), Command::EndAttempt(ended(fence, exit(0))));
    assert!(matches!(world.apply(&step, &command), Answer::Ended(_)));
    let (events, version) = (world.events.len(), world.get(id).version);
    assert!(matches!(world.apply(&step, &command), Answer::Ended(_)));
    assert_eq!((world.events.len(), world.get(id).version), (events, version));
}

#[test]
fn a_repeated_lease_gives_the_same_executions_and_no_others() {
    let mut world = World::new();
    let ids = [world.submit(|_| ()), world.submit(|_| ()), world.submit(|_| ())];
    let leases = vec![LeaseId::from_bytes([1; 16]), LeaseId::from_bytes([2; 16])];
    let request =
        LeaseRequest { worker: worker(1), queues: vec![name("default")], leases, ttl_ms: 30_000, begin: true, lost_after_ms: None };
    let (step, command) = (world.step(), Command::Lease(request));
    let Answer::Leased(first) = world.apply(&step, &command) else { panic!("leased") };
    assert_eq!(first.iter().map(|execution| execution.id).collect::<Vec<_>>(), ids[..2]);
    world.end(fence_of(&first[0]), exit(0));
    let Answer::Leased(again) = world.apply(&step, &command) else { panic!("leased") };
    assert_eq!(again.iter().map(|execution| execution.id).collect::<Vec<_>>(), ids[1..2], "what has ended since is not given again");
    assert_eq!(world.get(ids[2]).status, Status::Pending);
}

#[test]
fn a_clock_set_back_strands_nobody() {
    let mut world = World::new();
    let fresh = world.submit(|_| ());
    world.now = world.now.plus_ms(-86_400_000);
    assert_eq!(world.lease().map(|fence| fence.execution), Some(fresh), "never tried: nothing to wait for");

    let retried = world.running(|spec| spec.retries = 1);
    world.end(retried, exit(NETWORK_DOWN));
    assert!(world.lease().is_none(), "a backoff is a backoff");
    world.now = world.now.plus_ms(-3_600_000);
    assert_eq!(world.lease().map(|fence| fence.execution), Some(retried.execution), "no backoff lasts an hour");
}

#[test]
fn no_backoff_is_taken_for_a_clock_set_back() {
    for attempt in 1..=100 {
        let ms = i64::try_from(backoff_ms(ExecutionId::from_bytes([0xff; 16]), attempt)).expect("small");
        assert!(ms < super::lease::BEYOND_BACKOFF_MS);
    }
}

#[test]
fn heartbeats_are_written_once_a_minute_also_after_the_clock_was_set_back() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let beats = |world: &World| world.kinds(fence.execution).iter().filter(|kind| **kind == EventType::TaskHeartbeat).count();
    for _ in 0..12 {
        world.extend(fence);
        world.now = world.now.plus_ms(10_000);
    }
    assert_eq!(beats(&world), 2);
    world.now = world.now.plus_ms(-86_400_000);
    world.extend(fence);
    assert_eq!(beats(&world), 3);
    world.end(fence, exit(0));
    assert_eq!(world.get(fence.execution).duration_ms(world.now), Some(0), "a duration is never negative");
}
