//! People: who they are, the keys they have, the invitation they have not answered yet.

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::hex;
use crate::role::Role;
use crate::time::UnixMs;

/// An invitation is good for this long.
pub const CLAIM_LIVES_MS: i64 = 15 * 60 * 1_000;
/// An admin may let an invitation last as long as this.
pub const MAX_CLAIM_LIVES_MS: i64 = 7 * 24 * 3600 * 1_000;
/// A user has at most this many keys that work.
pub const MOST_KEYS: usize = 20;
/// The longest e-mail address there is.
pub const MOST_EMAIL_BYTES: usize = 254;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Who.
    pub email: String,
    /// What they are.
    pub role: Role,
    /// Since when.
    pub created_at: UnixMs,
    /// Who made them.
    pub created_by: String,
    /// The request that made them.
    pub created_by_request_id: String,
    /// The request that changed them last.
    pub modified_by_request_id: String,
    /// Since when no key of theirs works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<UnixMs>,
    /// Their keys, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ApiKey>,
    /// An invitation that was not answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<PendingClaim>,
}

/// A key, without the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// SHA-256 of its text.
    #[serde(with = "hex")]
    pub hash: [u8; 32],
    /// The part of it that may be shown.
    pub prefix: String,
    /// What its owner calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Since when.
    pub created_at: UnixMs,
    /// It works until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMs>,
    /// Since when it works no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<UnixMs>,
}

/// An invitation, as its user's record knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingClaim {
    /// SHA-256 of the token.
    #[serde(with = "hex")]
    pub token_hash: [u8; 32],
    /// It works until then.
    pub expires_at: UnixMs,
}

/// An invitation, as its token finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Whose.
    pub email: String,
    /// It works until then.
    pub expires_at: UnixMs,
    /// When and from where it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Claimed>,
}

/// When and from where an invitation was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// When.
    pub at: UnixMs,
    /// From which address.
    pub from: String,
}

impl ApiKey {
    /// Whether it opens anything at this time.
    pub fn works(&self, now: UnixMs) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}

impl User {
    /// Whether anybody should still hear of them: an invitation that nobody answered in time leaves nothing.
    pub fn exists(&self, now: UnixMs) -> bool {
        !self.keys.is_empty() || self.claim.as_ref().is_some_and(|claim| claim.expires_at > now)
    }

    /// The key of theirs with this hash. How long it takes says nothing about how much of a hash fits, nor which key does.
    pub fn key(&self, hash: &[u8; 32]) -> Option<&ApiKey> {
        self.keys.iter().fold(None, |found, key| if bool::from(key.hash.ct_eq(hash)) { Some(key) } else { found })
    }

    /// Whether a key of theirs works until somebody ends it.
    pub fn has_lasting_key(&self) -> bool {
        self.revoked_at.is_none() && self.keys.iter().any(|key| key.revoked_at.is_none() && key.expires_at.is_none())
    }

    /// Whether any key of theirs works.
    pub fn has_key(&self, now: UnixMs) -> bool {
        self.revoked_at.is_none() && self.keys.iter().any(|key| key.works(now))
    }
}

/// A text that is no e-mail address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address such as ana@example.com, in ASCII, at most {MOST_EMAIL_BYTES} characters")]
pub struct InvalidEmail;

/// An address as it is kept: in lower case, without white space around it.
pub fn email(text: &str) -> Result<String, InvalidEmail> {
    let text = text.trim().to_ascii_lowercase();
    let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
    let local_ok = (1..=64).contains(&local.len())
        && local.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&b))
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..");
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let domain_ok = domain.split('.').all(label);
    if local_ok && domain_ok && text.len() <= MOST_EMAIL_BYTES { Ok(text) } else { Err(InvalidEmail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody() -> User {
        User {
            email: "a@x".into(),
            role: Role::Viewer,
            created_at: UnixMs(0),
            created_by: "b@x".into(),
            created_by_request_id: String::new(),
            modified_by_request_id: String::new(),
            revoked_at: None,
            keys: Vec::new(),
            claim: None,
        }
    }

    #[test]
    fn addresses_are_kept_in_one_form() {
        assert_eq!(email(" Ana.B+x@Example.COM "), Ok("ana.b+x@example.com".into()));
        assert_eq!(email("admin@localhost"), Ok("admin@localhost".into()));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("{}@x.com", "a".repeat(65));
        for bad in [
            "",
            "ana",
            "@x.com",
            "a@",
            "a@b..c",
            "a b@x.com",
            "a@-x.com",
            ".a@x.com",
            "a..b@x.com",
            "ä@x.com",
            "a@x.com\n@y",
            "a\0@x",
            &long,
        ] {
            assert_eq!(email(bad), Err(InvalidEmail), "{bad:?}");
        }
    }

    #[test]
    fn an_unanswered_invitation_leaves_nothing() {
        let claim = PendingClaim { token_hash: [1; 32], expires_at: UnixMs(10) };
        let user = User { claim: Some(claim), ..nobody() };
        assert!(user.exists(UnixMs(9)));
        assert!(!user.exists(UnixMs(10)));
    }

    #[test]
    fn security_02_a_key_is_found_by_its_whole_hash_in_constant_time() {
        let key =
            |hash: [u8; 32]| ApiKey { hash, prefix: "rv_".into(), name: None, created_at: UnixMs(0), expires_at: None, revoked_at: None };
        let (mut near, keys) = ([7; 32], [key([1; 32]), key([7; 32]), key([9; 32])]);
        let mut user = User { keys: keys.to_vec(), ..nobody() };
        assert_eq!(user.key(&near), Some(&keys[1]));
        near[31] ^= 1;
        assert_eq!(user.key(&near), None);
        user.keys.clear();
        assert_eq!(user.key(&[1; 32]), None);
        // What takes the same time cannot be told by a test on a busy machine; that nothing else is compared can.
        let source = include_str!("user.rs");
        let body = source.split("pub fn key(").nth(1).and_then(|rest| rest.split("\n    }").next()).expect("the function above");
        assert!(body.contains("ct_eq") && !body.contains("=="), "{body}");
    }
}
