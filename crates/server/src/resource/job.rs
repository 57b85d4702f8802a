//! Jobs: submit, look, extend, resume, cancel.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode};
use runvoy_engine::{Engine, JobFilter, JobRequest, RunRequest as EngineRun, TaskRequest as EngineTask};
use runvoy_model::job::{self as model, Node, Payload, Phase};
use runvoy_model::role::Action;
use runvoy_wire::{
    AddTasksRequest, AddTasksResponse, Code, CreateJobRequest, CreateJobResponse, Job, JobResponse, JobStatus, Reason, RunRequest, Task,
    TaskCounts, TaskDefaults, TaskRequest, TaskStatus,
};

use super::run;
use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, number, text};
use crate::query::NEXT_CURSOR;
use crate::route::{Routes, Rule};
use crate::view;

const MOST_LISTED: u64 = 1_000;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("createJob", "Submit a DAG of tasks")
        .idempotent()
        .takes::<CreateJobRequest>(true)
        .gives::<CreateJobResponse>(201, "All of it is recorded, durably; what waits for nothing is on its way")
        .refuses(&[Code::RateLimited]);
    routes.post("/api/v1/jobs", Rule::Key(Action::Run), operation, create);
    let operation = Operation::new("listJobs", "Jobs without their tasks, newest first")
        .query("limit", number(1, Some(MOST_LISTED)), "At most so many; 50 where absent")
        .query("status", text(), "Only these statuses, with commas between them")
        .query("cursor", text(), "Go on after this one")
        .gives_array::<Job>(200, "The jobs");
    routes.get("/api/v1/jobs", Rule::Key(Action::Read), operation, list);
    let named = |operation: Operation| operation.path("id", text(), "The job").refuses(&[Code::NotFound]);
    let operation = named(Operation::new("getJob", "A job with the state of every task"))
        .query("tasks", number(0, Some(1)), "0: only the counts")
        .gives::<Job>(200, "The job");
    routes.get("/api/v1/jobs/{id}", Rule::Key(Action::Read), operation, show);
    let operation = named(Operation::new("addTasks", "More tasks of a job that is open"))
        .takes::<AddTasksRequest>(true)
        .gives::<AddTasksResponse>(200, "They are part of it")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/jobs/{id}/tasks", Rule::Key(Action::Run), operation, add_tasks);
    let operation = named(Operation::new("resumeJob", "Failed and blocked tasks again"))
        .gives::<JobResponse>(200, "It goes on")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/jobs/{id}/resume", Rule::Key(Action::Run), operation, resume);
    let operation = named(Operation::new("cancelJob", "Nothing more of it runs; what runs is killed"))
        .gives::<JobResponse>(200, "It is cancelled")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/jobs/{id}/cancel", Rule::Key(Action::Kill), operation, cancel);
}

async fn create(call: Call) -> Result<Response<Body>, Fault> {
    let request: CreateJobRequest = call.large_json().await?.ok_or_else(|| Fault::invalid("body", "must be a job with tasks"))?;
    let key = match (call.idempotency_key()?, request.request_id.clone()) {
        (Some(header), Some(body)) if header != body => {
            return Err(Fault::invalid("requestId", "differs from the Idempotency-Key: they are the same thing"));
        }
        (header, body) => header.or(body),
    };
    let (name, concurrency) = (request.name, request.concurrency);
    let tasks = tasks(request.tasks, request.defaults.as_ref())?;
    let request = JobRequest { name, request_key: key, defaults: EngineRun::default(), concurrency, tasks };
    let submitted = call.engine().submit_job(call.caller()?, &request).await?;
    let response = CreateJobResponse {
        job_id: submitted.job.id.to_string(),
        total_tasks: u64::from(submitted.job.counts.total),
        root_tasks: submitted.roots.len() as u64,
    };
    Ok(answer::json(StatusCode::CREATED, &response))
}

