//! What is kept of jobs, and how it is found.

use runvoy_model::command::{Answer, Command, EndAttempt, Refusal};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::id::JobId;
use runvoy_model::job::{JobStatus, Payload, Phase};
use runvoy_ports::job::{JobQuery, PAGE_BYTES};
use runvoy_ports::store::{EventQuery, Sight};
use serde_json::json;

use super::yard::{Yard, job_of, new_task};
use crate::harness::Records;
use crate::stage::{exit, name, refusal};

/// What was opened is there, also after a reopen.
pub async fn a_job_is_read_back_as_it_was_answered(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let open = yard.new_open(&[("a", &[]), ("b", &["a"])]);
    let sent = open.clone();
    let job = job_of(yard.play(Command::OpenJob(Box::new(open))).await);
    for _ in 0..2 {
        assert_eq!(yard.job(job.id).await, job);
        let nodes = yard.nodes(job.id).await;
        assert_eq!(nodes.iter().map(|node| node.place).collect::<Vec<_>>(), [0, 1]);
        for (node, sent) in nodes.iter().zip(&sent.nodes) {
            let kept = (&node.name, &node.depends_on, &node.input, &node.spec, node.batch);
            assert_eq!(kept, (&sent.name, &sent.depends_on, &sent.input, &sent.spec, sent.batch));
            assert_eq!(*node, yard.node(job.id, node.task.as_str()).await);
        }
        assert_eq!((nodes[0].phase, nodes[1].phase, nodes[1].open_parents), (Phase::Active, Phase::Waiting, 1));
        yard.reopen().await;
    }
}

/// What was never opened cannot be read or moved.
pub async fn an_unknown_job_is_not_there(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let unknown = JobId::from_bytes(yard.fresh());
    let store = yard.store();
    assert_eq!(store.job(unknown).await.expect("a read"), None);
    assert_eq!(store.node(unknown, "a").await.expect("a read"), None);
    assert!(store.nodes(unknown, None, 10).await.expect("a read").is_empty());
    assert!(yard.executions_of(unknown).await.is_empty() && yard.events_of(unknown).await.is_empty());
    for command in [Command::AdvanceJob(unknown), Command::ResumeJob(unknown, None), Command::CancelJob(unknown)] {
        assert_eq!(refusal(yard.play(command).await), Refusal::NotFound);
    }
    assert_eq!(yard.play(Command::ForgetStaged(unknown)).await, Answer::Unchanged);
}

/// Lists are filtered and paged.
pub async fn jobs_are_listed_newest_first(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let mut ids = Vec::new();
    for number in 0..6 {
        let mut open = yard.new_open(&[("a", &[])]);
        open.job.created_by = if number % 2 == 0 { "ann@x" } else { "bob@x" }.into();
        ids.push(job_of(yard.play(Command::OpenJob(Box::new(open))).await).id);
    }
    yard.stage(1).await;
    yard.finish(ids[2], "a", exit(0)).await;
    yard.finish(ids[3], "a", exit(64)).await;
    ids.reverse();
    let store = yard.store();
    let list = async |query: JobQuery| -> Vec<JobId> {
        let query = JobQuery { limit: if query.limit == 0 { 100 } else { query.limit }, ..query };
        store.jobs(query).await.expect("jobs").into_iter().map(|job| job.id).collect()
    };
    assert_eq!(list(JobQuery::default()).await, ids, "what was not opened is not among them");
    assert_eq!(list(JobQuery { limit: 2, ..JobQuery::default() }).await, ids[..2]);
    assert_eq!(list(JobQuery { limit: 2, after: Some(ids[1]), ..JobQuery::default() }).await, ids[2..4]);
    let bobs = JobQuery { owner: Some("bob@x".into()), ..JobQuery::default() };
    assert_eq!(list(bobs.clone()).await, [ids[0], ids[2], ids[4]]);
    assert_eq!(list(JobQuery { statuses: vec![JobStatus::Failed], ..bobs }).await, [ids[2]]);
    let ended = JobQuery { statuses: vec![JobStatus::Completed, JobStatus::Failed], ..JobQuery::default() };
    assert_eq!(list(ended.clone()).await, [ids[2], ids[3]]);
    assert_eq!(list(JobQuery { after: Some(ids[2]), ..ended }).await, [ids[3]]);
    assert!(list(JobQuery { after: Some(JobId::from_bytes(yard.fresh())), ..JobQuery::default() }).await.is_empty());
}

