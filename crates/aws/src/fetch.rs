//! How what a decision wants to look at is read: always consistently, and a guard before what it guards.

use futures_util::future::try_join_all;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::Node;
use runvoy_model::name::Name;
use runvoy_model::view::Standing;

use crate::desk::{Desk, Found, Need, ReadyNeed, SeenExecution};
use crate::fault::Fault;
use crate::item::Read;
use crate::node::Brief;
use crate::store::DynamoStore;
use crate::table::Table;
use crate::{execution, job, lock, mark, node, record};

/// So many parents of tasks are read ahead at once.
const MOST_AHEAD: usize = 400;

impl DynamoStore {
    /// Brings something to the desk, after what guards it.
    pub(crate) async fn fetch(&self, desk: &mut Desk, need: Need) -> Result<(), Fault> {
        let guard = match &need {
            Need::FirstWaiter(name) => Some(Need::Lock(name.clone())),
            Need::Node(job, _)
            | Need::Brief(job, _)
            | Need::Nodes(job, ..)
            | Need::Staged(job, _)
            | Need::Children(job, ..)
            | Need::Phases(job) => Some(Need::Job(*job)),
            _ => None,
        };
        if let Some(guard) = guard.filter(|guard| !desk.has(guard)) {
            self.bring(desk, guard).await?;
        }
        self.bring(desk, need).await
    }

    async fn bring(&self, desk: &mut Desk, need: Need) -> Result<(), Fault> {
        if let Need::Brief(job, task) = &need {
            // A task may wait for thousands: those that are looked at next come along.
            let ahead = desk.parents_from(*job, task, MOST_AHEAD);
            for brief in node::briefs(&self.dynamo, *job, &ahead).await? {
                let ahead = Need::Brief(*job, brief.task.as_str().to_owned());
                if !desk.has(&ahead) {
                    desk.put(ahead, Found::Brief(Some(brief)));
                }
            }
            if desk.has(&need) {
                return Ok(());
            }
        }
        for (need, found) in self.read(need).await? {
            // What was seen first stays: the commit holds it to that.
            if !desk.has(&need) {
                desk.put(need, found);
            }
        }
        Ok(())
    }

    /// Makes sure that what was looked at was so at one moment, for a decision that writes nothing that would make sure of it: whatever is now
    /// as it was has been so in between. `Conflict` if something has changed.
    pub(crate) async fn hold(&self, desk: &Desk) -> Result<(), Fault> {
        let looked_at: Vec<_> = desk.looked_at().filter_map(|(need, found)| Some((need.clone(), found.version()?))).collect();
        if looked_at.len() < 2 {
            return Ok(());
        }
        let again = try_join_all(looked_at.iter().map(|(need, _)| self.read(need.clone()))).await?;
        for ((need, version), found) in looked_at.iter().zip(again) {
            let now = found.iter().find(|(of, _)| of == need).and_then(|(_, found)| found.version());
            if now != Some(*version) {
                return Err(Fault::Conflict);
            }
        }
        Ok(())
    }

    /// Reads something, and what will be asked for next where that costs little.
    pub(crate) async fn read(&self, need: Need) -> Result<Vec<(Need, Found)>, Fault> {
        let found = match &need {
            Need::Execution(id) => Found::Execution(self.seen_execution(*id).await?.map(Box::new)),
            Need::Lock(name) => Found::Lock(lock::read(&self.dynamo, name).await?),
            Need::FirstWaiter(name) => Found::FirstWaiter(lock::first_waiter(&self.dynamo, name).await?),
            Need::Submitted(user, key) => Found::Submitted(mark::submitted(&self.dynamo, user, key).await?),
            Need::Record(kind, name) => Found::Record(record::read(&self.dynamo, &*self.blobs, *kind, name).await?.map(Box::new)),
            Need::Job(id) => Found::Job(job::read(&self.dynamo, *id).await?.map(Box::new)),
            Need::Node(job, task) => Found::Node(node::read(&self.dynamo, &*self.blobs, *job, task).await?.map(Box::new)),
            Need::Brief(job, task) => Found::Brief(self.brief(*job, task).await?),
            Need::Staged(job, batch) => Found::Staged(node::staged(&self.dynamo, *job, *batch).await?),
            Need::Phases(job) => Found::Phases(node::phases(&self.dynamo, *job).await?),
            Need::Ready(ready) => return self.read_ready(ready).await,
            Need::Nodes(job, standing, max) => return self.read_nodes(*job, *standing, *max).await,
            Need::Children(job, parent, max) => return self.read_children(*job, parent, *max).await,
        };
        Ok(vec![(need, found)])
    }

