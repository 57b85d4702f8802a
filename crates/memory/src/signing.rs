//! The keys of task tokens in memory.

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::signing::SigningKey;
use runvoy_model::time::UnixMs;
use runvoy_ports::signing::{SigningKeys, SigningKeysError};

/// A ring that ends with the process. Its keys follow from the seed: two rings with one seed make the same ones.
#[derive(Debug)]
pub struct MemorySigningKeys {
    seed: [u8; 32],
    keys: Mutex<Vec<SigningKey>>,
}

impl MemorySigningKeys {
    /// An empty ring.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, keys: Mutex::default() }
    }
}

#[async_trait]
impl SigningKeys for MemorySigningKeys {
    async fn all(&self) -> Result<Vec<SigningKey>, SigningKeysError> {
        Ok(self.keys.lock().clone())
    }

    async fn make(&self, at: UnixMs) -> Result<SigningKey, SigningKeysError> {
        let mut bytes = self.seed;
        bytes.iter_mut().zip(at.0.to_be_bytes()).for_each(|(byte, of_moment)| *byte ^= of_moment);
        let (key, mut keys) = (SigningKey::new(at, bytes), self.keys.lock());
        if !keys.iter().any(|known| known.made_at() == at) {
            keys.push(key.clone());
        }
        Ok(key)
    }
}
