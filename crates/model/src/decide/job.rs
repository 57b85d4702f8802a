//! How jobs move. One function, [`Board::advance`], does whatever there is to do, up to a bound per step; a step that could not do all of it leaves
//! the job's attention mark and an agent goes on. So a task that ends releases its children in the same commit, a job of twenty
//! thousand tasks never makes a long step, and a crash between two steps loses nothing: the mark is part of the record.
//!
//! What holds of it: a child is released when its last parent is done, and once; an edge is told once, because telling removes it; a task joins
//! the graph in one step that reads where its parents stand, so that none of them can end unseen; `Job Completed` and, for each generation,
//! `Job Failure Detected` are written once.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::submit::{claim_lock, new_execution};
use super::{Decision, properties, refuse};
use crate::change::Made;
use crate::command::{Answer, OpenJob, OpenTasks, Refusal, StageTasks, Submit};
use crate::event::{Entity, EventType};
use crate::execution::Execution;
use crate::id::{ExecutionId, JobId};
use crate::job::{Counts, Job, JobStatus, Node, Payload, Phase, TaskRef};
use crate::name::Name;
use crate::record::Kind;
use crate::status::Status;
use crate::step::Step;
use crate::view::{Standing, View, Writes};

/// How much one step does: tasks looked at, edges told, executions made. Each costs a few rows.
const STEP_BUDGET: usize = 60;
/// A task waits for its lock as long as it takes.
const LOCK_WAIT_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

pub(super) fn stage<V: View>(view: &mut V, step: &Step, stage: &StageTasks) -> Decision<V::Error> {
    let mut writes = Writes::default();
    match (view.job(stage.job)?, &stage.begins) {
        (None, Some(job)) => drop(writes.put_job(Job { status: JobStatus::Staged, ..(**job).clone() }, step)),
        (None, None) => return refuse(Refusal::NotFound),
        (Some(job), _) if job.status == JobStatus::Staged || job.status.is_open() => {}
        (Some(job), _) => return refuse(Refusal::JobClosed(job.id, job.status)),
    }
    if let Some(taken) = write_nodes(view, &stage.nodes, &mut writes)? {
        return refuse(taken);
    }
    Ok((writes, Answer::Unchanged))
}

/// Tasks that are not part of the graph yet may be written again; others have their name for good.
fn write_nodes<V: View>(view: &mut V, nodes: &[Node], writes: &mut Writes) -> Result<Option<Refusal>, V::Error> {
    for node in nodes {
        if view.node(node.job, node.task.as_str())?.is_some_and(|known| known.phase != Phase::Staged) {
            return Ok(Some(Refusal::Taken(Kind::Task, node.task.to_string())));
        }
        writes.nodes.push(Node { phase: Phase::Staged, ..node.clone() });
    }
    Ok(None)
}

pub(super) fn open<V: View>(view: &mut V, step: &Step, open: &OpenJob) -> Decision<V::Error> {
    if let Some(key) = &open.key
        && let Some((made, fingerprint)) = view.submitted(&key.user, &key.key)?
    {
        let (Made::Job(id), true) = (&made, fingerprint == key.fingerprint) else { return refuse(Refusal::KeyReused(made)) };
        return Ok(match view.job(*id)? {
            Some(job) => (Writes::default(), Answer::Job { job: Box::new(job), repeated: true }),
            None => (Writes::default(), Answer::Refused(Refusal::NotFound)),
        });
    }
    let staged = view.job(open.job.id)?;
    if staged.as_ref().is_some_and(|job| job.status != JobStatus::Staged) {
        return refuse(Refusal::Taken(Kind::Job, open.job.id.to_string()));
    }
    let mut writes = Writes::default();
    if let Some(taken) = write_nodes(view, &open.nodes, &mut writes)? {
        return refuse(taken);
    }
    let (version, total) = (staged.map_or(0, |job| job.version), open.job.counts.total);
    let counts = Counts { total, staged: total, ..Counts::default() };
    let job = Job { status: JobStatus::Running, counts, version, ..open.job.clone() };
    let mut created = json!({"jobId": job.id, "totalTasks": total});
    if let Some(key) = &job.request_key {
        created["requestId"] = key.clone().into();
    }
    tell(&mut created, "tasks", &open.told);
    writes.key = open.key.clone().map(|key| (key, Made::Job(job.id)));
    let mut board = Board::new(view, step, job, writes);
    board.event(EventType::JobCreated, created);
    board.audit(json!({"tasks": total}));
    board.advance()?;
    Ok(board.close())
}

