//! One error by meaning. The edges map it to HTTP statuses and exit codes, each in one place.

use std::time::Duration;

use runvoy_model::command::{LockHeld, Refusal};
use runvoy_model::record::Kind;
use runvoy_model::status::Status;
use runvoy_ports::log::LogError;
use runvoy_ports::seal::SealKeysError;
use runvoy_ports::signing::SigningKeysError;
use runvoy_ports::store::StoreError;

/// The advice of a clash whose message says everything else.
pub(crate) const NOTHING_CHANGED: &str = "nothing was changed";

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The request is wrong.
    #[error("{field}: {message}")]
    Invalid {
        /// Which part of it.
        field: String,
        /// What is wrong and what would be right.
        message: String,
    },
    /// No such thing, or not the caller's.
    #[error("{what} not found")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// Several fit.
    #[error("{digits} matches several {what}")]
    Ambiguous {
        /// What was asked for.
        digits: String,
        /// Executions or jobs.
        what: &'static str,
        /// Some of those that fit.
        candidates: Vec<String>,
    },
    /// No key.
    #[error("the request has no API key")]
    NoKey,
    /// Not a key of ours.
    #[error("the API key is not valid")]
    InvalidKey,
    /// A token that its worker signed for somebody else.
    #[error("the token is not for this server")]
    OtherAudience,
    /// A key that was good once.
    #[error("the API key was revoked or has expired")]
    RevokedKey,
    /// The role does not allow it.
    #[error("your role ({role}) does not allow this")]
    Forbidden {
        /// The caller's role.
        role: &'static str,
    },
    /// The caller has another role than when their request came in.
    #[error("your role was changed to {role} during the request")]
    RoleChanged {
        /// The role now.
        role: &'static str,
    },
    /// A rule does not allow it.
    #[error("{why}")]
    Denied {
        /// Which, where it was one.
        rule: Option<String>,
        /// Why.
        why: String,
    },
    /// There is no such secret, or it is not the caller's.
    #[error("there is no secret {0}")]
    NoSecret(String),
    /// There is a secret of this name.
    #[error("secret {0} exists already")]
    SecretExists(String),
    /// What is shown once was shown before.
    #[error("an earlier request with this idempotency key created {0}, which is shown only once")]
    ShownOnce(String),
    /// The lock is held.
    #[error("lock {} is held by {}", .0.name, .0.holder.held_by)]
    LockHeld(Box<LockHeld>),
    /// The execution has ended.
    #[error("the execution has already finished: {}", .0.as_str())]
    Ended(Status),
    /// It clashes with what is there.
    #[error("{message}")]
    Conflict {
        /// What clashes, and why.
        message: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// It would change more than it says, and has to be confirmed.
    #[error("{what}: {remedy}")]
    Unconfirmed {
        /// What it would change.
        what: String,
        /// What to do first, or how to confirm it.
        remedy: String,
    },
    /// The caller is refused too often; they may come back after this time.
    #[error("too many refused requests")]
    RefusedTooOften(Duration),
    /// Too much at once.
    #[error("too many requests at once")]
    Overloaded,
    /// The caller has as much of something as they may.
    #[error("{what}")]
    LimitReached {
        /// Which limit.
        what: String,
        /// What helps.
        remedy: &'static str,
    },
    /// The disk is full.
    #[error("disk full: no space is left on the server")]
    NoSpace,
    /// The store cannot answer now.
    #[error("the database of the server does not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored cannot be trusted; what is damaged is for the log, and no client's to see.
    #[error("the database of the server is damaged")]
    Damaged(String),
    /// A bug, or damage.
    #[error("internal error: {0}")]
    Internal(String),
}

