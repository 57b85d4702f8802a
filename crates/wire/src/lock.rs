//! Locks: who holds one, and how many wait.

use serde::{Deserialize, Serialize};

use crate::time::Rfc3339;

/// A lock that an execution holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lock {
    /// The lock's name.
    pub lock_name: String,
    /// The user whose execution holds it.
    pub held_by: String,
    /// Since when it is held.
    pub since: Rfc3339,
    /// The execution that holds it.
    pub execution_id: String,
    /// How many executions wait for it.
    #[serde(default)]
    pub waiters: u64,
}

/// The execution that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockHeld {
    /// The lock's name.
    pub lock_name: String,
    /// The user whose execution holds it.
    pub held_by: String,
    /// Since when it is held.
    pub since: Rfc3339,
    /// The execution that holds it.
    pub execution_id: String,
    /// The web page of that execution's log, without a token.
    pub log_url: String,
}
