//! A job as it came in: tasks, each with what it runs, checked by themselves and as a graph.

use runvoy_model::bound::{MOST_DEPTH, TOO_DEEP, depth};
use runvoy_model::dag;
use runvoy_model::id::JobId;
use runvoy_model::job::{DEFAULT_TASK_RETRIES, MOST_TASKS, Node, Payload, Phase, task_field};
use runvoy_model::name::Name;
use runvoy_model::spec::Spec;
use serde::Serialize;
use serde_json::Value;

use crate::error::EngineError;
use crate::request::RunRequest;

const MOST_NAME_BYTES: usize = 256;

/// A job, or more tasks of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JobRequest {
    /// What people call it.
    pub name: Option<String>,
    /// The client's own key for it.
    pub request_key: Option<String>,
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
    /// What it runs.
    pub run: RunRequest,
}

impl JobRequest {
    /// Whether it makes sense, with the tasks that are known already.
    pub(super) fn check(&self, known: impl Fn(&str) -> bool) -> Result<(), EngineError> {
        if self.tasks.is_empty() || self.tasks.len() > MOST_TASKS {
            return Err(EngineError::invalid("tasks", format!("a job needs 1 to {MOST_TASKS} tasks, not {}", self.tasks.len())));
        }
        if self.concurrency == Some(0) {
            return Err(EngineError::invalid("concurrency", "must be at least 1"));
        }
        check_title("name", self.name.as_deref())?;
        self.tasks.iter().enumerate().try_for_each(|(index, task)| task.check(index))?;
        let shape: Vec<(&str, Vec<&str>)> =
            self.tasks.iter().map(|task| (task.task_id.as_str(), task.depends_on.iter().map(String::as_str).collect())).collect();
        dag::check(&shape, known).map_err(|error| EngineError::invalid("tasks", error.to_string()))
    }
}

/// A part of a task, as errors name it.
pub(super) fn field(task: &str, part: &str) -> String {
    format!("tasks.{}.{part}", task.escape_default())
}

/// What people call something.
fn check_title(field: &str, title: Option<&str>) -> Result<(), EngineError> {
    match title {
        Some(title) if title.is_empty() || title.len() > MOST_NAME_BYTES || title.chars().any(char::is_control) => {
            Err(EngineError::invalid(field, format!("must have 1 to {MOST_NAME_BYTES} bytes and no control characters")))
        }
        _ => Ok(()),
    }
}

impl TaskRequest {
    fn check(&self, index: usize) -> Result<(), EngineError> {
        let field = |part| task_field(index, part);
        Name::new(&*self.task_id).map_err(|error| EngineError::invalid(field("taskId"), error.to_string()))?;
        check_title(&field("name"), self.name.as_deref())?;
        if self.input.as_ref().is_some_and(|input| depth(input) > MOST_DEPTH) {
            return Err(EngineError::invalid(field("input"), TOO_DEEP));
        }
        let mut parents: Vec<&String> = self.depends_on.iter().collect();
        parents.sort_unstable();
        match parents.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(EngineError::invalid(field("dependsOn"), format!("lists {} twice", pair[0].escape_default()))),
            None => Ok(()),
        }
    }

    /// What it runs. A task is tried again unless the request says otherwise.
    pub(super) fn run(&self) -> RunRequest {
        let retries = self.run.retries.or(Some(i64::from(DEFAULT_TASK_RETRIES)));
        RunRequest { retries, ..self.run.clone() }
    }

    /// The task as it is written.
    pub(super) fn node(&self, (job, batch): (JobId, u64), spec: Spec, input: Option<Payload>) -> Node {
        let name = |text: &String| Name::new(&**text).expect("every name was checked");
        Node {
            job,
            task: name(&self.task_id),
            place: 0,
            batch,
            name: self.name.clone().unwrap_or_else(|| self.task_id.clone()),
            depends_on: self.depends_on.iter().map(name).collect(),
            input,
            spec,
            revision: None,
            phase: Phase::Staged,
            looked: 0,
            open_parents: 0,
            marked: false,
            generation: 0,
            execution: None,
            output: None,
        }
    }
}
