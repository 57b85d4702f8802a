//! The log of an execution in its four forms. All are written as they are read.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use runvoy_engine::EngineError;
use runvoy_model::execution::Execution;
use runvoy_model::role::Action;
use runvoy_ports::log::Extent;
use runvoy_wire::{Code, LogsResponse};

use crate::answer::{self, Pieces};
use crate::call::Call;
use crate::fault::Fault;
use crate::log::{Form, Pages, Range, Selection, Writer, etag, is_same_log};
use crate::operation::{Operation, number, text, text_or_empty, words};
use crate::route::{Routes, Rule};
use crate::view;
use crate::vigil::Vigil;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("getLogs", "Get the log of an execution")
        .about(
            "Returns all lines, or those that the parameters select. While the execution runs and \
             no lines are selected, `events` is null in the JSON form: follow the log at \
             `websocket_url` instead. `format=raw` returns the command's exact bytes and supports \
             HTTP ranges. Combine `from_line` with `limit`, or use `tail`, not both.",
        )
        .execution_id()
        .query("from_line", number(1, None), "Start at this line; not together with `tail`")
        .query("limit", number(0, None), "The maximum number of lines; 0: all")
        .query("tail", number(0, None), "Only the last lines, this many; not together with `from_line`")
        .query("search", text(), "Only lines that contain this text")
        .query("stream", words(&["stdout", "stderr", "platform"]), "Only lines of this stream")
        .query("token", text_or_empty(), "The token of a signed link, where no header can be sent")
        .query("format", words(&["json", "text", "raw", "ndjson"]), "The form of the response; default: json")
        .gives::<LogsResponse>(200, "The lines")
        .gives_type(200, "text/plain; charset=utf-8", "The lines as text")
        .gives_type(200, "application/octet-stream", "The command's exact bytes")
        .gives_type(200, "application/x-ndjson", "One event per line")
        .gives_type(206, "application/octet-stream", "A range of the command's exact bytes")
        .gives_type(416, "application/json", "The range starts after the end of the log");
    routes.get("/api/v1/executions/{id}/logs", Rule::KeyOrLink(Action::Read), operation, logs);
}

async fn logs(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let (form, selection) = (Form::of(&query)?, Selection::of(&query)?);
    let execution = call.execution().await?;
    let extent = extent_of_kept(&call, &execution).await?;
    match form {
        Form::Json => events(&call, execution, selection).await,
        Form::Raw if selection.is_whole() => raw(&call, execution, extent.raw_bytes).await,
        Form::Raw | Form::Text | Form::Ndjson => {
            let pages = Pages::new(call.engine(), execution, selection, Writer::new(form)).await?;
            Ok(answer::streamed(Vigil::over(&call)?, pages, form.content_type()).await?)
        }
    }
}

/// How far a log goes that retention has not taken. An empty answer for one that it took would look like a command that wrote nothing.
pub(super) async fn extent_of_kept(call: &Call, execution: &Execution) -> Result<Extent, Fault> {
    let extent = call.engine().log_extent(execution).await?;
    if call.engine().log_is_removed(execution).await? {
        let details = format!("logs are kept {} days; the execution's record remains", call.engine().config().retention.log_days);
        return Err(Fault::Refused { code: Code::NotFound, error: "the log was removed by retention".into(), details });
    }
    Ok(extent)
}

/// The JSON form, around its events.
async fn events(call: &Call, execution: Execution, selection: Selection) -> Result<Response<Body>, Fault> {
    let (state, id, ended) = (&call.state, execution.id, execution.status.is_terminal());
    let websocket_url = if ended {
        None
    } else {
        let ticket = state.tickets.issue(call.caller()?, id, state.engine.now());
        Some(call.reached.stream_url(state, id, &ticket))
    };
    let status = view::stands(&execution);
    if !ended && selection.is_whole() {
        let execution_id = id.to_string();
        return Ok(answer::json(StatusCode::OK, &LogsResponse { execution_id, events: None, status, websocket_url, next_line: 1 }));
    }
    let mut head = serde_json::json!({"execution_id": id, "status": status});
    if let Some(url) = websocket_url {
        head["websocket_url"] = url.into();
    }
    let mut head = head.to_string();
    head.truncate(head.len() - 1);
    head.push_str(",\"events\":[");
    let pages = Pages::new(call.engine(), execution, selection, Writer::new(Form::Json)).await?;
    let enclosed = Enclosed { head: Some(head), pages, ended: false };
    Ok(answer::streamed(Vigil::over(call)?, enclosed, answer::JSON).await?)
}

/// Events between the rest of their answer, of which `next_line` is known only at the end.
struct Enclosed {
    head: Option<String>,
    pages: Pages,
    ended: bool,
}

impl Pieces for Enclosed {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.ended {
            return Ok(None);
        }
        let page = self.pages.next().await?;
        let mut out = self.head.take().unwrap_or_default().into_bytes();
        match page {
            Some(page) if out.is_empty() => return Ok(Some(page)),
            Some(page) => out.extend_from_slice(&page),
            None => {
                self.ended = true;
                out.extend_from_slice(format!("],\"next_line\":{}}}", self.pages.next_line()).as_bytes());
            }
        }
        Ok(Some(out.into()))
    }
}

/// The raw form: its length is known, and any part of it can be had.
async fn raw(call: &Call, execution: Execution, length: u64) -> Result<Response<Body>, Fault> {
    let (id, headers) = (execution.id, &call.parts.headers);
    let asked = if is_same_log(headers, id, length) { Range::of(headers, length) } else { Ok(None) };
    let range = asked.map_err(|_| Fault::RangeNotSatisfiable(length))?;
    let (mut selection, mut skip) = (Selection::default(), 0);
    if let Some(range) = range {
        let place = call.engine().log_raw_place(&execution, range.first).await?;
        let place = place.ok_or(Fault::RangeNotSatisfiable(length))?;
        (selection.from_line, skip) = (Some(place.line), range.first.saturating_sub(place.line_start));
    }
    let left = range.map_or(length, |range| range.len());
    let pages = Pages::new(call.engine(), execution, selection, Writer::Raw { skip, left }).await?;
    let mut response = answer::streamed(Vigil::over(call)?, pages, Form::Raw.content_type()).await?;
    if range.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let headers = response.headers_mut();
    // A body that ends before this many bytes breaks the connection.
    headers.insert(header::CONTENT_LENGTH, left.into());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::ETAG, etag(id, length));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Some(range) = range {
        headers.insert(header::CONTENT_RANGE, range.header(length));
    }
    Ok(response)
}
