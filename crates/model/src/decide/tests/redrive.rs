//! How attempts that fail are told, and how what was given up runs again.

use serde_json::json;

use super::cast::{founded, hash, key, prefix, with_key};
use super::job::{advance, begin_all, finish, job_of, open_with, phase, status, task};
use super::refusal;
use super::world::{World, ended, exit, fence_of, name};
use crate::change::{Change, NewWorker};
use crate::command::{Answer, Command, ErrorMark, Fence, OpenTasks, Outcome, Refusal};
use crate::event::EventType;
use crate::id::{ExecutionId, JobId, WorkerAccountId};
use crate::incident::{IncidentKind, name_for};
use crate::job::{JobStatus, Payload, Phase};
use crate::record::{Body, Kind};
use crate::redrive::{Fate, Letter, MOST_REDRIVEN, Redrive};
use crate::retry::{Category, LONGEST_BACKOFF_MS};
use crate::role::Role;
use crate::status::Status;
use crate::worker::WorkerKey;

fn said(category: Category, retry_after_ms: Option<u64>) -> Option<ErrorMark> {
    Some(ErrorMark { category, message: "upstream is away".into(), retry_after_ms })
}

fn fail(world: &mut World, fence: Fence, said: Option<ErrorMark>) {
    let mut end = ended(fence, exit(1));
    end.said = said;
    assert!(matches!(world.play(Command::EndAttempt(end)), Answer::Ended(_)));
}

/// One that used up its one retry.
fn given_up(world: &mut World) -> ExecutionId {
    given_up_for(world, "ann@x")
}

fn given_up_for(world: &mut World, user: &str) -> ExecutionId {
    world.submit_for(user, |spec| spec.retries = 1);
    let first = world.begun();
    fail(world, first, said(Category::Network, None));
    world.now = world.now.plus_ms(600_000);
    let second = world.begun();
    fail(world, second, said(Category::Network, None));
    first.execution
}

fn redrive(world: &mut World, executions: &[ExecutionId]) -> Vec<Fate> {
    let letter = |execution: &ExecutionId| Letter { execution: *execution, again: ExecutionId::from_bytes(world.fresh()) };
    let letters = executions.iter().map(letter).collect();
    match world.play(Command::Redrive(Redrive { letters, settled: Vec::new(), key: None })) {
        Answer::Redriven { letters, .. } => letters.into_iter().map(|letter| letter.fate).collect(),
        other => panic!("not redriven: {other:?}"),
    }
}

fn properties(world: &World, id: ExecutionId, kind: EventType) -> Vec<serde_json::Value> {
    world.events_of(id).into_iter().filter(|event| event.kind == kind).map(|event| event.properties.clone()).collect()
}

#[test]
fn what_a_command_says_goes_before_its_exit_code() {
    let mut world = World::new();
    let fence = world.running(|spec| spec.retries = 2);
    fail(&mut world, fence, said(Category::Auth, None));
    let done = world.get(fence.execution);
    assert_eq!((done.status, done.dead, done.error_category), (Status::Failed, false, Some(Category::Auth)), "not tried again");
    let failed = &properties(&world, fence.execution, EventType::TaskFailed)[0];
    assert_eq!((&failed["source"], &failed["retryCount"], &failed["errorCategory"]), (&"worker".into(), &1.into(), &"auth".into()));
    assert_eq!(failed["error"], "exit code 1: upstream is away");
    assert!(properties(&world, fence.execution, EventType::TaskProcessingFailed).is_empty());
}

#[test]
fn the_wait_that_a_command_asks_for_is_kept_within_bounds() {
    for (asked_ms, least, most) in
        [(None, 500, 1_000), (Some(1), 500, 1_000), (Some(20_000), 20_000, 20_000), (Some(u64::MAX), 300_000, 300_000)]
    {
        let mut world = World::new();
        let fence = world.running(|spec| spec.retries = 1);
        fail(&mut world, fence, said(Category::RateLimit, asked_ms));
        let wait = world.get(fence.execution).ready_at.ms_since(world.now);
        assert!((least..=most).contains(&wait), "{asked_ms:?}: {wait}");
        assert!(wait <= i64::try_from(LONGEST_BACKOFF_MS).expect("small"));
    }
}

