//! `playbook run`: on the server with parameters, or from a file as an ordinary command.

use clap::{Args, FromArgMatches as _};
use clap_complete::ArgValueCompleter;
use runvoy_client::{Client, ClientError, Submission};
use runvoy_wire::RunPlaybookRequest;

use super::Named;
use super::show::{must_be_there, not_there, note_hidden};
use crate::attach::interrupts;
use crate::command::dry_run;
use crate::command::run::StayArgs;
use crate::command::terms::{TermsArgs, pairs};
use crate::complete;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::holder;
use crate::playbook::{Found, Shelf};
use crate::session::Session;

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy playbook run deploy -p region=eu -p count=3
  runvoy playbook run deploy@2 -p region=eu --wait 10m   # version 2
  runvoy playbook run plan --git-ref my-branch -e VERBOSE=1
  runvoy playbook run deploy -p region=eu --dry-run

Options of `runvoy run`, such as --image, --env and --timeout, override what a
playbook file says. For a playbook on the server only --wait applies.";

/// The options by the fields of the request that they set.
const OPTIONS: [(&str, &str); 2] = [("parameters", "--param"), ("lock_wait", "--wait")];

/// Arguments of `playbook run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Name of the playbook; NAME@VERSION on the server
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::playbooks))]
    named: Named,
    /// Parameter of a playbook on the server; repeatable
    #[arg(short, long = "param", value_name = "NAME=VALUE", add = ArgValueCompleter::new(complete::parameters))]
    parameter: Vec<String>,
    /// Use the file, not the playbook on the server
    #[arg(long)]
    local: bool,
    /// Show what would happen; run nothing
    #[arg(long, conflicts_with_all = ["idempotency_key", "detach", "kill_on_interrupt", "raw", "web"])]
    dry_run: bool,
    /// Submit once, however often it is repeated
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    stay: StayArgs,
    #[command(flatten, next_help_heading = crate::command::terms::HEADING)]
    terms: TermsArgs,
    /// Further options that override the file
    #[arg(last = true, value_name = "FLAGS")]
    overrides: Vec<String>,
}

impl RunArgs {
    pub(crate) fn is_dry(&self) -> bool {
        self.dry_run
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let overrides = trailing(&self.overrides)?;
        let shelf = Shelf::of(&session.environment);
        let found = shelf.find(&self.named.name)?;
        if self.local {
            let found = must_be_there(found, &self.named)?;
            return self.run_file(session, &found, &overrides).await;
        }
        let client = session.connect().await?;
        match client.playbook(&self.named.name, self.named.version).await {
            Ok(playbook) => {
                note_hidden(session, found);
                self.run_on_server(session, &client, &overrides, playbook.terms.git_token.as_deref()).await
            }
            Err(ClientError::NotFound(_)) if found.is_some() && self.named.version.is_none() => {
                let found = must_be_there(found, &self.named)?;
                self.run_file(session, &found, &overrides).await
            }
            Err(error) => Err(not_there(&client, error, &self.named).await),
        }
    }

    async fn run_file(self, session: &Session, found: &Found, overrides: &TermsArgs) -> Result<u8, Failure> {
        if !self.parameter.is_empty() {
            return Err(Failure::usage(format!("playbook {} is a file, and takes no parameters", found.name))
                .next("use options of `run`, such as -e NAME=VALUE, or upload it: runvoy playbook push"));
        }
        let mut request = found.read()?.request(&found.name)?;
        let environment: &Environment = &session.environment;
        self.terms.apply(&mut request, environment)?;
        overrides.apply(&mut request, environment)?;
        if self.dry_run {
            let plan = session.connect().await?.dry_run(&request).await?;
            return dry_run::show(session, &plan, request.git_token.as_deref());
        }
        self.stay.submit(session, &Submission::new(request, self.idempotency_key)).await
    }

