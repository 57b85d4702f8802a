//! `backup`: a copy of the local server's store, logs and keys, made by the server while it runs.

use std::path::PathBuf;

use clap::Args;
use runvoy_client::{Endpoint, Retry};

use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy backup /var/backups/runvoy-monday
  runvoy backup ./copy --data-dir /var/lib/runvoy";

/// Arguments of `backup`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct BackupArgs {
    /// Directory to make; it must not exist yet
    destination: PathBuf,
}

impl BackupArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let destination = std::path::absolute(&self.destination)?;
        let Some(destination) = destination.to_str() else {
            return Err(Failure::usage("the destination is not UTF-8"));
        };
        // Only the server of this machine can be asked, and only by its own user: the copy holds its keys.
        let socket = session.local_socket().await?;
        let client = session.client(Endpoint::Unix(socket), Retry::default())?;
        let made = client.backup(destination).await?;
        session.note(Tone::Plain, &format!("copied to {}", made.destination));
        Ok(0)
    }
}
