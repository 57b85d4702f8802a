//! `wait`: until an execution finishes.

use std::time::{Duration, Instant};

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::attach::interrupts;
use crate::complete;
use crate::duration::Seconds;
use crate::failure::{Failure, INTERRUPTED};
use crate::global::Format;
use crate::session::Session;
use crate::summary;

const EXAMPLES: &str = "\
Examples:
  runvoy wait 4f2a9c                 # exits with the command's exit code
  runvoy wait --timeout 10m 4f2a9c   # stop waiting after ten minutes";

/// How long one question waits at the server.
const STEP: Duration = Duration::from_secs(30);

/// Arguments of `wait`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct WaitArgs {
    /// Execution id; the last six digits are enough
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
    id: String,
    /// Stop waiting after this time, such as 90s or 10m
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Seconds>,
}

impl WaitArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let mut interrupts = interrupts()?;
        tokio::select! {
            waited = self.wait(session) => waited,
            _ = interrupts.recv() => Ok(INTERRUPTED),
        }
    }

    async fn wait(&self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let id = session.resolve(&client, &self.id).await?;
        let started = Instant::now();
        loop {
            let left = self.timeout.map_or(STEP, |timeout| Duration::from(timeout).saturating_sub(started.elapsed()));
            let status = client.wait(&id, left.min(STEP)).await?;
            if status.status.is_terminal() {
                match session.format() {
                    Format::Table => {
                        session.tell(&summary::line(&status, session.short(&status.execution_id), session.terminal.stderr_colour))
                    }
                    _ => session.show(&status, || vec![status.execution_id.clone()], String::new)?,
                }
                return Ok(summary::exit_code(&status));
            }
            if left.is_zero() {
                return Err(Failure::other(format!("execution {id} has not finished: {}", status.status))
                    .next(format!("wait longer: runvoy wait {id}")));
            }
        }
    }
}
