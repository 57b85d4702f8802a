//! Ending an execution.

use serde::{Deserialize, Serialize};

/// The result of a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KillResponse {
    /// The execution's id.
    pub execution_id: String,
    /// The result as a sentence.
    pub message: String,
}