/// The tasks with what holds for all of them, as the engine takes them.
fn tasks(tasks: Vec<TaskRequest>, defaults: Option<&TaskDefaults>) -> Result<Vec<EngineTask>, Fault> {
    let take = |task: TaskRequest| {
        let field = format!("tasks.{}.command", task.task_id.escape_default());
        let run: RunRequest = task.run_request(defaults).ok_or_else(|| Fault::invalid(&field, "is missing, and so is a default"))?;
        Ok(EngineTask { run: run::checked(run, None)?, task_id: task.task_id, name: task.name, depends_on: task.depends_on, input: task.input })
    };
    tasks.into_iter().map(take).collect()
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let limit = query.number("limit", 1..=MOST_LISTED)?.unwrap_or(50);
    let words = query.text("status")?.into_iter().flat_map(|words| words.split(','));
    let unknown = || Fault::invalid("status", "must be among RUNNING, FAILED, COMPLETED and CANCELLED");
    let statuses = words.map(|word| model::JobStatus::parse(word.trim()).ok_or_else(unknown)).collect::<Result<Vec<_>, _>>()?;
    let filter = JobFilter { statuses, after: query.parsed("cursor")?, limit: usize::try_from(limit).unwrap_or(50) };
    let jobs = call.engine().jobs(call.caller()?, &filter).await?;
    let shown: Vec<Job> = jobs.iter().map(|job| shown(job, Vec::new())).collect();
    let mut response = answer::json(StatusCode::OK, &shown);
    if let Some(last) = jobs.last().filter(|_| jobs.len() == filter.limit) {
        response.headers_mut().insert(NEXT_CURSOR, HeaderValue::from_str(&last.id.to_string()).expect("hex digits are ASCII"));
    }
    Ok(response)
}

async fn show(call: Call) -> Result<Response<Body>, Fault> {
    let job = call.engine().job(call.caller()?, call.id()).await?;
    let wanted = call.query()?.number("tasks", 0..=1)? != Some(0);
    let tasks = if wanted { all_tasks(call.engine(), &job).await? } else { Vec::new() };
    Ok(answer::json(StatusCode::OK, &shown(&job, tasks)))
}

async fn all_tasks(engine: &Engine, job: &model::Job) -> Result<Vec<Task>, Fault> {
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let page = engine.job_tasks(job, after).await?;
        let Some(last) = page.last() else { return Ok(tasks) };
        after = Some(last.place);
        for node in &page {
            tasks.push(task(engine, node).await?);
        }
    }
}

async fn task(engine: &Engine, node: &Node) -> Result<Task, Fault> {
    let execution = match node.execution {
        Some(id) => engine.ports().store.get(id).await.map_err(runvoy_engine::EngineError::from)?,
        None => None,
    };
    let inline = |payload: &Option<Payload>| match payload {
        Some(Payload::Inline(value)) => Some(value.clone()),
        _ => None,
    };
    let status = match (&execution, node.phase) {
        (Some(execution), Phase::Active | Phase::Completed | Phase::Failed) => TaskStatus::Execution(view::status_word(execution.status)),
        _ => TaskStatus::Waiting,
    };
    Ok(Task {
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
        attempt: execution.as_ref().map_or(0, |execution| execution.attempt),
        end_reason: execution.as_ref().and_then(view::end_reason),
        waiting_for: execution.as_ref().and_then(|execution| view::waiting_for(engine, execution)),
        started_at: execution.as_ref().and_then(|execution| execution.started_at).map(Into::into),
        completed_at: execution.as_ref().and_then(|execution| execution.completed_at).map(Into::into),
    })
}

fn shown(job: &model::Job, tasks: Vec<Task>) -> Job {
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
        tasks,
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
    let request: AddTasksRequest = call.large_json().await?.ok_or_else(|| Fault::invalid("body", "must hold tasks"))?;
    let tasks = tasks(request.tasks, request.defaults.as_ref())?;
    let added = tasks.len() as u64;
    let request = JobRequest { tasks, ..JobRequest::default() };
    let job = call.engine().add_tasks(call.caller()?, call.id(), &request).await?;
    let response = AddTasksResponse { job_id: job.id.to_string(), added_tasks: added, total_tasks: u64::from(job.counts.total) };
    Ok(answer::json(StatusCode::OK, &response))
}

async fn resume(call: Call) -> Result<Response<Body>, Fault> {
    let job = call.engine().resume_job(call.caller()?, call.id()).await?;
    Ok(moved(&job, "its failed and blocked tasks run again"))
}

async fn cancel(call: Call) -> Result<Response<Body>, Fault> {
    let job = call.engine().cancel_job(call.caller()?, call.id()).await?;
    Ok(moved(&job, "nothing more of it starts; what runs is being ended"))
}

fn moved(job: &model::Job, message: &str) -> Response<Body> {
    let response = JobResponse { job_id: job.id.to_string(), status: word(job.status), message: message.to_owned() };
    answer::json(StatusCode::OK, &response)
}