#[test]
fn every_attempt_that_could_be_cured_is_told_and_the_last_end_names_the_dead_letters() {
    let mut world = World::new();
    let id = given_up(&mut world);
    let told = properties(&world, id, EventType::TaskProcessingFailed);
    let attempts: Vec<_> = told.iter().map(|told| (told["attemptNumber"].as_u64(), told["errorCategory"].as_str())).collect();
    assert_eq!(attempts, [(Some(1), Some("network")), (Some(2), Some("network"))]);
    assert_eq!(told[1]["error"], "exit code 1: upstream is away");
    let end = &properties(&world, id, EventType::TaskFailed)[0];
    assert_eq!((&end["source"], &end["retryCount"]), (&"dlq".into(), &2.into()));
    assert_eq!(world.get(id).dead_since(), world.get(id).completed_at);
    assert!(world.live(Kind::Incident, &name_for(IncidentKind::Dead, id)).is_some());
}

#[test]
fn a_timeout_at_the_end_says_the_same() {
    let mut world = World::new();
    let first = world.running(|spec| spec.retries = 1);
    world.end(first, Outcome::TimedOut { timeout_ms: 5, forced: false });
    world.now = world.now.plus_ms(600_000);
    let second = world.begun();
    world.end(second, Outcome::TimedOut { timeout_ms: 5, forced: true });
    let end = &properties(&world, first.execution, EventType::TaskTimeout)[0];
    assert_eq!((&end["signal"], &end["source"], &end["errorCategory"]), (&"SIGKILL".into(), &"dlq".into(), &"timeout".into()));
    assert_eq!(properties(&world, first.execution, EventType::TaskProcessingFailed).len(), 2);
}

#[test]
fn what_may_not_run_twice_is_no_dead_letter() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    fail(&mut world, fence, said(Category::Network, None));
    let done = world.get(fence.execution);
    assert_eq!((done.status, done.dead, done.error_category), (Status::Failed, false, Some(Category::Network)));
    assert_eq!(properties(&world, fence.execution, EventType::TaskFailed)[0]["source"], "worker");
    assert!(world.live(Kind::Incident, &name_for(IncidentKind::Dead, fence.execution)).is_none());
    let fates = redrive(&mut world, &[fence.execution]);
    assert!(matches!(&fates[..], [Fate::Refused(why)] if why.contains("not a dead letter")), "{fates:?}");
}

#[test]
fn a_dead_letter_that_runs_again_is_over_for_those_who_were_told() {
    let mut world = World::new();
    let id = given_up(&mut world);
    let fates = redrive(&mut world, &[id]);
    let [Fate::Execution(new)] = fates[..] else { panic!("{fates:?}") };
    let incident = world.live(Kind::Incident, &name_for(IncidentKind::Dead, id)).expect("an incident");
    assert!(matches!(&incident.body, Some(Body::Incident(incident)) if !incident.is_open()));
    assert_eq!((world.get(id).status, world.get(id).dead, world.get(new).status), (Status::Failed, false, Status::Pending));
    // It dies again: that is another dead letter, of the new one.
    for _ in 0..2 {
        let fence = world.begun();
        fail(&mut world, fence, said(Category::Network, None));
        world.now = world.now.plus_ms(600_000);
    }
    assert!(world.get(new).dead && !world.get(id).dead);
    assert_eq!(redrive(&mut world, &[id]), [Fate::Execution(new)]);
}

#[test]
fn a_step_takes_no_more_than_it_can_write() {
    let mut world = World::new();
    let many: Vec<_> = (0..MOST_REDRIVEN).map(|_| given_up(&mut world)).collect();
    assert!(redrive(&mut world, &many).iter().all(|fate| matches!(fate, Fate::Execution(_))));
    let letters = vec![Letter { execution: many[0], again: many[1] }; MOST_REDRIVEN + 1];
    let answer = world.play(Command::Redrive(Redrive { letters, settled: Vec::new(), key: None }));
    assert!(matches!(refusal(answer), Refusal::TooMany(_)));
}

/// A job in which these tasks were given up and the others failed for good.
fn failed_job(world: &mut World, dead: &[&str], failed: &[&str]) -> (JobId, Vec<ExecutionId>) {
    let tasks: Vec<(&str, &[&str])> = dead.iter().chain(failed).map(|task| (*task, &[][..])).collect();
    let id = open_with(world, &tasks, |_, nodes| nodes.iter_mut().for_each(|node| node.spec.retries = 2));
    for task in dead {
        for _ in 0..3 {
            finish(world, id, task, exit(69));
            world.now = world.now.plus_ms(600_000);
        }
    }
    failed.iter().for_each(|task| finish(world, id, task, exit(64)));
    let executions = dead.iter().map(|task| world.task(id, task).and_then(|node| node.execution).expect("an execution")).collect();
    (id, executions)
}

