//! The trail of what was done: a page of it, all of it for another system, and the proof that it is whole.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use runvoy_engine::{AuditFilter, EngineError};
use runvoy_model::digest;
use runvoy_model::role::Action;
use runvoy_model::verify::label;
use runvoy_ports::store::StoredEvent;
use runvoy_wire::{AuditEvent, AuditVerification, Rfc3339};
use serde_json::{Map, Value};

use crate::answer::{self, Pieces};
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{ABOUT_CURSOR, Operation, flag, number, pattern, text, time};
use crate::query::{NEXT_CURSOR, Query};
use crate::route::{Routes, Rule};
use crate::vigil::Vigil;

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const DEFAULT_LIMIT: u64 = 100;
const MOST: u64 = 1_000;
/// How many are written at once where all are.
const PAGE: usize = 500;
/// The properties that have a field of their own, the one that only repeats the entity, and the digests that never leave the store.
const OWN_FIELDS: [&str; 10] =
    ["user", "action", "command", "target", "from", "result", "apiRequestId", "requestId", digest::BODY, digest::BODIES];

pub(super) fn add(routes: &mut Routes) {
    let operation = filtered(Operation::new("listAuditEvents", "List audit events"))
        .about(
            "Lists who did what and when, newest first: every call that changed something or was \
             refused.",
        )
        .query("limit", number(1, Some(MOST)), "The maximum number of events; default: 100")
        .query("cursor", pattern("^[1-9][0-9]{0,18}$"), ABOUT_CURSOR)
        .header("X-Next-Cursor", "The cursor of the next page; absent on the last page. A page can be empty without being the last")
        .gives_array::<AuditEvent>(200, "The events");
    routes.get("/api/v1/audit", Rule::Key(Action::ReadAudit), operation, list);
    let operation = Operation::new("verifyAuditTrail", "Verify the audit trail")
        .about(
            "Checks the hash chain of all events and reports the first event that was altered, \
             removed or reordered.",
        )
        .query("state", flag(), "Also compare all stored records with what the events say")
        .gives::<AuditVerification>(200, "The result of the check, whether or not the trail is intact");
    routes.get("/api/v1/audit/verify", Rule::Key(Action::ReadAudit), operation, verify);
    let operation = filtered(Operation::new("exportAuditTrail", "Export the audit trail"))
        .about("Streams all matching events, oldest first, as one JSON object per line.")
        .gives_type(200, "application/x-ndjson", "One event per line");
    routes.get("/api/v1/audit/export", Rule::Key(Action::ReadAudit), operation, export);
}

fn filtered(operation: Operation) -> Operation {
    operation
        .query("user", text(), "Only what this user did")
        .query("action", text(), "Only this action, such as executions.kill, or all actions on a resource, such as executions")
        .query("text", text(), "Only events with this text in user, action, entity, command, result, address or details; case is ignored")
        .query("since", time(), "Only events at this time or later")
        .query("until", time(), "Only events before this time")
}

fn filter(query: &Query) -> Result<AuditFilter, Fault> {
    Ok(AuditFilter {
        user: query.text("user")?.map(str::to_owned),
        action: query.text("action")?.map(str::to_owned),
        text: query.text("text")?.map(str::to_owned),
        since: query.parsed::<Rfc3339>("since")?.map(Into::into),
        until: query.parsed::<Rfc3339>("until")?.map(Into::into),
        ..AuditFilter::default()
    })
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let limit = query.number("limit", 1..=MOST)?.unwrap_or(DEFAULT_LIMIT);
    let after = query.number("cursor", 1..=u64::MAX)?;
    let filter = AuditFilter { after, limit: usize::try_from(limit).expect("at most a thousand"), ..filter(&query)? };
    let page = call.engine().audit(call.caller()?, &filter).await?;
    let shown: Vec<AuditEvent> = page.events.iter().map(audit_event).collect();
    let mut response = answer::json(StatusCode::OK, &shown);
    if let Some(next) = page.next {
        response.headers_mut().insert(NEXT_CURSOR, HeaderValue::from(next));
    }
    Ok(response)
}

async fn verify(call: Call) -> Result<Response<Body>, Fault> {
    let with_state = call.query()?.flag("state")?;
    let mut found = AuditVerification::from(call.engine().verify_audit(call.caller()?).await?);
    if with_state {
        found = found.with_state(call.engine().compare_state(call.caller()?).await?);
    }
    Ok(answer::json(StatusCode::OK, &found))
}

async fn export(call: Call) -> Result<Response<Body>, Fault> {
    let filter = AuditFilter { ascending: true, limit: PAGE, ..filter(&call.query()?)? };
    let vigil = Vigil::over(&call)?;
    Ok(answer::streamed(vigil, Lines { call, filter, ended: false }, NDJSON).await?)
}

/// All events, page by page.
struct Lines {
    call: Call,
    filter: AuditFilter,
    ended: bool,
}

impl Pieces for Lines {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        let caller = self.call.caller.as_ref().ok_or(EngineError::NoKey)?;
        let mut out = Vec::new();
        // A page may hold nothing that was asked for, and an empty piece says nothing.
        while out.is_empty() && !self.ended {
            let page = self.call.engine().audit(caller, &self.filter).await?;
            for stored in &page.events {
                serde_json::to_writer(&mut out, &audit_event(stored)).expect("wire types are plain data");
                out.push(b'\n');
            }
            self.ended = page.next.is_none();
            self.filter.after = page.next;
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }
}

fn audit_event(stored: &StoredEvent) -> AuditEvent {
    let event = &stored.event;
    let property = |name: &str| event.properties.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    AuditEvent {
        event_id: event.id.to_string(),
        at: event.at.into(),
        user: property("user"),
        action: property("action"),
        command: Some(property("command")).filter(|command| !command.is_empty()),
        target: Some(property("target")).filter(|target| !target.is_empty()),
        entity: label(&event.entity),
        number: event.number,
        result: property("result"),
        address: Some(property("from")).filter(|address| !address.is_empty()),
        request_id: property("apiRequestId"),
        details: details(&event.properties),
    }
}

/// What a change says of itself, or whatever else is known.
fn details(properties: &Value) -> Option<Value> {
    let Value::Object(all) = properties else { return None };
    let mut rest: Map<String, Value> = all.iter().filter(|(name, _)| !OWN_FIELDS.contains(&name.as_str())).map(owned).collect();
    match rest.remove("change") {
        Some(change) if rest.is_empty() => Some(change),
        Some(change) => {
            rest.insert("change".into(), change);
            Some(Value::Object(rest))
        }
        None => (!rest.is_empty()).then_some(Value::Object(rest)),
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}
