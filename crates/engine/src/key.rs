//! API keys as their owners manage them: several at once, named, with an expiry. A key is made here, shown once, and kept as its hash.

use runvoy_model::change::{Change, NewKey};
use runvoy_model::command::Refusal;
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::role::{Action, Reach};
use runvoy_model::time::UnixMs;
use runvoy_model::user::{ApiKey, email as checked_email};
use runvoy_ports::store::StoreError;
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::people::{Account, no_user};
use crate::repeat::submit_key;

const MOST_NAME_CHARS: usize = 64;
/// Ten years.
const MOST_SECONDS: u64 = 10 * 366 * 24 * 3600;

/// A key to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRequest {
    /// What its owner calls it.
    pub name: Option<String>,
    /// Seconds until it ends; absent: never.
    pub expires_in: Option<u64>,
    /// The client's own key for the request.
    pub idempotency_key: Option<String>,
}

/// A key that was made.
#[derive(Clone, PartialEq, Eq)]
pub struct MadeKey {
    /// The key, which nobody can ask for again.
    pub api_key: String,
    /// What is kept of it.
    pub kept: ApiKey,
}

impl Engine {
    /// Somebody's keys: the caller's own, or for an admin anybody's.
    pub async fn keys(&self, caller: &Caller, email: &str) -> Result<Account, EngineError> {
        let email = key_owner(caller, email)?;
        let person = self.person(&email).await?.ok_or_else(|| no_user(&email))?;
        self.account(person.user).await
    }

    /// Makes one more key.
    pub async fn create_key(&self, caller: &Caller, email: &str, request: &KeyRequest) -> Result<MadeKey, EngineError> {
        let email = key_owner(caller, email)?;
        self.make_key(caller, "keys.create", &email, None, request).await
    }

    /// Makes a key that takes the place of another, which ends in the same step.
    pub async fn rotate_key(&self, caller: &Caller, email: &str, prefix: &str, request: &KeyRequest) -> Result<MadeKey, EngineError> {
        let email = key_owner(caller, email)?;
        self.make_key(caller, "keys.rotate", &email, Some(prefix), request).await
    }

    /// Ends one key.
    pub async fn revoke_key(&self, caller: &Caller, email: &str, prefix: &str) -> Result<(), EngineError> {
        let email = key_owner(caller, email)?;
        let change = Change::RevokeKey(email.clone(), prefix.to_owned());
        let revoked = self.ports.store.change(self.user_step(caller, "keys.revoke"), change, None).await;
        revoked.map(drop).map_err(|error| shortened(error, prefix))
    }

    async fn make_key(
        &self,
        caller: &Caller,
        action: &'static str,
        email: &str,
        instead_of: Option<&str>,
        request: &KeyRequest,
    ) -> Result<MadeKey, EngineError> {
        let (name, expires_at) = (request.checked_name()?, request.checked_expiry(self.latest_now())?);
        let asked = json!({"email": email, "insteadOf": instead_of, "name": name, "expiresIn": request.expires_in});
        let submit = submit_key(caller, request.idempotency_key.as_deref(), action, &asked)?;
        let api_key = key_text(&self.ports.ids.random());
        let new = new_key(&api_key, name, expires_at);
        let hash = new.hash;
        let change = match instead_of {
            Some(prefix) => Change::RotateKey(email.to_owned(), prefix.to_owned(), new),
            None => Change::AddKey(email.to_owned(), new),
        };
        let changed = self.ports.store.change(self.user_step(caller, action), change, submit).await;
        let (record, repeated) = changed.map_err(|error| shortened(error, instead_of.unwrap_or_default()))?;
        if repeated {
            return Err(EngineError::ShownOnce(format!("a key of {email}")));
        }
        let kept = record.user().and_then(|user| user.key(&hash)).cloned();
        let kept = kept.ok_or_else(|| EngineError::Internal("a key that was made is not there".into()))?;
        Ok(MadeKey { api_key, kept })
    }
}

impl KeyRequest {
    fn checked_name(&self) -> Result<Option<String>, EngineError> {
        let Some(name) = self.name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else { return Ok(None) };
        if name.chars().count() > MOST_NAME_CHARS || name.chars().any(char::is_control) {
            return Err(EngineError::invalid("name", format!("must have at most {MOST_NAME_CHARS} printable characters")));
        }
        Ok(Some(name.to_owned()))
    }

    fn checked_expiry(&self, now: UnixMs) -> Result<Option<UnixMs>, EngineError> {
        match self.expires_in {
            None => Ok(None),
            Some(seconds) if (1..=MOST_SECONDS).contains(&seconds) => {
                Ok(Some(now.plus_ms(i64::try_from(seconds).expect("ten years fit") * 1_000)))
            }
            Some(_) => Err(EngineError::invalid("expires_in", format!("must be from 1 to {MOST_SECONDS} s, or left out"))),
        }
    }
}

/// What is kept of a key.
pub(crate) fn new_key(text: &str, name: Option<String>, expires_at: Option<UnixMs>) -> NewKey {
    NewKey { hash: key_hash(text), prefix: key_prefix(text), name, expires_at }
}

/// Whose keys the caller may manage, as it is kept. Somebody else's are not there for who is no admin.
fn key_owner(caller: &Caller, email: &str) -> Result<String, EngineError> {
    let reach = caller.may(Action::ManageKeys)?;
    let email = checked_email(email).map_err(|_| no_user(email))?;
    if reach == Reach::All || email == caller.email { Ok(email) } else { Err(no_user(&email)) }
}

/// A whole key that was given for its prefix is not repeated in an answer.
fn shortened(error: StoreError, prefix: &str) -> EngineError {
    match error {
        StoreError::Refused(Refusal::Missing(runvoy_model::record::Kind::Key, _)) => {
            EngineError::NotFound { what: format!("key {}", key_prefix(prefix).escape_default()) }
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_time_ahead_and_a_name_is_one_line() {
        let request = |name: &str, expires_in| KeyRequest { name: Some(name.into()), expires_in, idempotency_key: None };
        assert_eq!(request(" ci ", None).checked_name().expect("a name"), Some("ci".to_owned()));
        assert_eq!(request("  ", None).checked_name().expect("none"), None);
        assert!(request("a\nb", None).checked_name().is_err());
        assert!(request(&"x".repeat(65), None).checked_name().is_err());
        assert_eq!(request("", Some(60)).checked_expiry(UnixMs(5)).expect("a time"), Some(UnixMs(60_005)));
        for bad in [0, MOST_SECONDS + 1, u64::MAX] {
            assert!(request("", Some(bad)).checked_expiry(UnixMs(0)).is_err(), "{bad}");
        }
    }
}
