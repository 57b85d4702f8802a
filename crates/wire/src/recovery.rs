//! The way back in for whoever owns the server's machine.

use serde::{Deserialize, Serialize};

use crate::sensitive::Sensitive;

/// Whose admin access to recover.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverRequest {
    /// The user who becomes an admin; default: the first admin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// The recovered access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverResponse {
    /// The user's e-mail address.
    pub email: String,
    /// The new API key. It is shown only here.
    pub api_key: Sensitive,
}
