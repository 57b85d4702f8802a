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
    for (path, id) in [("/api/v1/run", "runCommand"), ("/api/v1/executions", "createExecution")] {
        let operation = Operation::new(id, "Run a command")
            .idempotent()
            .takes::<RunRequest>(true)
            .refuses(&[Code::LockHeld, Code::RateLimited])
            .about(
                "Submits a command. The response is sent when the execution is recorded durably; \
                 it runs when a worker is free. `lock_wait` needs `lock`; `git_ref`, `git_path` \
                 and `git_token` need `git_repo`. Unknown fields are ignored, except those that \
                 look like a misspelled one. `?dry_run=1` is an older way to call \
                 `dryRunCommand`.",
            )
            .query(DRY_RUN.0, flag(), DRY_RUN.1)
            .gives::<RunResponse>(202, "The execution was recorded and will run")
            .gives::<DryRunResponse>(200, "With `dry_run`: what would happen; nothing was recorded");
        routes.post(path, Rule::Key(Action::Run), operation, run);
    }
    let operation = Operation::new("dryRunCommand", "Check a command without running it")
        .takes::<RunRequest>(true)
        .about(
            "Checks the same request as `runCommand` and says what would happen: whether rules \
             allow it, who holds its lock, where it would run and what it would cost. Nothing is \
             recorded or run.",
        )
        .gives::<DryRunResponse>(200, "What would happen");
    routes.post("/api/v1/run/dry-run", Rule::Key(Action::Run), operation, plan);
    let operation = Operation::new("rerunExecution", "Run an execution again")
        .about(
            "Submits the same command as a new execution of yours. Rules are evaluated for you, \
             now.",
        )
        .execution_id()
        .idempotent()
        .gives::<RunResponse>(202, "The new execution was recorded and will run")
        .refuses(&[Code::LockHeld, Code::RateLimited]);
    routes.post("/api/v1/executions/{id}/rerun", Rule::Key(Action::Run), operation, rerun);
}

async fn run(call: Call) -> Result<Response<Body>, Fault> {
    let request = requested(&call).await?;
    if dry_run::is_asked(&call)? {
        return planned(&call, &request).await;
    }
    let execution = call.engine().run(call.caller()?, &request).await?;
    submitted(&call, &execution)
}

async fn plan(call: Call) -> Result<Response<Body>, Fault> {
    let request = requested(&call).await?;
    planned(&call, &request).await
}

async fn requested(call: &Call) -> Result<engine::RunRequest, Fault> {
    let request: Option<RunRequest> = call.json_without_slips(&[DRY_RUN.0]).await?;
    let request = request.ok_or_else(|| Fault::invalid("body", "must be a JSON object with a command"))?;
    checked(request, call.idempotency_key()?)
}

async fn planned(call: &Call, request: &engine::RunRequest) -> Result<Response<Body>, Fault> {
    dry_run::respond(call, &call.engine().plan(call.caller()?, request).await?).await
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
        status: view::stands(execution),
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