/// Pages of tasks have no gap and no repeat.
pub async fn tasks_are_paged_by_place(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let names: Vec<_> = (0..25).map(|number| format!("t{number}")).collect();
    let tasks: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    let job = yard.open(&tasks).await;
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = yard.store().nodes(job, after, 7).await.expect("a page");
        let Some(last) = page.last() else { break };
        after = Some(last.place);
        seen.extend(page.into_iter().map(|node| node.task.to_string()));
    }
    assert_eq!(seen, names);
}

/// However much tasks gave, a page is not much larger than it may be, and pages have all of them, once.
pub async fn large_tasks_are_paged_by_place(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let names: Vec<_> = (0..20).map(|number| format!("t{number}")).collect();
    let tasks: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    let job = yard.open(&tasks).await;
    yard.begin_all().await;
    let output = Payload::Inline(json!("x".repeat(150_000)));
    for task in &names {
        let end = EndAttempt { output: Some(output.clone()), ..yard.end_of(job, task, exit(0)).await };
        yard.play(Command::EndAttempt(end)).await;
    }
    let first = yard.store().nodes(job, None, 100).await.expect("a page");
    assert_eq!(first.len(), PAGE_BYTES.div_ceil(150_000), "it ends with the one that makes it large");
    let nodes = yard.nodes(job).await;
    assert!(nodes.iter().map(|node| node.task.as_str()).eq(names.iter().map(String::as_str)));
    assert!(nodes.iter().all(|node| node.output.as_ref() == Some(&output)));
}

/// What several tasks gave is one look, and nothing is mixed up.
pub async fn what_tasks_gave_is_read_in_the_order_asked_for(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let (job, other) = (yard.open(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])]).await, yard.open(&[("a", &[])]).await);
    let (small, large) = (Payload::Inline(json!({"é": [1.5, null]})), Payload::Blob { key: "ab".repeat(32), bytes: 300_000 });
    yard.begin_all().await;
    for (task, output) in [("a", Some(small.clone())), ("b", None), ("c", Some(large.clone()))] {
        let end = EndAttempt { output, ..yard.end_of(job, task, exit(0)).await };
        yard.play(Command::EndAttempt(end)).await;
    }
    let asked = ["c", "d", "a", "b", "never", "a"].map(name);
    for _ in 0..2 {
        let store = yard.store();
        let expected = [Some(large.clone()), None, Some(small.clone()), None, None, Some(small.clone())];
        assert_eq!(store.outputs(job, &asked).await.expect("a read"), expected);
        assert_eq!(store.outputs(other, &asked[2..3]).await.expect("a read"), [None]);
        assert!(store.outputs(job, &[]).await.expect("a read").is_empty());
        assert_eq!(store.outputs(JobId::from_bytes([0xee; 16]), &asked).await.expect("a read"), vec![None; 6]);
        drop(store);
        yard.reopen().await;
    }
}

/// A list of executions can be narrowed to a job.
pub async fn executions_are_found_by_their_job(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let first = yard.open(&[("a", &[]), ("b", &[]), ("c", &["a"])]).await;
    let second = yard.open(&[("a", &[])]).await;
    yard.finish(first, "a", exit(0)).await;
    let mut expected = Vec::new();
    for task in ["a", "b", "c"] {
        expected.extend(yard.node(first, task).await.execution);
    }
    expected.reverse();
    assert_eq!(yard.executions_of(first).await, expected, "newest first");
    assert_eq!(yard.executions_of(second).await.len(), 1);
    let query = runvoy_ports::store::ListQuery {
        job: Some(first),
        statuses: vec![runvoy_model::status::Status::Succeeded],
        limit: 10,
        ..Default::default()
    };
    assert_eq!(yard.store().list(query).await.expect("a list")[0].id, expected[2]);
}

/// Events about a job are a chain of their own.
pub async fn events_of_a_job_are_found_and_its_chain_verifies(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let (one, other) = (yard.open(&[("a", &[])]).await, yard.open(&[("a", &[])]).await);
    job_of(yard.add(one, &[("b", &["a"])]).await);
    yard.finish(one, "a", exit(0)).await;
    yard.finish(one, "b", exit(0)).await;
    let kinds: Vec<_> = yard.events_of(one).await.into_iter().map(|event| event.kind).collect();
    let added = [EventType::JobTasksAdded, EventType::Audit];
    assert_eq!(kinds, [&[EventType::JobCreated, EventType::Audit], &added[..], &[EventType::JobCompleted]].concat());
    assert_eq!(yard.events_of(other).await.len(), 2);
    yard.reopen().await;
    yard.verify_chain(one).await;
    yard.verify_chain(other).await;
}

