//! Following a log over a WebSocket: everything that can be refused is refused before the upgrade.

use axum::body::Body;
use http::Response;
use runvoy_model::role::Action;
use runvoy_wire::{Code, line_of_event_id};

use crate::call::Call;
use crate::credential::Standing;
use crate::fault::Fault;
use crate::operation::{Operation, flag, text_or_empty, words};
use crate::resource::log::extent_of_kept;
use crate::route::{Routes, Rule};
use crate::stream::{LogStream, Options, Upgrade};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("streamLogs", "Follow the log of an execution")
        .about(
            "Opens a WebSocket that sends the lines written so far, then new lines as they \
             arrive, then a `disconnect` message. Use the `websocket_url` of other responses, or \
             an API key.",
        )
        .execution_id()
        .query("token", text_or_empty(), "The ticket in a `websocket_url`")
        .query("last_event_id", text_or_empty(), "Resume after this `event_id`, or after this line number; empty: from the first line")
        .query("batch", flag(), "Send binary frames of many lines, for runvoy's own clients")
        .query("events", words(&["status"]), "Also send a message when the status changes")
        .gives_nothing(101, "The connection is a WebSocket now")
        .refuses(&[Code::RateLimited]);
    routes.get("/api/v1/executions/{id}/stream", Rule::KeyOrTicket(Action::Read), operation, stream);
}

async fn stream(mut call: Call) -> Result<Response<Body>, Fault> {
    // A browser names the page that opens a stream, and no page of a stranger may.
    call.state.cors.guard(&call.parts.headers, call.reached.host())?;
    let query = call.query()?.without_empty(&["last_event_id"]);
    let last_event_id = query.text("last_event_id")?.map(str::to_owned);
    let events = query.text("events")?.is_some_and(|events| events.split(',').any(|word| word == "status"));
    let options = Options { batch: query.flag("batch")?, status: events };
    let caller = call.caller()?.clone();
    let execution = call.execution().await?;
    extent_of_kept(&call, &execution).await?;
    // From here on by its whole id: the part of one in the path may become ambiguous while the stream is open.
    let id = execution.id.to_string();
    let after = last_event_id.map_or(Ok(0), |event_id| {
        line_of_event_id(&event_id, &id).ok_or_else(|| Fault::invalid("last_event_id", "must be an event_id of this log or a line number"))
    })?;
    let follower = call.engine().follow(&caller, &id, after.saturating_add(1)).await?;
    let upgrade = Upgrade::of(&mut call.parts)?;
    let open = call.state.open_stream(&caller.email).ok_or_else(Fault::too_many_streams)?;
    let response = upgrade.response();
    let stream = LogStream { state: call.state, open, standing: Standing::of(&caller), id, follower, options };
    tokio::spawn(async move {
        match upgrade.socket().await {
            Ok(socket) => stream.run(socket).await,
            Err(error) => tracing::debug!(%error, "a stream's client went away during the upgrade"),
        }
    });
    Ok(response)
}
