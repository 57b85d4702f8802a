//! Workers as accounts and as a presence. An account is what an admin made: a name, the queues it may serve and the one key that proves it. A presence is
//! what a worker says of itself every few seconds; it is a hint that nothing is decided by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::base58;
use crate::credential::PublicKey;
use crate::hex;
use crate::id::{WorkerAccountId, WorkerId};
use crate::name::Name;
use crate::role::{Action, Reach, Role, reach_of};
use crate::time::UnixMs;

/// Before the name of an account where an e-mail stands otherwise. No e-mail address is like that.
pub const WORKER_OWNER: &str = "worker:";
/// A worker that was not heard of for so long is taken for gone.
pub const LIVE_WITHIN_MS: i64 = 30_000;
/// An account may be limited to at most so many queues.
pub const MOST_QUEUES: usize = 100;

/// An account of workers. Any number of workers may show its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAccount {
    /// Its name.
    pub name: Name,
    /// Its id: another one when the name is used again.
    pub id: WorkerAccountId,
    /// What it may do. A record from before there was a choice is that of a worker.
    #[serde(default = "worker", skip_serializing_if = "is_worker")]
    pub role: Role,
    /// A worker that may also submit, and read and end what it submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_submit: bool,
    /// The queues it may serve; empty means every queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Name>,
    /// What proves it.
    pub key: WorkerKey,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Since when it has this key.
    pub keyed_at: UnixMs,
    /// Who made it.
    pub created_by: String,
    /// Since when.
    pub created_at: UnixMs,
    /// Since when its key does not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<UnixMs>,
}

const fn worker() -> Role {
    Role::Worker
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_worker(role: &Role) -> bool {
    *role == Role::Worker
}

/// What proves an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerKey {
    /// A key that this program made, without the key.
    Secret {
        /// SHA-256 of its text.
        #[serde(with = "hex")]
        hash: [u8; 32],
        /// The part of it that may be shown.
        prefix: String,
    },
    /// A public key: whoever has the private one signs tokens with it.
    Public(PublicKey),
}

impl WorkerKey {
    /// What the record of its owner is found by: the hash of the text, or of the public key.
    pub const fn hash(&self) -> &[u8; 32] {
        match self {
            Self::Secret { hash, .. } => hash,
            Self::Public(key) => key.fingerprint(),
        }
    }

    /// What may be shown to tell keys apart.
    pub fn shown(&self) -> String {
        match self {
            Self::Secret { prefix, .. } => prefix.clone(),
            Self::Public(key) => base58::encode(key.fingerprint()),
        }
    }
}

impl WorkerAccount {
    /// Whether this hash is that of its key, and the key works.
    pub fn has_key(&self, hash: &[u8; 32]) -> bool {
        self.revoked_at.is_none() && bool::from(self.key.hash().ct_eq(hash))
    }

    /// Whether whoever showed its key at this time has a key that still works.
    pub fn stands_since(&self, at: UnixMs) -> bool {
        self.revoked_at.is_none() && self.keyed_at <= at
    }

    /// How far an action reaches for it.
    pub const fn reach(&self, action: Action) -> Reach {
        reach_of(self.role, self.may_submit, action)
    }

    /// Whose its key is, where an e-mail stands otherwise.
    pub fn owner(&self) -> String {
        format!("{WORKER_OWNER}{}", self.name)
    }
}

/// The name of the account that this owner is; `None` for a person.
pub fn account_of(owner: &str) -> Option<&str> {
    owner.strip_prefix(WORKER_OWNER)
}

/// An admin has a worker finish what it runs and take nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Who asked for it.
    pub by: String,
    /// Since when.
    pub at: UnixMs,
}

