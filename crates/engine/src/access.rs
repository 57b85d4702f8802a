//! Who calls and what they may do. A credential becomes a [`Caller`] here and nowhere else; what is not the caller's looks as if it were not there.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::key::{check_key, key_hash};
use runvoy_model::name::Name;
use runvoy_model::role::{Action, Reach, Role, reach_of};
use runvoy_model::rule::Subject;
use runvoy_model::secret::SecretUser;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::{WORKER_OWNER, WorkerAccount, WorkerKey, account_of};

use crate::Engine;
use crate::directory::{Owner, Person, Seen};
use crate::error::EngineError;
use crate::token::{BadToken, Token};

/// What a caller shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// An API key, the key of a worker, or a token that a worker signed for itself.
    Key(String),
    /// The Unix socket's peer has the server's own uid, or is root.
    LocalOwner,
    /// Nothing.
    None,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who: an e-mail, or `worker:NAME` for an account of workers.
    pub email: String,
    /// Tells this user or account of workers from a later one of the same name.
    pub account: String,
    /// What they are.
    pub role: Role,
    /// A worker that may also submit, and read and end what it submitted.
    pub may_submit: bool,
    /// The groups they are in.
    pub groups: Vec<String>,
    /// The part of their key that may be shown; absent on the local socket.
    pub key_prefix: Option<String>,
    /// When their key expires.
    pub key_expires_at: Option<UnixMs>,
    /// The hash of the key, to notice its revocation while a stream is open.
    pub key_hash: Option<[u8; 32]>,
    /// The queues that a worker is limited to; absent for whoever is not.
    pub queues: Option<Vec<Name>>,
    /// The address they call from.
    pub from: String,
    /// The request.
    pub request_id: String,
    /// What was read for it.
    pub seen: Seen,
}

/// A call before it is known who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The address it comes from.
    pub from: String,
    /// The request.
    pub request_id: String,
}

impl Caller {
    /// How far an action reaches for this caller; an error where it does not reach at all.
    pub fn may(&self, action: Action) -> Result<Reach, EngineError> {
        match reach_of(self.role, self.may_submit, action) {
            Reach::None => Err(EngineError::Forbidden { role: self.role.as_str() }),
            reach => Ok(reach),
        }
    }

    /// Whether an execution is within a reach.
    pub(crate) fn reaches(&self, reach: Reach, execution: &Execution) -> bool {
        match reach {
            Reach::All => true,
            Reach::Own => execution.created_by == self.email || execution.owned_by.contains(&self.email),
            Reach::None => false,
        }
    }

    /// The caller as rules see them.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { email: &self.email, role: self.role, groups: &self.groups }
    }

    /// The caller as secrets see them.
    pub(crate) fn secret_user(&self) -> SecretUser<'_> {
        SecretUser { email: &self.email, role: self.role, groups: &self.groups }
    }

    /// The name of the account of workers that calls; `None` for a person.
    pub fn worker_account(&self) -> Option<&str> {
        account_of(&self.email)
    }

    /// Whether a worker may serve this queue: an account can be limited to some.
    pub fn may_serve(&self, queue: &Name) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
    }

    fn of(owner: &Owner, hash: Option<[u8; 32]>, origin: Origin) -> Self {
        match owner {
            Owner::Person(person) => Self::new(person, hash, origin),
            Owner::Worker(account) => Self::worker(account, origin),
        }
    }

    fn worker(account: &WorkerAccount, origin: Origin) -> Self {
        Self {
            email: account.owner(),
            account: format!("{WORKER_OWNER}{}", account.id),
            role: account.role,
            may_submit: account.may_submit,
            groups: Vec::new(),
            key_prefix: Some(account.key.shown()),
            key_expires_at: None,
            key_hash: Some(*account.key.hash()),
            queues: (!account.queues.is_empty()).then(|| account.queues.clone()),
            from: origin.from,
            request_id: origin.request_id,
            seen: Seen::default(),
        }
    }

    fn new(person: &Person, hash: Option<[u8; 32]>, origin: Origin) -> Self {
        let key = hash.and_then(|hash| person.user.key(&hash));
        Self {
            email: person.user.email.clone(),
            account: format!("{} since {}", person.user.email, person.user.created_at.0),
            role: person.user.role,
            may_submit: false,
            groups: person.groups.clone(),
            key_prefix: key.map(|key| key.prefix.clone()),
            key_expires_at: key.and_then(|key| key.expires_at),
            key_hash: hash,
            queues: None,
            from: origin.from,
            request_id: origin.request_id,
            seen: Seen::default(),
        }
    }
}

/// A key's last use is written no more often than this.
const TOUCH_EVERY_MS: i64 = 60_000;

/// When keys were last used, as far as this process has written it down.
#[derive(Default)]
pub(crate) struct KeyUses {
    written: Mutex<HashMap<[u8; 32], UnixMs>>,
}

impl KeyUses {
    const MOST: usize = 10_000;

