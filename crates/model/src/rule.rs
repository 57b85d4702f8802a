//! Rules: what narrows a role. They are data that admins write; [`judge`] reads them, and never the role's own table.
//!
//! What a rule says about commands is a guard rail, not a boundary. It stops the mistakes and the usual ways around, and stops rather too much than too
//! little; but whoever may run a script, an editor or a compiler may run anything. The boundary is a playbook on the server: an allow-list
//! of `playbooks` leaves its subjects nothing else to run. `docs/rules.md` says the same to those who write rules.

mod carrier;
mod command;
mod verdict;

#[cfg(test)]
mod bypass;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::pattern;
use crate::role::Role;
use crate::user;
use crate::worker::account_of;

pub(crate) use self::carrier::shell_texts;
pub use self::verdict::{Asked, Decision, Subject, Verdict, judge};

/// A list in a rule has at most this many entries.
pub const MOST_ENTRIES: usize = 100;
/// The reason of a rule has at most this many bytes.
pub const MOST_REASON_BYTES: usize = 512;

/// Whether a rule takes or gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// What it lists is allowed, and nothing else of its kind.
    Allow,
    /// What it lists is denied, whatever allows it.
    Deny,
}

impl Effect {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// One rule: to whom it applies, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Whether it takes or gives.
    pub effect: Effect,
    /// E-mails of those it applies to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// Groups it applies to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Roles it applies to. Without users, groups and roles it applies to everybody who is no admin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// Patterns of commands: words with one blank between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Patterns of images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Patterns of locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
    /// Patterns of queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Patterns of secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Patterns of playbooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub playbooks: Vec<String>,
    /// Why there is such a rule, for whoever it stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a rule can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// What is run.
    Commands,
    /// The image it runs in.
    Images,
    /// The lock it holds.
    Locks,
    /// The line it waits in.
    Queues,
    /// The secrets it is given.
    Secrets,
    /// The playbook it is a run of.
    Playbooks,
}

impl Dimension {
    /// Every dimension.
    pub const ALL: [Self; 6] = [Self::Commands, Self::Images, Self::Locks, Self::Queues, Self::Secrets, Self::Playbooks];

    /// The field of a rule that lists it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Images => "images",
            Self::Locks => "locks",
            Self::Queues => "queues",
            Self::Secrets => "secrets",
            Self::Playbooks => "playbooks",
        }
    }

    /// The word for one of its values.
    const fn noun(self) -> &'static str {
        match self {
            Self::Commands => "command",
            Self::Images => "image",
            Self::Locks => "lock",
            Self::Queues => "queue",
            Self::Secrets => "secret",
            Self::Playbooks => "playbook",
        }
    }
}

/// A rule that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct InvalidRule {
    /// The field that is wrong.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl InvalidRule {
    fn new(field: &'static str, why: impl Into<String>) -> Self {
        Self { field, why: why.into() }
    }
}

impl Rule {
    /// A rule that lists nothing yet.
    pub fn new(name: impl Into<String>, effect: Effect) -> Self {
        Self {
            name: name.into(),
            effect,
            users: Vec::new(),
            groups: Vec::new(),
            roles: Vec::new(),
            commands: Vec::new(),
            images: Vec::new(),
            locks: Vec::new(),
            queues: Vec::new(),
            secrets: Vec::new(),
            playbooks: Vec::new(),
            reason: None,
        }
    }

    /// What it lists of a dimension.
    pub fn patterns(&self, dimension: Dimension) -> &[String] {
        match dimension {
            Dimension::Commands => &self.commands,
            Dimension::Images => &self.images,
            Dimension::Locks => &self.locks,
            Dimension::Queues => &self.queues,
            Dimension::Secrets => &self.secrets,
            Dimension::Playbooks => &self.playbooks,
        }
    }

    /// Whether it lists anything of a dimension.
    pub fn lists(&self, dimension: Dimension) -> bool {
        !self.patterns(dimension).is_empty()
    }

