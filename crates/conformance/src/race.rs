//! Races over one execution or one lock, many times: the steps are sent at once, in an order that chance makes. What the store then says
//! happened is checked like the history of a register.

use std::collections::HashMap;

use runvoy_model::command::{Answer, Command, Fence, Kill, LeaseTo, Refusal};
use runvoy_model::event::EventType;
use runvoy_model::execution::LockClaim;
use runvoy_model::id::{ExecutionId, LeaseId};
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use runvoy_ports::store::ListQuery;

use crate::chance::Chance;
use crate::harness::Executions;
use crate::stage::{Stage, answered, ended, exit, extend, fence_of, name, reap, refusal, worker_of};

const ENDS: [EventType; 4] = [EventType::TaskCompleted, EventType::TaskFailed, EventType::TaskTimeout, EventType::TaskStopped];

/// Lets finishes, kills, reaps and their repeats race for the end of `interleavings` executions; each must end once, and stay so.
pub async fn no_double_finish(seed: u64, interleavings: usize, harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut chance = Chance::new(seed);
    for _ in 0..interleavings {
        stage.pass_ms(1);
        let fence = started(&mut stage, &mut chance).await;
        let mut racing = Vec::new();
        for _ in 0..2 + chance.below(4) {
            let command = match chance.below(8) {
                0..4 => Command::EndAttempt(ended(fence, exit([0, 1, 69][chance.below(3)]))),
                4 => Command::Kill(Kill { execution: fence.execution, force: chance.percent(50) }),
                5 => Command::Reap(reap(fence, 1)),
                6 => Command::ConfirmKill(fence.execution, 0),
                _ => Command::Extend(extend(fence)),
            };
            let step = stage.step();
            let copies = if chance.percent(30) { 2 } else { 1 };
            racing.extend(std::iter::repeat_n((step, command), copies));
        }
        chance.shuffle(&mut racing);
        let sent: Vec<_> = racing
            .into_iter()
            .map(|(step, command)| {
                let store = stage.store();
                tokio::spawn(async move { store.apply(step, command).await })
            })
            .collect();
        for answer in sent {
            answered(answer.await.expect("no panic"));
        }
        ends_once(&mut stage, fence).await;
    }
}

async fn started(stage: &mut Stage<'_>, chance: &mut Chance) -> Fence {
    let retries = u32::try_from(chance.below(2)).expect("small");
    let mut submit = stage.new_submit(|spec| spec.retries = retries);
    submit.lease_to = Some(LeaseTo { lease: LeaseId::from_bytes(stage.fresh()), worker: worker_of(1), ttl_ms: 30_000 });
    match stage.play(Command::Submit(submit)).await {
        Answer::Submitted { execution, .. } => fence_of(&execution),
        other => panic!("not submitted: {other:?}"),
    }
}

async fn ends_once(stage: &mut Stage<'_>, fence: Fence) {
    let id = fence.execution;
    stage.kill(id).await;
    stage.play(Command::ConfirmKill(id, 0)).await;
    let done = stage.get(id).await;
    assert!(done.status.is_terminal(), "{done:?}");
    assert_eq!(refusal(stage.end(fence, exit(0)).await), Refusal::Ended(done.status), "a finish with an old lease");
    let after = stage.get(id).await;
    assert_eq!((after.status, after.exit_code, &after.end_reason), (done.status, done.exit_code, &done.end_reason), "an end is final");
    assert_eq!((after.completed_at, after.cost_micro_usd), (done.completed_at, done.cost_micro_usd), "an end is final");
    let events = stage.events_of(id).await;
    let ends = events.iter().filter(|event| ENDS.contains(&event.kind) && event.properties["late"] != true).count();
    assert_eq!(ends, 1, "{events:?}");
}

