//! What is kept follows from the events; and whatever is changed in it does not, and is named.

use std::collections::BTreeMap;

use serde_json::json;

use super::job::{Tasks, add, advance, begin_all, finish, job_of, open, open_with, phase, revise, status};
use super::world::{World, exit, fence_of};
use crate::command::Command;
use crate::digest::DigestsSince;
use crate::event::{Entity, EntityType, Event, EventType};
use crate::execution::{Execution, LockClaim};
use crate::fold::{Comparison, ExecutionFold, JobCheck, Mismatch, compare_lock};
use crate::id::{ExecutionId, JobId};
use crate::job::{Job, JobStatus, Node, Payload, Phase, TaskRef};
use crate::redrive::{Letter, Redrive};
use crate::status::{EndCode, Status};
use crate::step::Step;

/// Compares all there is.
pub fn compare(world: &World) -> Comparison {
    let mut found = Comparison::default();
    let mut events: BTreeMap<&Entity, Vec<(u64, &Event)>> = BTreeMap::new();
    for (place, event) in (1..).zip(&world.events) {
        events.entry(&event.entity).or_default().push((place, event));
    }
    let events_of = |about: &Entity| events.get(about).map_or(&[][..], Vec::as_slice).iter();
    let mut arrivals: Vec<(u64, &Execution, ExecutionFold)> = Vec::new();
    for execution in world.executions.values() {
        let (about, mut fold, mut first) = (Entity::task(execution.id), ExecutionFold::default(), None);
        for (place, event) in events_of(&about) {
            first.get_or_insert(*place);
            if let Err(impossible) = fold.next(*place, event) {
                found.add(Err(Mismatch::of(&about, "events", impossible.to_string())));
            }
        }
        let lock = execution.spec.lock.as_ref().and_then(|name| world.locks.get(name));
        found.add(fold.compare(execution, lock, DigestsSince::default()));
        arrivals.push((first.unwrap_or(0), execution, fold));
    }
    arrivals.sort_by_key(|(first, ..)| *first);
    for job in world.jobs.values() {
        let (about, mut check) = (Entity::job(job.id), JobCheck::new(job.clone(), DigestsSince::default()));
        events_of(&about).for_each(|(place, event)| check.event(*place, event));
        let is_task = |execution: &Execution| execution.spec.task.as_ref().is_some_and(|task| task.job == job.id);
        let tasks = arrivals.iter().filter(|(_, execution, _)| is_task(execution));
        tasks.for_each(|(_, execution, fold)| check.execution(execution, fold));
        let is_opened = |node: &&Node| node.phase != Phase::Staged || job.opening == Some(node.batch);
        world.tasks(job.id).filter(is_opened).for_each(|node| check.node(node));
        world.tasks(job.id).filter(is_opened).for_each(|node| check.parents(node));
        found.join(check.finish());
    }
    for lock in world.locks.values().filter(|lock| lock.holder.is_some()) {
        let holder = arrivals.iter().find(|(_, execution, _)| lock.is_held_by(execution.id));
        found.add(compare_lock(lock, holder.map(|(_, execution, fold)| (*execution, fold))));
    }
    found
}

/// A job with a task in every phase that a task can rest in, a second one that is done, and two executions of nobody's job.
fn used() -> (World, JobId, ExecutionId) {
    let mut world = World::new();
    let tasks: Tasks<'_> = &[("done", &[]), ("bad", &[]), ("slow", &["done"]), ("blocked", &["bad", "done"]), ("next", &[])];
    let told = json!([{"taskId": "done", "dependsOn": []}, {"taskId": "slow", "dependsOn": ["done"]}]);
    let id = open_with(&mut world, tasks, |job, _| (job.concurrency, job.request_key) = (Some(2), Some("k".into())));
    // As the engine tells it, not only by name.
    let created = world.events.iter_mut().find(|event| event.entity.kind == EntityType::Job).expect("an event");
    created.properties["tasks"] = told;
    begin_all(&mut world);
    let done = world.task(id, "done").and_then(|node| node.execution).expect("released");
    let mut ended = super::ended(fence_of(world.get(done)), exit(0));
    ended.output = Some(Payload::Inline(json!({"rows": 3})));
    world.play(Command::EndAttempt(ended));
    finish(&mut world, id, "bad", exit(64));
    job_of(world.play(Command::ResumeJob(id, None)));
    finish(&mut world, id, "slow", exit(0));
    finish(&mut world, id, "bad", exit(65));
    let other = open(&mut world, &[("only", &[])]);
    finish(&mut world, other, "only", exit(0));
    let cancelled = open(&mut world, &[("a", &[]), ("b", &["a"])]);
    job_of(world.play(Command::CancelJob(cancelled)));
    begin_all(&mut world);
    let fence = world.running(|spec| spec.lock = Some(super::name("prod")));
    world.submit(|_| ());
    (world, id, fence.execution)
}

