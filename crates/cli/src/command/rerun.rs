//! `rerun`: the same work again, as a new execution.

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::run::StayArgs;
use crate::attach::interrupts;
use crate::complete;
use crate::failure::Failure;
use crate::holder;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  runvoy rerun 4f2a9c      # the same command, environment and lock
  runvoy rerun -d 4f2a9c   # print the new id and return";

/// Arguments of `rerun`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct RerunArgs {
    /// Execution id; the last six digits are enough
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
    id: String,
    /// Submit once, however often it is repeated
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    stay: StayArgs,
}

impl RerunArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        self.stay.check(session)?;
        let mut interrupts = interrupts()?;
        let client = session.connect().await?;
        let id = session.resolve(&client, &self.id).await?;
        match client.rerun(&id, self.idempotency_key).await {
            Ok(response) => self.stay.stay(session, &client, response, &mut interrupts).await,
            Err(error) => Err(holder::explain(&client, error).await),
        }
    }
}
