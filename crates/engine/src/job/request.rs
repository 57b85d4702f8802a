//! A job as it came in: tasks, each with what it runs, and what holds for all of them.

use runvoy_model::id::JobId;
use runvoy_model::job::{DEFAULT_TASK_RETRIES, MOST_PARENTS, MOST_TASKS, Node, Payload, Phase};
use runvoy_model::name::Name;
use runvoy_model::spec::Spec;
use serde::Serialize;
use serde_json::Value;

use crate::error::EngineError;
use crate::request::RunRequest;

/// A job, or more tasks of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JobRequest {
    /// What people call it.
    pub name: Option<String>,
    /// The client's own key for it.
    pub request_key: Option<String>,
    /// What holds for every task that does not say otherwise.
    pub defaults: RunRequest,
    /// So many tasks at once.
    pub concurrency: Option<u32>,
    /// The tasks.
    pub tasks: Vec<TaskRequest>,
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TaskRequest {
    /// Its name within the job.
    pub task_id: String,
    /// What people call it.
    pub name: Option<String>,
    /// The tasks it waits for.
    pub depends_on: Vec<String>,
    /// What it is given.
    pub input: Option<Value>,
    /// What it runs; an empty command is the default's.
    pub run: RunRequest,
}

impl JobRequest {
    /// Whether the parts make sense by themselves.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        if self.tasks.is_empty() || self.tasks.len() > MOST_TASKS {
            return Err(EngineError::invalid("tasks", format!("1 to {MOST_TASKS} tasks are needed")));
        }
        if self.concurrency == Some(0) {
            return Err(EngineError::invalid("concurrency", "must be at least 1"));
        }
        if self.name.as_ref().is_some_and(|name| name.is_empty() || name.len() > 256 || name.chars().any(char::is_control)) {
            return Err(EngineError::invalid("name", "1 to 256 printable characters"));
        }
        for task in &self.tasks {
            let field = |part: &str| format!("tasks.{}.{part}", task.task_id.escape_default());
            Name::new(&*task.task_id).map_err(|error| EngineError::invalid(field("taskId"), error.to_string()))?;
            if task.depends_on.len() > MOST_PARENTS {
                return Err(EngineError::invalid(field("dependsOn"), format!("at most {MOST_PARENTS}")));
            }
            let mut parents = task.depends_on.clone();
            parents.sort_unstable();
            if parents.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(EngineError::invalid(field("dependsOn"), "names a task twice"));
            }
        }
        Ok(())
    }
}

impl TaskRequest {
    /// What it runs, with what holds for all.
    pub(super) fn run(&self, defaults: &RunRequest) -> RunRequest {
        let own = &self.run;
        let mut env = defaults.env.clone();
        env.extend(own.env.clone());
        let mut labels = defaults.labels.clone();
        labels.extend(own.labels.clone());
        let own_command = !own.command.is_empty();
        RunRequest {
            command: if own_command { own.command.clone() } else { defaults.command.clone() },
            args: if own_command { own.args.clone() } else { own.args.clone().or_else(|| defaults.args.clone()) },
            image: own.image.clone().or_else(|| defaults.image.clone()),
            env,
            timeout: own.timeout.or(defaults.timeout),
            lock: own.lock.clone().or_else(|| defaults.lock.clone()),
            // A task waits for its lock as long as it takes.
            lock_wait: None,
            queue: own.queue.clone().or_else(|| defaults.queue.clone()),
            priority: own.priority.or(defaults.priority),
            labels,
            retries: own.retries.or(defaults.retries).or(Some(i64::from(DEFAULT_TASK_RETRIES))),
            secrets: if own.secrets.is_empty() { defaults.secrets.clone() } else { own.secrets.clone() },
            git_repo: own.git_repo.clone().or_else(|| defaults.git_repo.clone()),
            git_ref: own.git_ref.clone().or_else(|| defaults.git_ref.clone()),
            git_path: own.git_path.clone().or_else(|| defaults.git_path.clone()),
            git_token: own.git_token.clone().or_else(|| defaults.git_token.clone()),
            idempotency_key: None,
        }
    }

    /// The task as it is written.
    pub(super) fn node(&self, (job, batch, place): (JobId, u64, u32), spec: Spec, input: Option<Payload>) -> Node {
        let name = |text: &String| Name::new(&**text).expect("the shape check has seen every name");
        Node {
            job,
            task: name(&self.task_id),
            place,
            batch,
            name: self.name.clone().unwrap_or_else(|| self.task_id.clone()),
            depends_on: self.depends_on.iter().map(name).collect(),
            input,
            spec,
            phase: Phase::Staged,
            open_parents: 0,
            marked: false,
            generation: 0,
            execution: None,
            output: None,
        }
    }
}
