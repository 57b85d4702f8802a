//! Secrets as people manage them: create, read, list, change, delete, and a new sealing key for all of them. Values come in, are sealed and are
//! forgotten; one leaves this file only for whoever may read it, and not before that is on record. How commands get them is in [`crate::material`].
//!
//! Whoever changes a secret does so one at a time, from the look at it to the commit: a right that was checked is still there then, and a value that
//! was sealed with the old key is in the store before a new one is made.

use std::sync::Arc;

use runvoy_model::change::{Change, NewSecret, SecretUpdate};
use runvoy_model::command::Refusal;
use runvoy_model::env_guard::is_guarded;
use runvoy_model::name::{ENV_NAME_PATTERN, Name, is_env_name, is_reserved_env_name};
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::{Action, Role};
use runvoy_model::seal::SealKey;
use runvoy_model::secret::{Sealed, Secret, SecretUse};
use runvoy_model::user;
use runvoy_ports::seal::SealKeys;
use runvoy_ports::store::StoreError;
use serde_json::json;
use zeroize::Zeroizing;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;
use crate::subject::Subject;

const MAX_VALUE_BYTES: usize = 64 * 1024;
const MAX_KEY_NAME_CHARS: usize = 128;
const MAX_DESCRIPTION_CHARS: usize = 512;
const MAX_USE_BY: usize = 100;
/// A secret that changes under a rotation is sealed again this often; then it is left to the next one.
const MOST_RESEALS: usize = 8;

/// A secret to make, as it came in. It has no debug form: it holds the value.
pub struct SecretRequest {
    /// Its name.
    pub name: String,
    /// The environment variable that it becomes.
    pub key_name: String,
    /// The value.
    pub value: Zeroizing<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who else may use it.
    pub use_by: Vec<String>,
    /// The client's own key for this request.
    pub idempotency_key: Option<String>,
}

/// What is to be new about a secret. It has no debug form: it may hold a value.
#[derive(Default)]
pub struct SecretChange {
    /// The environment variable.
    pub key_name: Option<String>,
    /// The value.
    pub value: Option<Zeroizing<String>>,
    /// What it is for; empty for nothing any more.
    pub description: Option<String>,
    /// Everybody else who may use it.
    pub use_by: Option<Vec<String>>,
}

/// What came of a new sealing key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The id of the key that seals from now on.
    pub key_id: String,
    /// How many secrets were sealed anew.
    pub resealed: u64,
    /// Those that were not, because their sealed value does not open. Their key is kept.
    pub unopened: Vec<Name>,
}

impl Engine {
    /// Makes a secret, which belongs to the caller. A name that is taken is refused and nothing changes, whoever has it.
    pub async fn create_secret(&self, caller: &Caller, request: SecretRequest) -> Result<(), EngineError> {
        caller.may(Action::WriteSecrets)?;
        let name = Name::new(request.name.as_str()).map_err(|error| EngineError::invalid("name", error.to_string()))?;
        check_key_name(&request.key_name, caller.role)?;
        check_value(&request.value)?;
        let use_by = checked_use_by(&request.use_by)?;
        let description = checked_description(request.description.clone())?;
        let _alone = self.secret_writes.lock().await;
        let sealing = self.ports.seal_keys.current()?;
        let sealed = self.seal_value(&sealing, &name, &request.value);
        let digest = self.ports.digest_key.digest(&request.value);
        let asked = json!([request.name, request.key_name, request.description, request.use_by, digest]);
        let key = submit_key(caller, request.idempotency_key.as_deref(), "secrets.create", &asked)?;
        let new = NewSecret { name, key_name: request.key_name, description, use_by, sealed };
        self.ports.store.change(self.user_step(caller, "secrets.create"), Change::CreateSecret(Box::new(new)), key).await?;
        Ok(())
    }

    /// A secret, with its value where the caller may read it; that they did is on record then.
    pub async fn secret(&self, caller: &Caller, name: &str) -> Result<(Secret, Option<Zeroizing<String>>), EngineError> {
        caller.may(Action::ReadSecrets)?;
        let secret = self.visible_secret(caller, name).await?;
        if !secret.allows(caller.secret_user(), SecretUse::Reveal) {
            return Ok((secret, None));
        }
        let value = Zeroizing::new(self.open_secret(&secret).await?);
        let noted = Change::NoteRevealed(secret.name.clone());
        self.ports.store.change(self.user_step(caller, "secrets.reveal"), noted, None).await?;
        Ok((secret, Some(value)))
    }

