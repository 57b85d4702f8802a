//! Jobs: submit, look, extend, resume, cancel.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use runvoy_engine::{Engine, EngineError, JobFilter, JobRequest, TaskChange as EngineChange, TaskRequest as EngineTask, command_line};
use runvoy_model::execution::Execution;
use runvoy_model::id::JobId;
use runvoy_model::job::{self as model, MOST_TASKS, Node, Payload, Phase, task_field};
use runvoy_model::role::Action;
use runvoy_model::status::WaitingFor;
use runvoy_wire::{
    AddTasksRequest, AddTasksResponse, Code, CreateJobRequest, CreateJobResponse, Job, JobResponse, JobStatus, ResumeJobRequest, Rfc3339,
    RunRequest, Task, TaskChange, TaskCounts, TaskDefaults, TaskRequest, TaskRevision, TaskStatus, check_shape,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::run;
use crate::answer::{self, Pieces};
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{ABOUT_CURSOR, ABOUT_NEXT_CURSOR, Operation, id, list_of, number, part_of_id, text, time};
use crate::pager::MOST_LISTED;
use crate::query::NEXT_CURSOR;
use crate::route::{Routes, Rule};
use crate::view;
use crate::vigil::Vigil;

const DEFAULT_LIMIT: u64 = 50;
/// The largest job that is taken.
const MOST_JOB_BYTES: usize = 16 << 20;
/// What its tasks may come to when the defaults are part of each.
const MOST_EXPANDED_BYTES: u64 = 64 << 20;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("createJob", "Submit a job")
        .about(
            "Submits a graph of tasks. The response is sent when all of it is recorded durably; \
             tasks without dependencies are queued at once.",
        )
        .idempotent()
        .takes::<CreateJobRequest>(true)
        .gives::<CreateJobResponse>(201, "The job was recorded")
        .refuses(&[Code::RateLimited]);
    routes.post("/api/v1/jobs", Rule::Key(Action::Run), operation, create);
    let operation = Operation::new("listJobs", "List jobs")
        .about("Lists the jobs that you may see, newest first, without their tasks.")
        .query("limit", number(1, Some(MOST_LISTED)), "The maximum number of jobs; default: 50")
        .query("status", list_of(&JobStatus::ALL.map(JobStatus::as_str)), "Only jobs with one of these statuses, separated by commas")
        .query("user", text(), "Only jobs that this user submitted")
        .query("since", time(), "Only jobs submitted at this time or later")
        .query("cursor", id(), ABOUT_CURSOR)
        .header("X-Next-Cursor", ABOUT_NEXT_CURSOR)
        .gives_array::<Job>(200, "The jobs");
    routes.get("/api/v1/jobs", Rule::Key(Action::Read), operation, list);
    let named = |operation: Operation| {
        operation
            .path("id", part_of_id(), "The job's id, or six or more digits that begin or end it and no other id")
            .refuses(&[Code::NotFound, Code::Conflict])
    };
    let operation = named(Operation::new("getJob", "Get a job"))
        .about("Returns the job with the status of every task.")
        .query("tasks", number(0, Some(1)), "0: leave the tasks out and return only their counts")
        .gives::<Job>(200, "The job");
    routes.get("/api/v1/jobs/{id}", Rule::Key(Action::Read), operation, show);
    let operation = named(Operation::new("addTasks", "Add tasks to a job"))
        .about(
            "The job must not have finished. The new tasks may depend on each other and on tasks \
             that the job already has.",
        )
        .idempotent()
        .takes::<AddTasksRequest>(true)
        .gives::<AddTasksResponse>(200, "The tasks were added");
    routes.post("/api/v1/jobs/{id}/tasks", Rule::Key(Action::Run), operation, add_tasks);
    let operation = named(Operation::new("resumeJob", "Resume a failed job"))
        .about(
            "Runs its failed tasks again, and the tasks that waited for them. Tasks that \
             completed are not run again. The body can change failed and waiting tasks.",
        )
        .idempotent()
        .takes::<ResumeJobRequest>(false)
        .gives::<JobResponse>(200, "The job runs again");
    routes.post("/api/v1/jobs/{id}/resume", Rule::Key(Action::Run), operation, resume);
    let operation = named(Operation::new("cancelJob", "Cancel a job"))
        .about("Kills its running tasks and starts no more. A cancelled job cannot be resumed.")
        .gives::<JobResponse>(200, "The job was cancelled");
    routes.post("/api/v1/jobs/{id}/cancel", Rule::Key(Action::Kill), operation, cancel);
}

