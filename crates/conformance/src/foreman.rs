//! Random steps about jobs: small DAGs, few names, so that they are opened, added to, resumed and cancelled while their tasks run.

use runvoy_model::command::{Command, OpenJob, OpenTasks, StageTasks, SubmitKey};
use runvoy_model::digest;
use runvoy_model::id::JobId;
use runvoy_model::job::{Node, Payload};
use runvoy_model::spec::Spec;
use runvoy_model::time::UnixMs;
use serde_json::json;

use crate::chance::Chance;
use crate::job::{new_job, new_task};

/// A step about a job, which is known or not.
pub(crate) fn command(chance: &mut Chance, id: JobId, is_known: bool, spec: &Spec, now: UnixMs) -> Command {
    match chance.below(12) {
        _ if !is_known && chance.percent(70) => open(chance, id, spec, now),
        0 => open(chance, id, spec, now),
        1..3 => stage(chance, id, spec, now),
        3..6 => add(chance, id, spec),
        6..9 => Command::ResumeJob(id, None),
        9 => Command::AdvanceJob(id),
        10 => Command::ForgetStaged(id),
        _ => Command::CancelJob(id),
    }
}

/// Tasks that wait only for ones before them; the first of them for some that are there already, if they are.
fn tasks(chance: &mut Chance, job: JobId, spec: &Spec, batch: u64, first: usize) -> Vec<Node> {
    let most = if chance.percent(40) { 1 } else { 1 + chance.below(6) };
    let names: Vec<_> = (0..first + most).map(|number| format!("t{number}")).collect();
    let mut nodes = Vec::with_capacity(most);
    for number in first..first + most {
        let mut parents: Vec<&str> =
            (0..chance.below(3).min(number - first)).map(|_| names[first + chance.below(number - first)].as_str()).collect();
        parents.sort_unstable();
        parents.dedup();
        let mut node = new_task(job, &names[number], &parents, batch);
        node.spec = Spec { priority: 1 + u8::try_from(chance.below(5)).expect("small"), ..spec.clone() };
        nodes.push(node);
    }
    nodes
}

fn open(chance: &mut Chance, id: JobId, spec: &Spec, now: UnixMs) -> Command {
    let nodes = tasks(chance, id, spec, u64::MAX - 1, 0);
    let mut job = new_job(id, nodes.len(), now);
    job.created_by = ["ann@x", "bob@x", "carl@x"][chance.below(3)].into();
    job.concurrency = chance.percent(30).then_some(2);
    let key = chance.percent(20).then(|| SubmitKey {
        user: job.created_by.clone(),
        // The same keys as submits have, so that the two meet.
        key: format!("key-{}", chance.below(3)),
        fingerprint: [u8::from(chance.percent(20)); 32],
    });
    let digest = digest_of(&nodes);
    Command::OpenJob(Box::new(OpenJob { job, nodes, told: Payload::Inline(json!(["told"])), digest, key }))
}

fn stage(chance: &mut Chance, id: JobId, spec: &Spec, now: UnixMs) -> Command {
    let (first, batch) = (chance.below(20), chance.number());
    let nodes = tasks(chance, id, spec, batch, first);
    let begins = chance.percent(70).then(|| Box::new(new_job(id, nodes.len(), now)));
    Command::StageTasks(StageTasks { job: id, begins, nodes })
}

fn add(chance: &mut Chance, job: JobId, spec: &Spec) -> Command {
    let (first, batch) = (chance.below(30), chance.number());
    let nodes = tasks(chance, job, spec, batch, first);
    let (tasks, digest) = (u32::try_from(nodes.len()).expect("few"), digest_of(&nodes));
    Command::OpenTasks(OpenTasks { job, batch, tasks, nodes, told: Payload::Inline(json!(["told"])), digest, key: None })
}

/// What the event says that opens these tasks, and all others of their batch.
pub(crate) fn digest_of(nodes: &[Node]) -> Option<[u8; 32]> {
    Some(digest::of_tasks(nodes.iter().map(digest::of_task).collect()))
}
