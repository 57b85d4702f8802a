//! The error body and the one table from error code to HTTP status.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::lock::LockHeld;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $text:literal $status:literal;)*) => {
        /// What went wrong, by meaning. The word is part of the contract, and so is its HTTP status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status it travels with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The code of a word; a newer server may use words that this version does not know.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// A field is missing, malformed or out of range.
    InvalidRequest "INVALID_REQUEST" 400;
    /// There is no credential.
    Unauthorized "UNAUTHORIZED" 401;
    /// The credential is nobody's.
    InvalidApiKey "INVALID_API_KEY" 401;
    /// The credential was revoked.
    ApiKeyRevoked "API_KEY_REVOKED" 401;
    /// The caller is known, and may not do this.
    Forbidden "FORBIDDEN" 403;
    /// It does not exist, or is not the caller's to see.
    NotFound "NOT_FOUND" 404;
    /// There is no such secret.
    SecretNotFound "SECRET_NOT_FOUND" 404;
    /// The route exists, with another method.
    MethodNotAllowed "METHOD_NOT_ALLOWED" 405;
    /// It contradicts what is already there.
    Conflict "CONFLICT" 409;
    /// Another execution holds the lock.
    LockHeld "LOCK_HELD" 409;
    /// There is already a secret of this name.
    SecretAlreadyExists "SECRET_ALREADY_EXISTS" 409;
    /// The body is larger than the route takes.
    PayloadTooLarge "PAYLOAD_TOO_LARGE" 413;
    /// Too many attempts; `Retry-After` says when to come back.
    RateLimited "RATE_LIMITED" 429;
    /// A bug.
    InternalError "INTERNAL_ERROR" 500;
    /// The store did not answer.
    DatabaseError "DATABASE_ERROR" 503;
    /// The server is stopping or overloaded.
    ServiceUnavailable "SERVICE_UNAVAILABLE" 503;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The body of every answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// What happened, for a person.
    pub error: String,
    /// What happened, for a program: a word of [`Code`].
    pub code: String,
    /// Why, or what to do next; may be empty.
    #[serde(default)]
    pub details: String,
    /// Beside `CONFLICT`: the same request with `"confirm": true` in its body is taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
    /// Beside `LOCK_HELD`, in the same object: who holds it.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub lock_held: Option<LockHeld>,
}

impl ErrorBody {
    /// A body for `code`.
    pub fn new(code: Code, error: impl Into<String>, details: impl Into<String>) -> Self {
        Self { error: error.into(), code: code.as_str().to_owned(), details: details.into(), confirm: false, lock_held: None }
    }

    /// The body for a lock that another execution holds.
    pub fn lock_held(held: LockHeld) -> Self {
        Self {
            lock_held: Some(held.clone()),
            ..Self::new(
                Code::LockHeld,
                format!("lock {} is held by {}", held.lock_name, held.held_by),
                format!("execution {} has held it since {}", held.execution_id, held.since),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Rfc3339;

    #[test]
    fn every_code_is_found_by_its_word() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            assert!((400..600).contains(&code.status()), "{code}");
        }
        assert_eq!(Code::parse("TEAPOT"), None);
    }

    #[test]
    fn a_held_lock_stands_beside_the_three_fields_that_every_error_has() {
        let held = LockHeld {
            lock_name: "prod".into(),
            held_by: "ana@example.com".into(),
            since: Rfc3339(0),
            execution_id: "0192ab".into(),
            log_url: "http://127.0.0.1/logs?execution_id=0192ab".into(),
        };
        let body = ErrorBody::lock_held(held);
        insta::assert_json_snapshot!(body, @r#"
        {
          "error": "lock prod is held by ana@example.com",
          "code": "LOCK_HELD",
          "details": "execution 0192ab has held it since 1970-01-01T00:00:00.000Z",
          "lock_name": "prod",
          "held_by": "ana@example.com",
          "since": "1970-01-01T00:00:00.000Z",
          "execution_id": "0192ab",
          "log_url": "http://127.0.0.1/logs?execution_id=0192ab"
        }
        "#);
        let text = serde_json::to_string(&body).expect("plain data");
        assert_eq!(serde_json::from_str::<ErrorBody>(&text).expect("own encoding"), body);
        let plain: ErrorBody = serde_json::from_str(r#"{"error":"no","code":"FORBIDDEN"}"#).expect("details may be absent");
        assert_eq!(plain, ErrorBody::new(Code::Forbidden, "no", ""));
    }
}
