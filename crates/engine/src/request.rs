//! A request to run something, checked field by field before anything is written.

use std::collections::BTreeMap;

use runvoy_model::name::{ENV_NAME_PATTERN, Name, is_env_name, is_guarded_env_name, is_reserved_env_name};
use runvoy_model::role::Role;
use runvoy_model::spec::{DEFAULT_PRIORITY, DEFAULT_QUEUE, LOCAL_IMAGE, Spec};

use crate::error::EngineError;

/// What a caller asks for, as it came in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRequest {
    /// A shell command, or a program where there are `args`.
    pub command: String,
    /// Arguments, passed as they are.
    pub args: Option<Vec<String>>,
    /// The image; absent means the default.
    pub image: Option<String>,
    /// Environment.
    pub env: BTreeMap<String, String>,
    /// Seconds that an attempt may run.
    pub timeout: Option<i64>,
    /// The lock to hold.
    pub lock: Option<String>,
    /// Seconds to wait for it.
    pub lock_wait: Option<i64>,
    /// The queue.
    pub queue: Option<String>,
    /// 1 to 5.
    pub priority: Option<i64>,
    /// Words to find it by.
    pub labels: BTreeMap<String, String>,
    /// Further attempts.
    pub retries: Option<i64>,
    /// Secrets to inject.
    pub secrets: Vec<String>,
    /// A repository to clone.
    pub git_repo: Option<String>,
    /// The client's own key for this request.
    pub idempotency_key: Option<String>,
}

/// Linux passes no single argument longer than this.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
const MAX_SECONDS: i64 = 30 * 24 * 3600;
const MAX_RETRIES: i64 = 100;
const MAX_LABELS: usize = 64;
const MAX_KEY_CHARS: usize = 255;

impl RunRequest {
    /// The spec, or the first field that is wrong.
    pub(crate) fn check(&self, role: Role) -> Result<Spec, EngineError> {
        self.check_command()?;
        check_env(&self.env, role)?;
        self.check_not_offered()?;
        let lock = self.lock.as_deref().map(|lock| name("lock", lock)).transpose()?;
        let lock_wait = seconds("lock_wait", self.lock_wait, 0)?;
        if lock_wait.is_some() && lock.is_none() {
            return Err(EngineError::invalid("lock_wait", "needs a lock to wait for"));
        }
        let priority = in_range("priority", self.priority, 1, 5)?.and_then(|priority| u8::try_from(priority).ok());
        let retries = in_range("retries", self.retries, 0, MAX_RETRIES)?.and_then(|retries| u32::try_from(retries).ok());
        Ok(Spec {
            command: self.command.clone(),
            args: self.args.clone(),
            image: LOCAL_IMAGE.to_owned(),
            env: self.env.clone(),
            timeout_ms: seconds("timeout", self.timeout, 1)?,
            lock,
            lock_wait_ms: lock_wait,
            queue: name("queue", self.queue.as_deref().unwrap_or(DEFAULT_QUEUE))?,
            priority: priority.unwrap_or(DEFAULT_PRIORITY),
            labels: self.checked_labels()?,
            retries: retries.unwrap_or(0),
        })
    }

    fn check_command(&self) -> Result<(), EngineError> {
        if self.command.trim().is_empty() {
            return Err(EngineError::invalid("command", "must not be empty"));
        }
        let args = self.args.iter().flatten().map(|arg| ("args", arg));
        for (field, text) in std::iter::once(("command", &self.command)).chain(args) {
            if text.contains('\0') {
                return Err(EngineError::invalid(field, "must not contain NUL"));
            }
            if text.len() > MAX_ARGUMENT_BYTES {
                return Err(EngineError::invalid(field, format!("must not be longer than {MAX_ARGUMENT_BYTES} bytes")));
            }
        }
        Ok(())
    }

    fn check_not_offered(&self) -> Result<(), EngineError> {
        if let Some(image) = self.image.as_deref().filter(|image| !image.is_empty() && *image != LOCAL_IMAGE) {
            let message = format!("{} is not registered; the registered image is {LOCAL_IMAGE}", image.escape_default());
            return Err(EngineError::invalid("image", message));
        }
        if let Some(secret) = self.secrets.first() {
            return Err(EngineError::invalid("secrets", format!("there is no secret {}", secret.escape_default())));
        }
        if self.git_repo.as_deref().is_some_and(|repo| !repo.is_empty()) {
            return Err(EngineError::invalid("git_repo", "this server does not clone repositories"));
        }
        Ok(())
    }

