//! `kill`: stop an execution.

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
  runvoy kill 4f2a9c           # SIGTERM, then SIGKILL after the grace period
  runvoy kill --force 4f2a9c   # SIGKILL at once
  runvoy kill --yes 4f2a9c     # without confirmation";

/// Arguments of `kill`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct KillArgs {
    /// Execution id; the last six digits are enough
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
    id: String,
    /// Send SIGKILL at once, without a grace period
    #[arg(short, long)]
    force: bool,
}

impl KillArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        session.confirm_at_terminal(&format!("Kill execution {}", self.id))?;
        let client = session.connect().await?;
        let id = session.resolve(&client, &self.id).await?;
        let answer = match client.kill(&id, self.force).await? {
            Killed::Asked(answer) => answer,
            Killed::AlreadyEnded => KillResponse { execution_id: id, message: "it had already finished".to_owned() },
        };
        match session.format() {
            Format::Table => session.note(Tone::Plain, &one_line(&format!("{}: {}", session.short(&answer.execution_id), answer.message))),
            _ => session.show(&answer, || vec![answer.execution_id.clone()], String::new)?,
        }
        Ok(0)
    }
}
