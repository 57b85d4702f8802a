//! Jobs as callers see them: submit, look, extend, resume, cancel. What a request says is checked task by task before anything is written; a large
//! job is staged in parts and opened by its last step, so that half a job never runs.

mod data;
mod input;
mod reach;
mod request;
mod revise;

use std::collections::HashSet;

use runvoy_model::chain::ChainHead;
use runvoy_model::command::{OpenJob, OpenTasks, Refusal, ReviseJob, StageTasks, SubmitKey};
use runvoy_model::digest;
use runvoy_model::event::{Entity, EventType};
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Counts, Job, JobStatus, MOST_TASKS, Node, Payload, fits_inline, task_field};
use runvoy_model::json;
use runvoy_model::role::{Action, Reach};
use runvoy_model::spec::Spec;
use runvoy_model::step::{Actor, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::job::JobQuery;
use runvoy_ports::store::EventQuery;

pub use self::request::{JobRequest, TaskRequest};
pub use self::revise::TaskChange;
use crate::Engine;
use crate::access::Caller;
use crate::backlog;
use crate::error::{EngineError, NOTHING_CHANGED};
use crate::plan::Plan;
use crate::repeat::submit_key;
use crate::request::RunRequest;
use crate::subject::Subject;

/// So many tasks of a cancelled job are killed before the next job has its turn, and so many of them at once.
const KILLS_IN_TURN: usize = 256;
const KILLS_AT_ONCE: usize = 32;
/// A page of tasks.
const PAGE: usize = 100;

/// A job that was submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmittedJob {
    /// The job.
    pub job: Job,
    /// How many of its tasks wait for nothing.
    pub roots: usize,
}

/// Which jobs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only these statuses; empty means all.
    pub statuses: Vec<JobStatus>,
    /// Only those that this user submitted.
    pub user: Option<String>,
    /// Only those submitted at this time or later.
    pub since: Option<UnixMs>,
    /// Go on after this one.
    pub after: Option<JobId>,
    /// At most this many.
    pub limit: usize,
}

impl Engine {
    /// Submits a job. The answer is durable: all of it is recorded before this returns, and what can run is on its way.
    pub async fn submit_job(&self, caller: &Caller, mut request: JobRequest) -> Result<SubmittedJob, EngineError> {
        const ACTION: &str = "jobs.create";
        caller.may(Action::Run)?;
        let key = submit_key(caller, request.request_key.as_deref(), ACTION, &request)?;
        if let Some(job) = self.moved_before(key.as_ref()).await? {
            return Ok(SubmittedJob { roots: self.count_roots(job.id).await?, job });
        }
        let _admitted = self.admission.enter()?;
        self.refuse_shared_uid().await?;
        request.check(|_| false)?;
        let (id, batch) = (JobId(self.ports.ids.next_id()), self.batch());
        let nodes = self.planned(caller, ACTION, std::mem::take(&mut request.tasks), (id, batch)).await?;
        let roots = nodes.iter().filter(|node| node.depends_on.is_empty()).count();
        self.take_room(caller, &backlog::of_tasks(&nodes)).await?;
        let (told, digest) = (self.told(&nodes).await?, digest_of(&nodes));
        let subject = Subject::of_tasks(&nodes, None);
        let job = self.new_job(caller, request, id, batch, nodes.len());
        let rest = self.stage(caller, id, Some(&job), nodes).await?;
        let open = OpenJob { job, nodes: rest, told, digest, key };
        let step = self.about(self.user_step(caller, ACTION), &subject).await?;
        let (job, repeated) = self.ports.store.open_job(step, open).await?;
        if repeated {
            // Two came at once. What was staged under this id is forgotten by the dispatcher.
            return Ok(SubmittedJob { roots: self.count_roots(job.id).await?, job });
        }
        metrics::counter!("runvoy_jobs_submitted_total").increment(1);
        self.moved();
        Ok(SubmittedJob { job, roots })
    }

    fn new_job(&self, caller: &Caller, request: JobRequest, id: JobId, batch: u64, tasks: usize) -> Job {
        Job {
            id,
            name: request.name,
            request_key: request.request_key,
            created_by: caller.email.clone(),
            created_by_request_id: caller.request_id.clone(),
            modified_by_request_id: caller.request_id.clone(),
            created_at: self.now(),
            status: JobStatus::Running,
            completed_at: None,
            cancelled_by: None,
            concurrency: request.concurrency,
            generation: 1,
            opening: Some(batch),
            resuming: false,
            counts: Counts { total: u32::try_from(tasks).unwrap_or(u32::MAX), ..Counts::default() },
            places: 0,
            failure_told: false,
            failed_task: None,
            attention: false,
            unburied: None,
            chain: ChainHead::default(),
            version: 0,
        }
    }

