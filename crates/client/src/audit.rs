//! Calls about what was done: the audit record, its proof, its export, and the trace of one request.

use std::time::Duration;

use runvoy_wire::{AuditEvent, AuditVerification, TraceResponse};

use crate::call::Call;
use crate::client::Client;
use crate::download::Download;
use crate::error::ClientError;
use crate::execution::Page;
use crate::query::Target;

/// Going through the whole record takes its time.
const VERIFY_LIMIT: Duration = Duration::from_secs(3600);

/// Which audit events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only what this user did.
    pub user: Option<String>,
    /// Only this action.
    pub action: Option<String>,
    /// Only those with this text.
    pub text: Option<String>,
    /// Only at or after this RFC 3339 time.
    pub since: Option<String>,
    /// Only before this RFC 3339 time.
    pub until: Option<String>,
    /// How many at most; `None` leaves it to the server.
    pub limit: Option<u32>,
    /// Go on where an earlier page ended.
    pub cursor: Option<String>,
}

impl Client {
    /// One part of the audit record, newest first.
    pub async fn audit(&self, query: &AuditQuery) -> Result<Page<AuditEvent>, ClientError> {
        self.page(&Call::get(target(&["audit"], query))).await
    }

    /// The audit record as NDJSON, an [`AuditEvent`] a line, oldest first, in constant memory.
    pub async fn export_audit(&self, query: &AuditQuery) -> Result<Download, ClientError> {
        let call = Call::get(target(&["audit", "export"], query)).once();
        Ok(Download::new(self.clone(), self.open(&call).await?))
    }

    /// Whether the audit record is as it was written; on demand also whether all kept state follows from it.
    pub async fn verify_audit(&self, with_state: bool) -> Result<AuditVerification, ClientError> {
        let target = Target::new(&["audit", "verify"]).with_some("state", with_state.then_some("true"));
        self.fetch(&Call::get(target).limit(VERIFY_LIMIT)).await
    }

    /// Everything that one request did.
    pub async fn trace_request(&self, request_id: &str) -> Result<TraceResponse, ClientError> {
        self.fetch(&Call::get(Target::new(&["trace", request_id]))).await
    }
}

fn target(path: &[&str], query: &AuditQuery) -> Target {
    Target::new(path)
        .with_some("user", query.user.as_ref())
        .with_some("action", query.action.as_ref())
        .with_some("text", query.text.as_ref())
        .with_some("since", query.since.as_ref())
        .with_some("until", query.until.as_ref())
        .with_some("limit", query.limit)
        .with_some("cursor", query.cursor.as_ref())
}
