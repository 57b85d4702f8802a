//! The judgement: may this subject run what is asked, and which rules say so. Deny wins, whatever the order of the rules. It never repeats a
//! command in its answer, because a command may hold what others must not read.

use std::cell::OnceCell;

use crate::name::Name;
use crate::pattern;
use crate::role::Role;
use crate::rule::command::{self, Suspects};
use crate::rule::{Dimension, Effect, Rule};
use crate::words::Unsure;

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Their e-mail.
    pub email: &'a str,
    /// What they are.
    pub role: Role,
    /// The groups they are in.
    pub groups: &'a [String],
}

/// What is asked for, as it would run: with the image and the queue that stand in for what was left out.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// A shell command; or, where there are `args`, a program.
    pub command: &'a str,
    /// Arguments of the program, passed without a shell.
    pub args: Option<&'a [String]>,
    /// The image's id.
    pub image: &'a str,
    /// The whole reference of a registered image. An id shows no more of it than its short name.
    pub reference: Option<&'a str>,
    /// The lock, if one is wanted.
    pub lock: Option<&'a str>,
    /// The queue.
    pub queue: &'a str,
    /// The secrets it is to be given.
    pub secrets: &'a [Name],
    /// The playbook this is a run of. Nothing else of it is judged then: it was written by whoever may write playbooks.
    pub playbook: Option<&'a str>,
}

/// What the rules come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may run.
    pub allowed: bool,
    /// Why, never empty: where it may not, everything that stands against it; else what lets it pass.
    pub decisions: Vec<Decision>,
}

/// One thing that was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The rule that decided; none where several did together, or where there was none.
    pub rule: Option<String>,
    /// What it decided.
    pub effect: Effect,
    /// Why, as a fragment for people.
    pub why: String,
}

/// Judges what is asked. The order of the rules is of no account, except that reasons come in it.
pub fn judge<'r>(rules: impl IntoIterator<Item = &'r Rule>, subject: &Subject<'_>, asked: &Asked<'_>) -> Verdict {
    let (denies, allows): (Vec<_>, Vec<_>) =
        rules.into_iter().filter(|rule| rule.applies_to(subject)).partition(|rule| rule.effect == Effect::Deny);
    let found = Found::new();
    let mut decisions: Vec<Decision> = denies.iter().filter_map(|rule| denied(rule, asked, &found)).collect();
    let judged = if asked.playbook.is_some() { &[Dimension::Playbooks][..] } else { &Dimension::ALL };
    for dimension in judged {
        let listing: Vec<&Rule> = allows.iter().copied().filter(|rule| rule.lists(*dimension)).collect();
        if !listing.is_empty() {
            decisions.extend(listed(&listing, *dimension, asked));
        }
    }
    let allowed = decisions.iter().all(|decision| decision.effect == Effect::Allow);
    if !allowed {
        decisions.retain(|decision| decision.effect == Effect::Deny);
    } else if decisions.is_empty() {
        decisions.push(Decision { rule: None, effect: Effect::Allow, why: "no rule denies it".into() });
    }
    Verdict { allowed, decisions }
}

/// Every command in what is asked, found when the first rule wants to know.
type Found = OnceCell<Result<Suspects, Unsure>>;

/// What a deny rule says, if it says anything.
fn denied(rule: &Rule, asked: &Asked<'_>, found: &Found) -> Option<Decision> {
    let mut listed: Vec<Dimension> = Dimension::ALL.into_iter().filter(|dimension| rule.lists(*dimension)).collect();
    let mut whys = Vec::new();
    if listed.is_empty() {
        whys.push("it denies everything".to_owned());
    } else if asked.playbook.is_some() {
        listed.retain(|dimension| *dimension == Dimension::Playbooks);
        if listed.is_empty() {
            return None;
        }
    }
    for dimension in listed {
        whys.push(match dimension {
            Dimension::Commands => denied_command(&rule.commands, found.get_or_init(|| Suspects::of(asked)))?,
            _ => denied_value(rule.patterns(dimension), dimension, asked)?,
        });
    }
    Some(Decision { rule: Some(rule.name.clone()), effect: Effect::Deny, why: with_reason(rule, &whys.join(", and ")) })
}

fn denied_command(patterns: &[String], suspects: &Result<Suspects, Unsure>) -> Option<String> {
    match suspects {
        Ok(suspects) => suspects.matched(patterns).map(|pattern| format!("the command matches `{pattern}`")),
        Err(unsure) => Some(format!("the command cannot be judged, because {unsure}, and some commands are denied")),
    }
}

