//! Blobs in memory.

use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::StoreError;

/// Blobs that end with the process.
#[derive(Debug, Default)]
pub struct MemoryBlobStore {
    blobs: Mutex<HashMap<String, Vec<u8>>>,
}

#[async_trait]
impl BlobStore for MemoryBlobStore {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.blobs.lock().insert(key.to_owned(), bytes);
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.blobs.lock().get(key).cloned())
    }
}
