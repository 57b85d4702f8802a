//! Random histories: two workers, three locks, two queues of which one is limited and paused at times, a clock that jumps both ways. After every step every invariant holds.

use std::collections::HashMap;

use proptest::prelude::*;

use super::world::{KEY, World, ended, fence_of, name, reap_of, worker};
use crate::chain::ChainHead;
use crate::change::Change;
use crate::command::{Answer, Command, Extend, Fence, Kill, LeaseRequest, Outcome, Submit, SubmitKey, Worker};
use crate::event::{Event, EventType};
use crate::execution::{Execution, LockClaim};
use crate::fold::{expected, fold};
use crate::id::{ExecutionId, LeaseId};
use crate::name::Name;
use crate::queue::{Permit, QueueUpdate};
use crate::record::{Kind, Record};
use crate::retry::Category;
use crate::status::Status;
use crate::step::Step;

/// One move; numbers pick among what exists when it is played.
#[derive(Debug, Clone)]
enum Move {
    Submit { lock: Option<u8>, wait: bool, retries: u32, priority: u8, key: Option<u8>, user: u8, limited: bool, labelled: bool },
    Lease { worker: u8, want: usize, begin: bool },
    Begin(usize),
    Extend(usize),
    GiveBack(usize),
    Unsend(usize),
    End { fence: usize, outcome: Outcome },
    Kill { execution: usize, force: bool },
    Reap { fence: usize, stale: bool },
    Confirm(usize),
    Expire(usize),
    Release(u8),
    Terms { paused: bool, concurrency: Option<u32>, per_user: Option<u32> },
    Repeat(usize),
    Clock(i64),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => (prop::sample::select(vec![0, 0, 1, 69, 127]), any::<bool>()).prop_map(|(code, after_kill)| Outcome::Exited { code, after_kill }),
        1 => (prop::sample::select(vec![9, 11, 15]), any::<bool>()).prop_map(|(signal, after_kill)| Outcome::Signalled { signal, after_kill }),
        1 => any::<bool>().prop_map(|forced| Outcome::TimedOut { timeout_ms: 1_500, forced }),
        1 => Just(Outcome::OutOfMemory),
        1 => Just(Outcome::WorkerStopped),
        1 => Just(Outcome::StartFailed { message: "no shell".into(), exit_code: None }),
        1 => Just(Outcome::GitFailed { message: "no such branch".into(), category: Category::NotFound }),
        1 => Just(Outcome::Refused { message: "secret db was deleted".into(), category: Category::Auth }),
    ]
}

fn moves() -> impl Strategy<Value = Move> {
    let some = 0..64usize;
    prop_oneof![
        8 => (prop::option::weighted(0.4, 0..3u8), any::<bool>(), 0..3u32, 1..=5u8, prop::option::weighted(0.2, 0..4u8), 0..3u8, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(lock, wait, retries, priority, key, user, limited, labelled)| Move::Submit { lock, wait, retries, priority, key, user, limited, labelled }),
        6 => (1..=2u8, 1..4usize, any::<bool>()).prop_map(|(worker, want, begin)| Move::Lease { worker, want, begin }),
        4 => some.clone().prop_map(Move::Begin),
        2 => some.clone().prop_map(Move::Extend),
        1 => some.clone().prop_map(Move::GiveBack),
        1 => some.clone().prop_map(Move::Unsend),
        6 => (some.clone(), outcome()).prop_map(|(fence, outcome)| Move::End { fence, outcome }),
        3 => (some.clone(), any::<bool>()).prop_map(|(execution, force)| Move::Kill { execution, force }),
        3 => (some.clone(), any::<bool>()).prop_map(|(fence, stale)| Move::Reap { fence, stale }),
        1 => some.clone().prop_map(Move::Confirm),
        2 => some.clone().prop_map(Move::Expire),
        1 => (0..3u8).prop_map(Move::Release),
        1 => (prop::bool::weighted(0.3), prop::option::of(1..4u32), prop::option::of(1..3u32))
            .prop_map(|(paused, concurrency, per_user)| Move::Terms { paused, concurrency, per_user }),
        3 => some.prop_map(Move::Repeat),
        3 => prop::sample::select(vec![1_000, 30_000, 400_000, 86_400_000, -3_600_000, -86_400_000]).prop_map(Move::Clock),
    ]
}

