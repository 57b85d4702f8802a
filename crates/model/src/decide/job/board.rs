//! A job on the table: everything that moves in it moves here, as far as one step may go. It never reads the whole job.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::bound;
use crate::command::{Answer, Refusal, Submit};
use crate::decide::properties;
use crate::decide::redrive::{drop_letter, goes_on};
use crate::decide::submit::{claim_lock, new_execution};
use crate::event::{Entity, EventType};
use crate::id::ExecutionId;
use crate::job::{Job, JobStatus, MOST_INLINE_BYTES, Node, Phase, TaskRef};
use crate::name::Name;
use crate::redrive::RedrivenAs;
use crate::step::Step;
use crate::view::{Standing, View, Writes};

/// How many rows one step writes of what moves; with a hundred new tasks and what comes with them it stays below five hundred.
const STEP_BUDGET: usize = 240;
/// A task that is ready again: itself, what it was as a dead letter, and what people were told of that.
const RESUME_COST: usize = 3;
/// A dead letter that is none any more: itself, and what people were told of it.
const BURY_COST: usize = 2;
/// A task that is looked at: itself.
const LOOK_COST: usize = 1;
/// So many tasks that were opened are read first.
const FIRST_LOOK: usize = 8;
/// A parent that is not done: its edge.
const EDGE_COST: usize = 1;
/// A child that is told: itself and the edge.
const TELL_COST: usize = 2;
/// A task that becomes an execution: itself, the execution, its event, its lock.
const RELEASE_COST: usize = 4;
/// Where nobody says otherwise a task waits for its lock as long as it takes.
const LOCK_WAIT_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// A job on the table, with the tasks that this step has touched.
pub(super) struct Board<'v, V: View> {
    view: &'v mut V,
    step: &'v Step,
    pub(super) job: Job,
    nodes: Vec<Node>,
    /// Where a task is among those.
    touched: HashMap<Name, usize>,
    /// Tasks that wait for fewer parents than before, and still for some.
    lowered: BTreeMap<Name, u32>,
    writes: Writes,
    budget: usize,
    /// The budget was used up before everything was done.
    unfinished: bool,
}

impl<'v, V: View> Board<'v, V> {
    pub(super) fn new(view: &'v mut V, step: &'v Step, job: Job, mut writes: Writes) -> Self {
        let nodes = std::mem::take(&mut writes.nodes);
        let touched = nodes.iter().enumerate().map(|(at, node)| (node.task.clone(), at)).collect();
        Self { view, step, job, nodes, touched, lowered: BTreeMap::new(), writes, budget: STEP_BUDGET, unfinished: false }
    }

    /// Does what there is to do, as far as the budget goes.
    pub(super) fn advance(&mut self) -> Result<(), V::Error> {
        if !self.job.status.is_open() {
            return self.bury_all();
        }
        self.make_ready_again()?;
        self.look_at_staged()?;
        self.tell_children()?;
        self.release()?;
        self.job.attention = self.unfinished;
        self.conclude()
    }

    /// How many things of this cost can still be done.
    const fn affordable(&self, cost: usize) -> usize {
        self.budget / cost
    }

    /// Pays for one thing; what cannot be paid for is left to another step.
    const fn pay(&mut self, cost: usize) -> bool {
        if self.budget < cost {
            self.unfinished = true;
            return false;
        }
        self.budget -= cost;
        true
    }

    /// Tasks that failed before the last resume.
    fn make_ready_again(&mut self) -> Result<(), V::Error> {
        if !self.job.resuming {
            return Ok(());
        }
        let generation = self.job.generation;
        let most = self.affordable(RESUME_COST);
        let failed = self.view.nodes(self.job.id, Standing::FailedBefore(generation), most)?;
        self.job.resuming = failed.len() == most;
        self.unfinished |= self.job.resuming;
        for mut node in failed {
            self.budget -= RESUME_COST;
            self.bury(&node)?;
            // So that it is not found again by this same look.
            (node.phase, node.generation) = (Phase::Ready, generation);
            self.job.counts.failed -= 1;
            self.job.counts.ready += 1;
            self.put(node);
        }
        Ok(())
    }

