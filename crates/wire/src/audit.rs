//! The audit record: what was done by whom, and whether the record is whole.

use runvoy_model::fold::Comparison;
use runvoy_model::verify::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::Rfc3339;

/// One call that changed something, or was refused. An item of `GET /audit` and a line of `GET /audit/export`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEvent {
    /// Its id.
    pub event_id: String,
    /// When.
    pub at: Rfc3339,
    /// Who: an e-mail, or the part of the platform that acted by itself.
    #[serde(default)]
    pub user: String,
    /// What they did: `users.create`, `executions.kill`, …
    pub action: String,
    /// What was run or ended, or was to be: the values of the secrets that it names are masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The id of what it was asked of: an execution, a job, a playbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What it was done to: `USER:ana@example.com`, `TASK:0192ab…`.
    pub entity: String,
    /// Its number among the events of that entity.
    #[serde(default)]
    pub number: u64,
    /// `ok`, or why not.
    #[serde(default)]
    pub result: String,
    /// From where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The request.
    #[serde(default)]
    pub request_id: String,
    /// What else is to be known; no value of a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub details: Option<Value>,
}

/// Answer to `GET /audit/verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditVerification {
    /// Nothing was altered, removed or reordered, and what was compared follows from the events.
    pub ok: bool,
    /// How many events were looked at.
    pub checked: u64,
    /// The first that is not as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<BadEvent>,
    /// The time of the newest signed checkpoint that was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_at: Option<Rfc3339>,
    /// The number of the first checkpoint that is not exported yet, though others were made since: exporting fails, which the server's
    /// log explains, or somebody cut the file at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexported_from: Option<u64>,
    /// How many executions, jobs, tasks, locks and records were compared with what the events say; only where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<u64>,
    /// The first that does not follow from the events.
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

/// Something that is kept and does not follow from the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Mismatch {
    /// What it is about: `TASK:0192ab…`, `JOB:0192ab…`, `LOCK:deploy`.
    pub entity: String,
    /// Which part of it: `status`, `tasks.build.phase`.
    pub field: String,
    /// What is kept and what the events say, for a person.
    pub message: String,
}

impl AuditVerification {
    /// With what a comparison of kept state came to.
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
    /// What it is about: `USER:ana@example.com`, `TASK:0192ab…`.
    pub entity: String,
    /// Its number among the events of that entity; 0 where the whole entity is concerned.
    #[serde(default)]
    pub number: u64,
    /// Its id, where it is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// `altered`, `removed`, `reordered` or `unreadable`.
    pub problem: String,
    /// What was found, for a person.
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
