//! What can go wrong, by meaning.

use std::error::Error as StdError;
use std::time::Duration;

use runvoy_wire::{Code, ErrorBody, LockHeld};

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answered, or the answer broke off.
    #[error("cannot reach the server at {endpoint}")]
    Unreachable {
        /// Where.
        endpoint: String,
        /// Whether a connection was ever made.
        connected: bool,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// Somebody answered, and is not trusted.
    #[error("cannot connect to {endpoint} over TLS")]
    Tls {
        /// Where.
        endpoint: String,
        /// What to do next.
        advice: &'static str,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The server behind a Unix socket belongs to another user. Nothing was sent to it.
    #[error("the server at {endpoint} runs as another user (uid {peer}, yours is {own}): nothing was sent to it")]
    ForeignServer {
        /// Where.
        endpoint: String,
        /// The server's uid.
        peer: u32,
        /// The caller's uid.
        own: u32,
    },
    /// There is no key, or it is not accepted.
    #[error("{}", .0.message)]
    Unauthorized(Box<Refusal>),
    /// It does not exist, or is not the caller's to see.
    #[error("{}", .0.message)]
    NotFound(Box<Refusal>),
    /// Another execution holds the lock.
    #[error("{}", .refusal.message)]
    LockHeld {
        /// Who holds it.
        held: Box<LockHeld>,
        /// The whole answer.
        refusal: Box<Refusal>,
    },
    /// Any other refusal.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// The answer makes no sense.
    #[error("the answer of {endpoint} does not come from a runvoy server: {what}")]
    Protocol {
        /// Where.
        endpoint: String,
        /// What is wrong with it.
        what: String,
        /// The id of the request.
        request_id: String,
    },
    /// The client was given something that it cannot use.
    #[error("invalid {what}: {why}")]
    Invalid {
        /// What.
        what: &'static str,
        /// Why.
        why: String,
    },
}

/// An answer that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The code's word.
    pub code: String,
    /// What happened.
    pub message: String,
    /// Why, or what to do next; may be empty.
    pub details: String,
    /// The same request is taken once it is confirmed.
    pub confirm: bool,
    /// The id of the request.
    pub request_id: String,
    /// When the server asks to come back.
    pub retry_after: Option<Duration>,
}

impl ClientError {
    /// The error of an answer with this status.
    pub(crate) fn from_answer(status: u16, body: &[u8], request_id: String, retry_after: Option<Duration>) -> Self {
        let body = serde_json::from_slice::<ErrorBody>(body).unwrap_or_else(|_| ErrorBody {
            error: format!("the server, or a proxy in front of it, answered with status {status}"),
            code: format!("HTTP_{status}"),
            details: String::new(),
            confirm: false,
            lock_held: None,
        });
        let ErrorBody { error: message, code, details, confirm, lock_held } = body;
        let refusal = Box::new(Refusal { status, code, message, details, confirm, request_id, retry_after });
        match (lock_held, status) {
            (Some(held), 409) if refusal.code == Code::LockHeld.as_str() => Self::LockHeld { held: Box::new(held), refusal },
            (_, 401) => Self::Unauthorized(refusal),
            (_, 404) => Self::NotFound(refusal),
            _ => Self::Refused(refusal),
        }
    }

    /// The answer, where there was one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Unauthorized(refusal) | Self::NotFound(refusal) | Self::Refused(refusal) | Self::LockHeld { refusal, .. } => {
                Some(refusal)
            }
            Self::Unreachable { .. } | Self::Tls { .. } | Self::ForeignServer { .. } | Self::Protocol { .. } | Self::Invalid { .. } => None,
        }
    }

    /// The same request is taken once it is confirmed.
    pub fn asks_to_confirm(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.confirm)
    }

    /// The same call may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => matches!(refusal.status, 429 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// The whole chain of causes, outermost first, without this error itself.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut next = self.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if causes.last() != Some(&text) {
                causes.push(text);
            }
            next = cause.source();
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_the_error_that_it_means() {
        let lock = br#"{"error":"held","code":"LOCK_HELD","details":"","lock_name":"prod","held_by":"ana","since":"2026-01-03T14:22:19Z",
            "execution_id":"0192ab","log_url":""}"#;
        let error = ClientError::from_answer(409, lock, "r".into(), None);
        assert!(matches!(&error, ClientError::LockHeld { held, .. } if held.held_by == "ana"), "{error:?}");
        let conflict = br#"{"error":"two executions match","code":"CONFLICT","details":"a b"}"#;
        assert!(matches!(ClientError::from_answer(409, conflict, "r".into(), None), ClientError::Refused(_)));
        assert!(matches!(ClientError::from_answer(401, b"{}", "r".into(), None), ClientError::Unauthorized(_)));
        assert!(matches!(ClientError::from_answer(404, b"{}", "r".into(), None), ClientError::NotFound(_)));
    }

    #[test]
    fn a_page_of_a_proxy_is_told_by_its_status() {
        let error = ClientError::from_answer(502, b"<html>", "r".into(), None);
        assert_eq!(error.refusal().map(|refusal| refusal.code.as_str()), Some("HTTP_502"));
        assert!(error.is_retryable());
        assert!(!ClientError::from_answer(500, b"<html>", "r".into(), None).is_retryable());
    }
}
