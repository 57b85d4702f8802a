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
    /// Every role, the mightiest first.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Operator, Self::Developer, Self::Viewer];

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
        Self::ALL.into_iter().find(|role| role.as_str() == text)
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
    /// Run what was given up again, whosever it is.
    Redrive,
    /// Pause queues and limit them.
    ManageQueues,
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
    /// List, invite and revoke people, change roles, manage groups and rules.
    ManageUsers,
    /// Manage keys: one's own, or anybody's.
    ManageKeys,
    /// Ask why something is allowed or not: for oneself, or for anybody.
    ExplainAccess,
    /// See images.
    ReadImages,
    /// Register and unregister images.
    ManageImages,
    /// See secrets; which, and whether their values, is the secret's own matter.
    ReadSecrets,
    /// Make, change and delete secrets; which, is the secret's own matter.
    WriteSecrets,
    /// Seal every secret anew.
    RotateSealingKey,
    /// See playbooks.
    ReadPlaybooks,
    /// Push and remove playbooks.
    ManagePlaybooks,
    /// Make a link that opens one log without a key.
    ShareLog,
    /// Read, verify and export the audit trail.
    ReadAudit,
    /// Find what belongs to a request.
    Trace,
    /// Look for what does not fit, and repair it.
    Reconcile,
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

/// The table. Every role stands in every row, so that a new action does not compile before all four are decided.
pub const fn reach(role: Role, action: Action) -> Reach {
    use Reach::{All, None, Own};
    let [admin, operator, developer, viewer] = match action {
        Action::Public | Action::KnowSelf => [All, All, All, All],
        Action::Run => [All, All, All, None],
        Action::Read | Action::ShareLog => [All, All, Own, All],
        Action::Kill => [All, All, Own, None],
        Action::ReadLocks | Action::ReadImages | Action::ReadPlaybooks | Action::ReadSecrets => [All, All, All, All],
        Action::Metrics => [All, All, None, All],
        Action::ManageImages | Action::Redrive | Action::ManageQueues => [All, All, None, None],
        Action::WriteSecrets => [All, All, Own, None],
        Action::ManageKeys | Action::ExplainAccess => [All, Own, Own, Own],
        Action::ReleaseLock
        | Action::Diagnose
        | Action::Backup
        | Action::ManageUsers
        | Action::RotateSealingKey
        | Action::ManagePlaybooks
        | Action::ReadAudit
        | Action::Trace
        | Action::Reconcile => [All, None, None, None],
    };
    match role {
        Role::Admin => admin,
        Role::Operator => operator,
        Role::Developer => developer,
        Role::Viewer => viewer,
    }
}
