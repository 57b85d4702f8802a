//! `trace`: everything that one request did.

use clap::Args;
use runvoy_client::{AuditQuery, Client};
use runvoy_wire::{RelatedResources, Rfc3339, TraceResponse};

use crate::failure::Failure;
use crate::listing::{self, Limit};
use crate::session::Session;
use crate::short_id::{self, MIN_DIGITS};
use crate::table::{Cell, render};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy trace 4f2a9c   # the request of an error message or an audit event
  runvoy trace --json 4f2a9c";

/// So many audit events are searched for the digits of a request.
const MAX_LOOKED_AT: u32 = 100;

/// Arguments of `trace`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct TraceArgs {
    /// Request id; the last six digits are enough
    #[arg(value_name = "REQUEST_ID")]
    id: String,
}

impl TraceArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let trace = client.trace_request(&resolve(&client, &self.id).await?).await?;
        let related = related(&trace.related_resources);
        if is_unknown(&trace) {
            let cut = trace.logs.into_iter().map(|log| log.message);
            let unknown = Failure::other(format!("no record of request {}", self.id))
                .why("only requests that changed something, or were refused, are recorded")
                .next("list them: runvoy audit list");
            return Err(cut.fold(unknown, Failure::why));
        }
        let names = || related.iter().map(|(_, name)| name.clone()).collect();
        session.show(&trace, names, || describe(&trace, &related, session.terminal.stdout_colour))?;
        Ok(0)
    }
}

/// The whole id of a request that is in the audit trail. A text that is neither an id nor digits of
/// one is left to the server.
async fn resolve(client: &Client, typed: &str) -> Result<String, Failure> {
    let plain = typed.replace('-', "").to_ascii_lowercase();
    let is_hex = plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || plain.len() < MIN_DIGITS || short_id::is_whole(&plain) {
        return Ok(typed.to_owned());
    }
    let query = AuditQuery { text: Some(plain.clone()), ..AuditQuery::default() };
    let (events, _) = listing::collect(Limit::new(MAX_LOOKED_AT, false), async |limit, cursor| {
        client.audit(&AuditQuery { limit: Some(limit), cursor, ..query.clone() }).await
    })
    .await?;
    let fits = |id: &&String| id.starts_with(&plain) || id.ends_with(&plain);
    let mut ids: Vec<&String> = events.iter().map(|event| &event.request_id).filter(fits).collect();
    ids.sort_unstable();
    ids.dedup();
    match ids.as_slice() {
        [] => Ok(typed.to_owned()),
        [id] => Ok((*id).clone()),
        several => Err(Failure::other(format!("`{typed}` matches several requests"))
            .choices(several.iter().map(|id| (*id).clone()).collect())
            .next("use more digits, or the whole id")),
    }
}

/// No event is of this request; what is noted is at most how far was looked.
fn is_unknown(trace: &TraceResponse) -> bool {
    trace.logs.iter().all(|log| log.event_id.is_empty()) && related(&trace.related_resources).is_empty()
}

/// What the request touched: its kind and its name.
fn related(resources: &RelatedResources) -> Vec<(&'static str, String)> {
    let mut related = Vec::new();
    related.extend(resources.executions.iter().map(|item| ("execution", item.execution_id.clone())));
    related.extend(resources.secrets.iter().map(|item| ("secret", item.name.clone())));
    related.extend(resources.users.iter().map(|item| ("user", item.email.clone())));
    related.extend(resources.images.iter().map(|item| ("image", item.image_id.clone())));
    related.extend(resources.groups.iter().map(|item| ("group", item.name.clone())));
    related.extend(resources.rules.iter().map(|item| ("rule", item.name.clone())));
    related.extend(resources.playbooks.iter().map(|item| ("playbook", format!("{}@{}", item.name, item.version))));
    related
}

fn describe(trace: &TraceResponse, related: &[(&'static str, String)], colour: bool) -> String {
    let lines = trace.logs.iter().map(|log| vec![Cell::new(Rfc3339(log.timestamp).to_string(), Tone::Dim), (&log.message).into()]);
    let things = related.iter().map(|(kind, name)| vec![Cell::new(kind, Tone::Dim), name.into()]);
    let (lines, things): (Vec<_>, Vec<_>) = (lines.collect(), things.collect());
    render(&[], &lines, None, colour) + &render(&[], &things, None, colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_first_and_then_what_was_touched() {
        let text = r#"{"logs":[{"event_id":"e1","timestamp":1767450139640,"message":"POST /api/v1/users/create 201"}],
            "related_resources":{"users":[{"email":"ana@example.com","created_at":"2026-01-03T14:22:19Z"}]}}"#;
        let trace: TraceResponse = serde_json::from_str(text).expect("the contract's fields");
        assert!(!is_unknown(&trace) && is_unknown(&TraceResponse::default()));
        insta::assert_snapshot!(describe(&trace, &related(&trace.related_resources), false), @r"
        2026-01-03T14:22:19.640Z  POST /api/v1/users/create 201
        user  ana@example.com
        ");
    }
}
