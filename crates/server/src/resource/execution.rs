//! One execution: its record, its status, its end.

use std::time::Duration;

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{Execution, StatusResponse};

use crate::answer;
use crate::call::Call;
use crate::credential::Standing;
use crate::fault::Fault;
use crate::operation::{Operation, number};
use crate::resource::list::cloud;
use crate::route::{Routes, Rule};
use crate::view;

const DEFAULT_WAIT_SECONDS: u64 = 60;
const MOST_WAIT_SECONDS: u64 = 600;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("getExecution", "Get an execution")
        .about("Returns the whole record: command, status, times, exit code and cost.")
        .execution_id()
        .gives::<Execution>(200, "The execution");
    routes.get("/api/v1/executions/{id}", Rule::Key(Action::Read), operation, record);
    let operation = Operation::new("getExecutionStatus", "Get the status of an execution")
        .about("Returns the status, with the reason why it waits or finished.")
        .execution_id()
        .gives::<StatusResponse>(200, "The status");
    routes.get("/api/v1/executions/{id}/status", Rule::Key(Action::Read), operation, status);
    let operation = Operation::new("waitForExecution", "Wait until an execution finishes")
        .about(
            "Responds as soon as the execution has finished, or when `timeout` is over: then \
             `status` is still an open one.",
        )
        .execution_id()
        .query("timeout", number(0, None), "Seconds to wait; default: 60, never more than 600")
        .gives::<StatusResponse>(200, "The status at the end of the wait");
    routes.get("/api/v1/executions/{id}/wait", Rule::Key(Action::Read), operation, wait);
}

async fn record(call: Call) -> Result<Response<Body>, Fault> {
    let execution = call.execution().await?;
    let bars = call.engine().bars(std::slice::from_ref(&execution)).await;
    Ok(answer::json(StatusCode::OK, &view::execution(call.engine(), &bars, &execution, &cloud(&call.state))))
}

async fn status(call: Call) -> Result<Response<Body>, Fault> {
    let execution = call.execution().await?;
    let waiting = call.engine().waits_for(&execution).await;
    Ok(answer::json(StatusCode::OK, &view::status(call.engine(), &execution, waiting)))
}

async fn wait(call: Call) -> Result<Response<Body>, Fault> {
    let seconds = call.query()?.number("timeout", 0..=u64::MAX)?.unwrap_or(DEFAULT_WAIT_SECONDS).min(MOST_WAIT_SECONDS);
    let caller = call.caller()?;
    // It may last as long as a stream, unless it does not wait at all.
    let _open = if seconds == 0 { None } else { Some(call.state.open_stream(&caller.email).ok_or_else(Fault::too_many_streams)?) };
    let id = tokio::select! {
        ended = call.engine().wait(caller, call.id(), Duration::from_secs(seconds)) => ended?.id.to_string(),
        // A server that stops answers with what it knows; the client asks again and finds its successor.
        () = call.state.stopping() => call.id().to_owned(),
    };
    // The wait may have been long: it is answered to whoever the caller is now.
    let caller = Standing::of(caller).caller(&call.state).await?;
    let execution = call.engine().execution(&caller, &id).await?;
    let waiting = call.engine().waits_for(&execution).await;
    Ok(answer::json(StatusCode::OK, &view::status(call.engine(), &execution, waiting)))
}
