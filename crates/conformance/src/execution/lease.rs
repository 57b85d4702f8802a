//! What leases promise: order, fences, and that an execution is leased once.

use std::collections::BTreeSet;

use runvoy_model::command::{Answer, Command, Extend, Fence, LeaseTo, Refusal};
use runvoy_model::event::EventType;
use runvoy_model::id::{ExecutionId, LeaseId};
use runvoy_model::spec::Needs;
use runvoy_model::status::Status;

use crate::harness::Executions;
use crate::stage::{PASSING_FAILURE, Stage, ended, exit, extend, in_image, leased, name, refusal, submitted, worker_of};

/// Priority first, then age.
pub async fn ready_ones_are_leased_by_priority_then_age(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut by_priority = Vec::new();
    for priority in [3, 5, 1, 3, 1, 2] {
        stage.pass_ms(10);
        by_priority.push((priority, stage.submit(|spec| spec.priority = priority).await));
    }
    by_priority.sort();
    let expected: Vec<_> = by_priority.into_iter().map(|(_, id)| id).collect();
    let mut order = Vec::new();
    for want in [1, 2, 10] {
        order.extend(stage.lease(want).await.into_iter().map(|fence| fence.execution));
    }
    assert_eq!(order, expected);
}

/// Those submitted in the same millisecond go in the order of their ids.
pub async fn those_of_one_millisecond_are_leased_in_the_order_of_their_ids(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(stage.submit(|_| ()).await);
    }
    let order: Vec<_> = stage.lease(5).await.into_iter().map(|fence| fence.execution).collect();
    assert_eq!(order, ids);
}

/// A worker gets only what its queues hold, in one order over all of them.
pub async fn a_lease_takes_only_from_its_queues(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let here = stage.submit(|spec| spec.priority = 4).await;
    stage.pass_ms(1);
    let other = stage.submit(|spec| spec.queue = name("other")).await;
    let far = stage.submit(|spec| (spec.queue, spec.priority) = (name("far"), 1)).await;
    let mut request = stage.lease_request(1, 10);
    request.queues = vec![name("default"), name("other"), name("empty")];
    let fences = leased(stage.play(Command::Lease(request)).await);
    assert_eq!(fences.iter().map(|fence| fence.execution).collect::<Vec<_>>(), [other, here]);
    assert_eq!(stage.get(far).await.status, Status::Pending);
    let mut nowhere = stage.lease_request(1, 10);
    nowhere.queues = Vec::new();
    assert!(leased(stage.play(Command::Lease(nowhere)).await).is_empty());
}

/// Nothing ready is an empty answer, and asking for nothing takes nothing.
pub async fn a_lease_takes_no_more_than_it_asked_for(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    assert!(stage.lease(3).await.is_empty());
    for _ in 0..3 {
        stage.submit(|_| ()).await;
    }
    assert!(stage.lease(0).await.is_empty());
    assert_eq!(stage.lease(2).await.len(), 2);
    assert_eq!(stage.lease(2).await.len(), 1);
}

/// However many workers ask at the same time, an execution is leased once.
pub async fn an_execution_is_leased_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut ids = BTreeSet::new();
    for _ in 0..60 {
        ids.insert(stage.submit(|_| ()).await);
    }
    let mut asking = Vec::new();
    for worker in 0..40 {
        let (store, step, request) = (stage.store(), stage.step(), stage.lease_request(worker, 2));
        asking.push(tokio::spawn(async move { store.lease(step, request).await }));
    }
    let mut given = Vec::new();
    for answer in asking {
        given.extend(answer.await.expect("no panic").expect("an answer").into_iter().map(|execution| execution.id));
    }
    assert_eq!(given.len(), 60);
    assert_eq!(given.into_iter().collect::<BTreeSet<_>>(), ids);
}

/// A lease reserves; only begin counts.
pub async fn an_attempt_is_counted_by_begin(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = stage.submit(|_| ()).await;
    let fence = stage.lease_one().await;
    let starting = stage.get(id).await;
    assert_eq!((starting.status, starting.attempt, fence.attempt, starting.started_at), (Status::Starting, 0, 1, None));
    assert!(stage.lease(1).await.is_empty(), "it is no longer ready");
    stage.pass_ms(50);
    stage.play(Command::Begin(fence)).await;
    let running = stage.get(id).await;
    assert_eq!((running.status, running.attempt, running.started_at), (Status::Running, 1, Some(stage.now)));
}