#[test]
fn a_job_that_is_being_resumed_is_left_alone() {
    let mut world = World::new();
    let (id, dead) = failed_job(&mut world, &["a"], &["b"]);
    world.jobs.get_mut(&id).expect("a job").resuming = true;
    let fates = redrive(&mut world, &dead);
    assert!(matches!(&fates[..], [Fate::Refused(why)] if why.contains("try again")), "{fates:?}");
    assert!(world.get(dead[0]).dead);
}

#[test]
fn a_task_that_fails_again_is_told_once_more_and_can_run_again_once_more() {
    let mut world = World::new();
    let (id, dead) = failed_job(&mut world, &["a"], &["b"]);
    assert_eq!(status(&world, id), JobStatus::Failed);
    let told = |world: &World| {
        let of_job = world.events.iter().filter(|event| event.entity == crate::event::Entity::job(id));
        of_job.filter(|event| event.kind == EventType::JobFailureDetected).count()
    };
    assert_eq!(told(&world), 1);
    redrive(&mut world, &dead);
    job_of(world.play(Command::AdvanceJob(id)));
    let stands = (status(&world, id), phase(&world, id, "a"), phase(&world, id, "b"));
    assert_eq!(stands, (JobStatus::Running, Phase::Active, Phase::Failed));
    for _ in 0..3 {
        finish(&mut world, id, "a", exit(69));
        world.now = world.now.plus_ms(600_000);
    }
    assert_eq!((status(&world, id), told(&world)), (JobStatus::Failed, 2));
    let again = world.task(id, "a").and_then(|node| node.execution).expect("an execution");
    assert!(again != dead[0] && world.get(again).dead && world.get(again).spec.queue == name("default"));
    assert_eq!(redrive(&mut world, &[again]), [Fate::Job(id)]);
}

/// Whether people are still to be told of it.
fn is_open_incident(world: &World, id: ExecutionId) -> bool {
    let record = world.live(Kind::Incident, &name_for(IncidentKind::Dead, id));
    matches!(record.and_then(|record| record.body.as_ref()), Some(Body::Incident(incident)) if incident.is_open())
}

fn dead_letters(world: &World) -> Vec<ExecutionId> {
    world.executions.values().filter(|execution| execution.dead).map(|execution| execution.id).collect()
}

/// A job of more tasks than one step buries, each of which was given up.
fn large_failed_job(world: &mut World) -> JobId {
    let names: Vec<String> = (0..130).map(|number| format!("t{number}")).collect();
    let (first, rest) = names.split_at(90);
    let tasks: Vec<(&str, &[&str])> = first.iter().map(|task| (task.as_str(), &[][..])).collect();
    let id = open_with(world, &tasks, |_, nodes| nodes.iter_mut().for_each(|node| node.spec.retries = 1));
    advance(world, id);
    let mut nodes: Vec<_> = rest.iter().map(|name| task(id, name, &[], 7)).collect();
    nodes.iter_mut().for_each(|node| node.spec.retries = 1);
    let tasks = u32::try_from(nodes.len()).expect("few");
    job_of(world.play(Command::OpenTasks(OpenTasks {
        job: id,
        batch: 7,
        tasks,
        nodes,
        told: Payload::Inline(json!([])),
        digest: None,
        key: None,
    })));
    advance(world, id);
    for _ in 0..2 {
        names.iter().for_each(|task| finish(world, id, task, exit(69)));
        world.now = world.now.plus_ms(600_000);
    }
    id
}

#[test]
fn what_was_given_up_in_a_cancelled_job_is_buried_part_by_part() {
    let mut world = World::new();
    let id = large_failed_job(&mut world);
    let given_up = dead_letters(&world);
    assert_eq!((given_up.len(), world.jobs[&id].needs_attention()), (130, false));
    let cancelled = job_of(world.play(Command::CancelJob(id)));
    let left = dead_letters(&world);
    assert!(!left.is_empty() && left.len() < given_up.len(), "{}", left.len());
    assert!(cancelled.needs_attention(), "somebody goes on");
    // Whoever comes before that agent hears that there is nothing to run.
    let fates = redrive(&mut world, &left[..1]);
    assert!(matches!(&fates[..], [Fate::Dropped(why)] if why.contains("is cancelled")), "{fates:?}");
    let mut steps = 0;
    while world.jobs[&id].needs_attention() {
        job_of(world.play(Command::AdvanceJob(id)));
        steps += 1;
        assert!(steps < 10, "it never ends");
    }
    assert_eq!((dead_letters(&world), status(&world, id)), (Vec::new(), JobStatus::Cancelled));
    assert!(given_up.iter().all(|execution| !is_open_incident(&world, *execution)));
    let version = world.jobs[&id].version;
    assert_eq!(job_of(world.play(Command::AdvanceJob(id))).version, version, "there is nothing more to do");
}

