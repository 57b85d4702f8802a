//! What a repeated step promises: the answer of before, and nothing written, also after a reopen.

use std::mem::discriminant;

use runvoy_model::command::{Answer, Command, Kill, SubmitKey};
use runvoy_model::status::Status;

use crate::dump::Dump;
use crate::harness::Executions;
use crate::stage::{PASSING_FAILURE, Stage, ended, exit, in_line, name, reap};

/// Plays a step, then the same step again and again.
async fn repeat(stage: &mut Stage<'_>, command: Command) -> Answer {
    let step = stage.step();
    let first = stage.apply(&step, &command).await;
    let before = Dump::of(&*stage.store()).await;
    let again = stage.apply(&step, &command).await;
    assert_eq!(discriminant(&again), discriminant(&first), "answered otherwise: {first:?}, then {again:?}");
    Dump::of(&*stage.store()).await.assert_same(&before, &format!("a repeat of {command:?}"));
    stage.reopen().await;
    let reopened = stage.apply(&step, &command).await;
    assert_eq!(discriminant(&reopened), discriminant(&first), "answered otherwise after a reopen");
    Dump::of(&*stage.store()).await.assert_same(&before, &format!("a repeat after a reopen of {command:?}"));
    again
}

/// A submit.
pub async fn a_repeated_submit_makes_one_execution(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut submit = stage.new_submit(in_line);
    submit.key = Some(SubmitKey { user: "ann@x".into(), key: "k".into(), fingerprint: [1; 32] });
    let Answer::Submitted { execution, .. } = repeat(&mut stage, Command::Submit(submit.clone())).await else { panic!("submitted") };
    assert_eq!(execution.id, submit.id);
}

/// A lease: the same executions, and no others.
pub async fn a_repeated_lease_gives_the_same_executions(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let ids = [stage.submit(|_| ()).await, stage.submit(|_| ()).await, stage.submit(|_| ()).await];
    let request = stage.lease_request(1, 2);
    let Answer::Leased(executions) = repeat(&mut stage, Command::Lease(request.clone())).await else { panic!("leased") };
    let given: Vec<_> = executions.iter().map(|one| (one.id, one.lease.as_ref().expect("a lease").id)).collect();
    assert_eq!(given, [(ids[0], request.leases[0]), (ids[1], request.leases[1])]);
    assert_eq!(stage.get(ids[2]).await.status, Status::Pending);
}

/// A begin: one attempt.
pub async fn a_repeated_begin_counts_one_attempt(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = stage.submit(|_| ()).await;
    let fence = stage.lease_one().await;
    repeat(&mut stage, Command::Begin(fence)).await;
    assert_eq!(stage.get(id).await.attempt, 1);
}

/// A begin whose lease has lapsed since permits nothing.
pub async fn a_repeated_begin_permits_nothing_that_has_lapsed(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    stage.submit(|_| ()).await;
    let fence = stage.lease_one().await;
    let step = stage.step();
    assert!(matches!(stage.apply(&step, &Command::Begin(fence)).await, Answer::Begun(_)));
    stage.reap(fence).await;
    assert!(matches!(stage.apply(&step, &Command::Begin(fence)).await, Answer::Refused(_)));
}

/// A finish: one end, one cost.
pub async fn a_repeated_finish_ends_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(in_line).await;
    let Answer::Ended(execution) = repeat(&mut stage, Command::EndAttempt(ended(fence, exit(0)))).await else { panic!("ended") };
    assert_eq!((execution.status, execution.cost_micro_usd), (Status::Succeeded, Some(5)));
}

/// A failed attempt: one backoff.
pub async fn a_repeated_failure_is_one_retry(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|spec| spec.retries = 3).await;
    repeat(&mut stage, Command::EndAttempt(ended(fence, exit(PASSING_FAILURE)))).await;
    assert_eq!((stage.get(fence.execution).await.status, stage.get(fence.execution).await.attempt), (Status::Pending, 1));
}

/// A hand-back.
pub async fn a_repeated_give_back_is_one(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    stage.submit(|_| ()).await;
    let fence = stage.lease_one().await;
    repeat(&mut stage, Command::GiveBack(fence)).await;
}

/// An attempt that is taken back.
pub async fn a_repeated_unsend_is_one(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    stage.submit(|_| ()).await;
    let fence = stage.begun_at_once().await;
    repeat(&mut stage, Command::Unsend(fence)).await;
    assert_eq!(stage.get(fence.execution).await.attempt, 0);
}

/// A kill, of one that waits and of one that runs.
pub async fn a_repeated_kill_is_one(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    repeat(&mut stage, Command::Kill(Kill { execution: fence.execution, force: false })).await;
    let pending = stage.submit(|_| ()).await;
    repeat(&mut stage, Command::Kill(Kill { execution: pending, force: true })).await;
}

/// A reap.
pub async fn a_repeated_reap_is_one(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|spec| spec.retries = 2).await;
    repeat(&mut stage, Command::Reap(reap(fence, 1))).await;
    assert_eq!(stage.get(fence.execution).await.status, Status::Pending);
}

/// The end of a kill that nobody confirmed.
pub async fn a_repeated_confirmation_is_one(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.kill(fence.execution).await;
    repeat(&mut stage, Command::ConfirmKill(fence.execution, 0)).await;
}

/// The end of a wait.
pub async fn a_repeated_end_of_a_wait_is_one(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    stage.running(in_line).await;
    let waiter = stage.submit(in_line).await;
    stage.pass_ms(60_000);
    repeat(&mut stage, Command::ExpireWait(waiter)).await;
}

/// A release by force takes the lock from one holder, not from the next one too.
pub async fn a_repeated_release_takes_one_holder(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    stage.running(in_line).await;
    let (second, _third) = (stage.submit(in_line).await, stage.submit(in_line).await);
    let Answer::Lock(lock) = repeat(&mut stage, Command::ReleaseLock(name("prod"))).await else { panic!("a lock") };
    assert!(lock.is_held_by(second));
}

/// Steps that were refused change nothing, however often they come.
pub async fn a_refused_step_writes_nothing(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.end(fence, exit(0)).await;
    let before = Dump::of(&*stage.store()).await;
    for command in [
        Command::Kill(Kill { execution: fence.execution, force: true }),
        Command::Begin(fence),
        Command::GiveBack(fence),
        Command::Unsend(fence),
        Command::Reap(reap(fence, 0)),
        Command::ConfirmKill(fence.execution, 0),
        Command::ReleaseLock(name("nobody-ever-held-this")),
    ] {
        stage.play(command).await;
    }
    Dump::of(&*stage.store()).await.assert_same(&before, "refused steps");
}
