//! What locks promise: one holder, an orderly line, a fence that rises, and no way to leak.

use runvoy_model::command::{Answer, Command, Refusal};
use runvoy_model::execution::LockClaim;
use runvoy_model::status::Status;

use crate::harness::Executions;
use crate::stage::{PASSING_FAILURE, Stage, exit, in_line, locked, name, refusal};

/// A held lock is refused with its holder, who, and since when.
pub async fn a_held_lock_is_refused_with_its_holder(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let holder = stage.submit(locked).await;
    let since = stage.now;
    stage.pass_ms(5_000);
    let submit = stage.new_submit(locked);
    let Refusal::LockHeld(held) = refusal(stage.play(Command::Submit(submit)).await) else { panic!("not held") };
    assert_eq!((held.name, held.holder.execution, held.holder.held_by.as_str()), (name("prod"), holder, "ann@x"));
    assert_eq!(held.holder.since, since);
}

/// The end of its holder frees a lock, however it ends; the fence goes on rising, also over a reopen.
pub async fn the_end_of_its_holder_frees_a_lock(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    for round in 1..=4u64 {
        let fence = stage.running(locked).await;
        let LockClaim::Held { fence: number } = stage.get(fence.execution).await.lock else { panic!("not held") };
        assert_eq!(number, round);
        match round {
            1 => drop(stage.end(fence, exit(0)).await),
            2 => drop(stage.reap(fence).await),
            3 => {
                stage.kill(fence.execution).await;
                stage.play(Command::ConfirmKill(fence.execution, 0)).await;
            }
            _ => drop(stage.end(fence, exit(1)).await),
        }
        assert!(stage.store().locks().await.expect("locks").is_empty());
        assert_eq!(stage.get(fence.execution).await.lock, LockClaim::None);
        stage.reopen().await;
    }
}

/// The line is in order, and each end hands the lock to its first, with a higher fence.
pub async fn the_line_is_served_in_order(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut line = Vec::new();
    for _ in 0..4 {
        line.push(stage.submit(in_line).await);
        stage.pass_ms(1);
    }
    for round in 0..line.len() {
        let locks = stage.store().locks().await.expect("locks");
        assert_eq!(locks.len(), 1);
        assert!(locks[0].lock.is_held_by(line[round]));
        assert_eq!((locks[0].lock.fence, &locks[0].waiters[..]), (round as u64 + 1, &line[round + 1..]));
        let fence = stage.begun().await;
        assert_eq!(fence.execution, line[round], "a waiter is never leased");
        assert!(stage.lease(4).await.is_empty());
        stage.end(fence, exit(0)).await;
        stage.reopen().await;
    }
    assert!(stage.store().locks().await.expect("locks").is_empty());
}

/// Different locks do not know each other, and only held ones are listed.
pub async fn locks_do_not_know_each_other(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    for lock in ["b", "a", "c"] {
        stage.submit(|spec| spec.lock = Some(name(lock))).await;
    }
    let held = stage.submit(|spec| spec.lock = Some(name("d"))).await;
    stage.kill(held).await;
    let mut names: Vec<_> = stage.store().locks().await.expect("locks").into_iter().map(|line| line.lock.name).collect();
    names.sort();
    assert_eq!(names, ["a", "b", "c"].map(name));
}

/// A kill in the line takes its place away and nothing else.
pub async fn a_killed_waiter_leaves_the_line(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let holder = stage.running(in_line).await;
    let (killed, next) = (stage.submit(in_line).await, stage.submit(in_line).await);
    stage.kill(killed).await;
    assert_eq!((stage.get(killed).await.status, stage.get(killed).await.lock), (Status::Stopped, LockClaim::None));
    let locks = stage.store().locks().await.expect("locks");
    assert!(locks[0].lock.is_held_by(holder.execution));
    assert_eq!(locks[0].waiters, [next]);
    stage.end(holder, exit(0)).await;
    assert_eq!(stage.get(next).await.lock, LockClaim::Held { fence: 2 });
}

/// A lock stays held through backoff.
pub async fn a_lock_is_held_through_backoff(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let retrying = |spec: &mut runvoy_model::spec::Spec| {
        in_line(spec);
        spec.retries = 1;
    };
    let holder = stage.running(retrying).await;
    stage.submit(in_line).await;
    stage.end(holder, exit(PASSING_FAILURE)).await;
    assert_eq!(stage.get(holder.execution).await.lock, LockClaim::Held { fence: 1 });
    assert!(stage.lease(2).await.is_empty());
    stage.pass_ms(600_000);
    assert_eq!(stage.lease(2).await.iter().map(|fence| fence.execution).collect::<Vec<_>>(), [holder.execution]);
}

