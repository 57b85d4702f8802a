//! Jobs as plain maps: each with its tasks by place and its edges by the places of parent and child. Also their port.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Job, JobStatus, Node, Payload, Phase};
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::job::{JobQuery, JobStore, PAGE_BYTES};
use runvoy_ports::store::StoreError;

use crate::store::MemoryStore;

/// Every job.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// By arrival.
    jobs: BTreeMap<u64, Job>,
    tasks: BTreeMap<(JobId, u32), Node>,
    /// From a parent to a child that has not been told of its end.
    edges: BTreeSet<(JobId, u32, u32)>,
}

type Edge = (JobId, Name, Name);

impl Jobs {
    pub fn write(&mut self, jobs: Vec<Job>, nodes: Vec<Node>, edges: Vec<Edge>, told: &[Edge]) {
        for job in jobs {
            let next = self.jobs.last_key_value().map_or(0, |(arrival, _)| arrival + 1);
            let known = self.jobs.iter().find(|(_, known)| known.id == job.id).map(|(arrival, _)| *arrival);
            self.jobs.insert(known.unwrap_or(next), job);
        }
        self.tasks.extend(nodes.into_iter().map(|node| ((node.job, node.place), node)));
        for (job, parent, child) in edges {
            self.edges.extend(self.edge(job, &parent, &child));
        }
        for (job, parent, child) in told {
            let edge = self.edge(*job, parent, child);
            edge.map(|edge| self.edges.remove(&edge));
        }
    }

    /// Tasks that wait for fewer parents.
    pub fn lower(&mut self, lowered: &[(JobId, Name, u32)]) {
        for (job, task, open_parents) in lowered {
            let place = self.node(*job, task.as_str()).map(|node| (*job, node.place));
            if let Some(node) = place.and_then(|place| self.tasks.get_mut(&place)) {
                node.open_parents = *open_parents;
            }
        }
    }

    fn edge(&self, job: JobId, parent: &Name, child: &Name) -> Option<(JobId, u32, u32)> {
        Some((job, self.node(job, parent.as_str())?.place, self.node(job, child.as_str())?.place))
    }

    /// Forgets the first tasks of a job, `most` at most, and the job itself when it has none left.
    pub fn forget(&mut self, job: JobId, most: usize) {
        let places: Vec<_> = self.nodes(job).map(|node| (job, node.place)).take(most).collect();
        places.iter().for_each(|place| drop(self.tasks.remove(place)));
        if self.nodes(job).next().is_none() {
            self.jobs.retain(|_, kept| kept.id != job);
        }
    }

    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.jobs.values()
    }

    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.values().rev().find(|job| job.id == id)
    }

    /// By place.
    pub fn nodes(&self, job: JobId) -> impl Iterator<Item = &Node> {
        self.tasks.range((job, 0)..=(job, u32::MAX)).map(|(_, node)| node)
    }

    pub fn node(&self, job: JobId, task: &str) -> Option<&Node> {
        self.nodes(job).find(|node| node.task.as_str() == task)
    }

    /// By place.
    pub fn children(&self, job: JobId, parent: &str) -> impl Iterator<Item = &Name> {
        let place = self.node(job, parent).map(|node| node.place);
        let edges = place.into_iter().flat_map(move |place| self.edges.range((job, place, 0)..=(job, place, u32::MAX)));
        edges.filter_map(|(job, _, child)| self.tasks.get(&(*job, *child)).map(|node| &node.task))
    }
}

#[async_trait]
impl JobStore for MemoryStore {
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.state.lock().jobs.get(id).cloned())
    }

    async fn find_jobs(&self, digits: &str, max: usize) -> Result<Vec<JobId>, StoreError> {
        let state = self.state.lock();
        let fits = |id: &JobId| {
            let text = id.to_string();
            text.starts_with(digits) || text.ends_with(digits)
        };
        Ok(state.jobs.all().rev().map(|job| job.id).filter(fits).take(max).collect())
    }

    async fn jobs(&self, query: JobQuery) -> Result<Vec<Job>, StoreError> {
        let state = self.state.lock();
        let listed = |job: &&Job| query.wants(job.status) && query.owner.as_ref().is_none_or(|owner| job.created_by == *owner);
        let newest_first = state.jobs.all().rev();
        let before =
            newest_first.skip_while(|job| query.after.is_some_and(|after| job.id != after)).skip(usize::from(query.after.is_some()));
        Ok(before.filter(listed).take(query.limit).cloned().collect())
    }

    async fn nodes(&self, job: JobId, after_place: Option<u32>, limit: usize) -> Result<Vec<Node>, StoreError> {
        let state = self.state.lock();
        let opening = state.jobs.get(job).and_then(|job| job.opening);
        let after = state.jobs.nodes(job).filter(|node| after_place.is_none_or(|after| node.place > after));
        let opened = after.filter(|node| node.phase != Phase::Staged || opening == Some(node.batch));
        let mut bytes = 0;
        let page = opened.take(limit).take_while(|node| {
            let fits = bytes < PAGE_BYTES;
            bytes += [&node.input, &node.output].into_iter().map(held).sum::<usize>();
            fits
        });
        Ok(page.cloned().collect())
    }

    async fn active(&self, job: JobId, after_place: Option<u32>, max: usize) -> Result<Vec<(u32, ExecutionId)>, StoreError> {
        let state = self.state.lock();
        let after = state.jobs.nodes(job).filter(|node| after_place.is_none_or(|after| node.place > after));
        let active = after.filter(|node| node.phase == Phase::Active).filter_map(|node| Some((node.place, node.execution?)));
        Ok(active.take(max).collect())
    }

    async fn node(&self, job: JobId, task: &str) -> Result<Option<Node>, StoreError> {
        Ok(self.state.lock().jobs.node(job, task).cloned())
    }

    async fn outputs(&self, job: JobId, tasks: &[Name]) -> Result<Vec<Option<Payload>>, StoreError> {
        let state = self.state.lock();
        Ok(tasks.iter().map(|task| state.jobs.node(job, task.as_str())?.output.clone()).collect())
    }

    async fn attention(&self, max: usize) -> Result<Vec<JobId>, StoreError> {
        Ok(self.state.lock().jobs.all().filter(|job| job.needs_attention()).map(|job| job.id).take(max).collect())
    }

    async fn staged_before(&self, at: UnixMs, max: usize) -> Result<Vec<JobId>, StoreError> {
        let staged = |job: &&Job| job.status == JobStatus::Staged && job.created_at < at;
        Ok(self.state.lock().jobs.all().filter(staged).map(|job| job.id).take(max).collect())
    }
}

/// How many bytes of text data of a task is.
fn held(payload: &Option<Payload>) -> usize {
    match payload {
        Some(Payload::Inline(value)) => value.to_string().len(),
        _ => 0,
    }
}
