//! The trail of what was done: read by admins, proved on demand. Who did what is kept with every step; nothing is added here.

use runvoy_model::digest;
use runvoy_model::event::{Event, EventType};
use runvoy_model::fold::{Comparison, Mismatch};
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_model::verify::{Verdict, label};
use runvoy_ports::store::{EventQuery, StoredEvent};
use serde_json::Value;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// How many events are read at once.
const PAGE: usize = 500;
/// How many events one call looks at: whoever asks for what is rare gets a place to go on from instead of a long wait.
const MOST_LOOKED_AT: usize = 5_000;

/// Which audit events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only what this user did.
    pub user: Option<String>,
    /// Only this action, or every action of this resource: `executions.kill`, or `executions`.
    pub action: Option<String>,
    /// Only those with this text in who did what to what, from where and in which request, or in the command; in any case of letters.
    pub text: Option<String>,
    /// Only at this time or later.
    pub since: Option<UnixMs>,
    /// Only before this time.
    pub until: Option<UnixMs>,
    /// Oldest first.
    pub ascending: bool,
    /// Go on after this place.
    pub after: Option<u64>,
    /// At most this many.
    pub limit: usize,
}

/// Some of the trail.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditPage {
    /// The events, in the order that was asked for.
    pub events: Vec<StoredEvent>,
    /// Where to go on; absent at the end. There may be more even if this page is empty.
    pub next: Option<u64>,
}

impl AuditFilter {
    fn wants(&self, event: &StoredEvent) -> bool {
        let property = |name: &str| event.event.properties.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_of = |action: &String| {
            let done = property("action");
            done.strip_prefix(action.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.user.as_ref().is_none_or(|user| property("user") == user)
            && self.action.as_ref().is_none_or(is_of)
            && self.text.as_ref().is_none_or(|text| holds(&event.event, &text.to_lowercase()))
    }
}

/// Whether an event has this text, in small letters, in something that is shown of it.
fn holds(event: &Event, text: &str) -> bool {
    let has = |shown: &str| shown.to_lowercase().contains(text);
    let Value::Object(properties) = &event.properties else { return false };
    let shown = properties.iter().filter(|(name, _)| name.as_str() != digest::BODY && name.as_str() != digest::BODIES);
    has(&label(&event.entity)) || shown.map(|(_, value)| value).any(|value| in_value(value, &has))
}

fn in_value(value: &Value, has: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => has(text),
        Value::Number(number) => has(&number.to_string()),
        Value::Array(items) => items.iter().any(|item| in_value(item, has)),
        Value::Object(members) => members.values().any(|member| in_value(member, has)),
        Value::Null | Value::Bool(_) => false,
    }
}

impl Engine {
    /// Some of what was done, and by whom.
    pub async fn audit(&self, caller: &Caller, filter: &AuditFilter) -> Result<AuditPage, EngineError> {
        caller.may(Action::ReadAudit)?;
        let mut page = AuditPage { events: Vec::new(), next: filter.after };
        let mut looked_at = 0;
        while looked_at < MOST_LOOKED_AT {
            let query = EventQuery {
                kind: Some(EventType::Audit),
                from: filter.since,
                to: filter.until,
                descending: !filter.ascending,
                after: page.next,
                limit: PAGE,
                ..EventQuery::default()
            };
            let found = self.ports.store.events(query).await?;
            let is_last = found.len() < PAGE;
            looked_at += found.len();
            for stored in found {
                if page.events.len() == filter.limit {
                    return Ok(page);
                }
                page.next = Some(stored.place);
                if filter.wants(&stored) {
                    page.events.push(stored);
                }
            }
            if is_last {
                page.next = None;
                break;
            }
        }
        Ok(page)
    }

    /// Looks at every event there is. Takes long with much data.
    pub async fn verify_audit(&self, caller: &Caller) -> Result<Verdict, EngineError> {
        caller.may(Action::ReadAudit)?;
        let verdict = self.ports.trail.verify().await?;
        if let Some(bad) = &verdict.first_bad {
            tracing::error!(entity = bad.entity, number = bad.number, problem = bad.problem.as_str(), "the audit trail is not intact");
        }
        Ok(verdict)
    }

    /// Compares all kept state with what the events say. Takes long with much data.
    pub async fn compare_state(&self, caller: &Caller) -> Result<Comparison, EngineError> {
        caller.may(Action::ReadAudit)?;
        let compared = self.ports.trail.compare_state().await?;
        if let Some(Mismatch { entity, field, message }) = &compared.first {
            tracing::error!(entity, field, message, "stored state does not follow from the events");
        }
        Ok(compared)
    }
}
