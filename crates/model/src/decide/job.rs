//! What can be asked of a job. Whatever moves in it is moved by one function, [`Board::advance`], up to a bound per step; a step that could not do
//! all of it leaves the job's attention mark and an agent goes on. So a task that ends releases its children in the same commit, a job of twenty
//! thousand tasks never makes a long step, and a crash between two steps loses nothing: the mark is part of the record.
//!
//! What holds of it: a child is released when its last parent is done, and once; an edge is told once, because telling removes it; a task that
//! joins the graph looks at each parent once, and whoever is not done by then tells it later; `Job Completed` and, for each generation,
//! `Job Failure Detected` are written once; nothing of a cancelled job stays a dead letter: what was one when it was cancelled is buried part by
//! part, and what ends later never becomes one.

mod board;

use serde_json::{Value, json};

use self::board::Board;
use super::{Decision, refuse};
use crate::change::Made;
use crate::command::{Answer, OpenJob, OpenTasks, Refusal, ReviseTask, StageTasks, SubmitKey};
use crate::digest;
use crate::event::EventType;
use crate::execution::Execution;
use crate::hex::hex;
use crate::id::JobId;
use crate::job::{Counts, Job, JobStatus, MOST_TASKS, Node, Payload, Phase, Revision};
use crate::record::Kind;
use crate::status::Status;
use crate::step::Step;
use crate::view::{View, Writes};

pub(super) fn stage<V: View>(view: &mut V, step: &Step, stage: &StageTasks) -> Decision<V::Error> {
    let mut job = match (view.job(stage.job)?, &stage.begins) {
        (None, Some(job)) => Job { status: JobStatus::Staged, places: 0, version: 0, ..(**job).clone() },
        (None, None) => return refuse(Refusal::NotFound),
        (Some(job), _) if job.status == JobStatus::Staged || job.status.is_open() => job,
        (Some(job), _) => return refuse(Refusal::JobClosed(job.id, job.status)),
    };
    let before = (job.version, job.places);
    let looked_at = job.opening.filter(|_| job.status.is_open());
    let nodes = match placed(view, &mut job, looked_at, &stage.nodes)? {
        Ok(nodes) => nodes,
        Err(taken) => return refuse(taken),
    };
    let mut writes = Writes { nodes, ..Writes::default() };
    if before != (job.version, job.places) || job.version == 0 {
        writes.put_job(job, step);
    }
    Ok((writes, Answer::Unchanged))
}

/// Tasks as they are written before they are looked at, each at a place of its own. Those that are not part of the graph yet may be written again;
/// others, and those of the batch that is looked at, have their name for good.
fn placed<V: View>(view: &mut V, job: &mut Job, looked_at: Option<u64>, nodes: &[Node]) -> Result<Result<Vec<Node>, Refusal>, V::Error> {
    let mut written = Vec::with_capacity(nodes.len());
    for node in nodes {
        let place = match view.node(job.id, node.task.as_str())? {
            Some(known) if known.phase != Phase::Staged || looked_at == Some(known.batch) => {
                return Ok(Err(Refusal::Taken(Kind::Task, node.task.to_string())));
            }
            Some(known) => known.place,
            None => {
                job.places += 1;
                job.places - 1
            }
        };
        written.push(Node { job: job.id, place, phase: Phase::Staged, looked: 0, open_parents: 0, marked: false, ..node.clone() });
    }
    Ok(Ok(written))
}

pub(super) fn open<V: View>(view: &mut V, step: &Step, open: &OpenJob) -> Decision<V::Error> {
    if let Some(answer) = repeated(view, open.key.as_ref())? {
        return Ok((Writes::default(), answer));
    }
    let staged = view.job(open.job.id)?;
    if staged.as_ref().is_some_and(|job| job.status != JobStatus::Staged) {
        return refuse(Refusal::Taken(Kind::Job, open.job.id.to_string()));
    }
    let (version, places) = staged.map_or((0, 0), |job| (job.version, job.places));
    let total = open.job.counts.total;
    // What was written before may have been forgotten since.
    if !is_whole(view, open.job.id, open.job.opening, open.nodes.len(), total)? {
        return refuse(Refusal::Stale(Kind::Job, open.job.id.to_string()));
    }
    let counts = Counts { total, staged: total, ..Counts::default() };
    let mut job = Job { status: JobStatus::Running, counts, places, version, ..open.job.clone() };
    let nodes = match placed(view, &mut job, None, &open.nodes)? {
        Ok(nodes) => nodes,
        Err(taken) => return refuse(taken),
    };
    let mut writes = Writes { nodes, ..Writes::default() };
    let mut created = json!({"jobId": job.id, "totalTasks": total});
    if let Some(key) = &job.request_key {
        created["requestId"] = key.clone().into();
    }
    tell(&mut created, "tasks", &open.told);
    bind(&mut created, job.opening, open.digest);
    writes.key = open.key.clone().map(|key| (key, Made::Job(job.id)));
    let mut board = Board::new(view, step, job, writes);
    board.event(EventType::JobCreated, created);
    board.audit(json!({"tasks": total}));
    board.advance()?;
    Ok(board.close())
}

