//! What people manage, as stores keep it: a record of a kind, under a name, with the head of its chain of events. A record that was removed stays
//! as a tombstone, because its chain must go on when the name is used again. How records may change is in [`crate::decide`].

use serde::{Deserialize, Serialize};

use crate::chain::ChainHead;
use crate::event::{Entity, EntityType};
use crate::group::Group;
use crate::hex::hex;
use crate::image::Image;
use crate::incident::Incident;
use crate::playbook::Playbook;
use crate::queue::{Permit, QueueTerms};
use crate::rule::Rule;
use crate::secret::Secret;
use crate::user::{Claim, User};
use crate::worker::{Drain, WorkerAccount, account_of};

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A user, by e-mail.
    User,
    /// Whose a key is, by the digits of its hash.
    Key,
    /// An invitation, by the digits of its token's hash.
    Claim,
    /// The one list of admins.
    Admins,
    /// A group, by name.
    Group,
    /// A rule, by name.
    Rule,
    /// An image, by id.
    Image,
    /// The one pointer to the default image.
    DefaultImage,
    /// A secret, by name.
    Secret,
    /// The newest version of a playbook, by name.
    Playbook,
    /// One version of a playbook, by `name@version`.
    PlaybookVersion,
    /// The one line of checkpoints.
    Ledger,
    /// The one line of looks at what runs.
    Health,
    /// Something that people are told of until it is over, by what it is about.
    Incident,
    /// The terms of a queue, by its name.
    Queue,
    /// What of a limited queue is with workers, by its name.
    Permits,
    /// An account of workers, by name.
    Worker,
    /// A worker that an admin drains, by the worker's name.
    Drain,
    /// A job, which is kept elsewhere: a word for refusals.
    Job,
    /// A task of a job, which is kept elsewhere: a word for refusals.
    Task,
}

/// The name of a record of which there is one.
pub const ONLY: &str = "only";

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::User,
        Self::Key,
        Self::Claim,
        Self::Admins,
        Self::Group,
        Self::Rule,
        Self::Image,
        Self::DefaultImage,
        Self::Secret,
        Self::Playbook,
        Self::PlaybookVersion,
        Self::Ledger,
        Self::Health,
        Self::Incident,
        Self::Queue,
        Self::Permits,
        Self::Worker,
        Self::Drain,
    ];

    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Key => "key",
            Self::Claim => "claim",
            Self::Admins => "admins",
            Self::Group => "group",
            Self::Rule => "rule",
            Self::Image => "image",
            Self::DefaultImage => "default image",
            Self::Secret => "secret",
            Self::Playbook => "playbook",
            Self::PlaybookVersion => "playbook version",
            Self::Ledger => "ledger",
            Self::Health => "health",
            Self::Incident => "incident",
            Self::Queue => "queue",
            Self::Permits => "permits",
            Self::Worker => "worker",
            Self::Drain => "drain",
            Self::Job => "job",
            Self::Task => "task",
        }
    }

    /// The kind of the events about it; keys, claims, pointers and versions have theirs with what they belong to.
    pub const fn entity(self) -> Option<EntityType> {
        match self {
            Self::User => Some(EntityType::User),
            Self::Group => Some(EntityType::Group),
            Self::Rule => Some(EntityType::Rule),
            Self::Image => Some(EntityType::Image),
            Self::Secret => Some(EntityType::Secret),
            Self::Playbook => Some(EntityType::Playbook),
            Self::Ledger => Some(EntityType::Ledger),
            Self::Health => Some(EntityType::Health),
            Self::Queue => Some(EntityType::Queue),
            Self::Worker => Some(EntityType::Worker),
            Self::Drain => Some(EntityType::Drain),
            Self::Key
            | Self::Claim
            | Self::Admins
            | Self::DefaultImage
            | Self::PlaybookVersion
            | Self::Incident
            | Self::Permits
            | Self::Job
            | Self::Task => None,
        }
    }

    /// Whether a removed one stays as a tombstone. An incident has no chain that would have to go on, and there are many.
    pub const fn leaves_tombstone(self) -> bool {
        !matches!(self, Self::Incident)
    }

    /// Whether the digest of its body enters the event that writes it. Counters are told by the number of their events; incidents and permits
    /// come and go without an event, and nobody's right rests on them.
    pub const fn is_bound(self) -> bool {
        !matches!(self, Self::Ledger | Self::Health | Self::Incident | Self::Permits)
    }

    /// The kind whose events have this entity.
    pub fn of(entity: EntityType) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.entity() == Some(entity))
    }
}

