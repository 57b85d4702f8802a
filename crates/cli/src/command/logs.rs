//! `logs`: the lines of an execution, what is there or as it comes.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_client::{Client, ClientError, Follow, Followed, LogsQuery, Start};
use runvoy_wire::{Hit, Stream};

use crate::attach::interrupts;
use crate::complete;
use crate::duration::Seconds;
use crate::failure::{Failure, GENERAL, INTERRUPTED};
use crate::global::Format;
use crate::printer::{Layout, Printer};
use crate::sanitize::one_line;
use crate::session::Session;
use crate::sink::Sink;
use crate::terminal::Tone;
use crate::web_page;

const EXAMPLES: &str = "\
Examples:
  runvoy logs -f 4f2a9c                    # follow until it finishes
  runvoy logs --tail 20 --timestamps 4f2a9c
  runvoy logs --search 'error:' --lines 4f2a9c
  runvoy logs --link 4f2a9c                # a link that works without a key
  runvoy logs -f --json 4f2a9c | jq .message";

/// Arguments of `logs`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct LogsArgs {
    /// Execution id; the last six digits are enough
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::executions))]
    id: String,
    /// Follow until the execution finishes
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<u64>,
    /// Only lines of the last 45s, 10m or 1h30m
    #[arg(long, value_name = "DURATION")]
    since: Option<Seconds>,
    /// Prefix each line with its time
    #[arg(short, long)]
    timestamps: bool,
    /// Prefix each line with its number
    #[arg(long)]
    lines: bool,
    /// Only stdout, stderr or platform
    #[arg(long, value_name = "STREAM", hide_possible_values = true, value_parser = ["stdout", "stderr", "platform"])]
    stream: Option<String>,
    /// Only lines that contain this text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["follow", "tail", "since", "stream", "timestamps"])]
    search: Option<String>,
    /// Treat the text as a regular expression
    #[arg(long, requires = "search")]
    regex: bool,
    /// Pass every escape sequence to the terminal
    #[arg(long)]
    raw: bool,
    /// Print a link that works without a key for 48 hours
    #[arg(long, conflicts_with_all = ["follow", "tail", "since", "timestamps", "lines", "stream", "search", "raw"])]
    link: bool,
    /// Open its web page in a browser instead
    #[arg(long, conflicts_with_all = ["follow", "tail", "since", "timestamps", "lines", "stream", "search", "raw", "link"])]
    web: bool,
}

/// What `job logs` shows of each log.
#[derive(Debug, Clone, Args)]
pub(super) struct ShownArgs {
    /// Follow until the task, or the job, finishes
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Only the last N lines of each task
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) tail: Option<u64>,
    /// Prefix each line with its time
    #[arg(short, long)]
    pub(super) timestamps: bool,
    /// Only lines that contain this text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["follow", "tail", "timestamps"])]
    pub(super) search: Option<String>,
    /// Treat the text as a regular expression
    #[arg(long, requires = "search")]
    pub(super) regex: bool,
}

impl LogsArgs {
    /// Whether it changes something on the server: a link lets others in.
    pub(crate) fn changes(&self) -> bool {
        self.link
    }

    /// The log of the execution of a task.
    pub(super) fn of_task(id: String, shown: &ShownArgs) -> Self {
        let ShownArgs { follow, tail, timestamps, search, regex } = shown.clone();
        Self { id, follow, tail, since: None, timestamps, lines: false, stream: None, search, regex, raw: false, link: false, web: false }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        if !self.link && !self.web {
            session.check_stream()?;
        }
        let client = session.connect().await?;
        let id = session.resolve(&client, &self.id).await?;
        if self.link {
            let link = client.link(&id).await?;
            session.show(&link, || vec![link.url.expose().to_owned()], || format!("{}\n", link.url.expose()))?;
            session.note(Tone::Dim, &format!("Anyone with this link can read the log until {}.", link.expires_at));
            return Ok(0);
        }
        if let Some(text) = &self.search {
            return self.find(session, &client, &id, text).await;
        }
        let page = web_page::address(session, &client, &id, None);
        if self.web {
            return web_page::open(session, page.as_deref()).await.map(|()| 0);
        }
        web_page::note(session, page.as_deref());
        let mut interrupts = interrupts()?;
        let start = Start { from_line: self.first_line(&client, &id).await?, websocket_url: None, live: self.follow };
        let (follow, printer, sink) = (client.follow(&id, start), Printer::new(self.layout(session, &id)), Sink::start()?);
        let printed = tokio::select! {
            printed = self.print(session, follow, printer, &sink) => printed,
            () = sink.abandoned() => Ok(()),
            _ = interrupts.recv() => return Ok(INTERRUPTED),
        };
        // What arrived is written also where the rest could not be had.
        let written = tokio::select! {
            written = sink.finish() => written,
            _ = interrupts.recv() => return Ok(INTERRUPTED),
        };
        printed?;
        written?;
        Ok(0)
    }

