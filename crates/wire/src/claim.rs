//! Claiming: a one-time token becomes a key.

use serde::{Deserialize, Serialize};

use crate::sensitive::Sensitive;

/// The API key of a claimed invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimResponse {
    /// The API key. It is shown only here.
    pub api_key: Sensitive,
    /// The user that the key belongs to.
    pub user_email: String,
    /// The result as a sentence.
    #[serde(default)]
    pub message: String,
}
