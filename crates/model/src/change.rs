//! The verbs by which people manage what they manage: users, keys, groups, rules, images, secrets, playbooks, queues. Each is one atomic step.

use serde::{Deserialize, Serialize};

use crate::group::Group;
use crate::health::Check;
use crate::id::{ExecutionId, JobId, WorkerAccountId};
use crate::image::{ImageSettings, Reference};
use crate::incident::Move;
use crate::name::Name;
use crate::playbook::PlaybookBody;
use crate::queue::QueueUpdate;
use crate::record::Kind;
use crate::redrive::Redriven;
use crate::role::Role;
use crate::rule::Rule;
use crate::secret::Sealed;
use crate::time::UnixMs;
use crate::worker::WorkerKey;

/// A change of what people manage.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The first admin of an empty store.
    CreateFirstAdmin(NewUser),
    /// Somebody who may claim a key, or who brings one.
    InviteUser(Invitation),
    /// An invitation that nobody has answered gets another token and another end; the token before it works no longer.
    RenewInvitation(Renewal),
    /// An invitation is answered.
    ClaimKey(ClaimKey),
    /// No key of theirs works any more.
    RevokeUser(String),
    /// They become something else.
    SetRole(String, Role),
    /// One more key.
    AddKey(String, NewKey),
    /// A key of theirs works no longer, by the part of it that is shown.
    RevokeKey(String, String),
    /// A new key takes the place of an old one.
    RotateKey(String, String, NewKey),
    /// The way back in for whoever owns the machine.
    RecoverAdmin(NewUser),
    /// An invitation that nobody answered in time is forgotten.
    ForgetUnclaimed(String),
    /// A group as it is from now on.
    PutGroup(Group),
    /// No such group any more.
    RemoveGroup(Name),
    /// A rule as it is from now on.
    PutRule(Box<Rule>),
    /// No such rule any more.
    RemoveRule(Name),
    /// An image that commands may run in.
    RegisterImage(NewImage),
    /// No such image any more.
    UnregisterImage(String),
    /// A new secret.
    CreateSecret(Box<NewSecret>),
    /// Another value, or another description.
    UpdateSecret(Box<SecretUpdate>),
    /// The same value under another sealing key.
    ResealSecret(Name, Sealed, Sealed),
    /// No such secret any more.
    DeleteSecret(Name),
    /// A new version of a playbook.
    PushPlaybook(Name, Box<PlaybookBody>),
    /// No such playbook any more.
    RemovePlaybook(Name),
    /// The terms of a queue change.
    PutQueue(QueueUpdate),
    /// A queue has no terms any more: it hands out whatever it has.
    RemoveQueue(Name),
    /// A new account of workers.
    CreateWorker(Box<NewWorker>),
    /// A new key of an account; the old one works no longer.
    RotateWorker(Name, Box<WorkerKey>),
    /// The key of an account works no longer.
    RevokeWorker(Name),
    /// The worker of this name takes nothing new.
    DrainWorker(String),
    /// It takes work again.
    ResumeWorker(String),
    /// What the whole log of events comes to.
    Checkpoint(Checkpoint),
    /// A look at what runs.
    NoteHealth(Box<Check>),
    /// Incidents begin, are over, were told of or are forgotten.
    MoveIncidents(Vec<Move>),
    /// Somebody wanted what they may not.
    NoteDenied(Denied),
    /// This user called for something that leaves no other mark.
    NoteCall(String),
    /// Somebody reads the value of a secret.
    NoteRevealed(Name),
    /// This user has a new sealing key made.
    NoteRotated(String),
    /// This user has a new key made that signs task tokens.
    NoteSigningKey(String),
}

impl Change {
    /// Whether it changes nothing that people manage: what was read of that before it is still true after it.
    pub const fn is_note(&self) -> bool {
        matches!(
            self,
            Self::NoteDenied(_)
                | Self::NoteCall(_)
                | Self::NoteRevealed(_)
                | Self::NoteRotated(_)
                | Self::NoteSigningKey(_)
                | Self::NoteHealth(_)
                | Self::MoveIncidents(_)
                | Self::Checkpoint(_)
        )
    }
}