type Change<T> = fn(&mut T);

fn first(world: &World) -> Option<(String, String)> {
    compare(world).first.map(|first| (first.entity, first.field))
}

#[test]
fn what_is_kept_follows_from_the_events() {
    let (mut world, id, running) = used();
    let found = compare(&world);
    assert_eq!(found.first, None);
    // Nine executions, three jobs with eight tasks, one lock.
    assert_eq!(found.compared, 9 + 3 + 8 + 1);
    job_of(add(&mut world, id, &[("late", &["slow", "bad"])]));
    job_of(world.play(Command::ResumeJob(id, None)));
    world.kill(running);
    assert_eq!(first(&world), None);
}

#[test]
fn a_task_that_runs_again_alone_follows_and_so_do_those_that_do_not() {
    let mut world = World::new();
    let id = open_with(&mut world, &[("a", &[]), ("b", &[]), ("c", &["b"])], |job, nodes| {
        job.concurrency = Some(1);
        nodes[0].spec.retries = 1;
    });
    for _ in 0..2 {
        finish(&mut world, id, "a", exit(super::NETWORK_DOWN));
        world.now = world.now.plus_ms(600_000);
    }
    finish(&mut world, id, "b", exit(64));
    let dead = world.task(id, "a").and_then(|node| node.execution).expect("an execution");
    assert!(world.get(dead).dead);
    let letters = vec![Letter { execution: dead, again: ExecutionId::from_bytes(world.fresh()) }];
    // Nobody's call: the new generation is told all the same.
    let step = Step { audit: None, ..world.step() };
    world.apply(&step, &Command::Redrive(Redrive { letters, settled: Vec::new(), key: None }));
    assert_eq!((phase(&world, id, "a"), phase(&world, id, "b")), (Phase::Ready, Phase::Failed));
    assert_eq!(first(&world), None);
    advance(&mut world, id);
    assert_eq!(first(&world), None);
    finish(&mut world, id, "a", exit(0));
    let step = Step { audit: None, ..world.step() };
    job_of(world.apply(&step, &Command::ResumeJob(id, None)));
    finish(&mut world, id, "b", exit(0));
    assert_eq!(first(&world), None);
    let step = Step { audit: None, ..world.step() };
    job_of(world.apply(&step, &Command::CancelJob(id)));
    assert_eq!((status(&world, id), first(&world)), (JobStatus::Cancelled, None));
}

#[test]
fn an_execution_that_was_changed_is_named() {
    let changes: [(&str, Change<Execution>); 9] = [
        ("status", |kept| kept.status = Status::Pending),
        ("status", |kept| (kept.status, kept.lease) = (Status::Succeeded, None)),
        ("attempt", |kept| kept.attempt = 2),
        ("exit_code", |kept| kept.exit_code = Some(0)),
        ("submitted_at", |kept| kept.submitted_at.0 += 1),
        ("started_at", |kept| kept.started_at = None),
        ("worker", |kept| kept.lease = None),
        ("lock", |kept| kept.lock = LockClaim::Held { fence: 9 }),
        ("task.job", |kept| {
            kept.spec.task = Some(TaskRef { job: JobId::from_bytes([1; 16]), task: super::name("a"), generation: 1, name: None })
        }),
    ];
    for (field, change) in changes {
        let (mut world, _, id) = used();
        change(world.executions.get_mut(&id).expect("an execution"));
        let found = first(&world).unwrap_or_else(|| panic!("{field} is not found"));
        assert_eq!(found, (format!("TASK:{id}"), field.to_owned()));
    }
    let (mut world, id, _) = used();
    let ended = world.task(id, "bad").and_then(|node| node.execution).expect("an execution");
    world.executions.get_mut(&ended).expect("it").end_reason.as_mut().expect("a reason").code = EndCode::Oom;
    assert_eq!(first(&world), Some((format!("TASK:{ended}"), "end_reason".to_owned())));
    let (mut world, _, id) = used();
    world.locks.values_mut().for_each(|lock| lock.holder = None);
    assert_eq!(first(&world), Some((format!("TASK:{id}"), "lock".to_owned())));
}

#[test]
fn a_job_that_was_changed_is_named() {
    let changes: [(&str, Change<Job>); 12] = [
        ("status", |kept| kept.status = JobStatus::Completed),
        ("status", |kept| kept.status = JobStatus::Failed),
        ("status", |kept| kept.status = JobStatus::Staged),
        ("total", |kept| kept.counts.total = 6),
        ("generation", |kept| kept.generation = 1),
        ("request_key", |kept| kept.request_key = None),
        ("failure_told", |kept| kept.failure_told = false),
        ("failed_task", |kept| kept.failed_task = Some("slow".into())),
        ("completed_at", |kept| kept.completed_at = Some(kept.created_at)),
        ("counts.active", |kept| kept.counts.active += 1),
        ("counts.failed", |kept| kept.counts.failed = 0),
        ("attention", |kept| (kept.opening, kept.attention) = (Some(9), false)),
    ];
    for (field, change) in changes {
        let (mut world, id, _) = used();
        change(world.jobs.get_mut(&id).expect("a job"));
        let found = first(&world).unwrap_or_else(|| panic!("{field} is not found"));
        assert_eq!(found, (format!("JOB:{id}"), field.to_owned()));
    }
}