pub(super) fn open_tasks<V: View>(view: &mut V, step: &Step, open: &OpenTasks) -> Decision<V::Error> {
    let Some(mut job) = view.job(open.job)? else { return refuse(Refusal::NotFound) };
    if !job.status.is_open() {
        return refuse(Refusal::JobClosed(job.id, job.status));
    }
    if job.opening.is_some() {
        return refuse(Refusal::Stale(Kind::Job, job.id.to_string()));
    }
    let mut writes = Writes::default();
    if let Some(taken) = write_nodes(view, &open.nodes, &mut writes)? {
        return refuse(taken);
    }
    let before = job.counts.total;
    job.opening = Some(open.batch);
    job.counts.total += open.tasks;
    job.counts.staged += open.tasks;
    let mut added = json!({"jobId": job.id, "previousTotalTasks": before, "totalTasksNow": job.counts.total});
    tell(&mut added, "newTasks", &open.told);
    let mut board = Board::new(view, step, job, writes);
    board.event(EventType::JobTasksAdded, added);
    board.audit(json!({"tasks": open.tasks}));
    board.advance()?;
    Ok(board.close())
}

/// The tasks that an event tells of, or where they lie.
fn tell(properties: &mut Value, field: &str, told: &Payload) {
    match told {
        Payload::Inline(tasks) => properties[field] = tasks.clone(),
        Payload::Blob { key, bytes } => properties["_s3Overflow"] = json!({"key": key, "bytes": bytes, "fields": [field]}),
    }
}

pub(super) fn advance<V: View>(view: &mut V, step: &Step, id: JobId) -> Decision<V::Error> {
    let Some(job) = view.job(id)? else { return refuse(Refusal::NotFound) };
    if !job.attention {
        return Ok((Writes::default(), Answer::Job { job: Box::new(job), repeated: false }));
    }
    let mut board = Board::new(view, step, job, Writes::default());
    board.advance()?;
    Ok(board.close())
}

pub(super) fn resume<V: View>(view: &mut V, step: &Step, id: JobId) -> Decision<V::Error> {
    let Some(mut job) = view.job(id)? else { return refuse(Refusal::NotFound) };
    if !job.status.is_open() || job.counts.failed == 0 {
        return refuse(Refusal::JobClosed(job.id, job.status));
    }
    job.generation += 1;
    (job.status, job.resuming, job.failure_told, job.failed_task) = (JobStatus::Running, true, false, None);
    let change = json!({"resumed": job.counts.failed, "generation": job.generation});
    let mut board = Board::new(view, step, job, Writes::default());
    board.audit(change);
    board.advance()?;
    Ok(board.close())
}

pub(super) fn cancel<V: View>(view: &mut V, step: &Step, id: JobId) -> Decision<V::Error> {
    let Some(mut job) = view.job(id)? else { return refuse(Refusal::NotFound) };
    if !job.status.is_open() {
        return refuse(Refusal::JobClosed(job.id, job.status));
    }
    (job.status, job.completed_at, job.attention) = (JobStatus::Cancelled, Some(step.at), false);
    let mut board = Board::new(view, step, job, Writes::default());
    board.audit(json!({"cancelled": true}));
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
    board.nodes.push(node);
    board.advance()?;
    *writes = board.close().0;
    Ok(())
}

/// A job on the table, with the tasks that this step has touched.
struct Board<'v, V: View> {
    view: &'v mut V,
    step: &'v Step,
    job: Job,
    nodes: Vec<Node>,
    writes: Writes,
    budget: usize,
}

impl<'v, V: View> Board<'v, V> {
    fn new(view: &'v mut V, step: &'v Step, job: Job, mut writes: Writes) -> Self {
        let nodes = std::mem::take(&mut writes.nodes);
        Self { view, step, job, nodes, writes, budget: STEP_BUDGET }
    }