    fn checked_labels(&self) -> Result<BTreeMap<String, String>, EngineError> {
        if self.labels.len() > MAX_LABELS {
            return Err(EngineError::invalid("labels", format!("at most {MAX_LABELS}")));
        }
        for (key, value) in &self.labels {
            name(&format!("labels.{}", key.escape_default()), key)?;
            if value.len() > 256 || value.chars().any(char::is_control) {
                return Err(EngineError::invalid(format!("labels.{key}"), "at most 256 printable characters"));
            }
        }
        Ok(self.labels.clone())
    }
}

/// The client's own key, if it is one.
pub(crate) fn checked_key(key: Option<String>) -> Result<Option<String>, EngineError> {
    match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY_CHARS || !key.bytes().all(|b| b.is_ascii_graphic()) => {
            Err(EngineError::invalid("Idempotency-Key", format!("1 to {MAX_KEY_CHARS} printable ASCII characters")))
        }
        key => Ok(key),
    }
}

/// Whether a caller of this role may set this environment.
pub(crate) fn check_env(env: &BTreeMap<String, String>, role: Role) -> Result<(), EngineError> {
    for (key, value) in env {
        let field = format!("env.{}", key.escape_default());
        if !is_env_name(key) {
            return Err(EngineError::invalid(field, format!("names must match {ENV_NAME_PATTERN}")));
        }
        if is_reserved_env_name(key) {
            return Err(EngineError::invalid(field, "names beginning RUNVOY_ are the platform's own"));
        }
        if is_guarded_env_name(key) && role != Role::Admin {
            return Err(EngineError::invalid(field, "changes what programs load; only an admin may set it"));
        }
        if value.contains('\0') {
            return Err(EngineError::invalid(field, "must not contain NUL"));
        }
        if key.len() + value.len() >= MAX_ARGUMENT_BYTES {
            return Err(EngineError::invalid(field, format!("must not be longer than {MAX_ARGUMENT_BYTES} bytes")));
        }
    }
    Ok(())
}

fn name(field: &str, text: &str) -> Result<Name, EngineError> {
    Name::new(text).map_err(|error| EngineError::invalid(field, error.to_string()))
}

fn seconds(field: &str, value: Option<i64>, least: i64) -> Result<Option<u64>, EngineError> {
    Ok(in_range(field, value, least, MAX_SECONDS)?.and_then(|seconds| u64::try_from(seconds).ok()).map(|seconds| seconds * 1000))
}

fn in_range(field: &str, value: Option<i64>, least: i64, most: i64) -> Result<Option<i64>, EngineError> {
    match value {
        Some(value) if !(least..=most).contains(&value) => Err(EngineError::invalid(field, format!("must be from {least} to {most}"))),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut RunRequest)) -> String {
        let mut request = RunRequest { command: "true".into(), ..RunRequest::default() };
        change(&mut request);
        match request.check(Role::Developer) {
            Err(EngineError::Invalid { field, .. }) => field,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        assert_eq!(refused(|r| r.command = "  ".into()), "command");
        assert_eq!(refused(|r| r.command = "a\0b".into()), "command");
        assert_eq!(refused(|r| r.args = Some(vec!["x".repeat(200_000)])), "args");
        assert_eq!(refused(|r| r.timeout = Some(0)), "timeout");
        assert_eq!(refused(|r| r.lock = Some("../x".into())), "lock");
        assert_eq!(refused(|r| r.lock_wait = Some(3)), "lock_wait");
        assert_eq!(refused(|r| r.queue = Some(String::new())), "queue");
        assert_eq!(refused(|r| r.priority = Some(6)), "priority");
        assert_eq!(refused(|r| r.retries = Some(-1)), "retries");
        assert_eq!(refused(|r| r.image = Some("ubuntu".into())), "image");
        assert_eq!(refused(|r| drop(r.env.insert("1A".into(), "x".into()))), "env.1A");
        assert_eq!(refused(|r| drop(r.env.insert("LD_PRELOAD".into(), "x".into()))), "env.LD_PRELOAD");
        assert_eq!(refused(|r| drop(r.env.insert("RUNVOY_USER".into(), "x".into()))), "env.RUNVOY_USER");
    }

    #[test]
    fn an_admin_may_set_what_programs_load() {
        let env = BTreeMap::from([("LD_PRELOAD".to_owned(), "x".to_owned())]);
        let request = RunRequest { command: "true".into(), env, ..RunRequest::default() };
        assert!(request.check(Role::Admin).is_ok());
    }
}
