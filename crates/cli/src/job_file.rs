//! Jobs as people write them: YAML or JSON with tasks, defaults for all of them, and a limit of how many run at once. A key that is not
//! known is refused, for a slip in `dependsOn` would run a task too early. What is wrong is told with its line and column, a circle
//! with its path.

use std::collections::{BTreeMap, HashMap};

use runvoy_wire::{AddTasksRequest, CreateJobRequest, DagError, TaskDefaults, TaskRequest, check_shape};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use crate::document::{Document, given};
use crate::duration::Seconds;
use crate::failure::Failure;

/// What a job file says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JobFile {
    name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    request_id: Option<String>,
    defaults: Option<Spanned<TaskFile>>,
    concurrency: Option<Spanned<u32>>,
    tasks: Vec<Spanned<TaskFile>>,
}

/// What it says of a task. Defaults are read as one too, and may not say what is one task's alone.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TaskFile {
    #[serde(rename = "taskId")]
    task_id: Option<Spanned<String>>,
    name: Option<Spanned<String>>,
    #[serde(rename = "dependsOn")]
    depends_on: Vec<Spanned<String>>,
    input: Option<Spanned<Value>>,
    #[serde(deserialize_with = "given")]
    command: Option<String>,
    #[serde(deserialize_with = "given")]
    args: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    image: Option<String>,
    env: BTreeMap<String, String>,
    #[serde(deserialize_with = "given")]
    timeout: Option<Seconds>,
    #[serde(deserialize_with = "given")]
    secrets: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    git_repo: Option<String>,
    #[serde(deserialize_with = "given")]
    git_ref: Option<String>,
    #[serde(deserialize_with = "given")]
    git_path: Option<String>,
    #[serde(deserialize_with = "given")]
    git_token: Option<String>,
    #[serde(deserialize_with = "given")]
    lock: Option<String>,
    #[serde(deserialize_with = "given")]
    lock_wait: Option<Seconds>,
    #[serde(deserialize_with = "given")]
    queue: Option<String>,
    priority: Option<u8>,
    labels: BTreeMap<String, String>,
    worker_labels: BTreeMap<String, String>,
    terminal: Option<bool>,
    retries: Option<u32>,
}

/// Reads a whole job.
pub(crate) fn job(document: &Document) -> Result<CreateJobRequest, Failure> {
    let file: JobFile = document.parse_large()?;
    if let Some(none) = file.concurrency.as_ref().filter(|most| most.value == 0) {
        return Err(wrong(document, none.referenced, "concurrency must be at least 1"));
    }
    let (defaults, tasks) = parts(document, file.defaults, file.tasks, false)?;
    let (name, request_id, concurrency) = (file.name, file.request_id, file.concurrency.map(|most| most.value));
    Ok(CreateJobRequest { name, request_id, defaults, concurrency, tasks })
}

/// Reads tasks for a job that is there: a list of them, or a job file with nothing but tasks and defaults. What they depend on may be
/// known to the server alone.
pub(crate) fn tasks(document: &Document) -> Result<AddTasksRequest, Failure> {
    let file = match document.parse_large::<Value>()? {
        Value::Array(_) => JobFile { name: None, request_id: None, defaults: None, concurrency: None, tasks: document.parse_large()? },
        _ => document.parse_large()?,
    };
    let foreign = [("name", file.name.is_some()), ("requestId", file.request_id.is_some()), ("concurrency", file.concurrency.is_some())];
    if let Some((key, _)) = foreign.into_iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{}: `{key}` belongs to the job, which exists already: give only tasks and defaults",
            document.name
        )));
    }
    let (defaults, tasks) = parts(document, file.defaults, file.tasks, true)?;
    Ok(AddTasksRequest { defaults, tasks })
}

type Parts = (Option<TaskDefaults>, Vec<TaskRequest>);

fn parts(
    document: &Document,
    defaults: Option<Spanned<TaskFile>>,
    tasks: Vec<Spanned<TaskFile>>,
    more_elsewhere: bool,
) -> Result<Parts, Failure> {
    let defaults = defaults.map(|file| file.value.defaults(document)).transpose()?;
    if tasks.is_empty() {
        return Err(Failure::usage(format!("{}: there are no tasks", document.name)));
    }
    check(document, &tasks, more_elsewhere)?;
    let requests: Vec<TaskRequest> = tasks.iter().map(|task| task.value.clone().request()).collect();
    for (request, task) in requests.iter().zip(&tasks) {
        if request.run_request(defaults.as_ref()).is_none() {
            let what = format!("task {} has no `command`, and the defaults have none", request.task_id);
            return Err(wrong(document, task.referenced, &what));
        }
    }
    Ok((defaults, requests))
}