    /// Does what there is to do, as far as the budget goes.
    fn advance(&mut self) -> Result<(), V::Error> {
        if !self.job.status.is_open() {
            return Ok(());
        }
        self.make_ready_again()?;
        self.look_at_staged()?;
        self.tell_children()?;
        self.release()?;
        self.job.attention = self.budget == 0;
        self.conclude()
    }

    /// Tasks that failed before the last resume.
    fn make_ready_again(&mut self) -> Result<(), V::Error> {
        if !self.job.resuming {
            return Ok(());
        }
        let generation = self.job.generation;
        let failed = self.view.nodes(self.job.id, Standing::FailedBefore(generation), self.budget)?;
        self.job.resuming = failed.len() == self.budget;
        for mut node in failed {
            self.budget -= 1;
            // So that it is not found again by this same look.
            (node.phase, node.generation) = (Phase::Ready, generation);
            self.job.counts.failed -= 1;
            self.job.counts.ready += 1;
            self.nodes.push(node);
        }
        Ok(())
    }

    /// Tasks of the batch that was opened join the graph, each with a look at where its parents stand.
    fn look_at_staged(&mut self) -> Result<(), V::Error> {
        let Some(batch) = self.job.opening else { return Ok(()) };
        for mut node in self.standing(Standing::Staged(batch), |node| node.phase == Phase::Staged && node.batch == batch)? {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            for parent in node.depends_on.clone() {
                if self.node(&parent)?.is_some_and(|parent| parent.phase == Phase::Completed) {
                    continue;
                }
                node.open_parents += 1;
                self.budget = self.budget.saturating_sub(1);
                self.writes.edges.push((self.job.id, parent, node.task.clone()));
            }
            self.job.counts.staged -= 1;
            if node.open_parents == 0 {
                node.phase = Phase::Ready;
                self.job.counts.ready += 1;
            } else {
                node.phase = Phase::Waiting;
                self.job.counts.waiting += 1;
            }
            self.put(node);
        }
        if self.job.counts.staged == 0 {
            self.job.opening = None;
        }
        Ok(())
    }

    /// Children of tasks that are done wait for one parent less.
    fn tell_children(&mut self) -> Result<(), V::Error> {
        for mut parent in self.standing(Standing::Marked, |node| node.marked)? {
            if self.budget == 0 {
                break;
            }
            let children = self.view.children(self.job.id, parent.task.as_str(), self.budget)?;
            parent.marked = children.len() == self.budget;
            for child in children {
                self.budget -= 1;
                self.tell_child(&parent.task, &child)?;
            }
            self.put(parent);
        }
        Ok(())
    }

    /// Tasks that stand like this, as this step has left them, by place; no more than could be dealt with.
    fn standing(&mut self, standing: Standing, still: impl Fn(&Node) -> bool) -> Result<Vec<Node>, V::Error> {
        if self.budget == 0 {
            return Ok(Vec::new());
        }
        let kept = self.view.nodes(self.job.id, standing, self.budget + self.nodes.len())?;
        let mut found: Vec<Node> = self.nodes.iter().filter(|node| still(node)).cloned().collect();
        found.extend(kept.into_iter().filter(|node| !self.nodes.iter().any(|touched| touched.task == node.task)));
        found.sort_by_key(|node| node.place);
        Ok(found)
    }

    fn tell_child(&mut self, parent: &Name, child: &Name) -> Result<(), V::Error> {
        self.writes.told_edges.push((self.job.id, parent.clone(), child.clone()));
        let Some(mut node) = self.node(child)? else { return Ok(()) };
        node.open_parents = node.open_parents.saturating_sub(1);
        if node.open_parents == 0 && node.phase == Phase::Waiting {
            node.phase = Phase::Ready;
            self.job.counts.waiting -= 1;
            self.job.counts.ready += 1;
        }
        self.put(node);
        Ok(())
    }

    /// Tasks that could run become executions, as many as the job may have at once.
    fn release(&mut self) -> Result<(), V::Error> {
        if self.job.counts.ready == 0 {
            return Ok(());
        }
        for node in self.standing(Standing::Ready, |node| node.phase == Phase::Ready)? {
            if self.budget == 0 || self.job.concurrency.is_some_and(|most| self.job.counts.active >= most) {
                break;
            }
            self.budget -= 1;
            self.release_one(node)?;
        }
        Ok(())
    }

