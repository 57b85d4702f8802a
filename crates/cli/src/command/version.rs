//! `version`: of this program and, where a server is configured and answers at once, of that server.

use std::time::Duration;

use clap::Args;
use runvoy_client::{Client, Options, Retry};
use serde::Serialize;

use crate::failure::Failure;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  runvoy version
  runvoy version --json";

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long the server may take.
const LIMIT: Duration = Duration::from_secs(1);

/// Arguments of `version`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct VersionArgs {}

#[derive(Serialize)]
struct Versions {
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
}

impl VersionArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let versions = Versions { version: VERSION, server_version: server_version(session).await };
        let table = || match &versions.server_version {
            Some(server) => format!("runvoy {VERSION}\nserver {server}\n"),
            None => format!("runvoy {VERSION}\n"),
        };
        session.show(&versions, || vec![VERSION.to_owned()], table)?;
        Ok(0)
    }
}

/// Health needs no key, and a local server is not started only to ask for its version.
async fn server_version(session: &Session) -> Option<String> {
    let endpoint = session.configured_endpoint().ok()??;
    let options = Options { retry: Retry::NONE, ca_file: session.settings.ca_file.value.clone(), ..Options::new(endpoint) };
    let client = Client::new(options).ok()?;
    Some(tokio::time::timeout(LIMIT, client.health()).await.ok()?.ok()?.version)
}
