//! What the end of an attempt promises: it is final, it says why, and what comes late is kept and changes nothing.

use runvoy_model::command::{Answer, Command, Kill, Outcome, Refusal};
use runvoy_model::event::{Event, EventType};
use runvoy_model::execution::Execution;
use runvoy_model::status::{EndCode, Status};
use runvoy_ports::store::ListQuery;

use crate::harness::Executions;
use crate::stage::{PASSING_FAILURE, Stage, ended, exit, extend, reap, refusal};

/// What must never change once an execution has ended.
fn end_of(execution: &Execution) -> impl PartialEq + std::fmt::Debug + use<> {
    let Execution { status, exit_code, end_reason, completed_at, attempt, log_end, cost_micro_usd, dead, kill, lease, lock, .. } =
        execution.clone();
    (status, exit_code, end_reason, completed_at, attempt, (log_end, cost_micro_usd, dead, kill, lease, lock))
}

fn is_late(event: &Event) -> bool {
    event.properties["late"] == true
}

/// Whatever comes after the end changes nothing of it.
pub async fn a_terminal_status_is_final(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let outcomes =
        [exit(0), exit(3), Outcome::Signalled { signal: 9, after_kill: false }, Outcome::TimedOut { timeout_ms: 5, forced: true }];
    for outcome in outcomes {
        let fence = stage.running(|_| ()).await;
        stage.end(fence, outcome).await;
        let before = stage.get(fence.execution).await;
        assert!(before.status.is_terminal());
        stage.pass_ms(1_000);
        for command in [
            Command::EndAttempt(ended(fence, exit(0))),
            Command::EndAttempt(ended(fence, exit(1))),
            Command::Kill(Kill { execution: fence.execution, force: true }),
            Command::Extend(extend(fence)),
            Command::Begin(fence),
            Command::GiveBack(fence),
            Command::Unsend(fence),
            Command::Reap(reap(fence, 0)),
            Command::ConfirmKill(fence.execution, 0),
            Command::ExpireWait(fence.execution),
        ] {
            stage.play(command).await;
        }
        let after = stage.get(fence.execution).await;
        assert_eq!(end_of(&after), end_of(&before));
        stage.verify_chain(fence.execution).await;
    }
}

/// Status, code, reason, log end, cost and times are there, also after a reopen.
pub async fn an_end_is_recorded_whole(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.pass_ms(2_500);
    stage.end(fence, exit(3)).await;
    stage.reopen().await;
    let done = stage.get(fence.execution).await;
    assert_eq!((done.status, done.exit_code, done.log_end, done.cost_micro_usd), (Status::Failed, Some(3), Some(7), Some(5)));
    let reason = done.end_reason.as_ref().expect("a reason");
    assert_eq!((reason.code, reason.message.as_str()), (EndCode::Exit, "exit code 3"));
    // The command ran for 1,234 ms; that it took 2,500 to write that down is not its time.
    let started = done.started_at.expect("it started");
    assert_eq!((done.completed_at, done.duration_ms(stage.now)), (Some(started.plus_ms(1_234)), Some(1_234)));
    assert!(done.lease.is_none());
    assert_eq!(done.ran_on.as_ref().map(|on| on.host.as_str()), Some("host-1"));
}

/// A finish under a lapsed lease is refused, kept as a late event, and changes nothing.
pub async fn a_late_finish_is_kept_and_changes_nothing(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.reap(fence).await;
    let before = stage.get(fence.execution).await;
    assert_eq!(refusal(stage.end(fence, exit(0)).await), Refusal::Ended(Status::Failed));
    assert_eq!(end_of(&stage.get(fence.execution).await), end_of(&before));
    let events = stage.events_of(fence.execution).await;
    let late = events.iter().filter(|event| event.kind == EventType::TaskCompleted).collect::<Vec<_>>();
    assert!(late.len() == 1 && late.iter().all(|event| is_late(event)), "kept once, and marked");
    stage.verify_chain(fence.execution).await;
}

/// A worker that lost its lease can do no harm to the attempt after its own.
pub async fn a_lapsed_worker_cannot_touch_the_next_attempt(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let old = stage.running(|spec| spec.retries = 1).await;
    stage.reap(old).await;
    stage.pass_ms(60_000);
    let new = stage.begun().await;
    assert_eq!((new.execution, new.attempt), (old.execution, 2));
    assert_eq!(refusal(stage.end(old, exit(0)).await), Refusal::Lapsed);
    assert_eq!(refusal(stage.play(Command::Extend(extend(old))).await), Refusal::Lapsed);
    assert_eq!(stage.get(new.execution).await.status, Status::Running);
    stage.end(new, exit(0)).await;
    assert_eq!(stage.get(new.execution).await.status, Status::Succeeded);
    stage.verify_chain(new.execution).await;
}