/// The answer to a request whose key was seen before.
fn repeated<V: View>(view: &mut V, key: Option<&SubmitKey>) -> Result<Option<Answer>, V::Error> {
    let Some(key) = key else { return Ok(None) };
    let Some((made, fingerprint)) = view.submitted(&key.user, &key.key)? else { return Ok(None) };
    let (Made::Job(id), true) = (&made, fingerprint == key.fingerprint) else {
        return Ok(Some(Answer::Refused(Refusal::KeyReused(made))));
    };
    Ok(Some(match view.job(*id)? {
        Some(job) => Answer::Job { job: Box::new(job), repeated: true },
        None => Answer::Refused(Refusal::NotFound),
    }))
}

pub(super) fn open_tasks<V: View>(view: &mut V, step: &Step, open: &OpenTasks) -> Decision<V::Error> {
    if let Some(answer) = repeated(view, open.key.as_ref())? {
        return Ok((Writes::default(), answer));
    }
    let Some(mut job) = view.job(open.job)? else { return refuse(Refusal::NotFound) };
    if !job.status.is_open() {
        return refuse(Refusal::JobClosed(job.id, job.status));
    }
    // Somebody else's tasks are being looked at, or took the place of some of these.
    if job.opening.is_some() || !is_whole(view, job.id, Some(open.batch), open.nodes.len(), open.tasks)? {
        return refuse(Refusal::Stale(Kind::Job, job.id.to_string()));
    }
    if u64::from(job.counts.total) + u64::from(open.tasks) > MOST_TASKS as u64 {
        return refuse(Refusal::TooMany(format!("a job has at most {MOST_TASKS} tasks, and this one has {}", job.counts.total)));
    }
    let nodes = match placed(view, &mut job, None, &open.nodes)? {
        Ok(nodes) => nodes,
        Err(taken) => return refuse(taken),
    };
    let key = open.key.clone().map(|key| (key, Made::Job(job.id)));
    let writes = Writes { nodes, key, ..Writes::default() };
    let before = job.counts.total;
    job.opening = Some(open.batch);
    job.counts.total += open.tasks;
    job.counts.staged += open.tasks;
    let mut added = json!({"jobId": job.id, "previousTotalTasks": before, "totalTasksNow": job.counts.total});
    tell(&mut added, "newTasks", &open.told);
    bind(&mut added, job.opening, open.digest);
    let mut board = Board::new(view, step, job, writes);
    board.event(EventType::JobTasksAdded, added);
    board.audit(json!({"tasks": open.tasks}));
    board.advance()?;
    Ok(board.close())
}

/// Whether a batch has all of its tasks: those that were written before, and those that come now.
fn is_whole<V: View>(view: &mut V, job: JobId, batch: Option<u64>, now: usize, all: u32) -> Result<bool, V::Error> {
    let before = match batch {
        Some(batch) => view.staged(job, batch)?,
        None => 0,
    };
    Ok(before as usize + now == all as usize)
}

/// The tasks that an event tells of, or where they lie.
fn tell(properties: &mut Value, field: &str, told: &Payload) {
    match told {
        Payload::Inline(tasks) => properties[field] = tasks.clone(),
        Payload::Blob { key, bytes } => properties["_s3Overflow"] = json!({"key": key, "bytes": bytes, "fields": [field]}),
    }
}

/// Puts the digest of a batch of tasks into the event that opens it.
fn bind(properties: &mut Value, batch: Option<u64>, digest: Option<[u8; 32]>) {
    if let (Some(batch), Some(digest)) = (batch, digest) {
        digest::add(properties, digest::tasks_key(batch), hex(&digest));
    }
}

pub(super) fn advance<V: View>(view: &mut V, step: &Step, id: JobId) -> Decision<V::Error> {
    let Some(job) = view.job(id)? else { return refuse(Refusal::NotFound) };
    if !job.needs_step() {
        return Ok((Writes::default(), Answer::Job { job: Box::new(job), repeated: false }));
    }
    let mut board = Board::new(view, step, job, Writes::default());
    board.advance()?;
    Ok(board.close())
}

