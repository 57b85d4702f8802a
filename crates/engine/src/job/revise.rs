//! What a resume changes of tasks that failed or wait: the change is laid over what the task runs, and judged like a task that is submitted.

use std::collections::BTreeMap;

use runvoy_model::bound::clipped;
use runvoy_model::command::{Refusal, ReviseTask};
use runvoy_model::job::{DEFAULT_TASK_RETRIES, Job};
use runvoy_model::name::Name;
use runvoy_model::rpc::PROTOCOL_LABEL;
use runvoy_model::spec::Spec;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::request::field;
use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::request::RunRequest;
use crate::subject::Subject;

/// What a resume changes of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TaskChange {
    /// The task.
    pub task_id: String,
    /// Whether the fields below are everything that the task runs with; otherwise what is absent stays as it is.
    pub replace: bool,
    /// A shell command, or a program where there are `args`. The arguments of another command do not stay.
    pub command: Option<String>,
    /// Arguments.
    pub args: Option<Vec<String>>,
    /// The image.
    pub image: Option<String>,
    /// Environment; added to what there is.
    pub env: BTreeMap<String, String>,
    /// Seconds that an attempt may run.
    pub timeout: Option<i64>,
    /// Secrets to inject.
    pub secrets: Option<Vec<String>>,
    /// A repository to clone.
    pub git_repo: Option<String>,
    /// Its branch, tag or commit.
    pub git_ref: Option<String>,
    /// The directory within it to start in.
    pub git_path: Option<String>,
    /// The secret with its token.
    pub git_token: Option<String>,
    /// The lock to hold.
    pub lock: Option<String>,
    /// Seconds to wait for it.
    pub lock_wait: Option<i64>,
    /// The queue.
    pub queue: Option<String>,
    /// 1 to 5.
    pub priority: Option<i64>,
    /// Words to find it by; added to what there is.
    pub labels: BTreeMap<String, String>,
    /// What a worker must have to take it; added to what there is.
    pub worker_labels: BTreeMap<String, String>,
    /// Run it on a terminal of its own.
    pub terminal: Option<bool>,
    /// Further attempts.
    pub retries: Option<i64>,
}

impl TaskChange {
    /// The request that runs the task as it will be.
    fn applied(&self, was: &Spec) -> Result<RunRequest, EngineError> {
        if !self.replace && was.is_lost() {
            let message = format!("the command of task {} can no longer be read", self.task_id.escape_default());
            return Err(EngineError::conflict(message, "nothing was changed; give the whole task, from its job file"));
        }
        let base = if self.replace { RunRequest::default() } else { asked_again(was) };
        let missing = || EngineError::invalid(field(&self.task_id, "command"), "is missing: the task is replaced as a whole");
        let is_known = !self.replace || self.command.is_some();
        let joined = |own: &BTreeMap<String, String>, base: BTreeMap<String, String>| base.into_iter().chain(own.clone()).collect();
        let change = self.clone();
        Ok(RunRequest {
            // Arguments belong to their program.
            args: if change.command.is_some() { change.args } else { change.args.or(base.args) },
            command: is_known.then(|| change.command.unwrap_or(base.command)).ok_or_else(missing)?,
            image: change.image.or(base.image),
            env: joined(&self.env, base.env),
            timeout: change.timeout.or(base.timeout),
            secrets: change.secrets.unwrap_or(base.secrets),
            git_repo: change.git_repo.or(base.git_repo),
            git_ref: change.git_ref.or(base.git_ref),
            git_path: change.git_path.or(base.git_path),
            git_token: change.git_token.or(base.git_token),
            lock: change.lock.or(base.lock),
            lock_wait: change.lock_wait.or(base.lock_wait),
            queue: change.queue.or(base.queue),
            priority: change.priority.or(base.priority),
            labels: joined(&self.labels, base.labels),
            worker_labels: joined(&self.worker_labels, base.worker_labels),
            terminal: change.terminal.unwrap_or(base.terminal),
            retries: change.retries.or(base.retries).or(Some(i64::from(DEFAULT_TASK_RETRIES))),
            redeliveries: base.redeliveries,
            rpc: base.rpc,
            idempotency_key: None,
        })
    }
}

/// The request that a spec came from.
fn asked_again(spec: &Spec) -> RunRequest {
    let seconds = |ms: u64| i64::try_from(ms / 1_000).unwrap_or(i64::MAX);
    let git = spec.git.clone();
    let worker_labels = spec.worker_labels.iter().filter(|(key, _)| key.as_str() != PROTOCOL_LABEL);
    RunRequest {
        command: spec.command.clone(),
        args: spec.args.clone(),
        image: Some(spec.image.clone()),
        env: spec.env.clone(),
        timeout: spec.timeout_ms.map(seconds),
        lock: spec.lock.as_ref().map(Name::to_string),
        lock_wait: spec.lock_wait_ms.map(seconds),
        queue: Some(spec.queue.to_string()),
        priority: Some(spec.priority.into()),
        labels: spec.labels.clone(),
        worker_labels: worker_labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
        terminal: spec.terminal,
        retries: Some(spec.retries.into()),
        redeliveries: spec.redeliveries,
        secrets: spec.secrets.iter().map(Name::to_string).collect(),
        git_repo: git.as_ref().map(|git| git.repo.clone()),
        git_ref: git.as_ref().and_then(|git| git.reference.clone()),
        git_path: git.as_ref().and_then(|git| git.path.clone()),
        git_token: git.as_ref().and_then(|git| git.token.as_ref().map(Name::to_string)),
        rpc: spec.rpc.clone(),
        idempotency_key: None,
    }
}

