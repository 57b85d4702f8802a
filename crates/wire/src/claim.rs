//! Claiming: a one-time token becomes a key.

use serde::{Deserialize, Serialize};

use crate::sensitive::Sensitive;

/// Answer to `POST /claim/{token}`, and to `GET` for other clients. It is given once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimResponse {
    /// The key. Nobody can ask for it again.
    pub api_key: Sensitive,
    /// Whose key it is.
    pub user_email: String,
    /// What happened, for a person.
    #[serde(default)]
    pub message: String,
}
