//! Jobs that are larger than a step: written in parts, moved in several steps, forgotten in parts.

use super::job::{BATCH, add, advance, begin_all, finish, job, job_of, open, phase, status, task};
use super::world::{World, exit, fence_of};
use crate::command::{Answer, Command, OpenJob, StageTasks};
use crate::id::JobId;
use crate::job::{Counts, Job, JobStatus, Node, Payload, Phase};

/// Writes a large job as it comes: in parts, then opened.
pub fn open_large(world: &mut World, nodes: &[Node], mut begins: Job) -> JobId {
    let id = begins.id;
    let nodes: Vec<_> = nodes.iter().map(|node| Node { job: id, ..node.clone() }).collect();
    for (part, nodes) in nodes.chunks(100).enumerate() {
        let begins = (part == 0).then(|| Box::new(begins.clone()));
        let stage = Command::StageTasks(StageTasks { job: id, begins, nodes: nodes.to_vec() });
        assert_eq!(world.play(stage.clone()), Answer::Unchanged);
        assert_eq!(world.play(stage), Answer::Unchanged, "a repeat is no change");
    }
    assert_eq!((status(world, id), world.executions.len()), (JobStatus::Staged, 0), "nothing of it may run yet");
    begins.counts.total = u32::try_from(nodes.len()).expect("few");
    let told = Payload::Blob { key: "b".into(), bytes: 5 };
    job_of(world.play(Command::OpenJob(Box::new(OpenJob { job: begins, nodes: Vec::new(), told, digest: None, key: None }))));
    id
}

#[test]
fn a_fan_out_of_five_hundred_takes_several_steps_and_loses_nobody() {
    let mut world = World::new();
    let job = job(&mut world, 502);
    let names: Vec<_> = (0..500).map(|n| format!("w{n}")).collect();
    let mut nodes = vec![task(job.id, "root", &[], BATCH)];
    nodes.extend(names.iter().map(|name| task(job.id, name, &["root"], BATCH)));
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    nodes.push(task(job.id, "end", &all, BATCH));
    let id = open_large(&mut world, &nodes, job);
    assert!(advance(&mut world, id) > 1);
    assert_eq!(world.jobs[&id].counts, Counts { total: 502, waiting: 501, active: 1, ..Counts::default() });
    assert_eq!(world.edges.len(), 1_000);
    finish(&mut world, id, "root", exit(0));
    assert!(advance(&mut world, id) > 1);
    assert_eq!((world.jobs[&id].counts.active, world.executions.len()), (500, 501));
    begin_all(&mut world);
    for name in &names {
        let execution = world.task(id, name).expect("a task").execution.expect("released");
        let fence = fence_of(world.get(execution));
        world.end(fence, exit(0));
    }
    finish(&mut world, id, "end", exit(0));
    assert_eq!((status(&world, id), world.edges.len()), (JobStatus::Completed, 0));
}

#[test]
fn a_parent_that_ends_while_its_child_is_looked_at_is_heard() {
    let mut world = World::new();
    let names: Vec<_> = (0..600).map(|n| format!("p{n}")).collect();
    let job = job(&mut world, 600);
    let nodes: Vec<_> = names.iter().map(|name| task(job.id, name, &[], BATCH)).collect();
    let id = open_large(&mut world, &nodes, job);
    advance(&mut world, id);
    begin_all(&mut world);
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let opened = job_of(add(&mut world, id, &[("child", &all)]));
    assert!(opened.attention && opened.opening.is_some());
    assert!(world.task(id, "child").is_some_and(|node| node.phase == Phase::Staged && node.looked > 0));
    // Some were looked at, some were not; all of them end before the look is over.
    for name in &names {
        let execution = world.task(id, name).expect("a task").execution.expect("released");
        let fence = fence_of(world.get(execution));
        world.end(fence, exit(0));
    }
    advance(&mut world, id);
    assert_eq!(phase(&world, id, "child"), Phase::Active);
    finish(&mut world, id, "child", exit(0));
    assert_eq!((status(&world, id), world.edges.len()), (JobStatus::Completed, 0));
}

#[test]
fn a_staged_job_that_nobody_opens_is_forgotten_a_part_at_a_time() {
    let mut world = World::new();
    let job = job(&mut world, 300);
    let (id, begins) = (job.id, Some(Box::new(job)));
    for part in 0..3 {
        let nodes = (0..100).map(|n| task(id, &format!("t{part}-{n}"), &[], BATCH)).collect();
        world.play(Command::StageTasks(StageTasks { job: id, begins: begins.clone(), nodes }));
    }
    let places: Vec<_> = world.tasks(id).map(|node| node.place).collect();
    assert_eq!(places, (0..300).collect::<Vec<_>>(), "every task has a place of its own");
    world.play(Command::ForgetStaged(id));
    assert_eq!((world.tasks(id).count(), world.jobs.len()), (100, 1));
    world.play(Command::ForgetStaged(id));
    assert_eq!((world.tasks(id).count(), world.jobs.len()), (0, 0));
    let opened = open(&mut world, &[("a", &[])]);
    world.play(Command::ForgetStaged(opened));
    assert_eq!(status(&world, opened), JobStatus::Running, "what was opened stays");
}