    /// The secrets that the caller may know of, by name.
    pub async fn secrets(&self, caller: &Caller) -> Result<Vec<Secret>, EngineError> {
        caller.may(Action::ReadSecrets)?;
        let secrets = self.all(Kind::Secret).await?;
        let visible = |secret: &&Secret| secret.allows(caller.secret_user(), SecretUse::See);
        Ok(secrets.iter().filter_map(Record::secret).filter(visible).cloned().collect())
    }

    /// Changes a secret; what is absent stays.
    pub async fn update_secret(&self, caller: &Caller, name: &str, change: SecretChange) -> Result<(), EngineError> {
        caller.may(Action::WriteSecrets)?;
        let SecretChange { key_name, value, description, use_by } = change;
        if key_name.is_none() && value.is_none() && description.is_none() && use_by.is_none() {
            return Err(EngineError::invalid("body", "changes nothing: give key_name, value, description or use_by"));
        }
        if let Some(value) = &value {
            check_value(value)?;
        }
        let use_by = use_by.as_deref().map(checked_use_by).transpose()?;
        let description = checked_description(description)?;
        let _alone = self.secret_writes.lock().await;
        let secret = self.changeable_secret(caller, name, "secrets.update").await?;
        // Also where only the value changes: what programs load is for admins to set.
        check_key_name(key_name.as_ref().unwrap_or(&secret.key_name), caller.role)?;
        let sealed = match &value {
            Some(value) => Some(self.seal_value(&self.ports.seal_keys.current()?, &secret.name, value)),
            None => None,
        };
        let update = SecretUpdate { name: secret.name, key_name, description, use_by, sealed };
        self.ports.store.change(self.user_step(caller, "secrets.update"), Change::UpdateSecret(Box::new(update)), None).await?;
        Ok(())
    }

    /// Deletes a secret. What was submitted with it and has not begun will not start.
    pub async fn delete_secret(&self, caller: &Caller, name: &str) -> Result<Name, EngineError> {
        caller.may(Action::WriteSecrets)?;
        let _alone = self.secret_writes.lock().await;
        let name = self.changeable_secret(caller, name, "secrets.delete").await?.name;
        self.ports.store.change(self.user_step(caller, "secrets.delete"), Change::DeleteSecret(name.clone()), None).await?;
        Ok(name)
    }

    /// Makes a new sealing key and seals every secret with it, one step each; then keys that nothing is sealed with are forgotten. Cut off in between,
    /// both keys stay, and the next rotation finishes it.
    pub async fn rotate_sealing_key(&self, caller: &Caller) -> Result<Rotation, EngineError> {
        caller.may(Action::RotateSealingKey)?;
        let _alone = self.secret_writes.lock().await;
        // On record before anything happens; and behind every step that was sent to the store with the key of before.
        let noted = Change::NoteRotated(caller.email.clone());
        self.ports.store.change(self.user_step(caller, "secrets.rotate-key"), noted, None).await?;
        let to = self.with_seal_keys(|keys| keys.rotate()).await?;
        let mut rotation = Rotation { key_id: to.id().to_owned(), resealed: 0, unopened: Vec::new() };
        for secret in self.stored_secrets().await? {
            match self.reseal(caller, secret, &to).await? {
                Resealed::Done => rotation.resealed += 1,
                Resealed::Unneeded => {}
                Resealed::Unopened(name) => rotation.unopened.push(name),
            }
        }
        let used: Vec<String> = self.stored_secrets().await?.into_iter().map(|secret| secret.sealed.key_id).collect();
        self.with_seal_keys(move |keys| keys.retire_all_but(&used)).await?;
        Ok(rotation)
    }