    async fn seen_execution(&self, id: ExecutionId) -> Result<Option<SeenExecution>, Fault> {
        let Some(found) = self.dynamo.get(Table::Executions, execution::key(id)).await? else { return Ok(None) };
        let ticket = found.text_if("ticket").map(str::to_owned);
        let step = found.text_if("step_id").and_then(|step| step.parse().ok());
        let mut restored = execution::from_item(found, &*self.blobs).await?;
        if restored.lost.as_ref().is_some_and(|lost| lost.is_state_lost) {
            self.recall(&mut restored.execution).await?;
        }
        Ok(Some(SeenExecution { execution: restored.execution, lost: restored.lost, ticket, step }))
    }

    async fn read_ready(&self, need: &ReadyNeed) -> Result<Vec<(Need, Found)>, Fault> {
        let ready = self.lists.ready(&need.queues, &need.serves, need.now, need.max, Some(&need.pass)).await?;
        let ids = ready.iter().map(|execution| execution.id).collect();
        let seen = |execution| Found::Execution(Some(Box::new(SeenExecution { execution, lost: None, ticket: None, step: None })));
        let mut found: Vec<_> = ready.into_iter().map(|execution| (Need::Execution(execution.id), seen(execution))).collect();
        found.push((Need::Ready(Box::new(need.clone())), Found::Ready(ids)));
        Ok(found)
    }

    /// Tasks by how they stand, each also by its name; with those that were not looked at yet, the parents that a look needs.
    async fn read_nodes(&self, id: JobId, standing: Standing, max: usize) -> Result<Vec<(Need, Found)>, Fault> {
        let nodes = node::standing(&self.dynamo, &*self.blobs, id, standing, max).await?;
        let mut found: Vec<_> = nodes.iter().cloned().map(|node| by_name(id, node)).collect();
        if let Standing::Staged(_) = standing {
            let known: std::collections::HashSet<&Name> = nodes.iter().map(|node| &node.task).collect();
            let mut parents: Vec<Name> =
                nodes.iter().flat_map(|node| &node.depends_on).filter(|parent| !known.contains(parent)).cloned().collect();
            parents.sort_unstable();
            parents.dedup();
            parents.truncate(MOST_AHEAD);
            let parents = node::briefs(&self.dynamo, id, &parents).await?;
            found.extend(parents.into_iter().map(|brief| (Need::Brief(id, brief.task.as_str().to_owned()), Found::Brief(Some(brief)))));
        }
        found.push((Need::Nodes(id, standing, max), Found::Nodes(nodes)));
        Ok(found)
    }

    async fn brief(&self, id: JobId, task: &str) -> Result<Option<Brief>, Fault> {
        let Ok(task) = Name::new(task) else { return Ok(None) };
        Ok(node::briefs(&self.dynamo, id, &[task]).await?.pop())
    }

    async fn read_children(&self, id: JobId, parent: &str, max: usize) -> Result<Vec<(Need, Found)>, Fault> {
        let children = node::children(&self.dynamo, id, parent, max).await?;
        let nodes = node::by_name(&self.dynamo, &*self.blobs, id, &children).await?;
        let mut found: Vec<_> = nodes.into_iter().map(|node| by_name(id, node)).collect();
        found.push((Need::Children(id, parent.to_owned(), max), Found::Children(children)));
        Ok(found)
    }
}

fn by_name(job: JobId, node: Node) -> (Need, Found) {
    (Need::Node(job, node.task.as_str().to_owned()), Found::Node(Some(Box::new(node))))
}
