//! `rules`: what narrows a role. A file is checked as a whole before any of its rules is sent.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_wire::{Effect, Rule, RuleResponse};

use crate::complete;
use crate::document::Document;
use crate::failure::Failure;
use crate::global::Format;
use crate::rule_file;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::table::{Cell, facts, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy rules apply rules.yaml
  runvoy rules list
  runvoy rules show no-prod -o yaml
  runvoy rules delete no-prod --yes

A file has one rule, or a list of them:
  name: no-prod
  effect: deny        # or allow: only what an allow rule matches is allowed
  groups: [interns]   # users, groups, roles [default: all users but admins]
  locks: ['prod*']    # commands, images, locks, queues, secrets, playbooks
  reason: ask ops first";

/// Arguments of `rules`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct RulesArgs {
    #[command(subcommand)]
    command: RulesCommand,
}

/// What to do with rules.
#[derive(Debug, Clone, Subcommand)]
enum RulesCommand {
    /// List the rules
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy rules list --json")]
    List,
    /// Show a rule
    #[command(before_help = "Examples:\n  runvoy rules show no-prod")]
    Show {
        /// Name of the rule
        #[arg(add = ArgValueCompleter::new(complete::rules))]
        name: String,
    },
    /// Create or replace the rules of a YAML or JSON file
    #[command(before_help = "Examples:\n  runvoy rules apply rules.yaml\n  runvoy rules apply -   # from stdin")]
    Apply {
        /// File with one rule or a list of them; - reads stdin
        file: PathBuf,
    },
    /// Delete a rule
    #[command(before_help = "Examples:\n  runvoy rules delete no-prod --yes")]
    Delete {
        /// Name of the rule
        #[arg(add = ArgValueCompleter::new(complete::rules))]
        name: String,
    },
}

impl RulesArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            RulesCommand::List | RulesCommand::Show { .. } => false,
            RulesCommand::Apply { .. } | RulesCommand::Delete { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            RulesCommand::List => show_all(session).await,
            RulesCommand::Show { name } => show(session, &name).await,
            RulesCommand::Apply { file } => apply(session, &Document::open(&file)?).await,
            RulesCommand::Delete { name } => {
                session.confirm(&format!("Delete rule {name}"))?;
                let answer = session.connect().await?.remove_rule(&name).await?;
                session.report_on(&answer, ("rule", &answer.name), &answer.message)
            }
        }
    }
}

async fn apply(session: &Session, document: &Document) -> Result<u8, Failure> {
    let rules = rule_file::rules(document)?;
    let client = session.connect().await?;
    let mut answers: Vec<RuleResponse> = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        let put = client.put_rule(rule).await.map_err(|error| halted(error.into(), &rules, place))?;
        if session.format() == Format::Table {
            session.note(Tone::Plain, &one_line(&format!("rule {}: {}", put.name, put.message)));
        }
        answers.push(put);
    }
    if session.format() != Format::Table {
        session.show(&answers, || answers.iter().map(|answer| answer.name.clone()).collect(), String::new)?;
    }
    Ok(0)
}

/// The server did not take the rule at this place: says which were applied, and which were not.
fn halted(failure: Failure, rules: &[Rule], place: usize) -> Failure {
    let names = |rules: &[Rule]| rules.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>().join(", ");
    let failure = failure.why(format!("this was rule {}", rules[place].name));
    let failure = if place > 0 { failure.why(format!("applied before it: {}", names(&rules[..place]))) } else { failure };
    match &rules[place + 1..] {
        [] => failure,
        rest => failure.why(format!("not applied: {}", names(rest))),
    }
}

async fn show(session: &Session, name: &str) -> Result<u8, Failure> {
    let rules = session.connect().await?.rules().await?;
    let Some(rule) = rules.into_iter().find(|rule| rule.name == name) else {
        return Err(Failure::other(format!("no rule {name}")).next("list the rules: runvoy rules list"));
    };
    let names = || vec![rule.name.clone()];
    session.show(&rule, names, || facts(described(&rule), session.terminal.stdout_colour))?;
    Ok(0)
}

fn described(rule: &Rule) -> Vec<(&'static str, Option<String>)> {
    let words = |words: &[String]| Some(words.join(", "));
    vec![
        ("rule", Some(rule.name.clone())),
        ("effect", Some(rule.effect.to_string())),
        ("users", words(&rule.users)),
        ("groups", words(&rule.groups)),
        ("roles", words(&rule.roles)),
        ("commands", words(&rule.commands)),
        ("images", words(&rule.images)),
        ("locks", words(&rule.locks)),
        ("queues", words(&rule.queues)),
        ("secrets", words(&rule.secrets)),
        ("playbooks", words(&rule.playbooks)),
        ("reason", rule.reason.clone()),
    ]
}

async fn show_all(session: &Session) -> Result<u8, Failure> {
    let rules = session.connect().await?.rules().await?;
    let table = || list(&["RULE", "EFFECT", "USERS", "MATCHES"], &rules.iter().map(row).collect::<Vec<_>>(), session.terminal);
    session.show(&rules, || rules.iter().map(|rule| rule.name.clone()).collect(), table)?;
    if rules.is_empty() {
        session.note(Tone::Dim, "No rules: the roles alone decide.");
    }
    Ok(0)
}

fn row(rule: &Rule) -> Vec<Cell> {
    let tone = if rule.effect == Effect::Deny { Tone::Bad } else { Tone::Good };
    let lists = |names: &[&str]| {
        let named = described(rule).into_iter().filter(|(name, _)| names.contains(name));
        let said = named.filter_map(|(name, words)| Some(format!("{name}: {}", words.filter(|words| !words.is_empty())?)));
        said.collect::<Vec<_>>().join("; ")
    };
    let subjects = lists(&["users", "groups", "roles"]);
    let subjects = if subjects.is_empty() { "all but admins".to_owned() } else { subjects };
    let what = lists(&["commands", "images", "locks", "queues", "secrets", "playbooks"]);
    let what = if what.is_empty() { "everything".to_owned() } else { what };
    vec![(&rule.name).into(), Cell::new(rule.effect.as_str(), tone), subjects.into(), what.into()]
}
