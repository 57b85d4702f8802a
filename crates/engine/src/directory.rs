//! What people manage, remembered while it is true: lists of records and who a key belongs to. The store's own number of changes says how long that
//! is; where the store has none, nothing is remembered.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::group::Group;
use runvoy_model::record::{Body, Kind, ONLY, Record, hash_name};
use runvoy_model::role::{Action, Reach, Role, reach};
use runvoy_model::rule::Rule;
use runvoy_model::user::User;
use runvoy_model::worker::{WorkerAccount, account_of};

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// Somebody, as far as a request needs to know them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) user: User,
    pub(crate) groups: Vec<String>,
}

/// Whose a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    Person(Person),
    Worker(WorkerAccount),
}

/// What the owner of something is now.
pub(crate) struct OwnerStanding {
    pub role: Role,
    pub groups: Vec<String>,
    pub may_run: bool,
}

/// What was read while the store's number stood.
#[derive(Default)]
pub(crate) struct Directory {
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    authority: u64,
    lists: HashMap<Kind, Arc<Vec<Record>>>,
    /// By the hash of a key.
    owners: HashMap<[u8; 32], Arc<Owner>>,
}

/// More keys than this are not remembered at once.
const MOST_OWNERS: usize = 10_000;

impl Directory {
    fn look<T>(&self, authority: Option<u64>, find: impl FnOnce(&Remembered) -> Option<T>) -> Option<T> {
        let remembered = self.remembered.lock();
        if Some(remembered.authority) == authority { find(&remembered) } else { None }
    }

    /// Remembers something that was read after the number was.
    fn keep(&self, authority: Option<u64>, put: impl FnOnce(&mut Remembered)) {
        let Some(authority) = authority else { return };
        let mut remembered = self.remembered.lock();
        if remembered.authority != authority {
            *remembered = Remembered { authority, ..Remembered::default() };
        }
        put(&mut remembered);
    }
}

/// What one request has read of what people manage: it judges all of its tasks by one state, and reads that once. A clone is the same; the
/// next request reads anew.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<SeenRecords>>);

#[derive(Default)]
struct SeenRecords {
    lists: HashMap<Kind, Arc<Vec<Record>>>,
    records: HashMap<(Kind, String), Option<Record>>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seen").finish_non_exhaustive()
    }
}

/// Whose request it is does not depend on what was read for it.
impl PartialEq for Seen {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Seen {}

impl Engine {
    /// Every record of a kind, as this request sees them.
    pub(crate) async fn all_for(&self, caller: &Caller, kind: Kind) -> Result<Arc<Vec<Record>>, EngineError> {
        if let Some(list) = caller.seen.0.lock().lists.get(&kind).cloned() {
            return Ok(list);
        }
        let list = self.all(kind).await?;
        caller.seen.0.lock().lists.insert(kind, Arc::clone(&list));
        Ok(list)
    }

    /// One record, as this request sees it.
    pub(crate) async fn record_for(&self, caller: &Caller, kind: Kind, name: &str) -> Result<Option<Record>, EngineError> {
        let key = (kind, name.to_owned());
        if let Some(record) = caller.seen.0.lock().records.get(&key).cloned() {
            return Ok(record);
        }
        let record = self.ports.records.record(kind, name).await?;
        caller.seen.0.lock().records.insert(key, record.clone());
        Ok(record)
    }

    /// Every rule, by name, as this request sees them.
    pub(crate) async fn rules_seen_by(&self, caller: &Caller) -> Result<Vec<Rule>, EngineError> {
        Ok(self.all_for(caller, Kind::Rule).await?.iter().filter_map(Record::rule).cloned().collect())
    }

    /// Every record of a kind.
    pub(crate) async fn all(&self, kind: Kind) -> Result<Arc<Vec<Record>>, EngineError> {
        let authority = self.ports.records.authority();
        if let Some(list) = self.directory.look(authority, |remembered| remembered.lists.get(&kind).cloned()) {
            return Ok(list);
        }
        let list = Arc::new(self.ports.records.records(kind).await?);
        self.directory.keep(authority, |remembered| drop(remembered.lists.insert(kind, Arc::clone(&list))));
        Ok(list)
    }

    /// Every rule, by name.
    pub(crate) async fn rules(&self) -> Result<Vec<Rule>, EngineError> {
        Ok(self.all(Kind::Rule).await?.iter().filter_map(Record::rule).cloned().collect())
    }

    /// The names of the rules that apply to a caller.
    pub async fn rules_for(&self, caller: &Caller) -> Result<Vec<String>, EngineError> {
        let subject = caller.subject();
        let rules = self.all(Kind::Rule).await?;
        Ok(rules.iter().filter_map(Record::rule).filter(|rule| rule.applies_to(&subject)).map(|rule| rule.name.clone()).collect())
    }

