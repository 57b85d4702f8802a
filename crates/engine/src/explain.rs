//! Why somebody may or may not do something: first what their role says, then, for a run, what the rules say. It asks the same table and the same
//! judgement as the deed itself would, and does nothing.

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::phrase::unknown;
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::{Action, Reach, reach};
use runvoy_model::rule::{Asked, Dimension, Effect, Rule, Subject, judge};
use runvoy_model::secret::{SecretUse, SecretUser};
use runvoy_model::spec::{DEFAULT_QUEUE, LOCAL_IMAGE};
use runvoy_model::user::email as checked_email;

use crate::Engine;
use crate::access::Caller;
use crate::directory::Person;
use crate::error::EngineError;
use crate::people::no_user;

/// What is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainQuery {
    /// About whom; absent: the caller.
    pub user: Option<String>,
    /// What they would do: the word.
    pub action: String,
    /// The command of a run.
    pub command: Option<String>,
    /// The image of a run.
    pub image: Option<String>,
    /// The lock of a run.
    pub lock: Option<String>,
    /// The queue of a run.
    pub queue: Option<String>,
    /// A secret of a run, or the one to see or write.
    pub secret: Option<String>,
    /// The playbook to run.
    pub playbook: Option<String>,
    /// The execution to read or end.
    pub execution: Option<String>,
}

/// Why, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// About whom.
    pub user: String,
    /// Their role.
    pub role: &'static str,
    /// What they would do.
    pub action: &'static str,
    /// Everything that had a say, in order: the role first. It may be done if nothing stands against it.
    pub says: Vec<Say>,
}

/// What one rule, or the role, says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    /// A rule's name; `role:NAME` for the role; `rules` for several together.
    pub rule: String,
    /// What it comes to.
    pub effect: Effect,
    /// Why.
    pub why: String,
}

impl Explained {
    /// Whether it may be done.
    pub fn allowed(&self) -> bool {
        self.says.iter().all(|say| say.effect == Effect::Allow)
    }

    /// What decided: what stands against it first of all, else what was said last.
    pub fn decisive(&self) -> &Say {
        let against = self.says.iter().find(|say| say.effect == Effect::Deny);
        against.or(self.says.last()).expect("the role always has a say")
    }
}

impl Engine {
    /// Explains what somebody may do: the caller themselves, or for an admin anybody.
    pub async fn explain(&self, caller: &Caller, query: &ExplainQuery) -> Result<Explained, EngineError> {
        let reach = caller.may(Action::ExplainAccess)?;
        let email = match query.user.as_deref() {
            Some(user) => checked_email(user).map_err(|_| no_user(user))?,
            None => caller.email.clone(),
        };
        if reach != Reach::All && email != caller.email {
            return Err(no_user(&email));
        }
        let (action, word) = action(&query.action)?;
        let person = self.person(&email).await?.ok_or_else(|| no_user(&email))?;
        let role = person.user.role;
        let mut says = vec![self.role_says(&person, action, query).await?];
        if says[0].effect == Effect::Allow && action == Action::Run {
            says.extend(self.rules_say(caller, &person, query).await?);
        }
        Ok(Explained { user: email, role: role.as_str(), action: word, says })
    }

