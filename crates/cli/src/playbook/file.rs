//! One playbook file: its keys, and what becomes of them. `commands` are run by one shell in order, and the first that fails ends them:
//! they become a script that begins with `set -eu`, one command a line.

use std::collections::BTreeMap;

use runvoy_wire::{Parameter, ParameterAllowance, ParameterType, PlaybookTerms, RunRequest};
use serde::Deserialize;
use serde_json::Value;

use crate::document::{Document, given};
use crate::duration::Seconds;
use crate::failure::Failure;

/// The first line of the script that `commands` become.
const SCRIPT_BEGIN: &str = "set -eu";

/// What a playbook file says. A key that is not known is refused.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PlaybookFile {
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "given")]
    image: Option<String>,
    #[serde(deserialize_with = "given")]
    git_repo: Option<String>,
    #[serde(deserialize_with = "given")]
    git_ref: Option<String>,
    #[serde(deserialize_with = "given")]
    git_path: Option<String>,
    #[serde(deserialize_with = "given")]
    git_token: Option<String>,
    secrets: Vec<String>,
    env: BTreeMap<String, String>,
    commands: Vec<String>,
    #[serde(deserialize_with = "given")]
    command: Option<String>,
    #[serde(deserialize_with = "given")]
    args: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    timeout: Option<Seconds>,
    #[serde(deserialize_with = "given")]
    lock: Option<String>,
    #[serde(deserialize_with = "given")]
    lock_wait: Option<Seconds>,
    #[serde(deserialize_with = "given")]
    queue: Option<String>,
    priority: Option<u8>,
    retries: Option<u32>,
    labels: BTreeMap<String, String>,
    worker_labels: BTreeMap<String, String>,
    terminal: bool,
    parameters: BTreeMap<String, ParameterFile>,
}

/// The same as [`Parameter`], and strict.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ParameterFile {
    #[serde(rename = "type", default)]
    kind: ParameterType,
    description: Option<String>,
    default: Option<Value>,
    #[serde(default)]
    choices: Vec<String>,
    pattern: Option<String>,
    max_length: Option<u32>,
    min: Option<i64>,
    max: Option<i64>,
    regex: Option<String>,
    #[serde(default)]
    allow: Vec<ParameterAllowance>,
}

impl PlaybookFile {
    /// Reads and checks a file.
    pub(crate) fn parse(document: &Document) -> Result<Self, Failure> {
        let file: Self = document.parse()?;
        let odd = match (&file.command, file.commands.is_empty(), &file.args) {
            (None, true, _) => "`commands` is missing: a list of what to run",
            (Some(_), false, _) => "`command` and `commands` exclude each other",
            (None, false, Some(_)) => "`args` belong to `command`, not to `commands`",
            _ => return Ok(file),
        };
        Err(Failure::usage(format!("{}: {odd}", document.name)))
    }

    /// The shell command, or the program of `args`.
    fn command(&self) -> String {
        match &self.command {
            Some(command) => command.clone(),
            None => std::iter::once(SCRIPT_BEGIN).chain(self.commands.iter().map(String::as_str)).collect::<Vec<_>>().join("\n"),
        }
    }

    /// The request to run it as an ordinary command. Parameters are refused: only the server can check them.
    pub(crate) fn request(self, name: &str) -> Result<RunRequest, Failure> {
        if !self.parameters.is_empty() {
            return Err(Failure::usage(format!("playbook {name} has parameters, which only the server checks"))
                .next("push it, then run it there: runvoy playbook push FILE"));
        }
        Ok(RunRequest {
            command: self.command(),
            args: self.args,
            image: self.image,
            env: self.env,
            timeout: self.timeout.map(|timeout| timeout.0),
            secrets: self.secrets,
            git_repo: self.git_repo,
            git_ref: self.git_ref,
            git_path: self.git_path,
            git_token: self.git_token,
            lock: self.lock,
            lock_wait: self.lock_wait.map(|wait| wait.0),
            queue: self.queue,
            priority: self.priority,
            labels: self.labels,
            worker_labels: self.worker_labels,
            terminal: self.terminal,
            retries: self.retries,
        })
    }

