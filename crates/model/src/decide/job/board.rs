//! A job on the table: everything that moves in it moves here, as far as one step may go. It never reads the whole job.

mod conclude;
mod graph;
mod release;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::command::Answer;
use crate::digest;
use crate::event::{Entity, EventType};
use crate::job::{Job, Node, Phase};
use crate::name::Name;
use crate::step::{Audit, Step};
use crate::view::{Standing, View, Writes};

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
    /// How many more rows of what moves this step may write.
    budget: usize,
    /// The budget was used up before everything was done.
    unfinished: bool,
}

impl<'v, V: View> Board<'v, V> {
    pub(super) fn new(view: &'v mut V, step: &'v Step, job: Job, mut writes: Writes) -> Self {
        let nodes = std::mem::take(&mut writes.nodes);
        let touched = nodes.iter().enumerate().map(|(at, node)| (node.task.clone(), at)).collect();
        let budget = view.limits().rows;
        Self { view, step, job, nodes, touched, lowered: BTreeMap::new(), writes, budget, unfinished: false }
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
            let audit = audit.clone();
            self.mark(&audit, change);
        }
    }

    /// Leaves a mark of a turn that the job takes, whoever asked for it: no other event tells of it.
    pub(super) fn turn(&mut self, action: &str, change: Value) {
        match &self.step.audit {
            Some(_) => self.audit(change),
            None => self.mark(&Audit { action: action.to_owned(), ..Audit::default() }, change),
        }
    }

    /// Puts a digest into the last event.
    pub(super) fn bind(&mut self, key: String, digest: String) {
        if let Some(event) = self.writes.events.last_mut() {
            digest::add(&mut event.properties, key, digest);
        }
    }

    fn mark(&mut self, audit: &Audit, change: Value) {
        let mut properties = json!({
            "jobId": self.job.id,
            "user": self.step.actor.name(),
            "action": audit.action,
            "from": audit.from,
            "result": "ok",
            "apiRequestId": self.step.request_id,
            "target": self.job.id,
            "change": change,
        });
        if let Some(command) = &audit.command {
            properties["command"] = command.as_str().into();
        }
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