async fn create(call: Call) -> Result<Response<Body>, Fault> {
    let request: CreateJobRequest = body(&call).await?;
    let key = key(&call, request.request_id)?;
    check(&request.tasks, request.defaults.as_ref(), |_| false)?;
    let (name, concurrency) = (request.name, request.concurrency);
    let request = JobRequest { name, request_key: key, concurrency, tasks: tasks(request.tasks, request.defaults.as_ref())? };
    let total_tasks = request.tasks.len() as u64;
    let submitted = call.engine().submit_job(call.caller()?, request).await?;
    let response = CreateJobResponse { job_id: submitted.job.id.to_string(), total_tasks, root_tasks: submitted.roots as u64 };
    Ok(answer::json(StatusCode::CREATED, &response))
}

async fn body<T: DeserializeOwned>(call: &Call) -> Result<T, Fault> {
    call.json_within(MOST_JOB_BYTES).await?.ok_or_else(|| Fault::invalid("body", "must be a JSON object with tasks"))
}

/// The client's own key for the job, in the header, in the body or in both.
fn key(call: &Call, request_id: Option<String>) -> Result<Option<String>, Fault> {
    match (call.idempotency_key()?, request_id) {
        (Some(header), Some(body)) if header != body => {
            Err(Fault::invalid("requestId", "differs from the Idempotency-Key: both are the client's own key for this request"))
        }
        (header, body) => Ok(header.or(body)),
    }
}

/// Whether the tasks are worth expanding: the defaults are copied into each of them, so that a small body may become a large job.
fn check(tasks: &[TaskRequest], defaults: Option<&TaskDefaults>, known: impl Fn(&str) -> bool) -> Result<(), Fault> {
    let count = tasks.len();
    if count > MOST_TASKS {
        return Err(Fault::invalid("tasks", format!("a job needs 1 to {MOST_TASKS} tasks, not {count}")));
    }
    if let Some(defaults) = defaults {
        let each = json_bytes(defaults);
        if each.saturating_mul(count as u64).saturating_add(json_bytes(tasks)) > MOST_EXPANDED_BYTES {
            let message = format!(
                "{each} bytes for each of {count} tasks come to more than {} MiB: give large data as a file or secret",
                MOST_EXPANDED_BYTES >> 20
            );
            return Err(Fault::invalid("defaults", message));
        }
    }
    let shape: Vec<(&str, Vec<&str>)> =
        tasks.iter().map(|task| (task.task_id.as_str(), task.depends_on.iter().map(String::as_str).collect())).collect();
    check_shape(&shape, known).map_err(|error| Fault::invalid("tasks", error.to_string()))
}

/// How long something is as JSON.
fn json_bytes(value: &(impl Serialize + ?Sized)) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("wire types are plain data");
    count.0
}

/// The tasks with what holds for all of them, as the engine takes them.
fn tasks(tasks: Vec<TaskRequest>, defaults: Option<&TaskDefaults>) -> Result<Vec<EngineTask>, Fault> {
    let take = |(index, task): (usize, TaskRequest)| {
        let field = task_field(index, "command");
        let run: RunRequest = task.run_request(defaults).ok_or_else(|| Fault::invalid(&field, "is missing, and `defaults` has none"))?;
        Ok(EngineTask {
            run: run::checked(run, None)?,
            task_id: task.task_id,
            name: task.name,
            depends_on: task.depends_on,
            input: task.input,
        })
    };
    tasks.into_iter().enumerate().map(take).collect()
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let words = query.words("status")?;
    let unknown = || Fault::invalid("status", "must be RUNNING, FAILED, COMPLETED or CANCELLED");
    let known = |word: &str| model::JobStatus::parse(word).filter(|status| *status != model::JobStatus::Staged);
    let filter = JobFilter {
        statuses: words.into_iter().map(|word| known(word).ok_or_else(unknown)).collect::<Result<Vec<_>, _>>()?,
        user: query.text("user")?.map(str::to_owned),
        since: query.parsed::<Rfc3339>("since")?.map(Into::into),
        after: query.parsed("cursor")?,
        limit: usize::try_from(query.number("limit", 1..=MOST_LISTED)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX),
    };
    let (jobs, next) = call.engine().jobs(call.caller()?, filter).await?;
    let mut response = answer::json(StatusCode::OK, &jobs.iter().map(shown).collect::<Vec<_>>());
    if let Some(next) = next {
        response.headers_mut().insert(NEXT_CURSOR, HeaderValue::from_str(&next.to_string()).expect("hex digits are ASCII"));
    }
    Ok(response)
}