    /// Whether it applies to somebody. Admins are under no rule but those that name them: who writes the rules must not be locked out by one
    /// that was meant for others.
    pub fn applies_to(&self, subject: &Subject<'_>) -> bool {
        let names_them = self.users.iter().any(|user| user.eq_ignore_ascii_case(subject.email));
        let lists_them = || self.groups.iter().any(|group| subject.groups.contains(group)) || self.roles.contains(&subject.role);
        names_them || subject.role != Role::Admin && (!self.has_subject() || lists_them())
    }

    /// Whether it limits which commands its subjects run. An allow of everything limits nothing.
    pub fn limits_commands(&self) -> bool {
        let allows_all = self.effect == Effect::Allow && self.commands.iter().any(|pattern| pattern == "*");
        self.lists(Dimension::Playbooks) || self.lists(Dimension::Commands) && !allows_all
    }

    /// Whether it says to whom it applies.
    fn has_subject(&self) -> bool {
        !(self.users.is_empty() && self.groups.is_empty() && self.roles.is_empty())
    }

    /// Whether it can be kept: every entry is well-formed, and it does something.
    pub fn check(&self) -> Result<(), InvalidRule> {
        Name::new(self.name.as_str()).map_err(|error| InvalidRule::new("name", error.to_string()))?;
        self.check_subjects()?;
        for dimension in Dimension::ALL {
            let patterns = self.patterns(dimension);
            count(dimension.as_str(), patterns.len())?;
            for pattern in patterns {
                pattern::check(pattern).map_err(|error| {
                    InvalidRule::new(dimension.as_str(), format!("pattern `{pattern}` {error}", pattern = pattern.escape_debug()))
                })?;
            }
        }
        if let Some(reason) = &self.reason {
            let is_fair = (1..=MOST_REASON_BYTES).contains(&reason.trim().len()) && !reason.chars().any(char::is_control);
            if !is_fair {
                return Err(InvalidRule::new("reason", format!("must be one line of 1 to {MOST_REASON_BYTES} bytes, or left out")));
            }
        }
        self.check_effect()
    }

    fn check_subjects(&self) -> Result<(), InvalidRule> {
        count("users", self.users.len())?;
        count("groups", self.groups.len())?;
        count("roles", self.roles.len())?;
        for who in &self.users {
            let wrong = match account_of(who) {
                Some(name) => Name::new(name).err().map(|error| error.to_string()),
                None => user::email(who).err().map(|error| error.to_string()),
            };
            if let Some(why) = wrong {
                return Err(InvalidRule::new("users", format!("`{}`: {why}", who.escape_debug())));
            }
        }
        for group in &self.groups {
            Name::new(group.as_str()).map_err(|error| InvalidRule::new("groups", format!("`{}`: {error}", group.escape_debug())))?;
        }
        if self.roles.contains(&Role::Admin) {
            return Err(InvalidRule::new("roles", "cannot list admin: rules apply to an admin only by e-mail, so name it in users"));
        }
        Ok(())
    }

    /// Refuses a rule that would do nothing, or more than anybody can have meant.
    fn check_effect(&self) -> Result<(), InvalidRule> {
        let listed = Dimension::ALL.into_iter().filter(|dimension| self.lists(*dimension)).count();
        match self.effect {
            Effect::Allow if listed == 0 => Err(InvalidRule::new(
                "effect",
                "allow needs a list of what is allowed: commands, images, locks, queues, secrets or playbooks",
            )),
            Effect::Deny if listed == 0 && !self.has_subject() => {
                Err(InvalidRule::new("effect", "would deny everything to every user: name users, groups or roles, or list what is denied"))
            }
            Effect::Deny if listed > 1 && self.lists(Dimension::Playbooks) => {
                Err(InvalidRule::new("playbooks", "of a deny rule cannot be combined with other lists: make two rules"))
            }
            _ => Ok(()),
        }
    }
}

fn count(field: &'static str, entries: usize) -> Result<(), InvalidRule> {
    if entries <= MOST_ENTRIES {
        Ok(())
    } else {
        Err(InvalidRule::new(field, format!("lists {entries} entries, more than {MOST_ENTRIES}")))
    }
}