    /// Prints what comes until the last line, or until nobody reads any more.
    async fn print(&self, session: &Session, mut follow: Follow, mut printer: Printer, sink: &Sink) -> Result<(), Failure> {
        while let Some(item) = follow.next().await {
            match item? {
                Followed::Batch(batch) => {
                    for piece in printer.render(&batch) {
                        if !sink.write(piece).await {
                            return Ok(());
                        }
                    }
                }
                Followed::Gap { from, to } => {
                    let text = format!("### runvoy: lines {from} to {} are missing: the server no longer has them", to - 1);
                    session.note(Tone::Warning, &text);
                }
                Followed::Interrupted(error) => {
                    session.note(Tone::Warning, &format!("### runvoy: connection lost ({error}), reconnecting"));
                }
                Followed::Status(_) => {}
            }
        }
        Ok(())
    }

    /// The line to begin with.
    async fn first_line(&self, client: &Client, id: &str) -> Result<u64, ClientError> {
        match self.tail {
            Some(tail) => line_of_tail(client, id, tail, self.wanted()).await,
            None => Ok(1),
        }
    }

    fn wanted(&self) -> Option<Stream> {
        [Stream::Stdout, Stream::Stderr, Stream::Platform].into_iter().find(|stream| Some(stream.as_str()) == self.stream.as_deref())
    }

    fn layout(&self, session: &Session, id: &str) -> Layout {
        let terminal = session.terminal;
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let since = self.since.map(|since| now_ms.saturating_sub(i64::try_from(since.0.saturating_mul(1_000)).unwrap_or(i64::MAX)));
        Layout {
            execution_id: id.to_owned(),
            split: false,
            only: self.wanted(),
            no_platform: session.global.quiet > 0,
            since,
            timestamps: self.timestamps,
            numbers: self.lines,
            json: session.format() == Format::Json,
            jq: session.jq.clone(),
            guard_stdout: terminal.stdout_tty && !self.raw,
            guard_stderr: terminal.stderr_tty && !self.raw,
            stderr_colour: terminal.stderr_colour,
        }
    }

    async fn find(&self, session: &Session, client: &Client, id: &str, text: &str) -> Result<u8, Failure> {
        let line = |hit: &Hit| match session.format() {
            Format::Json => session.filtered(hit),
            _ => {
                let number = if self.lines { format!("{:>6} ", hit.line) } else { String::new() };
                let shown = if session.terminal.stdout_tty && !self.raw { one_line(&hit.message) } else { hit.message.clone() };
                Ok(format!("{number}{shown}\n"))
            }
        };
        let is_found = print_hits(session, client, (id, text, self.regex), line).await?;
        Ok(if is_found { 0 } else { GENERAL })
    }
}

/// Prints every line of a log that holds a text, as `line` writes it; whether there was one.
pub(super) async fn print_hits(
    session: &Session,
    client: &Client,
    (id, text, regex): (&str, &str, bool),
    line: impl Fn(&Hit) -> Result<String, Failure>,
) -> Result<bool, Failure> {
    let (mut from, mut is_found) = (None, false);
    loop {
        let found = client.search(id, text, regex, from).await?;
        is_found |= !found.hits.is_empty();
        session.print(&found.hits.iter().map(&line).collect::<Result<String, _>>()?)?;
        // A server that does not move on would be asked for ever.
        match found.next_line.filter(|next| from.is_none_or(|from| *next > from)) {
            Some(next) => from = Some(next),
            None => return Ok(is_found),
        }
    }
}

/// The line where the last lines begin. They are counted by the server, so that only the stream that was asked for counts.
pub(super) async fn line_of_tail(client: &Client, id: &str, tail: u64, stream: Option<Stream>) -> Result<u64, ClientError> {
    let logs = client.logs(id, &LogsQuery { tail: Some(tail), stream, ..LogsQuery::default() }).await?;
    let first = logs.events.as_ref().and_then(|events| events.first()).filter(|_| tail > 0);
    Ok(first.map_or(logs.next_line, |event| event.line))
}
