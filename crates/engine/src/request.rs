//! A request to run something, checked field by field before anything is written.

use std::collections::BTreeMap;

use runvoy_model::git::{self, GitSource};
use runvoy_model::name::{ENV_NAME_PATTERN, Name, is_env_name, is_reserved_env_name};
use runvoy_model::rpc::{JOB_V1, PROTOCOL_LABEL, RpcParams};
use runvoy_model::spec::{DEFAULT_PRIORITY, DEFAULT_QUEUE, Labels, MOST_LABELS, Spec, is_label_value};
use serde::Serialize;

use crate::error::EngineError;

/// What a caller asks for, as it came in. As JSON it is what tells a repeat from another request, also after an upgrade: a field that is added later is left out of it where
/// it is absent, and none that is there is renamed or left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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
    /// What a worker must have to take it.
    pub worker_labels: BTreeMap<String, String>,
    /// Run it on a terminal of its own. Left out where it is not asked for: a request keeps the fingerprint that it always had.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// Further attempts.
    pub retries: Option<i64>,
    /// Further attempts where its worker was lost, even without retries. It follows from the request, and is no part of its fingerprint.
    #[serde(skip)]
    pub redeliveries: u32,
    /// Secrets to inject.
    pub secrets: Vec<String>,
    /// A repository to clone.
    pub git_repo: Option<String>,
    /// Its branch, tag or commit.
    pub git_ref: Option<String>,
    /// The directory within it to start in.
    pub git_path: Option<String>,
    /// The secret with its token.
    pub git_token: Option<String>,
    /// What a client of `job.v1` said beside all this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc: Option<Box<RpcParams>>,
    /// The client's own key for this request.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

/// Linux passes no single argument longer than this.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// What a program gets at its start, arguments and environment together. Linux has room for 2 MiB; secrets and the platform's own variables come on top.
const MAX_START_BYTES: usize = 1 << 20;
const MAX_SECONDS: i64 = 30 * 24 * 3600;
const MAX_RETRIES: i64 = 100;
const MAX_SECRETS: usize = 64;
const MAX_KEY_CHARS: usize = 255;