/// One thing that people manage.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What it is.
    pub kind: Kind,
    /// Its name among its kind.
    pub name: String,
    /// Rises by one with every change.
    pub version: u64,
    /// The head of its chain of events.
    pub chain: ChainHead,
    /// What it says; absent after it was removed.
    pub body: Option<Body>,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// See [`Kind::User`].
    User(User),
    /// See [`Kind::Key`]: the owner's e-mail, or [`crate::worker::WORKER_OWNER`] and the name of an account of workers.
    Key(String),
    /// See [`Kind::Claim`].
    Claim(Claim),
    /// See [`Kind::Admins`]: e-mails, in the order in which they became admins.
    Admins(Vec<String>),
    /// See [`Kind::Group`].
    Group(Group),
    /// See [`Kind::Rule`].
    Rule(Rule),
    /// See [`Kind::Image`].
    Image(Image),
    /// See [`Kind::DefaultImage`]: its id.
    DefaultImage(String),
    /// See [`Kind::Secret`].
    Secret(Box<Secret>),
    /// See [`Kind::Playbook`] and [`Kind::PlaybookVersion`].
    Playbook(Box<Playbook>),
    /// See [`Kind::Ledger`]: how many checkpoints there are.
    Ledger(u64),
    /// See [`Kind::Health`]: how many looks there were.
    Health(u64),
    /// See [`Kind::Incident`].
    Incident(Incident),
    /// See [`Kind::Queue`].
    Queue(QueueTerms),
    /// See [`Kind::Permits`], in the order in which they were taken.
    Permits(Vec<Permit>),
    /// See [`Kind::Worker`].
    Worker(Box<WorkerAccount>),
    /// See [`Kind::Drain`].
    Drain(Drain),
}

impl Record {
    /// A record that is not there yet.
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), version: 0, chain: ChainHead::default(), body: None }
    }

    /// What its events are about.
    pub fn entity(&self) -> Option<Entity> {
        self.kind.entity().map(|kind| Entity { kind, id: self.name.clone() })
    }

    /// The user it is.
    pub fn user(&self) -> Option<&User> {
        match &self.body {
            Some(Body::User(user)) => Some(user),
            _ => None,
        }
    }

    /// The group it is.
    pub fn group(&self) -> Option<&Group> {
        match &self.body {
            Some(Body::Group(group)) => Some(group),
            _ => None,
        }
    }

    /// The rule it is.
    pub fn rule(&self) -> Option<&Rule> {
        match &self.body {
            Some(Body::Rule(rule)) => Some(rule),
            _ => None,
        }
    }

    /// The image it is.
    pub fn image(&self) -> Option<&Image> {
        match &self.body {
            Some(Body::Image(image)) => Some(image),
            _ => None,
        }
    }

    /// The secret it is.
    pub fn secret(&self) -> Option<&Secret> {
        match &self.body {
            Some(Body::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    /// The incident it is.
    pub fn incident(&self) -> Option<&Incident> {
        match &self.body {
            Some(Body::Incident(incident)) => Some(incident),
            _ => None,
        }
    }

    /// The account of workers it is.
    pub fn worker(&self) -> Option<&WorkerAccount> {
        match &self.body {
            Some(Body::Worker(account)) => Some(account),
            _ => None,
        }
    }

    /// Who drains the worker that it names, and since when.
    pub fn drain(&self) -> Option<&Drain> {
        match &self.body {
            Some(Body::Drain(drain)) => Some(drain),
            _ => None,
        }
    }

    /// The terms of a queue that it is.
    pub fn queue(&self) -> Option<&QueueTerms> {
        match &self.body {
            Some(Body::Queue(terms)) => Some(terms),
            _ => None,
        }
    }

    /// The permits that are taken, of a limited queue.
    pub fn permits(&self) -> &[Permit] {
        match &self.body {
            Some(Body::Permits(permits)) => permits,
            _ => &[],
        }
    }

    /// The playbook it is.
    pub fn playbook(&self) -> Option<&Playbook> {
        match &self.body {
            Some(Body::Playbook(playbook)) => Some(playbook),
            _ => None,
        }
    }
}

/// The name of the record that knows whose a key is, or what a token claims.
pub fn hash_name(hash: &[u8; 32]) -> String {
    hex(hash)
}

/// The record of whoever owns a key: a user, or an account of workers.
pub fn owner_record(owner: &str) -> (Kind, &str) {
    account_of(owner).map_or((Kind::User, owner), |name| (Kind::Worker, name))
}
