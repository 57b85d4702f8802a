//! One error by meaning. The edges map it to HTTP statuses and exit codes, each in one place.

use std::time::Duration;

use runvoy_model::command::{LockHeld, Refusal};
use runvoy_model::record::Kind;
use runvoy_model::status::Status;
use runvoy_ports::log::LogError;
use runvoy_ports::seal::SealKeysError;
use runvoy_ports::signing::SigningKeysError;
use runvoy_ports::store::StoreError;

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
    #[error("{digits} fits several {what}")]
    Ambiguous {
        /// What was asked for.
        digits: String,
        /// Executions or jobs.
        what: &'static str,
        /// Some of those that fit.
        candidates: Vec<String>,
    },
    /// No key.
    #[error("no API key was sent")]
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
    #[error("role {role} may not do this")]
    Forbidden {
        /// The caller's role.
        role: &'static str,
    },
    /// The caller has another role than when their request came in.
    #[error("your role was changed to {role} while this was under way")]
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
    #[error("{0} was made by an earlier request with this idempotency key, and is shown only once")]
    ShownOnce(String),
    /// The lock is held.
    #[error("lock {} is held by {}", .0.name, .0.holder.held_by)]
    LockHeld(Box<LockHeld>),
    /// The execution has ended.
    #[error("the execution has already ended: {}", .0.as_str())]
    Ended(Status),
    /// It clashes with what is there.
    #[error("{0}")]
    Conflict(String),
    /// The caller is refused too often; they may come back after this time.
    #[error("too many refused requests")]
    RefusedTooOften(Duration),
    /// Too much at once.
    #[error("too many requests at once")]
    Overloaded,
    /// The disk is full.
    #[error("disk full: no space is left on the server")]
    NoSpace,
    /// The store cannot answer now.
    #[error("the store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A bug, or damage.
    #[error("internal error: {0}")]
    Internal(String),
}

impl EngineError {
    /// A request whose `field` is wrong.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), message: message.into() }
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
            StoreError::Damaged(_) => Self::Unavailable(Box::new(error)),
        }
    }
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::NotFound { what: "it was".into() },
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
            | Refusal::Stale(..) => Self::Conflict(refusal.to_string()),
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
            LogError::Gap { .. } | LogError::Full { .. } => Self::Conflict(error.to_string()),
            LogError::Damaged { .. } => Self::Internal(error.to_string()),
        }
    }
}