/// Checks names and dependencies, and says where each thing that is wrong stands.
fn check(document: &Document, tasks: &[Spanned<TaskFile>], more_elsewhere: bool) -> Result<(), Failure> {
    let mut places: HashMap<&str, Vec<Location>> = HashMap::with_capacity(tasks.len());
    let mut shape = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some(id) = &task.value.task_id else {
            return Err(wrong(document, task.referenced, "the task has no `taskId`"));
        };
        places.entry(&id.value).or_default().push(id.referenced);
        shape.push((id.value.as_str(), task.value.depends_on.iter().map(|parent| parent.value.as_str()).collect()));
    }
    let place = |task: &str, nth: usize| places.get(task).and_then(|places| places.get(nth)).copied().unwrap_or(Location::UNKNOWN);
    check_shape(&shape, |id| more_elsewhere && !places.contains_key(id)).map_err(|error| {
        let at = match &error {
            DagError::Twice(task) => place(task, 1),
            DagError::Unknown { task, parent } => {
                let named = tasks.iter().filter(|file| file.value.task_id.as_ref().is_some_and(|id| id.value == *task));
                let mut parents = named.flat_map(|file| &file.value.depends_on);
                parents.find(|named| named.value == *parent).map(|named| named.referenced).unwrap_or(Location::UNKNOWN)
            }
            DagError::Circle(path) => path.first().map(|task| place(task, 0)).unwrap_or(Location::UNKNOWN),
        };
        wrong(document, at, &error.to_string())
    })
}

fn wrong(document: &Document, at: Location, what: &str) -> Failure {
    Failure::usage(format!("{}:{}:{}: {what}", document.name, at.line(), at.column()))
}

impl TaskFile {
    fn request(self) -> TaskRequest {
        TaskRequest {
            task_id: self.task_id.map(|id| id.value).unwrap_or_default(),
            name: self.name.map(|name| name.value),
            depends_on: self.depends_on.into_iter().map(|parent| parent.value).collect(),
            input: self.input.map(|input| input.value),
            command: self.command,
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
        }
    }

