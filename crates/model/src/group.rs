//! Groups: names for several people, so that a rule or a secret can name them at once.

use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::time::UnixMs;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: Name,
    /// E-mails of its members, sorted, each once.
    pub members: Vec<String>,
    /// Since when.
    pub created_at: UnixMs,
    /// Who made it.
    pub created_by: String,
}

/// A group has at most this many members.
pub const MOST_MEMBERS: usize = 1_000;
