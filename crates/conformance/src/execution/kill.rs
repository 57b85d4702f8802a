//! What a kill promises, in every state.

use runvoy_model::command::{Answer, Command, Kill, Outcome, Refusal};
use runvoy_model::event::EventType;
use runvoy_model::status::{EndCode, Status};

use crate::harness::Executions;
use crate::stage::{PASSING_FAILURE, Stage, exit, refusal};

/// What does not run ends at once: waiting for a worker, in backoff, or leased and not begun.
pub async fn what_does_not_run_is_stopped_at_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let backoff = stage.running(|spec| spec.retries = 1).await;
    stage.end(backoff, exit(PASSING_FAILURE)).await;
    stage.submit(|_| ()).await;
    let starting = stage.lease_one().await;
    let pending = stage.submit(|_| ()).await;
    for id in [pending, backoff.execution, starting.execution] {
        let Answer::Changed(killed) = stage.kill(id).await else { panic!("not killed") };
        assert_eq!((killed.status, killed.exit_code, killed.lease), (Status::Stopped, Some(130), None));
        let stored = stage.get(id).await;
        assert_eq!(stored.end_reason.map(|reason| reason.code), Some(EndCode::Killed));
        assert_eq!(stored.kill.map(|kill| kill.by), Some("ann@x".into()));
        stage.verify_chain(id).await;
    }
    assert_eq!(refusal(stage.play(Command::Begin(starting)).await), Refusal::Ended(Status::Stopped));
    stage.pass_ms(3_600_000);
    assert!(stage.lease(9).await.is_empty());
    assert!(stage.store().open_leases().await.expect("leases").is_empty());
}

/// What runs is asked to end, and ends by its worker's word.
pub async fn what_runs_is_terminating_until_its_worker_confirms(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.kill(fence.execution).await;
    assert_eq!(stage.get(fence.execution).await.status, Status::Terminating);
    stage.end(fence, Outcome::Signalled { signal: 15, after_kill: true }).await;
    let done = stage.get(fence.execution).await;
    assert_eq!((done.status, done.exit_code), (Status::Stopped, Some(130)));
    let reason = done.end_reason.expect("a reason");
    assert!(reason.message.contains("ann@x") && reason.message.contains("SIGTERM"), "{}", reason.message);
    let kinds: Vec<_> = stage.events_of(fence.execution).await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds.last(), Some(&EventType::TaskStopped));
}

/// A command that ended before the signal keeps its own exit.
pub async fn its_own_exit_before_a_signal_wins(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|spec| spec.retries = 3).await;
    stage.kill(fence.execution).await;
    stage.end(fence, exit(0)).await;
    assert_eq!(stage.get(fence.execution).await.status, Status::Succeeded);
}

/// Neither a failure nor a lost worker brings a killed execution back.
pub async fn what_is_terminating_never_returns(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let failing = stage.running(|spec| spec.retries = 3).await;
    stage.kill(failing.execution).await;
    stage.end(failing, exit(PASSING_FAILURE)).await;
    assert_eq!(stage.get(failing.execution).await.status, Status::Failed);
    let lost = stage.running(|spec| spec.retries = 3).await;
    stage.kill(lost.execution).await;
    stage.reap(lost).await;
    assert_eq!(stage.get(lost.execution).await.status, Status::Stopped);
    stage.pass_ms(3_600_000);
    assert!(stage.lease(9).await.is_empty());
}

/// A kill that nobody confirms ends, and says so; the worker's word comes too late then.
pub async fn an_unconfirmed_kill_ends_and_says_so(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    assert_eq!(stage.play(Command::ConfirmKill(fence.execution, 0)).await, Answer::Unchanged);
    stage.kill(fence.execution).await;
    stage.play(Command::ConfirmKill(fence.execution, 0)).await;
    let done = stage.get(fence.execution).await;
    assert_eq!(done.status, Status::Stopped);
    assert!(done.end_reason.is_some_and(|reason| reason.message.contains("did not confirm")));
    assert_eq!(refusal(stage.end(fence, exit(0)).await), Refusal::Ended(Status::Stopped));
}

/// A second kill may be harsher and never milder.
pub async fn a_second_kill_may_be_harsher(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    for force in [false, true, false] {
        stage.play(Command::Kill(Kill { execution: fence.execution, force })).await;
    }
    assert!(stage.extend(fence).await.kill.is_some_and(|kill| kill.force));
}