/// Whoever waited too long is told of, and ends saying so; a holder waits for nothing.
pub async fn a_wait_ends_when_its_time_is_over(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let holder = stage.running(in_line).await;
    let waiter = stage.submit(in_line).await;
    stage.pass_ms(10);
    let later = stage.submit(in_line).await;
    let until = stage.now.plus_ms(60_000 - 10);
    assert!(stage.store().waits_ended(until.plus_ms(-1)).await.expect("waits").is_empty());
    assert_eq!(stage.store().waits_ended(until).await.expect("waits"), [waiter]);
    assert_eq!(stage.play(Command::ExpireWait(waiter)).await, Answer::Unchanged, "its time is not over");
    stage.now = until;
    assert_eq!(stage.play(Command::ExpireWait(holder.execution)).await, Answer::Unchanged);
    stage.play(Command::ExpireWait(waiter)).await;
    let done = stage.get(waiter).await;
    assert_eq!((done.status, done.exit_code, done.lock), (Status::Failed, Some(125), LockClaim::None));
    assert!(done.end_reason.is_some_and(|reason| reason.message.contains("lock prod was not free")));
    assert!(stage.store().waits_ended(until).await.expect("waits").is_empty());
    assert_eq!(stage.store().locks().await.expect("locks")[0].waiters, [later]);
}

/// Force takes a lock from whoever runs; the old holder runs on and cannot release what is another's now.
pub async fn force_hands_a_lock_on(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let holder = stage.running(in_line).await;
    let waiter = stage.submit(in_line).await;
    let Answer::Lock(lock) = stage.play(Command::ReleaseLock(name("prod"))).await else { panic!("not a lock") };
    assert!(lock.is_held_by(waiter) && lock.fence == 2);
    assert_eq!(stage.get(holder.execution).await.status, Status::Running);
    stage.end(holder, exit(0)).await;
    assert!(stage.store().locks().await.expect("locks")[0].lock.is_held_by(waiter));
    stage.verify_chain(holder.execution).await;
    stage.verify_chain(waiter).await;
}

/// A lock is freed only of the holder that was meant, and only if that one has ended.
pub async fn a_lock_is_freed_of_nobody_who_lives(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let holder = stage.running(in_line).await;
    let waiter = stage.submit(in_line).await;
    assert_eq!(stage.play(Command::FreeLock(name("prod"), holder.execution)).await, Answer::Unchanged);
    stage.end(holder, exit(0)).await;
    assert_eq!(stage.play(Command::FreeLock(name("prod"), holder.execution)).await, Answer::Unchanged);
    assert!(stage.store().locks().await.expect("locks")[0].lock.is_held_by(waiter));
}

/// A lock that nobody holds cannot be released.
pub async fn a_free_lock_cannot_be_released(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    assert_eq!(refusal(stage.play(Command::ReleaseLock(name("prod"))).await), Refusal::NotFound);
    let holder = stage.running(locked).await;
    stage.end(holder, exit(0)).await;
    assert_eq!(refusal(stage.play(Command::ReleaseLock(name("prod"))).await), Refusal::NotFound);
}

/// Whoever lost its lock to force never starts without it.
pub async fn nobody_starts_without_its_lock(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let pending = stage.submit(in_line).await;
    let waiter = stage.submit(in_line).await;
    let Answer::Lock(lock) = stage.play(Command::ReleaseLock(name("prod"))).await else { panic!("not a lock") };
    assert!(lock.is_held_by(waiter));
    assert_eq!(stage.get(pending).await.status, Status::Stopped);
    let running = stage.begun().await;
    assert_eq!(running.execution, waiter);
    stage.play(Command::ReleaseLock(name("prod"))).await;
    assert!(stage.store().locks().await.expect("locks").is_empty());
}

/// Of many that ask for a lock at the same time, one gets it.
pub async fn of_many_submits_one_gets_the_lock(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut sent = Vec::new();
    for _ in 0..50 {
        let (store, step, submit) = (stage.store(), stage.step(), stage.new_submit(locked));
        sent.push(tokio::spawn(async move { store.submit(step, submit).await }));
    }
    let mut won = Vec::new();
    for answer in sent {
        match answer.await.expect("no panic") {
            Ok((execution, _)) => won.push(execution.id),
            Err(error) => assert!(matches!(error.refusal(), Some(Refusal::LockHeld(_))), "{error}"),
        }
    }
    assert_eq!(won.len(), 1);
    assert!(stage.store().locks().await.expect("locks")[0].lock.is_held_by(won[0]));
}
