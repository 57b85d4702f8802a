//! Tasks of which nobody knows any more what they were to run: they fail without having run, and their job goes on without them.

use super::job::{advance, finish, open, open_with, phase, status};
use super::state::compare;
use super::world::{World, exit};
use crate::command::{Answer, Command};
use crate::event::{Entity, EventType};
use crate::id::{ExecutionId, JobId};
use crate::job::{JobStatus, Phase};
use crate::redrive::{Fate, Letter, Redrive};
use crate::status::{EndCode, Status};

fn execution_of(world: &World, id: JobId, task: &str) -> ExecutionId {
    world.task(id, task).expect("a task").execution.expect("it was released")
}

#[test]
fn a_task_whose_spec_is_lost_fails_at_once_and_takes_nobodys_place() {
    let mut world = World::new();
    let id = open_with(&mut world, &[("a", &[]), ("b", &["a"]), ("c", &[])], |job, nodes| {
        job.concurrency = Some(1);
        nodes[0].spec.command.clear();
    });
    advance(&mut world, id);
    assert_eq!([phase(&world, id, "a"), phase(&world, id, "b"), phase(&world, id, "c")], [Phase::Failed, Phase::Waiting, Phase::Active]);
    let lost = world.get(execution_of(&world, id, "a"));
    assert_eq!((lost.status, lost.end_reason.as_ref().map(|reason| reason.code)), (Status::Failed, Some(EndCode::StartFailed)));
    assert_eq!(world.kinds(lost.id), [EventType::TaskPending, EventType::TaskFailed]);
    assert!(lost.ready_key().is_none(), "nobody leases it");
    let told = world.events.iter().filter(|event| event.entity == Entity::job(id) && event.kind == EventType::JobFailureDetected);
    assert_eq!(told.count(), 1);
    assert!(compare(&world).agrees(), "{:?}", compare(&world));
    finish(&mut world, id, "c", exit(0));
    assert_eq!(status(&world, id), JobStatus::Failed);
}

#[test]
fn a_dead_letter_whose_task_is_lost_too_is_dropped_and_a_resume_of_its_job_ends() {
    let mut world = World::new();
    let id = open(&mut world, &[("a", &[])]);
    let lost = execution_of(&world, id, "a");
    world.executions.get_mut(&lost).expect("released").spec.command.clear();
    world.nodes.get_mut(&(id, 0)).expect("a task").spec.command.clear();
    assert!(matches!(world.play(Command::GiveUp(lost, "no blob".into())), Answer::Ended(_)));
    assert_eq!((status(&world, id), world.get(lost).dead), (JobStatus::Failed, true));
    let letter = Letter { execution: lost, again: ExecutionId::from_bytes(world.fresh()) };
    let answer = world.play(Command::Redrive(Redrive { letters: vec![letter], settled: Vec::new(), key: None }));
    let Answer::Redriven { letters, .. } = answer else { panic!("not redriven: {answer:?}") };
    assert!(matches!(&letters[0].fate, Fate::Dropped(why) if why.contains("submit it again")), "{letters:?}");
    assert_eq!((world.get(lost).dead, phase(&world, id, "a")), (false, Phase::Failed));
    world.play(Command::ResumeJob(id, None));
    advance(&mut world, id);
    assert_eq!((status(&world, id), phase(&world, id, "a")), (JobStatus::Failed, Phase::Failed));
    assert_ne!(execution_of(&world, id, "a"), lost, "the resume is seen");
    assert!(compare(&world).agrees(), "{:?}", compare(&world));
}