async fn show(call: Call) -> Result<Response<Body>, Fault> {
    let job = call.engine().job(call.caller()?, call.id()).await?;
    if call.query()?.number("tasks", 0..=1)? == Some(0) {
        return Ok(answer::json(StatusCode::OK, &shown(&job)));
    }
    let (engine, vigil) = (Arc::clone(call.engine()), Vigil::over(&call)?);
    let whole = Whole { engine, job: Some(Box::new(shown(&job))), id: job.id, after: None, begun: false, ended: false };
    Ok(answer::streamed(vigil, whole, answer::JSON).await?)
}

/// A job and all of its tasks, written page by page: what tasks gave may be large.
struct Whole {
    engine: Arc<Engine>,
    job: Option<Box<Job>>,
    id: JobId,
    after: Option<u32>,
    begun: bool,
    ended: bool,
}

impl Pieces for Whole {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.ended {
            return Ok(None);
        }
        let mut out = Vec::new();
        if let Some(job) = self.job.take() {
            serde_json::to_writer(&mut out, &job).expect("wire types are plain data");
            // The tasks are the last member.
            out.pop();
            out.extend_from_slice(b",\"tasks\":[");
        }
        let page = self.engine.job_tasks(self.id, self.after).await?;
        let mut executions = Vec::with_capacity(page.len());
        for id in page.iter().filter_map(|node| node.execution) {
            executions.extend(self.engine.ports().store.get(id).await?);
        }
        let bars = self.engine.bars(&executions).await;
        for node in &page {
            if std::mem::replace(&mut self.begun, true) {
                out.push(b',');
            }
            let execution = executions.iter().find(|execution| Some(execution.id) == node.execution);
            let waiting = execution.and_then(|execution| self.engine.waits_behind(&bars, execution));
            serde_json::to_writer(&mut out, &task(node, execution, waiting)).expect("wire types are plain data");
        }
        match page.last() {
            Some(last) => self.after = Some(last.place),
            None => {
                self.ended = true;
                out.extend_from_slice(b"]}");
            }
        }
        Ok(Some(out.into()))
    }
}

fn task(node: &Node, execution: Option<&Execution>, waiting: Option<WaitingFor>) -> Task {
    let inline = |payload: &Option<Payload>| match payload {
        Some(Payload::Inline(value)) => Some(value.clone()),
        _ => None,
    };
    let status = match (execution, node.phase) {
        (Some(execution), Phase::Active | Phase::Completed | Phase::Failed) => TaskStatus::Execution(view::stands(execution)),
        _ => TaskStatus::Waiting,
    };
    Task {
        task_id: node.task.to_string(),
        name: node.name.clone(),
        status,
        execution_id: node.execution.map(|id| id.to_string()),
        depends_on: node.depends_on.iter().map(ToString::to_string).collect(),
        input: inline(&node.input),
        output: inline(&node.output),
        output_bytes: match &node.output {
            Some(Payload::Blob { bytes, .. }) => Some(*bytes),
            _ => None,
        },
        attempt: execution.map_or(0, |execution| execution.attempt),
        end_reason: execution.and_then(view::end_reason),
        waiting_for: waiting.map(view::reason),
        started_at: execution.and_then(|execution| execution.started_at).map(Into::into),
        completed_at: execution.and_then(|execution| execution.completed_at).map(Into::into),
        revision: node.revision.as_ref().map(|revision| TaskRevision {
            generation: revision.generation,
            command: command_line(&revision.spec.command, revision.spec.args.as_deref()),
            original_command: command_line(&node.spec.command, node.spec.args.as_deref()),
        }),
    }
}