    fn release_one(&mut self, mut node: Node) -> Result<(), V::Error> {
        let id = execution_id(self.step, self.job.id, &node.task, self.job.generation);
        let mut spec = node.spec.clone();
        spec.lock_wait_ms = spec.lock.as_ref().map(|_| LOCK_WAIT_MS);
        spec.task = Some(TaskRef { job: self.job.id, task: node.task.clone(), generation: self.job.generation });
        let submit = Submit { id, spec, created_by: self.job.created_by.clone(), key: None, lease_to: None };
        let mut execution = new_execution(self.step, &submit);
        let claimed = claim_lock(self.view, self.step, &execution, &self.writes)?;
        if let Ok((claim, lock)) = claimed {
            execution.lock = claim;
            self.writes.locks.extend(lock);
        }
        let pending = json!({"name": node.name, "dependsOn": node.depends_on, "attempt": 1, "queue": execution.spec.queue});
        self.writes.event(self.step, id, EventType::TaskPending, properties(&execution, pending));
        self.writes.put(execution, self.step);
        (node.phase, node.execution, node.generation) = (Phase::Active, Some(id), self.job.generation);
        self.job.counts.ready -= 1;
        self.job.counts.active += 1;
        self.put(node);
        Ok(())
    }

    /// What the whole comes to.
    fn conclude(&mut self) -> Result<(), V::Error> {
        let counts = self.job.counts;
        if let Some(task) = self.job.failed_task.clone()
            && !self.job.failure_told
        {
            self.job.failure_told = true;
            let statuses = self.statuses()?;
            self.event(EventType::JobFailureDetected, json!({"jobId": self.job.id, "failedTaskId": task, "taskStatuses": statuses}));
        }
        if self.job.attention || counts.staged + counts.ready + counts.active > 0 {
            self.job.status = JobStatus::Running;
        } else if counts.completed == counts.total {
            (self.job.status, self.job.completed_at) = (JobStatus::Completed, Some(self.step.at));
            let statuses = self.statuses()?;
            self.event(EventType::JobCompleted, json!({"jobId": self.job.id, "totalTasks": counts.total, "taskStatuses": statuses}));
        } else {
            self.job.status = JobStatus::Failed;
        }
        Ok(())
    }

    fn statuses(&mut self) -> Result<Value, V::Error> {
        let mut map = Map::new();
        for (task, phase) in self.view.phases(self.job.id)? {
            map.insert(task.to_string(), phase.word().into());
        }
        for node in &self.nodes {
            map.insert(node.task.to_string(), node.phase.word().into());
        }
        Ok(Value::Object(map))
    }

    fn node(&mut self, task: &Name) -> Result<Option<Node>, V::Error> {
        match self.nodes.iter().find(|node| node.task == *task) {
            Some(node) => Ok(Some(node.clone())),
            None => self.view.node(self.job.id, task.as_str()),
        }
    }

    fn put(&mut self, node: Node) {
        match self.nodes.iter_mut().find(|touched| touched.task == node.task) {
            Some(touched) => *touched = node,
            None => self.nodes.push(node),
        }
    }

    fn event(&mut self, kind: EventType, properties: Value) {
        self.writes.event_about(self.step, Entity::job(self.job.id), kind, properties);
    }

    fn audit(&mut self, change: Value) {
        if let Some(audit) = &self.step.audit {
            let properties = json!({
                "jobId": self.job.id,
                "user": self.step.actor.name(),
                "action": audit.action,
                "from": audit.from,
                "result": "ok",
                "apiRequestId": self.step.request_id,
                "change": change,
            });
            self.event(EventType::Audit, properties);
        }
    }

    fn close(self) -> (Writes, Answer) {
        let Self { mut writes, nodes, job, step, .. } = self;
        writes.nodes = nodes;
        let job = writes.put_job(job, step);
        (writes, Answer::Job { job, repeated: false })
    }
}

/// The id of a task's execution: of its own time, and of nothing else that could come twice.
fn execution_id(step: &Step, job: JobId, task: &Name, generation: u32) -> ExecutionId {
    let mut hash = Sha256::new();
    hash.update(job.as_bytes());
    hash.update(generation.to_be_bytes());
    hash.update(task.as_str());
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&step.at.0.clamp(0, (1 << 48) - 1).to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&digest[..10]);
    ExecutionId::from_bytes(bytes)
}
