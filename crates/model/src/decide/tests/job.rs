//! Jobs, one behaviour after the other: who is released when, what a failure stops, and what one step may do.

use serde_json::json;

use super::refusal;
use super::world::{World, exit, fence_of, name, spec, worker};
use crate::command::{Answer, Command, Fence, Kill, LeaseRequest, OpenJob, OpenTasks, Outcome, Refusal, ReviseJob, ReviseTask, StageTasks};
use crate::event::{Entity, Event, EventType};
use crate::execution::LockClaim;
use crate::id::{JobId, LeaseId};
use crate::job::{Counts, Job, JobStatus, MOST_TASKS, Node, Payload, Phase};
use crate::record::Kind;
use crate::spec::Spec;
use crate::status::Status;

pub const BATCH: u64 = u64::MAX - 7;

/// A task as somebody submits it.
pub fn task(job: JobId, task: &str, depends_on: &[&str], batch: u64) -> Node {
    Node {
        job,
        task: name(task),
        place: 0,
        batch,
        name: format!("Task {task}"),
        depends_on: depends_on.iter().map(|parent| name(parent)).collect(),
        input: None,
        spec: spec(),
        revision: None,
        phase: Phase::Staged,
        looked: 0,
        open_parents: 0,
        marked: false,
        generation: 0,
        execution: None,
        output: None,
    }
}

/// A job as somebody submits it.
pub fn job(world: &mut World, tasks: usize) -> Job {
    Job {
        id: JobId::from_bytes(world.fresh()),
        name: None,
        request_key: None,
        created_by: "ann@x".into(),
        created_by_request_id: String::new(),
        modified_by_request_id: String::new(),
        created_at: world.now,
        status: JobStatus::Running,
        completed_at: None,
        cancelled_by: None,
        concurrency: None,
        generation: 1,
        opening: Some(BATCH),
        resuming: false,
        counts: Counts { total: u32::try_from(tasks).expect("few"), ..Counts::default() },
        places: 0,
        failure_told: false,
        failed_task: None,
        attention: false,
        unburied: None,
        chain: Default::default(),
        version: 0,
    }
}

pub fn job_of(answer: Answer) -> Job {
    match answer {
        Answer::Job { job, .. } => *job,
        other => panic!("no job: {other:?}"),
    }
}

