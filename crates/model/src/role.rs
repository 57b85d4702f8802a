//! Who may do what: the four roles and the one table of actions. A route names its action; there is no other way in.

use serde::{Deserialize, Serialize};

/// What a user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May do everything.
    Admin,
    /// Runs, sees and kills everything.
    Operator,
    /// Runs; sees and kills their own.
    Developer,
    /// Reads everything.
    Viewer,
}

impl Role {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Developer => "developer",
            Self::Viewer => "viewer",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Admin, Self::Operator, Self::Developer, Self::Viewer].into_iter().find(|role| role.as_str() == text)
    }
}

/// What a caller wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Look without a key: health, readiness.
    Public,
    /// Ask who one is.
    KnowSelf,
    /// Run a command.
    Run,
    /// Read executions and their logs.
    Read,
    /// End an execution.
    Kill,
    /// List locks.
    ReadLocks,
    /// Take a lock from its holder.
    ReleaseLock,
    /// Look at the server's own health and growth.
    Diagnose,
    /// Read the metrics.
    Metrics,
    /// Copy the store, the logs and the keys.
    Backup,
}

/// How far an action reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Not allowed.
    None,
    /// What one submitted or co-owns.
    Own,
    /// Everything.
    All,
}

/// The table.
pub const fn reach(role: Role, action: Action) -> Reach {
    use Action::{Backup, Diagnose, Kill, KnowSelf, Metrics, Public, Read, ReadLocks, ReleaseLock, Run};
    match (role, action) {
        (_, Public | KnowSelf) | (Role::Admin, _) => Reach::All,
        (Role::Operator, Run | Read | Kill | ReadLocks | Metrics) => Reach::All,
        (Role::Developer, Run | ReadLocks) => Reach::All,
        (Role::Developer, Read | Kill) => Reach::Own,
        (Role::Viewer, Read | ReadLocks | Metrics) => Reach::All,
        (Role::Operator, ReleaseLock | Diagnose | Backup)
        | (Role::Developer, ReleaseLock | Diagnose | Metrics | Backup)
        | (Role::Viewer, Run | Kill | ReleaseLock | Diagnose | Backup) => Reach::None,
    }
}