    /// Adds tasks to a job that is open.
    pub async fn add_tasks(&self, caller: &Caller, id: &str, request: JobRequest) -> Result<Job, EngineError> {
        const ACTION: &str = "jobs.add-tasks";
        let job = self.job_to_move(caller, id).await?;
        let key = submit_key(caller, request.request_key.as_deref(), ACTION, &(job.id, &request))?;
        if let Some(job) = self.moved_before(key.as_ref()).await? {
            return Ok(job);
        }
        if !job.status.is_open() {
            return Err(Refusal::JobClosed(job.id, job.status).into());
        }
        if job.opening.is_some() {
            return Err(still_opening(job.id));
        }
        let _admitted = self.admission.enter()?;
        self.refuse_shared_uid().await?;
        let known = self.task_names(job.id).await?;
        request.check(|task| known.contains(task))?;
        if known.len() + request.tasks.len() > MOST_TASKS {
            let message = format!("a job has at most {MOST_TASKS} tasks, and this one has {}", known.len());
            return Err(EngineError::invalid("tasks", message));
        }
        let batch = self.batch();
        let nodes = self.planned(caller, ACTION, request.tasks, (job.id, batch)).await?;
        self.take_room(caller, &backlog::of_tasks(&nodes)).await?;
        let tasks = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let (told, digest) = (self.told(&nodes).await?, digest_of(&nodes));
        let subject = Subject::of_tasks(&nodes, None);
        let opened = async {
            let rest = self.stage(caller, job.id, None, nodes).await?;
            let open = OpenTasks { job: job.id, batch, tasks, nodes: rest, told, digest, key: key.clone() };
            let step = self.about(self.user_step(caller, ACTION), &subject).await?;
            Ok(self.ports.store.open_tasks(step, open).await?)
        };
        match opened.await {
            // The same request may have come twice at once: then this one is its repeat.
            Err(error @ EngineError::Conflict { .. }) => self.moved_before(key.as_ref()).await?.ok_or(error),
            opened => {
                self.moved();
                opened
            }
        }
    }

    /// Failed and blocked tasks again, some of them changed.
    pub async fn resume_job(&self, caller: &Caller, id: &str, changes: &[TaskChange], key: Option<&str>) -> Result<Job, EngineError> {
        const ACTION: &str = "jobs.resume";
        let job = self.job_to_move(caller, id).await?;
        if !changes.is_empty() {
            let key = submit_key(caller, key, ACTION, &(job.id, changes))?;
            return self.resume_changed(caller, ACTION, &job, changes, key).await;
        }
        let key = submit_key(caller, key, ACTION, &job.id)?;
        let job = self.ports.store.resume_job(self.user_step(caller, ACTION), job.id, key).await?;
        self.moved();
        Ok(job)
    }

    async fn resume_changed(
        &self,
        caller: &Caller,
        action: &str,
        job: &Job,
        changes: &[TaskChange],
        key: Option<SubmitKey>,
    ) -> Result<Job, EngineError> {
        if let Some(job) = self.moved_before(key.as_ref()).await? {
            return Ok(job);
        }
        if !job.status.is_open() {
            return Err(Refusal::JobClosed(job.id, job.status).into());
        }
        let _admitted = self.admission.enter()?;
        self.refuse_shared_uid().await?;
        let tasks = self.revisions(caller, action, job, changes).await?;
        let queues: Vec<_> = tasks.iter().map(|task| (task.spec.queue.clone(), 1)).collect();
        self.take_room(caller, &queues).await?;
        let subject = Subject::of_specs(tasks.iter().map(|task| &task.spec), None);
        let step = self.about(self.user_step(caller, action), &subject).await?;
        let revise = ReviseJob { job: job.id, tasks, key: key.clone() };
        match self.ports.store.revise_job(step, revise).await.map_err(EngineError::from) {
            // The same request may have come twice at once: then this one is its repeat.
            Err(error @ EngineError::Conflict { .. }) => self.moved_before(key.as_ref()).await?.ok_or(error),
            resumed => {
                self.moved();
                resumed
            }
        }
    }

    /// Nothing more of it begins, and what runs is killed. Of a job that was cancelled before this changes nothing.
    pub async fn cancel_job(&self, caller: &Caller, id: &str) -> Result<Job, EngineError> {
        let job = self.reachable_job(caller, Action::Kill, id).await?;
        if job.status == JobStatus::Cancelled {
            return Ok(job);
        }
        let job = self.ports.store.cancel_job(self.user_step(caller, "jobs.cancel"), job.id).await?;
        self.moved();
        Ok(job)
    }

