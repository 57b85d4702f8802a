//! `alerts`: testing the delivery of messages about incidents.

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy alerts test   # for admins
  runvoy doctor        # shows whether the last message was delivered";

/// Arguments of `alerts`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct AlertsArgs {
    #[command(subcommand)]
    command: AlertsCommand,
}

/// What to do about alerts.
#[derive(Debug, Clone, Copy, Subcommand)]
enum AlertsCommand {
    /// Send a test message
    #[command(before_help = "Examples:\n  runvoy alerts test")]
    Test,
}

impl AlertsArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let AlertsCommand::Test = self.command;
        let answer = session.connect().await?.test_alert().await?;
        session.show(&answer, || vec![answer.place.clone()], String::new)?;
        session.note(Tone::Good, &one_line(&answer.message));
        Ok(0)
    }
}