/// A user and their first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// Who.
    pub email: String,
    /// What they are.
    pub role: Role,
    /// Their key.
    pub key: NewKey,
}

/// A key, without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// SHA-256 of its text.
    pub hash: [u8; 32],
    /// The part of it that may be shown.
    pub prefix: String,
    /// What its owner calls it.
    pub name: Option<String>,
    /// It works until then.
    pub expires_at: Option<UnixMs>,
}

/// Somebody who may claim a key, or who brings one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Who.
    pub email: String,
    /// What they will be.
    pub role: Role,
    /// How they get their key.
    pub by: InvitedBy,
}

/// Another token for an invitation that nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// Who was invited.
    pub email: String,
    /// SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// It works until then.
    pub expires_at: UnixMs,
}

/// How somebody who is invited gets their key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvitedBy {
    /// With a token, by its hash, until then.
    Token([u8; 32], UnixMs),
    /// They have it.
    Key(NewKey),
}

/// An invitation is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimKey {
    /// SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// The key to give.
    pub key: NewKey,
    /// The address it is answered from.
    pub from: String,
}

/// A new account of workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorker {
    /// Its name.
    pub name: Name,
    /// Its id.
    pub id: WorkerAccountId,
    /// What it may do.
    pub role: Role,
    /// A worker that may also submit.
    pub may_submit: bool,
    /// The queues it may serve; empty means every queue.
    pub queues: Vec<Name>,
    /// What proves it.
    pub key: WorkerKey,
    /// What it is for.
    pub description: Option<String>,
}

/// An image that commands may run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImage {
    /// As it was written.
    pub image: String,
    /// Its parts.
    pub reference: Reference,
    /// What it is run with.
    pub settings: ImageSettings,
    /// Make it the default.
    pub is_default: bool,
}

/// A new secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSecret {
    /// Its name.
    pub name: Name,
    /// The environment variable that it becomes.
    pub key_name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Who else may give it to their commands.
    pub use_by: Vec<String>,
    /// The value.
    pub sealed: Sealed,
}

/// What is new about a secret; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUpdate {
    /// Which.
    pub name: Name,
    /// The environment variable.
    pub key_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who else may give it to their commands.
    pub use_by: Option<Vec<String>>,
    /// The value.
    pub sealed: Option<Sealed>,
}

/// What the whole log of events comes to at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The place of the last event that it covers.
    pub up_to: u64,
    /// How many chained events it covers.
    pub leaves: u64,
    /// The root of the tree over them.
    #[serde(with = "crate::hex")]
    pub root: [u8; 32],
    /// The peaks of that tree, from which it can be gone on with.
    pub peaks: Vec<String>,
}

/// Somebody wanted what they may not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denied {
    /// Who.
    pub email: String,
    /// What they were told, as a code.
    pub code: String,
    /// Why not.
    pub why: String,
    /// What they wanted to run or to end, masked.
    pub command: Option<String>,
    /// What they wanted it of: an execution, a job, a playbook.
    pub target: Option<String>,
}

/// What an idempotency key was used to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// An execution.
    Execution(ExecutionId),
    /// A job.
    Job(JobId),
    /// A record.
    Record(Kind, String),
    /// Dead letters run again.
    Redrive(Vec<Redriven>),
    /// A link to an execution's log, made then.
    Link(ExecutionId, UnixMs),
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Execution(id) => write!(f, "execution {id}"),
            Self::Job(id) => write!(f, "job {id}"),
            Self::Link(id, _) => write!(f, "a link to the log of execution {id}"),
            Self::Redrive(letters) => write!(f, "a redrive of {} executions", letters.len()),
            Self::Record(kind, name) => write!(f, "{} {name}", kind.as_str()),
        }
    }
}
