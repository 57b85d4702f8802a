//! Jobs as callers see them: submit, look, extend, resume, cancel. What a request says is checked task by task before anything is written; a large
//! job is staged in parts and opened by its last step, so that half a job never runs.

mod data;
mod request;

use std::sync::Arc;

use runvoy_model::change::Change;
use runvoy_model::command::{Kill, OpenJob, OpenTasks, Refusal, StageTasks, SubmitKey};
use runvoy_model::dag;
use runvoy_model::id::JobId;
use runvoy_model::job::{Counts, Job, JobStatus, MOST_TASKS, Node, Payload, Phase};
use runvoy_model::role::{Action, Reach};
use runvoy_ports::job::JobQuery;
use runvoy_ports::store::StoreError;
use sha2::{Digest, Sha256};

pub use self::request::{JobRequest, TaskRequest};
use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::request::checked_key;

/// So many tasks are written in one step.
const TASKS_AT_ONCE: usize = 100;
/// A page of tasks.
const PAGE: usize = 500;

/// A job that was submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmittedJob {
    /// The job.
    pub job: Job,
    /// Those of its tasks that wait for nothing.
    pub roots: Vec<String>,
}

/// Which jobs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only these statuses; empty means all.
    pub statuses: Vec<JobStatus>,
    /// Go on after this one.
    pub after: Option<JobId>,
    /// At most this many.
    pub limit: usize,
}

impl Engine {
    /// Submits a job. The answer is durable: all of it is recorded before this returns, and what can run is on its way.
    pub async fn submit_job(&self, caller: &Caller, request: &JobRequest) -> Result<SubmittedJob, EngineError> {
        caller.may(Action::Run)?;
        let _admitted = self.admission.enter()?;
        self.refuse_shared_uid().await?;
        let key = checked_key(request.request_key.clone())?;
        let id = JobId(self.ports.ids.next_id());
        let batch = self.batch();
        let nodes = self.checked_tasks(caller, request, (id, batch, 0), |_| false).await?;
        let fingerprint: [u8; 32] = Sha256::digest(serde_json::to_vec(request).expect("plain fields can be written as JSON")).into();
        let submit_key = key.as_ref().map(|key| SubmitKey { user: caller.email.clone(), key: key.clone(), fingerprint });
        let roots = nodes.iter().filter(|node| node.depends_on.is_empty()).map(|node| node.task.to_string()).collect();
        let job = self.new_job(caller, request, id, batch, nodes.len());
        let told = self.told(id, &nodes).await?;
        let rest = self.stage(caller, id, Some(&job), nodes).await?;
        let open = OpenJob { job, nodes: rest, told, key: submit_key };
        let (job, repeated) = self.ports.store.open_job(self.user_step(caller, "jobs.create"), open).await?;
        if repeated {
            // What was staged under the new id is forgotten by the dispatcher's sweep.
            let roots = self.root_tasks(&job).await?;
            return Ok(SubmittedJob { job, roots });
        }
        self.moved(&job);
        Ok(SubmittedJob { job, roots })
    }

    fn new_job(&self, caller: &Caller, request: &JobRequest, id: JobId, batch: u64, tasks: usize) -> Job {
        Job {
            id,
            name: request.name.clone(),
            request_key: request.request_key.clone(),
            created_by: caller.email.clone(),
            created_by_request_id: caller.request_id.clone(),
            modified_by_request_id: caller.request_id.clone(),
            created_at: self.now(),
            status: JobStatus::Running,
            completed_at: None,
            concurrency: request.concurrency,
            generation: 1,
            opening: Some(batch),
            resuming: false,
            counts: Counts { total: u32::try_from(tasks).unwrap_or(u32::MAX), ..Counts::default() },
            failure_told: false,
            failed_task: None,
            attention: false,
            chain: runvoy_model::chain::ChainHead::default(),
            version: 0,
        }
    }