#[derive(Default)]
struct Play {
    executions: Vec<ExecutionId>,
    fences: Vec<Fence>,
    steps: Vec<(Step, Command)>,
    ended: HashMap<ExecutionId, Execution>,
    holders: HashMap<Name, (u64, Option<ExecutionId>)>,
    permits: Vec<Permit>,
}

/// The second worker has a label.
fn labelled(number: u8) -> Worker {
    let mut one = worker(number);
    if number == 2 {
        one.labels.insert("worker".into(), "2".into());
    }
    one
}

impl Play {
    fn command(&self, world: &mut World, play: &Move) -> Option<Command> {
        let execution = |at: usize| (!self.executions.is_empty()).then(|| self.executions[at % self.executions.len()]);
        let fence = |at: usize| (!self.fences.is_empty()).then(|| self.fences[at % self.fences.len()]);
        Some(match play {
            Move::Submit { lock, wait, retries, priority, key, user, limited, labelled } => {
                let mut spec = super::world::spec();
                spec.lock = lock.map(|lock| name(&format!("lock-{lock}")));
                spec.lock_wait_ms = wait.then_some(60_000);
                (spec.retries, spec.priority) = (*retries, *priority);
                if *limited {
                    spec.queue = name("limited");
                }
                if *labelled {
                    spec.worker_labels.insert("worker".into(), "2".into());
                }
                let created_by = format!("user-{user}@x");
                let key = key.map(|key| SubmitKey { user: "ann@x".into(), key: format!("key-{}", key / 2), fingerprint: [key; 32] });
                let id = ExecutionId::from_bytes(world.fresh());
                Command::Submit(Submit { id, spec, created_by, key, lease_to: None })
            }
            Move::Lease { worker: number, want, begin } => Command::Lease(LeaseRequest {
                worker: labelled(*number),
                queues: vec![name("default"), name("limited")],
                leases: (0..*want).map(|_| LeaseId::from_bytes(world.fresh())).collect(),
                ttl_ms: 30_000,
                begin: *begin,
                lost_after_ms: None,
            }),
            Move::Begin(at) => Command::Begin(fence(*at)?),
            Move::Extend(at) => Command::Extend(Extend {
                fence: fence(*at)?,
                ttl_ms: 30_000,
                process_id: None,
                rss_bytes: Some(1),
                last_output_at: None,
                activity: None,
                preparing: None,
            }),
            Move::GiveBack(at) => Command::GiveBack(fence(*at)?),
            Move::Unsend(at) => Command::Unsend(fence(*at)?),
            Move::End { fence: at, outcome } => Command::EndAttempt(ended(fence(*at)?, outcome.clone())),
            Move::Kill { execution: at, force } => Command::Kill(Kill { execution: execution(*at)?, force: *force }),
            Move::Reap { fence: at, stale } => {
                let fence = fence(*at)?;
                let extensions = world.get(fence.execution).lease.as_ref().map_or(0, |lease| lease.extensions);
                Command::Reap(reap_of(fence, extensions + u64::from(*stale)))
            }
            Move::Confirm(at) => Command::ConfirmKill(execution(*at)?, 3),
            Move::Expire(at) => Command::ExpireWait(execution(*at)?),
            Move::Release(lock) => Command::ReleaseLock(name(&format!("lock-{lock}"))),
            Move::Terms { paused, concurrency, per_user } => Command::Change(
                Change::PutQueue(QueueUpdate {
                    name: name("limited"),
                    paused: Some(*paused),
                    reason: None,
                    concurrency: Some(*concurrency),
                    per_user: Some(*per_user),
                }),
                None,
            ),
            Move::Repeat(_) | Move::Clock(_) => return None,
        })
    }