    /// What the role says, with the one thing that is asked about.
    async fn role_says(&self, person: &Person, action: Action, query: &ExplainQuery) -> Result<Say, EngineError> {
        let role = person.user.role;
        let say = |effect, why: String| Say { rule: format!("role:{}", role.as_str()), effect, why };
        if person.user.revoked_at.is_some() {
            return Ok(say(Effect::Deny, format!("{} was revoked: its keys are no longer valid", person.user.email)));
        }
        let reach = reach(role, action);
        let why = match reach {
            Reach::None => return Ok(say(Effect::Deny, format!("role {} does not allow this", role.as_str()))),
            Reach::Own => format!("role {} may do this with their own resources", role.as_str()),
            Reach::All => format!("role {} may do this", role.as_str()),
        };
        if let Some(text) = query.execution.as_deref().filter(|_| is_about_executions(action)) {
            return Ok(match self.owned(person, reach, text).await? {
                true => say(Effect::Allow, format!("{why}, and the execution is one of them")),
                false => say(Effect::Deny, format!("{why}; there is no such execution, or it is not theirs")),
            });
        }
        // What a playbook is given was granted by whoever pushed it, and not by who runs it.
        let by_playbook = action == Action::Run && query.playbook.is_some();
        if let (Some(name), Some(wanted), false) = (query.secret.as_deref(), secret_use(action), by_playbook) {
            let record = self.ports.records.record(Kind::Secret, name).await?;
            let user = SecretUser { email: &person.user.email, role, groups: &person.groups };
            return Ok(match record.as_ref().and_then(Record::secret).is_some_and(|secret| secret.allows(user, wanted)) {
                true => say(Effect::Allow, format!("{why}, and the secret lets them")),
                false => say(Effect::Deny, "there is no such secret, or it is not theirs to use so".into()),
            });
        }
        Ok(say(Effect::Allow, why))
    }

    async fn owned(&self, person: &Person, reach: Reach, text: &str) -> Result<bool, EngineError> {
        let Ok(id) = text.parse::<ExecutionId>() else {
            return Err(EngineError::invalid("execution", "must be the whole id of an execution (32 hex digits)"));
        };
        let email = &person.user.email;
        let theirs = |execution: &Execution| reach == Reach::All || execution.created_by == *email || execution.owned_by.contains(email);
        Ok(self.ports.store.get(id).await?.as_ref().is_some_and(theirs))
    }

    /// What the rules say to a run. Without a command or a playbook only what does not depend on it is judged.
    async fn rules_say(&self, caller: &Caller, person: &Person, query: &ExplainQuery) -> Result<Vec<Say>, EngineError> {
        let image = match &query.playbook {
            Some(_) => None,
            None => self.image_for(caller, query.image.as_deref()).await?,
        };
        let reference = image.as_ref().map(|image| image.reference.to_string());
        let secrets: Vec<Name> = query.secret.iter().map(|text| name("secret", text)).collect::<Result<_, _>>()?;
        let (mut rules, any_command) = (self.rules().await?, query.command.is_none() && query.playbook.is_none());
        if any_command {
            without_commands(&mut rules);
        }
        let asked = Asked {
            command: query.command.as_deref().unwrap_or("true"),
            args: None,
            image: image.as_ref().map_or(LOCAL_IMAGE, |image| image.image_id.as_str()),
            reference: reference.as_deref(),
            lock: query.lock.as_deref(),
            queue: query.queue.as_deref().unwrap_or(DEFAULT_QUEUE),
            secrets: &secrets,
            playbook: query.playbook.as_deref(),
        };
        let subject = Subject { email: &person.user.email, role: person.user.role, groups: &person.groups };
        let verdict = judge(&rules, &subject, &asked);
        let role = format!("role:{}", person.user.role.as_str());
        // Only who may run it hears whether it is there.
        if let Some(text) = query.playbook.as_deref().filter(|_| verdict.allowed)
            && self.ports.records.record(Kind::Playbook, text).await?.is_none()
        {
            return Ok(vec![Say { rule: role, effect: Effect::Deny, why: "there is no such playbook".into() }]);
        }
        let said = verdict.decisions.into_iter().map(|decision| {
            let rule = decision.rule.unwrap_or_else(|| if decision.effect == Effect::Deny { "rules".into() } else { role.clone() });
            let unsure = any_command && decision.effect == Effect::Allow;
            let why = if unsure { format!("{}, as far as it does not depend on the command", decision.why) } else { decision.why };
            Say { rule, effect: decision.effect, why }
        });
        Ok(said.collect())
    }
}

/// Leaves of the rules what can be judged without knowing the command: a deny that needs one says nothing, an allow says the rest of it.
fn without_commands(rules: &mut Vec<Rule>) {
    rules.retain(|rule| rule.effect == Effect::Allow || !rule.lists(Dimension::Commands));
    for rule in rules {
        rule.commands.clear();
    }
}

const fn is_about_executions(action: Action) -> bool {
    matches!(action, Action::Read | Action::Kill | Action::ShareLog)
}

