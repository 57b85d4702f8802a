//! The one map from what went wrong to what the client sees: status, code, words and headers. What is inside the server stays inside; it is
//! logged with the request's id instead.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use runvoy_engine::EngineError;
use runvoy_ports::trouble::Trouble;
use runvoy_wire::{Code, ErrorBody, LockHeld};

use crate::address::Reached;
use crate::answer;
use crate::app::State;
use crate::room::Full;

/// Why a request is not answered as hoped.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The engine says so.
    Engine(EngineError),
    /// The edge itself says so.
    Refused {
        /// What, for a program.
        code: Code,
        /// What, for a person.
        error: String,
        /// Why, or what to do.
        details: String,
    },
    /// The path exists, with these methods.
    MethodNotAllowed(HeaderValue),
    /// No byte of the range exists; the whole has this many.
    RangeNotSatisfiable(u64),
    /// Whoever asks has failed too often to show who they are; they may try again after this time.
    TooManyAttempts(Duration),
    /// The memory budget has no room for the request now.
    NoRoom(Full),
    /// The server stops, and takes no new work.
    Stopping,
    /// The handler panicked.
    Panicked,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<Full> for Fault {
    fn from(full: Full) -> Self {
        Self::NoRoom(full)
    }
}

/// What a throttled store comes to.
pub(crate) const THROTTLED: &str = "the database takes no more requests right now";
/// Nobody frees a disk in seconds: clients that would wait tell their users at once instead.
const FULL_DISK_RETRY_AFTER: HeaderValue = HeaderValue::from_static("60");
/// Longer words of a client are not repeated in full.
const MOST_ECHOED_CHARS: usize = 400;

