//! Sealing: a secret's value under a key, bound to the secret's name and the key's id, so that a sealed value moved elsewhere does not open.
//! XChaCha20-Poly1305; randomness comes in as an argument.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::hex::hex;
use crate::secret::Sealed;

const NONCE_BYTES: usize = 24;

/// A key that seals.
#[derive(Clone)]
pub struct SealKey {
    id: String,
    bytes: Zeroizing<[u8; 32]>,
}

/// A sealed value that does not open: another key, another name, or changed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the value cannot be decrypted: it was changed, moved, or encrypted with another key")]
pub struct Unopened;

impl SealKey {
    /// Wraps a key that came from the key files.
    pub fn new(bytes: [u8; 32]) -> Self {
        let digest: [u8; 32] = Sha256::new().chain_update(b"runvoy seal key id\0").chain_update(bytes).finalize().into();
        Self { id: hex(&digest[..8]), bytes: Zeroizing::new(bytes) }
    }

    /// Its id, which tells nothing about it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its bytes, for whoever keeps it.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Seals the value of the secret of this name. The randomness must be new each time.
    pub fn seal(&self, name: &str, value: &[u8], random: &[u8; 32]) -> Sealed {
        let nonce = random.first_chunk::<NONCE_BYTES>().expect("a nonce is shorter");
        let aad = self.aad(name);
        let sealed = self.cipher().encrypt(nonce.into(), Payload { msg: value, aad: &aad });
        let sealed = sealed.expect("a value that fits a request can be sealed");
        let data = [nonce.as_slice(), &sealed].concat();
        Sealed { key_id: self.id.clone(), data: BASE64_STANDARD.encode(data) }
    }

    /// Opens the value of the secret of this name.
    pub fn open(&self, name: &str, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        let data = BASE64_STANDARD.decode(&sealed.data).map_err(|_| Unopened)?;
        let (nonce, sealed) = data.split_first_chunk::<NONCE_BYTES>().ok_or(Unopened)?;
        let aad = self.aad(name);
        let value = self.cipher().decrypt(nonce.into(), Payload { msg: sealed, aad: &aad });
        value.map(Zeroizing::new).map_err(|_| Unopened)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        let bytes: &[u8; 32] = &self.bytes;
        XChaCha20Poly1305::new(bytes.into())
    }

    fn aad(&self, name: &str) -> Vec<u8> {
        [b"runvoy secret\0", self.id.as_bytes(), b"\0", name.as_bytes()].concat()
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SealKey({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_name_open_a_value() {
        let key = SealKey::new([1; 32]);
        let sealed = key.seal("db", b"hunter2", &[9; 32]);
        assert_eq!(key.open("db", &sealed).expect("it opens").as_slice(), b"hunter2");
        assert_eq!(key.open("other", &sealed), Err(Unopened));
        assert_eq!(SealKey::new([2; 32]).open("db", &sealed), Err(Unopened));
        assert!(!sealed.data.contains("hunter2"));
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let key = SealKey::new([1; 32]);
        let sealed = key.seal("db", b"hunter2", &[9; 32]);
        let data = BASE64_STANDARD.decode(&sealed.data).expect("own encoding");
        for at in 0..data.len() {
            let mut changed = data.clone();
            changed[at] ^= 1;
            let changed = Sealed { data: BASE64_STANDARD.encode(changed), ..sealed.clone() };
            assert_eq!(key.open("db", &changed), Err(Unopened), "byte {at}");
        }
    }
}