fn shown(job: &model::Job) -> Job {
    let counts = job.counts;
    Job {
        job_id: job.id.to_string(),
        name: job.name.clone(),
        request_id: job.request_key.clone(),
        status: word(job.status),
        created_at: job.created_at.into(),
        completed_at: job.completed_at.map(Into::into),
        created_by: job.created_by.clone(),
        concurrency: job.concurrency,
        total_tasks: u64::from(counts.total),
        task_counts: TaskCounts {
            waiting: u64::from(counts.staged + counts.waiting + counts.ready),
            running: u64::from(counts.active),
            completed: u64::from(counts.completed),
            failed: u64::from(counts.failed),
        },
        failed_task_id: job.failed_task.clone(),
        tasks: Vec::new(),
    }
}

const fn word(status: model::JobStatus) -> JobStatus {
    match status {
        model::JobStatus::Staged | model::JobStatus::Running => JobStatus::Running,
        model::JobStatus::Failed => JobStatus::Failed,
        model::JobStatus::Completed => JobStatus::Completed,
        model::JobStatus::Cancelled => JobStatus::Cancelled,
    }
}

async fn add_tasks(call: Call) -> Result<Response<Body>, Fault> {
    let request: AddTasksRequest = body(&call).await?;
    let new: HashSet<&str> = request.tasks.iter().map(|task| task.task_id.as_str()).collect();
    // Which tasks the job has is asked later: here only what these tasks say of each other can be wrong.
    check(&request.tasks, request.defaults.as_ref(), |task| !new.contains(task))?;
    let tasks = tasks(request.tasks, request.defaults.as_ref())?;
    let added = tasks.len() as u64;
    let request = JobRequest { request_key: call.idempotency_key()?, tasks, ..JobRequest::default() };
    let job = call.engine().add_tasks(call.caller()?, call.id(), request).await?;
    let response = AddTasksResponse { job_id: job.id.to_string(), added_tasks: added, total_tasks: u64::from(job.counts.total) };
    Ok(answer::json(StatusCode::OK, &response))
}

async fn resume(call: Call) -> Result<Response<Body>, Fault> {
    let request: ResumeJobRequest = call.json_within(MOST_JOB_BYTES).await?.unwrap_or_default();
    if request.tasks.len() > MOST_TASKS {
        return Err(Fault::invalid("tasks", format!("at most {MOST_TASKS}")));
    }
    let changes = request.tasks.into_iter().map(change).collect::<Result<Vec<_>, _>>()?;
    let key = call.idempotency_key()?;
    let job = call.engine().resume_job(call.caller()?, call.id(), &changes, key.as_deref()).await?;
    Ok(moved(&job, "resumed: its failed tasks, and the tasks that waited for them, run again"))
}

/// A change of a task as the engine takes it.
fn change(change: TaskChange) -> Result<EngineChange, Fault> {
    let seconds = |part: &str, value| run::seconds(&format!("tasks.{}.{part}", change.task_id.escape_default()), value);
    Ok(EngineChange {
        timeout: seconds("timeout", change.timeout)?,
        lock_wait: seconds("lock_wait", change.lock_wait)?,
        task_id: change.task_id,
        replace: change.replace,
        command: change.command,
        args: change.args,
        image: change.image,
        env: change.env,
        secrets: change.secrets,
        git_repo: change.git_repo,
        git_ref: change.git_ref,
        git_path: change.git_path,
        git_token: change.git_token,
        lock: change.lock,
        queue: change.queue,
        priority: change.priority.map(i64::from),
        labels: change.labels,
        worker_labels: change.worker_labels,
        terminal: change.terminal,
        retries: change.retries.map(i64::from),
    })
}

async fn cancel(call: Call) -> Result<Response<Body>, Fault> {
    let job = call.engine().cancel_job(call.caller()?, call.id()).await?;
    Ok(moved(&job, "cancelled: no further task starts, and running tasks are being killed"))
}

fn moved(job: &model::Job, message: &str) -> Response<Body> {
    let response = JobResponse { job_id: job.id.to_string(), status: word(job.status), message: message.to_owned() };
    answer::json(StatusCode::OK, &response)
}
