//! What a command works with: settings, terminal and, once asked for, a client.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use runvoy_client::{Client, ClientError, Detail, Endpoint, OnRetry, Options, Retry, Revive};
use runvoy_wire::Rfc3339;

use crate::ambiguity;
use crate::config_file::{ProjectFile, UserFile, is_exposed};
use crate::duration::Seconds;
use crate::environment::Environment;
use crate::failure::{Failure, Kind, without_errno};
use crate::global::{Format, GlobalArgs};
use crate::jq::Jq;
use crate::local::LocalServer;
use crate::sanitize::one_line;
use crate::settings::{Origin, Settings, Sources, without_user};
use crate::short_id::{self, MIN_DIGITS, ShortIds};
use crate::terminal::{Terminal, Tone, paint};
use crate::times::Times;

/// One command line being carried out.
pub(crate) struct Session {
    pub(crate) global: GlobalArgs,
    pub(crate) environment: Environment,
    pub(crate) settings: Settings,
    pub(crate) user_file: UserFile,
    pub(crate) terminal: Terminal,
    /// What is written as JSON goes through it.
    pub(crate) jq: Option<Arc<Jq>>,
    /// Why the files of the configuration are left out, where they cannot be read.
    pub(crate) broken: Option<String>,
    local: &'static dyn LocalServer,
    /// The client that was made last: it knows which version the server has.
    pub(crate) asked: Mutex<Option<Client>>,
}

impl Session {
    pub(crate) fn new(
        global: GlobalArgs,
        environment: Environment,
        terminal: Terminal,
        local: &'static dyn LocalServer,
    ) -> Result<Self, Failure> {
        let files = (UserFile::load(&environment.user_file())?, ProjectFile::find(&environment.directory)?);
        Self::with_files(files, global, environment, (terminal, local))
    }