    /// The groups that somebody is in.
    pub(crate) async fn groups_of(&self, email: &str) -> Result<Vec<String>, EngineError> {
        let groups = self.all(Kind::Group).await?;
        let member = |group: &&Group| group.members.iter().any(|member| member == email);
        Ok(groups.iter().filter_map(Record::group).filter(member).map(|group| group.name.to_string()).collect())
    }

    /// Somebody by their e-mail, unless nobody should hear of them any more.
    pub(crate) async fn person(&self, email: &str) -> Result<Option<Person>, EngineError> {
        let record = self.ports.records.record(Kind::User, email).await?;
        let Some(user) = record.as_ref().and_then(Record::user).filter(|user| user.exists(self.now())) else { return Ok(None) };
        Ok(Some(Person { user: user.clone(), groups: self.groups_of(email).await? }))
    }

    /// What the owner of something is now; `None` where they may not call any more.
    pub(crate) async fn standing_of(&self, owner: &str) -> Result<Option<OwnerStanding>, EngineError> {
        let Some(name) = account_of(owner) else {
            let person = self.person(owner).await?.filter(|person| person.user.revoked_at.is_none());
            return Ok(person.map(|person| {
                let role = person.user.role;
                OwnerStanding { role, groups: person.groups, may_run: reach(role, Action::Run) != Reach::None }
            }));
        };
        let record = self.ports.records.record(Kind::Worker, name).await?;
        let account = record.as_ref().and_then(Record::worker).filter(|account| account.revoked_at.is_none());
        let may_run = |account: &WorkerAccount| account.reach(Action::Run) != Reach::None;
        Ok(account.map(|account| OwnerStanding { role: account.role, groups: Vec::new(), may_run: may_run(account) }))
    }

    /// Whose the key with this hash is, or was.
    pub(crate) async fn owner(&self, hash: [u8; 32]) -> Result<Option<Arc<Owner>>, EngineError> {
        let authority = self.ports.records.authority();
        if let Some(owner) = self.directory.look(authority, |remembered| remembered.owners.get(&hash).cloned()) {
            return Ok(Some(owner));
        }
        let record = self.ports.records.record(Kind::Key, &hash_name(&hash)).await?;
        let Some(Body::Key(owner)) = record.and_then(|record| record.body) else { return Ok(None) };
        let owner = match account_of(&owner) {
            Some(name) => {
                self.ports.records.record(Kind::Worker, name).await?.as_ref().and_then(Record::worker).cloned().map(Owner::Worker)
            }
            None => self.person(&owner).await?.map(Owner::Person),
        };
        let Some(owner) = owner.map(Arc::new) else { return Ok(None) };
        self.directory.keep(authority, |remembered| {
            if remembered.owners.len() >= MOST_OWNERS {
                remembered.owners.clear();
            }
            remembered.owners.insert(hash, Arc::clone(&owner));
        });
        Ok(Some(owner))
    }

    /// The first of the admins: the one that the server made for its own user, while they are one.
    pub(crate) async fn first_admin(&self) -> Result<Option<Person>, EngineError> {
        let admins = self.all(Kind::Admins).await?;
        let record = admins.iter().find(|record| record.name == ONLY);
        let Some(Body::Admins(admins)) = record.and_then(|record| record.body.as_ref()) else { return Ok(None) };
        match admins.first() {
            Some(email) => self.person(email).await,
            None => Ok(None),
        }
    }

    /// Whether more than one can run commands here: people, and registered keys with a role that runs.
    pub async fn has_many_users(&self) -> Result<bool, EngineError> {
        Ok(self.active_users().await?.len() > 1)
    }

    /// The names of those who can run commands here, as executions have them in `created_by`: two of them at most.
    pub(crate) async fn active_users(&self) -> Result<Vec<String>, EngineError> {
        let now = self.now();
        let users = self.all(Kind::User).await?;
        let active = |user: &&User| user.revoked_at.is_none() && user.exists(now);
        let mut names: Vec<String> = users.iter().filter_map(Record::user).filter(active).take(2).map(|user| user.email.clone()).collect();
        if names.len() < 2 {
            let accounts = self.all(Kind::Worker).await?;
            let runs = |account: &&WorkerAccount| account.revoked_at.is_none() && account.reach(Action::Run) != Reach::None;
            let keys = accounts.iter().filter_map(Record::worker).filter(runs).map(WorkerAccount::owner);
            names.extend(keys.take(2 - names.len()));
        }
        Ok(names)
    }
}