pub type Tasks<'a> = &'a [(&'a str, &'a [&'a str])];

/// Opens a job in one step.
pub fn open_with(world: &mut World, tasks: Tasks<'_>, change: impl FnOnce(&mut Job, &mut Vec<Node>)) -> JobId {
    let mut job = job(world, tasks.len());
    let id = job.id;
    let mut nodes = tasks.iter().map(|(name, parents)| task(id, name, parents, BATCH)).collect();
    change(&mut job, &mut nodes);
    let told = Payload::Inline(json!(tasks.iter().map(|(name, _)| name).collect::<Vec<_>>()));
    job_of(world.play(Command::OpenJob(Box::new(OpenJob { job, nodes, told, digest: None, key: None }))));
    id
}

pub fn open(world: &mut World, tasks: Tasks<'_>) -> JobId {
    open_with(world, tasks, |_, _| ())
}

pub fn add(world: &mut World, id: JobId, tasks: Tasks<'_>) -> Answer {
    let batch = u64::from_be_bytes(world.fresh()[8..].try_into().expect("eight bytes"));
    let nodes: Vec<_> = tasks.iter().map(|(name, parents)| task(id, name, parents, batch)).collect();
    let told = Payload::Inline(json!([]));
    world.play(Command::OpenTasks(OpenTasks {
        job: id,
        batch,
        tasks: u32::try_from(nodes.len()).expect("few"),
        nodes,
        told,
        digest: None,
        key: None,
    }))
}

/// Leases and begins whatever can be.
pub fn begin_all(world: &mut World) {
    let can_begin = |world: &World| world.executions.values().any(|one| one.ready_key().is_some_and(|key| key.ready_at <= world.now));
    while can_begin(world) && lease(world, 100) > 0 {}
}

/// Leases and begins up to so many; gives how many there were.
fn lease(world: &mut World, most: usize) -> usize {
    let leases = (0..most).map(|_| LeaseId::from_bytes(world.fresh())).collect();
    let request =
        LeaseRequest { worker: worker(1), queues: vec![name("default")], leases, ttl_ms: 30_000, begin: true, lost_after_ms: None };
    match world.play(Command::Lease(request)) {
        Answer::Leased(leased) => leased.len(),
        other => panic!("nothing is leased: {other:?}"),
    }
}

fn fence(world: &mut World, id: JobId, task: &str) -> Fence {
    begin_all(world);
    let execution = world.task(id, task).expect("a task").execution.expect("it was released");
    fence_of(world.get(execution))
}

/// Ends a task that was released.
pub fn finish(world: &mut World, id: JobId, task: &str, outcome: Outcome) {
    let fence = fence(world, id, task);
    assert!(matches!(world.end(fence, outcome), Answer::Ended(_)));
}

pub fn phase(world: &World, id: JobId, task: &str) -> Phase {
    world.task(id, task).expect("a task").phase
}

fn phases(world: &World, id: JobId) -> Vec<Phase> {
    world.tasks(id).map(|node| node.phase).collect()
}

pub fn status(world: &World, id: JobId) -> JobStatus {
    world.jobs[&id].status
}

/// Goes on until nothing is left to do; tells how many steps that took.
pub fn advance(world: &mut World, id: JobId) -> usize {
    let mut steps = 0;
    while world.jobs[&id].attention {
        steps += 1;
        assert!(steps < 1_000, "it never ends");
        job_of(world.play(Command::AdvanceJob(id)));
    }
    steps
}

fn kinds(world: &World, id: JobId) -> Vec<EventType> {
    let entity = Entity::job(id);
    world.events.iter().filter(|event| event.entity == entity && event.kind != EventType::Audit).map(|event| event.kind).collect()
}

#[test]
fn a_job_with_one_task_runs_and_is_completed() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[])]);
    assert_eq!((status(&world, id), phase(&world, id, "a")), (JobStatus::Running, Phase::Active));
    let fence = fence(&mut world, id, "a");
    let execution = world.get(fence.execution).clone();
    let task = execution.spec.task.clone().expect("it is a task");
    assert_eq!((task.job, task.task.as_str(), task.generation, execution.created_by.as_str()), (id, "a", 1, "ann@x"));
    let mut ended = super::ended(fence, exit(0));
    ended.output = Some(Payload::Inline(json!({"rows": 3, "usage": {"tokens": 5}})));
    world.play(Command::EndAttempt(ended));
    let job = &world.jobs[&id];
    assert_eq!((job.status, job.completed_at, job.counts.completed), (JobStatus::Completed, Some(world.now), 1));
    assert_eq!(world.task(id, "a").expect("a task").output, Some(Payload::Inline(json!({"rows": 3, "usage": {"tokens": 5}}))));
    assert_eq!(kinds(&world, id), [EventType::JobCreated, EventType::JobCompleted]);
    let completed = world.events.last().expect("events");
    assert_eq!(completed.properties["taskStatuses"], json!({"a": "completed"}));
}

#[test]
fn what_of_an_output_could_not_be_used_is_told_by_the_event() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[])]);
    let mut ended = super::ended(fence(&mut world, id, "a"), exit(0));
    ended.remark = Some("it is not JSON".to_owned());
    world.play(Command::EndAttempt(ended));
    let completed = world.events.iter().find(|event| event.kind == EventType::TaskCompleted).expect("its end");
    assert_eq!(completed.properties["remark"], "it is not JSON");
}

#[test]
fn a_fan_out_begins_when_its_parent_is_done() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])]);
    assert_eq!(phases(&world, id), [Phase::Active, Phase::Waiting, Phase::Waiting, Phase::Waiting]);
    finish(&mut world, id, "a", exit(0));
    assert_eq!(phases(&world, id), [Phase::Completed, Phase::Active, Phase::Active, Phase::Waiting]);
    assert!(world.edges.iter().all(|(_, parent, _)| parent.as_str() != "a"), "who was told is told once");
}

