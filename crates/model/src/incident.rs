//! Incidents: what people are told of once when it begins and once when it is over.

use serde::{Deserialize, Serialize};

use crate::time::UnixMs;

/// Something that people are told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// What it is about: `critical TASK:…`, `dead TASK:…`.
    pub about: String,
    /// What happened, for a person.
    pub message: String,
    /// Since when.
    pub began_at: UnixMs,
    /// When somebody was told that it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<UnixMs>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_at: Option<UnixMs>,
}
