//! Lists of executions: a page with a cursor, or all of them, written as they are read.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use runvoy_engine::{Caller, EngineError, ListFilter};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::role::Action;
use runvoy_model::status::Status;
use runvoy_wire::{Execution, Rfc3339};

use super::event_log::Array;
use crate::answer::{self, Pieces};
use crate::app::State;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{ABOUT_CURSOR, Operation, id, list_or_empty, name, number_or_empty, text, time};
use crate::query::{NEXT_CURSOR, Query};
use crate::route::{Routes, Rule};
use crate::view;
use crate::vigil::Vigil;

const DEFAULT_LIMIT: u64 = 10;
/// No page holds more. Its cursor stands before it, so that it is held whole until it is known where it ends.
const MOST_PAGE: usize = 10_000;
/// No page goes on beyond so many bytes, for the same reason. One execution may show a megabyte.
const MOST_PAGE_BYTES: usize = 16 << 20;
/// How many are read at once.
const READ: usize = 50;
/// No page looks through much more than so many for a text.
const MOST_LOOKED_AT: usize = 10_000;

/// How many were looked at for a text.
const LOOKED_AT: HeaderName = HeaderName::from_static("x-looked-at");
/// What an execution takes as JSON, for the first guess at the size of a page.
const USUAL_BYTES: usize = 1024;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listExecutions", "List executions")
        .about("Lists the executions that you may see, newest first.")
        .query(
            "limit",
            number_or_empty(0),
            "The maximum number of executions; default: 10, also where empty; never more than 10000. A page that reaches 16 MiB ends early, with a cursor. 0 streams all of them",
        )
        .query("status", list_or_empty(&Status::ALL.map(Status::as_str)), "Only executions with one of these statuses, separated by commas; empty: all")
        .query("user", text(), "Only executions that this user submitted")
        .query("lock", name(), "Only executions that asked for this lock")
        .query("queue", name(), "Only executions of this queue")
        .query("job", id(), "Only executions of this job")
        .query("text", text(), "Only executions with this text in their command, labels, id or end reason; case is ignored")
        .query("since", time(), "Only executions submitted at this time or later")
        .query("until", time(), "Only executions submitted before this time")
        .query("cursor", id(), ABOUT_CURSOR)
        .header("X-Next-Cursor", "The cursor of the next page; absent on the last page and with `limit=0`")
        .header("X-Looked-At", "With `text`: how many executions were searched. A page that is not full can have a next page")
        .gives_array::<Execution>(200, "The executions");
    routes.get("/api/v1/executions", Rule::Key(Action::Read), operation, list);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?.without_empty(&["limit", "status"]);
    let (limit, filter) = (query.number("limit", 0..=u64::MAX)?.unwrap_or(DEFAULT_LIMIT), filter(&query)?);
    let caller = call.caller()?.clone();
    if limit == 0 {
        let all = All { state: Arc::clone(&call.state), caller, filter, array: Array::default() };
        return Ok(answer::streamed(Vigil::over(&call)?, all, answer::JSON).await?);
    }
    page(&call.state, &caller, filter, usize::try_from(limit).unwrap_or(MOST_PAGE).min(MOST_PAGE)).await
}

async fn page(state: &State, caller: &Caller, mut filter: ListFilter, limit: usize) -> Result<Response<Body>, Fault> {
    let looks_through = filter.text.is_some();
    let (mut out, mut array, cloud) = (Vec::with_capacity(2 + limit.min(READ) * USUAL_BYTES), Array::default(), cloud(state));
    let (mut left, mut looked_at) = (limit, 0_usize);
    loop {
        filter.limit = READ.min(left);
        let page = state.engine.list(caller, filter.clone()).await?;
        looked_at += page.looked_at;
        // For a text so many are looked through and no more, and the page says so: a read that finds too few has done that.
        let is_tired = looks_through && (page.executions.len() < filter.limit || looked_at >= MOST_LOOKED_AT);
        filter.after = page.next;
        let (bars, mut unseen) = (state.engine.bars(&page.executions).await, page.executions.len());
        for execution in &page.executions {
            array.push(&mut out, &view::execution(&state.engine, &bars, execution, &cloud));
            (left, unseen) = (left - 1, unseen - 1);
            if out.len() >= MOST_PAGE_BYTES {
                filter.after = if unseen > 0 { Some(execution.id) } else { page.next };
                break;
            }
        }
        if filter.after.is_none() || left == 0 || out.len() >= MOST_PAGE_BYTES || is_tired {
            break;
        }
    }
    array.end(&mut out);
    let mut response = answer::whole(StatusCode::OK, answer::JSON, out);
    if let Some(next) = filter.after {
        let cursor = HeaderValue::from_str(&next.to_string()).expect("hex digits are ASCII");
        response.headers_mut().insert(NEXT_CURSOR, cursor);
    }
    if looks_through {
        response.headers_mut().insert(LOOKED_AT, looked_at.into());
    }
    Ok(response)
}

/// The word for where executions run.
pub(super) fn cloud(state: &State) -> String {
    state.config.provider.to_ascii_uppercase()
}

fn filter(query: &Query) -> Result<ListFilter, Fault> {
    let statuses = query.words("status")?.into_iter();
    let statuses = statuses.map(|word| Status::parse(word).ok_or_else(unknown_status)).collect::<Result<Vec<_>, _>>()?;
    let name = |field: &str| -> Result<Option<Name>, Fault> {
        query.text(field)?.map(|text| Name::new(text).map_err(|error| Fault::invalid(field, error.to_string()))).transpose()
    };
    Ok(ListFilter {
        statuses,
        user: query.text("user")?.map(str::to_owned),
        lock: name("lock")?,
        queue: name("queue")?,
        job: query.parsed("job")?,
        text: query.text("text")?.map(str::to_owned),
        since: query.parsed::<Rfc3339>("since")?.map(Into::into),
        until: query.parsed::<Rfc3339>("until")?.map(Into::into),
        after: query.parsed::<ExecutionId>("cursor")?,
        limit: READ,
    })
}

fn unknown_status() -> Fault {
    let words: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
    Fault::invalid("status", format!("must be {}", runvoy_model::phrase::one_of(&words)))
}

/// All executions, as one JSON array.
struct All {
    state: Arc<State>,
    caller: Caller,
    filter: ListFilter,
    array: Array,
}

impl Pieces for All {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.array.ended {
            return Ok(None);
        }
        let page = self.state.engine.list(&self.caller, self.filter.clone()).await?;
        let (mut out, cloud, bars) = (Vec::new(), cloud(&self.state), self.state.engine.bars(&page.executions).await);
        for execution in &page.executions {
            self.array.push(&mut out, &view::execution(&self.state.engine, &bars, execution, &cloud));
        }
        self.filter.after = page.next;
        if page.next.is_none() {
            self.array.end(&mut out);
        }
        Ok(Some(out.into()))
    }
}
