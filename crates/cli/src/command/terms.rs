//! The options of a run beside its command: those of `run`, and those that override a playbook file.

use std::collections::BTreeMap;

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_wire::RunRequest;

use crate::complete;
use crate::duration::Seconds;
use crate::environment::Environment;
use crate::failure::Failure;

/// The heading of these options where they override what a playbook file says.
pub(crate) const HEADING: &str = "Options that override the file";
/// The options by the field of the request that each sets.
pub(crate) const OPTIONS: [(&str, &str); 15] = [
    ("lock", "--lock"),
    ("lock_wait", "--wait"),
    ("env", "--env"),
    ("secrets", "--secret"),
    ("timeout", "--timeout"),
    ("queue", "--queue"),
    ("retries", "--retries"),
    ("labels", "--label"),
    ("worker_labels", "--worker-label"),
    ("priority", "--priority"),
    ("image", "--image"),
    ("git_repo", "--git-repo"),
    ("git_ref", "--git-ref"),
    ("git_path", "--git-path"),
    ("git_token", "--git-token"),
];

/// How, where and with what to run. What is not given stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TermsArgs {
    /// Hold this lock; refuse to run if it is taken
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::locks))]
    lock: Option<String>,
    /// Wait this long for the lock, such as 10m
    #[arg(long, value_name = "DURATION")]
    pub(crate) wait: Option<Seconds>,
    /// Set a variable; NAME alone copies yours
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Pass a secret as its variable; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::secrets))]
    secret: Vec<String>,
    /// Stop it after this time, such as 90s or 1h
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Seconds>,
    /// Queue to submit to [default: default]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Retries after a transient failure
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Attach a label
    #[arg(short, long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Run only on workers with this label
    #[arg(long, value_name = "NAME=VALUE")]
    worker_label: Vec<String>,
    /// Give it a terminal: colors, progress bars
    #[arg(long)]
    tty: bool,
    /// Priority, 1 (first) to 5 (last)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    priority: Option<u8>,
    /// Registered image to run in
    #[arg(long, value_name = "IMAGE", add = ArgValueCompleter::new(complete::images))]
    image: Option<String>,
    /// Clone this repository first (https or ssh)
    #[arg(long, value_name = "URL")]
    git_repo: Option<String>,
    /// Branch, tag or commit to check out
    #[arg(long, value_name = "REF")]
    git_ref: Option<String>,
    /// Directory of the repository to run in
    #[arg(long, value_name = "PATH")]
    git_path: Option<String>,
    /// Secret with the token for cloning
    #[arg(long, value_name = "SECRET", add = ArgValueCompleter::new(complete::secrets))]
    git_token: Option<String>,
}

impl TermsArgs {
    /// Puts what was given into the request; lists and maps are added to.
    pub(crate) fn apply(&self, request: &mut RunRequest, environment: &Environment) -> Result<(), Failure> {
        let set = |given: &Option<String>, place: &mut Option<String>| {
            if given.is_some() {
                place.clone_from(given);
            }
        };
        set(&self.lock, &mut request.lock);
        set(&self.queue, &mut request.queue);
        set(&self.image, &mut request.image);
        set(&self.git_repo, &mut request.git_repo);
        set(&self.git_ref, &mut request.git_ref);
        set(&self.git_path, &mut request.git_path);
        set(&self.git_token, &mut request.git_token);
        request.lock_wait = self.wait.map(|wait| wait.0).or(request.lock_wait);
        request.timeout = self.timeout.map(|timeout| timeout.0).or(request.timeout);
        request.retries = self.retries.or(request.retries);
        request.priority = self.priority.or(request.priority);
        request.env.extend(variables(&self.env, environment)?);
        request.labels.extend(pairs("--label", &self.label)?);
        request.worker_labels.extend(pairs("--worker-label", &self.worker_label)?);
        request.terminal |= self.tty;
        for secret in &self.secret {
            if !request.secrets.contains(secret) {
                request.secrets.push(secret.clone());
            }
        }
        let needs = |flag: &str, other: &str| Err(Failure::usage(format!("{flag} needs {other}")));
        match request {
            RunRequest { lock: None, lock_wait: Some(_), .. } => needs("--wait", "--lock NAME"),
            RunRequest { git_repo: None, git_ref: Some(_), .. } => needs("--git-ref", "--git-repo URL"),
            RunRequest { git_repo: None, git_path: Some(_), .. } => needs("--git-path", "--git-repo URL"),
            RunRequest { git_repo: None, git_token: Some(_), .. } => needs("--git-token", "--git-repo URL"),
            _ => Ok(()),
        }
    }

    /// Nothing is given but how long to wait for the lock.
    pub(crate) fn only_wait(&self) -> bool {
        *self == Self { wait: self.wait, ..Self::default() }
    }
}

fn variables(given: &[String], environment: &Environment) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = BTreeMap::new();
    for text in given {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, value),
            None => {
                let unset = || {
                    Failure::usage(format!("--env {text}: the variable is not set here"))
                        .next(format!("set it, or write --env {text}=VALUE"))
                };
                (text.as_str(), environment.get_exact(text).ok_or_else(unset)?)
            }
        };
        if name.is_empty() {
            return Err(Failure::usage(format!("--env {text}: the name is missing")));
        }
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(variables)
}

/// Texts of the form NAME=VALUE, by name.
pub(crate) fn pairs(flag: &str, given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!("{flag} {text}: expected NAME=VALUE"))),
    };
    given.iter().map(pair).collect()
}
