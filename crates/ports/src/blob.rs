//! What is too large for a record: bytes under the digest of themselves. They are written once, never changed, and read as they were
//! written or not at all.

use async_trait::async_trait;

use crate::store::StoreError;

/// The blob store.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Keeps bytes under a key, which is the SHA-256 of these very bytes in lower-case hex. They are on stable storage when this comes
    /// back; a repeat changes nothing.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// The bytes of a key; `None` if nothing was ever kept under it, `Damaged` if they are not what was kept.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
}
