//! The audit record: what was done by whom, and whether the record is whole.

use runvoy_model::fold::Comparison;
use runvoy_model::verify::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::Rfc3339;

/// One call that changed something or was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEvent {
    /// The event's id.
    pub event_id: String,
    /// When it happened.
    pub at: Rfc3339,
    /// Who did it: an e-mail address, or the part of the server that acted on its own.
    #[serde(default)]
    pub user: String,
    /// What was done, such as `users.create` or `executions.kill`.
    pub action: String,
    /// The command that was to be run or killed, with the values of its secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The id of the execution, job or playbook that it was done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What the event is about, such as `USER:ana@example.com` or `TASK:0192ab…`.
    pub entity: String,
    /// The event's number among the events of its entity.
    #[serde(default)]
    pub number: u64,
    /// `ok`, or why it was refused.
    #[serde(default)]
    pub result: String,
    /// The address that the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The id of the request.
    #[serde(default)]
    pub request_id: String,
    /// Further details; never the value of a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub details: Option<Value>,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditVerification {
    /// Whether the trail is intact: no event was altered, removed or reordered, and compared
    /// records match the events.
    pub ok: bool,
    /// How many events were checked.
    pub checked: u64,
    /// The first event that is not as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<BadEvent>,
    /// The time of the newest signed checkpoint that the trail was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_at: Option<Rfc3339>,
    /// The number of the first checkpoint that was not exported although later ones exist: either
    /// the export fails, which the server's log explains, or the exported file was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexported_from: Option<u64>,
    /// How many records were compared with the events; present only with `state=1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<u64>,
    /// The first record that does not match the events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_mismatch: Option<Mismatch>,
    /// How many executions and jobs an older version wrote, whose events hold no digest of them:
    /// their events are proved, but what they run and whose they are cannot be compared with these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unverifiable: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A record that does not match the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Mismatch {
    /// The record, such as `TASK:0192ab…`, `JOB:0192ab…` or `LOCK:deploy`.
    pub entity: String,
    /// The field that differs, such as `status` or `tasks.build.phase`.
    pub field: String,
    /// What the record says and what the events say, as a sentence.
    pub message: String,
}

impl AuditVerification {
    /// Adds the result of a comparison of records.
    #[must_use]
    pub fn with_state(self, compared: Comparison) -> Self {
        let first_mismatch = compared.first.map(|first| Mismatch { entity: first.entity, field: first.field, message: first.message });
        // The look at the events may have counted them too.
        let unverifiable = self.unverifiable.max(compared.unverifiable);
        Self { ok: self.ok && first_mismatch.is_none(), compared: Some(compared.compared), first_mismatch, unverifiable, ..self }
    }
}

/// An event that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BadEvent {
    /// What the event is about, such as `USER:ana@example.com` or `TASK:0192ab…`.
    pub entity: String,
    /// The event's number among the events of its entity; 0 if the whole entity is affected.
    #[serde(default)]
    pub number: u64,
    /// The event's id, if it is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// `altered`, `removed`, `reordered` or `unreadable`.
    pub problem: String,
    /// What was found, as a sentence.
    pub message: String,
}

impl From<Verdict> for AuditVerification {
    fn from(verdict: Verdict) -> Self {
        Self {
            ok: verdict.is_whole(),
            checked: verdict.checked,
            first_bad: verdict.first_bad.map(|bad| BadEvent {
                entity: bad.entity,
                number: bad.number,
                event_id: bad.event_id.map(|id| id.to_string()),
                problem: bad.problem.as_str().to_owned(),
                message: bad.message,
            }),
            checkpoint_at: verdict.checkpoint_at.map(Into::into),
            unexported_from: verdict.unexported_from,
            compared: None,
            first_mismatch: None,
            unverifiable: verdict.unverifiable,
        }
    }
}