    /// A task that runs again is no dead letter any more.
    fn bury(&mut self, node: &Node) -> Result<(), V::Error> {
        let Some(id) = node.execution else { return Ok(()) };
        if let Some(mut execution) = self.view.execution(id)?.filter(|execution| execution.dead) {
            // Whoever asked for the resume may not be who makes this step.
            let again = RedrivenAs { at: self.step.at, by: self.step.actor.name(), execution: None };
            goes_on(self.view, self.step, &mut execution, again, &mut self.writes)?;
            self.writes.put(execution, self.step);
        }
        Ok(())
    }

    /// Of a job of which nothing runs again, nothing waits for somebody to run it again.
    fn bury_all(&mut self) -> Result<(), V::Error> {
        let Some(from) = self.job.unburied else { return Ok(()) };
        let most = self.affordable(BURY_COST);
        let failed = self.view.nodes(self.job.id, Standing::FailedFrom(from), most)?;
        self.job.unburied = failed.last().filter(|_| failed.len() == most).map(|last| last.place + 1);
        for id in failed.iter().filter_map(|node| node.execution) {
            self.budget -= BURY_COST;
            if let Some(execution) = self.view.execution(id)?.filter(|execution| execution.dead) {
                let why = Refusal::JobClosed(self.job.id, self.job.status).to_string();
                drop_letter(self.view, self.step, execution, &why, &mut self.writes)?;
            }
        }
        Ok(())
    }

    /// Tasks of the batch that was opened join the graph, each with a look at where its parents stand.
    fn look_at_staged(&mut self) -> Result<(), V::Error> {
        let Some(batch) = self.job.opening else { return Ok(()) };
        // Few at first: each is read as a whole, and one with many parents takes the budget of many.
        let mut at_once = FIRST_LOOK;
        loop {
            let most = self.affordable(LOOK_COST).min(at_once);
            let staged = self.standing(Standing::Staged(batch), most)?;
            if staged.is_empty() {
                break;
            }
            for node in staged {
                if !self.pay(LOOK_COST) || !self.look_at(node)? {
                    return Ok(());
                }
            }
            at_once *= 2;
        }
        if self.budget < LOOK_COST || self.job.counts.staged > 0 && self.unlooked(batch)? {
            self.unfinished = true;
            return Ok(());
        }
        self.job.opening = None;
        Ok(())
    }

    fn unlooked(&mut self, batch: u64) -> Result<bool, V::Error> {
        Ok(!self.standing(Standing::Staged(batch), 1)?.is_empty())
    }

    /// Looks at a task's parents; `false` if the budget did not go that far. Whoever is done meanwhile tells it, though it is staged.
    fn look_at(&mut self, mut node: Node) -> Result<bool, V::Error> {
        let from = usize::try_from(node.looked).unwrap_or(usize::MAX).min(node.depends_on.len());
        for parent in &node.depends_on[from..] {
            if self.phase(parent)? != Some(Phase::Completed) {
                if !self.pay(EDGE_COST) {
                    self.put(node);
                    return Ok(false);
                }
                node.open_parents += 1;
                self.writes.edges.push((self.job.id, parent.clone(), node.task.clone()));
            }
            node.looked += 1;
        }
        self.job.counts.staged = self.job.counts.staged.saturating_sub(1);
        if node.open_parents == 0 {
            node.phase = Phase::Ready;
            self.job.counts.ready += 1;
        } else {
            node.phase = Phase::Waiting;
            self.job.counts.waiting += 1;
        }
        self.put(node);
        Ok(true)
    }

    /// Children of tasks that are done wait for one parent less.
    fn tell_children(&mut self) -> Result<(), V::Error> {
        let most = self.affordable(LOOK_COST);
        let marked = self.standing(Standing::Marked, most.max(1))?;
        self.unfinished |= most > 0 && marked.len() == most;
        for mut parent in marked {
            if !self.pay(LOOK_COST) {
                return Ok(());
            }
            let most = self.affordable(TELL_COST);
            let children = self.view.children(self.job.id, parent.task.as_str(), most + 1)?;
            parent.marked = children.len() > most;
            self.unfinished |= parent.marked;
            for child in children.into_iter().take(most) {
                self.budget -= TELL_COST;
                self.tell_child(&parent.task, &child)?;
            }
            self.put(parent);
        }
        Ok(())
    }