impl Fault {
    /// The request's `field` is wrong.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        EngineError::invalid(field, message).into()
    }

    /// No such route.
    pub(crate) fn no_route() -> Self {
        Self::refused(Code::NotFound, "no such route", "GET /api/v1/openapi.json lists the routes")
    }

    /// Not a ticket, not for this execution, or too old.
    pub(crate) fn bad_ticket() -> Self {
        let details = "ask GET /api/v1/executions/{id}/logs for a new websocket_url";
        Self::refused(Code::Unauthorized, "the stream's ticket is not valid or has expired", details)
    }

    /// Not a link, not to this execution, or too old.
    pub(crate) fn bad_link() -> Self {
        Self::refused(Code::Unauthorized, "the link is not valid or has expired", "ask the sender for a new one: `runvoy logs ID --link`")
    }

    /// Nothing leads to this server that a link could name.
    pub(crate) fn no_address() -> Self {
        let details = "it listens only on its Unix socket: start one with a port, `runvoy serve`";
        Self::refused(Code::Conflict, "cannot create a link: this server has no HTTP port", details)
    }

    /// The body is larger than the route takes.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::refused(Code::PayloadTooLarge, "the body is too large", format!("it may have at most {}", size(limit)))
    }

    /// The body asks for more memory than one request may have.
    pub(crate) fn too_many_values(limit: usize) -> Self {
        Self::refused(
            Code::PayloadTooLarge,
            "the body holds too many values",
            format!("they would take more than {} of memory", size(limit)),
        )
    }

    /// The user follows as many logs as one may.
    pub(crate) fn too_many_streams() -> Self {
        Self::refused(Code::RateLimited, "too many streams and waits are open for this user", "close one, then try again")
    }

    /// A page of that origin may not do this.
    pub(crate) fn foreign_origin() -> Self {
        Self::refused(Code::Forbidden, "requests from pages of this origin are not allowed", "add it to the server's cors_origins")
    }

    /// Whether somebody showed a key or a token that is nobody's: it may be a guess. What was good once is none.
    pub(crate) const fn is_guess(&self) -> bool {
        matches!(self, Self::Engine(EngineError::InvalidKey) | Self::Refused { code: Code::Unauthorized, .. })
    }

    /// The code of a refusal that is kept in the trail, where a known caller wanted to change something: what they may not, what is not theirs or not
    /// there, what clashes. The engine keeps what rules refuse itself; a lock that is held is how things are, and refuses nobody.
    pub(crate) const fn to_be_noted(&self) -> Option<Code> {
        let Self::Engine(error) = self else { return None };
        Some(match error {
            EngineError::Forbidden { .. } | EngineError::RoleChanged { .. } => Code::Forbidden,
            EngineError::RevokedKey => Code::ApiKeyRevoked,
            EngineError::NotFound { .. } => Code::NotFound,
            EngineError::NoSecret(_) => Code::SecretNotFound,
            EngineError::SecretExists(_) => Code::SecretAlreadyExists,
            EngineError::Conflict { .. } | EngineError::Unconfirmed { .. } => Code::Conflict,
            EngineError::Invalid { .. }
            | EngineError::Ambiguous { .. }
            | EngineError::NoKey
            | EngineError::InvalidKey
            | EngineError::OtherAudience
            | EngineError::Denied { .. }
            | EngineError::ShownOnce(_)
            | EngineError::LockHeld(_)
            | EngineError::Ended(_)
            | EngineError::RefusedTooOften(_)
            | EngineError::Overloaded
            | EngineError::LimitReached { .. }
            | EngineError::NoSpace
            | EngineError::Unavailable(_)
            | EngineError::Damaged(_)
            | EngineError::Internal(_) => return None,
        })
    }

    /// Whether who calls is not who they say, or not any more.
    pub(crate) const fn is_no_credential(&self) -> bool {
        self.is_guess() || matches!(self, Self::Engine(EngineError::RevokedKey))
    }

    fn refused(code: Code, error: impl Into<String>, details: impl Into<String>) -> Self {
        Self::Refused { code, error: error.into(), details: details.into() }
    }

    /// The answer.
    pub(crate) fn into_response(self, state: &State, reached: &Reached, request_id: &str) -> Response<Body> {
        match self {
            Self::Engine(error) => engine_response(&error, state, reached, request_id),
            Self::Refused { code, error, details } => {
                let response = respond(code, ErrorBody::new(code, error, details));
                match code {
                    Code::Unauthorized => challenged(response),
                    Code::RateLimited => later(response),
                    _ => response,
                }
            }
            Self::MethodNotAllowed(allow) => {
                let details = format!("allowed methods: {}", allow.to_str().unwrap_or_default());
                let body = ErrorBody::new(Code::MethodNotAllowed, "this route has no such method", details);
                with(respond(Code::MethodNotAllowed, body), header::ALLOW, allow)
            }
            Self::RangeNotSatisfiable(length) => {
                let body = ErrorBody::new(
                    Code::InvalidRequest,
                    "the range begins after the end of the log",
                    format!("Range: the log has {length} bytes"),
                );
                let mut response = answer::json(StatusCode::RANGE_NOT_SATISFIABLE, &body);
                let range = HeaderValue::from_str(&format!("bytes */{length}")).expect("digits are ASCII");
                response.headers_mut().insert(header::CONTENT_RANGE, range);
                response
            }
            Self::TooManyAttempts(wait) => too_often(wait, "too many failed attempts"),
            Self::NoRoom(full) => {
                let body = ErrorBody::new(Code::ServiceUnavailable, full.to_string(), "nothing was done; try again in a second");
                later(respond(Code::ServiceUnavailable, body))
            }
            Self::Stopping => {
                let details = "nothing was done; try again in a few seconds, when it may be back";
                later(respond(Code::ServiceUnavailable, ErrorBody::new(Code::ServiceUnavailable, "the server is stopping", details)))
            }
            Self::Panicked => {
                tracing::error!(request_id, "a handler panicked");
                internal(request_id)
            }
        }
    }
}