#[test]
fn a_fan_in_is_released_once_by_its_last_parent() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[]), ("b", &[]), ("c", &["a", "b"])]);
    finish(&mut world, id, "a", exit(0));
    assert_eq!(phase(&world, id, "c"), Phase::Waiting);
    finish(&mut world, id, "b", exit(0));
    assert_eq!(phase(&world, id, "c"), Phase::Active);
    assert_eq!(world.executions.len(), 3);
    finish(&mut world, id, "c", exit(0));
    assert_eq!((status(&world, id), world.edges.len()), (JobStatus::Completed, 0));
}

#[test]
fn a_failure_stops_what_depends_on_it_and_nothing_else() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[]), ("b", &[]), ("a2", &["a"]), ("b2", &["b"]), ("c", &["a2", "b2"])]);
    finish(&mut world, id, "a", exit(64));
    assert_eq!(status(&world, id), JobStatus::Running);
    finish(&mut world, id, "b", exit(0));
    finish(&mut world, id, "b2", exit(0));
    assert_eq!(phases(&world, id), [Phase::Failed, Phase::Completed, Phase::Waiting, Phase::Completed, Phase::Waiting]);
    assert_eq!(status(&world, id), JobStatus::Failed);
    assert_eq!(kinds(&world, id), [EventType::JobCreated, EventType::JobFailureDetected], "and once");
    let told = world.events.iter().find(|event| event.kind == EventType::JobFailureDetected).expect("told");
    assert_eq!(told.properties["failedTaskId"], "a");
    let statuses = json!({"a": "failed", "b": "processing", "a2": null, "b2": null, "c": null});
    assert_eq!(told.properties["taskStatuses"], statuses);
}

#[test]
fn a_resume_begins_a_generation_and_runs_only_what_did_not_complete() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    finish(&mut world, id, "a", exit(0));
    finish(&mut world, id, "b", exit(64));
    assert_eq!(status(&world, id), JobStatus::Failed);
    let first = world.task(id, "b").expect("a task").execution;
    let job = job_of(world.play(Command::ResumeJob(id, None)));
    assert_eq!((job.status, job.generation, job.counts.active), (JobStatus::Running, 2, 1));
    assert_ne!(world.task(id, "b").expect("a task").execution, first, "another execution");
    finish(&mut world, id, "b", exit(65));
    assert_eq!(kinds(&world, id).iter().filter(|kind| **kind == EventType::JobFailureDetected).count(), 2, "once for each generation");
    job_of(world.play(Command::ResumeJob(id, None)));
    finish(&mut world, id, "b", exit(0));
    finish(&mut world, id, "c", exit(0));
    assert_eq!(status(&world, id), JobStatus::Completed);
    assert_eq!(world.executions.len(), 5);
    assert_eq!(refusal(world.play(Command::ResumeJob(id, None))), Refusal::JobClosed(id, JobStatus::Completed));
}

/// A resume that changes the commands of tasks.
pub fn revise(world: &World, id: JobId, tasks: &[(&str, &str)]) -> Command {
    let revised = |(task, command): &(&str, &str)| {
        let was = world.task(id, task).map_or_else(spec, |node| node.runs().clone());
        let spec = Spec { command: (*command).to_owned(), ..was.clone() };
        ReviseTask { task: name(task), was, spec, told: json!({"taskId": task, "to": {"command": command}}) }
    };
    Command::ReviseJob(Box::new(ReviseJob { job: id, tasks: tasks.iter().map(revised).collect(), key: None }))
}

#[test]
fn a_resume_changes_failed_and_waiting_tasks_and_keeps_the_original() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[]), ("b", &["a"]), ("c", &["a"])]);
    finish(&mut world, id, "a", exit(64));
    let change = revise(&world, id, &[("a", "make -j1"), ("b", "make check")]);
    job_of(world.play(change));
    let revised = |world: &World, task: &str| world.task(id, task).expect("a task").clone();
    let first = revised(&world, "a");
    assert_eq!((first.spec.command.clone(), first.runs().command.clone()), (spec().command, "make -j1".to_owned()));
    let execution = world.get(first.execution.expect("released"));
    assert_eq!(execution.spec.command, "make -j1", "the first step after the resume released it");
    finish(&mut world, id, "a", exit(0));
    for task in ["b", "c"] {
        let execution = world.get(revised(&world, task).execution.expect("released")).spec.command.clone();
        assert_eq!(execution, revised(&world, task).runs().command.clone());
        finish(&mut world, id, task, exit(0));
    }
    assert_eq!(revised(&world, "b").runs().command.clone(), "make check");
    assert!(revised(&world, "c").revision.is_none());
    let is_resume = |event: &&Event| event.properties["change"]["generation"] == 2;
    let told = world.events.iter().find(is_resume).expect("the resume is told");
    assert_eq!(told.properties["change"]["revised"][0], json!({"taskId": "a", "to": {"command": "make -j1"}}));
    assert_eq!(super::state::compare(&world).first, None);
}

