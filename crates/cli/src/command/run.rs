//! `run`: submit a command and follow it.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use runvoy_client::Submission;
use runvoy_wire::{RunRequest, RunResponse, Status};
use serde::Serialize;

use super::dry_run;
use super::terms::{OPTIONS, TermsArgs};
use crate::attach::{Attach, interrupts};
use crate::environment::Environment;
use crate::failure::{Failure, INTERRUPTED};
use crate::global::Format;
use crate::holder;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::terminal::Tone;
use crate::web_page;

const EXAMPLES: &str = "\
Examples:
  runvoy run 'make deploy'                     # a shell command
  runvoy run -- ls -l 'my file'                # a program and its arguments
  runvoy run --lock prod --wait 10m -e TOKEN 'make apply'
  id=$(runvoy run -d 'make build')             # print only the id

The command runs in an empty work directory and reads no standard input. Give
it files with --git-repo, or as absolute paths on the worker's machine. Options
go before a program; after one quoted command they may follow.";

/// Where a command runs.
const WORK_DIRECTORY: &str = "the command runs in an empty work directory";
/// How to give it files.
const HOW_TO_GIVE_FILES: &str = "clone it with --git-repo, or use an absolute path on the worker's machine";

/// How long a detached submit may take to say what it waits for.
const WAIT_REMARK_LIMIT: Duration = Duration::from_secs(2);

/// Arguments of `run`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct RunArgs {
    /// One word is a shell command, several are a program and its arguments
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true, hide = true)]
    command: Vec<String>,
    #[command(flatten)]
    terms: TermsArgs,
    /// Submit once, however often it is repeated
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Show what would happen; run nothing
    #[arg(long, conflicts_with_all = ["idempotency_key", "detach", "kill_on_interrupt", "raw", "web"])]
    dry_run: bool,
    #[command(flatten)]
    stay: StayArgs,
}

/// How `run`, `rerun` and `playbook run` follow what they submitted.
#[derive(Debug, Clone, Args)]
pub struct StayArgs {
    /// Print the id and return; do not follow
    #[arg(short, long)]
    detach: bool,
    /// Kill the execution on Ctrl-C
    #[arg(long, conflicts_with = "detach")]
    kill_on_interrupt: bool,
    /// Pass every escape sequence to the terminal
    #[arg(long, conflicts_with = "detach")]
    raw: bool,
    /// Open its web page in a browser
    #[arg(long)]
    web: bool,
}

impl RunArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let request = self.request(&session.environment)?;
        if self.dry_run {
            let plan = session.connect().await?.dry_run(&request).await;
            let plan = plan.map_err(|error| Failure::from(error).in_options(&OPTIONS))?;
            return dry_run::show(session, &plan, request.git_token.as_deref());
        }
        let missing = missing_here(&request, &session.environment.directory);
        let submitted = self.stay.submit(session, &Submission::new(request, self.idempotency_key)).await;
        let code = submitted.map_err(|failure| failure.in_options(&OPTIONS))?;
        if let Some(name) = missing.filter(|_| code != 0 && code != INTERRUPTED) {
            session
                .note(Tone::Warning, &format!("hint: {WORK_DIRECTORY}, where `{}` does not exist\n  {HOW_TO_GIVE_FILES}", one_line(&name)));
        }
        Ok(code)
    }

    /// Nothing is run, so that no exit code can be the command's.
    pub(crate) fn is_dry(&self) -> bool {
        self.dry_run
    }

    fn request(&self, environment: &Environment) -> Result<RunRequest, Failure> {
        let (command, args) = self.command.split_first().expect("clap requires one");
        let args = (!args.is_empty()).then(|| args.to_vec());
        let mut request = RunRequest { command: command.clone(), args, ..RunRequest::default() };
        self.terms.apply(&mut request, environment)?;
        Ok(request)
    }
}

impl StayArgs {
    /// Refuses a format that what is followed does not have: before anything is submitted.
    pub(crate) fn check(&self, session: &Session) -> Result<(), Failure> {
        if self.detach { Ok(()) } else { session.check_stream() }
    }

    /// Submits, and follows what was submitted.
    pub(crate) async fn submit(self, session: &Session, submission: &Submission) -> Result<u8, Failure> {
        self.check(session)?;
        let mut interrupts = interrupts()?;
        let submit = async {
            let client = session.connect().await?;
            match client.run(submission).await {
                Ok(response) => Ok::<_, Failure>((client, response)),
                Err(error) => Err(holder::explain(&client, error).await),
            }
        };
        let (client, response) = tokio::select! {
            submitted = submit => submitted?,
            _ = interrupts.recv() => {
                let key = &submission.idempotency_key;
                session.note(Tone::Warning, &format!("Interrupted before the server answered: the command may have been submitted.\n  \
                    repeat it without running it twice: add --idempotency-key {key}"));
                return Ok(INTERRUPTED);
            }
        };
        self.stay(session, &client, response, &mut interrupts).await
    }

