//! Who may call: users and the hashes of their keys.

use async_trait::async_trait;
use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;

use crate::store::StoreError;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Who.
    pub email: String,
    /// What they are.
    pub role: Role,
    /// Since when.
    pub created_at: UnixMs,
    /// No key of theirs works.
    pub revoked: bool,
}

/// A key, without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// SHA-256 of its text.
    pub hash: [u8; 32],
    /// The part of it that may be shown.
    pub prefix: String,
    /// Whose it is.
    pub email: String,
    /// Since when.
    pub created_at: UnixMs,
    /// It works no longer.
    pub revoked: bool,
    /// It works until then.
    pub expires_at: Option<UnixMs>,
    /// When it was last used, to the minute.
    pub last_used: Option<UnixMs>,
}

/// A user and their first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// Who.
    pub email: String,
    /// What they are.
    pub role: Role,
    /// SHA-256 of the key's text.
    pub key_hash: [u8; 32],
    /// The part of the key that may be shown.
    pub key_prefix: String,
}

/// The identity port.
#[async_trait]
pub trait IdentityStore: Send + Sync {
    /// Makes the first user of an empty store; `false`, and nothing written, if there is any user.
    async fn create_first_user(&self, step: Step, user: NewUser) -> Result<bool, StoreError>;

    /// Makes a user; `false`, and nothing written, if there is one of that name.
    async fn create_user(&self, step: Step, user: NewUser) -> Result<bool, StoreError>;

    /// The key with this hash and its user.
    async fn key(&self, hash: [u8; 32]) -> Result<Option<(Key, User)>, StoreError>;

    /// Remembers that a key was used. A hint: it may be lost.
    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError>;

    /// Every user, by e-mail.
    async fn users(&self) -> Result<Vec<User>, StoreError>;
}
