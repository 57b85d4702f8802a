//! The one map from what went wrong to an RPC status. What is inside the server stays inside; it is logged with the request's id instead.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use runvoy_engine::EngineError;
use runvoy_ports::lease::LeaseError;
use runvoy_ports::store::StoreError;
use runvoy_rpc::connectrpc::{ConnectError, ErrorCode};
use runvoy_wire::Code;

use super::token::BadToken;
use crate::fault::{Fault, chain, shortened};

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
    /// The key is for other queues.
    OtherQueue(String),
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

    /// The status that the client sees.
    pub(crate) fn into_status(self, request_id: &str) -> ConnectError {
        match self {
            Self::Edge(fault) => fault_status(fault, request_id),
            Self::Lease(error) => lease_status(error, request_id),
            Self::Token(BadToken::Unreadable) => ConnectError::invalid_argument("task_token: cannot be read"),
            Self::Token(BadToken::Forged) => ConnectError::permission_denied("task_token: is not one of this server's"),
            Self::NoJob(id) => ConnectError::not_found(format!("there is no job {id}")),
            Self::OtherQueue(queue) => ConnectError::permission_denied(format!("this key does not serve queue {queue}")),
            Self::Received(error) => error,
            Self::Stopping => ConnectError::unavailable("the server stops; try again"),
        }
    }
}

fn lease_status(error: LeaseError, request_id: &str) -> ConnectError {
    match error {
        LeaseError::Unavailable(source) => {
            // A right to the step that ended since the call came in.
            if let Some(refusal) = source.downcast_ref::<StoreError>().and_then(StoreError::refusal) {
                return engine_status(&refusal.clone().into(), request_id);
            }
            tracing::error!(request_id, error = %chain(source.as_ref()), "the store failed");
            ConnectError::unavailable("the store is not available; try again")
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

fn engine_status(error: &EngineError, request_id: &str) -> ConnectError {
    let plain = |code| ConnectError::new(code, shortened(&error.to_string()));
    match error {
        EngineError::Invalid { .. } | EngineError::Ambiguous { .. } => plain(ErrorCode::InvalidArgument),
        EngineError::NotFound { .. } | EngineError::NoSecret(_) => plain(ErrorCode::NotFound),
        EngineError::NoKey | EngineError::InvalidKey | EngineError::RevokedKey => plain(ErrorCode::Unauthenticated),
        EngineError::Forbidden { .. } | EngineError::RoleChanged { .. } | EngineError::Denied { .. } => plain(ErrorCode::PermissionDenied),
        EngineError::SecretExists(_) | EngineError::ShownOnce(_) => plain(ErrorCode::AlreadyExists),
        EngineError::LockHeld(_) | EngineError::Ended(_) | EngineError::Conflict(_) => plain(ErrorCode::FailedPrecondition),
        EngineError::RefusedTooOften(wait) => later(plain(ErrorCode::ResourceExhausted), *wait),
        EngineError::Overloaded => plain(ErrorCode::ResourceExhausted),
        EngineError::NoSpace => {
            tracing::error!(request_id, "no space left");
            plain(ErrorCode::Unavailable)
        }
        EngineError::Unavailable(source) => {
            tracing::error!(request_id, error = %chain(source.as_ref()), "the store failed");
            plain(ErrorCode::Unavailable)
        }
        EngineError::Internal(what) => {
            tracing::error!(request_id, error = what, "internal error");
            internal(request_id)
        }
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
