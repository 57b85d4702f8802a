//! The way back in for whoever owns the server's machine.

use serde::{Deserialize, Serialize};

use crate::sensitive::Sensitive;

/// Body of `POST /admin/recover`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverRequest {
    /// Who is to be an admin; absent: the first of the admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// Answer to a recovery. It is given once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverResponse {
    /// Who is an admin now.
    pub email: String,
    /// Their new key. Nobody can ask for it again.
    pub api_key: Sensitive,
}
