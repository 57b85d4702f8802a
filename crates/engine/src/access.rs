//! Who calls and what they may do. A credential becomes a [`Caller`] here and nowhere else; what is not the
//! caller's looks as if it were not there.

use std::collections::HashMap;

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::key::{key_hash, looks_like_key};
use runvoy_model::role::{Action, Reach, Role, reach};
use runvoy_model::time::UnixMs;
use runvoy_ports::identity::{Key, User};

use crate::Engine;
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
}

/// `last_used` is written no more often than this.
const TOUCH_EVERY_MS: i64 = 60_000;

/// Keys that were looked up. The store is the truth: whoever changes a key or a user forgets it here in the same breath.
#[derive(Default)]
pub(crate) struct KeyCache {
    known: Mutex<HashMap<[u8; 32], (Key, User)>>,
}

impl KeyCache {
    const MOST: usize = 10_000;

    fn get(&self, hash: &[u8; 32]) -> Option<(Key, User)> {
        self.known.lock().get(hash).cloned()
    }

    fn put(&self, key: Key, user: User) {
        let mut known = self.known.lock();
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(key.hash, (key, user));
    }

    fn touched(&self, hash: &[u8; 32], at: UnixMs) {
        if let Some((key, _)) = self.known.lock().get_mut(hash) {
            key.last_used = Some(at);
        }
    }
}

impl Engine {
    /// Tells who calls. A store that fails is never taken for a bad key.
    pub async fn authenticate(&self, credential: Credential, from: String, request_id: String) -> Result<Caller, EngineError> {
        match credential {
            Credential::None => Err(EngineError::NoKey),
            Credential::LocalOwner => {
                let users = self.ports.identity.users().await?;
                // The first admin is the one that the server made for its own user.
                let admins = users.into_iter().filter(|user| user.role == Role::Admin && !user.revoked);
                let admin = admins.min_by_key(|user| user.created_at);
                let admin = admin.ok_or(EngineError::NoKey)?;
                let (key_prefix, key_expires_at, key_hash) = (None, None, None);
                Ok(Caller { email: admin.email, role: admin.role, key_prefix, key_expires_at, key_hash, from, request_id })
            }
            Credential::Key(text) => self.authenticate_key(&text, from, request_id).await,
        }
    }

    async fn authenticate_key(&self, text: &str, from: String, request_id: String) -> Result<Caller, EngineError> {
        if !looks_like_key(text) {
            return Err(EngineError::InvalidKey);
        }
        let hash = key_hash(text);
        let (key, user) = match self.keys.get(&hash) {
            Some(known) => known,
            None => {
                let (key, user) = self.ports.identity.key(hash).await?.ok_or(EngineError::InvalidKey)?;
                self.keys.put(key.clone(), user.clone());
                (key, user)
            }
        };
        let now = self.now();
        if key.revoked || user.revoked || key.expires_at.is_some_and(|at| at <= now) {
            return Err(EngineError::RevokedKey);
        }
        if key.last_used.is_none_or(|at| now.ms_since(at) >= TOUCH_EVERY_MS) {
            self.keys.touched(&hash, now);
            let identity = std::sync::Arc::clone(&self.ports.identity);
            tokio::spawn(async move {
                if let Err(error) = identity.touch_key(hash, now).await {
                    tracing::debug!(%error, "last use of a key was not written");
                }
            });
        }
        Ok(Caller {
            email: user.email,
            role: user.role,
            key_prefix: Some(key.prefix),
            key_expires_at: key.expires_at,
            key_hash: Some(hash),
            from,
            request_id,
        })
    }
}