/// Plays `operations` on three locks, a few at once, and checks after each batch that each lock has one holder, who is open and
/// knows it, and that every new holder has a higher fence.
pub async fn a_lock_is_never_held_by_two(seed: u64, operations: usize, harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut chance = Chance::new(seed);
    let mut register = Register::default();
    let mut played = 0;
    while played < operations {
        stage.pass_ms(i64::try_from(chance.below(3_000)).expect("small"));
        let mut sent = Vec::new();
        for _ in 0..1 + chance.below(4) {
            let command = register.operation(&mut stage, &mut chance);
            let (store, step) = (stage.store(), stage.step());
            sent.push(tokio::spawn(async move { store.apply(step, command).await }));
        }
        for answer in sent {
            played += 1;
            register.learn(&answered(answer.await.expect("no panic")));
        }
        register.check(&stage).await;
    }
}

/// The locks as they were seen last, and who might do something about them.
#[derive(Default)]
struct Register {
    seen: HashMap<Name, (u64, Option<ExecutionId>)>,
    open: Vec<ExecutionId>,
    fences: Vec<Fence>,
}

impl Register {
    fn operation(&mut self, stage: &mut Stage<'_>, chance: &mut Chance) -> Command {
        let lock = name(&format!("lock-{}", chance.below(3)));
        let fence = (!self.fences.is_empty()).then(|| self.fences[chance.below(self.fences.len())]);
        let one = chance.pick(&self.open).copied();
        match (chance.below(12), fence, one) {
            (0..3, _, _) | (_, None, None) => {
                let (wait, retries) = (chance.percent(80), u32::from(chance.percent(40)));
                Command::Submit(stage.new_submit(|spec| {
                    (spec.lock, spec.lock_wait_ms, spec.retries) = (Some(lock), wait.then_some(20_000), retries);
                }))
            }
            (3..6, _, _) => {
                let mut request = stage.lease_request(1, 2);
                request.begin = chance.percent(70);
                Command::Lease(request)
            }
            (6..9, Some(fence), _) => Command::EndAttempt(ended(fence, exit([0, 69][chance.below(2)]))),
            (9, Some(fence), _) => Command::Reap(reap(fence, 1)),
            (10, _, Some(id)) => Command::Kill(Kill { execution: id, force: true }),
            (11, _, Some(id)) if chance.percent(70) => Command::ExpireWait(id),
            _ => Command::ReleaseLock(lock),
        }
    }

    fn learn(&mut self, answer: &Answer) {
        match answer {
            Answer::Submitted { execution, .. } => self.open.push(execution.id),
            Answer::Leased(executions) => self.fences.extend(executions.iter().map(fence_of)),
            _ => {}
        }
        // Old ones stay a while, for late finishes and old fences are what this is about.
        if self.fences.len() > 12 {
            self.fences.remove(0);
        }
        if self.open.len() > 12 {
            self.open.remove(0);
        }
    }

    async fn check(&mut self, stage: &Stage<'_>) {
        let open = vec![Status::Pending, Status::Starting, Status::Running, Status::Terminating];
        let open = ListQuery { statuses: open, limit: 10_000, ..ListQuery::default() };
        let open = stage.store().list(open).await.expect("a list");
        let locks = stage.store().locks().await.expect("locks");
        for number in 0..3 {
            let name = name(&format!("lock-{number}"));
            let claims: Vec<_> = open.iter().filter(|one| one.spec.lock.as_ref() == Some(&name)).collect();
            let held: Vec<_> = claims.iter().filter_map(|one| held_fence(one.lock).map(|fence| (one.id, fence))).collect();
            assert!(held.len() <= 1, "{name} is held by {held:?}");
            let line = locks.iter().find(|line| line.lock.name == name);
            let holder = line.and_then(|line| line.lock.holder.as_ref().map(|holder| (holder.execution, line.lock.fence)));
            assert_eq!(held.first().copied(), holder, "lock and execution tell the same of {name}");
            if let Some((execution, fence)) = holder {
                let (before, last) = self.seen.insert(name.clone(), (fence, Some(execution))).unwrap_or_default();
                assert!(
                    if last == Some(execution) { fence == before } else { fence > before },
                    "the fence of {name} rises with its holder"
                );
            } else {
                assert!(claims.iter().all(|one| !matches!(one.lock, LockClaim::Waiting { .. })), "{name} is free while somebody waits");
            }
        }
    }
}

const fn held_fence(claim: LockClaim) -> Option<u64> {
    match claim {
        LockClaim::Held { fence } => Some(fence),
        _ => None,
    }
}
