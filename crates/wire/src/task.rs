//! Tasks of a job, as they are asked for and as they are shown. Unlike a run, a task with a field that is not known is refused: a slip in
//! `dependsOn` would run it too early.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::null_is_empty;
use crate::run::RunRequest;
use crate::status::{InvalidStatus, Reason, Status};
use crate::time::Rfc3339;

/// A struct with fields of its own and those of a run, each of which may be absent.
macro_rules! with_terms {
    ($(#[$about:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $name {
            $($own)*
            /// The shell command to run; with `args`, the program to run.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub command: Option<String>,
            /// The program's arguments. With them, even with an empty list, no shell is used.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub args: Option<Vec<String>>,
            /// The image; default: the default image.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub image: Option<String>,
            /// Environment variables; added to those of the defaults.
            #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
            pub env: BTreeMap<String, String>,
            /// The timeout of an attempt in seconds.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub timeout: Option<u64>,
            /// The names of the secrets to add to the environment.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub secrets: Option<Vec<String>>,
            /// A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub git_repo: Option<String>,
            /// The branch, tag or commit; default: the repository's default branch.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub git_ref: Option<String>,
            /// The directory in the repository in which the command starts.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub git_path: Option<String>,
            /// The name of the secret that holds the access token of the repository.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub git_token: Option<String>,
            /// A lock to hold while the command runs. A task always waits for its lock.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub lock: Option<String>,
            /// How many seconds to wait for the lock; default: without limit.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub lock_wait: Option<u64>,
            /// The queue; default: `default`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub queue: Option<String>,
            /// The priority, from 1 (first) to 5 (last).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub priority: Option<u8>,
            /// Labels to find it by; added to those of the defaults.
            #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
            pub labels: BTreeMap<String, String>,
            /// The labels that a worker must have to run it; added to those of the defaults.
            #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
            pub worker_labels: BTreeMap<String, String>,
            /// Run it on a pseudo-terminal without input; its output is one stream.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub terminal: Option<bool>,
            /// How many times to retry after a failure that a retry may fix; default: 2.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub retries: Option<u32>,
        }
    };
}

with_terms! {
    /// A task to submit.
    pub struct TaskRequest {
        /// The task's id, unique within its job.
        #[serde(rename = "taskId")]
        pub task_id: String,
        /// The task's display name; default: its id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// The ids of the tasks that must complete first.
        #[serde(rename = "dependsOn", default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
        pub depends_on: Vec<String>,
        /// Any JSON value, which the command finds as `input` in the file `$RUNVOY_INPUT`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
        pub input: Option<Value>,
    }
}

with_terms! {
    /// A change of a task, made when its job is resumed.
    pub struct TaskChange {
        /// The id of the task: a failed one, or one that waits for a failed one.
        #[serde(rename = "taskId")]
        pub task_id: String,
        /// Whether these fields are all that the task runs with. Otherwise absent fields stay as
        /// they are, variables and labels are added to those of the task, and another `command`
        /// removes the old `args`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub replace: bool,
    }
}

with_terms! {
    /// Settings for every task that does not have its own.
    pub struct TaskDefaults {}
}

impl TaskRequest {
    /// What the task runs, where `defaults` fill in what it does not say. Maps are joined; whatever else the task says stands alone.
    /// `None`: nobody says which command.
    pub fn run_request(&self, defaults: Option<&TaskDefaults>) -> Option<RunRequest> {
        let nothing = TaskDefaults::default();
        let otherwise = defaults.unwrap_or(&nothing);
        let joined = |own: &BTreeMap<String, String>, given: &BTreeMap<String, String>| {
            given.iter().chain(own).map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let text = |own: &Option<String>, given: &Option<String>| own.as_ref().or(given.as_ref()).cloned();
        // Arguments belong to their program: those of the defaults are not given to another one.
        let args = if self.command.is_some() { self.args.clone() } else { self.args.as_ref().or(otherwise.args.as_ref()).cloned() };
        Some(RunRequest {
            command: text(&self.command, &otherwise.command)?,
            args,
            image: text(&self.image, &otherwise.image),
            env: joined(&self.env, &otherwise.env),
            timeout: self.timeout.or(otherwise.timeout),
            secrets: self.secrets.as_ref().or(otherwise.secrets.as_ref()).cloned().unwrap_or_default(),
            git_repo: text(&self.git_repo, &otherwise.git_repo),
            git_ref: text(&self.git_ref, &otherwise.git_ref),
            git_path: text(&self.git_path, &otherwise.git_path),
            git_token: text(&self.git_token, &otherwise.git_token),
            lock: text(&self.lock, &otherwise.lock),
            lock_wait: self.lock_wait.or(otherwise.lock_wait),
            queue: text(&self.queue, &otherwise.queue),
            priority: self.priority.or(otherwise.priority),
            labels: joined(&self.labels, &otherwise.labels),
            worker_labels: joined(&self.worker_labels, &otherwise.worker_labels),
            terminal: self.terminal.or(otherwise.terminal).unwrap_or_default(),
            retries: self.retries.or(otherwise.retries),
        })
    }
}

/// Where a task is: waiting within its job, or where its execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// It waits for other tasks, or for its turn within the job.
    Waiting,
    /// It is an execution.
    Execution(Status),
}

