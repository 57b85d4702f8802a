//! Who calls and what they may do. A credential becomes a [`Caller`] here and nowhere else; what is not the caller's looks as if it were not there.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::key::{key_hash, looks_like_key};
use runvoy_model::role::{Action, Reach, Role, reach};
use runvoy_model::rule::Subject;
use runvoy_model::secret::SecretUser;
use runvoy_model::time::UnixMs;

use crate::Engine;
use crate::directory::{Person, Seen};
use crate::error::EngineError;

/// What a caller shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// An API key.
    Key(String),
    /// The Unix socket's peer has the server's own uid, or is root.
    LocalOwner,
    /// Nothing.
    None,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who.
    pub email: String,
    /// What they are.
    pub role: Role,
    /// The groups they are in.
    pub groups: Vec<String>,
    /// The part of their key that may be shown; absent on the local socket.
    pub key_prefix: Option<String>,
    /// When their key expires.
    pub key_expires_at: Option<UnixMs>,
    /// The hash of the key, to notice its revocation while a stream is open.
    pub key_hash: Option<[u8; 32]>,
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
        match reach(self.role, action) {
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

    fn new(person: &Person, hash: Option<[u8; 32]>, origin: Origin) -> Self {
        let key = hash.and_then(|hash| person.user.key(&hash));
        Self {
            email: person.user.email.clone(),
            role: person.user.role,
            groups: person.groups.clone(),
            key_prefix: key.map(|key| key.prefix.clone()),
            key_expires_at: key.and_then(|key| key.expires_at),
            key_hash: hash,
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
            Credential::Key(text) => {
                if !looks_like_key(&text) {
                    return Err(EngineError::InvalidKey);
                }
                let hash = key_hash(&text);
                let person = self.owner_by_key(hash).await?;
                self.note_use(hash);
                Ok(Caller::new(&person, Some(hash), origin))
            }
        }
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
        let person = match key_hash {
            Some(hash) => self.owner_by_key(hash).await?,
            None => self.local_owner(email).await?,
        };
        if person.user.email != email {
            return Err(EngineError::InvalidKey);
        }
        if issued_at.is_some_and(|issued_at| person.user.created_at > issued_at) {
            return Err(EngineError::RevokedKey);
        }
        Ok(Caller::new(&person, key_hash, origin))
    }

    /// Whoever called as the server's own user, while they still would be.
    async fn local_owner(&self, email: &str) -> Result<Arc<Person>, EngineError> {
        let person = self.person(email).await?.ok_or(EngineError::InvalidKey)?;
        let owner = self.first_admin().await?.map(|admin| admin.user.email);
        if person.user.revoked_at.is_some() || owner.as_deref() != Some(email) {
            return Err(EngineError::RevokedKey);
        }
        Ok(Arc::new(person))
    }

    async fn owner_by_key(&self, hash: [u8; 32]) -> Result<Arc<Person>, EngineError> {
        let person = self.owner(hash).await?.ok_or(EngineError::InvalidKey)?;
        let works = person.user.key(&hash).is_some_and(|key| key.works(self.now()));
        if person.user.revoked_at.is_some() || !works {
            return Err(EngineError::RevokedKey);
        }
        Ok(person)
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