    async fn reseal(&self, caller: &Caller, mut secret: Secret, to: &SealKey) -> Result<Resealed, EngineError> {
        for _ in 0..MOST_RESEALS {
            if secret.sealed.key_id == to.id() {
                return Ok(Resealed::Unneeded);
            }
            let value = match self.open_secret(&secret).await {
                Ok(value) => Zeroizing::new(value),
                Err(error) => {
                    tracing::error!(secret = %secret.name, %error, "a secret was not encrypted again");
                    return Ok(Resealed::Unopened(secret.name));
                }
            };
            let resealed = self.seal_value(to, &secret.name, &value);
            let change = Change::ResealSecret(secret.name.clone(), secret.sealed, resealed);
            match self.ports.store.change(self.user_step(caller, "secrets.rotate-key"), change, None).await {
                Ok(_) => return Ok(Resealed::Done),
                Err(StoreError::Refused(Refusal::Missing(..))) => return Ok(Resealed::Unneeded),
                Err(StoreError::Refused(Refusal::Stale(..))) => match self.stored_secret(&secret.name).await? {
                    Some(now) => secret = now,
                    None => return Ok(Resealed::Unneeded),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(EngineError::conflict(
            format!("secret {} was changed by other requests during the rotation: rotate again", secret.name),
            "this secret keeps its old key",
        ))
    }

    /// A secret that the caller may know of. Anything else is not there.
    async fn visible_secret(&self, caller: &Caller, text: &str) -> Result<Secret, EngineError> {
        let missing = || EngineError::NoSecret(text.escape_default().to_string());
        let name = Name::new(text).map_err(|_| missing())?;
        let secret = self.stored_secret(&name).await?;
        secret.filter(|secret| secret.allows(caller.secret_user(), SecretUse::See)).ok_or_else(missing)
    }

    /// The same, where the caller may change it; that somebody tried who may not is kept.
    async fn changeable_secret(&self, caller: &Caller, text: &str, action: &str) -> Result<Secret, EngineError> {
        let secret = self.visible_secret(caller, text).await?;
        if secret.allows(caller.secret_user(), SecretUse::Change) {
            return Ok(secret);
        }
        let why = format!("you may use secret {}, but not change it: ask {}, or an operator", secret.name, secret.created_by);
        let subject = Subject { target: Some(secret.name.to_string()), ..Subject::default() };
        self.note_denied(caller, action, &why, &subject).await?;
        Err(EngineError::Denied { rule: None, why })
    }

    async fn stored_secret(&self, name: &Name) -> Result<Option<Secret>, EngineError> {
        let record = self.ports.records.record(Kind::Secret, name.as_str()).await?;
        Ok(record.as_ref().and_then(Record::secret).cloned())
    }

    async fn stored_secrets(&self) -> Result<Vec<Secret>, EngineError> {
        let records = self.ports.records.records(Kind::Secret).await?;
        Ok(records.iter().filter_map(Record::secret).cloned().collect())
    }

    fn seal_value(&self, key: &SealKey, name: &Name, value: &str) -> Sealed {
        key.seal(name.as_str(), value.as_bytes(), &self.ports.ids.random())
    }

    /// Does something with the ring that waits for a disk or a network.
    pub(crate) async fn with_seal_keys<T, E>(
        &self,
        work: impl FnOnce(&dyn SealKeys) -> Result<T, E> + Send + 'static,
    ) -> Result<T, EngineError>
    where
        T: Send + 'static,
        E: Into<EngineError> + Send + 'static,
    {
        let keys = Arc::clone(&self.ports.seal_keys);
        let done = tokio::task::spawn_blocking(move || work(&*keys)).await;
        done.map_err(|error| EngineError::Internal(error.to_string()))?.map_err(Into::into)
    }
}

/// What became of one secret in a rotation.
enum Resealed {
    Done,
    Unneeded,
    Unopened(Name),
}

fn check_key_name(key_name: &str, role: Role) -> Result<(), EngineError> {
    let wrong = |message: String| Err(EngineError::invalid("key_name", message));
    if !is_env_name(key_name) || key_name.len() > MAX_KEY_NAME_CHARS {
        return wrong(format!("must match {ENV_NAME_PATTERN}, at most {MAX_KEY_NAME_CHARS} characters"));
    }
    if is_reserved_env_name(key_name) {
        return wrong("names that begin with RUNVOY_ are reserved".into());
    }
    if is_guarded(key_name) && role != Role::Admin {
        return wrong(format!("{key_name} changes what programs load; only an admin may set it"));
    }
    Ok(())
}

fn check_value(value: &str) -> Result<(), EngineError> {
    if value.is_empty() || value.len() > MAX_VALUE_BYTES {
        return Err(EngineError::invalid(
            "value",
            format!("must have from 1 to {} bytes ({} KiB)", MAX_VALUE_BYTES, MAX_VALUE_BYTES >> 10),
        ));
    }
    if value.contains('\0') {
        return Err(EngineError::invalid("value", "must not contain NUL bytes"));
    }
    Ok(())
}

fn checked_description(description: Option<String>) -> Result<Option<String>, EngineError> {
    match &description {
        Some(text) if text.chars().count() > MAX_DESCRIPTION_CHARS || text.chars().any(char::is_control) => {
            Err(EngineError::invalid("description", format!("must have at most {MAX_DESCRIPTION_CHARS} printable characters")))
        }
        _ => Ok(description),
    }
}

fn checked_use_by(use_by: &[String]) -> Result<Vec<String>, EngineError> {
    if use_by.len() > MAX_USE_BY {
        return Err(EngineError::invalid("use_by", format!("must list at most {MAX_USE_BY} entries")));
    }
    let mut checked: Vec<String> = Vec::with_capacity(use_by.len());
    for who in use_by {
        let who = checked_who(who)?;
        if !checked.contains(&who) {
            checked.push(who);
        }
    }
    Ok(checked)
}

fn checked_who(who: &str) -> Result<String, EngineError> {
    let wrong = || EngineError::invalid("use_by", "each must be an e-mail address, worker:NAME, group:NAME or role:NAME");
    match who.split_once(':') {
        Some(("group", group)) => Name::new(group).map(|group| format!("group:{group}")).map_err(|_| wrong()),
        Some(("worker", name)) => Name::new(name).map(|name| format!("worker:{name}")).map_err(|_| wrong()),
        Some(("role", role)) => Role::parse(role).map(|role| format!("role:{}", role.as_str())).ok_or_else(wrong),
        _ => user::email(who).map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(checked: Result<(), EngineError>) -> Option<String> {
        match checked {
            Ok(()) => None,
            Err(EngineError::Invalid { field, .. }) => Some(field),
            Err(other) => panic!("expected a refusal of a field, got {other:?}"),
        }
    }

    #[test]
    fn security_27_key_names_follow_the_guard_of_environments() {
        for bad in ["", "1A", "A-B", "A=B", "A B", "A\0", "É", "RUNVOY_USER", "RUNVOY_EXECUTION_ID", &"A".repeat(129)] {
            assert_eq!(field(check_key_name(bad, Role::Admin)).as_deref(), Some("key_name"), "{bad:?}");
        }
        for guarded in ["LD_PRELOAD", "PATH", "BASH_ENV", "ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND", "PYTHONSTARTUP"] {
            for role in [Role::Operator, Role::Developer] {
                assert_eq!(field(check_key_name(guarded, role)).as_deref(), Some("key_name"), "{guarded}");
            }
            assert_eq!(field(check_key_name(guarded, Role::Admin)), None, "{guarded}");
        }
        for good in ["A", "DB_PASSWORD", "_x1", "RUNVOY_USER_TOKEN"] {
            assert_eq!(field(check_key_name(good, Role::Developer)), None, "{good}");
        }
    }

    #[test]
    fn values_have_a_length_and_no_nul() {
        for good in ["x", "ü\n\"'=$", &"x".repeat(MAX_VALUE_BYTES)] {
            assert_eq!(field(check_value(good)), None);
        }
        for bad in ["", "a\0b", &"x".repeat(MAX_VALUE_BYTES + 1)] {
            assert_eq!(field(check_value(bad)).as_deref(), Some("value"));
        }
    }

    #[test]
    fn who_may_use_a_secret_is_a_person_a_group_or_a_role() {
        let use_by = ["Ana@Example.com", "ana@example.com", "group:ops", "role:developer"].map(str::to_owned);
        assert_eq!(checked_use_by(&use_by).expect("good"), ["ana@example.com", "group:ops", "role:developer"]);
        for bad in ["", "ana", "group:", "group:a b", "role:king", "team:x"] {
            assert!(checked_use_by(&[bad.to_owned()]).is_err(), "{bad:?}");
        }
    }
}
