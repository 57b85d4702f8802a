//! `job resume`: run what failed again, as it was or changed: single fields with `--set`, or whole tasks from an edited job file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use runvoy_wire::{CreateJobRequest, Job, ResumeJobRequest, Task, TaskChange, TaskRequest};

use super::{JobId, follow};
use crate::document::Document;
use crate::duration::Seconds;
use crate::failure::Failure;
use crate::job_file;
use crate::session::Session;

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy job resume 4f2a9c
  runvoy job resume 4f2a9c --follow
  runvoy job resume 4f2a9c --set build.command='make -j1' --set build.timeout=1h
  runvoy job resume 4f2a9c --set build.env.DEBUG=1
  runvoy job resume 4f2a9c --file nightly.yaml   # after an edit of failed tasks";

/// What `--set` knows, as the help and errors name it.
const FIELDS: &str = "command, args, image, env.NAME, timeout, secrets, git_repo, git_ref, git_path, git_token, lock, lock_wait, queue, \
                      priority, labels.NAME, worker_labels.NAME, terminal, retries";

/// Arguments of `job resume`.
#[derive(Debug, Clone, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    job: JobId,
    /// Change a failed or blocked task; repeatable. The fields are those of a job file
    #[arg(long, value_name = "TASK.FIELD=VALUE", conflicts_with = "file")]
    set: Vec<String>,
    /// Run failed and blocked tasks as in this edited job file; - reads stdin
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Follow its progress; exit code 0 only if it completes
    #[arg(short, long)]
    follow: bool,
}

impl ResumeArgs {
    pub(super) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let set = changes(&self.set)?;
        let file = self.file.as_deref().map(read).transpose()?;
        let client = session.connect().await?;
        let id = self.job.resolve(&client).await?;
        let tasks = match file {
            Some(file) => edited(&file, &client.job(&id).await?)?,
            None => set,
        };
        let answer = client.resume_job(&id, &ResumeJobRequest { tasks }).await?;
        if self.follow {
            return follow::to_the_end(session, &client, &id).await;
        }
        session.report(&answer, &answer.job_id, &format!("{}: {}", answer.job_id, answer.message))
    }
}

fn read(path: &Path) -> Result<CreateJobRequest, Failure> {
    job_file::job(&Document::open(path)?)
}

/// The tasks of an edited job file, each as a whole. The server leaves out those that are as they were.
fn edited(file: &CreateJobRequest, job: &Job) -> Result<Vec<TaskChange>, Failure> {
    let known: HashMap<&str, &Task> = job.tasks.iter().map(|task| (task.task_id.as_str(), task)).collect();
    let mut changes = Vec::with_capacity(file.tasks.len());
    for task in &file.tasks {
        let known = known.get(task.task_id.as_str()).ok_or_else(|| {
            Failure::usage(format!("task {} of the file is not in job {}", task.task_id, job.job_id)).next("add it: runvoy job add-tasks")
        })?;
        refuse_other_place(task, known)?;
        // A job file whose task has no command was refused when it was read.
        if let Some(run) = task.run_request(file.defaults.as_ref()) {
            changes.push(TaskChange {
                task_id: task.task_id.clone(),
                replace: true,
                command: Some(run.command),
                args: run.args,
                image: run.image,
                env: run.env,
                timeout: run.timeout,
                secrets: Some(run.secrets),
                git_repo: run.git_repo,
                git_ref: run.git_ref,
                git_path: run.git_path,
                git_token: run.git_token,
                lock: run.lock,
                lock_wait: run.lock_wait,
                queue: run.queue,
                priority: run.priority,
                labels: run.labels,
                worker_labels: run.worker_labels,
                terminal: Some(run.terminal),
                retries: run.retries,
            });
        }
    }
    Ok(changes)
}

/// A resume changes what a task runs. Its place in the graph, its name and its input stay, and a file that says otherwise is refused.
fn refuse_other_place(task: &TaskRequest, known: &Task) -> Result<(), Failure> {
    let name = task.name.as_deref().unwrap_or(&task.task_id);
    // A large input is not shown by the server, and cannot be compared.
    let is_shown = known.input.is_some() || task.input.as_ref().is_none_or(|input| input.to_string().len() <= MAX_SHOWN_INPUT_BYTES);
    let changed = [
        ("dependsOn", task.depends_on != known.depends_on),
        ("name", name != known.name),
        ("input", is_shown && task.input != known.input),
    ];
    match changed.into_iter().find(|(_, is_changed)| *is_changed) {
        Some((field, _)) => Err(Failure::usage(format!("the file changes `{field}` of task {}, which a resume cannot", task.task_id))
            .next("change it back, or submit a new job")),
        None => Ok(()),
    }
}

/// A larger input may be one that the server does not show.
const MAX_SHOWN_INPUT_BYTES: usize = 64 * 1024;

/// What `--set` asks for, one change for each task.
fn changes(sets: &[String]) -> Result<Vec<TaskChange>, Failure> {
    let mut changes: Vec<TaskChange> = Vec::new();
    for text in sets {
        let wrong = |why: String| Failure::usage(format!("--set {text}: {why}"));
        let (path, value) = text.split_once('=').ok_or_else(|| wrong("expected TASK.FIELD=VALUE".to_owned()))?;
        let (task, field) = split(path).ok_or_else(|| wrong("expected TASK.FIELD=VALUE".to_owned()))?;
        let at = changes.iter().position(|change| change.task_id == task).unwrap_or_else(|| {
            changes.push(TaskChange { task_id: task.to_owned(), ..TaskChange::default() });
            changes.len() - 1
        });
        put(&mut changes[at], field, value).map_err(wrong)?;
    }
    Ok(changes)
}

