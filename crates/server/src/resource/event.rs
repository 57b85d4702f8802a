//! The events of one execution, and of one task of a job, in order, written page by page.

use std::collections::VecDeque;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use runvoy_engine::EngineError;
use runvoy_model::id::ExecutionId;
use runvoy_model::role::Action;
use runvoy_wire::{Code, Event};
use serde_json::Value;

use super::event_log::Array;
use crate::answer::{self, Pieces};
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{ABOUT_CURSOR, ABOUT_NEXT_CURSOR, Operation, flag, number, part_of_id, place, text};
use crate::pager::MOST_LISTED;
use crate::query::NEXT_CURSOR;
use crate::route::{Routes, Rule};
use crate::vigil::Vigil;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listExecutionEvents", "List the events of an execution")
        .about("Lists them in the order in which they happened.")
        .execution_id()
        .query("limit", number(1, Some(MOST_LISTED)), "The maximum number of events; default: all")
        .query("cursor", place(), ABOUT_CURSOR)
        .header("X-Next-Cursor", ABOUT_NEXT_CURSOR)
        .gives_array::<Event>(200, "The events; a page can hold fewer than `limit` without being the last");
    routes.get("/api/v1/executions/{id}/events", Rule::Key(Action::Read), operation, events);
    let operation = Operation::new("listTaskEvents", "List the events of a task")
        .about(
            "Lists the events of every execution of the task, in order. The list is empty while \
             the task waits for its dependencies.",
        )
        .path("id", part_of_id(), "The job's id, or six or more digits that begin or end it and no other id")
        .path("task", text(), "The task's `taskId`")
        .query(
            "resolve",
            flag(),
            "Include values that were too large for an event, instead of their `_s3Overflow` reference. Large inputs of single tasks stay references",
        )
        .gives_array::<Event>(200, "The events")
        .refuses(&[Code::NotFound, Code::Conflict]);
    routes.get("/api/v1/jobs/{id}/tasks/{task}/events", Rule::Key(Action::Read), operation, task_events);
}

async fn events(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let (limit, after) = (query.number("limit", 1..=MOST_LISTED)?, query.number("cursor", 0..=u64::MAX)?);
    let id = call.execution().await?.id.to_string();
    if let Some(limit) = limit {
        return page(&call, &id, after, usize::try_from(limit).expect("at most a thousand")).await;
    }
    let vigil = Vigil::over(&call)?;
    Ok(answer::streamed(vigil, Events { call, id, after, array: Array::default() }, answer::JSON).await?)
}

async fn page(call: &Call, id: &str, after: Option<u64>, limit: usize) -> Result<Response<Body>, Fault> {
    let mut page = call.engine().execution_events(call.caller()?, id, after).await?;
    let next = match page.events.get(limit.saturating_sub(1)) {
        Some(last) if page.events.len() > limit => Some(last.place),
        _ => page.more.then_some(page.looked),
    };
    page.events.truncate(limit);
    let shown: Vec<Value> = page.events.iter().map(|stored| call.engine().event_wire(&stored.event)).collect();
    let mut response = answer::json(StatusCode::OK, &shown);
    if let Some(next) = next {
        response.headers_mut().insert(NEXT_CURSOR, HeaderValue::from(next));
    }
    Ok(response)
}

async fn task_events(call: Call) -> Result<Response<Body>, Fault> {
    let resolve = call.query()?.flag("resolve")?;
    let executions = call.engine().task_executions(call.caller()?, call.id(), call.params.get("task")).await?;
    let vigil = Vigil::over(&call)?;
    let events = TaskEvents { call, executions: executions.into(), resolve, after: None, array: Array::default() };
    Ok(answer::streamed(vigil, events, answer::JSON).await?)
}

struct Events {
    call: Call,
    id: String,
    after: Option<u64>,
    array: Array,
}

impl Pieces for Events {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.array.ended {
            return Ok(None);
        }
        let caller = self.call.caller.as_ref().ok_or(EngineError::NoKey)?;
        let mut out = Vec::new();
        // A page may hold nothing that is shown, and an empty piece says nothing.
        while out.is_empty() {
            let page = self.call.engine().execution_events(caller, &self.id, self.after).await?;
            for stored in &page.events {
                self.array.push(&mut out, &self.call.engine().event_wire(&stored.event));
            }
            self.after = Some(page.looked);
            if !page.more {
                self.array.end(&mut out);
            }
        }
        Ok(Some(out.into()))
    }
}

struct TaskEvents {
    call: Call,
    /// Those that are not written yet, the one that is being written first.
    executions: VecDeque<ExecutionId>,
    resolve: bool,
    after: Option<u64>,
    array: Array,
}

impl Pieces for TaskEvents {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.array.ended {
            return Ok(None);
        }
        let mut out = Vec::new();
        // A page may hold nothing that is shown, and an empty piece says nothing.
        while out.is_empty() {
            let Some(execution) = self.executions.front().copied() else {
                self.array.end(&mut out);
                break;
            };
            let caller = self.call.caller.as_ref().ok_or(EngineError::NoKey)?;
            let page = self.call.engine().task_events(caller, execution, self.after).await?;
            for stored in &page.events {
                self.array.push(&mut out, &self.call.engine().show_event(&stored.event, self.resolve).await?);
            }
            if page.more {
                self.after = Some(page.looked);
            } else {
                self.executions.pop_front();
                self.after = None;
            }
        }
        Ok(Some(out.into()))
    }
}