    async fn run_on_server(
        self,
        session: &Session,
        client: &Client,
        overrides: &TermsArgs,
        git_token: Option<&str>,
    ) -> Result<u8, Failure> {
        let Named { name, version } = &self.named;
        if !self.terms.only_wait() || !overrides.only_wait() {
            return Err(Failure::usage(format!("playbook {name} runs as it was pushed; of the options of `run` only --wait applies"))
                .next(format!("pass parameters: runvoy playbook run {name} -p NAME=VALUE; see them: runvoy playbook show {name}")));
        }
        let parameters = pairs("--param", &self.parameter)?.into_iter().map(|(name, value)| (name, value.into())).collect();
        let lock_wait = overrides.wait.or(self.terms.wait).map(|wait| wait.0);
        let request = RunPlaybookRequest { parameters, version: *version, lock_wait };
        if self.dry_run {
            let plan = client.dry_run_playbook(name, &request).await;
            let plan = plan.map_err(|error| Failure::from(error).in_options(&OPTIONS));
            return dry_run::show(session, &plan?, git_token);
        }
        self.stay.check(session)?;
        let mut interrupts = interrupts()?;
        match client.run_playbook(name, &request, self.idempotency_key).await {
            Ok(response) => self.stay.stay(session, client, response, &mut interrupts).await,
            Err(error) => Err(holder::explain(client, error).await.in_options(&OPTIONS)),
        }
    }
}

/// What follows `--`: the flags of `run` again.
fn trailing(words: &[String]) -> Result<TermsArgs, Failure> {
    let command = TermsArgs::augment_args(clap::Command::new("overrides").no_binary_name(true).disable_help_flag(true));
    let parsed = command.try_get_matches_from(words).and_then(|matches| TermsArgs::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let told = error.to_string();
        let first = told.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::usage(format!("after --: {first}")).next("see the options: runvoy run --help")
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use runvoy_wire::RunRequest;

    use super::*;

    #[derive(Parser)]
    struct Root {
        #[command(flatten)]
        run: RunArgs,
    }

    fn request(words: &[&str]) -> Result<RunRequest, String> {
        let root = Root::try_parse_from(["run"].iter().chain(words)).map_err(|error| error.to_string())?;
        let env = [("REGION".to_owned(), "eu".to_owned())].into();
        let mut request = RunRequest { command: "make".into(), image: Some("alpine".into()), env, ..RunRequest::default() };
        let environment = Environment::new([], Path::new("/"));
        let overrides = trailing(&root.run.overrides).map_err(|failure| failure.text(false))?;
        for terms in [&root.run.terms, &overrides] {
            terms.apply(&mut request, &environment).map_err(|failure| failure.text(false))?;
        }
        Ok(request)
    }

    #[test]
    fn flags_replace_what_the_file_says_before_and_after_two_dashes() {
        for words in [
            &["plan", "--image", "debian", "-e", "REGION=us", "-e", "A=1"][..],
            &["plan", "--", "--image", "debian", "-e", "REGION=us", "-e", "A=1"],
        ] {
            let request = request(words).expect("parses");
            assert_eq!((request.image.as_deref(), request.env["REGION"].as_str(), request.env["A"].as_str()), (Some("debian"), "us", "1"));
        }
        assert_eq!(request(&["plan"]).expect("nothing given").image.as_deref(), Some("alpine"));
        let told = request(&["plan", "--", "--imag", "x"]).expect_err("a slip");
        assert!(told.contains("after --: unexpected argument '--imag'"), "{told}");
        assert!(request(&["plan", "--", "make", "it"]).is_err(), "a playbook's commands are its own");
    }

    #[test]
    fn a_name_may_carry_its_version() {
        assert_eq!("deploy@3".parse(), Ok(Named { name: "deploy".into(), version: Some(3) }));
        assert_eq!("team/deploy".parse(), Ok(Named { name: "team/deploy".into(), version: None }));
        for text in ["deploy@", "deploy@x", "@3", ""] {
            assert!(text.parse::<Named>().is_err(), "{text}");
        }
    }
}
