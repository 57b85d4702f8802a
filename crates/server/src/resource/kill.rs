//! Ending an execution, in the two spellings of the contract: `DELETE` is content with one that has ended, `POST …/kill` is not.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::EngineError;
use runvoy_model::role::Action;
use runvoy_model::status::Status;
use runvoy_wire::KillResponse;
use serde::Deserialize;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, flag};
use crate::route::{Routes, Rule};

/// How to kill an execution.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
struct KillRequest {
    /// Send SIGKILL at once, without SIGTERM and the grace period.
    #[serde(default)]
    force: bool,
}

const FORCE: &str = "Send SIGKILL at once, without SIGTERM and the grace period";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("killExecution", "Kill an execution")
        .about(
            "Sends SIGTERM to the command, and SIGKILL if it has not exited after the grace \
             period. An execution that has not started is stopped at once. Succeeds with 204 if \
             it had already finished.",
        )
        .execution_id()
        .query("force", flag(), FORCE)
        .gives::<KillResponse>(200, "The execution is being killed, or was stopped before it started")
        .gives_nothing(204, "The execution had already finished");
    routes.delete("/api/v1/executions/{id}", Rule::Key(Action::Kill), operation, delete);
    let operation = Operation::new("killUnfinishedExecution", "Kill an execution that has not finished")
        .about(
            "Like `killExecution`, but fails with `INVALID_REQUEST` if the execution has already \
             finished.",
        )
        .execution_id()
        .query("force", flag(), FORCE)
        .takes::<KillRequest>(false)
        .gives::<KillResponse>(200, "The execution is being killed, or was stopped before it started");
    routes.post("/api/v1/executions/{id}/kill", Rule::Key(Action::Kill), operation, kill);
}

async fn delete(call: Call) -> Result<Response<Body>, Fault> {
    let force = call.query()?.flag("force")?;
    match end(&call, force).await {
        Err(Fault::Engine(EngineError::Ended(_))) => Ok(answer::nothing()),
        answered => answered,
    }
}

async fn kill(call: Call) -> Result<Response<Body>, Fault> {
    let asked: KillRequest = call.json().await?.unwrap_or_default();
    let force = call.query()?.flag("force")? || asked.force;
    end(&call, force).await
}

async fn end(call: &Call, force: bool) -> Result<Response<Body>, Fault> {
    let execution = call.engine().kill(call.caller()?, call.id(), force).await?;
    let message = match (execution.status, force) {
        (Status::Stopped, _) => "stopped before it started",
        (_, true) => "being killed with SIGKILL",
        (_, false) => "sent SIGTERM; SIGKILL follows if it does not exit",
    };
    Ok(answer::json(StatusCode::OK, &KillResponse { execution_id: execution.id.to_string(), message: message.into() }))
}
