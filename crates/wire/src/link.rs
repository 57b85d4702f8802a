//! Signed links: the log of one execution for whoever has the address, for a while.

use serde::{Deserialize, Serialize};

use crate::sensitive::Sensitive;
use crate::status::Status;
use crate::time::Rfc3339;

/// A signed link to a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkResponse {
    /// The execution whose log it opens.
    pub execution_id: String,
    /// The address of the web page, with the token in its fragment.
    pub url: Sensitive,
    /// The token alone, for `Authorization: Bearer`.
    pub token: Sensitive,
    /// When it expires. It stops working earlier if the key or user that created it is revoked.
    pub expires_at: Rfc3339,
}

/// A part of a log as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkedLog {
    /// The execution's id.
    pub execution_id: String,
    /// The execution's status.
    pub status: Status,
    /// The lines after `since` as one text, each with a newline at its end.
    pub logs: String,
    /// The next `since`: the time of the last line, or the `since` of the request if there are no
    /// newer lines. Absent if the log is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_timestamp: Option<Rfc3339>,
    /// Whether the execution has finished and these are its last lines.
    pub completed: bool,
}
