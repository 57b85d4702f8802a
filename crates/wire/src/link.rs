//! Signed links: the log of one execution for whoever has the address, for a while.

use serde::{Deserialize, Serialize};

use crate::sensitive::Sensitive;
use crate::status::Status;
use crate::time::Rfc3339;

/// Answer to `POST /executions/{id}/link`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkResponse {
    /// Whose log it opens.
    pub execution_id: String,
    /// The web page, with the token in its fragment.
    pub url: Sensitive,
    /// The token alone, for `Authorization: Bearer`.
    pub token: Sensitive,
    /// Until when it is good, unless the key or the user that made it ends before.
    pub expires_at: Rfc3339,
}

/// Answer to `GET /logs/{id}` with a link's token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkedLog {
    /// Whose log it is.
    pub execution_id: String,
    /// Where the execution is.
    pub status: Status,
    /// The lines after `since` as one text, a newline behind each.
    pub logs: String,
    /// The next `since`: the time of the last line here, or the `since` of the request where none came after it. Absent where there is no line yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_timestamp: Option<Rfc3339>,
    /// It ended, and there is nothing more to come.
    pub completed: bool,
}