    /// Prints the id, or follows to the end.
    pub(crate) async fn stay(
        self,
        session: &Session,
        client: &runvoy_client::Client,
        response: RunResponse,
        interrupts: &mut tokio::signal::unix::Signal,
    ) -> Result<u8, Failure> {
        let id = response.execution_id.clone();
        let page = web_page::address(session, client, &id, Some(&response.log_url));
        web_page::note(session, page.as_deref());
        if self.web {
            web_page::open(session, page.as_deref()).await?;
        }
        if self.detach {
            let written = match session.format() {
                Format::Json | Format::Yaml => session.show(&response, Vec::new, String::new),
                Format::Table | Format::Name => session.print(&format!("{id}\n")),
            };
            // It was submitted, and nothing else told its id.
            written.map_err(|failure| failure.next(format!("The execution keeps running. Follow it: runvoy logs -f {id}")))?;
            if response.status == Status::Pending && session.global.quiet == 0 {
                note_wait(session, client, &id).await;
            }
            return Ok(0);
        }
        let first = first_line(session, &response);
        let (kill_on_interrupt, raw, websocket_url) = (self.kill_on_interrupt, self.raw, response.websocket_url);
        Attach { session, client, id, first, websocket_url, kill_on_interrupt, raw }.run(interrupts).await
    }
}

/// A word of the command that names a file here by a relative path, where nothing brings files along.
fn missing_here(request: &RunRequest, directory: &Path) -> Option<String> {
    if request.git_repo.is_some() {
        return None;
    }
    let words: Vec<&str> = match &request.args {
        Some(args) => args.iter().map(String::as_str).collect(),
        None => request.command.split([' ', '\t', '\n', '\'', '"', '<', ';']).collect(),
    };
    // The work directory has `.` and `..` as well.
    let is_named = |path: &Path| path.is_relative() && path.file_name().is_some();
    let is_file_here = |word: &&str| is_named(Path::new(word)) && directory.join(word).exists();
    words.into_iter().find(is_file_here).map(str::to_owned)
}

/// What a program is told before the log.
#[derive(Serialize)]
struct Submitted<'a> {
    execution_id: &'a str,
    status: Status,
    log_url: &'a str,
}

/// The line that JSON begins with, so that a program knows the id while nothing is written yet. The stream's ticket is no part of it.
fn first_line(session: &Session, response: &RunResponse) -> String {
    if session.format() != Format::Json {
        return String::new();
    }
    let RunResponse { execution_id, status, log_url, .. } = response;
    let submitted = Submitted { execution_id, status: *status, log_url };
    let line = session.filtered(&submitted).unwrap_or_default();
    // A filter that looks for what lines of the log hold finds nothing in it.
    if session.jq.is_some() && line == "null\n" { String::new() } else { line }
}

