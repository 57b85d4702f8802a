//! The hash of a key as links and tickets carry it: whoever reads one learns nothing of it, and the server needs no look at all keys to find it again.
//! Says nothing about whether it was made here: whatever carries it is signed as a whole.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const MARK_BYTES: usize = 16;
/// How long it is.
pub(crate) const SEALED_BYTES: usize = MARK_BYTES + 32;

/// Seals a hash. The same one is sealed the same way: a link can be made again.
pub(crate) fn seal(key: &[u8; 32], hash: &[u8; 32]) -> [u8; SEALED_BYTES] {
    let mut sealed = [0; SEALED_BYTES];
    // No two hashes have the same mark, so that no pad is used for both.
    sealed[..MARK_BYTES].copy_from_slice(&mac(key, b"runvoy key mark\0", hash)[..MARK_BYTES]);
    let pad = mac(key, b"runvoy key pad\0", &sealed[..MARK_BYTES]);
    for (byte, (plain, pad)) in sealed[MARK_BYTES..].iter_mut().zip(hash.iter().zip(pad)) {
        *byte = plain ^ pad;
    }
    sealed
}

/// The hash that was sealed.
pub(crate) fn open(key: &[u8; 32], sealed: &[u8; SEALED_BYTES]) -> [u8; 32] {
    let (mark, hidden) = sealed.split_at(MARK_BYTES);
    let mut hash = mac(key, b"runvoy key pad\0", mark);
    for (byte, hidden) in hash.iter_mut().zip(hidden) {
        *byte ^= hidden;
    }
    hash
}

fn mac(key: &[u8; 32], purpose: &[u8], said: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(purpose);
    mac.update(said);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_opens_a_hash() {
        for hash in [[9; 32], [0; 32]] {
            let sealed = seal(&[1; 32], &hash);
            assert_eq!(open(&[1; 32], &sealed), hash);
            assert_ne!(open(&[2; 32], &sealed), hash);
            assert!(!sealed.windows(4).any(|part| hash.windows(4).any(|hash| hash == part)), "none of it is seen");
        }
        assert_ne!(seal(&[1; 32], &[9; 32])[..MARK_BYTES], seal(&[1; 32], &[8; 32])[..MARK_BYTES]);
    }
}