    /// Kills some of what runs of a job that was cancelled, in the name of who cancelled it; `true` if there is more.
    pub(crate) async fn kill_tasks(&self, job: &Job) -> Result<bool, EngineError> {
        let by = job.cancelled_by.clone().unwrap_or_else(|| job.created_by.clone());
        let (mut after, mut killed) = (None, 0);
        while killed < KILLS_IN_TURN {
            let page = self.ports.jobs.active(job.id, after, KILLS_AT_ONCE).await?;
            let Some((place, _)) = page.last() else { return Ok(false) };
            after = Some(*place);
            let kills = futures_util::future::try_join_all(page.iter().map(|(_, id)| self.kill_task(&by, *id))).await?;
            killed += kills.into_iter().filter(|killed| *killed).count();
        }
        Ok(true)
    }

    /// Kills one task; `false` if somebody has asked for that before, or it has ended.
    async fn kill_task(&self, by: &str, id: ExecutionId) -> Result<bool, EngineError> {
        let Some(execution) = self.ports.store.get(id).await?.filter(|execution| execution.kill.is_none()) else { return Ok(false) };
        let step = Step { actor: Actor::User { email: by.to_owned() }, ..self.system_step("dispatcher") };
        match self.kill_one(step, &execution, false).await {
            Ok(_) => Ok(true),
            Err(EngineError::Ended(_) | EngineError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// One job that the caller may see, by its id or a part of it.
    pub async fn job(&self, caller: &Caller, id: &str) -> Result<Job, EngineError> {
        self.reachable_job(caller, Action::Read, id).await
    }

    /// A job that the caller may add to. Its tasks run in its owner's name, so that it takes the right to end them as well.
    async fn job_to_move(&self, caller: &Caller, id: &str) -> Result<Job, EngineError> {
        caller.may(Action::Run)?;
        self.reachable_job(caller, Action::Kill, id).await
    }

    /// A page of a job's tasks, after this place.
    pub async fn job_tasks(&self, job: JobId, after: Option<u32>) -> Result<Vec<Node>, EngineError> {
        Ok(self.ports.jobs.nodes(job, after, PAGE).await?)
    }

    /// One task of a job.
    pub async fn job_task(&self, job: &Job, task: &str) -> Result<Node, EngineError> {
        let node = self.ports.jobs.node(job.id, task).await?;
        node.ok_or_else(|| EngineError::NotFound { what: format!("task {} of job {}", task.escape_default(), job.id) })
    }

    /// Jobs that the caller may see, newest first, and after which one to go on.
    pub async fn jobs(&self, caller: &Caller, filter: JobFilter) -> Result<(Vec<Job>, Option<JobId>), EngineError> {
        let owner = match caller.may(Action::Read)? {
            Reach::All => filter.user,
            Reach::Own | Reach::None if filter.user.as_ref().is_some_and(|user| *user != caller.email) => {
                return Ok((Vec::new(), None));
            }
            Reach::Own | Reach::None => Some(caller.email.clone()),
        };
        let query = JobQuery { owner, statuses: filter.statuses, after: filter.after, limit: filter.limit + 1 };
        let mut jobs = self.ports.jobs.jobs(query).await?;
        let more = jobs.len() > filter.limit;
        jobs.truncate(filter.limit);
        let mut next = jobs.last().map(|job| job.id).filter(|_| more);
        if let Some(since) = filter.since {
            let found = jobs.len();
            jobs.retain(|job| job.created_at >= since);
            // What follows is older still.
            next = next.filter(|_| jobs.len() == found);
        }
        Ok((jobs, next))
    }

    /// The names of a job's tasks, of all that were opened.
    async fn task_names(&self, id: JobId) -> Result<HashSet<String>, EngineError> {
        let (mut names, mut after) = (HashSet::new(), None);
        loop {
            let page = self.ports.jobs.nodes(id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(names) };
            after = Some(last.place);
            names.extend(page.iter().map(|node| node.task.to_string()));
        }
    }

    /// How many tasks waited for nothing when the job was submitted.
    async fn count_roots(&self, id: JobId) -> Result<usize, EngineError> {
        let created = EventQuery { entity: Some(Entity::job(id)), kind: Some(EventType::JobCreated), limit: 1, ..EventQuery::default() };
        let created = self.ports.store.events(created).await?.pop();
        let total = created.and_then(|stored| stored.event.properties["totalTasks"].as_u64()).unwrap_or(0);
        let (mut roots, mut seen, mut after) = (0, 0, None);
        while seen < total {
            let page = self.ports.jobs.nodes(id, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.place);
            let first = page.iter().filter(|node| u64::from(node.place) < total);
            roots += first.filter(|node| node.depends_on.is_empty()).count();
            seen += page.len() as u64;
        }
        Ok(roots)
    }

    /// The tasks of a request as they will be written, each judged like a run. What was asked goes as it is planned: a large job is not held twice.
    async fn planned(&self, caller: &Caller, action: &str, tasks: Vec<TaskRequest>, place: (JobId, u64)) -> Result<Vec<Node>, EngineError> {
        let mut nodes = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.into_iter().enumerate() {
            let plan = self.plan_task(caller, &task.run(), |part| task_field(index, part)).await?;
            let spec = self.allowed(caller, action, &task.task_id, plan, place.0).await?;
            let input = match &task.input {
                Some(input) => Some(self.payload(input).await?),
                None => None,
            };
            nodes.push(task.node(place, spec, input));
        }
        Ok(nodes)
    }

    /// What a task would run; what is wrong of it is named with the task.
    async fn plan_task(&self, caller: &Caller, run: &RunRequest, path: impl Fn(&str) -> String) -> Result<Plan, EngineError> {
        self.plan(caller, run).await.map_err(|error| match error {
            EngineError::Invalid { field, message } => EngineError::invalid(path(&field), message),
            other => other,
        })
    }

    /// What a task runs, if the rules let it.
    async fn allowed(&self, caller: &Caller, action: &str, task: &str, plan: Plan, job: JobId) -> Result<Spec, EngineError> {
        if plan.verdict.allowed {
            return Ok(plan.spec);
        }
        let decision = plan.verdict.decisions.into_iter().next();
        let (rule, why) = decision.map_or((None, "no rule allows it".to_owned()), |decision| (decision.rule, decision.why));
        let why = format!("task {task}: {why}");
        self.note_denied(caller, action, &why, &Subject::of(&plan.spec, Some(job.to_string()))).await?;
        Err(EngineError::Denied { rule, why })
    }

    /// Writes what does not fit into the opening step; gives back what does.
    async fn stage(&self, caller: &Caller, id: JobId, begins: Option<&Job>, nodes: Vec<Node>) -> Result<Vec<Node>, EngineError> {
        let limits = self.ports.store.step_limits();
        let mut begins = begins.map(|job| Box::new(job.clone()));
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        for node in nodes {
            let size = data::size(&node);
            if !chunk.is_empty() && (chunk.len() == limits.tasks || bytes + size > limits.bytes) {
                let stage = StageTasks { job: id, begins: begins.take(), nodes: std::mem::take(&mut chunk) };
                self.ports.store.stage_tasks(Step { audit: None, ..self.user_step(caller, "jobs.stage") }, stage).await?;
                bytes = 0;
            }
            bytes += size;
            chunk.push(node);
        }
        Ok(chunk)
    }

    /// What the event tells of the tasks: all of them, or where they lie.
    async fn told(&self, nodes: &[Node]) -> Result<Payload, EngineError> {
        let mut text = vec![b'['];
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &data::told(node)).expect("a JSON value can be written");
        }
        text.push(b']');
        let opened_bytes = json::check(&text, None).map_or(usize::MAX, |checked| checked.opened_bytes);
        if fits_inline(text.len(), opened_bytes) {
            return Ok(Payload::Inline(serde_json::from_slice(&text).expect("it was just written")));
        }
        self.put_blob(text).await
    }

    /// A number that no other batch has. The store's integers have a sign.
    fn batch(&self) -> u64 {
        let random = self.ports.ids.random();
        u64::from_be_bytes(random[..8].try_into().expect("eight bytes")) >> 1
    }

    /// Something of a job may be ready, and there may be more to do.
    pub(crate) fn moved(&self) {
        self.hub.work();
        self.dispatcher.notify_one();
    }
}

/// What binds tasks to the event that opens them.
fn digest_of(nodes: &[Node]) -> Option<[u8; 32]> {
    Some(digest::of_tasks(nodes.iter().map(digest::of_task).collect()))
}

/// Tasks that were opened join the graph part by part; until all have, others must wait.
fn still_opening(id: JobId) -> EngineError {
    let message = format!("the tasks of job {id} that were added last are still being checked: try again in a moment");
    EngineError::conflict(message, NOTHING_CHANGED)
}
