//! The keys that sign task tokens: where they are kept is the adapter's matter.

use async_trait::async_trait;
use runvoy_model::signing::SigningKey;
use runvoy_model::time::UnixMs;

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
#[error("the keys of task tokens cannot be kept")]
pub struct SigningKeysError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The ring of keys that sign task tokens.
#[async_trait]
pub trait SigningKeys: Send + Sync {
    /// Every key there is, in whatever order. A ring that was never made has none.
    async fn all(&self) -> Result<Vec<SigningKey>, SigningKeysError>;

    /// Makes a key of this moment, which is on stable storage when this comes back. Where there is one of this very moment already, that one stays.
    async fn make(&self, at: UnixMs) -> Result<SigningKey, SigningKeysError>;
}
