//! Signed links: whoever has one reads the log of one execution, and nothing else, for two days. A link is a JWT (HS256) that names the
//! execution, the user and the key that made it; whoever takes one looks both up again, so that revoking either ends it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use runvoy_engine::Caller;
use runvoy_model::hex::{hex, unhex};
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::sealed_hash::{open, seal};

const LIVES_MS: i64 = 48 * 3600 * 1000;
const AUDIENCE: &str = "web-viewer";
/// The one header there is: no other way of signing is ever looked at.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// No link of ours is longer.
const MOST_CHARS: usize = 1_200;

/// What signs links.
pub(crate) struct LinkKey([u8; 32]);

/// What a link says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The one execution.
    pub(crate) execution: ExecutionId,
    /// Who made it.
    pub(crate) email: String,
    /// The key that they called with; absent on the local socket.
    pub(crate) key_hash: Option<[u8; 32]>,
    /// It was made then.
    pub(crate) issued_at: UnixMs,
    /// It works until then, to the second.
    pub(crate) expires_at: UnixMs,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    aud: String,
    sub: String,
    execution_id: ExecutionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    iat: i64,
    exp: i64,
    /// What `iat` rounds off: whoever made it may have come in the same second.
    issued_ms: i64,
}

/// A text that is no link, not ours, or too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadLink;

impl LinkKey {
    /// A key of its own, made from the server's signing key, so that no other signed text can pass for a link.
    pub(crate) fn new(signing_key: &[u8; 32]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(signing_key).expect("HMAC takes keys of any length");
        mac.update(b"runvoy log link\0");
        Self(mac.finalize().into_bytes().into())
    }

    /// A link by this caller to an execution, made at this time, and what it says. The same ones give the same link.
    pub(crate) fn issue(&self, caller: &Caller, execution: ExecutionId, now: UnixMs) -> (String, Link) {
        let link = Link { execution, email: caller.email.clone(), key_hash: caller.key_hash, issued_at: now, expires_at: expires_at(now) };
        (self.sign(&link), link)
    }

    fn sign(&self, link: &Link) -> String {
        let claims = Claims {
            aud: AUDIENCE.to_owned(),
            sub: link.email.clone(),
            execution_id: link.execution,
            key: link.key_hash.map(|hash| hex(&seal(&self.0, &hash))),
            iat: link.issued_at.0.div_euclid(1000),
            exp: link.expires_at.0.div_euclid(1000),
            issued_ms: link.issued_at.0,
        };
        let claims = serde_json::to_vec(&claims).expect("plain fields can be written as JSON");
        let said = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(HEADER), BASE64_URL_SAFE_NO_PAD.encode(claims));
        let mac = self.mac(&said).finalize().into_bytes();
        format!("{said}.{}", BASE64_URL_SAFE_NO_PAD.encode(mac))
    }

    /// What a link says, if it is one of ours and not too old.
    pub(crate) fn read(&self, text: &str, now: UnixMs) -> Result<Link, BadLink> {
        if text.len() > MOST_CHARS {
            return Err(BadLink);
        }
        let (said, mac) = text.rsplit_once('.').ok_or(BadLink)?;
        let mac = BASE64_URL_SAFE_NO_PAD.decode(mac).map_err(|_| BadLink)?;
        self.mac(said).verify_slice(&mac).map_err(|_| BadLink)?;
        let (header, claims) = said.split_once('.').ok_or(BadLink)?;
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| BadLink);
        if decode(header)? != HEADER.as_bytes() {
            return Err(BadLink);
        }
        let claims: Claims = serde_json::from_slice(&decode(claims)?).map_err(|_| BadLink)?;
        let key_hash = match claims.key {
            Some(digits) => Some(self.key_hash(&digits).ok_or(BadLink)?),
            None => None,
        };
        let expires_at = UnixMs(claims.exp.saturating_mul(1000));
        if claims.aud != AUDIENCE || expires_at <= now {
            return Err(BadLink);
        }
        let issued_at = UnixMs(claims.issued_ms);
        Ok(Link { execution: claims.execution_id, email: claims.sub, key_hash, issued_at, expires_at })
    }

    /// The hash that a link carries. Links that were made before hashes were sealed carry it as it is: what is signed, this server wrote.
    fn key_hash(&self, digits: &str) -> Option<[u8; 32]> {
        unhex(digits).or_else(|| Some(open(&self.0, &unhex(digits)?)))
    }

    fn mac(&self, said: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(said.as_bytes());
        mac
    }
}

