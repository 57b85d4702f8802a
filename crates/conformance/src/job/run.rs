//! How jobs run: who is released when, once, whoever repeats and whatever happens at once.

use runvoy_model::command::{Answer, Command, Refusal, ReviseJob, ReviseTask};
use runvoy_model::event::EventType;
use runvoy_model::job::{JobStatus, Payload, Phase};
use runvoy_model::spec::Spec;
use serde_json::json;

use super::yard::{Yard, job_of};
use crate::harness::Records;
use crate::stage::{exit, name, refusal};

/// A child is released with the end of its last parent, and not before.
pub async fn children_begin_when_their_last_parent_is_done(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = yard.open(&[("a", &[]), ("b", &[]), ("c", &["a", "b"]), ("d", &["c"])]).await;
    assert_eq!(yard.phases(job).await, [Phase::Active, Phase::Active, Phase::Waiting, Phase::Waiting]);
    yard.finish(job, "b", exit(0)).await;
    assert_eq!(yard.node(job, "c").await.phase, Phase::Waiting);
    yard.finish(job, "a", exit(0)).await;
    assert_eq!(yard.node(job, "c").await.phase, Phase::Active);
    yard.finish(job, "c", exit(0)).await;
    yard.finish(job, "d", exit(0)).await;
    let end = yard.job(job).await;
    assert_eq!((end.status, end.completed_at, end.counts.completed), (JobStatus::Completed, Some(yard.now), 4));
    yard.verify_chain(job).await;
}

/// The same open again is answered as before.
pub async fn a_repeated_open_makes_one_job(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let (step, open) = (yard.step(), yard.new_open(&[("a", &[]), ("b", &["a"])]));
    let command = Command::OpenJob(Box::new(open));
    let first = job_of(yard.apply(&step, &command).await);
    assert_eq!(job_of(yard.apply(&step, &command).await), first);
    assert_eq!((yard.executions_of(first.id).await.len(), yard.events_of(first.id).await.len()), (1, 2));
    assert_eq!(yard.job(first.id).await, first);
}

/// The same end again releases nobody.
pub async fn a_repeated_end_releases_once(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = yard.open(&[("a", &[]), ("b", &["a"])]).await;
    yard.begin_all().await;
    let (step, end) = (yard.step(), Command::EndAttempt(yard.end_of(job, "a", exit(0)).await));
    yard.apply(&step, &end).await;
    let after = (yard.job(job).await, yard.nodes(job).await);
    yard.apply(&step, &end).await;
    assert_eq!((yard.job(job).await, yard.nodes(job).await), after);
    assert_eq!(yard.executions_of(job).await.len(), 2);
}

/// A client's own key names one job, for one request.
pub async fn one_key_makes_one_job(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let first = job_of(yard.open_keyed("k", 1).await);
    let Answer::Job { job, repeated: true } = yard.open_keyed("k", 1).await else { panic!("another job") };
    assert_eq!(job.id, first.id);
    assert!(matches!(refusal(yard.open_keyed("k", 2).await), Refusal::KeyReused(_)));
    let other = job_of(yard.open_keyed("other", 1).await);
    assert_ne!(other.id, first.id);
}

/// Opens with one key that come at once make one job.
pub async fn of_many_opens_with_one_key_one_is_made(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let store = yard.store();
    let mut calls = Vec::new();
    for _ in 0..30 {
        let mut open = yard.new_open(&[("a", &[])]);
        open.key = Some(runvoy_model::command::SubmitKey { user: "ann@x".into(), key: "k".into(), fingerprint: [1; 32] });
        let (store, step) = (store.clone(), yard.step());
        calls.push(tokio::spawn(async move { store.open_job(step, open).await.expect("an answer") }));
    }
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.expect("no panic").0.id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(yard.executions_of(ids[0]).await.len(), 1);
}

/// A fan-in is released once, however its parents end.
pub async fn parents_that_end_at_once_release_their_child_once(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let parents: Vec<_> = (0..12).map(|number| format!("p{number}")).collect();
    let all: Vec<&str> = parents.iter().map(String::as_str).collect();
    let mut tasks: Vec<(&str, &[&str])> = all.iter().map(|parent| (*parent, &[][..])).collect();
    tasks.push(("child", &all));
    let job = yard.open(&tasks).await;
    yard.begin_all().await;
    let store = yard.store();
    let mut calls = Vec::new();
    for parent in &parents {
        let (store, step, end) = (store.clone(), yard.step(), yard.end_of(job, parent, exit(0)).await);
        calls.push(tokio::spawn(async move { store.end_attempt(step, end).await.expect("an end") }));
    }
    for call in calls {
        call.await.expect("no panic");
    }
    assert_eq!(yard.node(job, "child").await.phase, Phase::Active);
    assert_eq!(yard.executions_of(job).await.len(), 13);
}

/// What a task gave comes back as it was, or as where it lies.
pub async fn an_output_is_kept_with_its_task(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = yard.open(&[("a", &[]), ("b", &["a"])]).await;
    yard.begin_all().await;
    let mut end = yard.end_of(job, "a", exit(0)).await;
    end.output = Some(Payload::Inline(json!({"rows": [1, "é"], "big": 18_446_744_073_709_551_615_u64})));
    yard.play(Command::EndAttempt(end.clone())).await;
    yard.begin_all().await;
    let mut second = yard.end_of(job, "b", exit(0)).await;
    second.output = Some(Payload::Blob { key: "k/1".into(), bytes: 1 << 20 });
    yard.play(Command::EndAttempt(second.clone())).await;
    yard.reopen().await;
    assert_eq!((yard.node(job, "a").await.output, yard.node(job, "b").await.output), (end.output, second.output));
}