impl EngineError {
    /// A request whose `field` is wrong.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), message: message.into() }
    }

    /// A clash with what is there, and what to do about it.
    pub fn conflict(message: impl Into<String>, advice: &'static str) -> Self {
        Self::Conflict { message: message.into(), advice }
    }

    /// No such execution, or not the caller's: both look the same.
    pub fn no_execution(id: impl std::fmt::Display) -> Self {
        Self::NotFound { what: format!("execution {id}") }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::NoSpace => Self::NoSpace,
            StoreError::Unavailable(source) => Self::Unavailable(source),
            StoreError::Damaged(what) => Self::Damaged(what),
        }
    }
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::NotFound { what: "the execution, job or lock".into() },
            Refusal::LockHeld(held) => Self::LockHeld(held),
            Refusal::Ended(status) => Self::Ended(status),
            Refusal::Missing(Kind::Secret, name) => Self::NoSecret(name),
            Refusal::Taken(Kind::Secret, name) => Self::SecretExists(name),
            Refusal::Missing(kind, name) => Self::NotFound { what: format!("{} {name}", kind.as_str()) },
            Refusal::Revoked => Self::RevokedKey,
            Refusal::NotAllowed(role) => Self::Forbidden { role: role.as_str() },
            Refusal::RoleChanged(role) => Self::RoleChanged { role: role.as_str() },
            Refusal::Lapsed
            | Refusal::NotDead(..)
            | Refusal::KeyReused(_)
            | Refusal::Exists(_)
            | Refusal::Taken(..)
            | Refusal::LastAdmin(_)
            | Refusal::Claimed
            | Refusal::TooMany(_)
            | Refusal::JobClosed(..)
            | Refusal::NotRevisable(..)
            | Refusal::Stale(..) => Self::conflict(refusal.to_string(), refusal.advice()),
        }
    }
}

impl From<SealKeysError> for EngineError {
    fn from(error: SealKeysError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

impl From<SigningKeysError> for EngineError {
    fn from(error: SigningKeysError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

impl From<LogError> for EngineError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::NoSpace => Self::NoSpace,
            LogError::Storage(source) => Self::Unavailable(source),
            LogError::Pattern(message) => Self::invalid("q", message),
            LogError::Gap { .. } | LogError::Full { .. } => Self::conflict(error.to_string(), "nothing was written"),
            LogError::Damaged { .. } => Self::Internal(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::change::Made;
    use runvoy_model::id::{ExecutionId, JobId};
    use runvoy_model::job::{JobStatus, Phase};
    use runvoy_model::lock::Holder;
    use runvoy_model::name::Name;
    use runvoy_model::role::Role;
    use runvoy_model::time::UnixMs;

    use super::*;

    fn every_refusal() -> Vec<Refusal> {
        let execution = ExecutionId::from_bytes([1; 16]);
        let holder = Holder { execution, held_by: "ana@example.com".into(), since: UnixMs(0) };
        let name = Name::new("prod").expect("a name");
        let all = vec![
            Refusal::NotFound,
            Refusal::Lapsed,
            Refusal::Ended(Status::Failed),
            Refusal::NotDead(execution, Status::Failed),
            Refusal::LockHeld(Box::new(LockHeld { name, holder })),
            Refusal::KeyReused(Made::Execution(execution)),
            Refusal::Exists(execution),
            Refusal::Taken(Kind::User, "ana@example.com".into()),
            Refusal::Missing(Kind::User, "ana@example.com".into()),
            Refusal::LastAdmin("ana@example.com".into()),
            Refusal::Claimed,
            Refusal::TooMany("there are 100 keys".into()),
            Refusal::JobClosed(JobId::from_bytes([1; 16]), JobStatus::Completed),
            Refusal::NotRevisable(Name::new("build").expect("a name"), Phase::Active),
            Refusal::Stale(Kind::Secret, "db".into()),
            Refusal::Revoked,
            Refusal::NotAllowed(Role::Viewer),
            Refusal::RoleChanged(Role::Viewer),
        ];
        let kinds: std::collections::HashSet<_> = all.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), all.len(), "each once");
        all
    }

    #[test]
    fn every_refusal_says_what_happened_and_what_to_do() {
        for refusal in every_refusal() {
            let advice = refusal.advice();
            assert!(advice.starts_with("nothing was changed; "), "{refusal:?}: {advice}");
            let error = EngineError::from(refusal.clone());
            assert!(error.to_string().contains(' '), "{refusal:?}: {error}");
            if let EngineError::Conflict { advice: told, .. } = error {
                assert_eq!(told, advice);
            }
        }
    }
}
