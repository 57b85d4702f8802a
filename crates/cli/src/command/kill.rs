//! `kill`: end an execution.

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_client::Killed;
use runvoy_wire::KillResponse;

use crate::complete;
use crate::failure::Failure;
use crate::global::Format;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy kill 0192ab34           # SIGTERM, and SIGKILL for what is left after its grace period
  runvoy kill --force 0192ab34   # SIGKILL at once
  runvoy kill --yes 0192ab34     # without the question that a terminal is asked";

/// Arguments of `kill`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct KillArgs {
    /// Execution: its id, or six or more digits of its beginning or end
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
    id: String,
    /// Give it no time to end by itself
    #[arg(short, long)]
    force: bool,
}

impl KillArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        session.confirm_at_terminal(&format!("kill execution {}", self.id))?;
        let client = session.connect().await?;
        let id = session.resolve(&client, &self.id).await?;
        let answer = match client.kill(&id, self.force).await? {
            Killed::Asked(answer) => answer,
            Killed::AlreadyEnded => KillResponse { execution_id: id, message: "it had already ended".to_owned() },
        };
        match session.format() {
            Format::Table => session.note(Tone::Plain, &one_line(&format!("{}: {}", answer.execution_id, answer.message))),
            _ => session.show(&answer, || vec![answer.execution_id.clone()], String::new)?,
        }
        Ok(0)
    }
}