    /// A step may leave more holders than the limit only where there were as many before: the limit was lowered under them.
    fn check_permits(&mut self, world: &World) {
        let permits = world.records.get(&(Kind::Permits, "limited".to_owned())).map(|record| record.permits().to_vec()).unwrap_or_default();
        for permit in &permits {
            let holder = world.get(permit.execution);
            assert!(holder.lease.as_ref().is_some_and(|lease| lease.permit), "a permit is held by who is with no worker");
            assert_eq!((holder.spec.queue.as_str(), &holder.created_by), ("limited", &permit.user));
        }
        let holders = world.executions.values().filter(|one| one.lease.as_ref().is_some_and(|lease| lease.permit)).count();
        assert_eq!(holders, permits.len(), "each holds one permit");
        let of = |permits: &[Permit], user: &str| permits.iter().filter(|permit| permit.user == user).count();
        if let Some(terms) = world.live(Kind::Queue, "limited").and_then(Record::queue) {
            let within = |now: usize, before: usize, limit: Option<u32>| limit.is_none_or(|limit| now <= before.max(limit as usize));
            assert!(within(permits.len(), self.permits.len(), terms.concurrency), "more holders than the limit");
            for permit in &permits {
                assert!(
                    within(of(&permits, &permit.user), of(&self.permits, &permit.user), terms.per_user),
                    "more of one user than the limit"
                );
            }
            let taken = permits.iter().any(|permit| !self.permits.contains(permit));
            assert!(terms.paused.is_none() || !taken, "a paused queue hands nothing out");
        }
        self.permits = permits;
    }

    /// Whoever can be had is had by who asks for everything.
    fn check_nobody_starves(world: &mut World) {
        world.changed(Change::RemoveQueue(name("limited")));
        world.now = world.now.plus_ms(100 * 86_400_000);
        loop {
            let fences = world.lease_for(&labelled(2), &["default", "limited"], 3);
            if fences.is_empty() {
                break;
            }
            for fence in fences {
                world.play(Command::Begin(fence));
                world.end(fence, Outcome::Exited { code: 0, after_kill: false });
            }
        }
        let left = world.executions.values().find(|one| one.ready_key().is_some());
        assert!(left.is_none(), "nobody takes {left:?}");
        let permits = world.records.get(&(Kind::Permits, "limited".to_owned())).map_or(0, |record| record.permits().len());
        let with_workers = world.executions.values().filter(|one| one.lease.as_ref().is_some_and(|lease| lease.permit)).count();
        assert_eq!(permits, with_workers);
    }

    fn remember(&mut self, answer: &Answer) {
        match answer {
            Answer::Submitted { execution, repeated: false } => self.executions.push(execution.id),
            Answer::Leased(executions) => self.fences.extend(executions.iter().map(fence_of)),
            _ => {}
        }
    }

    fn check_repeat(&self, world: &mut World, at: usize) {
        let Some((step, command)) = (!self.steps.is_empty()).then(|| self.steps[at % self.steps.len()].clone()) else { return };
        let (events, executions) = (world.events.len(), world.executions.clone());
        world.apply(&step, &command);
        assert_eq!((world.events.len(), &world.executions), (events, &executions), "a repeat wrote something: {command:?}");
    }

    fn check(&mut self, world: &World) {
        for execution in world.executions.values() {
            check_execution(world, execution);
            if let Some(end) = self.ended.get(&execution.id) {
                let now = (execution.status, execution.exit_code, &execution.end_reason, execution.completed_at, execution.attempt);
                assert_eq!(now, (end.status, end.exit_code, &end.end_reason, end.completed_at, end.attempt), "an end is final");
            } else if execution.status.is_terminal() {
                self.ended.insert(execution.id, execution.clone());
            }
        }
        self.check_permits(world);
        for (name, lock) in &world.locks {
            let holder = lock.holder.as_ref().map(|holder| holder.execution);
            let (fence, before) = self.holders.insert(name.clone(), (lock.fence, holder)).unwrap_or_default();
            let taken = holder.is_some() && holder != before;
            assert!(
                if taken { lock.fence > fence } else { lock.fence == fence },
                "the fence of {name} rises with every new holder, and only then"
            );
            let claims: Vec<_> = world.executions.values().filter(|one| one.spec.lock.as_ref() == Some(name)).collect();
            let held: Vec<_> = claims.iter().filter(|one| matches!(one.lock, LockClaim::Held { .. })).collect();
            assert!(held.len() <= 1, "two hold {name}");
            match &lock.holder {
                Some(holder) => {
                    let one = world.get(holder.execution);
                    assert!(!one.status.is_terminal(), "{name} is held by one that has ended");
                    assert_eq!(one.lock, LockClaim::Held { fence: lock.fence });
                }
                None => assert!(held.is_empty() && world.waiters(name).is_empty(), "{name} is free while somebody claims it"),
            }
        }
    }
}

