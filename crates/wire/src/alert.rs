//! Alerts: whether they arrive.

use serde::{Deserialize, Serialize};

/// Answer to `POST /alerts/test`; only admins may ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertTestResponse {
    /// The host that took the message.
    pub place: String,
    /// What happened.
    pub message: String,
}