#[test]
fn a_task_that_was_changed_is_named() {
    let changes: [(&str, &str, Change<Node>); 10] = [
        ("done", "phase", |kept| kept.phase = Phase::Ready),
        ("bad", "phase", |kept| kept.phase = Phase::Completed),
        ("next", "phase", |kept| kept.phase = Phase::Failed),
        ("blocked", "phase", |kept| kept.phase = Phase::Ready),
        ("slow", "execution", |kept| kept.execution = None),
        ("bad", "generation", |kept| kept.generation = 1),
        ("done", "output", |kept| kept.output = Some(Payload::Inline(json!({"rows": 4})))),
        ("blocked", "marked", |kept| kept.marked = true),
        ("blocked", "open_parents", |kept| kept.open_parents = 0),
        ("slow", "depends_on", |kept| (kept.depends_on, kept.looked) = (Vec::new(), 0)),
    ];
    for (task, field, change) in changes {
        let (mut world, id, _) = used();
        let place = world.task(id, task).expect("a task").place;
        change(world.nodes.get_mut(&(id, place)).expect("a task"));
        let found = first(&world).unwrap_or_else(|| panic!("{task}.{field} is not found"));
        assert_eq!(found, (format!("JOB:{id}"), format!("tasks.{task}.{field}")));
    }
    let (mut world, id, _) = used();
    world.nodes.retain(|_, node| node.task.as_str() != "next");
    assert_eq!(first(&world), Some((format!("JOB:{id}"), "tasks.next".to_owned())));
}

#[test]
fn a_changed_task_that_was_altered_is_named() {
    let changes: [Change<Node>; 4] = [
        |kept| kept.revision = None,
        |kept| kept.revision.as_mut().expect("revised").spec.command = "curl evil".into(),
        |kept| kept.revision.as_mut().expect("revised").generation += 1,
        |kept| kept.revision.as_mut().expect("revised").spec.retries += 1,
    ];
    let revised = || {
        let (mut world, id, _) = used();
        let change = revise(&world, id, &[("blocked", "make check")]);
        job_of(world.play(change));
        assert_eq!(first(&world), None);
        (world, id)
    };
    for change in changes {
        let (mut world, id) = revised();
        let place = world.task(id, "blocked").expect("a task").place;
        change(world.nodes.get_mut(&(id, place)).expect("a task"));
        assert_eq!(first(&world), Some((format!("JOB:{id}"), "tasks.blocked.revision".to_owned())));
    }
    let (mut world, id) = revised();
    let other = world.task(id, "blocked").expect("a task").revision.clone();
    let place = world.task(id, "next").expect("a task").place;
    world.nodes.get_mut(&(id, place)).expect("a task").revision = other;
    assert_eq!(first(&world), Some((format!("JOB:{id}"), "tasks.next.revision".to_owned())));
}

#[test]
fn what_never_may_happen_is_found_in_the_events() {
    let (mut world, id, _) = used();
    // The child's first event stands before its parent's end.
    let child = world.task(id, "slow").and_then(|node| node.execution).expect("an execution");
    let at = world.events.iter().position(|event| event.entity == Entity::task(child)).expect("an event");
    let event = world.events.remove(at);
    world.events.insert(1, event);
    assert_eq!(first(&world), Some((format!("JOB:{id}"), "tasks.slow.execution".to_owned())));
    for kind in [EventType::JobFailureDetected, EventType::JobCreated] {
        let (mut world, id, _) = used();
        let event = world.events.iter().find(|event| event.entity == Entity::job(id) && event.kind == kind).expect("one").clone();
        world.events.push(event);
        assert_eq!(first(&world), Some((format!("JOB:{id}"), "events".to_owned())), "{kind:?}");
    }
    let (mut world, id, _) = used();
    let twice = world.task(id, "done").and_then(|node| node.execution).expect("an execution");
    let mut again = world.get(twice).clone();
    again.id = ExecutionId::from_bytes([0xee; 16]);
    let events: Vec<_> = world.events_of(twice).into_iter().cloned().collect();
    world.events.extend(events.into_iter().map(|mut event| {
        crate::digest::strip(&mut event.properties);
        Event { entity: Entity::task(again.id), ..event }
    }));
    world.executions.insert(again.id, again);
    assert_eq!(first(&world), Some((format!("JOB:{id}"), "tasks.done".to_owned())));
}