    /// Whether this use is to be written down.
    fn is_due(&self, hash: [u8; 32], now: UnixMs) -> bool {
        let mut written = self.written.lock();
        if written.get(&hash).is_some_and(|at| now.ms_since(*at) < TOUCH_EVERY_MS) {
            return false;
        }
        if written.len() >= Self::MOST {
            written.clear();
        }
        written.insert(hash, now);
        true
    }
}

impl Engine {
    /// Tells who calls. A store that fails is never taken for a bad key.
    pub async fn authenticate(&self, credential: Credential, from: String, request_id: String) -> Result<Caller, EngineError> {
        let origin = Origin { from, request_id };
        match credential {
            Credential::None => Err(EngineError::NoKey),
            Credential::LocalOwner => {
                let admin = self.first_admin().await?.ok_or(EngineError::NoKey)?;
                Ok(Caller::new(&admin, None, origin))
            }
            Credential::Key(text) if Token::looks_like(&text) => self.identify_jwt(&text, origin).await,
            Credential::Key(text) => {
                // What cannot be a key is not looked up.
                check_key(&text).map_err(|_| EngineError::InvalidKey)?;
                let hash = key_hash(&text);
                let owner = self.owner_by_key(hash).await?;
                self.note_use(hash);
                Ok(Caller::of(&owner, Some(hash), origin))
            }
        }
    }

    /// Tells whose a token is that a worker signed for itself. Who that is and what they may is the stored account's to say, never the token's.
    pub async fn identify_jwt(&self, text: &str, origin: Origin) -> Result<Caller, EngineError> {
        let token = Token::read(text).ok_or(EngineError::InvalidKey)?;
        let owner = self.owner_by_key(token.fingerprint).await?;
        let Owner::Worker(WorkerAccount { key: WorkerKey::Public(key), .. }) = &*owner else { return Err(EngineError::InvalidKey) };
        let addresses = [&self.config.own_url, &self.config.public_url];
        let audiences: Vec<&str> = self.config.worker_audience.iter().chain(addresses).map(String::as_str).collect();
        let ends_at = token.verify(key, &audiences, self.machine_now()).map_err(|bad| match bad {
            BadToken::Invalid => EngineError::InvalidKey,
            BadToken::OtherAudience => EngineError::OtherAudience,
            BadToken::Expired => EngineError::RevokedKey,
        })?;
        self.note_use(token.fingerprint);
        Ok(Caller { key_expires_at: Some(ends_at), ..Caller::of(&owner, Some(token.fingerprint), origin) })
    }

    /// Whoever was admitted before, as they are now: by the key they showed then, or without one as the server's own user. An error once key or user
    /// were revoked. What they were given at `issued_at` is not for somebody who was invited under the same e-mail since.
    pub async fn admit_again(
        &self,
        email: &str,
        key_hash: Option<[u8; 32]>,
        issued_at: Option<UnixMs>,
        origin: Origin,
    ) -> Result<Caller, EngineError> {
        let owner = match key_hash {
            Some(hash) => self.owner_by_key(hash).await?,
            None => Arc::new(Owner::Person(self.local_owner(email).await?)),
        };
        let created_at = match &*owner {
            Owner::Person(person) => person.user.created_at,
            Owner::Worker(account) => account.created_at,
        };
        let caller = Caller::of(&owner, key_hash, origin);
        if caller.email != email {
            return Err(EngineError::InvalidKey);
        }
        if issued_at.is_some_and(|issued_at| created_at > issued_at) {
            return Err(EngineError::RevokedKey);
        }
        Ok(caller)
    }

    /// Whoever called as the server's own user, while they still would be.
    async fn local_owner(&self, email: &str) -> Result<Person, EngineError> {
        let person = self.person(email).await?.ok_or(EngineError::InvalidKey)?;
        let owner = self.first_admin().await?.map(|admin| admin.user.email);
        if person.user.revoked_at.is_some() || owner.as_deref() != Some(email) {
            return Err(EngineError::RevokedKey);
        }
        Ok(person)
    }

    async fn owner_by_key(&self, hash: [u8; 32]) -> Result<Arc<Owner>, EngineError> {
        let owner = self.owner(hash).await?.ok_or(EngineError::InvalidKey)?;
        let works = match &*owner {
            Owner::Person(person) => {
                person.user.revoked_at.is_none() && person.user.key(&hash).is_some_and(|key| key.works(self.machine_now()))
            }
            Owner::Worker(account) => account.has_key(&hash),
        };
        if works { Ok(owner) } else { Err(EngineError::RevokedKey) }
    }

    fn note_use(&self, hash: [u8; 32]) {
        let now = self.now();
        if !self.key_uses.is_due(hash, now) {
            return;
        }
        let records = Arc::clone(&self.ports.records);
        tokio::spawn(async move {
            if let Err(error) = records.touch_key(hash, now).await {
                tracing::debug!(%error, "last use of a key was not written");
            }
        });
    }
}
