//! The events of an execution, in order, written page by page.

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use runvoy_engine::EngineError;
use runvoy_model::role::Action;
use runvoy_wire::Event;

use crate::answer::{self, Pieces};
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};
use crate::vigil::Vigil;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listEvents", "Its events, in order").execution_id().gives_array::<Event>(200, "The events");
    routes.get("/api/v1/executions/{id}/events", Rule::Key(Action::Read), operation, events);
}

async fn events(call: Call) -> Result<Response<Body>, Fault> {
    let id = call.execution().await?.id.to_string();
    let vigil = Vigil::over(&call)?;
    Ok(answer::streamed(vigil, Events { call, id, after: None, begun: false, ended: false }, answer::JSON).await?)
}

struct Events {
    call: Call,
    id: String,
    after: Option<u64>,
    begun: bool,
    ended: bool,
}

impl Pieces for Events {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        if self.ended {
            return Ok(None);
        }
        let engine = self.call.engine();
        let caller = self.call.caller.as_ref().ok_or(EngineError::NoKey)?;
        let events = engine.execution_events(caller, &self.id, self.after).await?;
        let mut out = Vec::new();
        for stored in &events {
            out.push(if std::mem::replace(&mut self.begun, true) { b',' } else { b'[' });
            serde_json::to_writer(&mut out, &stored.event.to_wire(&engine.config().events)).expect("events are plain data");
        }
        match events.last() {
            Some(last) => self.after = Some(last.place),
            None => {
                self.ended = true;
                out.extend_from_slice(if self.begun { b"]" } else { b"[]" });
            }
        }
        Ok(Some(out.into()))
    }
}
