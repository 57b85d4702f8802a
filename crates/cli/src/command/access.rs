//! `access explain`: whether a user may do something, and which rule decided.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_client::AccessQuery;
use runvoy_wire::{Effect, Explanation};

use crate::complete;
use crate::failure::{Failure, GENERAL};
use crate::session::Session;
use crate::table::{Cell, facts, render};
use crate::terminal::{Tone, paint};

const EXAMPLES: &str = "\
Examples:
  runvoy access explain ana@example.com run --command 'make apply' --lock prod
  runvoy access explain me kill --execution 4f2a9c
  runvoy access explain ana@example.com run --playbook deploy --json";

/// Every action that can be asked about, in the words of the server.
pub const ACTIONS: [&str; 28] = [
    "run",
    "read",
    "kill",
    "redrive",
    "share_log",
    "read_locks",
    "release_lock",
    "read_images",
    "manage_images",
    "read_secrets",
    "write_secrets",
    "rotate_sealing_key",
    "read_playbooks",
    "manage_playbooks",
    "manage_users",
    "manage_keys",
    "explain_access",
    "read_audit",
    "trace",
    "reconcile",
    "read_queues",
    "manage_queues",
    "manage_workers",
    "lease",
    "diagnose",
    "metrics",
    "backup",
    "know_self",
];

/// The word for the caller.
const MYSELF: &str = "me";

/// Arguments of `access`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct AccessArgs {
    #[command(subcommand)]
    command: AccessCommand,
}

/// What to ask about access.
#[derive(Debug, Clone, Subcommand)]
enum AccessCommand {
    /// Explain whether a user may do something, and why
    #[command(before_help = EXAMPLES)]
    Explain(ExplainArgs),
}

/// The case to explain.
#[derive(Debug, Clone, Args)]
struct ExplainArgs {
    /// E-mail of the user, or `me`
    #[arg(add = ArgValueCompleter::new(complete::users))]
    user: String,
    /// Action: run, read, kill, redrive, share_log, read_locks, release_lock, read_images, manage_images, read_secrets,
    /// write_secrets, rotate_sealing_key, read_playbooks, manage_playbooks, manage_users, manage_keys, explain_access, read_audit, trace, reconcile,
    /// read_queues, manage_queues, manage_workers, lease, diagnose, metrics, backup or know_self
    #[arg(add = ArgValueCompleter::new(complete::actions))]
    action: String,
    /// Command to run
    #[arg(long)]
    command: Option<String>,
    /// Image to run in
    #[arg(long, add = ArgValueCompleter::new(complete::images))]
    image: Option<String>,
    /// Lock to hold
    #[arg(long, add = ArgValueCompleter::new(complete::locks))]
    lock: Option<String>,
    /// Queue to submit to
    #[arg(long)]
    queue: Option<String>,
    /// Secret to use
    #[arg(long, add = ArgValueCompleter::new(complete::secrets))]
    secret: Option<String>,
    /// Playbook to run
    #[arg(long, add = ArgValueCompleter::new(complete::playbooks))]
    playbook: Option<String>,
    /// Execution to act on; the last six digits are enough
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
    execution: Option<String>,
}

impl AccessArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let AccessCommand::Explain(asked) = self.command;
        let client = session.connect().await?;
        let execution = match &asked.execution {
            Some(id) => Some(session.resolve(&client, id).await?),
            None => None,
        };
        let query = AccessQuery {
            user: Some(asked.user).filter(|user| user != MYSELF),
            action: asked.action,
            command: asked.command,
            image: asked.image,
            lock: asked.lock,
            queue: asked.queue,
            secret: asked.secret,
            playbook: asked.playbook,
            execution,
        };
        let answer = client.explain(&query).await?;
        let word = if answer.allowed { "allowed" } else { "denied" };
        session.show(&answer, || vec![word.to_owned()], || describe(&answer, word, session.terminal.stdout_colour))?;
        Ok(if answer.allowed { 0 } else { GENERAL })
    }
}

fn describe(answer: &Explanation, word: &str, colour: bool) -> String {
    let heading = paint(word, if answer.allowed { Tone::Good } else { Tone::Bad }, colour);
    let decided = facts(
        [
            ("user", Some(answer.user.clone())),
            ("role", Some(answer.role.clone())),
            ("action", Some(answer.action.clone())),
            ("decided by", Some(answer.rule.clone())),
            ("why", Some(answer.why.clone())),
        ],
        colour,
    );
    let row = |verdict: &runvoy_wire::Verdict| {
        let tone = if verdict.effect == Effect::Deny { Tone::Bad } else { Tone::Good };
        vec![Cell::new(verdict.effect.as_str(), tone), (&verdict.rule).into(), (&verdict.why).into()]
    };
    let rules = render(&[], &answer.rules.iter().map(row).collect::<Vec<_>>(), None, colour);
    format!("{heading}\n{decided}{rules}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_action() {
        let command = AccessArgs::augment_args(clap::Command::new("access"));
        let mut explain = command.find_subcommand("explain").expect("there").clone();
        let help = explain.render_long_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let (last, rest) = ACTIONS.split_last().expect("not empty");
        assert!(help.contains(&format!("Action: {} or {last}", rest.join(", "))), "{help}");
    }

    #[test]
    fn the_rule_that_decided_is_named_first() {
        let text = r#"{"allowed":false,"rule":"no-prod","why":"lock prod matches prod*","user":"ana@example.com","role":"developer","action":"run",
            "rules":[{"rule":"no-prod","effect":"deny","why":"lock prod matches prod*"}]}"#;
        let answer: Explanation = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(describe(&answer, "denied", false), @r"
        denied
        user        ana@example.com
        role        developer
        action      run
        decided by  no-prod
        why         lock prod matches prod*
        deny  no-prod  lock prod matches prod*
        ");
    }
}
