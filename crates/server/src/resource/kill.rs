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

/// Body of `POST /executions/{id}/kill`; it may be absent.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
struct KillRequest {
    /// Without the time that it would get to end by itself.
    #[serde(default)]
    force: bool,
}

const FORCE: &str = "Without the time that it would get to end by itself";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("deleteExecution", "End an execution")
        .execution_id()
        .query("force", flag(), FORCE)
        .gives::<KillResponse>(200, "It is being ended")
        .gives_nothing(204, "It had ended before");
    routes.delete("/api/v1/executions/{id}", Rule::Key(Action::Kill), operation, delete);
    let operation = Operation::new("kill", "End an execution; one that has ended is an error")
        .execution_id()
        .query("force", flag(), FORCE)
        .takes::<KillRequest>(false)
        .gives::<KillResponse>(200, "It is being ended");
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
        (Status::Stopped, _) => "it had not started and is stopped",
        (_, true) => "it is being killed",
        (_, false) => "it was asked to end, and is killed if it does not",
    };
    Ok(answer::json(StatusCode::OK, &KillResponse { execution_id: execution.id.to_string(), message: message.into() }))
}
