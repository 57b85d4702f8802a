//! The one map from what went wrong to an RPC status. What is inside the server stays inside; it is logged with the request's id instead.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use runvoy_engine::EngineError;
use runvoy_ports::lease::LeaseError;
use runvoy_ports::log::LogError;
use runvoy_ports::store::StoreError;
use runvoy_ports::trouble::Trouble;
use runvoy_rpc::connectrpc::{ConnectError, ErrorCode};
use runvoy_wire::Code;

use super::token::BadToken;
use crate::fault::{Fault, THROTTLED, chain, shortened};

/// Why a call is not answered as hoped.
#[derive(Debug)]
pub(crate) enum RpcFault {
    /// The edge or the engine says so.
    Edge(Fault),
    /// The lease says so.
    Lease(LeaseError),
    /// The token is none, or not ours.
    Token(BadToken),
    /// There is no such execution.
    NoJob(String),
    /// What was to be made is there already.
    Exists(String),
    /// The key is for other queues.
    OtherQueue(String),
    /// The caller speaks for a worker that is not theirs.
    OtherWorker(String),
    /// What the client sends cannot be read.
    Received(ConnectError),
    /// The server stops.
    Stopping,
}

impl From<EngineError> for RpcFault {
    fn from(error: EngineError) -> Self {
        Self::Edge(error.into())
    }
}

impl From<Fault> for RpcFault {
    fn from(fault: Fault) -> Self {
        Self::Edge(fault)
    }
}

impl From<LeaseError> for RpcFault {
    fn from(error: LeaseError) -> Self {
        Self::Lease(error)
    }
}

impl From<BadToken> for RpcFault {
    fn from(bad: BadToken) -> Self {
        Self::Token(bad)
    }
}

impl RpcFault {
    /// The request's `field` is wrong.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Edge(Fault::invalid(field, message))
    }

    /// The code and the words of a refusal that is kept in the trail: what the engine refuses as it does of the HTTP API, and what only calls can ask for. A
    /// lease that lapsed is how things are, and refuses nobody.
    pub(super) fn to_be_noted(&self) -> Option<(Code, String)> {
        let of_engine = |error: EngineError| {
            let why = error.to_string();
            Some((Fault::Engine(error).to_be_noted()?, why))
        };
        match self {
            Self::Edge(fault @ Fault::Engine(error)) => Some((fault.to_be_noted()?, error.to_string())),
            Self::Lease(error) => ended_right(error).and_then(of_engine),
            Self::Token(BadToken::Forged | BadToken::UnknownKey) => Some((Code::Forbidden, FORGED.to_owned())),
            Self::Token(BadToken::OtherAccount) => Some((Code::Forbidden, OTHER_ACCOUNT.to_owned())),
            Self::NoJob(id) => Some((Code::NotFound, no_job(id))),
            Self::Exists(message) => Some((Code::Conflict, message.clone())),
            Self::OtherQueue(queue) => Some((Code::Forbidden, other_queue(queue))),
            Self::OtherWorker(why) => Some((Code::Forbidden, why.clone())),
            Self::Edge(_) | Self::Token(BadToken::Unreadable) | Self::Received(_) | Self::Stopping => None,
        }
    }

    /// The status that the client sees.
    pub(crate) fn into_status(self, request_id: &str) -> ConnectError {
        match self {
            Self::Edge(fault) => fault_status(fault, request_id),
            Self::Lease(error) => lease_status(error, request_id),
            Self::Token(BadToken::Unreadable) => ConnectError::invalid_argument("task_token: cannot be read"),
            Self::Token(BadToken::Forged | BadToken::UnknownKey) => ConnectError::permission_denied(FORGED),
            Self::Token(BadToken::OtherAccount) => ConnectError::permission_denied(OTHER_ACCOUNT),
            Self::NoJob(id) => ConnectError::not_found(no_job(&id)),
            Self::Exists(message) => ConnectError::new(ErrorCode::AlreadyExists, message),
            Self::OtherQueue(queue) => ConnectError::permission_denied(other_queue(&queue)),
            Self::OtherWorker(why) => ConnectError::permission_denied(why),
            Self::Received(error) => error,
            Self::Stopping => later(ConnectError::unavailable("the server is stopping; try again"), Duration::ZERO),
        }
    }
}