/// The task and the field. Both may have dots: the name of a variable or a label follows its map.
fn split(path: &str) -> Option<(&str, &str)> {
    let maps = [".env.", ".labels.", ".worker_labels."];
    let at = maps.iter().filter_map(|map| path.find(map)).min().or_else(|| path.rfind('.'))?;
    Some((&path[..at], &path[at + 1..])).filter(|(task, field)| !task.is_empty() && !field.is_empty())
}

/// Lays one field over a change.
fn put(change: &mut TaskChange, field: &str, value: &str) -> Result<(), String> {
    let text = || Some(value.to_owned());
    let seconds = || value.parse::<Seconds>().map(|seconds| Some(seconds.0)).map_err(|error| error.to_string());
    match field {
        "command" => change.command = text(),
        "args" => change.args = Some(list(value)?),
        "image" => change.image = text(),
        "timeout" => change.timeout = seconds()?,
        "secrets" => change.secrets = Some(list(value)?),
        "git_repo" => change.git_repo = text(),
        "git_ref" => change.git_ref = text(),
        "git_path" => change.git_path = text(),
        "git_token" => change.git_token = text(),
        "lock" => change.lock = text(),
        "lock_wait" => change.lock_wait = seconds()?,
        "queue" => change.queue = text(),
        "priority" => change.priority = Some(value.parse().map_err(|_| "expected a number from 1 to 5")?),
        "terminal" => change.terminal = Some(value.parse().map_err(|_| "expected true or false")?),
        "retries" => change.retries = Some(value.parse().map_err(|_| "expected a number")?),
        _ => {
            let (map, name) = match field.split_once('.') {
                Some(("env", name)) => (&mut change.env, name),
                Some(("labels", name)) => (&mut change.labels, name),
                Some(("worker_labels", name)) => (&mut change.worker_labels, name),
                _ => return Err(format!("unknown field `{field}`; expected one of: {FIELDS}")),
            };
            map.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(())
}

/// A list as YAML or JSON writes it.
fn list(value: &str) -> Result<Vec<String>, String> {
    Document { name: "value".into(), text: value.into() }.parse().map_err(|_| r#"expected a list: ["a", "b"]"#.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Result<Vec<TaskChange>, String> {
        changes(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).map_err(|failure| failure.text(false))
    }

    #[test]
    fn fields_of_one_task_are_one_change() {
        let all = set(&["a.command=x=1 y", "b.1.timeout=10m", "a.env.A.B=1", "a.args=[\"-l\"]", "b.1.labels.a.b=c"]).expect("changes");
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].task_id.as_str(), all[0].command.as_deref()), ("a", Some("x=1 y")));
        assert_eq!((all[0].env["A.B"].as_str(), all[0].args.as_deref()), ("1", Some(&["-l".to_owned()][..])));
        assert_eq!((all[1].task_id.as_str(), all[1].timeout, all[1].labels["a.b"].as_str()), ("b.1", Some(600), "c"));
        assert!(all.iter().all(|change| !change.replace));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, says) in [
            ("a", "expected TASK.FIELD=VALUE"),
            ("command=x", "expected TASK.FIELD=VALUE"),
            ("a.dependsOn=b", "unknown field `dependsOn`"),
            ("a.timeout=soon", "not a duration"),
            ("a.args=-l", "expected a list"),
            ("a.priority=high", "expected a number"),
        ] {
            let told = set(&[text]).expect_err(text);
            assert!(told.contains(says), "{text}: {told}");
        }
    }

    #[test]
    fn a_file_changes_what_tasks_run_and_nothing_else_of_them() {
        let job: Job = serde_json::from_str(
            r#"{"jobId":"0192ab","status":"FAILED","createdAt":"2026-01-03T14:22:19Z","totalTasks":2,"tasks":[
            {"taskId":"a","name":"a","status":"FAILED","input":{"n":1}},{"taskId":"b","name":"b","status":"WAITING","dependsOn":["a"]}]}"#,
        )
        .expect("a job");
        let changes = |text: &str| {
            let document = Document { name: "job.yaml".into(), text: text.into() };
            edited(&job_file::job(&document).expect("a job file"), &job).map_err(|failure| failure.text(false))
        };
        let all = changes(
            "defaults: {timeout: 5}\ntasks:\n  - {taskId: a, command: x, input: {n: 1}}\n  - {taskId: b, command: y, dependsOn: [a]}\n",
        );
        let all = all.expect("changes");
        assert_eq!((all.len(), all[0].replace, all[1].command.as_deref(), all[1].timeout), (2, true, Some("y"), Some(5)));
        for (text, says) in [
            ("tasks: [{taskId: c, command: x}]", "is not in job"),
            ("tasks: [{taskId: a, command: x}]", "`input`"),
            ("tasks: [{taskId: a, command: x, input: {n: 1}}, {taskId: b, command: y}]", "`dependsOn`"),
            ("tasks: [{taskId: a, name: other, command: x, input: {n: 1}}]", "`name`"),
        ] {
            let told = changes(text).expect_err(text);
            assert!(told.contains(says), "{text}: {told}");
        }
    }
}