    /// For what must work also where the files do not, and so says what is wrong with them.
    pub(crate) fn without_files(
        global: GlobalArgs,
        environment: Environment,
        around: (Terminal, &'static dyn LocalServer),
        why: &Failure,
    ) -> Result<Self, Failure> {
        let session = Self::with_files(Default::default(), global, environment, around)?;
        Ok(Self { broken: Some(why.text(false).trim_end().replace('\n', "; ")), ..session })
    }

    fn with_files(
        (user_file, project): (UserFile, ProjectFile),
        global: GlobalArgs,
        environment: Environment,
        (terminal, local): (Terminal, &'static dyn LocalServer),
    ) -> Result<Self, Failure> {
        global.check()?;
        // Nothing is cut to the terminal where everything was asked for.
        let terminal = if global.is_wide() { Terminal { width: None, ..terminal } } else { terminal };
        let sources = Sources { flags: &global, environment: &environment, project: &project, user: &user_file };
        let settings = sources.resolve()?;
        let jq = global.jq.as_deref().map(Jq::new).transpose()?.map(Arc::new);
        Ok(Self { global, environment, settings, user_file, terminal, jq, broken: None, local, asked: Mutex::default() })
    }

    pub(crate) fn format(&self) -> Format {
        self.global.format()
    }

    /// Questions may be asked.
    pub(crate) fn may_ask(&self) -> bool {
        self.terminal.stdin_tty && !self.global.no_input && self.environment.get("RUNVOY_PROMPT_DISABLED").is_none()
    }

    /// A client of the configured server or, where none is configured, of the local one, which is started if need be.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let client = self.client(self.endpoint().await?, Retry::default())?;
        if let Some(path) = self.key_file().filter(|path| is_exposed(path)) {
            self.note(Tone::Warning, &one_line(&format!("{0} is readable by other users; run: chmod 600 {0}", path.display())));
        }
        if self.user_file.is_exposed() && self.user_file.text(self.settings.profile.value.as_deref(), "api_key").is_some() {
            self.note(Tone::Warning, &format!("{0} is readable by other users; run: chmod 600 {0}", self.user_file.path.display()));
        }
        Ok(client)
    }

    /// The file that the key in use was read from.
    pub(crate) fn key_file(&self) -> Option<&Path> {
        match self.settings.api_key.origin {
            _ if self.settings.endpoint.value.is_none() => None,
            Origin::Flag(_) => self.global.api_key_file.as_deref(),
            Origin::Variable("RUNVOY_API_KEY_FILE") => self.environment.get("RUNVOY_API_KEY_FILE").map(Path::new),
            _ => None,
        }
    }

    /// Where the server is.
    pub(crate) async fn endpoint(&self) -> Result<Endpoint, Failure> {
        if self.settings.profile_missing {
            let name = self.settings.profile.value.as_deref().unwrap_or_default();
            let file = &self.user_file.path;
            if file.as_os_str().is_empty() {
                return Err(Failure::usage(format!("no profile `{name}`: HOME is not set, so there is no configuration file"))
                    .next("set HOME, or choose the server with --endpoint URL"));
            }
            return Err(Failure::usage(format!("no profile `{name}` in {}", file.display()))
                .why(format!("the profile was chosen by: {}", self.settings.profile.origin))
                .next(format!("create it: runvoy configure --profile {name}")));
        }
        match self.configured_endpoint()? {
            Some(endpoint) => Ok(endpoint),
            None => self.local_socket().await.map(Endpoint::Unix),
        }
    }

    /// The socket of the local server, which is started if need be.
    pub(crate) async fn local_socket(&self) -> Result<PathBuf, Failure> {
        self.local.ensure(self.data_dir()?).await.map_err(|why| {
            Failure::other("cannot reach or start the local server")
                .why(why)
                .next("check its data directory, or choose a server with --endpoint URL")
        })
    }

    /// The data directory of the local server.
    fn data_dir(&self) -> Result<&Path, Failure> {
        self.settings.data_dir.value.as_deref().ok_or_else(|| {
            Failure::usage("no server is configured, and HOME is not set, so a local server has no data directory")
                .next("set the server with --endpoint URL or RUNVOY_API_ENDPOINT, and its key with RUNVOY_API_KEY")
                .next("or set HOME, to run commands on this machine")
        })
    }

    /// The socket of the local server, which must run: none is started.
    pub(crate) async fn running_socket(&self) -> Result<PathBuf, Failure> {
        let data_dir = self.data_dir()?;
        self.local.running(data_dir).await.ok_or_else(|| {
            Failure::other(format!("no server runs in the data directory {}", data_dir.display()))
                .next("choose the directory of a running server with --data-dir DIR; without a server, copy the directory itself")
        })
    }

    /// A client without a key, for the calls that need none. It starts no server.
    pub(crate) fn keyless_client(&self, endpoint: Endpoint) -> Result<Client, Failure> {
        let (ca_file, trace, on_retry) = (self.settings.ca_file.value.clone(), self.trace(), self.on_retry());
        let client = Client::new(Options { ca_file, trace, on_retry, ..Options::new(endpoint) })?;
        self.remember(&client);
        Ok(client)
    }

    /// Keeps the client that is asked, which learns the version of its server.
    pub(crate) fn remember(&self, client: &Client) {
        *self.asked.lock().expect("no panic holds it") = Some(client.clone());
    }

    /// This moment, by the clock of this machine.
    pub(crate) fn now(&self) -> Rfc3339 {
        Rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The moment this long ago, as queries write it.
    pub(crate) fn ago(&self, since: Seconds) -> String {
        let ms = i64::try_from(since.0.saturating_mul(1_000)).unwrap_or(i64::MAX);
        Rfc3339(self.now().0.saturating_sub(ms).max(0)).to_string()
    }

    /// The endpoint that is configured.
    pub(crate) fn configured_endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        let Some(text) = &self.settings.endpoint.value else {
            return Ok(None);
        };
        if self.global.data_dir.is_some() {
            // Nothing is stronger than a flag: the endpoint comes from another one.
            let other = if self.global.endpoint.is_some() { "--endpoint" } else { "--profile" };
            return Err(Failure::usage(format!("{other} and --data-dir choose different servers")).next("use only one of them"));
        }
        let invalid = |error: runvoy_client::InvalidEndpoint| {
            Failure::usage(format!("`{}` is {error}", without_user(text))).why(format!("it was set by: {}", self.settings.endpoint.origin))
        };
        text.parse().map(Some).map_err(invalid)
    }

    /// A client of `endpoint`.
    pub(crate) fn client(&self, endpoint: Endpoint, retry: Retry) -> Result<Client, Failure> {
        let local = self.settings.endpoint.value.is_none();
        // A key that was meant for some other server says nothing to the local one, which knows its caller by the socket.
        let api_key = if local { None } else { self.settings.api_key.value.clone() };
        if api_key.is_none() && matches!(endpoint, Endpoint::Tcp { .. }) {
            let mut failure = Failure::new(Kind::Authentication, format!("no API key for {endpoint}"));
            if let Some(withheld) = &self.settings.withheld {
                failure = failure.why(format!("{withheld}, and a key is never sent to another server"));
            }
            return Err(failure.next("set one: `runvoy configure`, --api-key-file FILE or RUNVOY_API_KEY"));
        }
        let (ca_file, on_retry) = (self.settings.ca_file.value.clone(), self.on_retry());
        let (trace, revive) = (self.trace(), self.revive());
        let client = Client::new(Options { api_key, ca_file, retry, on_retry, trace, revive, ..Options::new(endpoint) })?;
        self.remember(&client);
        Ok(client)
    }

    /// A local server may leave between being found and being asked: then it is found, or started, once more.
    fn revive(&self) -> Option<Revive> {
        let server = self.local;
        let data_dir = self.settings.data_dir.value.clone().filter(|_| self.settings.endpoint.value.is_none())?;
        Some(Arc::new(move || {
            let data_dir = data_dir.clone();
            Box::pin(async move { server.ensure(&data_dir).await.map(drop) })
        }))
    }

    /// Says that a call is repeated and why: a command that waits in silence looks as if it hung.
    fn on_retry(&self) -> Option<OnRetry> {
        let Terminal { moves, stderr_colour, .. } = self.terminal;
        (self.global.quiet < 2).then(|| -> OnRetry {
            Arc::new(move |error| {
                let details = error.refusal().map(|refusal| refusal.details.clone()).filter(|details| !details.is_empty());
                let why: Vec<String> = error.causes().into_iter().map(without_errno).chain(details).collect();
                let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(": ")) };
                let line = paint(&one_line(&format!("### runvoy: {error}{why}; retrying")), Tone::Warning, stderr_colour);
                // A spinner may stand in the line. A closed stderr cannot be reported anywhere.
                let _ = writeln!(io::stderr(), "{}{line}", if moves { "\r\x1b[K" } else { "" });
            })
        })
    }

    fn trace(&self) -> Option<runvoy_client::Trace> {
        let debug = self.environment.get("DEBUG").is_some_and(|topics| topics.split(',').any(|topic| topic == "api"));
        let shown = match self.global.verbose {
            _ if debug => Detail::Full,
            0 => return None,
            1 => Detail::Brief,
            _ => Detail::Full,
        };
        let colour = self.terminal.stderr_colour;
        Some(Arc::new(move |detail, line| {
            if detail <= shown {
                // A closed stderr cannot be reported anywhere.
                let _ = writeln!(io::stderr(), "{}", paint(&one_line(line), Tone::Dim, colour));
            }
        }))
    }

    /// The full id of an execution that was named by its id, or by a unique prefix or suffix.
    pub(crate) async fn resolve(&self, client: &Client, id: &str) -> Result<String, Failure> {
        let plain = id.replace('-', "").to_ascii_lowercase();
        if short_id::is_whole(&plain) {
            return Ok(plain);
        }
        if plain.len() < MIN_DIGITS {
            return Err(short_id::too_short(id));
        }
        match client.execution(&plain).await {
            Ok(execution) => Ok(execution.execution_id),
            Err(error) => Err(ambiguity::explain(client, error).await),
        }
    }

    /// Tells what in the user file has no effect.
    pub(crate) fn remark_on_user_file(&self) {
        for remark in self.user_file.remarks() {
            self.note(Tone::Warning, &remark);
        }
    }

    /// Whether tables are made to fit a terminal: with short ids, and times as ages.
    pub(crate) fn is_compact(&self) -> bool {
        self.terminal.width.is_some()
    }

    /// An id in a message on stderr: short on a terminal, whole for programs.
    pub(crate) fn short<'a>(&self, id: &'a str) -> &'a str {
        ShortIds::of(self.terminal.stderr_tty && !self.global.is_wide(), [id]).show(id)
    }

    /// How times are shown in a table.
    pub(crate) fn times(&self) -> Times {
        Times { now: self.now(), is_compact: self.is_compact() }
    }

    /// A remark on stderr; `-q` leaves it out.
    pub(crate) fn note(&self, tone: Tone, text: &str) {
        if self.global.quiet == 0 {
            // A closed stderr cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "{}", paint(text, tone, self.terminal.stderr_colour));
        }
    }

    /// A result on stderr; only `-qq` leaves it out.
    pub(crate) fn tell(&self, text: &str) {
        if self.global.quiet < 2 {
            // A closed stderr cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Data on stdout.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Tells what the server wants to have confirmed, and asks.
    pub(crate) fn confirm_refused(&self, error: &ClientError, question: &str) -> Result<(), Failure> {
        let details = error.refusal().map(|refusal| format!(": {}", refusal.details)).unwrap_or_default();
        self.note(Tone::Warning, &one_line(&format!("{error}{details}")));
        self.confirm(question)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixListener;

    use super::*;

    /// A server that has left when it is asked, and is there when it was looked for once more.
    #[derive(Default)]
    struct Leaving {
        looked_for: AtomicUsize,
    }

    #[async_trait::async_trait]
    impl LocalServer for Leaving {
        async fn ensure(&self, data_dir: &Path) -> Result<PathBuf, String> {
            let socket = data_dir.join("sock");
            if self.looked_for.fetch_add(1, Ordering::SeqCst) == 1 {
                let listener = UnixListener::bind(&socket).map_err(|error| error.to_string())?;
                tokio::spawn(answer_one(listener));
            }
            Ok(socket)
        }

        async fn running(&self, _: &Path) -> Option<PathBuf> {
            None
        }
    }

    async fn answer_one(listener: UnixListener) {
        let (mut stream, _) = listener.accept().await.expect("the client comes");
        let body = r#"{"status":"ok","version":"0.1.0","provider":"local"}"#;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut request).await.expect("open"), 0, "a whole request");
        }
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.expect("read");
    }

    #[tokio::test]
    async fn a_local_server_that_leaves_before_it_is_asked_is_looked_for_again() {
        let home = tempfile::tempdir().expect("a directory");
        let global = GlobalArgs { data_dir: Some(home.path().to_owned()), ..GlobalArgs::default() };
        let environment = Environment::new([("HOME", home.path().to_str().expect("UTF-8"))], home.path());
        let terminal = Terminal::of_process(global.color, &environment);
        let local: &'static Leaving = Box::leak(Box::default());
        let session = Session::new(global, environment, terminal, local).expect("nothing is configured");
        let client = session.connect().await.expect("a socket was named");
        assert_eq!(client.health().await.expect("the second one answers").status, "ok");
        assert_eq!(local.looked_for.load(Ordering::SeqCst), 2);
    }
}
