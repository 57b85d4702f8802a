//! Ending an execution.

use serde::{Deserialize, Serialize};

/// Answer to a kill that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KillResponse {
    /// Which execution.
    pub execution_id: String,
    /// What happens now, for a person.
    pub message: String,
}