#[test]
fn a_resume_changes_nothing_that_runs_or_is_done() {
    let mut world = World::new();
    let id = open(&mut world, &[("done", &[]), ("bad", &[]), ("slow", &[])]);
    finish(&mut world, id, "done", exit(0));
    finish(&mut world, id, "bad", exit(64));
    for (task, phase) in [("done", Phase::Completed), ("slow", Phase::Active)] {
        let change = revise(&world, id, &[("bad", "x"), (task, "y")]);
        assert_eq!(refusal(world.play(change)), Refusal::NotRevisable(name(task), phase));
    }
    let change = revise(&world, id, &[("nosuch", "x")]);
    assert_eq!(refusal(world.play(change)), Refusal::Missing(Kind::Task, "nosuch".into()));
    assert!(world.task(id, "bad").expect("a task").revision.is_none(), "a refused resume changes nothing");
    let (change, late) = (revise(&world, id, &[("bad", "x")]), revise(&world, id, &[("bad", "y")]));
    job_of(world.play(change));
    finish(&mut world, id, "bad", exit(64));
    assert_eq!(refusal(world.play(late)), Refusal::Stale(Kind::Task, "bad".into()), "it was made from what the task ran before");
    let again = revise(&world, id, &[("bad", "z")]);
    job_of(world.play(again));
    assert_eq!(world.task(id, "bad").expect("a task").runs().command.clone(), "z");
    assert_eq!(super::state::compare(&world).first, None);
}

#[test]
fn nothing_more_of_a_cancelled_job_begins() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[]), ("b", &["a"])]);
    let fence = fence(&mut world, id, "a");
    let job = job_of(world.play(Command::CancelJob(id)));
    assert_eq!((job.status, job.completed_at), (JobStatus::Cancelled, Some(world.now)));
    world.end(fence, exit(0));
    assert_eq!(phases(&world, id), [Phase::Completed, Phase::Waiting]);
    assert_eq!((status(&world, id), world.executions.len()), (JobStatus::Cancelled, 1));
    for command in [Command::CancelJob(id), Command::ResumeJob(id, None)] {
        assert_eq!(refusal(world.play(command)), Refusal::JobClosed(id, JobStatus::Cancelled));
    }
    assert_eq!(refusal(add(&mut world, id, &[("c", &[])])), Refusal::JobClosed(id, JobStatus::Cancelled));
    assert_eq!(kinds(&world, id), [EventType::JobCreated]);
}

#[test]
fn what_is_added_to_a_done_parent_begins_and_to_a_failed_one_waits() {
    let mut world = World::new();
    let id = open(&mut world, &[("done", &[]), ("failed", &[]), ("slow", &[])]);
    finish(&mut world, id, "done", exit(0));
    finish(&mut world, id, "failed", exit(64));
    let job = job_of(add(&mut world, id, &[("x", &["done"]), ("y", &["failed"]), ("z", &["slow", "x"])]));
    assert_eq!((job.counts.total, job.opening), (6, None));
    assert_eq!(phases(&world, id)[3..], [Phase::Active, Phase::Waiting, Phase::Waiting]);
    finish(&mut world, id, "x", exit(0));
    finish(&mut world, id, "slow", exit(0));
    finish(&mut world, id, "z", exit(0));
    assert_eq!(status(&world, id), JobStatus::Failed);
    job_of(add(&mut world, id, &[("late", &["done", "z"])]));
    assert_eq!((status(&world, id), phase(&world, id, "late")), (JobStatus::Running, Phase::Active), "a failed job goes on");
    job_of(world.play(Command::ResumeJob(id, None)));
    for task in ["late", "failed", "y"] {
        finish(&mut world, id, task, exit(0));
    }
    assert_eq!(status(&world, id), JobStatus::Completed);
    assert_eq!(refusal(add(&mut world, id, &[("x2", &[])])), Refusal::JobClosed(id, JobStatus::Completed));
}