impl TaskStatus {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Execution(status) => status.as_str(),
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<Status> for TaskStatus {
    fn from(status: Status) -> Self {
        Self::Execution(status)
    }
}

impl FromStr for TaskStatus {
    type Err = InvalidStatus;

    fn from_str(word: &str) -> Result<Self, InvalidStatus> {
        if word.eq_ignore_ascii_case("WAITING") { Ok(Self::Waiting) } else { word.parse().map(Self::Execution) }
    }
}

impl Serialize for TaskStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TaskStatus {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        word.parse().map_err(|_| serde::de::Error::custom(format!("`{word}` is no status of a task")))
    }
}

/// A task of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Task {
    /// The task's id, unique within its job.
    #[serde(rename = "taskId")]
    pub task_id: String,
    /// The task's display name.
    #[serde(default)]
    pub name: String,
    /// The task's status: `WAITING`, or that of its execution.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: TaskStatus,
    /// The id of its newest execution.
    #[serde(rename = "executionId", default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// The ids of the tasks that must complete first.
    #[serde(rename = "dependsOn", default, deserialize_with = "null_is_empty")]
    pub depends_on: Vec<String>,
    /// Its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub input: Option<Value>,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub output: Option<Value>,
    /// The size of its output in bytes, if it is too large to be included.
    #[serde(rename = "outputBytes", default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// How many attempts of its newest execution were started.
    #[serde(default)]
    pub attempt: u32,
    /// Why its newest execution finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<Reason>,
    /// Why it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Reason>,
    /// When its newest execution started.
    #[serde(rename = "startedAt", default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Rfc3339>,
    /// When its newest execution finished.
    #[serde(rename = "completedAt", default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Rfc3339>,
    /// What it runs since a resume changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<TaskRevision>,
}

/// What a task runs since a resume changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskRevision {
    /// The generation of the job that began with that resume; the first one is 1.
    pub generation: u32,
    /// The command with its arguments that it runs now.
    pub command: String,
    /// The command with its arguments that it was submitted with.
    pub original_command: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_takes_every_field_of_a_run_and_refuses_others() {
        let text = r#"{"taskId":"b","dependsOn":["a"],"input":{"n":1},"command":"ls","args":["-l"],"env":{"A":"1"},"timeout":5,"secrets":["s"],
            "git_repo":"https://x/y.git","git_ref":"m","git_path":"p","git_token":"t","lock":"l","lock_wait":9,"queue":"q","priority":1,"labels":{"k":"v"},"worker_labels":{"gpu":"a100"},
            "terminal":true,"retries":0,"image":"i"}"#;
        let task: TaskRequest = serde_json::from_str(text).expect("known fields");
        let run = task.run_request(None).expect("a command");
        let whole = serde_json::to_value(&run).expect("plain data");
        assert_eq!(whole.as_object().map(serde_json::Map::len), Some(18), "every field of a run is carried over: {whole}");
        let slip = serde_json::from_str::<TaskRequest>(r#"{"taskId":"b","dependOn":["a"]}"#).expect_err("a slip").to_string();
        assert!(slip.contains("unknown field `dependOn`"), "{slip}");
    }

    #[test]
    fn defaults_fill_in_what_a_task_does_not_say() {
        let defaults: TaskDefaults = serde_json::from_str(
            r#"{"command":"make","args":["all"],"env":{"A":"1","B":"1"},"retries":5,"secrets":["x"],"terminal":true}"#,
        )
        .expect("defaults");
        let task = |text: &str| serde_json::from_str::<TaskRequest>(text).expect("a task").run_request(Some(&defaults)).expect("a command");
        let plain = task(r#"{"taskId":"a"}"#);
        assert_eq!((plain.command.as_str(), plain.args.as_ref().map(Vec::len), plain.retries), ("make", Some(1), Some(5)));
        let own = task(r#"{"taskId":"a","command":"ls","env":{"B":"2"},"retries":0,"secrets":[],"terminal":false}"#);
        assert_eq!((plain.terminal, own.terminal), (true, false));
        assert_eq!((own.command.as_str(), own.args, own.retries, own.secrets.len()), ("ls", None, Some(0), 0));
        assert_eq!((own.env["A"].as_str(), own.env["B"].as_str()), ("1", "2"));
        assert_eq!(TaskRequest::default().run_request(None), None);
    }

    #[test]
    fn a_task_waits_or_is_where_its_execution_is() {
        let task: Task = serde_json::from_str(r#"{"taskId":"a","status":"WAITING","dependsOn":null}"#).expect("a task");
        assert_eq!((task.status, task.depends_on.len()), (TaskStatus::Waiting, 0));
        let text = serde_json::to_string(&TaskStatus::from(Status::Running)).expect("plain data");
        assert_eq!(text, r#""RUNNING""#);
        assert!(serde_json::from_str::<TaskStatus>(r#""LOST""#).is_err());
    }
}