/// A passing failure waits for its backoff, then runs again.
pub async fn a_retry_waits_for_its_backoff(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|spec| spec.retries = 1).await;
    stage.end(fence, exit(PASSING_FAILURE)).await;
    let waiting = stage.get(fence.execution).await;
    assert_eq!((waiting.status, waiting.attempt, waiting.exit_code), (Status::Pending, 1, None));
    assert!(stage.lease(1).await.is_empty());
    stage.now = waiting.ready_at.plus_ms(-1);
    assert!(stage.lease(1).await.is_empty());
    stage.now = waiting.ready_at;
    assert_eq!(stage.begun().await.attempt, 2);
}

/// What no attempt can cure is not tried again.
pub async fn only_passing_failures_are_retried(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|spec| spec.retries = 5).await;
    stage.end(fence, exit(127)).await;
    let done = stage.get(fence.execution).await;
    assert_eq!((done.status, done.dead), (Status::Failed, false));
}

/// When retries are used up the execution is marked for the dead letters.
pub async fn used_up_retries_are_dead_letters(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    stage.submit(|spec| spec.retries = 2).await;
    for _ in 0..3 {
        let fence = stage.begun().await;
        stage.end(fence, exit(PASSING_FAILURE)).await;
        stage.pass_ms(600_000);
    }
    assert!(stage.lease(1).await.is_empty());
    let id = stage.list(ListQuery::default()).await[0];
    let done = stage.get(id).await;
    assert_eq!((done.status, done.attempt, done.dead, done.cost_micro_usd), (Status::Failed, 3, true, Some(15)));
}

/// A lost worker fails what may not run twice, and says so.
pub async fn a_lapsed_lease_without_retries_fails(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    let answer = stage.reap(fence).await;
    assert!(matches!(answer, Answer::Ended(_)));
    let done = stage.get(fence.execution).await;
    assert_eq!((done.status, done.exit_code, done.log_end), (Status::Failed, Some(125), Some(9)));
    assert_eq!(done.end_reason.map(|reason| (reason.code, reason.message)), Some((EndCode::WorkerLost, "its worker was lost".into())));
    assert!(stage.store().open_leases().await.expect("leases").is_empty());
}

/// A lost worker is one attempt where retries are left.
pub async fn a_lapsed_lease_with_retries_is_tried_again(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|spec| spec.retries = 1).await;
    stage.reap(fence).await;
    let waiting = stage.get(fence.execution).await;
    assert_eq!((waiting.status, waiting.attempt, waiting.lease), (Status::Pending, 1, None));
}

/// What may be delivered again is, until its deliveries are used up; how its command ends is final.
pub async fn a_lapsed_lease_is_delivered_again(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = stage.submit(|spec| spec.redeliveries = 2).await;
    for delivery in 1..=3 {
        let fence = stage.begun().await;
        assert_eq!((fence.execution, fence.attempt), (id, delivery));
        stage.reap(fence).await;
        stage.reopen().await;
        stage.pass_ms(600_000);
    }
    assert!(stage.lease(1).await.is_empty());
    let done = stage.get(id).await;
    assert_eq!((done.status, done.attempt, done.dead), (Status::Failed, 3, true));
    let fence = stage.running(|spec| spec.redeliveries = 2).await;
    stage.end(fence, exit(PASSING_FAILURE)).await;
    let done = stage.get(fence.execution).await;
    assert_eq!((done.status, done.dead), (Status::Failed, false), "its worker was there");
}

/// A lease that lapsed before its begin goes back uncounted.
pub async fn a_lapsed_unbegun_lease_goes_back_uncounted(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = stage.submit(|_| ()).await;
    let fence = stage.lease_one().await;
    stage.reap(fence).await;
    let back = stage.get(id).await;
    assert_eq!((back.status, back.attempt), (Status::Pending, 0));
    assert_eq!(stage.begun().await.attempt, 1);
}

/// A lease that was extended since it was looked at is not reaped.
pub async fn a_lease_extended_since_is_not_reaped(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    stage.extend(fence).await;
    assert_eq!(stage.play(Command::Reap(reap(fence, 0))).await, Answer::Unchanged);
    assert_eq!(stage.get(fence.execution).await.status, Status::Running);
}

/// Of many that end the same attempt at the same time, one does.
pub async fn of_many_finishes_one_counts(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let fence = stage.running(|_| ()).await;
    let mut sent = Vec::new();
    for code in 0..20 {
        let (store, step) = (stage.store(), stage.step());
        sent.push(tokio::spawn(async move { store.end_attempt(step, ended(fence, exit(code))).await }));
    }
    let mut won = Vec::new();
    for answer in sent {
        match answer.await.expect("no panic") {
            Ok(execution) => won.push(execution.exit_code),
            Err(error) => assert!(matches!(error.refusal(), Some(Refusal::Ended(_))), "{error}"),
        }
    }
    assert_eq!(won, [stage.get(fence.execution).await.exit_code]);
    let ends = stage.events_of(fence.execution).await;
    let ends = ends.iter().filter(|event| matches!(event.kind, EventType::TaskCompleted | EventType::TaskFailed) && !is_late(event));
    assert_eq!(ends.count(), 1);
    stage.verify_chain(fence.execution).await;
}
