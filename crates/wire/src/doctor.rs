//! What a server says about its own health, for `doctor`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The server's own checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DoctorResponse {
    /// The checks, in the order in which they were made.
    pub probes: Vec<Probe>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Probe {
    /// What was checked, such as `disk`, `store` or `worker`.
    pub name: String,
    /// The result.
    pub status: ProbeStatus,
    /// What was found, and what to do if something is wrong.
    pub detail: String,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ProbeStatus {
    /// Everything is fine.
    Ok,
    /// It works, but needs attention.
    Warn,
    /// It does not work.
    Fail,
}

impl fmt::Display for ProbeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}
