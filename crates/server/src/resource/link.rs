//! Signed links: making one, and the log as whoever has one polls it.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::EngineError;
use runvoy_model::execution::Execution;
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_wire::{LinkResponse, LinkedLog, Rfc3339};

use super::log::extent_of_kept;
use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::link::expires_at;
use crate::operation::{Operation, text_or_empty, time};
use crate::route::{Routes, Rule};
use crate::view;

/// One answer holds about so much of a log; whoever polls gets the rest with the next.
const MOST_BYTES: usize = 4 << 20;
const PAGE_BYTES: usize = 256 * 1024;
/// Lines of the newest millisecond may not be all there yet: for so long they wait for the rest of it.
const SETTLED_AFTER_MS: i64 = 1_000;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("createLogLink", "Create a signed link to a log")
        .about(
            "Creates an address that opens this one log without an API key for 48 hours. It stops \
             working earlier if the key or the user that created it is revoked.",
        )
        .execution_id()
        .idempotent()
        .gives::<LinkResponse>(201, "The link");
    routes.post("/api/v1/executions/{id}/link", Rule::Key(Action::ShareLog), operation, create);
    for (path, id) in [("/api/v1/logs/{id}", "getLinkedLog"), ("/api/logs/{id}", "getLinkedLogByShortPath")] {
        let operation = Operation::new(id, "Poll a log as text")
            .about(
                "Returns the lines after `since` as one text. Repeat it with `last_timestamp` as \
                 `since` until `completed` is true.",
            )
            .execution_id()
            .query("since", time(), "Only lines after this time; default: from the beginning")
            .query("token", text_or_empty(), "The token of a signed link, where no header can be sent")
            .gives::<LinkedLog>(200, "The lines, a few megabytes at most");
        routes.get(path, Rule::KeyOrLink(Action::Read), operation, read);
    }
}

async fn create(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    let execution = call.execution().await?;
    let (state, caller) = (&call.state, call.caller()?);
    if !call.reached.has_page(state) {
        return Err(Fault::no_address());
    }
    let issued_at = call.engine().note_link(caller, &execution, key.as_deref(), expires_at).await?;
    let (token, link) = state.links.issue(caller, execution.id, issued_at);
    let response = LinkResponse {
        execution_id: execution.id.to_string(),
        url: format!("{}#token={token}", call.reached.log_url(state, execution.id)).into(),
        token: token.into(),
        expires_at: link.expires_at.into(),
    };
    Ok(answer::json(StatusCode::CREATED, &response))
}

async fn read(call: Call) -> Result<Response<Body>, Fault> {
    let since: Option<Rfc3339> = call.query()?.parsed("since")?;
    let execution = call.execution().await?;
    extent_of_kept(&call, &execution).await?;
    let part = Part::read(&call, &execution, since.map(UnixMs::from)).await?;
    let response = LinkedLog {
        execution_id: execution.id.to_string(),
        status: view::stands(&execution),
        logs: part.text,
        // A client that asks again with what it is given here loses its place to no empty answer.
        last_timestamp: part.last.map(Into::into).or(since),
        completed: execution.status.is_terminal() && part.whole,
    };
    Ok(answer::json(StatusCode::OK, &response))
}

/// Some lines of a log, up to the end of a millisecond: a time is the only cursor that these clients have.
struct Part {
    text: String,
    last: Option<UnixMs>,
    /// Nothing that is there now comes after it.
    whole: bool,
}

impl Part {
    async fn read(call: &Call, execution: &Execution, since: Option<UnixMs>) -> Result<Self, Fault> {
        let engine = call.engine();
        let mut line = match since {
            Some(since) => engine.log_line_at(execution, since.plus_ms(1)).await?,
            None => 1,
        };
        let mut part = Self { text: String::new(), last: None, whole: true };
        // Where the lines of the last millisecond begin.
        let (mut last_starts, mut before_last) = (0, None);
        'pages: loop {
            let chunks = engine.read_log(execution, line, PAGE_BYTES).await?;
            let Some(end) = chunks.last().map(|chunk| chunk.next_line()) else { break };
            for record in chunks.iter().flat_map(|chunk| chunk.block.records()) {
                let record = record.map_err(|error| EngineError::Internal(error.to_string()))?;
                if since.is_some_and(|since| record.at <= since) {
                    continue;
                }
                if part.last != Some(record.at) {
                    if part.text.len() >= MOST_BYTES {
                        part.whole = false;
                        break 'pages;
                    }
                    (last_starts, before_last) = (part.text.len(), part.last);
                    part.last = Some(record.at);
                }
                part.text.push_str(&String::from_utf8_lossy(record.bytes));
                if record.eol {
                    part.text.push('\n');
                }
            }
            line = end;
        }
        let settled = part.last.is_none_or(|last| engine.now().ms_since(last) > SETTLED_AFTER_MS);
        if part.whole && !settled && !execution.status.is_terminal() {
            part.text.truncate(last_starts);
            (part.last, part.whole) = (before_last, false);
        }
        Ok(part)
    }
}
