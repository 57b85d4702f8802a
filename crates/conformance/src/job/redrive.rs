//! Dead letters that are tasks of jobs: their task runs again in its job, alone.

use runvoy_model::command::{Answer, Command};
use runvoy_model::event::EventType;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::incident::{IncidentKind, name_for};
use runvoy_model::job::{JobStatus, Phase};
use runvoy_model::record::{Body, Kind};
use runvoy_model::redrive::{Fate, Letter, Redrive};

use super::yard::{Tasks, Yard};
use crate::harness::Records;
use crate::stage::{PASSING_FAILURE, exit};

/// Opens a job whose tasks may fail once more.
async fn open(yard: &mut Yard<'_>, tasks: Tasks<'_>) -> JobId {
    let mut open = yard.new_open(tasks);
    open.nodes.iter_mut().for_each(|node| node.spec.retries = 1);
    yard.open_all(open).await
}

/// Ends a task as a dead letter.
async fn give_up(yard: &mut Yard<'_>, job: JobId, task: &str) -> ExecutionId {
    for _ in 0..2 {
        yard.finish(job, task, exit(PASSING_FAILURE)).await;
        yard.now = yard.now.plus_ms(600_000);
    }
    yard.node(job, task).await.execution.expect("an execution")
}

async fn redrive(yard: &mut Yard<'_>, executions: &[ExecutionId]) -> Vec<Fate> {
    let letter = |execution: &ExecutionId| Letter { execution: *execution, again: ExecutionId::from_bytes(yard.fresh()) };
    let redrive = Redrive { letters: executions.iter().map(letter).collect(), settled: Vec::new(), key: None };
    match yard.play(Command::Redrive(redrive)).await {
        Answer::Redriven { letters, .. } => letters.into_iter().map(|letter| letter.fate).collect(),
        other => panic!("not redriven: {other:?}"),
    }
}

async fn is_dead(yard: &Yard<'_>, id: ExecutionId) -> bool {
    yard.store().get(id).await.expect("a read").expect("an execution").dead
}

/// Whether people are still to be told of it.
async fn is_open_incident(yard: &Yard<'_>, id: ExecutionId) -> bool {
    let record = yard.store().record(Kind::Incident, &name_for(IncidentKind::Dead, id)).await.expect("a read").expect("an incident");
    matches!(record.body, Some(Body::Incident(incident)) if incident.is_open())
}

/// A task that was given up runs again in its job; the others that failed stay as they are, and the job is told failed once more where it is.
pub async fn a_task_that_was_given_up_runs_again_alone(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = open(&mut yard, &[("a", &[]), ("b", &["a"]), ("c", &[])]).await;
    let dead = give_up(&mut yard, job, "a").await;
    yard.finish(job, "c", exit(64)).await;
    assert_eq!(yard.job(job).await.status, JobStatus::Failed);
    assert!(is_dead(&yard, dead).await && is_open_incident(&yard, dead).await);
    yard.reopen().await;
    assert_eq!(redrive(&mut yard, &[dead]).await, [Fate::Job(job)]);
    assert!(!is_dead(&yard, dead).await && !is_open_incident(&yard, dead).await);
    let moved = yard.job(job).await;
    assert_eq!((moved.status, moved.generation, moved.attention, moved.counts.failed), (JobStatus::Running, 2, true, 1));
    assert_eq!(yard.phases(job).await, [Phase::Ready, Phase::Waiting, Phase::Failed]);
    assert_eq!(redrive(&mut yard, &[dead]).await, [Fate::Job(job)], "it goes on there already");
    yard.play(Command::AdvanceJob(job)).await;
    assert_ne!(yard.node(job, "a").await.execution, Some(dead), "another execution");
    yard.finish(job, "a", exit(0)).await;
    yard.finish(job, "b", exit(0)).await;
    let end = yard.job(job).await;
    assert_eq!((end.status, end.failed_task.as_deref(), end.counts.failed), (JobStatus::Failed, Some("c"), 1));
    let told = yard.events_of(job).await.iter().filter(|event| event.kind == EventType::JobFailureDetected).count();
    assert_eq!(told, 2, "once for each generation");
    assert_eq!(yard.executions_of(job).await.len(), 4, "c ran once");
    yard.verify_chain(job).await;
}

