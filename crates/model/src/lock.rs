//! A named mutex that one execution holds from its submit to its end.

use serde::{Deserialize, Serialize};

use crate::id::ExecutionId;
use crate::name::Name;
use crate::time::UnixMs;

/// A lock. It is kept after its release, because its fence must go on rising.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its name.
    pub name: Name,
    /// Who holds it.
    pub holder: Option<Holder>,
    /// Rises with every new holder, so that a system beyond can refuse an old one.
    pub fence: u64,
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The execution.
    pub execution: ExecutionId,
    /// Its owner.
    pub held_by: String,
    /// Since when.
    pub since: UnixMs,
}

impl Lock {
    /// A lock that nobody ever held.
    pub fn free(name: Name) -> Self {
        Self { name, holder: None, fence: 0 }
    }

    /// Whether this very execution holds it.
    pub fn is_held_by(&self, execution: ExecutionId) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.execution == execution)
    }
}