#[test]
fn a_name_is_taken_once() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[])]);
    assert_eq!(refusal(add(&mut world, id, &[("a", &[])])), Refusal::Taken(Kind::Task, "a".into()));
    let again = Job { id, ..job(&mut world, 0) };
    let open = OpenJob { job: again, nodes: Vec::new(), told: Payload::Inline(json!([])), digest: None, key: None };
    assert_eq!(refusal(world.play(Command::OpenJob(Box::new(open)))), Refusal::Taken(Kind::Job, id.to_string()));
}

#[test]
fn no_more_tasks_run_at_once_than_the_job_allows() {
    let mut world = World::new();
    let tasks: [(&str, &[&str]); 4] = [("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])];
    let id = open_with(&mut world, &tasks, |job, _| job.concurrency = Some(2));
    assert_eq!(phases(&world, id), [Phase::Active, Phase::Active, Phase::Ready, Phase::Ready]);
    assert!(!world.jobs[&id].attention, "nobody can do more now");
    finish(&mut world, id, "b", exit(64));
    assert_eq!(phases(&world, id), [Phase::Active, Phase::Failed, Phase::Active, Phase::Ready]);
}

#[test]
fn tasks_released_in_one_step_stand_in_line_for_their_lock() {
    let mut world = World::new();
    let tasks: [(&str, &[&str]); 3] = [("a", &[]), ("b", &[]), ("c", &[])];
    let id = open_with(&mut world, &tasks, |_, nodes| nodes.iter_mut().for_each(|node| node.spec.lock = Some(name("prod"))));
    let claims = |world: &World| -> Vec<LockClaim> {
        let executions = world.tasks(id).filter_map(|node| node.execution);
        executions.map(|execution| world.get(execution).lock).collect()
    };
    assert_eq!(claims(&world).iter().filter(|claim| matches!(claim, LockClaim::Held { .. })).count(), 1);
    for ended in 1..=3 {
        begin_all(&mut world);
        let running = world.executions.values().find(|one| one.status == Status::Running).expect("one runs");
        let fence = fence_of(running);
        world.end(fence, exit(0));
        let left = claims(&world).iter().filter(|claim| !claim.is_none()).count();
        assert_eq!(left, 3 - ended);
    }
    assert_eq!(status(&world, id), JobStatus::Completed);
}

#[test]
fn a_task_has_failed_when_its_retries_are_used_up() {
    let mut world = World::new();
    let id = open_with(&mut world, &[("a", &[]), ("b", &["a"])], |_, nodes| {
        (nodes[0].spec.retries, nodes[0].name) = (1, "Fetch it".to_owned());
    });
    finish(&mut world, id, "a", exit(69));
    let names: Vec<_> =
        world.events.iter().filter(|event| event.kind == EventType::TaskPending).map(|event| &event.properties["name"]).collect();
    assert_eq!(names, ["Fetch it", "Fetch it"], "a retry is called the same");
    assert_eq!((phase(&world, id, "a"), world.jobs[&id].counts.active), (Phase::Active, 1));
    world.now = world.now.plus_ms(400_000);
    finish(&mut world, id, "a", exit(69));
    assert_eq!(phases(&world, id), [Phase::Failed, Phase::Waiting]);
    assert_eq!((status(&world, id), world.executions.len()), (JobStatus::Failed, 1));
}

#[test]
fn a_killed_task_counts_as_failed() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[]), ("b", &["a"]), ("c", &[])]);
    let waiting = world.task(id, "a").expect("a task").execution.expect("released");
    world.play(Command::Kill(Kill { execution: waiting, force: false }));
    assert_eq!(phases(&world, id), [Phase::Failed, Phase::Waiting, Phase::Active]);
    let fence = fence(&mut world, id, "c");
    world.play(Command::Kill(Kill { execution: fence.execution, force: false }));
    world.end(fence, Outcome::Signalled { signal: 15, after_kill: true });
    assert_eq!((status(&world, id), world.jobs[&id].counts.failed), (JobStatus::Failed, 2));
}

