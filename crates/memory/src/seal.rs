//! Sealing keys in memory.

use parking_lot::Mutex;
use runvoy_model::seal::SealKey;
use runvoy_ports::seal::{SealKeys, SealKeysError};

/// A ring of sealing keys that ends with the process. The last one is current.
#[derive(Debug)]
pub struct MemorySealKeys {
    keys: Mutex<Vec<SealKey>>,
}

impl MemorySealKeys {
    /// A ring with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { keys: Mutex::new(vec![SealKey::new(key)]) }
    }
}

impl SealKeys for MemorySealKeys {
    fn current(&self) -> Result<SealKey, SealKeysError> {
        let keys = self.keys.lock();
        keys.last().cloned().ok_or_else(|| SealKeysError::Missing("current".into()))
    }

    fn by_id(&self, id: &str) -> Result<SealKey, SealKeysError> {
        let keys = self.keys.lock();
        keys.iter().find(|key| key.id() == id).cloned().ok_or_else(|| SealKeysError::Missing(id.into()))
    }

    fn rotate(&self) -> Result<SealKey, SealKeysError> {
        let mut keys = self.keys.lock();
        let last = keys.last().map_or([0; 32], |key| *key.bytes());
        let next = SealKey::new(last.map(|byte| byte.wrapping_add(1)));
        keys.push(next.clone());
        Ok(next)
    }

    fn retire_all_but(&self, ids: &[String]) -> Result<(), SealKeysError> {
        let mut keys = self.keys.lock();
        let current = keys.last().map(|key| key.id().to_owned());
        keys.retain(|key| Some(key.id()) == current.as_deref() || ids.iter().any(|id| id == key.id()));
        Ok(())
    }
}