    fn defaults(self, document: &Document) -> Result<TaskDefaults, Failure> {
        let own = [
            ("taskId", self.task_id.as_ref().map(|id| id.referenced)),
            ("name", self.name.as_ref().map(|name| name.referenced)),
            ("dependsOn", self.depends_on.first().map(|parent| parent.referenced)),
            ("input", self.input.as_ref().map(|input| input.referenced)),
        ];
        if let Some((key, at)) = own.into_iter().find_map(|(key, at)| Some((key, at?))) {
            return Err(wrong(document, at, &format!("`{key}` is for one task, not for defaults")));
        }
        let terms = self.request();
        Ok(TaskDefaults {
            command: terms.command,
            args: terms.args,
            image: terms.image,
            env: terms.env,
            timeout: terms.timeout,
            secrets: terms.secrets,
            git_repo: terms.git_repo,
            git_ref: terms.git_ref,
            git_path: terms.git_path,
            git_token: terms.git_token,
            lock: terms.lock,
            lock_wait: terms.lock_wait,
            queue: terms.queue,
            priority: terms.priority,
            labels: terms.labels,
            worker_labels: terms.worker_labels,
            terminal: terms.terminal,
            retries: terms.retries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document { name: "job.yaml".into(), text: text.into() }
    }

    fn read(text: &str) -> Result<CreateJobRequest, String> {
        job(&document(text)).map_err(|failure| failure.text(false))
    }

    const DIAMOND: &str = "\
name: nightly
concurrency: 4
defaults: {command: make, env: {REGION: eu}, timeout: 10m, retries: 1, terminal: true}
tasks:
  - {taskId: a, args: [fetch]}
  - {taskId: b, dependsOn: [a], input: {n: 1}, command: ./b.sh, terminal: false}
  - {taskId: c, dependsOn: [a], env: {PORT: 80}}
  - taskId: d
    name: join them
    dependsOn: [b, c]
";

    #[test]
    fn a_job_is_read_from_yaml_and_from_json() {
        let job = read(DIAMOND).expect("a job");
        assert_eq!((job.name.as_deref(), job.concurrency, job.tasks.len()), (Some("nightly"), Some(4), 4));
        let defaults = job.defaults.as_ref();
        let run = |n: usize| job.tasks[n].run_request(defaults).expect("a command");
        assert_eq!((run(0).command.as_str(), run(0).timeout, run(1).command.as_str()), ("make", Some(600), "./b.sh"));
        assert_eq!((run(0).terminal, run(1).terminal), (true, false));
        assert_eq!((run(2).env["REGION"].as_str(), run(2).env["PORT"].as_str()), ("eu", "80"));
        assert_eq!((job.tasks[3].name.as_deref(), job.tasks[1].input.as_ref()), (Some("join them"), Some(&serde_json::json!({"n": 1}))));
        let sent = serde_json::to_string(&job).expect("plain data");
        assert_eq!(read(&sent).expect("what is sent is a job file too"), job);
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_and_column() {
        for (text, says) in [
            (
                "tasks:\n  - {taskId: a, command: x}\n  - {taskId: b, command: x, dependOn: [a]}\n",
                "job.yaml:3:29: unknown field dependOn; did you mean dependsOn?",
            ),
            ("tasks:\n  - {taskId: a, command: x, timeout: soon}\n", "job.yaml:2:38: "),
            ("tasks:\n  - {taskId: a, command: x, priority: high}\n", "job.yaml:2:39: "),
            ("tasks:\n  - {taskId: a, command: x}\n  - {taskId: a, command: y}\n", "job.yaml:3:14: task a is defined twice"),
            (
                "tasks:\n  - {taskId: a, command: x, dependsOn: [b]}\n",
                "job.yaml:2:41: task a depends on b, which is not a task of this job",
            ),
            (
                "tasks:\n  - {taskId: r, command: x, dependsOn: [a]}\n  - {taskId: a, command: x, dependsOn: [b]}\n  - {taskId: b, command: x, dependsOn: [a]}\n",
                "job.yaml:3:14: tasks depend on each other in a cycle: a → b → a",
            ),
            ("tasks:\n  - {taskId: a}\n", "job.yaml:2:5: task a has no `command`"),
            ("tasks:\n  - {command: x}\n", "job.yaml:2:5: the task has no `taskId`"),
            ("defaults:\n  command: x\n  dependsOn: [a]\ntasks: [{taskId: a}]\n", "job.yaml:3:15: `dependsOn` is for one task"),
            ("concurrency: 0\ntasks: [{taskId: a, command: x}]\n", "job.yaml:1:14: concurrency must be at least 1"),
            ("tasks: []\n", "job.yaml: there are no tasks"),
            ("tasks:\n  - taskId: a\n    command: x\n    lock:\n", "it is empty: is a variable unset?"),
            ("defaults:\n  command: x\ntasks:\n  - taskId: a\n    command:\n", "it is empty: is a variable unset?"),
            ("requestId:\ntasks: [{taskId: a, command: x}]\n", "it is empty: is a variable unset?"),
            ("tasks:\n  - taskId: a\n    command: x\n    timeout:\n", "job.yaml:4:"),
            ("defaults:\n  image: ~\n  command: x\ntasks: [{taskId: a}]\n", "job.yaml:2:10: it is empty"),
            ("{\"tasks\": [\n  {\"taskId\": \"a\", \"comand\": \"x\"}]}\n", "job.yaml:2:19: unknown field comand; did you mean command?"),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains(says), "{text}\n{told}");
        }
    }

    #[test]
    fn tasks_for_a_job_that_is_there_may_depend_on_what_only_the_server_knows() {
        let tasks = |text: &str| tasks(&document(text)).map_err(|failure| failure.text(false));
        let list = tasks("- {taskId: e, dependsOn: [a, f], command: x}\n- {taskId: f, command: y}\n").expect("a list");
        assert_eq!((list.tasks.len(), list.defaults), (2, None));
        assert_eq!(tasks("defaults: {command: x}\ntasks: [{taskId: e}]\n").expect("a file").tasks.len(), 1);
        assert!(tasks("- {taskId: e, dependsOn: [e], command: x}\n").expect_err("a circle").contains("e → e"));
        assert!(tasks("concurrency: 3\ntasks: [{taskId: e, command: x}]\n").expect_err("the job's").contains("`concurrency`"));
    }

    #[test]
    fn twenty_thousand_tasks_are_no_trouble() {
        let tasks: String =
            (0..20_000).map(|n| format!("{{\"taskId\":\"t{n}\",\"command\":\"true\",\"dependsOn\":[\"t{}\"]}},", n - n.min(1))).collect();
        let text = format!("{{\"tasks\":[{}]}}", tasks.trim_end_matches(','));
        let told = read(&text).expect_err("the first waits for itself");
        assert!(told.contains("cycle: t0 → t0"), "{told}");
        assert_eq!(read(&text.replacen(",\"dependsOn\":[\"t0\"]", "", 1)).expect("a chain").tasks.len(), 20_000);
    }
}
