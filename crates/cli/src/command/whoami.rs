//! `whoami`: your user and role on the server.

use clap::Args;
use runvoy_wire::Whoami;
use serde::Serialize;

use crate::expiry;
use crate::failure::Failure;
use crate::session::Session;
use crate::table::facts;
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy whoami
  runvoy whoami --json | jq -r .role";

/// Arguments of `whoami`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct WhoamiArgs {}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    whoami: Whoami,
    endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
}

impl WhoamiArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let client = session.connect().await?;
        let whoami = client.whoami().await?;
        let answer = Answer { whoami, endpoint: client.endpoint().to_string(), profile: session.settings.profile.value.clone() };
        session.show(&answer, || vec![answer.whoami.email.clone()], || describe(&answer, session.terminal.stdout_colour))?;
        if let Some(remark) = expiry::remark(answer.whoami.key_expires_at, session.now()) {
            session.note(Tone::Warning, &remark);
        }
        Ok(0)
    }
}

fn describe(answer: &Answer, colour: bool) -> String {
    let whoami = &answer.whoami;
    let key = match (&whoami.key_prefix, whoami.key_expires_at) {
        (None, _) => "none needed on the local socket".to_owned(),
        (Some(prefix), None) => format!("{prefix}…, does not expire"),
        (Some(prefix), Some(at)) => format!("{prefix}…, expires {at}"),
    };
    facts(
        [
            ("user", Some(whoami.email.clone())),
            ("role", Some(whoami.role.clone())),
            ("groups", Some(whoami.groups.join(" "))),
            ("rules", Some(whoami.rules.join(" "))),
            ("key", Some(key)),
            ("profile", answer.profile.clone()),
            ("endpoint", Some(answer.endpoint.clone())),
            ("server", Some(whoami.server_version.clone())),
        ],
        colour,
    )
}