/// A worker as it was last heard of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Which start of which worker.
    pub worker: WorkerId,
    /// The account whose key it showed; absent for one that lives inside a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Name>,
    /// What it calls itself.
    pub name: String,
    /// The machine it is on.
    pub host: String,
    /// The program's version.
    pub version: String,
    /// How it runs commands.
    pub runner: String,
    /// The queues it serves.
    pub queues: Vec<Name>,
    /// What executions can ask for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How many executions it runs at once.
    pub concurrency: u32,
    /// How many it runs now.
    pub running: u32,
    /// It lives inside a server.
    #[serde(default)]
    pub in_process: bool,
    /// It takes nothing new and ends when what it runs has ended.
    #[serde(default)]
    pub draining: bool,
    /// When it started.
    pub since: UnixMs,
    /// When it was last heard of.
    pub seen_at: UnixMs,
    /// Until when it holds a lease, where it says nothing else of itself. It is not kept with the rest: the leases say it.
    #[serde(skip)]
    pub busy_until: Option<UnixMs>,
    /// Which of the worker directories of its machine it has, as a digest: a later start there is the same worker to people, and keeps its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Presence {
    /// Whether it was heard of lately, or is busy with what it was given.
    pub fn is_live(&self, now: UnixMs) -> bool {
        now.ms_since(self.seen_at) < LIVE_WITHIN_MS || self.busy_until.is_some_and(|until| now < until)
    }

    /// Whether it is another start of the same worker.
    pub fn is_start_of(&self, other: &Self) -> bool {
        let own = (&self.account, &self.host, self.place.as_ref());
        self.worker == other.worker || self.place.is_some() && own == (&other.account, &other.host, other.place.as_ref())
    }

    /// Whether it takes executions of this queue.
    pub fn serves(&self, queue: &Name) -> bool {
        !self.draining && self.concurrency > 0 && self.queues.contains(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> WorkerAccount {
        WorkerAccount {
            name: Name::new("gpu-1").expect("a name"),
            id: WorkerAccountId::from_bytes([1; 16]),
            role: Role::Worker,
            may_submit: false,
            queues: Vec::new(),
            key: WorkerKey::Secret { hash: [7; 32], prefix: "rv_12345678".into() },
            description: None,
            keyed_at: UnixMs(5),
            created_by: "ana@x".into(),
            created_at: UnixMs(5),
            revoked_at: None,
        }
    }

    #[test]
    fn a_key_works_until_it_is_revoked_and_no_other_does() {
        let mut account = account();
        assert!(account.has_key(&[7; 32]));
        assert!(!account.has_key(&[8; 32]));
        account.revoked_at = Some(UnixMs(6));
        assert!(!account.has_key(&[7; 32]));
    }

    #[test]
    fn an_owner_that_is_a_worker_is_no_e_mail() {
        let owner = account().owner();
        assert_eq!(account_of(&owner), Some("gpu-1"));
        assert!(crate::user::email(&owner).is_err());
        assert!(crate::user::email("worker:a@b").is_err(), "nor is one that looks like both");
        assert_eq!(account_of("ana@x"), None);
    }

    #[test]
    fn an_account_survives_its_text_form() {
        let kept = serde_json::to_string(&account()).expect("JSON");
        assert_eq!(serde_json::from_str::<WorkerAccount>(&kept).expect("an account"), account());
        assert!(
            !kept.contains("queues") && !kept.contains("revoked_at") && !kept.contains("role") && !kept.contains("may_submit"),
            "as before there were roles: {kept}"
        );
        let developer = WorkerAccount { role: Role::Developer, ..account() };
        let kept = serde_json::to_string(&developer).expect("JSON");
        assert_eq!(serde_json::from_str::<WorkerAccount>(&kept).expect("an account"), developer);
        let submits = WorkerAccount { may_submit: true, ..account() };
        let kept = serde_json::to_string(&submits).expect("JSON");
        assert_eq!(serde_json::from_str::<WorkerAccount>(&kept).expect("an account"), submits);
    }

    #[test]
    fn a_worker_is_live_while_it_was_heard_of_and_serves_nothing_new_while_it_drains() {
        let queue = Name::new("default").expect("a name");
        let mut worker = Presence {
            worker: WorkerId::from_bytes([1; 16]),
            account: None,
            name: "a".into(),
            host: "a".into(),
            version: "0.1.0".into(),
            runner: "process".into(),
            queues: vec![queue.clone()],
            labels: BTreeMap::new(),
            concurrency: 2,
            running: 0,
            in_process: false,
            draining: false,
            since: UnixMs(0),
            seen_at: UnixMs(1_000),
            busy_until: None,
            place: None,
        };
        assert!(worker.is_live(UnixMs(30_999)) && !worker.is_live(UnixMs(31_000)));
        assert!(worker.is_live(UnixMs(0)), "a clock that was set back makes nobody gone");
        worker.busy_until = Some(UnixMs(90_000));
        assert!(worker.is_live(UnixMs(89_999)) && !worker.is_live(UnixMs(90_000)), "nor is one that holds a lease");
        assert!(worker.serves(&queue) && !worker.serves(&Name::new("gpu").expect("a name")));
        worker.draining = true;
        assert!(!worker.serves(&queue));
    }
}
