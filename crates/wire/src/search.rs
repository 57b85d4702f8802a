//! Searching a log on the server.

use serde::{Deserialize, Serialize};

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchResponse {
    /// How many lines match, from `from_line` to the end of the log or of an incomplete search.
    pub total: u64,
    /// The first matching lines.
    pub hits: Vec<Hit>,
    /// The `from_line` of the next search; null if the whole log was searched.
    #[serde(default)]
    pub next_line: Option<u64>,
    /// False if the search reached its time limit before the end of the log: continue at
    /// `next_line`.
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
    /// The line's number.
    pub line: u64,
    /// The line's text. Invalid UTF-8 is replaced.
    pub message: String,
}