/// Several tasks of one job run again in one generation of it.
pub async fn tasks_of_one_job_run_again_together(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = open(&mut yard, &[("a", &[]), ("b", &[])]).await;
    let dead = [give_up(&mut yard, job, "a").await, give_up(&mut yard, job, "b").await];
    assert_eq!(redrive(&mut yard, &dead).await, [Fate::Job(job), Fate::Job(job)]);
    assert_eq!(yard.job(job).await.generation, 2);
    yard.play(Command::AdvanceJob(job)).await;
    yard.finish(job, "a", exit(0)).await;
    yard.finish(job, "b", exit(0)).await;
    assert_eq!(yard.job(job).await.status, JobStatus::Completed);
}

/// A resume of the whole job takes the marks off too.
pub async fn a_resumed_task_is_no_dead_letter(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = open(&mut yard, &[("a", &[])]).await;
    let dead = give_up(&mut yard, job, "a").await;
    yard.play(Command::ResumeJob(job, None)).await;
    assert!(!is_dead(&yard, dead).await && !is_open_incident(&yard, dead).await);
    assert_eq!(redrive(&mut yard, &[dead]).await, [Fate::Job(job)]);
    assert_eq!((yard.job(job).await.generation, yard.executions_of(job).await.len()), (2, 2));
}

/// Nothing of a cancelled job runs again, and what was given up in it waits for nobody.
pub async fn nothing_of_a_cancelled_job_runs_again(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = open(&mut yard, &[("a", &[]), ("b", &["a"])]).await;
    let dead = give_up(&mut yard, job, "a").await;
    yard.play(Command::CancelJob(job)).await;
    yard.reopen().await;
    assert!(!is_dead(&yard, dead).await && !is_open_incident(&yard, dead).await);
    let fates = redrive(&mut yard, &[dead]).await;
    assert!(matches!(&fates[..], [Fate::Refused(why)] if why.contains("not a dead letter")), "{fates:?}");
    assert_eq!((yard.job(job).await.status, yard.executions_of(job).await.len()), (JobStatus::Cancelled, 1));
}

/// However much was given up in a job that is cancelled, it is found by who goes on with it until none of that is a dead letter, also after a reopen.
pub async fn dead_letters_of_a_large_cancelled_job_are_buried_in_parts(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let names: Vec<String> = (0..130).map(|number| format!("t{number}")).collect();
    let tasks: Vec<(&str, &[&str])> = names.iter().map(|task| (task.as_str(), &[][..])).collect();
    let job = open(&mut yard, &tasks).await;
    for _ in 0..2 {
        yard.begin_all().await;
        for task in &names {
            let end = yard.end_of(job, task, exit(PASSING_FAILURE)).await;
            yard.play(Command::EndAttempt(end)).await;
        }
        yard.now = yard.now.plus_ms(600_000);
    }
    let dead = async |yard: &Yard<'_>| yard.store().queues().await.expect("queues").iter().map(|queue| queue.dead).sum::<u64>();
    assert_eq!((yard.job(job).await.status, dead(&yard).await), (JobStatus::Failed, 130));
    yard.play(Command::CancelJob(job)).await;
    let mut left = dead(&yard).await;
    assert!(left > 0, "more than one step buries");
    while left > 0 {
        yard.reopen().await;
        assert_eq!(yard.store().attention(10).await.expect("jobs"), [job]);
        yard.play(Command::AdvanceJob(job)).await;
        let before = std::mem::replace(&mut left, dead(&yard).await);
        assert!(left < before, "it never ends");
    }
    assert!(yard.store().attention(10).await.expect("jobs").is_empty());
    for execution in yard.executions_of(job).await {
        assert!(!is_open_incident(&yard, execution).await);
    }
    yard.verify_chain(job).await;
}
