//! Why a call failed, by what a worker does about it.

use std::error::Error as _;

use runvoy_ports::lease::LeaseError;
use runvoy_rpc::connectrpc::{ConnectError, ErrorCode};

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nobody answered, or not now: try again.
    #[error("{0}")]
    Away(String),
    /// The key is wrong, expired or revoked.
    #[error("the server does not accept the key: {0}")]
    Key(String),
    /// The server, or something in front of it, does not let the caller do this. That may pass: a proxy is set right, a key gets its queues back.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// What was asked for is over, or not the caller's.
    #[error("{0}")]
    Lost(String),
    /// What the server has of it is damaged: nothing can be added to it any more.
    #[error("{0}")]
    Damaged(String),
}

impl Fault {
    pub(crate) fn of(error: &ConnectError) -> Self {
        let said = error.message.clone().filter(|message| !message.is_empty());
        let message = root(error).or(said).unwrap_or_else(|| error.code.as_str().to_owned());
        match error.code {
            ErrorCode::Unauthenticated => Self::Key(message),
            ErrorCode::PermissionDenied | ErrorCode::InvalidArgument => Self::Refused(message),
            ErrorCode::NotFound | ErrorCode::FailedPrecondition => Self::Lost(message),
            ErrorCode::DataLoss => Self::Damaged(message),
            // Also what something in front of a server says that is being started: that is no reason to end anything.
            _ => Self::Away(message),
        }
    }

    /// What it means to an attempt. A refusal is as good as no server: only who knows the lease can say that it is lost.
    pub(crate) fn into_lease_error(self) -> LeaseError {
        match self {
            Self::Lost(why) => LeaseError::Lost(why),
            Self::Damaged(why) => LeaseError::Refused(why),
            Self::Away(_) | Self::Key(_) | Self::Refused(_) => LeaseError::Unavailable(Box::new(self)),
        }
    }
}

/// What was wrong in the first place, where something under the call was: `Connection refused` says more than that a request failed.
fn root(error: &ConnectError) -> Option<String> {
    let mut cause = error.source()?;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Some(cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lapsed_lease_is_lost_and_everything_that_may_pass_is_not() {
        let of = |code| Fault::of(&ConnectError::new(code, "why")).into_lease_error();
        for code in [ErrorCode::FailedPrecondition, ErrorCode::NotFound] {
            assert!(matches!(of(code), LeaseError::Lost(why) if why == "why"), "{code:?}");
        }
        for code in [
            ErrorCode::Unavailable,
            ErrorCode::ResourceExhausted,
            ErrorCode::Unimplemented,
            ErrorCode::Internal,
            ErrorCode::Unauthenticated,
            ErrorCode::PermissionDenied,
            ErrorCode::InvalidArgument,
        ] {
            assert!(matches!(of(code), LeaseError::Unavailable(_)), "{code:?}");
        }
        assert!(matches!(of(ErrorCode::DataLoss), LeaseError::Refused(why) if why == "why"));
    }
}