/// Whoever submitted a job sees its events and those of its tasks; others see none of them.
pub async fn somebody_sees_the_events_of_their_jobs(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let mut open = yard.new_open(&[("a", &[]), ("b", &["a"])]);
    open.job.created_by = "bob@x".into();
    let bobs = job_of(yard.play(Command::OpenJob(Box::new(open))).await).id;
    yard.open(&[("a", &[])]).await;
    yard.finish(bobs, "a", exit(0)).await;
    let sight = |owner: &str| Sight { owner: Some(owner.into()), trail: false, most_looked_at: 1_000, most_bytes: 1 << 20 };
    let seen = async |owner: &str, entity: Option<Entity>| {
        let query = EventQuery { entity, limit: 1_000, ..EventQuery::default() };
        yard.store().seen_events(query, sight(owner)).await.expect("a page").events
    };
    let mut about = vec![Entity::job(bobs)];
    about.extend(yard.executions_of(bobs).await.into_iter().map(Entity::task));
    let bob = seen("bob@x", None).await;
    assert!(bob.iter().all(|stored| about.contains(&stored.event.entity) && stored.event.kind != EventType::Audit));
    let all = yard.store().events(EventQuery { limit: 1_000, ..EventQuery::default() }).await.expect("events");
    let expected = all.iter().filter(|stored| about.contains(&stored.event.entity) && stored.event.kind != EventType::Audit);
    assert_eq!(bob.len(), expected.count());
    assert_eq!(seen("bob@x", Some(Entity::job(bobs))).await.len(), 1, "that it was created");
    assert!(seen("ann@x", Some(Entity::job(bobs))).await.is_empty());
    assert!(seen("ann@x", None).await.iter().all(|stored| !about.contains(&stored.event.entity)));
}

/// What was only written goes, a part at a time, and leaves nothing behind.
pub async fn a_job_that_nobody_opens_is_forgotten(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let staged = yard.stage(250).await.id;
    let opened = yard.open(&[("a", &[])]).await;
    let later = yard.now.plus_ms(1);
    assert!(yard.store().staged_before(yard.now, 10).await.expect("jobs").is_empty());
    assert_eq!(yard.store().staged_before(later, 10).await.expect("jobs"), [staged]);
    assert!(yard.nodes(staged).await.len() == 250 && yard.node(staged, "t7").await.phase == Phase::Staged);
    yard.play(Command::ForgetStaged(opened)).await;
    assert_eq!(yard.job(opened).await.status, JobStatus::Running, "what was opened stays");
    for _ in 0..250_usize.div_ceil(yard.store().step_limits().forgotten) {
        yard.play(Command::ForgetStaged(staged)).await;
    }
    assert_eq!(yard.store().job(staged).await.expect("a read"), None);
    assert_eq!(yard.store().node(staged, "t249").await.expect("a read"), None);
    assert!(yard.store().staged_before(later, 10).await.expect("jobs").is_empty());
    let next = yard.open(&[("t7", &[])]).await;
    assert_eq!(yard.nodes(next).await.len(), 1, "nothing of the one before is left");
    yard.verify_chain(next).await;
}

/// Tasks count from when their batch is opened.
pub async fn tasks_that_are_not_opened_are_no_part_of_a_job(harness: Records<'_>) {
    let mut yard = Yard::new(harness);
    let job = yard.open(&[("a", &[])]).await;
    let stage = |batch, task: &str| runvoy_model::command::StageTasks { job, begins: None, nodes: vec![new_task(job, task, &[], batch)] };
    yard.play(Command::StageTasks(stage(5, "never"))).await;
    yard.play(Command::StageTasks(stage(6, "other"))).await;
    // A name that another batch only wrote is free.
    yard.play(Command::StageTasks(stage(7, "never"))).await;
    assert_eq!((yard.nodes(job).await.len(), yard.node(job, "never").await.batch), (1, 7));
    assert!(matches!(refusal(yard.play(Command::StageTasks(stage(8, "a"))).await), Refusal::Taken(..)));
    yard.finish(job, "a", exit(0)).await;
    let end = yard.job(job).await;
    assert_eq!((end.status, end.counts.total), (JobStatus::Completed, 1));
    assert_eq!(refusal(yard.play(Command::StageTasks(stage(9, "b"))).await), Refusal::JobClosed(job, JobStatus::Completed));
}