fn engine_response(error: &EngineError, state: &State, reached: &Reached, request_id: &str) -> Response<Body> {
    let plain = |code, details: &str| respond(code, ErrorBody::new(code, shortened(&error.to_string()), details));
    match error {
        EngineError::Invalid { field, .. } => plain(Code::InvalidRequest, &format!("correct {} and send it again", shortened(field))),
        EngineError::NotFound { .. } => plain(Code::NotFound, "it does not exist, or you may not see it"),
        EngineError::Ambiguous { candidates, .. } => plain(Code::Conflict, &candidates.join(", ")),
        EngineError::NoKey => challenged(plain(Code::Unauthorized, "send the key in the header X-API-Key; `runvoy configure` stores one")),
        EngineError::InvalidKey => challenged(plain(Code::InvalidApiKey, "check the key, or ask an admin for a new one")),
        EngineError::OtherAudience => {
            challenged(plain(Code::InvalidApiKey, "its `aud` must be the server's address: its public_url, or one of its worker_audience"))
        }
        EngineError::RevokedKey => challenged(plain(Code::ApiKeyRevoked, "ask an admin for a new key")),
        EngineError::Forbidden { .. } => plain(Code::Forbidden, "ask an admin for a role that allows it"),
        EngineError::RoleChanged { .. } => {
            plain(Code::Forbidden, "nothing was changed; send it again: it is then checked against your present role")
        }
        EngineError::Denied { rule, .. } => {
            let details = match rule {
                Some(rule) => format!("rule {rule} decided; see why: `runvoy access explain`"),
                None => "see which rule: `runvoy access explain`".to_owned(),
            };
            plain(Code::Forbidden, &details)
        }
        EngineError::NoSecret(_) => plain(Code::SecretNotFound, "it does not exist, or you may not see it"),
        EngineError::SecretExists(_) => plain(Code::SecretAlreadyExists, "nothing was changed; update it, or delete it first"),
        EngineError::ShownOnce(_) => plain(Code::Conflict, "nothing was changed; create another one if you lost it"),
        EngineError::LockHeld(held) => {
            let holder = &held.holder;
            let body = ErrorBody::lock_held(LockHeld {
                lock_name: held.name.to_string(),
                held_by: holder.held_by.clone(),
                since: holder.since.into(),
                execution_id: holder.execution.to_string(),
                log_url: reached.log_url(state, holder.execution),
            });
            respond(Code::LockHeld, body)
        }
        EngineError::Ended(_) => plain(Code::InvalidRequest, "nothing was changed"),
        EngineError::Conflict { advice, .. } => plain(Code::Conflict, advice),
        EngineError::Unconfirmed { what, remedy } => {
            respond(Code::Conflict, ErrorBody { confirm: true, ..ErrorBody::new(Code::Conflict, what, remedy) })
        }
        EngineError::RefusedTooOften(wait) => too_often(*wait, &error.to_string()),
        EngineError::Overloaded => later(plain(Code::RateLimited, "try again in a second")),
        EngineError::LimitReached { remedy, .. } => later(plain(Code::RateLimited, remedy)),
        EngineError::NoSpace => {
            tracing::error!(request_id, "no space left");
            let response = plain(
                Code::ServiceUnavailable,
                "nothing was done; an admin has to free disk space (`runvoy doctor` shows how much is left)",
            );
            with(response, header::RETRY_AFTER, FULL_DISK_RETRY_AFTER)
        }
        EngineError::Unavailable(source) => {
            tracing::error!(request_id, error = %chain(source.as_ref()), "the store failed");
            let details = "try again; with the same Idempotency-Key that is safe";
            later(match Trouble::of(source.as_ref()) {
                Some(Trouble::Throttled) => respond(Code::RateLimited, ErrorBody::new(Code::RateLimited, THROTTLED, details)),
                Some(Trouble::Faulty) | None => plain(Code::DatabaseError, details),
            })
        }
        EngineError::Damaged(what) => {
            tracing::error!(request_id, error = what, "the store is damaged");
            plain(Code::DatabaseError, "ask an admin: the server's log says what cannot be read")
        }
        EngineError::Internal(what) => {
            tracing::error!(request_id, error = what, "internal error");
            internal(request_id)
        }
    }
}

fn internal(request_id: &str) -> Response<Body> {
    let details = format!("the server's log has the details at request id {request_id}");
    respond(Code::InternalError, ErrorBody::new(Code::InternalError, "internal error", details))
}

fn respond(code: Code, body: ErrorBody) -> Response<Body> {
    answer::json(StatusCode::from_u16(code.status()).expect("codes have HTTP statuses"), &body)
}

fn with(mut response: Response<Body>, name: header::HeaderName, value: HeaderValue) -> Response<Body> {
    response.headers_mut().insert(name, value);
    response
}

fn challenged(response: Response<Body>) -> Response<Body> {
    with(response, header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn later(response: Response<Body>) -> Response<Body> {
    with(response, header::RETRY_AFTER, HeaderValue::from_static("1"))
}

fn too_often(wait: Duration, error: &str) -> Response<Body> {
    let seconds = wait.as_secs().saturating_add(1);
    let body = ErrorBody::new(Code::RateLimited, error, format!("try again in {seconds} s"));
    with(respond(Code::RateLimited, body), header::RETRY_AFTER, HeaderValue::from(seconds))
}

/// A number of bytes as people write it.
fn size(bytes: usize) -> String {
    match bytes {
        mib if mib >= 1 << 20 && mib % (1 << 20) == 0 => format!("{} MiB", mib >> 20),
        kib if kib >= 1 << 10 && kib % (1 << 10) == 0 => format!("{} KiB", kib >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// The beginning of a client's own long words.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_ECHOED_CHARS) {
        Some((at, _)) => format!("{}… ({} bytes in all)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

/// An error with its causes, for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
