//! Who may do what: the roles and the one table of actions. A route names its action; there is no other way in.

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
    /// Leases and runs; no person is one.
    Worker,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Admin, Self::Operator, Self::Developer, Self::Viewer, Self::Worker];

    /// Every role that a person can have, the mightiest first.
    pub const OF_PEOPLE: [Self; 4] = [Self::Admin, Self::Operator, Self::Developer, Self::Viewer];

    /// Every role that a registered public key can be given, the first where none is named.
    pub const OF_KEYS: [Self; 4] = [Self::Worker, Self::Viewer, Self::Developer, Self::Operator];

    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Developer => "developer",
            Self::Viewer => "viewer",
            Self::Worker => "worker",
        }
    }

    /// Reads the word of a role that a person can have.
    pub fn parse(text: &str) -> Option<Self> {
        Self::OF_PEOPLE.into_iter().find(|role| role.as_str() == text)
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
    /// Lease executions and run them: what a worker does.
    Lease,
    /// Make, re-key and revoke accounts of workers.
    ManageWorkers,
    /// See queues and workers.
    ReadQueues,
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

/// How far an action reaches for an account: as its role says. A worker that may submit also runs, and reads and ends what it submitted.
pub const fn reach_of(role: Role, may_submit: bool, action: Action) -> Reach {
    match (role, action) {
        (Role::Worker, Action::Run) if may_submit => Reach::All,
        (Role::Worker, Action::Read | Action::Kill) if may_submit => Reach::Own,
        _ => reach(role, action),
    }
}

/// The table. Every role stands in every row, so that a new action does not compile before all are decided.
pub const fn reach(role: Role, action: Action) -> Reach {
    use Reach::{All, None, Own};
    let [admin, operator, developer, viewer, worker] = match action {
        Action::Public | Action::KnowSelf => [All, All, All, All, All],
        Action::Run => [All, All, All, None, None],
        Action::Read | Action::ShareLog => [All, All, Own, All, None],
        Action::Kill => [All, All, Own, None, None],
        Action::ReadLocks | Action::ReadImages | Action::ReadPlaybooks | Action::ReadSecrets | Action::ReadQueues => {
            [All, All, All, All, None]
        }
        Action::Metrics => [All, All, None, All, None],
        Action::ManageImages | Action::Redrive | Action::ManageQueues => [All, All, None, None, None],
        Action::WriteSecrets => [All, All, Own, None, None],
        Action::ManageKeys | Action::ExplainAccess => [All, Own, Own, Own, None],
        Action::Lease => [All, None, None, None, All],
        Action::ReleaseLock
        | Action::Diagnose
        | Action::Backup
        | Action::ManageUsers
        | Action::ManageWorkers
        | Action::RotateSealingKey
        | Action::ManagePlaybooks
        | Action::ReadAudit
        | Action::Trace
        | Action::Reconcile => [All, None, None, None, None],
    };
    match role {
        Role::Admin => admin,
        Role::Operator => operator,
        Role::Developer => developer,
        Role::Viewer => viewer,
        Role::Worker => worker,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_person_can_be_a_worker() {
        assert_eq!(Role::parse("worker"), None);
        for role in Role::OF_PEOPLE {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert!(!Role::OF_PEOPLE.contains(&Role::Worker) && Role::ALL.contains(&Role::Worker));
    }

    #[test]
    fn a_worker_that_may_submit_runs_and_sees_its_own_and_nothing_else() {
        for action in [Action::ReadSecrets, Action::WriteSecrets, Action::ReadQueues, Action::ShareLog, Action::ManageKeys, Action::Redrive]
        {
            assert_eq!(reach_of(Role::Worker, true, action), Reach::None, "{action:?}");
        }
        for (action, expected) in
            [(Action::Run, Reach::All), (Action::Read, Reach::Own), (Action::Kill, Reach::Own), (Action::Lease, Reach::All)]
        {
            assert_eq!(reach_of(Role::Worker, true, action), expected, "{action:?}");
            assert_eq!(reach_of(Role::Worker, false, action), reach(Role::Worker, action), "{action:?}");
            assert_eq!(reach_of(Role::Viewer, true, action), reach(Role::Viewer, action), "{action:?}: it is for workers");
        }
    }

    #[test]
    fn a_key_is_never_an_admin_and_a_worker_unless_somebody_says_otherwise() {
        assert!(!Role::OF_KEYS.contains(&Role::Admin));
        assert_eq!(Role::OF_KEYS[0], Role::Worker);
    }

    #[test]
    fn a_worker_knows_itself_and_leases_and_nobody_but_an_admin_does_that_too() {
        for action in [Action::Run, Action::Read, Action::Kill, Action::ReadQueues, Action::ReadSecrets, Action::ManageWorkers] {
            assert_eq!(reach(Role::Worker, action), Reach::None, "{action:?}");
        }
        for action in [Action::KnowSelf, Action::Lease] {
            assert_eq!(reach(Role::Worker, action), Reach::All, "{action:?}");
        }
        let lease = Role::OF_PEOPLE.map(|role| reach(role, Action::Lease));
        assert_eq!(lease, [Reach::All, Reach::None, Reach::None, Reach::None]);
    }
}