fn denied_value(patterns: &[String], dimension: Dimension, asked: &Asked<'_>) -> Option<String> {
    values(dimension, asked).into_iter().find_map(|value| {
        let pattern = patterns.iter().find(|pattern| pattern::matches(pattern, value))?;
        Some(format!("the {} `{value}` matches `{pattern}`", dimension.noun()))
    })
}

/// What the rules that list a dimension say together.
fn listed(rules: &[&Rule], dimension: Dimension, asked: &Asked<'_>) -> Vec<Decision> {
    let noun = dimension.noun();
    match dimension {
        Dimension::Commands => vec![listed_command(rules, asked)],
        Dimension::Images => vec![listed_image(rules, asked)],
        Dimension::Playbooks if asked.playbook.is_none() => vec![outside(rules, "only playbooks may be run, and this is a plain command")],
        _ => values(dimension, asked)
            .into_iter()
            .map(|value| match find(rules, dimension, |pattern| pattern::matches(pattern, value)) {
                Some((rule, pattern)) => inside(rule, format!("the {noun} `{value}` matches `{pattern}`")),
                None => outside(rules, &format!("the {noun} `{value}` is not among those allowed")),
            })
            .collect(),
    }
}

/// An image is on a list by its whole reference or by its very id: a pattern that fits an id would let in whatever has the same short name.
fn listed_image(rules: &[&Rule], asked: &Asked<'_>) -> Decision {
    let whole = asked.reference.unwrap_or(asked.image);
    match find(rules, Dimension::Images, |pattern| pattern == asked.image || pattern::matches(pattern, whole)) {
        Some((rule, pattern)) => inside(rule, format!("the image `{whole}` matches `{pattern}`")),
        None => outside(rules, &format!("the image `{whole}` is not among those allowed")),
    }
}

fn listed_command(rules: &[&Rule], asked: &Asked<'_>) -> Decision {
    if let Some((rule, _)) = find(rules, Dimension::Commands, |pattern| pattern == command::ANYTHING) {
        return inside(rule, "it allows every command".into());
    }
    let commands = match command::simple(asked) {
        Ok(commands) => commands,
        Err(unsure) => {
            return outside(rules, &format!("the command cannot be judged, because {unsure}, and only some commands are allowed"));
        }
    };
    let mut first = None;
    for words in &commands {
        let Some(found) = find(rules, Dimension::Commands, |pattern| command::is_allowed(pattern, words)) else {
            return outside(
                rules,
                if commands.len() == 1 {
                    "the command is not among those allowed"
                } else {
                    "a part of the command is not among those allowed"
                },
            );
        };
        first = first.or(Some(found));
    }
    match first {
        Some((rule, pattern)) => inside(rule, format!("the command matches `{pattern}`")),
        None => outside(rules, "there is no command"),
    }
}

/// The first rule and pattern of a dimension that a value fits.
fn find<'r>(rules: &[&'r Rule], dimension: Dimension, fits: impl Fn(&str) -> bool) -> Option<(&'r Rule, &'r str)> {
    rules.iter().find_map(|rule| rule.patterns(dimension).iter().find(|pattern| fits(pattern)).map(|pattern| (*rule, pattern.as_str())))
}

fn inside(rule: &Rule, why: String) -> Decision {
    Decision { rule: Some(rule.name.clone()), effect: Effect::Allow, why }
}

fn outside(rules: &[&Rule], why: &str) -> Decision {
    let (rule, why) = match rules {
        [rule] => (Some(rule.name.clone()), with_reason(rule, why)),
        _ => {
            let names = rules.iter().map(|rule| format!("`{}`", rule.name)).collect::<Vec<_>>().join(", ");
            (None, format!("{why}; the rules {names} allow together what is allowed"))
        }
    };
    Decision { rule, effect: Effect::Deny, why }
}

fn with_reason(rule: &Rule, why: &str) -> String {
    rule.reason.as_ref().map_or_else(|| why.to_owned(), |reason| format!("{why}: {reason}"))
}

/// What is asked for in a dimension of plain values.
fn values<'a>(dimension: Dimension, asked: &Asked<'a>) -> Vec<&'a str> {
    match dimension {
        Dimension::Commands => Vec::new(),
        Dimension::Images => [asked.image].into_iter().chain(asked.reference).collect(),
        Dimension::Locks => asked.lock.into_iter().collect(),
        Dimension::Queues => vec![asked.queue],
        Dimension::Secrets => asked.secrets.iter().map(Name::as_str).collect(),
        Dimension::Playbooks => asked.playbook.into_iter().collect(),
    }
}
