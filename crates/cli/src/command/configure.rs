//! `configure`: store a server's address and a key in the user file. The key is read hidden, from a file or from stdin, never from
//! an argument; what else is in the file stays.

use std::io::{self, Read as _, Write as _};

use clap::Args;
use runvoy_client::{Client, Endpoint, Options, Retry};
use serde::Serialize;

use crate::failure::{Failure, Kind};
use crate::global::Format;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::settings::Origin;
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy configure                            # prompts for server and key
  runvoy configure --profile prod --endpoint https://runvoy.example.com
  runvoy configure --profile prod --confirm   # require its name for changes
  pass show runvoy | runvoy configure --api-key-stdin";

/// Arguments of `configure`. Endpoint, key file and profile are the global flags.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct ConfigureArgs {
    /// Read the key from stdin
    #[arg(long, conflicts_with = "api_key_file")]
    api_key_stdin: bool,
    /// Save the URL of the web page too, for links
    #[arg(long, value_name = "URL")]
    web_url: Option<String>,
}

/// What was done. The key itself is in the user file, and nowhere else.
#[derive(Serialize)]
struct Configured<'a> {
    profile: Option<&'a str>,
    path: &'a str,
}

impl ConfigureArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        // What is stored is what commands given here will use.
        let profile = session.settings.profile.value.as_deref();
        let mut file = session.user_file.clone();
        if file.path.as_os_str().is_empty() {
            return Err(Failure::usage("HOME is not set, so the configuration cannot be saved"));
        }
        let stored = file.text(profile, "api_endpoint").map(str::to_owned);
        let endpoint = self.endpoint(session, stored.as_deref())?;
        let same_server = stored.and_then(|stored| stored.parse::<Endpoint>().ok()).is_some_and(|stored| stored == endpoint);
        // A key belongs to its server: for another one the stored key is of no use, and must not be sent there.
        let kept = file.text(profile, "api_key").map(str::to_owned).filter(|_| same_server);
        let key = self.key(session, kept)?;
        file.set(profile, "api_endpoint", Some(&endpoint.to_string()))?;
        file.set(profile, "api_key", key.as_deref())?;
        if let Some(web_url) = &self.web_url {
            file.set(profile, "web_url", Some(web_url))?;
        }
        if session.global.confirm.is_some() {
            let profile = profile.ok_or_else(|| Failure::usage("--confirm is for a profile").next("name it: --profile NAME"))?;
            file.set_asks(profile)?;
        }
        file.save()?;
        let path = file.path.display().to_string();
        match session.format() {
            Format::Table => {
                let place = profile.map(|profile| format!(", profile {profile}")).unwrap_or_default();
                session.note(Tone::Good, &one_line(&format!("Saved {path}{place}.")));
            }
            _ => session.show(&Configured { profile, path: &path }, || vec![path.clone()], String::new)?,
        }
        check(session, endpoint, key).await;
        Ok(0)
    }

    fn endpoint(&self, session: &Session, stored: Option<&str>) -> Result<Endpoint, Failure> {
        let text = if let Some(given) = &session.global.endpoint {
            given.clone()
        } else if session.may_ask() {
            let default = stored.unwrap_or("http://127.0.0.1:56212");
            let answer = ask(&format!("Endpoint [{}]: ", one_line(default)))?;
            if answer.is_empty() { default.to_owned() } else { answer }
        } else {
            let stored = stored.ok_or_else(|| cannot_ask("the endpoint", "--endpoint URL"))?;
            stored.to_owned()
        };
        text.parse::<Endpoint>().map_err(|error| Failure::usage(format!("`{}` is {error}", one_line(&text))))
    }

    fn key(&self, session: &Session, kept: Option<String>) -> Result<Option<String>, Failure> {
        if self.api_key_stdin {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            return present(&text).map(Some);
        }
        if session.settings.api_key.origin == Origin::Flag("--api-key-file") {
            return Ok(session.settings.api_key.value.clone());
        }
        if session.may_ask() {
            let hint = if kept.is_some() { "press Enter to keep the saved one" } else { "hidden" };
            let typed = rpassword::prompt_password(format!("API key ({hint}): "))
                .map_err(|error| Failure::other("cannot read the key").why(error.to_string()))?;
            return if typed.trim().is_empty() && kept.is_some() { Ok(kept) } else { present(&typed).map(Some) };
        }
        if kept.is_some() || self.web_url.is_some() && session.global.endpoint.is_none() {
            return Ok(kept);
        }
        Err(cannot_ask("the key", "--api-key-file FILE or --api-key-stdin"))
    }
}

fn present(text: &str) -> Result<String, Failure> {
    let key = text.trim();
    if key.is_empty() || key.contains(char::is_whitespace) {
        Err(Failure::usage("the key is empty or more than one word"))
    } else {
        Ok(key.to_owned())
    }
}

fn cannot_ask(what: &str, flag: &str) -> Failure {
    Failure::new(Kind::Cancelled, format!("{what} is missing, and there is no terminal to prompt on")).next(format!("pass it with {flag}"))
}

fn ask(question: &str) -> Result<String, Failure> {
    let mut stderr = io::stderr();
    write!(stderr, "{question}").and_then(|()| stderr.flush())?;
    let mut answer = String::new();
    if io::stdin().read_line(&mut answer)? == 0 {
        return Err(Failure::new(Kind::Cancelled, "cancelled"));
    }
    Ok(answer.trim().to_owned())
}

/// Says whether the server takes the key. What was saved stays either way: the server may only be away.
async fn check(session: &Session, endpoint: Endpoint, api_key: Option<String>) {
    let options = Options { api_key, ca_file: session.settings.ca_file.value.clone(), retry: Retry::NONE, ..Options::new(endpoint) };
    let answer = match Client::new(options) {
        Ok(client) => {
            session.remember(&client);
            client.whoami().await
        }
        Err(error) => Err(error),
    };
    match answer {
        Ok(whoami) => session.note(Tone::Good, &one_line(&format!("Signed in as {} ({}).", whoami.email, whoami.role))),
        Err(error) => session.note(Tone::Warning, &one_line(&format!("Saved, but not verified: {error}; try `runvoy doctor`"))),
    }
}
