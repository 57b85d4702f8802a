//! Alerts: whether they arrive.

use serde::{Deserialize, Serialize};

/// The result of a test alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertTestResponse {
    /// The host that accepted the message.
    pub place: String,
    /// The result as a sentence.
    pub message: String,
}