/// Until when a link is good that is made at this time.
pub(crate) fn expires_at(issued_at: UnixMs) -> UnixMs {
    UnixMs((issued_at.0 + LIVES_MS).div_euclid(1000) * 1000)
}

/// Whether a text could be a link; says nothing about whether it is a good one.
pub(crate) fn looks_like_link(text: &str) -> bool {
    text.len() <= MOST_CHARS && text.starts_with("eyJ") && text.bytes().filter(|b| *b == b'.').count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        let execution = ExecutionId::from_bytes([7; 16]);
        Link { execution, email: "ana@example.com".into(), key_hash: Some([9; 32]), issued_at: UnixMs(12), expires_at: UnixMs(5_000) }
    }

    #[test]
    fn a_link_comes_back_until_it_expires() {
        let key = LinkKey::new(&[1; 32]);
        for link in [link(), Link { key_hash: None, ..link() }] {
            let text = key.sign(&link);
            assert!(looks_like_link(&text));
            assert_eq!(key.read(&text, UnixMs(4_999)), Ok(link));
            assert_eq!(key.read(&text, UnixMs(5_000)), Err(BadLink));
        }
    }

    #[test]
    fn whoever_has_a_link_does_not_learn_the_hash_of_a_key() {
        let text = LinkKey::new(&[1; 32]).sign(&link());
        let claims = BASE64_URL_SAFE_NO_PAD.decode(text.split('.').nth(1).expect("three parts")).expect("base64");
        let claims: serde_json::Value = serde_json::from_slice(&claims).expect("JSON");
        let key = claims["key"].as_str().expect("a text");
        assert!(key.len() == 96 && !key.contains("09090909"), "{key}");
    }

    #[test]
    fn a_link_that_was_made_before_hashes_were_sealed_still_works() {
        let (key, link) = (LinkKey::new(&[1; 32]), link());
        let claims = serde_json::json!({
            "aud": AUDIENCE, "sub": link.email, "execution_id": link.execution, "key": hex(&[9; 32]), "iat": 0, "exp": 5, "issued_ms": 12,
        });
        let said = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(HEADER), BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mac = BASE64_URL_SAFE_NO_PAD.encode(key.mac(&said).finalize().into_bytes());
        assert_eq!(key.read(&format!("{said}.{mac}"), UnixMs(0)), Ok(link));
    }

    #[test]
    fn no_changed_character_goes_unnoticed() {
        let key = LinkKey::new(&[1; 32]);
        let text = key.sign(&link());
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            // The last character of a base64 text may hold bits that mean nothing.
            if at + 1 < text.len() {
                assert_eq!(key.read(&changed, UnixMs(0)), Err(BadLink), "character {at}");
            }
            assert_eq!(key.read(&text[..at], UnixMs(0)), Err(BadLink), "cut at {at}");
        }
        assert_eq!(LinkKey::new(&[2; 32]).read(&text, UnixMs(0)), Err(BadLink));
    }

    #[test]
    fn an_unsigned_or_otherwise_signed_token_is_refused() {
        let key = LinkKey::new(&[1; 32]);
        let text = key.sign(&link());
        let claims = text.split('.').nth(1).expect("three parts");
        for header in [r#"{"alg":"none","typ":"JWT"}"#, r#"{"alg":"RS256","typ":"JWT"}"#] {
            let header = BASE64_URL_SAFE_NO_PAD.encode(header);
            assert_eq!(key.read(&format!("{header}.{claims}."), UnixMs(0)), Err(BadLink));
            let said = format!("{header}.{claims}");
            let mac = BASE64_URL_SAFE_NO_PAD.encode(key.mac(&said).finalize().into_bytes());
            assert_eq!(key.read(&format!("{said}.{mac}"), UnixMs(0)), Err(BadLink));
        }
    }
}