/// Says what a detached execution waits for: it may wait for ever, and it is not followed.
async fn note_wait(session: &Session, client: &runvoy_client::Client, id: &str) {
    // It was submitted, whatever comes of this question.
    let Ok(Ok(status)) = tokio::time::timeout(WAIT_REMARK_LIMIT, client.status(id)).await else { return };
    if let Some(reason) = status.waiting_for {
        session
            .note(Tone::Warning, &format!("Waiting for {}.\n  check it: runvoy status {}", one_line(&reason.message), session.short(id)));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{Parser, Subcommand};

    use super::*;

    #[derive(Parser)]
    struct Root {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Subcommand)]
    enum Command {
        Run(Box<RunArgs>),
    }

    fn request(words: &[&str]) -> Result<RunRequest, String> {
        let words = ["runvoy", "run"].iter().chain(words).map(OsString::from).collect();
        let Root { command: Command::Run(run) } = crate::words::parse(words).map_err(|error| error.to_string())?;
        let environment = Environment::new([("TOKEN", "t"), ("EMPTY", "")], Path::new("/"));
        run.request(&environment).map_err(|failure| failure.text(false))
    }

    #[test]
    fn one_string_is_a_shell_command_and_several_are_a_program() {
        let one = request(&["echo $HOME; ls -l"]).expect("parses");
        assert_eq!((one.command.as_str(), one.args), ("echo $HOME; ls -l", None));
        let several = request(&["--lock", "prod", "--", "ls", "-l", "--lock", "my file"]).expect("parses");
        assert_eq!((several.command.as_str(), several.lock.as_deref()), ("ls", Some("prod")));
        assert_eq!(several.args, Some(vec!["-l".to_owned(), "--lock".to_owned(), "my file".to_owned()]));
        let after = request(&["make deploy", "--timeout", "1h30m"]).expect("flags may follow a shell command");
        assert_eq!((after.args, after.timeout), (None, Some(5_400)));
    }

    #[test]
    fn the_options_of_a_program_are_its_own() {
        for (words, args, lock) in [
            (
                &["--lock", "prod", "kubectl", "delete", "pods", "-l", "app=web", "-v"][..],
                &["delete", "pods", "-l", "app=web", "-v"][..],
                true,
            ),
            (&["ls", "--lock", "prod"], &["--lock", "prod"], false),
            (&["ls", "--", "-l"], &["--", "-l"], false),
            (&["--", "my tool", "--lock", "prod"], &["--lock", "prod"], false),
            (&["my tool", "file", "--lock", "prod"], &["file", "--lock", "prod"], false),
        ] {
            let request = request(words).expect("parses");
            assert_eq!(request.args.as_deref().unwrap_or_default(), args, "{words:?}");
            assert_eq!((request.lock.is_some(), request.labels.is_empty()), (lock, true), "{words:?}");
        }
        let both = request(&["make deploy", "--lock", "prod", "web"]).expect_err("neither a text nor a program");
        assert!(both.contains("`make deploy` is a shell command"), "{both}");
        assert!(request(&["make deploy", "--lokc", "prod"]).is_err());
    }

    #[test]
    fn secrets_and_a_repository_are_named_and_never_given() {
        let given = ["--secret", "aws", "--secret", "db", "--git-repo", "https://x/y.git", "--git-path", "a", "--git-token", "gh", "make"];
        let request = request(&given).expect("parses");
        assert_eq!(request.secrets, ["aws", "db"]);
        assert_eq!((request.git_path.as_deref(), request.git_token.as_deref(), request.git_ref), (Some("a"), Some("gh"), None));
    }

    #[test]
    fn an_option_with_an_empty_value_is_refused() {
        for flag in
            ["--lock", "--image", "--queue", "--secret", "--git-repo", "--git-ref", "--git-path", "--git-token", "--idempotency-key"]
        {
            let told = request(&[flag, "", "true"]).expect_err(flag);
            assert!(told.contains(&format!("{flag} is empty: is a variable unset?")) && told.contains("Usage: runvoy-cli run "), "{told}");
            assert!(request(&[&format!("{flag}="), "true"]).is_err(), "{flag}=");
        }
        assert!(request(&["-l", "", "true"]).expect_err("no label").contains("--label is empty"));
        let program = request(&["--lock", "prod", "--", "tool", "--lock", ""]).expect("the words of a program are its own");
        assert_eq!(program.args, Some(vec!["--lock".to_owned(), String::new()]));
    }

    #[test]
    fn a_relative_path_that_is_only_here_is_found_in_the_command() {
        let here = tempfile::tempdir().expect("a directory");
        std::fs::write(here.path().join("notes"), "x").expect("written");
        let absolute = here.path().join("notes").display().to_string();
        for (words, found) in [
            (&["cat", "notes"][..], Some("notes")),
            (&["cat 'notes' | wc -l"], Some("notes")),
            (&["wc<notes"], Some("notes")),
            (&["cat", &absolute], None),
            (&["cat", "other"], None),
            (&["grep -r x ."], None),
            (&["ls", "./", ".."], None),
            (&["cat", "./notes"], Some("./notes")),
            (&["--git-repo", "https://x/y.git", "cat", "notes"], None),
        ] {
            let request = request(words).expect("parses");
            assert_eq!(missing_here(&request, here.path()).as_deref(), found, "{words:?}");
        }
    }

    #[test]
    fn a_terminal_is_asked_for() {
        assert!(request(&["--tty", "top"]).expect("parses").terminal);
        assert!(!request(&["top"]).expect("parses").terminal);
    }

    #[test]
    fn variables_are_given_or_taken_from_here() {
        let env = request(&["-e", "A=1=2", "-e", "TOKEN", "-e", "EMPTY", "true"]).expect("parses").env;
        assert_eq!(env, [("A", "1=2"), ("EMPTY", ""), ("TOKEN", "t")].map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        for words in [
            &["-e", "MISSING", "true"][..],
            &["-e", "=x", "true"],
            &["-l", "novalue", "true"],
            &["--wait", "5m", "true"],
            &["--priority", "6", "true"],
            &["--git-ref", "main", "true"],
            &["--dry-run", "--detach", "true"],
            &[],
        ] {
            assert!(request(words).is_err(), "{words:?}");
        }
    }
}