/// Lease and begin can be one step.
pub async fn a_lease_can_begin_in_the_same_step(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let ids = [stage.submit(|_| ()).await, stage.submit(|_| ()).await];
    let mut request = stage.lease_request(1, 2);
    request.begin = true;
    stage.play(Command::Lease(request)).await;
    for id in ids {
        let running = stage.get(id).await;
        assert_eq!((running.status, running.attempt), (Status::Running, 1));
        stage.verify_chain(id).await;
    }
}

/// Every part of a fence counts.
pub async fn a_wrong_fence_is_refused(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let right = stage.running(|_| ()).await;
    let unknown = stage.new_submit(|_| ()).id;
    for (wrong, expected) in [
        (Fence { attempt: 2, ..right }, Refusal::Lapsed),
        (Fence { lease: LeaseId::from_bytes([0xee; 16]), ..right }, Refusal::Lapsed),
        (Fence { execution: unknown, ..right }, Refusal::NotFound),
    ] {
        assert_eq!(refusal(stage.play(Command::Begin(wrong)).await), expected);
        assert_eq!(refusal(stage.play(Command::Extend(extend(wrong))).await), expected);
        assert_eq!(refusal(stage.play(Command::GiveBack(wrong)).await), expected);
        assert_eq!(refusal(stage.play(Command::EndAttempt(ended(wrong, exit(0)))).await), expected);
    }
    assert_eq!(stage.get(right.execution).await.status, Status::Running);
    stage.extend(right).await;
}

/// An extend moves the deadline and is counted.
pub async fn an_extend_moves_the_deadline(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    let before = stage.get(fence.execution).await.lease.expect("a lease");
    assert_eq!(before.deadline, stage.now.plus_ms(30_000));
    stage.pass_ms(10_000);
    let answer = stage.play(Command::Extend(Extend { ttl_ms: 45_000, ..extend(fence) })).await;
    assert!(matches!(answer, Answer::Extended(extended) if extended.ttl_ms == 45_000 && extended.kill.is_none()));
    let after = stage.get(fence.execution).await.lease.expect("a lease");
    assert_eq!((after.deadline, after.ttl_ms), (stage.now.plus_ms(45_000), 45_000));
    assert!(after.extensions > before.extensions);
}

/// The answer to an extend carries a kill.
pub async fn an_extend_carries_a_kill(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.kill(fence.execution).await;
    let kill = stage.extend(fence).await.kill.expect("a kill");
    assert_eq!((kill.by.as_str(), kill.at, kill.force), ("ann@x", stage.now, false));
}

/// Heartbeat events come at most once a minute, and are not part of the chain.
pub async fn heartbeats_are_written_at_most_once_a_minute(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    for _ in 0..13 {
        stage.extend(fence).await;
        stage.pass_ms(10_000);
    }
    let events = stage.events_of(fence.execution).await;
    assert_eq!(events.iter().filter(|event| event.kind == EventType::TaskHeartbeat).count(), 3);
    stage.verify_chain(fence.execution).await;
}

/// What was not begun can be handed back, uncounted, and keeps its place.
pub async fn an_unbegun_lease_can_be_given_back(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let first = stage.submit(|_| ()).await;
    stage.pass_ms(10);
    stage.submit(|_| ()).await;
    let fence = stage.lease_one().await;
    stage.pass_ms(10);
    stage.play(Command::GiveBack(fence)).await;
    let back = stage.get(first).await;
    assert_eq!((back.status, back.attempt, back.lease), (Status::Pending, 0, None));
    assert_eq!(stage.lease_one().await.execution, first);
    assert_eq!(refusal(stage.play(Command::Begin(fence)).await), Refusal::Lapsed, "the old lease is worth nothing");
}

/// What was begun cannot be handed back.
pub async fn a_begun_lease_cannot_be_given_back(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    assert_eq!(refusal(stage.play(Command::GiveBack(fence)).await), Refusal::Lapsed);
    assert_eq!(stage.get(fence.execution).await.status, Status::Running);
}