const OTHER_ACCOUNT: &str = "task_token: was given to another account; only the account that leased may use it";
const FORGED: &str = "task_token: is not one of this server's";

fn no_job(id: &str) -> String {
    format!("there is no job {id}")
}

fn other_queue(queue: &str) -> String {
    format!("this key does not serve queue {queue}")
}

/// The refusal of a step whose right ended since the call came in.
fn ended_right(error: &LeaseError) -> Option<EngineError> {
    let LeaseError::Unavailable(source) = error else { return None };
    let refusal = source.downcast_ref::<StoreError>().and_then(StoreError::refusal)?;
    Some(refusal.clone().into())
}

/// What was written before cannot be read again: whoever brings more is told so, because another try will not help.
fn is_damaged(source: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(source.downcast_ref::<LogError>(), Some(LogError::Damaged { .. }))
}

fn lease_status(error: LeaseError, request_id: &str) -> ConnectError {
    if let Some(refusal) = ended_right(&error) {
        return engine_status(&refusal, request_id);
    }
    match error {
        LeaseError::Unavailable(source) if is_damaged(source.as_ref()) => {
            tracing::error!(request_id, error = %chain(source.as_ref()), "a log is damaged");
            ConnectError::new(ErrorCode::DataLoss, source.to_string())
        }
        LeaseError::Unavailable(source) => {
            tracing::error!(request_id, error = %chain(source.as_ref()), "the store failed");
            unavailable(source.as_ref())
        }
        LeaseError::LogFull { .. } => ConnectError::resource_exhausted(error.to_string()),
        error => ConnectError::failed_precondition(error.to_string()),
    }
}

fn fault_status(fault: Fault, request_id: &str) -> ConnectError {
    match fault {
        Fault::Engine(error) => engine_status(&error, request_id),
        Fault::Refused { code, error, details } => {
            let message = if details.is_empty() { error } else { format!("{error}: {details}") };
            ConnectError::new(refused_code(code), message)
        }
        Fault::TooManyAttempts(wait) => later(ConnectError::resource_exhausted("too many failed attempts"), wait),
        Fault::NoRoom(full) => later(ConnectError::unavailable(format!("{full}; nothing was done, try again")), Duration::ZERO),
        Fault::Stopping => RpcFault::Stopping.into_status(request_id),
        Fault::Panicked => {
            tracing::error!(request_id, "a handler panicked");
            internal(request_id)
        }
        Fault::MethodNotAllowed(_) | Fault::RangeNotSatisfiable(_) => ConnectError::unimplemented("no such method"),
    }
}

const fn refused_code(code: Code) -> ErrorCode {
    match code {
        Code::Unauthorized => ErrorCode::Unauthenticated,
        Code::Forbidden => ErrorCode::PermissionDenied,
        Code::NotFound => ErrorCode::NotFound,
        Code::RateLimited | Code::PayloadTooLarge => ErrorCode::ResourceExhausted,
        _ => ErrorCode::InvalidArgument,
    }
}

/// Nobody frees a disk in seconds.
const FULL_DISK_RETRY: Duration = Duration::from_secs(60);

