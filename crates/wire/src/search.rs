//! Searching a log on the server.

use serde::{Deserialize, Serialize};

/// Answer to `GET /executions/{id}/logs/search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchResponse {
    /// How many lines match from `from_line` on: to the log's end, or as far as an incomplete search came.
    pub total: u64,
    /// The first of them.
    pub hits: Vec<Hit>,
    /// Where to go on with `from_line`; null once the whole log was searched.
    #[serde(default)]
    pub next_line: Option<u64>,
    /// False where the search reached its time limit before the log's end: there may be more hits from `next_line` on.
    #[serde(default = "yes")]
    pub complete: bool,
}

const fn yes() -> bool {
    true
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hit {
    /// Its number.
    pub line: u64,
    /// Its text; lossy where it is not UTF-8.
    pub message: String,
}