/// What was begun for somebody who was never told goes back uncounted; whoever was told keeps it.
pub async fn what_nobody_was_told_of_is_taken_back(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|spec| spec.retries = 1).await;
    stage.end(fence, exit(PASSING_FAILURE)).await;
    stage.pass_ms(60_000);
    let second = stage.begun_at_once().await;
    stage.play(Command::Unsend(second)).await;
    let back = stage.get(fence.execution).await;
    assert_eq!((back.status, back.attempt, back.lease, back.attempt_started_at), (Status::Pending, 1, None, None));
    assert!(back.started_at.is_some(), "the first was begun");
    assert_eq!(refusal(stage.play(Command::EndAttempt(ended(second, exit(0)))).await), Refusal::Lapsed, "the old lease is worth nothing");
    let third = stage.lease_one().await;
    assert!(matches!(stage.play(Command::Send(third)).await, Answer::Begun(_)));
    stage.play(Command::Unsend(third)).await;
    assert_eq!(stage.get(fence.execution).await.attempt, 1);
    let fourth = stage.lease_one().await;
    assert_eq!((fourth.execution, fourth.attempt), (fence.execution, 2));
    for command in [Command::Send(fourth), Command::Begin(fourth), Command::Send(fourth)] {
        assert!(matches!(stage.play(command).await, Answer::Begun(_)));
    }
    assert_eq!(refusal(stage.play(Command::Unsend(fourth)).await), Refusal::Lapsed, "its worker has spoken");
    assert_eq!(stage.get(fence.execution).await.attempt, 2);
    stage.verify_chain(fence.execution).await;
}

/// Every open lease is listed as it stands, also after a reopen; an ended one is not.
pub async fn open_leases_are_listed(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let ended = stage.running(|_| ()).await;
    stage.end(ended, exit(0)).await;
    let terminating = stage.running(|_| ()).await;
    stage.kill(terminating.execution).await;
    let running = stage.running(|_| ()).await;
    stage.submit(|_| ()).await;
    let starting = stage.lease_one().await;
    stage.submit(|_| ()).await;
    for _ in 0..2 {
        let mut open = stage.store().open_leases().await.expect("leases");
        open.sort_by_key(|open| open.execution);
        let seen: Vec<_> = open.iter().map(|open| (open.execution, open.status, open.lease.id, open.lease.begun)).collect();
        let expected = [
            (terminating.execution, Status::Terminating, terminating.lease, true),
            (running.execution, Status::Running, running.lease, true),
            (starting.execution, Status::Starting, starting.lease, false),
        ];
        assert_eq!(seen, expected);
        stage.reopen().await;
    }
}

/// A lease lives over a reopen of the store.
pub async fn a_lease_survives_a_reopen(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.reopen().await;
    stage.extend(fence).await;
    assert!(matches!(stage.end(fence, exit(0)).await, Answer::Ended(_)));
}

/// Those in backoff do not stand in the way of others, however many and however important they are.
pub async fn backoff_does_not_block_others(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    for _ in 0..20 {
        let fence = stage.running(|spec| (spec.priority, spec.retries) = (1, 5)).await;
        stage.end(fence, exit(PASSING_FAILURE)).await;
    }
    let ready = stage.submit(|spec| spec.priority = 5).await;
    assert_eq!(stage.lease(3).await.iter().map(|fence| fence.execution).collect::<Vec<_>>(), [ready]);
}

/// A retried one stands behind those that were ready before it, though it is older.
pub async fn a_retried_one_stands_behind_those_ready_before_it(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let retried = stage.running(|spec| spec.retries = 1).await;
    stage.end(retried, exit(PASSING_FAILURE)).await;
    let before = stage.submit(|_| ()).await;
    stage.now = stage.get(retried.execution).await.ready_at.plus_ms(1);
    let after = stage.submit(|_| ()).await;
    let order: Vec<_> = stage.lease(3).await.into_iter().map(|fence| fence.execution).collect();
    assert_eq!(order, [before, retried.execution, after]);
}

