//! What one request did, found again by its id: the audit events that carry it, and what they are about.

use runvoy_model::event::{Entity, EventType};
use runvoy_model::id::Id;
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, StoredEvent};

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// What a request did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Its audit events, in order.
    pub events: Vec<StoredEvent>,
    /// What they are about, each once.
    pub entities: Vec<Entity>,
    /// Older events were not looked at.
    pub cut: bool,
}

const PAGE: usize = 1_000;
/// So many audit events are looked at for an id that says nothing about its time.
const MOST_LOOKED_AT: usize = 200_000;
/// An id of our own says when its request came in; its events are at most this far from that.
const NEAR_MS: i64 = 15 * 60 * 1_000;

impl Engine {
    /// What a request did.
    pub async fn trace(&self, caller: &Caller, request_id: &str) -> Result<Trace, EngineError> {
        caller.may(Action::Trace)?;
        let near = request_id.parse::<Id>().ok().map(|id| UnixMs(id.unix_ms())).filter(|at| at.0 > 0);
        let mut trace = self.look_for(request_id, near).await?;
        // A client may have made an id that only looks like one of ours.
        if trace.events.is_empty() && near.is_some() {
            trace = self.look_for(request_id, None).await?;
        }
        trace.events.reverse();
        for stored in &trace.events {
            if !trace.entities.contains(&stored.event.entity) {
                trace.entities.push(stored.event.entity.clone());
            }
        }
        Ok(trace)
    }

    /// Newest first.
    async fn look_for(&self, request_id: &str, near: Option<UnixMs>) -> Result<Trace, EngineError> {
        let mut query = EventQuery {
            kind: Some(EventType::Audit),
            from: near.map(|at| at.plus_ms(-NEAR_MS)),
            to: near.map(|at| at.plus_ms(NEAR_MS)),
            descending: true,
            limit: PAGE,
            ..EventQuery::default()
        };
        let (mut trace, mut looked_at) = (Trace::default(), 0);
        loop {
            let page = self.ports.store.events(query.clone()).await?;
            let Some(last) = page.last() else { return Ok(trace) };
            query.after = Some(last.place);
            looked_at += page.len();
            let is_its = |stored: &StoredEvent| stored.event.properties["apiRequestId"] == request_id;
            trace.events.extend(page.into_iter().filter(is_its));
            if looked_at >= MOST_LOOKED_AT {
                trace.cut = true;
                return Ok(trace);
            }
        }
    }
}
