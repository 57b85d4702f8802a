//! Public keys that workers are registered with, and the texts that they come in. Only one kind is taken: an ECDSA key on P-256, as ES256 needs it. That a
//! signature fits is checked elsewhere.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::base58;
use crate::hex::{hex, unhex};

/// What stands before the point of every P-256 key in the form that keys are exchanged in (SPKI, DER).
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01,
    0x07, 0x03, 0x42, 0x00,
];
const SPKI_BYTES: usize = 91;
/// The first byte of a point that is written with both coordinates.
const UNCOMPRESSED: u8 = 4;
const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";
/// No text with a key in it is longer.
const MOST_BYTES: usize = 16 << 10;

/// A public key with its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    spki: [u8; SPKI_BYTES],
    fingerprint: [u8; 32],
}

/// A text that holds no public key of the one kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "holds no P-256 public key: give a PEM text ({PEM_BEGIN} …), or base58 of such a key or of a JSON document with name and public_key"
)]
pub struct InvalidKey;

/// What somebody gave to register a worker with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The key.
    pub key: PublicKey,
    /// What the worker is to be called, where the text says so.
    pub name: Option<String>,
}

/// A credential as a document.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    name: Option<String>,
    #[serde(alias = "public_key_pem", alias = "publicKey", alias = "publicKeyPem")]
    public_key: String,
}

impl PublicKey {
    /// The key in the form that keys are exchanged in.
    pub fn new(spki: &[u8]) -> Result<Self, InvalidKey> {
        let spki: [u8; SPKI_BYTES] = spki.try_into().map_err(|_| InvalidKey)?;
        if spki[..SPKI_HEAD.len()] != SPKI_HEAD || spki[SPKI_HEAD.len()] != UNCOMPRESSED {
            return Err(InvalidKey);
        }
        Ok(Self { spki, fingerprint: Sha256::digest(spki).into() })
    }

    /// SHA-256 of the key; in base58 it names the key in tokens.
    pub const fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// The key as it came.
    pub const fn spki(&self) -> &[u8; SPKI_BYTES] {
        &self.spki
    }

    /// The point alone, as a check of a signature needs it.
    pub fn point(&self) -> &[u8] {
        &self.spki[SPKI_HEAD.len()..]
    }

    /// The key as a PEM text.
    pub fn pem(&self) -> String {
        let body = base64(&self.spki);
        let lines = body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII")).collect::<Vec<_>>().join("\n");
        format!("{PEM_BEGIN}\n{lines}\n{PEM_END}\n")
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.spki))
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let spki = unhex::<SPKI_BYTES>(&text).ok_or_else(|| serde::de::Error::custom("a public key is so many hex digits"))?;
        Self::new(&spki).map_err(serde::de::Error::custom)
    }
}

/// Reads whatever a public key comes in: PEM, a JSON document with `name` and `public_key`, or base58 of either or of the key itself.
pub fn read(text: &str) -> Result<Credential, InvalidKey> {
    let text = text.trim();
    if text.len() > MOST_BYTES {
        return Err(InvalidKey);
    }
    if text.starts_with("-----") || text.starts_with('{') {
        return read_plain(text);
    }
    let bytes = base58::decode(text).ok_or(InvalidKey)?;
    if let Ok(key) = PublicKey::new(&bytes) {
        return Ok(Credential { key, name: None });
    }
    read_plain(std::str::from_utf8(&bytes).map_err(|_| InvalidKey)?.trim())
}

fn read_plain(text: &str) -> Result<Credential, InvalidKey> {
    if !text.starts_with('{') {
        return Ok(Credential { key: read_pem(text)?, name: None });
    }
    let document: Document = serde_json::from_str(text).map_err(|_| InvalidKey)?;
    let inner = document.public_key.trim();
    let key = if inner.starts_with("-----") { read_pem(inner)? } else { PublicKey::new(&base58::decode(inner).ok_or(InvalidKey)?)? };
    Ok(Credential { key, name: document.name.filter(|name| !name.is_empty()) })
}

fn read_pem(text: &str) -> Result<PublicKey, InvalidKey> {
    let body = text.strip_prefix(PEM_BEGIN).and_then(|rest| rest.trim_end().strip_suffix(PEM_END)).ok_or(InvalidKey)?;
    PublicKey::new(&unbase64(body).ok_or(InvalidKey)?)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        for i in 0..4 {
            text.push(if i <= group.len() { char::from(ALPHABET[(bits >> (18 - 6 * i)) as usize & 63]) } else { '=' });
        }
    }
    text
}

/// The bytes of base64 with line breaks in it; what is left over at the end must be nothing.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let padding = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    if !digits.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(digits.len()), 0u32, 0);
    for digit in &digits[..digits.len() - padding] {
        let value = ALPHABET.iter().position(|known| known == digit)?;
        bits = (bits << 6) | u32::try_from(value).expect("less than 64");
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).expect("one byte"));
        }
    }
    (bits & ((1 << held) - 1) == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spki() -> Vec<u8> {
        let mut spki = SPKI_HEAD.to_vec();
        spki.push(UNCOMPRESSED);
        spki.extend((0..64).map(|n| n * 3));
        spki
    }

    #[test]
    fn a_key_is_read_from_everything_it_comes_in() {
        let key = PublicKey::new(&spki()).expect("a key");
        let pem = key.pem();
        let document = serde_json::json!({"name": "ci", "public_key": pem}).to_string();
        let short = serde_json::json!({"public_key": base58::encode(&spki())}).to_string();
        for (text, name) in [
            (pem.clone(), None),
            (pem.replace('\n', "\r\n"), None),
            (format!("\n{pem}\n"), None),
            (base58::encode(&spki()), None),
            (base58::encode(pem.as_bytes()), None),
            (base58::encode(document.as_bytes()), Some("ci")),
            (document, Some("ci")),
            (short, None),
        ] {
            let read = read(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((read.key, read.name.as_deref()), (key.clone(), name), "{text}");
        }
    }

    #[test]
    fn what_is_no_such_key_is_refused() {
        let pem = PublicKey::new(&spki()).expect("a key").pem();
        let mut other_curve = spki();
        other_curve[22] = 8;
        let mut compressed = spki();
        compressed[26] = 2;
        for bad in [
            String::new(),
            "rv_key".into(),
            "{}".into(),
            base58::encode(b"hello"),
            base58::encode(&other_curve),
            base58::encode(&compressed),
            base58::encode(&spki()[..90]),
            pem.replace("PUBLIC", "PRIVATE"),
            pem.replace("-----END PUBLIC KEY-----", ""),
            pem.replace('A', "!"),
            "x".repeat(MOST_BYTES + 1),
        ] {
            assert_eq!(read(&bad), Err(InvalidKey), "{bad}");
        }
    }

    #[test]
    fn a_kept_key_is_read_back_with_its_fingerprint() {
        let key = PublicKey::new(&spki()).expect("a key");
        let kept = serde_json::to_string(&key).expect("JSON");
        let read: PublicKey = serde_json::from_str(&kept).expect("a key");
        assert_eq!((read.fingerprint(), read.point()[0]), (key.fingerprint(), UNCOMPRESSED));
        let digest: [u8; 32] = Sha256::digest(spki()).into();
        assert_eq!(*key.fingerprint(), digest);
        assert!(serde_json::from_str::<PublicKey>("\"00\"").is_err());
    }
}