pub(super) fn resume<V: View>(view: &mut V, step: &Step, id: JobId, key: Option<&SubmitKey>, changes: &[ReviseTask]) -> Decision<V::Error> {
    if let Some(answer) = repeated(view, key)? {
        return Ok((Writes::default(), answer));
    }
    let Some(mut job) = view.job(id)? else { return refuse(Refusal::NotFound) };
    if !job.status.is_open() || job.counts.failed == 0 {
        return refuse(Refusal::JobClosed(job.id, job.status));
    }
    job.generation += 1;
    (job.status, job.resuming, job.failure_told, job.failed_task) = (JobStatus::Running, true, false, None);
    let nodes = match revised(view, &job, changes)? {
        Ok(nodes) => nodes,
        Err(refusal) => return refuse(refusal),
    };
    let mut change = json!({"resumed": job.counts.failed, "generation": job.generation});
    if !changes.is_empty() {
        change["revised"] = changes.iter().map(|change| change.told.clone()).collect();
    }
    let digests: Vec<_> = nodes.iter().filter_map(digest::of_revision).collect();
    let writes = Writes { nodes, key: key.cloned().map(|key| (key, Made::Job(id))), ..Writes::default() };
    let mut board = Board::new(view, step, job, writes);
    board.turn("jobs.resume", change);
    digests.into_iter().for_each(|(key, digest)| board.bind(key, digest));
    board.advance()?;
    Ok(board.close())
}

/// The tasks that a resume changes, as they are afterwards.
fn revised<V: View>(view: &mut V, job: &Job, changes: &[ReviseTask]) -> Result<Result<Vec<Node>, Refusal>, V::Error> {
    let most = view.limits().tasks;
    if changes.len() > most {
        return Ok(Err(Refusal::TooMany(format!("one resume changes at most {most} tasks, and this one changes {}", changes.len()))));
    }
    let mut nodes = Vec::with_capacity(changes.len());
    for change in changes {
        let Some(mut node) = view.node(job.id, change.task.as_str())? else {
            return Ok(Err(Refusal::Missing(Kind::Task, change.task.to_string())));
        };
        if !node.phase.is_revisable() {
            return Ok(Err(Refusal::NotRevisable(node.task, node.phase)));
        }
        if *node.runs() != change.was {
            return Ok(Err(Refusal::Stale(Kind::Task, node.task.to_string())));
        }
        node.revision = Some(Box::new(Revision { generation: job.generation, spec: change.spec.clone() }));
        nodes.push(node);
    }
    Ok(Ok(nodes))
}

pub(super) fn cancel<V: View>(view: &mut V, step: &Step, id: JobId) -> Decision<V::Error> {
    let Some(mut job) = view.job(id)? else { return refuse(Refusal::NotFound) };
    if !job.status.is_open() {
        return refuse(Refusal::JobClosed(job.id, job.status));
    }
    (job.status, job.completed_at, job.cancelled_by) = (JobStatus::Cancelled, Some(step.at), Some(step.actor.name()));
    (job.attention, job.unburied) = (false, (job.counts.failed > 0).then_some(0));
    let mut board = Board::new(view, step, job, Writes::default());
    board.turn("jobs.cancel", json!({"cancelled": true}));
    board.advance()?;
    Ok(board.close())
}

pub(super) fn forget_staged<V: View>(view: &mut V, id: JobId) -> Decision<V::Error> {
    match view.job(id)? {
        Some(job) if job.status == JobStatus::Staged => {
            let writes = Writes { forgotten: vec![id], ..Writes::default() };
            Ok((writes, Answer::Unchanged))
        }
        _ => Ok((Writes::default(), Answer::Unchanged)),
    }
}

/// Whether an execution is a task of a job of which nothing ever runs again.
pub(super) fn is_over<V: View>(view: &mut V, execution: &Execution) -> Result<bool, V::Error> {
    let Some(task) = &execution.spec.task else { return Ok(false) };
    Ok(view.job(task.job)?.is_none_or(|job| !job.status.is_open()))
}

/// A task's execution has ended: it is done or not, and whoever waited for it is told.
pub(super) fn task_ended<V: View>(
    view: &mut V,
    step: &Step,
    execution: &Execution,
    output: Option<Payload>,
    writes: &mut Writes,
) -> Result<(), V::Error> {
    let Some(task) = &execution.spec.task else { return Ok(()) };
    let (Some(mut job), Some(mut node)) = (view.job(task.job)?, view.node(task.job, task.task.as_str())?) else { return Ok(()) };
    // Another generation has made another execution of it since.
    if node.execution != Some(execution.id) || node.phase != Phase::Active {
        return Ok(());
    }
    job.counts.active -= 1;
    if execution.status == Status::Succeeded {
        job.counts.completed += 1;
        (node.phase, node.marked, node.output) = (Phase::Completed, true, output);
    } else {
        job.counts.failed += 1;
        node.phase = Phase::Failed;
        job.failed_task.get_or_insert_with(|| task.task.to_string());
    }
    let mut board = Board::new(view, step, job, std::mem::take(writes));
    board.put(node);
    board.advance()?;
    *writes = board.close().0;
    Ok(())
}