#[test]
fn a_late_finish_of_an_older_generation_changes_nothing() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[])]);
    let old = fence(&mut world, id, "a");
    world.reap(old);
    assert_eq!(status(&world, id), JobStatus::Failed);
    job_of(world.play(Command::ResumeJob(id, None)));
    assert!(matches!(world.end(old, exit(0)), Answer::Refused(_)));
    assert_eq!(phase(&world, id, "a"), Phase::Active);
}

#[test]
fn tasks_that_two_add_at_once_are_one_s_or_the_other_s_and_never_lost() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[])]);
    for batch in [7, 8] {
        let stage = StageTasks { job: id, begins: None, nodes: vec![task(id, "b", &["a"], batch)] };
        assert_eq!(world.play(Command::StageTasks(stage)), Answer::Unchanged);
    }
    let last = |batch| {
        let nodes = vec![task(id, "c", &["b"], batch)];
        Command::OpenTasks(OpenTasks { job: id, batch, tasks: 2, nodes, told: Payload::Inline(json!([])), digest: None, key: None })
    };
    assert_eq!(refusal(world.play(last(7))), Refusal::Stale(Kind::Job, id.to_string()), "b is the second one's by now");
    assert_eq!(job_of(world.play(last(8))).counts.total, 3);
    for name in ["a", "b", "c"] {
        finish(&mut world, id, name, exit(0));
    }
    assert_eq!(status(&world, id), JobStatus::Completed);
}

#[test]
fn a_job_whose_tasks_were_forgotten_is_not_opened() {
    let mut world = World::new();
    let begins = job(&mut world, 2);
    let id = begins.id;
    let stage = StageTasks { job: id, begins: Some(Box::new(begins.clone())), nodes: vec![task(id, "a", &[], BATCH)] };
    world.play(Command::StageTasks(stage));
    world.play(Command::ForgetStaged(id));
    let nodes = vec![task(id, "b", &["a"], BATCH)];
    let open = OpenJob { job: begins, nodes, told: Payload::Inline(json!([])), digest: None, key: None };
    assert_eq!(refusal(world.play(Command::OpenJob(Box::new(open)))), Refusal::Stale(Kind::Job, id.to_string()));
    assert!(!world.jobs.contains_key(&id));
}

#[test]
fn a_job_has_no_more_tasks_than_it_may_however_they_come() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[])]);
    world.jobs.get_mut(&id).expect("a job").counts.total = u32::try_from(MOST_TASKS).expect("small");
    assert!(matches!(refusal(add(&mut world, id, &[("b", &[])])), Refusal::TooMany(_)));
}

#[test]
fn nothing_of_a_cancelled_job_begins_and_it_keeps_nobody_waiting() {
    let mut world = World::new();
    let names: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
    let tasks: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    let id = open(&mut world, &tasks);
    let other = open(&mut world, &[("a", &[])]);
    job_of(world.play(Command::CancelJob(id)));
    assert_eq!(lease(&mut world, 1), 1, "the other job is behind them in line");
    assert_eq!(world.get(world.task(other, "a").expect("a task").execution.expect("released")).status, Status::Running);
    assert_eq!(lease(&mut world, 5), 0);
    assert!(world.tasks(id).filter_map(|node| node.execution).all(|one| world.get(one).status == Status::Pending));
}

#[test]
fn taking_a_lock_by_force_answers_with_that_lock() {
    let mut world = World::new();
    let id = open_with(&mut world, &[("a", &[]), ("b", &[])], |job, nodes| {
        job.concurrency = Some(1);
        (nodes[0].spec.lock, nodes[1].spec.lock) = (Some(name("one")), Some(name("two")));
    });
    assert_eq!(phases(&world, id), [Phase::Active, Phase::Ready]);
    let answer = world.play(Command::ReleaseLock(name("one")));
    assert!(matches!(&answer, Answer::Lock(lock) if lock.name == name("one") && lock.holder.is_none()), "{answer:?}");
}
