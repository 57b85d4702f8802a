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

Runs on the server's own machine as the server's user: the copy holds its keys.";

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
        refuse_other_server(session)?;
        // Only the server of this machine can be asked, and only by its own user, whom it knows by the socket.
        let client = session.keyless_client(Endpoint::Unix(session.running_socket().await?))?;
        let made = client.backup(destination).await?;
        session.note(Tone::Plain, &format!("copied to {}", made.destination));
        Ok(0)
    }
}

/// A server that somebody named is not the one of a data directory here: the copy would be of something else.
fn refuse_other_server(session: &Session) -> Result<(), Failure> {
    let settings = &session.settings;
    let by = match settings.endpoint.value {
        Some(_) => &settings.endpoint.origin,
        None if settings.profile_missing => &settings.profile.origin,
        None => return Ok(()),
    };
    Err(Failure::usage("a backup is of a data directory on this machine, and of no other server")
        .why(format!("another one was named by: {by}"))
        .next("on the server's machine: runvoy backup DESTINATION --data-dir DIR"))
}