const fn secret_use(action: Action) -> Option<SecretUse> {
    match action {
        Action::Run => Some(SecretUse::Inject),
        Action::ReadSecrets => Some(SecretUse::See),
        Action::WriteSecrets => Some(SecretUse::Change),
        _ => None,
    }
}

fn name(field: &str, text: &str) -> Result<Name, EngineError> {
    Name::new(text).map_err(|error| EngineError::invalid(field, error.to_string()))
}

/// Every action that can be asked about.
pub const ACTIONS: [Action; 28] = [
    Action::Run,
    Action::Read,
    Action::Kill,
    Action::Redrive,
    Action::ShareLog,
    Action::ReadLocks,
    Action::ReleaseLock,
    Action::ReadImages,
    Action::ManageImages,
    Action::ReadSecrets,
    Action::WriteSecrets,
    Action::RotateSealingKey,
    Action::ReadPlaybooks,
    Action::ManagePlaybooks,
    Action::ManageUsers,
    Action::ManageKeys,
    Action::ExplainAccess,
    Action::ReadAudit,
    Action::Trace,
    Action::Reconcile,
    Action::ReadQueues,
    Action::ManageQueues,
    Action::ManageWorkers,
    Action::Lease,
    Action::Diagnose,
    Action::Metrics,
    Action::Backup,
    Action::KnowSelf,
];

/// The word for an action. A new action does not compile before it has one.
pub const fn action_word(action: Action) -> &'static str {
    match action {
        Action::Public => "public",
        Action::KnowSelf => "know_self",
        Action::Run => "run",
        Action::Read => "read",
        Action::Kill => "kill",
        Action::Redrive => "redrive",
        Action::ManageQueues => "manage_queues",
        Action::ReadLocks => "read_locks",
        Action::ReleaseLock => "release_lock",
        Action::Diagnose => "diagnose",
        Action::Metrics => "metrics",
        Action::Backup => "backup",
        Action::ManageUsers => "manage_users",
        Action::ManageKeys => "manage_keys",
        Action::ExplainAccess => "explain_access",
        Action::ReadImages => "read_images",
        Action::ManageImages => "manage_images",
        Action::ReadSecrets => "read_secrets",
        Action::WriteSecrets => "write_secrets",
        Action::RotateSealingKey => "rotate_sealing_key",
        Action::ReadPlaybooks => "read_playbooks",
        Action::ManagePlaybooks => "manage_playbooks",
        Action::ShareLog => "share_log",
        Action::ReadAudit => "read_audit",
        Action::Trace => "trace",
        Action::Reconcile => "reconcile",
        Action::Lease => "lease",
        Action::ManageWorkers => "manage_workers",
        Action::ReadQueues => "read_queues",
    }
}

/// Reads the word of an action; dashes do for underscores.
fn action(text: &str) -> Result<(Action, &'static str), EngineError> {
    let wanted = text.trim().to_ascii_lowercase().replace('-', "_");
    let found = ACTIONS.into_iter().map(|action| (action, action_word(action))).find(|(_, word)| *word == wanted);
    found.ok_or_else(|| EngineError::invalid("action", unknown("action", text, &ACTIONS.map(action_word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_found_by_its_word() {
        for wanted in ACTIONS {
            assert_eq!(action(action_word(wanted)).expect("its own word").0, wanted);
        }
        assert_eq!(action("Release-Lock").expect("dashes").0, Action::ReleaseLock);
        assert!(action("fly").is_err());
    }

    #[test]
    fn a_run_without_a_command_is_judged_by_the_rest() {
        let mut rules = vec![Rule::new("a", Effect::Deny), Rule::new("b", Effect::Deny), Rule::new("c", Effect::Allow)];
        rules[0].commands = vec!["rm *".into()];
        rules[1].locks = vec!["prod".into()];
        rules[2].commands = vec!["ls".into()];
        rules[2].queues = vec!["slow".into()];
        without_commands(&mut rules);
        let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
        assert!(!rules[1].lists(Dimension::Commands) && rules[1].lists(Dimension::Queues));
    }
}