    /// The same as the server keeps it.
    pub(crate) fn terms(self) -> PlaybookTerms {
        let parameter = |(name, file): (String, ParameterFile)| {
            let ParameterFile { kind, description, default, choices, pattern, max_length, min, max, regex, allow } = file;
            (name, Parameter { kind, description, default, choices, pattern, max_length, min, max, regex, allow })
        };
        PlaybookTerms {
            command: self.command(),
            description: self.description,
            args: self.args,
            image: self.image,
            git_repo: self.git_repo,
            git_ref: self.git_ref,
            git_path: self.git_path,
            git_token: self.git_token,
            secrets: self.secrets,
            env: self.env,
            timeout: self.timeout.map(|timeout| timeout.0),
            lock: self.lock,
            lock_wait: self.lock_wait.map(|wait| wait.0),
            queue: self.queue,
            priority: self.priority,
            retries: self.retries,
            labels: self.labels,
            worker_labels: self.worker_labels,
            terminal: self.terminal,
            parameters: self.parameters.into_iter().map(parameter).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PlaybookFile, String> {
        PlaybookFile::parse(&Document { name: "deploy.yaml".into(), text: text.into() }).map_err(|failure| failure.text(false))
    }

    #[test]
    fn the_keys_of_the_public_client_become_a_run() {
        let text = "description: Plan and apply\nimage: terraform:1\ngit_repo: https://example.com/infra.git\ngit_ref: main\ngit_path: prod\n\
            secrets: [aws]\nenv:\n  REGION: eu\n  PORT: 8080\n  VERBOSE: true\ncommands:\n  - terraform init\n  - terraform apply\ntimeout: 10m\nlock: prod\n";
        let request = read(text).expect("a playbook").request("deploy").expect("no parameters");
        assert_eq!(request.command, "set -eu\nterraform init\nterraform apply");
        let env: Vec<(&str, &str)> = request.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(env, [("PORT", "8080"), ("REGION", "eu"), ("VERBOSE", "true")]);
        assert_eq!(
            (request.timeout, request.lock.as_deref(), request.secrets.as_slice()),
            (Some(600), Some("prod"), &["aws".to_owned()][..])
        );
        assert_eq!((request.git_ref.as_deref(), request.git_path.as_deref()), (Some("main"), Some("prod")));
        let terminal = read("commands: [ls]\nterminal: true\n").expect("a playbook");
        assert!(terminal.clone().terms().terminal && terminal.request("x").expect("a run").terminal && !request.terminal);
        assert_eq!(read("commands: [ls]\ntimeout: 300\n").expect("seconds").request("x").expect("a run").timeout, Some(300));
    }

    #[test]
    fn unknown_keys_and_wrong_values_are_refused_with_file_line_and_column() {
        for (text, says) in [
            ("commands:\n  - ls\nimag: alpine\n", "deploy.yaml:3:1: unknown field imag; did you mean image?"),
            ("commands: [ls]\ntimeout: soon\n", "deploy.yaml:2:10: "),
            ("commands: [ls]\nparameters:\n  region:\n    tpye: string\n", "deploy.yaml:4:5: unknown field tpye; did you mean type?"),
            ("commands: [ls]\npriority: 1000\n", "deploy.yaml:2:11: "),
            ("description: nothing\n", "deploy.yaml: `commands` is missing"),
            ("commands: [ls]\ngit_repo: # unset\n", "it is empty: is a variable unset?"),
            ("commands: [ls]\nlock: null\n", "deploy.yaml:2:7: it is empty"),
            ("command: ls\ncommands: [ls]\n", "exclude each other"),
            ("commands: [ls]\nargs: [a]\n", "`args` belong to `command`"),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains(says), "{text}: {told}");
        }
    }

    #[test]
    fn a_file_with_parameters_is_pushed_and_not_run_from_here() {
        let text = "command: make\nargs: [deploy, '{{region}}']\nparameters:\n  region: {type: choice, choices: [eu, us]}\n  count: {type: integer, default: 3, max: 9}\n";
        let file = read(text).expect("a playbook");
        assert!(file.clone().request("deploy").expect_err("parameters").text(false).contains("runvoy playbook push"));
        let terms = file.terms();
        assert_eq!((terms.command.as_str(), terms.args.as_ref().map(Vec::len)), ("make", Some(2)));
        assert_eq!((terms.parameters["region"].kind, &terms.parameters["count"].default), (ParameterType::Choice, &Some(3.into())));
    }
}
