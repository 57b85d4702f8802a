//! Lists of executions: a page with a cursor, or all of them, written page by page.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use runvoy_engine::{Caller, EngineError, ListFilter};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::role::Action;
use runvoy_model::status::Status;
use runvoy_wire::{Execution, Rfc3339};

use crate::answer::{self, Pieces};
use crate::app::State;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, number, text, time};
use crate::query::{NEXT_CURSOR, Query};
use crate::route::{Routes, Rule};
use crate::view;
use crate::vigil::Vigil;

const DEFAULT_LIMIT: u64 = 10;
/// More than this are written as they are read, without a cursor: it would have to stand before them.
const MOST_PAGE: usize = 1_000;
/// How many are read at once where they are written as they are read.
const PAGE: usize = 200;

/// What an execution takes as JSON, for the first guess at the size of a page.
const USUAL_BYTES: usize = 1024;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listExecutions", "Executions that the caller may see, newest first")
        .query("limit", number(0, None), "At most so many; 0 means all")
        .query("status", text(), "Only these statuses, with commas between them")
        .query("user", text(), "Only those that this user submitted")
        .query("lock", text(), "Only those that asked for this lock")
        .query("queue", text(), "Only those of this queue")
        .query("job", text(), "Only those of this job")
        .query("since", time(), "Only those submitted at this time or later")
        .query("until", time(), "Only those submitted before this time")
        .query("cursor", text(), "Go on where the page with this X-Next-Cursor ended")
        .header("X-Next-Cursor", "Where the next page begins; absent after the last one, and where limit is 0 or above 1000")
        .gives_array::<Execution>(200, "The executions");
    routes.get("/api/v1/executions", Rule::Key(Action::Read), operation, list);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let (limit, filter) = (query.number("limit", 0..=u64::MAX)?.unwrap_or(DEFAULT_LIMIT), filter(&query)?);
    let caller = call.caller()?.clone();
    match usize::try_from(limit).unwrap_or(usize::MAX) {
        limit @ 1..=MOST_PAGE => page(&call.state, &caller, filter, limit).await,
        limit => {
            let left = if limit == 0 { usize::MAX } else { limit };
            let many = Many { state: Arc::clone(&call.state), caller, filter, left, begun: false, ended: false };
            Ok(answer::streamed(Vigil::over(&call)?, many, answer::JSON).await?)
        }
    }
}

async fn page(state: &State, caller: &Caller, filter: ListFilter, limit: usize) -> Result<Response<Body>, Fault> {
    // One more than asked for tells whether there is a next page.
    let mut executions = state.engine.list(caller, ListFilter { limit: limit + 1, ..filter }).await?;
    let more = executions.len() > limit;
    executions.truncate(limit);
    let (mut out, cloud) = (Vec::with_capacity(2 + executions.len() * USUAL_BYTES), cloud(state));
    let shown: Vec<_> = executions.iter().map(|execution| view::execution(&state.engine, execution, &cloud)).collect();
    serde_json::to_writer(&mut out, &shown).expect("wire types are plain data");
    let mut response = answer::whole(StatusCode::OK, answer::JSON, out);
    if let Some(last) = executions.last().filter(|_| more) {
        let cursor = HeaderValue::from_str(&last.id.to_string()).expect("hex digits are ASCII");
        response.headers_mut().insert(NEXT_CURSOR, cursor);
    }
    Ok(response)
}

/// The word for where executions run.
pub(super) fn cloud(state: &State) -> String {
    state.config.provider.to_ascii_uppercase()
}

fn filter(query: &Query) -> Result<ListFilter, Fault> {
    let statuses = query.text("status")?.into_iter().flat_map(|words| words.split(','));
    let statuses = statuses.map(|word| Status::parse(word.trim()).ok_or_else(unknown_status)).collect::<Result<Vec<_>, _>>()?;
    let name = |field: &str| -> Result<Option<Name>, Fault> {
        query.text(field)?.map(|text| Name::new(text).map_err(|error| Fault::invalid(field, error.to_string()))).transpose()
    };
    Ok(ListFilter {
        statuses,
        user: query.text("user")?.map(str::to_owned),
        lock: name("lock")?,
        queue: name("queue")?,
        job: query.parsed("job")?,
        since: query.parsed::<Rfc3339>("since")?.map(Into::into),
        until: query.parsed::<Rfc3339>("until")?.map(Into::into),
        after: query.parsed::<ExecutionId>("cursor")?,
        limit: PAGE,
    })
}

fn unknown_status() -> Fault {
    let words: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
    Fault::invalid("status", format!("must be of {}", words.join(", ")))
}

/// Many executions, or all, as one JSON array.
struct Many {
    state: Arc<State>,
    caller: Caller,
    filter: ListFilter,
    /// How many more are wanted.
    left: usize,
    begun: bool,
    ended: bool,
}

impl Pieces for Many {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.ended {
            return Ok(None);
        }
        self.filter.limit = PAGE.min(self.left);
        let executions = self.state.engine.list(&self.caller, self.filter.clone()).await?;
        let (mut out, cloud) = (Vec::new(), cloud(&self.state));
        for execution in &executions {
            out.push(if std::mem::replace(&mut self.begun, true) { b',' } else { b'[' });
            let shown = view::execution(&self.state.engine, execution, &cloud);
            serde_json::to_writer(&mut out, &shown).expect("wire types are plain data");
        }
        self.filter.after = executions.last().map(|last| last.id);
        self.left = self.left.saturating_sub(executions.len());
        if executions.len() < self.filter.limit || self.left == 0 {
            self.ended = true;
            out.extend_from_slice(if self.begun { b"]" } else { b"[]" });
        }
        Ok(Some(out.into()))
    }
}
