//! The keys that secrets are sealed with: where they are kept is the adapter's matter.

use runvoy_model::seal::SealKey;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum SealKeysError {
    /// It is not there.
    #[error("encryption key {0} is missing: put its file back, or restore a backup")]
    Missing(String),
    /// Where keys are kept cannot be used.
    #[error("the encryption keys cannot be stored")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The ring of sealing keys.
pub trait SealKeys: Send + Sync {
    /// The key that new values are sealed with.
    fn current(&self) -> Result<SealKey, SealKeysError>;

    /// The key with this id.
    fn by_id(&self, id: &str) -> Result<SealKey, SealKeysError>;

    /// Makes a new key, durably, and the current one.
    fn rotate(&self) -> Result<SealKey, SealKeysError>;

    /// Forgets every key that is neither the current one nor among these.
    fn retire_all_but(&self, ids: &[String]) -> Result<(), SealKeysError>;
}
