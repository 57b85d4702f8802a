//! What a call wants to run or to end, as the audit trail keeps it: the command with the values of the secrets that it names masked, and the id
//! of what it is asked of. Without it the trail would say that somebody was refused, and not what.

use runvoy_model::bound::clipped;
use runvoy_model::id::ExecutionId;
use runvoy_model::job::Node;
use runvoy_model::mask::Mask;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Spec;
use runvoy_model::step::Step;

use crate::Engine;
use crate::error::EngineError;
use crate::execution::is_part_of_id;

/// How many commands of a job's tasks are shown.
const MAX_SHOWN_TASKS: usize = 20;

/// What a call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// What it would run or end, as it was asked for: it is masked before it is kept.
    pub command: Option<String>,
    /// The secrets that the request names.
    pub secrets: Vec<Name>,
    /// The execution, job or playbook that it is asked of.
    pub target: Option<String>,
}

impl Subject {
    /// The command of a spec.
    pub(crate) fn of(spec: &Spec, target: Option<String>) -> Self {
        let token = spec.git.as_ref().and_then(|git| git.token.as_ref());
        let secrets = spec.secrets.iter().chain(token).cloned().collect();
        Self { command: Some(command_line(&spec.command, spec.args.as_deref())), secrets, target }
    }

    /// The commands of a job's tasks, a line each.
    pub(crate) fn of_tasks(nodes: &[Node], target: Option<String>) -> Self {
        Self::of_specs(nodes.iter().map(|node| &node.spec), target)
    }

    /// The same of what tasks will run.
    pub(crate) fn of_specs<'s>(mut specs: impl ExactSizeIterator<Item = &'s Spec>, target: Option<String>) -> Self {
        let mut all = Self { target, ..Self::default() };
        let mut lines = Vec::new();
        for spec in specs.by_ref().take(MAX_SHOWN_TASKS) {
            let one = Self::of(spec, None);
            lines.extend(one.command);
            all.secrets.extend(one.secrets);
        }
        if specs.len() > 0 {
            lines.push(format!("… ({} tasks more)", specs.len()));
        }
        all.secrets.sort_unstable();
        all.secrets.dedup();
        all.command = Some(lines.join("\n"));
        all
    }
}

/// A program and its arguments as one text, for a person.
pub fn command_line(command: &str, args: Option<&[String]>) -> String {
    args.into_iter().flatten().fold(command.to_owned(), |line, arg| line + " " + arg)
}

impl Engine {
    /// The step of a call that runs or ends something, with what that is.
    pub(crate) async fn about(&self, mut step: Step, subject: &Subject) -> Result<Step, EngineError> {
        if let Some(audit) = &mut step.audit {
            audit.command = self.masked_command(subject).await?;
            audit.target.clone_from(&subject.target);
        }
        Ok(step)
    }

    /// The command of a call, masked and no longer than an event should be. Of a call that only names an execution, it is that execution's.
    pub(crate) async fn masked_command(&self, subject: &Subject) -> Result<Option<String>, EngineError> {
        if subject.command.is_some() {
            return self.masked(subject).await;
        }
        let Some(id) = subject.target.as_deref().and_then(|target| target.parse::<ExecutionId>().ok()) else { return Ok(None) };
        match self.ports.store.get(id).await? {
            Some(execution) if !execution.spec.is_lost() => self.masked(&Subject::of(&execution.spec, None)).await,
            _ => Ok(None),
        }
    }

    /// The same with the whole id of an execution that was asked for by a part of its id, where that fits no other.
    pub(crate) async fn with_whole_id(&self, subject: &Subject) -> Result<Subject, EngineError> {
        let mut subject = subject.clone();
        let Some(digits) = subject.target.as_deref().filter(|target| is_part_of_id(target)) else { return Ok(subject) };
        if let [id] = self.ports.store.find(digits, 2).await?[..] {
            subject.target = Some(id.to_string());
        }
        Ok(subject)
    }

    /// The same with the command of the playbook that was asked for. Parameters are not filled in: a refused run's were not checked.
    pub(crate) async fn with_command_of_playbook(&self, subject: &Subject) -> Result<Subject, EngineError> {
        let mut subject = subject.clone();
        let Some(name) = subject.target.as_deref().and_then(|name| Name::new(name).ok()) else { return Ok(subject) };
        let record = self.ports.records.record(Kind::Playbook, name.as_str()).await?;
        if let Some(playbook) = record.as_ref().and_then(Record::playbook) {
            subject.command = Some(command_line(&playbook.steps.command, playbook.steps.args.as_deref()));
            subject.secrets = playbook.steps.secrets_used().cloned().collect();
        }
        Ok(subject)
    }

    async fn masked(&self, subject: &Subject) -> Result<Option<String>, EngineError> {
        let Some(command) = &subject.command else { return Ok(None) };
        let mut values = Vec::new();
        for name in &subject.secrets {
            let record = self.ports.records.record(Kind::Secret, name.as_str()).await?;
            if let Some(secret) = record.as_ref().and_then(Record::secret) {
                match self.open_secret(secret).await {
                    Ok(value) => values.push(value),
                    Err(_) => return Ok(Some(format!("(not shown: secret {name} cannot be decrypted, so it cannot be masked)"))),
                }
            }
        }
        if values.is_empty() {
            return Ok(Some(clipped(command)));
        }
        let command = command.clone();
        let masked = tokio::task::spawn_blocking(move || {
            let tokens = values.iter().filter_map(|value| value.split_once(':').map(|(_, token)| token));
            let all: Vec<&str> = values.iter().map(String::as_str).chain(tokens).collect();
            match Mask::new(&all) {
                Ok(Some(mask)) => mask.text(&command),
                Ok(None) => command,
                Err(_) => "(not shown: its secrets are too large to be masked)".to_owned(),
            }
        });
        let masked = masked.await.map_err(|error| EngineError::Unavailable(Box::new(error)))?;
        Ok(Some(clipped(&masked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_belong_to_the_command() {
        assert_eq!(command_line("ls", None), "ls");
        assert_eq!(command_line("tar", Some(&["-x".into(), "a b".into()])), "tar -x a b");
    }
}