/// The earliest time that something can be leased, by queue.
pub async fn the_next_ready_time_is_told(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let queues = [name("default")];
    assert_eq!(stage.store().next_ready(&queues, &Needs::ALL).await.expect("a time"), None);
    let fence = stage.running(|spec| spec.retries = 1).await;
    assert_eq!(stage.store().next_ready(&queues, &Needs::ALL).await.expect("a time"), None);
    stage.end(fence, exit(PASSING_FAILURE)).await;
    let ready_at = stage.get(fence.execution).await.ready_at;
    assert!(ready_at > stage.now);
    assert_eq!(stage.store().next_ready(&queues, &Needs::ALL).await.expect("a time"), Some(ready_at));
    stage.submit(|spec| spec.priority = 5).await;
    assert_eq!(stage.store().next_ready(&queues, &Needs::ALL).await.expect("a time"), Some(stage.now));
    assert_eq!(stage.store().next_ready(&[name("other")], &Needs::ALL).await.expect("a time"), None);
    assert_eq!(stage.store().next_ready(&[name("other"), name("default")], &Needs::ALL).await.expect("a time"), Some(stage.now));
}

/// A clock that was set back a day keeps nobody waiting for it.
pub async fn a_clock_set_back_strands_nobody(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fresh = stage.submit(|_| ()).await;
    stage.pass_ms(-86_400_000);
    assert_eq!(stage.lease(2).await.iter().map(|fence| fence.execution).collect::<Vec<_>>(), [fresh]);
    let fence = stage.running(|spec| spec.retries = 1).await;
    stage.pass_ms(-3_600_000);
    stage.end(fence, exit(0)).await;
    assert_eq!(stage.get(fence.execution).await.duration_ms(stage.now), Some(0), "a duration is never negative");
}

/// Leases everything there is for who serves this.
async fn all_for(stage: &mut Stage<'_>, serves: &[Needs]) -> Vec<ExecutionId> {
    let mut request = stage.lease_request(1, 10);
    request.worker.serves = serves.to_vec();
    leased(stage.play(Command::Lease(request)).await).into_iter().map(|fence| fence.execution).collect()
}

/// What needs an image is never given to who has none, and the other way round; the time when something can be leased is told by the same rule.
pub async fn nobody_is_given_what_they_do_not_serve(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let queues = [name("default")];
    let image = stage.submit(in_image).await;
    assert_eq!(all_for(&mut stage, &[Needs::Process]).await, []);
    assert_eq!(stage.store().next_ready(&queues, &[Needs::Process]).await.expect("a time"), None);
    assert_eq!(stage.store().next_ready(&queues, &[Needs::Image]).await.expect("a time"), Some(stage.now));
    let plain = stage.submit(|_| ()).await;
    stage.reopen().await;
    assert_eq!(all_for(&mut stage, &[]).await, []);
    assert_eq!(all_for(&mut stage, &[Needs::Image]).await, [image]);
    assert_eq!(stage.store().next_ready(&queues, &[Needs::Image]).await.expect("a time"), None);
    assert_eq!(all_for(&mut stage, &[Needs::Process]).await, [plain]);
}

/// For who serves both, priority and age decide, and not what is needed.
pub async fn priority_goes_before_need(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut expected = Vec::new();
    for (priority, image) in [(5, false), (5, true), (1, true), (3, false), (1, false), (3, true)] {
        stage.pass_ms(10);
        let mut submit = stage.new_submit(|spec| spec.priority = priority);
        if image {
            in_image(&mut submit.spec);
        }
        expected.push((priority, submitted(stage.play(Command::Submit(submit)).await)));
    }
    expected.sort();
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
    assert_eq!(all_for(&mut stage, &[Needs::Image, Needs::Process]).await, expected);
}

/// A worker that would take a new execution at once takes only what it serves.
pub async fn a_submit_takes_only_a_slot_that_serves_it(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut submit = stage.new_submit(in_image);
    submit.lease_to = Some(LeaseTo { lease: LeaseId::from_bytes([1; 16]), worker: worker_of(1), ttl_ms: 30_000 });
    let id = submitted(stage.play(Command::Submit(submit)).await);
    assert_eq!(stage.get(id).await.status, Status::Pending);
}
