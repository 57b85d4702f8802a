//! Rules as people write them: one in a file, or a list of them. A key that is not known is refused, for a slip would widen a rule.

use runvoy_wire::{Effect, Rule};
use serde::Deserialize;

use crate::document::Document;
use crate::failure::Failure;

/// Roles that a rule can be for. Admins are named by their e-mail.
const ROLES: [&str; 3] = ["operator", "developer", "viewer"];

/// The rules of a document, in its order. Two of the same name are refused.
pub(crate) fn rules(document: &Document) -> Result<Vec<Rule>, Failure> {
    let rules: Vec<Rule> = document.parse_list::<RuleFile>()?.into_iter().map(Rule::from).collect();
    let mut names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::usage(format!("{}: there are two rules with the name `{}`", document.name, twice[0])));
    }
    for rule in &rules {
        check(rule).map_err(|odd| Failure::usage(format!("{}: rule `{}`: {odd}", document.name, rule.name)))?;
    }
    Ok(rules)
}

/// What a server would surely refuse, so that it is known before any rule of the file is sent.
fn check(rule: &Rule) -> Result<(), String> {
    let what = [&rule.commands, &rule.images, &rule.locks, &rule.queues, &rule.secrets, &rule.playbooks];
    let whom = [&rule.users, &rule.groups, &rule.roles];
    let listed = what.iter().any(|list| !list.is_empty());
    if rule.name.trim().is_empty() {
        return Err("the name is empty".to_owned());
    }
    if what.iter().chain(&whom).any(|list| list.iter().any(|entry| entry.trim().is_empty())) {
        return Err("an entry of a list is empty".to_owned());
    }
    if let Some(email) = rule.users.iter().find(|email| !email.contains('@')) {
        return Err(format!("users: `{email}` is not an e-mail address"));
    }
    if let Some(role) = rule.roles.iter().find(|role| !ROLES.contains(&role.as_str())) {
        return Err(format!("roles: {}", runvoy_wire::unknown("role", role, &ROLES)));
    }
    match rule.effect {
        Effect::Allow if !listed => Err("allow needs a list of what is allowed".to_owned()),
        Effect::Deny if !listed && whom.iter().all(|list| list.is_empty()) => {
            Err("it would deny everything to every user: name users, groups or roles, or list what is denied".to_owned())
        }
        _ => Ok(()),
    }
}

/// The same as [`Rule`], and strict.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    name: String,
    effect: Effect,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    images: Vec<String>,
    #[serde(default)]
    locks: Vec<String>,
    #[serde(default)]
    queues: Vec<String>,
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    playbooks: Vec<String>,
    reason: Option<String>,
}

impl From<RuleFile> for Rule {
    fn from(file: RuleFile) -> Self {
        let RuleFile { name, effect, users, groups, roles, commands, images, locks, queues, secrets, playbooks, reason } = file;
        Self { name, effect, users, groups, roles, commands, images, locks, queues, secrets, playbooks, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Rule>, String> {
        rules(&Document { name: "rules.yaml".into(), text: text.into() }).map_err(|failure| failure.text(false))
    }

    #[test]
    fn a_rule_or_a_list_of_rules_is_read_from_yaml_and_json() {
        let one = read("name: no-prod\neffect: deny\ngroups: [interns]\nlocks: ['prod*']\nreason: ask first\n").expect("a rule");
        assert_eq!((one.len(), one[0].effect, one[0].locks.as_slice()), (1, Effect::Deny, &["prod*".to_owned()][..]));
        let two = read(r#"[{"name":"a","effect":"allow","playbooks":["deploy"]},{"name":"b","effect":"deny","users":["ana@x"]}]"#)
            .expect("two rules");
        assert_eq!((two[0].name.as_str(), two[1].name.as_str()), ("a", "b"));
        // What was read is what `rules show` writes.
        let written = serde_saphyr::to_string(&one[0]).expect("YAML");
        assert_eq!(read(&written).expect("own output"), one);
    }

    #[test]
    fn a_slip_is_refused_with_its_place() {
        for (text, place) in [
            ("name: a\neffect: deny\nlock: [prod]\n", "rules.yaml:3:1"),
            ("name: a\neffect: forbid\n", "rules.yaml:2:9"),
            ("- name: a\n  effect: deny\n- name: b\n  efect: deny\n", "rules.yaml:4:3"),
            ("- {name: a, effect: deny}\n- {name: a, effect: allow}\n", "two rules with the name `a`"),
            ("- {name: a, effect: deny, locks: [x]}\n- {name: b, effect: allow}\n", "rule `b`: allow needs a list"),
            ("name: a\neffect: deny\n", "rule `a`: it would deny everything to every user"),
            ("name: a\neffect: deny\nroles: [king]\n", "roles: unknown role king; expected operator"),
            ("name: a\neffect: deny\nusers: [ana]\n", "`ana` is not an e-mail address"),
            ("name: a\neffect: deny\nlocks: ['']\n", "an entry of a list is empty"),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains(place), "{text}: {told}");
        }
    }
}