    /// Adds tasks to a job that is open.
    pub async fn add_tasks(&self, caller: &Caller, id: &str, request: &JobRequest) -> Result<Job, EngineError> {
        let job = self.reachable_job(caller, Action::Run, id).await?;
        if !job.status.is_open() {
            return Err(Refusal::JobClosed(job.id, job.status).into());
        }
        let known = self.task_names(job.id).await?;
        if known.len() + request.tasks.len() > MOST_TASKS {
            return Err(EngineError::invalid("tasks", format!("a job has at most {MOST_TASKS}")));
        }
        let batch = self.batch();
        let first = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let nodes = self.checked_tasks(caller, request, (job.id, batch, first), |task| known.contains(task)).await?;
        let tasks = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let told = self.told(job.id, &nodes).await?;
        let rest = self.stage(caller, job.id, None, nodes).await?;
        let open = OpenTasks { job: job.id, batch, tasks, nodes: rest, told };
        let job = self.ports.store.open_tasks(self.user_step(caller, "jobs.add-tasks"), open).await?;
        self.moved(&job);
        Ok(job)
    }

    /// Failed and blocked tasks again.
    pub async fn resume_job(&self, caller: &Caller, id: &str) -> Result<Job, EngineError> {
        let job = self.reachable_job(caller, Action::Run, id).await?;
        let job = self.ports.store.resume_job(self.user_step(caller, "jobs.resume"), job.id).await?;
        self.moved(&job);
        Ok(job)
    }

    /// Nothing more of it runs: what waits never will, what runs is killed.
    pub async fn cancel_job(&self, caller: &Caller, id: &str) -> Result<Job, EngineError> {
        let job = self.reachable_job(caller, Action::Kill, id).await?;
        let job = self.ports.store.cancel_job(self.user_step(caller, "jobs.cancel"), job.id).await?;
        self.kill_tasks(caller, job.id).await?;
        Ok(job)
    }