/// How many attempts nobody was told of: they are in line again without having failed.
fn taken_back(events: &[&Event]) -> usize {
    const TURNS: [EventType; 3] = [EventType::TaskPending, EventType::TaskProcessingStarted, EventType::TaskProcessingFailed];
    let turns: Vec<EventType> =
        events.iter().filter(|event| TURNS.contains(&event.kind) && event.properties["late"] != true).map(|event| event.kind).collect();
    turns.windows(2).filter(|pair| *pair == [EventType::TaskProcessingStarted, EventType::TaskPending]).count()
}

fn check_execution(world: &World, execution: &Execution) {
    let events = world.events_of(execution.id);
    assert_eq!(fold(events.iter().copied()), Ok(Some(expected(execution.status))));
    let mut head = ChainHead::default();
    for event in events.iter().filter(|event| event.kind.is_chained()) {
        head = KEY.link(&head, &event.canonical());
        assert_eq!((event.number, event.mac), (head.count, head.mac), "the chain holds");
    }
    assert_eq!(execution.chain, head);

    let in_time = |kind: &[EventType]| events.iter().filter(|event| kind.contains(&event.kind) && event.properties["late"] != true).count();
    let ends = in_time(&[EventType::TaskCompleted, EventType::TaskFailed, EventType::TaskTimeout, EventType::TaskStopped]);
    assert_eq!(ends, usize::from(execution.status.is_terminal()), "one end, and only when it has ended");
    let begun = in_time(&[EventType::TaskProcessingStarted]) - taken_back(&events);
    assert_eq!(begun, execution.attempt as usize, "every attempt begins once");
    assert!(execution.attempt <= execution.spec.attempts_after_loss() + 1);
    assert!(events.iter().all(|event| event.properties["durationMs"].as_i64().is_none_or(|ms| ms >= 0)));
    assert!(execution.duration_ms(world.now).is_none_or(|ms| ms >= 0));

    let killed = execution.status == Status::Terminating || execution.status.is_terminal();
    assert!(execution.kill.is_none() || killed, "what somebody wants to end never goes back to the line");
    let waiting = matches!(execution.lock, LockClaim::Waiting { .. });
    assert!(!waiting || execution.status == Status::Pending, "whoever waits for a lock does nothing else");
    assert_eq!(execution.ready_key().is_some(), execution.status == Status::Pending && !waiting);
    let leased = matches!(execution.status, Status::Starting | Status::Running | Status::Terminating);
    assert_eq!(execution.lease.is_some(), leased);
    if let Some(lease) = &execution.lease {
        assert_eq!(lease.begun, execution.status != Status::Starting);
        assert_eq!(lease.attempt, execution.attempt + u32::from(!lease.begun));
    }
    if execution.status.is_terminal() {
        assert!(
            execution.lock.is_none() && execution.exit_code.is_some() && execution.end_reason.is_some() && execution.completed_at.is_some()
        );
    } else {
        assert!(execution.exit_code.is_none() && execution.end_reason.is_none() && execution.completed_at.is_none() && !execution.dead);
        // Only a command that runs already may be without the lock it asked for: force took it away.
        let without = execution.spec.lock.is_some() && execution.lock.is_none();
        assert!(!without || matches!(execution.status, Status::Running | Status::Terminating));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_keeps_every_invariant(history in prop::collection::vec(moves(), 1..80)) {
        let mut world = World::new();
        let mut play = Play::default();
        for next in &history {
            match next {
                Move::Clock(ms) => world.now = world.now.plus_ms(*ms),
                Move::Repeat(at) => play.check_repeat(&mut world, *at),
                _ => {
                    if let Some(command) = play.command(&mut world, next) {
                        let step = world.step();
                        let answer = world.apply(&step, &command);
                        play.remember(&answer);
                        if world.receipts.contains_key(&step.id) {
                            play.steps.push((step, command));
                        }
                    }
                }
            }
            play.check(&world);
        }
        world.changed(Change::PutQueue(QueueUpdate { name: name("limited"), paused: None, reason: None, concurrency: None, per_user: None }));
        Play::check_nobody_starves(&mut world);
    }
}