fn engine_status(error: &EngineError, request_id: &str) -> ConnectError {
    let plain = |code| ConnectError::new(code, shortened(&error.to_string()));
    match error {
        EngineError::Invalid { .. } | EngineError::Ambiguous { .. } => plain(ErrorCode::InvalidArgument),
        EngineError::NotFound { .. } | EngineError::NoSecret(_) => plain(ErrorCode::NotFound),
        EngineError::NoKey | EngineError::InvalidKey | EngineError::OtherAudience | EngineError::RevokedKey => {
            plain(ErrorCode::Unauthenticated)
        }
        EngineError::Forbidden { .. } | EngineError::RoleChanged { .. } | EngineError::Denied { .. } => plain(ErrorCode::PermissionDenied),
        EngineError::SecretExists(_) | EngineError::ShownOnce(_) => plain(ErrorCode::AlreadyExists),
        EngineError::LockHeld(_) | EngineError::Ended(_) | EngineError::Conflict { .. } => plain(ErrorCode::FailedPrecondition),
        // The words are the server's own, and whole: what to do stands at their end.
        EngineError::Unconfirmed { .. } => ConnectError::new(ErrorCode::FailedPrecondition, error.to_string()),
        EngineError::RefusedTooOften(wait) => later(plain(ErrorCode::ResourceExhausted), *wait),
        EngineError::Overloaded => plain(ErrorCode::ResourceExhausted),
        EngineError::LimitReached { .. } => later(plain(ErrorCode::ResourceExhausted), Duration::ZERO),
        EngineError::NoSpace => {
            tracing::error!(request_id, "no space left");
            later(plain(ErrorCode::Unavailable), FULL_DISK_RETRY)
        }
        EngineError::Unavailable(source) => {
            tracing::error!(request_id, error = %chain(source.as_ref()), "the store failed");
            unavailable(source.as_ref())
        }
        EngineError::Damaged(what) => {
            tracing::error!(request_id, error = what, "the store is damaged");
            plain(ErrorCode::Unavailable)
        }
        EngineError::Internal(what) => {
            tracing::error!(request_id, error = what, "internal error");
            internal(request_id)
        }
    }
}

/// What a store that cannot answer now comes to, by what it said of itself. Trying again may help in each case.
fn unavailable(source: &(dyn std::error::Error + 'static)) -> ConnectError {
    match Trouble::of(source) {
        Some(Trouble::Throttled) => later(ConnectError::resource_exhausted(format!("{THROTTLED}; try again")), Duration::ZERO),
        Some(Trouble::Faulty) => ConnectError::internal("the store had an internal error; try again"),
        None => ConnectError::unavailable("the store is not available; try again"),
    }
}

fn internal(request_id: &str) -> ConnectError {
    ConnectError::internal(format!("internal error: the server's log says more at request id {request_id}"))
}

fn later(status: ConnectError, wait: Duration) -> ConnectError {
    let mut headers = HeaderMap::new();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().saturating_add(1)));
    status.with_headers(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_log_is_told_apart_from_one_that_cannot_be_reached_now() {
        let status = |error: LogError| lease_status(LeaseError::Unavailable(Box::new(error)), "r1");
        let damaged = status(LogError::Damaged { after_line: 7 });
        assert_eq!((damaged.code, damaged.message.as_deref()), (ErrorCode::DataLoss, Some("the log is damaged after line 7")));
        assert_eq!(status(LogError::NoSpace).code, ErrorCode::Unavailable);
    }

    #[test]
    fn throttling_and_internal_faults_of_the_store_are_told_apart() {
        for (trouble, expected, retry_after) in [
            (Some(Trouble::Throttled), ErrorCode::ResourceExhausted, Some("1")),
            (Some(Trouble::Faulty), ErrorCode::Internal, None),
            (None, ErrorCode::Unavailable, None),
        ] {
            let source = || match trouble {
                Some(trouble) => trouble.mark("secret words"),
                None => "secret words".into(),
            };
            let of_lease = lease_status(LeaseError::Unavailable(Box::new(StoreError::Unavailable(source()))), "r1");
            for status in [engine_status(&EngineError::Unavailable(source()), "r1"), of_lease] {
                assert_eq!(status.code, expected, "{trouble:?}");
                let header = status.response_headers().get(header::RETRY_AFTER).map(|value| value.to_str().expect("text"));
                assert_eq!(header, retry_after, "{trouble:?}");
                assert!(!status.message.unwrap_or_default().contains("secret"), "what is inside stays inside");
            }
        }
    }
}