/// A failure can be tried again in a new generation; a cancel is final.
pub async fn a_failed_job_is_resumed_and_a_cancelled_one_is_not(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = yard.open(&[("a", &[]), ("b", &["a"]), ("c", &[])]).await;
    yard.finish(job, "a", exit(64)).await;
    assert_eq!(yard.job(job).await.status, JobStatus::Running, "the others go on");
    yard.finish(job, "c", exit(0)).await;
    assert_eq!(yard.job(job).await.status, JobStatus::Failed);
    yard.reopen().await;
    let resumed = job_of(yard.play(Command::ResumeJob(job, None)).await);
    assert_eq!((resumed.status, resumed.generation), (JobStatus::Running, 2));
    yard.finish(job, "a", exit(65)).await;
    let told = yard.events_of(job).await.iter().filter(|event| event.kind == EventType::JobFailureDetected).count();
    assert_eq!(told, 2, "once for each generation");
    assert_eq!(job_of(yard.play(Command::CancelJob(job)).await).status, JobStatus::Cancelled);
    assert_eq!(refusal(yard.play(Command::ResumeJob(job, None)).await), Refusal::JobClosed(job, JobStatus::Cancelled));
    assert_eq!(refusal(yard.add(job, &[("d", &[])]).await), Refusal::JobClosed(job, JobStatus::Cancelled));
    yard.verify_chain(job).await;
}

/// What a resume changes of a task is kept beside what it was submitted as, also where it is large.
pub async fn a_changed_task_keeps_both_versions(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = yard.open(&[("a", &[]), ("b", &["a"])]).await;
    yard.finish(job, "a", exit(64)).await;
    let original = yard.node(job, "a").await.spec;
    let mut last = Vec::new();
    for command in ["make -j1".to_owned(), format!("echo {}", "x".repeat(40_000))] {
        let mut tasks = Vec::new();
        for task in ["a", "b"] {
            let was = yard.node(job, task).await.runs().clone();
            let spec = Spec { command: command.clone(), ..was.clone() };
            tasks.push(ReviseTask { task: name(task), was, spec, told: json!({"taskId": task}) });
        }
        last = tasks.iter().map(|task| task.spec.clone()).collect();
        job_of(yard.play(Command::ReviseJob(Box::new(ReviseJob { job, tasks, key: None }))).await);
        yard.reopen().await;
        yard.finish(job, "a", exit(64)).await;
    }
    for (task, spec) in ["a", "b"].into_iter().zip(last) {
        let node = yard.node(job, task).await;
        assert_eq!((&node.spec, node.runs()), (&original, &spec));
        assert_eq!(node.revision.map(|revision| revision.generation), Some(3));
    }
    let execution = yard.node(job, "a").await.execution.expect("it was released");
    let execution = yard.store().get(execution).await.expect("a read").expect("an execution");
    assert_eq!(execution.spec.command.len(), 40_005);
    yard.verify_chain(job).await;
}

/// Tasks that are added later begin, wait or are blocked as their parents say.
pub async fn late_tasks_join_where_their_parents_stand(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = yard.open(&[("done", &[]), ("failed", &[]), ("slow", &[])]).await;
    yard.finish(job, "done", exit(0)).await;
    yard.finish(job, "failed", exit(64)).await;
    let added = job_of(yard.add(job, &[("x", &["done"]), ("y", &["failed", "done"]), ("z", &["slow", "x"])]).await);
    assert_eq!((added.counts.total, added.opening), (6, None));
    assert_eq!(yard.phases(job).await[3..], [Phase::Active, Phase::Waiting, Phase::Waiting]);
    yard.finish(job, "slow", exit(0)).await;
    yard.finish(job, "x", exit(0)).await;
    assert_eq!(yard.node(job, "z").await.phase, Phase::Active);
    assert!(matches!(refusal(yard.add(job, &[("x", &[])]).await), Refusal::Taken(..)), "a name is taken once");
}

/// A job larger than a step loses nothing between its steps.
pub async fn a_large_job_is_written_in_parts_and_goes_on_after_every_reopen(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let begins = yard.stage(250).await;
    assert_eq!(yard.job(begins.id).await.status, JobStatus::Staged);
    assert!(yard.executions_of(begins.id).await.is_empty());
    yard.reopen().await;
    let (id, told) = (begins.id, Payload::Blob { key: "told".into(), bytes: 9 });
    let open = runvoy_model::command::OpenJob { job: begins, nodes: Vec::new(), told, digest: None, key: None };
    let mut job = job_of(yard.play(Command::OpenJob(Box::new(open))).await);
    let mut steps = 0;
    while job.attention {
        assert_eq!(yard.store().attention(10).await.expect("jobs"), [id]);
        yard.reopen().await;
        job = job_of(yard.play(Command::AdvanceJob(id)).await);
        steps += 1;
        assert!(steps < 100, "it never ends");
    }
    assert!(steps > 1);
    assert!(yard.store().attention(10).await.expect("jobs").is_empty());
    assert_eq!((job.counts.active, yard.executions_of(id).await.len()), (250, 250));
    assert!(yard.phases(id).await.iter().all(|phase| *phase == Phase::Active));
}