    async fn kill_tasks(&self, caller: &Caller, id: JobId) -> Result<(), EngineError> {
        let mut after = None;
        loop {
            let page = self.ports.jobs.nodes(id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.place);
            for execution in page.iter().filter(|node| node.phase == Phase::Active).filter_map(|node| node.execution) {
                let kill = Kill { execution, force: false };
                match self.ports.store.kill(self.user_step(caller, "jobs.cancel"), kill).await {
                    Ok(execution) => self.killed(&execution).await,
                    // It ended in the meantime.
                    Err(StoreError::Refused(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// One job that the caller may see.
    pub async fn job(&self, caller: &Caller, id: &str) -> Result<Job, EngineError> {
        self.reachable_job(caller, Action::Read, id).await
    }

    /// The tasks of a job that the caller may see, from a place on.
    pub async fn job_tasks(&self, job: &Job, after: Option<u32>) -> Result<Vec<Node>, EngineError> {
        Ok(self.ports.jobs.nodes(job.id, after, PAGE).await?)
    }

    /// One task of a job.
    pub async fn job_task(&self, job: &Job, task: &str) -> Result<Node, EngineError> {
        let node = self.ports.jobs.node(job.id, task).await?;
        node.ok_or_else(|| EngineError::NotFound { what: format!("task {}", task.escape_default()) })
    }

    /// Jobs that the caller may see, newest first.
    pub async fn jobs(&self, caller: &Caller, filter: &JobFilter) -> Result<Vec<Job>, EngineError> {
        let owner = match caller.may(Action::Read)? {
            Reach::Own => Some(caller.email.clone()),
            _ => None,
        };
        let query = JobQuery { owner, statuses: filter.statuses.clone(), after: filter.after, limit: filter.limit };
        Ok(self.ports.jobs.jobs(query).await?)
    }

    async fn reachable_job(&self, caller: &Caller, action: Action, text: &str) -> Result<Job, EngineError> {
        let reach = caller.may(action)?;
        let missing = || EngineError::NotFound { what: format!("job {}", text.escape_default()) };
        let id: JobId = text.parse().map_err(|_| missing())?;
        let job = self.ports.jobs.job(id).await?.filter(|job| job.status != JobStatus::Staged).ok_or_else(missing)?;
        let owns = job.created_by == caller.email;
        // Running something in somebody's job is running it as them: only who may see everything may.
        let reaches = owns || matches!(reach, Reach::All) && caller.may(Action::Kill).is_ok_and(|kill| kill == Reach::All);
        let reads = matches!(action, Action::Read) && matches!(reach, Reach::All);
        if owns || reaches || reads { Ok(job) } else { Err(missing()) }
    }

    async fn task_names(&self, id: JobId) -> Result<std::collections::HashSet<String>, EngineError> {
        let (mut names, mut after) = (std::collections::HashSet::new(), None);
        loop {
            let page = self.ports.jobs.nodes(id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(names) };
            after = Some(last.place);
            names.extend(page.iter().filter(|node| node.phase != Phase::Staged).map(|node| node.task.to_string()));
        }
    }

    async fn root_tasks(&self, job: &Job) -> Result<Vec<String>, EngineError> {
        let (mut roots, mut after) = (Vec::new(), None);
        loop {
            let page = self.ports.jobs.nodes(job.id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(roots) };
            after = Some(last.place);
            roots.extend(page.iter().filter(|node| node.depends_on.is_empty()).map(|node| node.task.to_string()));
        }
    }

    /// The tasks of a request, checked and planned one by one, as they will be written.
    async fn checked_tasks(
        &self,
        caller: &Caller,
        request: &JobRequest,
        (job, batch, first): (JobId, u64, u32),
        known: impl Fn(&str) -> bool,
    ) -> Result<Vec<Node>, EngineError> {
        request.check()?;
        let shape: Vec<(&str, Vec<&str>)> = request
            .tasks
            .iter()
            .map(|task| (task.task_id.as_str(), task.depends_on.iter().map(String::as_str).collect()))
            .collect();
        dag::check(&shape, known).map_err(|error| EngineError::invalid("tasks", error.to_string()))?;
        let mut nodes = Vec::with_capacity(request.tasks.len());
        for (place, task) in (first..).zip(&request.tasks) {
            let about = |error| in_task(error, &task.task_id);
            let plan = self.plan(caller, &task.run(&request.defaults)).await.map_err(about)?;
            if !plan.verdict.allowed {
                let decision = plan.verdict.decisions.into_iter().next();
                let (rule, why) = decision.map_or((None, "no rule allows it".to_owned()), |decision| (decision.rule, decision.why));
                let why = format!("task {}: {why}", task.task_id);
                let denied = Change::NoteDenied(runvoy_model::change::Denied { email: caller.email.clone(), why: why.clone() });
                self.ports.store.change(self.user_step(caller, "jobs.create"), denied, None).await?;
                return Err(EngineError::Denied { rule, why });
            }
            let input = match &task.input {
                Some(input) => Some(self.payload(input).await?),
                None => None,
            };
            nodes.push(task.node((job, batch, place), plan.spec, input));
        }
        Ok(nodes)
    }

    /// Writes what does not fit into the opening step; gives back what does.
    async fn stage(&self, caller: &Caller, id: JobId, begins: Option<&Job>, mut nodes: Vec<Node>) -> Result<Vec<Node>, EngineError> {
        let mut begins = begins.map(|job| Box::new(job.clone()));
        while nodes.len() > TASKS_AT_ONCE {
            let rest = nodes.split_off(TASKS_AT_ONCE);
            let stage = StageTasks { job: id, begins: begins.take(), nodes };
            self.ports.store.stage_tasks(self.user_step(caller, "jobs.stage"), stage).await?;
            nodes = rest;
        }
        Ok(nodes)
    }

    /// What the event tells of the tasks: all of them, or where they lie.
    async fn told(&self, id: JobId, nodes: &[Node]) -> Result<Payload, EngineError> {
        let tasks: Vec<serde_json::Value> = nodes.iter().map(data::told).collect();
        let _ = id;
        self.payload(&serde_json::Value::Array(tasks)).await
    }

    fn batch(&self) -> u64 {
        let random = self.ports.ids.random();
        // SQLite's integers have a sign.
        u64::from_be_bytes(random[..8].try_into().expect("eight bytes")) >> 1
    }

    /// Something of a job may be ready, and more may be to do.
    pub(crate) fn moved(&self, job: &Job) {
        self.hub.work();
        if job.attention {
            self.dispatcher.notify_one();
        }
    }

    /// The dispatcher's signal.
    pub(crate) fn dispatcher(self: &Arc<Self>) -> &tokio::sync::Notify {
        &self.dispatcher
    }
}

/// An error of one task names it.
fn in_task(error: EngineError, task: &str) -> EngineError {
    match error {
        EngineError::Invalid { field, message } => EngineError::invalid(format!("tasks.{}.{field}", task.escape_default()), message),
        other => other,
    }
}
