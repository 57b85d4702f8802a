//! Submitting: a new command, or the same one again; or asking what would come of it.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine as engine;
use runvoy_model::execution::Execution;
use runvoy_model::role::Action;
use runvoy_wire::{Code, DryRunResponse, RunRequest, RunResponse};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, flag};
use crate::resource::dry_run::{self, DRY_RUN};
use crate::route::{Routes, Rule};
use crate::view;

pub(super) fn add(routes: &mut Routes) {
    for (path, id) in [("/api/v1/run", "run"), ("/api/v1/executions", "createExecution")] {
        let operation = Operation::new(id, "Run a command")
            .idempotent()
            .query(DRY_RUN.0, flag(), DRY_RUN.1)
            .takes::<RunRequest>(true)
            .gives::<RunResponse>(202, "It is recorded, durably, and will run")
            .gives::<DryRunResponse>(200, "What would happen; nothing was recorded")
            .refuses(&[Code::LockHeld, Code::RateLimited]);
        routes.post(path, Rule::Key(Action::Run), operation, run);
    }
    let operation = Operation::new("rerun", "Run the same command again, as a new execution of the caller")
        .execution_id()
        .idempotent()
        .gives::<RunResponse>(202, "It is recorded, durably, and will run")
        .refuses(&[Code::LockHeld, Code::RateLimited]);
    routes.post("/api/v1/executions/{id}/rerun", Rule::Key(Action::Run), operation, rerun);
}

async fn run(call: Call) -> Result<Response<Body>, Fault> {
    let request: Option<RunRequest> = call.json_without_slips(&[DRY_RUN.0]).await?;
    let request = request.ok_or_else(|| Fault::invalid("body", "must be a JSON object with a command"))?;
    let request = checked(request, call.idempotency_key()?)?;
    if dry_run::is_asked(&call)? {
        return dry_run::respond(&call, &call.engine().plan(call.caller()?, &request).await?).await;
    }
    let execution = call.engine().run(call.caller()?, &request).await?;
    submitted(&call, &execution)
}

async fn rerun(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    let execution = call.engine().rerun(call.caller()?, call.id(), key).await?;
    submitted(&call, &execution)
}

/// The answer to whoever submitted.
pub(super) fn submitted(call: &Call, execution: &Execution) -> Result<Response<Body>, Fault> {
    let state = &call.state;
    let ticket = state.tickets.issue(call.caller()?, execution.id, state.engine.now());
    let response = RunResponse {
        execution_id: execution.id.to_string(),
        log_url: call.reached.log_url(state, execution.id),
        status: view::status_word(execution.status),
        command: execution.spec.command.clone(),
        image_id: execution.spec.image.clone(),
        websocket_url: Some(call.reached.stream_url(state, execution.id, &ticket)),
    };
    Ok(answer::json(StatusCode::ACCEPTED, &response))
}

pub(super) fn checked(request: RunRequest, idempotency_key: Option<String>) -> Result<engine::RunRequest, Fault> {
    Ok(engine::RunRequest {
        command: request.command,
        args: request.args,
        image: request.image,
        env: request.env,
        timeout: seconds("timeout", request.timeout)?,
        lock: request.lock,
        lock_wait: seconds("lock_wait", request.lock_wait)?,
        queue: request.queue,
        priority: request.priority.map(i64::from),
        labels: request.labels,
        worker_labels: request.worker_labels,
        terminal: request.terminal,
        retries: request.retries.map(i64::from),
        redeliveries: 0,
        secrets: request.secrets,
        git_repo: request.git_repo,
        git_ref: request.git_ref,
        git_path: request.git_path,
        git_token: request.git_token,
        rpc: None,
        idempotency_key,
    })
}

pub(super) fn seconds(field: &str, value: Option<u64>) -> Result<Option<i64>, Fault> {
    value.map(|value| i64::try_from(value).map_err(|_| Fault::invalid(field, "is too large"))).transpose()
}
