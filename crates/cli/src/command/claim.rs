//! `claim`: turns the one-time token of an invitation into a key, and saves it. Whatever can go wrong here is looked for before the token
//! is spent, for it is good once.

use std::io::{self, Read as _};

use clap::Args;
use runvoy_client::{ClientError, Endpoint};
use serde::Serialize;

use crate::config_file::UserFile;
use crate::failure::Failure;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::settings::Origin;
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy claim 4xT2Qm --endpoint https://runvoy.example.com
  runvoy claim 4xT2Qm --profile prod --endpoint https://runvoy.example.com
  pbpaste | runvoy claim -   # read the token from stdin";

/// Arguments of `claim`. Endpoint and profile are the global flags.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct ClaimArgs {
    /// Token of the invitation; - reads it from stdin
    #[arg(allow_hyphen_values = true)]
    token: String,
}

/// What was done. The key itself is in the user file, and nowhere else.
#[derive(Serialize)]
struct Claimed {
    user_email: String,
    endpoint: String,
    profile: Option<String>,
    path: String,
}

impl ClaimArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let token = self.token()?;
        let endpoint = session.configured_endpoint()?.ok_or_else(|| {
            Failure::usage("no server is configured").next("choose one: runvoy claim TOKEN --endpoint https://runvoy.example.com")
        })?;
        let profile = session.settings.profile.value.as_deref();
        let mut file = session.user_file.clone();
        if file.path.as_os_str().is_empty() {
            return Err(Failure::usage("HOME is not set, so the key cannot be stored"));
        }
        make_room(session, &file, profile, &endpoint)?;
        let claimed = session.keyless_client(endpoint.clone())?.claim(&token).await.map_err(explain)?;
        file.set(profile, "api_endpoint", Some(&endpoint.to_string()))?;
        file.set(profile, "api_key", Some(claimed.api_key.expose()))?;
        if let Err(failure) = file.save() {
            // The token is spent and the key is nowhere else: it must not be lost.
            session.print(&format!("{}\n", claimed.api_key.expose()))?;
            return Err(failure.next("the key is on stdout; save it with: runvoy configure --api-key-stdin"));
        }
        if session.environment.get("RUNVOY_API_KEY").is_some() {
            session.note(Tone::Warning, "RUNVOY_API_KEY is set and overrides the saved key; unset it");
        }
        let path = file.path.display().to_string();
        let told = match profile {
            Some(profile) => format!("Signed in as {}. The key is saved in {path}, profile {profile}.", claimed.user_email),
            None => format!("Signed in as {}. The key is saved in {path}.", claimed.user_email),
        };
        let name = claimed.user_email.clone();
        // A flag says which profile this command uses, and no other.
        let next = profile.filter(|_| matches!(session.settings.profile.origin, Origin::Flag(_)));
        let done = Claimed { user_email: claimed.user_email, endpoint: endpoint.to_string(), profile: profile.map(str::to_owned), path };
        let code = session.report(&done, &name, &told)?;
        if let Some(profile) = next {
            let usage = format!("  use it: add --profile {profile}, or for every command: runvoy profile use {profile}");
            session.note(Tone::Plain, &one_line(&usage));
        }
        Ok(code)
    }

    fn token(&self) -> Result<String, Failure> {
        let mut token = self.token.clone();
        if token == "-" {
            token.clear();
            io::stdin().read_to_string(&mut token)?;
        }
        let token = token.trim();
        if token.is_empty() || token.contains(char::is_whitespace) {
            return Err(Failure::usage("the token is empty or more than one word"));
        }
        Ok(token.to_owned())
    }
}

/// Makes sure that the key will have a place: one that can be written, and where no other key is lost unasked.
fn make_room(session: &Session, file: &UserFile, profile: Option<&str>, endpoint: &Endpoint) -> Result<(), Failure> {
    if file.text(profile, "api_key").is_some() {
        let stored = file.text(profile, "api_endpoint").unwrap_or_default();
        let place = profile.map_or_else(|| file.path.display().to_string(), |profile| format!("profile {profile}"));
        if stored.parse::<Endpoint>().ok().as_ref() != Some(endpoint) {
            return Err(Failure::usage(format!("{place} already has the key of another server"))
                .why(format!("it belongs to {stored}"))
                .next("claim into a profile of its own: runvoy claim TOKEN --profile NAME --endpoint URL"));
        }
        session.confirm(&format!("Replace the key of {endpoint} in {place}"))?;
    }
    file.save()
}

fn explain(error: ClientError) -> Failure {
    let status = error.refusal().map(|refusal| refusal.status);
    let failure = Failure::from(error);
    match status {
        Some(400) => failure.instead("copy the whole token, or ask the admin who invited you for a new one"),
        Some(404 | 409) => failure
            .reworded("the token is unknown, used up or expired")
            .instead("ask the admin who invited you for a new one: runvoy users renew EMAIL"),
        _ => failure,
    }
}