impl RunRequest {
    /// The spec, or the first field that is wrong.
    pub(crate) fn check(&self, image_id: &str, git: git::Reach) -> Result<Spec, EngineError> {
        self.check_command()?;
        self.refuse_empty()?;
        check_env(&self.env)?;
        self.check_size()?;
        let lock = self.lock.as_deref().map(|lock| name("lock", lock)).transpose()?;
        let lock_wait = seconds("lock_wait", self.lock_wait, 0)?;
        if lock_wait.is_some() && lock.is_none() {
            return Err(EngineError::invalid("lock_wait", "needs `lock`: without a lock there is nothing to wait for"));
        }
        let priority = in_range("priority", self.priority, 1, 5)?.and_then(|priority| u8::try_from(priority).ok());
        let retries = in_range("retries", self.retries, 0, MAX_RETRIES)?.and_then(|retries| u32::try_from(retries).ok());
        Ok(Spec {
            command: self.command.clone(),
            args: self.args.clone(),
            image: image_id.to_owned(),
            container: None,
            env: self.env.clone(),
            timeout_ms: seconds("timeout", self.timeout, 1)?,
            lock,
            lock_wait_ms: lock_wait,
            queue: name("queue", self.queue.as_deref().unwrap_or(DEFAULT_QUEUE))?,
            priority: priority.unwrap_or(DEFAULT_PRIORITY),
            labels: checked_labels("labels", &self.labels)?,
            worker_labels: self.checked_worker_labels()?,
            terminal: self.terminal,
            retries: retries.unwrap_or(0),
            redeliveries: self.redeliveries,
            secrets: self.checked_secrets()?,
            git: self.checked_git(git)?,
            task: None,
            playbook: None,
            rpc: self.rpc.clone(),
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

    /// Refuses a field that is there and empty: it comes from an unset variable, and must not run without its lock or repository.
    fn refuse_empty(&self) -> Result<(), EngineError> {
        let Self { image, lock, queue, git_repo, git_ref, git_path, git_token, .. } = self;
        let fields = [
            ("image", image),
            ("lock", lock),
            ("queue", queue),
            ("git_repo", git_repo),
            ("git_ref", git_ref),
            ("git_path", git_path),
            ("git_token", git_token),
        ];
        fields.into_iter().try_for_each(|(field, text)| not_empty(field, text.as_deref()))
    }

    /// Counted as the system counts: each text with its end and a pointer to it.
    fn check_size(&self) -> Result<(), EngineError> {
        const EACH: usize = 1 + size_of::<usize>();
        let args: usize = self.args.iter().flatten().map(|arg| arg.len() + EACH).sum::<usize>() + self.command.len();
        let env: usize = self.env.iter().map(|(key, value)| key.len() + 1 + value.len() + EACH).sum();
        if args + env <= MAX_START_BYTES {
            return Ok(());
        }
        let field = if env >= args { "env" } else { "args" };
        let message = format!(
            "env of {env} bytes and args of {args} are more than {MAX_START_BYTES} bytes together, which no program is started with: give large data as a file"
        );
        Err(EngineError::invalid(field, message))
    }

    /// What a worker must have. What only workers can do that read the parameters of `job.v1` themselves asks for such a one.
    fn checked_worker_labels(&self) -> Result<Labels, EngineError> {
        let mut labels = checked_labels("worker_labels", &self.worker_labels)?;
        if let Some(rpc) = &self.rpc {
            rpc.check().map_err(|error| EngineError::invalid(format!("rpc.{}", error.field), error.message))?;
            if rpc.is_for_job_v1() {
                labels.insert(PROTOCOL_LABEL.to_owned(), JOB_V1.to_owned());
            }
        }
        Ok(labels)
    }

    fn checked_secrets(&self) -> Result<Vec<Name>, EngineError> {
        if self.secrets.len() > MAX_SECRETS {
            return Err(EngineError::invalid("secrets", format!("at most {MAX_SECRETS}")));
        }
        let mut secrets: Vec<Name> = Vec::with_capacity(self.secrets.len());
        for secret in &self.secrets {
            let secret = name("secrets", secret)?;
            if !secrets.contains(&secret) {
                secrets.push(secret);
            }
        }
        Ok(secrets)
    }

    fn checked_git(&self, reach: git::Reach) -> Result<Option<GitSource>, EngineError> {
        let Some(repo) = self.git_repo.clone() else {
            let details = [("git_ref", &self.git_ref), ("git_path", &self.git_path), ("git_token", &self.git_token)];
            return match details.into_iter().find(|(_, field)| field.is_some()) {
                Some((field, _)) => Err(EngineError::invalid(field, "needs `git_repo`")),
                None => Ok(None),
            };
        };
        let token = self.git_token.as_deref().map(|token| name("git_token", token)).transpose()?;
        let source = GitSource { repo, reference: self.git_ref.clone(), path: self.git_path.clone(), token };
        source.check(reach).map_err(|error| EngineError::invalid(error.field(), error.to_string()))?;
        Ok(Some(source))
    }
}

/// Labels as they are kept, if they can be.
fn checked_labels(field: &str, labels: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, EngineError> {
    if labels.len() > MOST_LABELS {
        return Err(EngineError::invalid(field, format!("at most {MOST_LABELS}")));
    }
    for (key, value) in labels {
        name(&format!("{field}.{}", key.escape_default()), key)?;
        if !is_label_value(value) {
            return Err(EngineError::invalid(format!("{field}.{key}"), "at most 256 printable characters"));
        }
    }
    Ok(labels.clone())
}

/// The client's own key, if it is one.
pub(crate) fn checked_key(key: Option<String>) -> Result<Option<String>, EngineError> {
    match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY_CHARS || !key.bytes().all(|b| b.is_ascii_graphic()) => {
            Err(EngineError::invalid("Idempotency-Key", format!("must have 1 to {MAX_KEY_CHARS} printable ASCII characters and no spaces")))
        }
        key => Ok(key),
    }
}

/// Whether this can be an environment. What its variables change is judged by the rules, in the plan.
pub(crate) fn check_env(env: &BTreeMap<String, String>) -> Result<(), EngineError> {
    for (key, value) in env {
        let field = format!("env.{}", key.escape_default());
        if !is_env_name(key) {
            return Err(EngineError::invalid(field, format!("a variable name must match {ENV_NAME_PATTERN}")));
        }
        if is_reserved_env_name(key) {
            return Err(EngineError::invalid(field, "names that begin with RUNVOY_ are reserved, except RUNVOY_USER_"));
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

/// Refuses a text that is given and empty.
pub(crate) fn not_empty(field: &str, text: Option<&str>) -> Result<(), EngineError> {
    match text {
        Some("") => Err(EngineError::invalid(field, "is empty: is a variable unset? Give it a value, or leave it out")),
        _ => Ok(()),
    }
}

fn name(field: &str, text: &str) -> Result<Name, EngineError> {
    Name::new(text).map_err(|error| EngineError::invalid(field, error.to_string()))
}

fn seconds(field: &str, value: Option<i64>, least: i64) -> Result<Option<u64>, EngineError> {
    Ok(within(field, value, (least, MAX_SECONDS), " s")?.and_then(|seconds| u64::try_from(seconds).ok()).map(|seconds| seconds * 1000))
}

fn in_range(field: &str, value: Option<i64>, least: i64, most: i64) -> Result<Option<i64>, EngineError> {
    within(field, value, (least, most), "")
}

fn within(field: &str, value: Option<i64>, (least, most): (i64, i64), unit: &str) -> Result<Option<i64>, EngineError> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(EngineError::invalid(field, format!("must be from {least} to {most}{unit}, not {value}")))
        }
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut RunRequest)) -> String {
        let mut request = RunRequest { command: "true".into(), ..RunRequest::default() };
        change(&mut request);
        match request.check("local", git::Reach::Public) {
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
        assert_eq!(refused(|r| r.secrets = vec!["a b".into()]), "secrets");
        assert_eq!(refused(|r| drop(r.worker_labels.insert("gpu".into(), "a\nb".into()))), "worker_labels.gpu");
        assert_eq!(refused(|r| drop(r.worker_labels.insert("a b".into(), "x".into()))), "worker_labels.a b");
        assert_eq!(refused(|r| drop(r.worker_labels.insert(PROTOCOL_LABEL.into(), JOB_V1.into()))), "worker_labels.runvoy:protocol");
        let asked = |rpc: RpcParams| refused(|r| r.rpc = Some(Box::new(rpc)));
        assert_eq!(asked(RpcParams { working_directory: Some("a\nb".into()), ..RpcParams::default() }), "rpc.working_directory");
        assert_eq!(refused(|r| r.git_repo = Some("ext::sh -c id".into())), "git_repo");
        assert_eq!(refused(|r| r.git_ref = Some("main".into())), "git_ref");
        assert_eq!(refused(|r| drop(r.env.insert("1A".into(), "x".into()))), "env.1A");
        assert_eq!(refused(|r| drop(r.env.insert("RUNVOY_USER".into(), "x".into()))), "env.RUNVOY_USER");
    }

    #[test]
    fn a_field_that_is_given_and_empty_is_refused() {
        let empty = || Some(String::new());
        assert_eq!(refused(|r| r.lock = empty()), "lock");
        assert_eq!(refused(|r| r.image = empty()), "image");
        assert_eq!(refused(|r| r.queue = empty()), "queue");
        assert_eq!(refused(|r| r.git_repo = empty()), "git_repo");
        assert_eq!(refused(|r| r.secrets = vec![String::new()]), "secrets");
        assert_eq!(refused(|r| drop(r.labels.insert(String::new(), "x".into()))), "labels.");
        for field in ["git_ref", "git_path", "git_token"] {
            let told = refused(|r| {
                r.git_repo = Some("https://example.com/a.git".into());
                match field {
                    "git_ref" => r.git_ref = empty(),
                    "git_path" => r.git_path = empty(),
                    _ => r.git_token = empty(),
                }
            });
            assert_eq!(told, field);
        }
    }

    #[test]
    fn a_request_without_a_terminal_says_nothing_of_one() {
        let mut request = RunRequest { command: "true".into(), ..RunRequest::default() };
        let says = |request: &RunRequest| serde_json::to_value(request).expect("plain data").get("terminal").cloned();
        assert_eq!(says(&request), None);
        request.terminal = true;
        assert_eq!(says(&request), Some(true.into()));
    }

    #[test]
    fn env_and_args_together_are_no_more_than_a_program_can_be_started_with() {
        let filled = |many: usize, bytes: usize| (0..many).map(|n| (format!("V{n}"), "x".repeat(bytes))).collect::<BTreeMap<_, _>>();
        assert_eq!(refused(|r| r.env = filled(11, 100_000)), "env");
        assert_eq!(refused(|r| r.env = filled(100_000, 0)), "env", "names and pointers count too");
        assert_eq!(refused(|r| r.args = Some(vec!["x".repeat(100_000); 11])), "args");
        assert_eq!(refused(|r| (r.args, r.env) = (Some(vec!["x".repeat(100_000); 5]), filled(6, 100_000))), "env");
        let request = RunRequest { command: "true".into(), env: filled(10, 100_000), ..RunRequest::default() };
        assert!(request.check("local", git::Reach::Public).is_ok());
    }

    #[test]
    fn what_our_runners_cannot_do_asks_for_a_worker_that_speaks_job_v1() {
        let labels = |directory: &str| {
            let rpc = RpcParams { working_directory: Some(directory.to_owned()), ..RpcParams::default() };
            let request = RunRequest { command: "true".into(), rpc: Some(Box::new(rpc)), ..RunRequest::default() };
            let spec = request.check("local", git::Reach::Public).expect("a spec");
            assert_eq!(spec.rpc, request.rpc);
            spec.worker_labels
        };
        assert_eq!(labels("/srv"), Labels::from([(PROTOCOL_LABEL.to_owned(), JOB_V1.to_owned())]));
        assert_eq!(labels("."), Labels::new());
    }

    #[test]
    fn what_a_request_does_not_say_is_no_part_of_what_a_repeat_is_known_by() {
        let plain = RunRequest { command: "true".into(), ..RunRequest::default() };
        let text = serde_json::to_string(&plain).expect("JSON");
        assert!(!text.contains("rpc") && !text.contains("terminal"), "{text}");
    }
}
