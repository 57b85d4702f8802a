//! `backup`: a copy of the local server's store, logs and keys, made by the server while it runs.

use std::path::PathBuf;

use clap::Args;
use runvoy_client::Endpoint;

use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy backup /var/backups/runvoy-monday
  runvoy backup ./copy --data-dir /var/lib/runvoy

Run it on the server's machine, as the server's user. The backup contains the
server's keys.";

/// Arguments of `backup`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct BackupArgs {
    /// New directory for the backup
    destination: PathBuf,
}

impl BackupArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let destination = std::path::absolute(&self.destination)?;
        let Some(destination) = destination.to_str() else {
            return Err(Failure::usage("the destination is not UTF-8"));
        };
        refuse_other_server(session)?;
        // Only the server of this machine can be asked, and only by its own user, whom it knows by the socket.
        let client = session.keyless_client(Endpoint::Unix(session.running_socket().await?))?;
        let made = client.backup(destination).await?;
        session.note(Tone::Plain, &format!("Backed up to {}.", made.destination));
        Ok(0)
    }
}

/// A configured server is not the one of a data directory here: the copy would be of another one.
fn refuse_other_server(session: &Session) -> Result<(), Failure> {
    let settings = &session.settings;
    let by = match settings.endpoint.value {
        Some(_) => &settings.endpoint.origin,
        None if settings.profile_missing => &settings.profile.origin,
        None => return Ok(()),
    };
    Err(Failure::usage("only a server on this machine can be backed up")
        .why(format!("another server was chosen by: {by}"))
        .next("on the server's machine: runvoy backup DESTINATION --data-dir DIR"))
}