impl Engine {
    /// The tasks that really change, each judged like one that is submitted. A task that would run what it ran is left out.
    pub(super) async fn revisions(
        &self,
        caller: &Caller,
        action: &str,
        job: &Job,
        changes: &[TaskChange],
    ) -> Result<Vec<ReviseTask>, EngineError> {
        let mut names: Vec<&str> = changes.iter().map(|change| change.task_id.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(EngineError::invalid("tasks", format!("names {} twice", pair[0].escape_default())));
        }
        let mut revisions = Vec::new();
        for change in changes {
            let node = self.job_task(job, &change.task_id).await?;
            let was = node.runs();
            let plan = self.plan_task(caller, &change.applied(was)?, |part| field(&change.task_id, part)).await?;
            if plan.spec == *was {
                continue;
            }
            if !node.phase.is_revisable() {
                return Err(Refusal::NotRevisable(node.task, node.phase).into());
            }
            let spec = self.allowed(caller, action, &change.task_id, plan, job.id).await?;
            let told = self.told_of_change(&node.task, was, &spec).await?;
            revisions.push(ReviseTask { task: node.task.clone(), was: was.clone(), spec, told });
        }
        Ok(revisions)
    }

    /// What the audit event says of a change: which fields, and from what to what where a field is one value.
    async fn told_of_change(&self, task: &Name, was: &Spec, spec: &Spec) -> Result<Value, EngineError> {
        let (before, after) = (members(was), members(spec));
        let mut fields: Vec<&String> = before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key)).collect();
        fields.sort_unstable();
        fields.dedup();
        let is_command = fields.iter().any(|field| matches!(field.as_str(), "command" | "args"));
        let values = |members: &Map<String, Value>| -> Map<String, Value> {
            let told = fields.iter().filter(|field| !matches!(field.as_str(), "command" | "args"));
            told.filter_map(|field| Some(((*field).clone(), one_value(members.get(*field)?)?))).collect()
        };
        let (mut from, mut to) = (values(&before), values(&after));
        if is_command {
            let (old, new) = (Subject::of(was, None), Subject::of(spec, None));
            // A secret that only one of them names may stand in the text of the other.
            let secrets: Vec<Name> = old.secrets.into_iter().chain(new.secrets).collect();
            for (subject, told) in [(old.command, &mut from), (new.command, &mut to)] {
                let subject = Subject { command: subject, secrets: secrets.clone(), target: None };
                told.extend(self.masked_command(&subject).await?.map(|command| ("command".to_owned(), command.into())));
            }
        }
        Ok(json!({"taskId": task, "fields": fields, "from": from, "to": to}))
    }
}

fn members(spec: &Spec) -> Map<String, Value> {
    match serde_json::to_value(spec) {
        Ok(Value::Object(members)) => members,
        _ => unreachable!("a spec is an object"),
    }
}

/// A value that is short and no secret. Environment and labels are told by the name of the field alone.
fn one_value(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(clipped(text).into()),
        Value::Number(_) | Value::Bool(_) => Some(value.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::git::Reach;

    use super::*;

    fn spec() -> Spec {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let request = RunRequest {
            command: "make".into(),
            args: Some(vec!["all".into()]),
            env,
            timeout: Some(60),
            lock: Some("prod".into()),
            lock_wait: Some(5),
            retries: Some(0),
            git_repo: Some("https://example.com/a.git".into()),
            git_ref: Some("main".into()),
            secrets: vec!["db".into()],
            ..RunRequest::default()
        };
        request.check("local", Reach::Public).expect("a spec")
    }

    fn changed(change: TaskChange) -> Result<Spec, EngineError> {
        change.applied(&spec())?.check("local", Reach::Public)
    }

    #[test]
    fn a_spec_asked_for_again_is_the_same_spec() {
        assert_eq!(changed(TaskChange::default()).expect("a spec"), spec());
    }

    #[test]
    fn what_a_change_does_not_name_stays() {
        let env = BTreeMap::from([("B".to_owned(), "2".to_owned())]);
        let other = changed(TaskChange { env, timeout: Some(90), ..TaskChange::default() }).expect("a spec");
        assert_eq!((other.timeout_ms, other.env.len(), &other.args), (Some(90_000), 2, &spec().args));
        assert_eq!((other.lock, other.git, other.retries), (spec().lock, spec().git, 0));
        let command = changed(TaskChange { command: Some("ls".into()), ..TaskChange::default() }).expect("a spec");
        assert_eq!((command.command.as_str(), command.args), ("ls", None), "arguments belong to their program");
    }

    #[test]
    fn a_replaced_task_keeps_nothing() {
        let other = changed(TaskChange { replace: true, command: Some("ls".into()), ..TaskChange::default() }).expect("a spec");
        assert_eq!((other.timeout_ms, other.env.len(), other.lock, other.git), (None, 0, None, None));
        assert_eq!(other.retries, DEFAULT_TASK_RETRIES);
        let Err(EngineError::Invalid { field, .. }) = changed(TaskChange { replace: true, task_id: "a".into(), ..TaskChange::default() })
        else {
            panic!("a task without a command was taken")
        };
        assert_eq!(field, "tasks.a.command");
    }
}