#[test]
fn what_ends_after_its_job_was_cancelled_is_no_dead_letter() {
    let mut world = World::new();
    let id = open_with(&mut world, &[("a", &[])], |_, nodes| nodes[0].spec.retries = 1);
    finish(&mut world, id, "a", exit(69));
    world.now = world.now.plus_ms(600_000);
    begin_all(&mut world);
    let execution = world.task(id, "a").and_then(|node| node.execution).expect("an execution");
    job_of(world.play(Command::CancelJob(id)));
    let last = fence_of(world.get(execution));
    fail(&mut world, last, said(Category::Network, None));
    let end = world.get(execution);
    assert_eq!((end.status, end.dead, is_open_incident(&world, execution)), (Status::Failed, false, false));
    assert_eq!(properties(&world, execution, EventType::TaskFailed)[0]["source"], "dlq", "its retries were used up");
    assert!(!world.jobs[&id].needs_attention());
}

#[test]
fn a_dead_letter_whose_task_went_on_without_it_is_dropped() {
    let mut world = World::new();
    let (id, dead) = failed_job(&mut world, &["a"], &["b"]);
    let place = world.task(id, "a").expect("a task").place;
    world.nodes.get_mut(&(id, place)).expect("a task").execution = Some(ExecutionId::from_bytes([9; 16]));
    let fates = redrive(&mut world, &dead);
    assert!(matches!(&fates[..], [Fate::Dropped(why)] if why.contains("task a") && why.contains("without it")), "{fates:?}");
    assert_eq!((world.get(dead[0]).dead, is_open_incident(&world, dead[0])), (false, false));
    assert_eq!((phase(&world, id, "a"), world.jobs[&id].generation), (Phase::Failed, 1), "its job stays as it is");
    assert!(matches!(&redrive(&mut world, &dead)[..], [Fate::Refused(_)]), "that is said once");
}

#[test]
fn nothing_runs_again_for_an_owner_who_may_not_run_it() {
    let mut world = founded();
    world.changed(with_key("ann@x", Role::Developer, key(2)));
    let plain = given_up(&mut world);
    let (id, dead) = failed_job(&mut world, &["a"], &["b"]);
    let both = [plain, dead[0]];
    let refused = |world: &mut World, why: &str| {
        let fates = redrive(world, &both);
        let says = |fate: &Fate| matches!(fate, Fate::Refused(said) if said.contains("ann@x") && said.contains(why));
        assert!(fates.len() == 2 && fates.iter().all(says), "{fates:?}");
        assert!(both.iter().all(|execution| world.get(*execution).dead), "it may once more some day");
    };
    world.changed(Change::RevokeUser("ann@x".into()));
    refused(&mut world, "was revoked");
    world.changed(with_key("ann@x", Role::Viewer, key(3)));
    refused(&mut world, "is viewer");
    world.changed(Change::SetRole("ann@x".into(), Role::Developer));
    assert!(matches!(&redrive(&mut world, &both)[..], [Fate::Execution(_), Fate::Job(job)] if *job == id));
}

#[test]
fn nothing_runs_again_for_a_registered_key_that_was_revoked() {
    let mut world = founded();
    let key = WorkerKey::Secret { hash: hash(20), prefix: prefix(20) };
    let id = WorkerAccountId::from_bytes([9; 16]);
    world.changed(Change::CreateWorker(Box::new(NewWorker {
        name: name("one"),
        id,
        role: Role::Developer,
        may_submit: false,
        queues: Vec::new(),
        key,
        description: None,
    })));
    let dead = given_up_for(&mut world, "worker:one");
    world.changed(Change::RevokeWorker(name("one")));
    let fates = redrive(&mut world, &[dead]);
    assert!(matches!(&fates[..], [Fate::Refused(why)] if why.contains("worker:one was revoked")), "{fates:?}");
}