    /// Tasks that stand like this, as this step has left them, by place, `most` at most.
    fn standing(&mut self, standing: Standing, most: usize) -> Result<Vec<Node>, V::Error> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let kept = self.view.nodes(self.job.id, standing, most + self.nodes.len())?;
        let mut found: Vec<Node> = self.nodes.iter().filter(|node| standing.fits(node)).cloned().collect();
        found.extend(kept.into_iter().filter(|node| !self.touched.contains_key(&node.task)).map(|node| self.as_lowered(node)));
        found.sort_by_key(|node| node.place);
        found.truncate(most);
        Ok(found)
    }

    fn tell_child(&mut self, parent: &Name, child: &Name) -> Result<(), V::Error> {
        self.writes.told_edges.push((self.job.id, parent.clone(), child.clone()));
        if !self.touched.contains_key(child) {
            let open = match self.lowered.get(child) {
                Some(open) => Some(*open),
                None => self.view.open_parents(self.job.id, child.as_str())?,
            };
            // Whoever still waits for others is not read as a whole.
            if let Some(open) = open.filter(|open| *open > 1) {
                self.lowered.insert(child.clone(), open - 1);
                return Ok(());
            }
        }
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
        let free = self.job.concurrency.map_or(u32::MAX, |most| most.saturating_sub(self.job.counts.active)).min(self.job.counts.ready);
        let wanted = usize::try_from(free).unwrap_or(usize::MAX);
        let most = self.affordable(RELEASE_COST);
        self.unfinished |= wanted > most;
        for node in self.standing(Standing::Ready, wanted.min(most))? {
            self.budget -= RELEASE_COST;
            self.release_one(node)?;
        }
        Ok(())
    }

    fn release_one(&mut self, mut node: Node) -> Result<(), V::Error> {
        let id = execution_id(self.step, &node, self.job.generation);
        let mut spec = node.spec.clone();
        spec.lock_wait_ms = spec.lock.as_ref().map(|_| spec.lock_wait_ms.unwrap_or(LOCK_WAIT_MS));
        spec.task = Some(TaskRef {
            job: self.job.id,
            task: node.task.clone(),
            generation: self.job.generation,
            name: (node.name != node.task.as_str()).then(|| node.name.clone()),
        });
        let submit = Submit { id, spec, created_by: self.job.created_by.clone(), key: None, lease_to: None };
        let mut execution = new_execution(self.step, &submit);
        let claimed = claim_lock(self.view, self.step, &execution, &self.writes)?;
        if let Ok((claim, lock)) = claimed {
            execution.lock = claim;
            self.writes.locks.extend(lock);
        }
        let pending = json!({
            "name": node.name,
            "dependsOn": node.depends_on,
            "attempt": 1,
            "queue": execution.spec.queue,
            "generation": self.job.generation,
        });
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
        let moves = self.job.attention || counts.staged + counts.ready + counts.active > 0;
        if !moves && counts.failed > 0 && self.job.failed_task.is_none() {
            // Other tasks ran again and this one did not: nobody was told of it in this generation.
            let failed = self.standing(Standing::FailedBefore(u32::MAX), 1)?;
            self.job.failed_task = failed.first().map(|node| node.task.to_string());
        }
        if let Some(task) = self.job.failed_task.clone()
            && !self.job.failure_told
        {
            self.job.failure_told = true;
            let told = self.with_statuses(json!({"jobId": self.job.id, "failedTaskId": task}))?;
            self.event(EventType::JobFailureDetected, told);
        }
        if moves {
            self.job.status = JobStatus::Running;
        } else if counts.completed == counts.total {
            (self.job.status, self.job.completed_at) = (JobStatus::Completed, Some(self.step.at));
            let told = self.with_statuses(json!({"jobId": self.job.id, "totalTasks": counts.total}))?;
            self.event(EventType::JobCompleted, told);
        } else {
            self.job.status = JobStatus::Failed;
        }
        Ok(())
    }

    /// The properties with where every task stands; of a job too large for that, with how many stand where.
    fn with_statuses(&mut self, mut properties: Value) -> Result<Value, V::Error> {
        let statuses = self.statuses()?;
        let text = bound::text(&statuses);
        if text.len() <= MOST_INLINE_BYTES {
            properties["taskStatuses"] = statuses;
            return Ok(properties);
        }
        let counts = self.job.counts;
        properties["taskCounts"] = json!({
            "completed": counts.completed,
            "failed": counts.failed,
            "processing": counts.active,
            "waiting": counts.staged + counts.waiting + counts.ready,
        });
        properties[bound::CUT] = json!({"taskStatuses": bound::mark(&text)});
        Ok(properties)
    }

    fn statuses(&mut self) -> Result<Value, V::Error> {
        let mut map = Map::new();
        for (task, phase) in self.view.phases(self.job.id)? {
            map.insert(task.to_string(), phase.word().into());
        }
        for node in self.nodes.iter().filter(|node| node.phase != Phase::Staged) {
            map.insert(node.task.to_string(), node.phase.word().into());
        }
        Ok(Value::Object(map))
    }

    fn node(&mut self, task: &Name) -> Result<Option<Node>, V::Error> {
        if let Some(at) = self.touched.get(task) {
            return Ok(Some(self.nodes[*at].clone()));
        }
        let node = self.view.node(self.job.id, task.as_str())?;
        Ok(node.map(|node| self.as_lowered(node)))
    }

    fn as_lowered(&self, node: Node) -> Node {
        match self.lowered.get(&node.task) {
            Some(open_parents) => Node { open_parents: *open_parents, ..node },
            None => node,
        }
    }

    fn phase(&mut self, task: &Name) -> Result<Option<Phase>, V::Error> {
        match self.touched.get(task) {
            Some(at) => Ok(Some(self.nodes[*at].phase)),
            None => self.view.phase(self.job.id, task.as_str()),
        }
    }

    pub(super) fn put(&mut self, node: Node) {
        self.lowered.remove(&node.task);
        match self.touched.get(&node.task) {
            Some(at) => self.nodes[*at] = node,
            None => {
                self.touched.insert(node.task.clone(), self.nodes.len());
                self.nodes.push(node);
            }
        }
    }

    pub(super) fn event(&mut self, kind: EventType, properties: Value) {
        self.writes.event_about(self.step, Entity::job(self.job.id), kind, properties);
    }

    /// Leaves a mark of the call that asked for this step, if one did.
    pub(super) fn audit(&mut self, change: Value) {
        if let Some(audit) = &self.step.audit {
            let (action, from) = (audit.action.clone(), audit.from.clone());
            self.mark(&action, &from, change);
        }
    }

    /// Leaves a mark of a turn that the job takes, whoever asked for it: no other event tells of it.
    pub(super) fn turn(&mut self, action: &str, change: Value) {
        match &self.step.audit {
            Some(_) => self.audit(change),
            None => self.mark(action, "", change),
        }
    }

    fn mark(&mut self, action: &str, from: &str, change: Value) {
        let properties = json!({
            "jobId": self.job.id,
            "user": self.step.actor.name(),
            "action": action,
            "from": from,
            "result": "ok",
            "apiRequestId": self.step.request_id,
            "change": change,
        });
        self.event(EventType::Audit, properties);
    }

    pub(super) fn close(self) -> (Writes, Answer) {
        let Self { mut writes, nodes, lowered, job, step, .. } = self;
        writes.nodes = nodes;
        writes.lowered = lowered.into_iter().map(|(task, open_parents)| (job.id, task, open_parents)).collect();
        let job = writes.put_job(job, step);
        (writes, Answer::Job { job, repeated: false })
    }
}

/// The id of a task's execution, a UUIDv7: of its time, then in the order of the job's tasks, and of nothing else that could come twice.
fn execution_id(step: &Step, node: &Node, generation: u32) -> ExecutionId {
    let mut hash = Sha256::new();
    hash.update(node.job.as_bytes());
    hash.update(generation.to_be_bytes());
    hash.update(node.task.as_str());
    let digest: [u8; 32] = hash.finalize().into();
    let rest = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes")) >> 14;
    let (time, place) = (step.at.0.clamp(0, (1 << 48) - 1).cast_unsigned(), u64::from(node.place & 0xff_ffff));
    let high = time << 16 | 0x7000 | place >> 12;
    let low = 0b10 << 62 | (place & 0xfff) << 50 | rest;
    ExecutionId::from_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
}
