//! Invitations are answered here: a token that works once becomes a key. Neither token nor key is stored, logged or shown a second time.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use runvoy_model::change::{Change, ClaimKey};
use runvoy_model::key::{key_hash, key_text};
use runvoy_model::record::{Body, Kind, hash_name};
use runvoy_model::step::{Actor, Audit, Step};

use crate::Engine;
use crate::access::Origin;
use crate::error::EngineError;
use crate::key::new_key;

/// A token has this many random bytes, which are 32 characters.
const TOKEN_BYTES: usize = 24;
const TOKEN_CHARS: usize = 32;

/// A claimed key.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaimedKey {
    /// Whose.
    pub email: String,
    /// The key, which nobody can ask for again.
    pub api_key: String,
}

impl Engine {
    /// Answers an invitation. Of many at once one succeeds.
    pub async fn claim(&self, token: &str, origin: Origin) -> Result<ClaimedKey, EngineError> {
        if !is_token(token) {
            return Err(EngineError::invalid("token", format!("must have {TOKEN_CHARS} characters")));
        }
        let token_hash = key_hash(token);
        let claim = self.ports.records.record(Kind::Claim, &hash_name(&token_hash)).await?;
        let Some(Body::Claim(claim)) = claim.and_then(|record| record.body) else { return Err(no_token()) };
        // The store judges it again, by the time of its step.
        if claim.expires_at <= self.machine_now() {
            return Err(no_token());
        }
        let api_key = key_text(&self.ports.ids.random());
        let change = ClaimKey { token_hash, key: new_key(&api_key, None, None), from: origin.from.clone() };
        let step = Step {
            id: self.step_id(),
            at: self.now(),
            actor: Actor::User { email: claim.email.clone() },
            request_id: origin.request_id,
            audit: Some(Audit { action: "users.claim".into(), from: origin.from, ..Audit::default() }),
            authority: None,
        };
        match self.ports.store.change(step, Change::ClaimKey(change), None).await.map_err(EngineError::from) {
            Ok(_) => Ok(ClaimedKey { email: claim.email, api_key }),
            Err(EngineError::NotFound { .. }) => Err(no_token()),
            Err(error) => Err(error),
        }
    }
}

/// A token from randomness. It begins with a letter, so that no command line takes it for an option.
pub(crate) fn claim_token(random: &[u8; 32]) -> String {
    let mut bytes: [u8; TOKEN_BYTES] = random[..TOKEN_BYTES].try_into().expect("a token is shorter");
    bytes[0] %= LETTERS * 4;
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The first so many of base64's digits are letters, and a digit is six bits.
const LETTERS: u8 = 52;

fn is_token(text: &str) -> bool {
    text.len() == TOKEN_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Never was, or is no longer: both look the same, and the token is not repeated.
fn no_token() -> EngineError {
    EngineError::NotFound { what: "claim token".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_begins_with_a_letter() {
        for first in 0..=u8::MAX {
            assert!(claim_token(&[first; 32]).starts_with(|c: char| c.is_ascii_alphabetic()), "{first}");
        }
    }

    #[test]
    fn a_token_has_its_random_bits_in_32_characters() {
        let token = claim_token(&[0xfb; 32]);
        assert!(is_token(&token), "{token}");
        assert_ne!(token, claim_token(&[0xfa; 32]));
        for other in ["", "short", &token[1..], &format!("{token}x"), &token.replace('-', "+"), &"ü".repeat(16)] {
            assert!(!is_token(other), "{other}");
        }
    }
}
