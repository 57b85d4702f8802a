//! Following an execution until it finishes: its output as it comes, a spinner while there is none, its exit code at the end. Ctrl-C
//! leaves it running, and so does a reader of the output that has enough.

use std::time::{Duration, Instant};

use runvoy_client::{Client, ClientError, Followed, Killed, Start};
use runvoy_wire::StatusResponse;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::failure::{Failure, INTERRUPTED, Kind};
use crate::global::Format;
use crate::printer::{Layout, Printer};
use crate::session::Session;
use crate::sink::{Out, Sink};
use crate::spinner::{PERIOD, Spinner};
use crate::summary;
use crate::terminal::{Tone, paint};

/// How long the server is asked for the end after the log's last line.
const END_LIMIT: Duration = Duration::from_secs(30);
/// How long the last output may take after Ctrl-C: a reader that stands still is not waited for.
const OUTPUT_LIMIT: Duration = Duration::from_millis(200);

/// Ctrl-C, caught from here on.
pub(crate) fn interrupts() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt()).map_err(|error| Failure::other("cannot listen for Ctrl-C").why(error.to_string()))
}

/// What to stay with, and how.
pub(crate) struct Attach<'a> {
    pub(crate) session: &'a Session,
    pub(crate) client: &'a Client,
    pub(crate) id: String,
    /// What stdout gets before the log.
    pub(crate) first: String,
    pub(crate) websocket_url: Option<String>,
    pub(crate) kill_on_interrupt: bool,
    /// Let every escape sequence through to a terminal.
    pub(crate) raw: bool,
}

impl Attach<'_> {
    /// Follows to the end and gives the exit code.
    pub(crate) async fn run(self, interrupts: &mut Signal) -> Result<u8, Failure> {
        let sink = Sink::start()?;
        let mut screen = Screen::new(&self, &sink);
        let outcome = self.follow(&mut screen, interrupts).await;
        screen.clear().await;
        let break_line = screen.printer.break_line();
        drop(screen);
        let left = match outcome {
            Ok(Left::Ended(last)) => {
                let written = tokio::select! {
                    written = sink.finish() => written,
                    _ = interrupts.recv() => return Ok(INTERRUPTED),
                };
                let status = self.end(last).await?;
                written.map_err(|error| {
                    Failure::from(error).next(format!("the execution has finished; read its log: runvoy logs {}", self.id))
                })?;
                let line = summary::line(&status, self.session.short(&self.id), self.session.terminal.stderr_colour);
                self.session.tell(&format!("{break_line}{line}"));
                return Ok(summary::exit_code(&status));
            }
            Ok(left) => left,
            Err(failure) => return Err(failure.next(format!("the execution may still run; follow it: runvoy logs -f {}", self.id))),
        };
        match left {
            Left::Interrupted(asked) => {
                // The spinner is gone before anything else is said. Whether it was in time or not, the end is the same.
                let _ = tokio::time::timeout(OUTPUT_LIMIT, sink.finish()).await;
                self.session.tell(&format!(
                    "{break_line}{}",
                    left_behind(self.session.short(&self.id), asked, self.session.terminal.stderr_colour)
                ));
                Ok(INTERRUPTED)
            }
            Left::Ended(_) | Left::OutputClosed => {
                let goes_on = format!("The execution keeps running. Follow it: runvoy logs -f {}", self.session.short(&self.id));
                match sink.finish().await.map_err(Failure::from) {
                    Err(failure) if failure.kind != Kind::BrokenPipe => Err(failure.next(goes_on)),
                    Ok(()) | Err(_) => {
                        self.session.tell(&goes_on);
                        Ok(0)
                    }
                }
            }
        }
    }

    async fn follow(&self, screen: &mut Screen<'_>, interrupts: &mut Signal) -> Result<Left, Failure> {
        let start = Start { from_line: 1, websocket_url: self.websocket_url.clone(), live: true };
        let mut follow = self.client.follow(&self.id, start);
        let (mut last, mut kill, sink) = (None, Kill::new(self), screen.sink);
        if !self.first.is_empty() && !sink.write(Out::Stdout(self.first.clone().into_bytes())).await {
            return Ok(Left::OutputClosed);
        }
        loop {
            tokio::select! {
                item = follow.next() => {
                    let Some(item) = item else { return Ok(Left::Ended(last)) };
                    let mut shown = std::pin::pin!(screen.show(item?, &mut last));
                    // A reader that stands still must not keep Ctrl-C from working.
                    let open = loop {
                        tokio::select! {
                            open = &mut shown => break open,
                            _ = interrupts.recv() => match kill.ask() {
                                true => self.session.note(Tone::Warning, ASKED),
                                false => return Ok(Left::Interrupted(kill.known().await)),
                            },
                        }
                    };
                    if !open {
                        return Ok(Left::OutputClosed);
                    }
                }
                _ = interrupts.recv() => {
                    if !kill.ask() {
                        return Ok(Left::Interrupted(kill.known().await));
                    }
                    screen.remark(ASKED).await;
                }
                answer = kill.answer() => {
                    let said = match answer? {
                        Killed::Asked(_) => "stopping: SIGTERM, then SIGKILL",
                        Killed::AlreadyEnded => "it had already finished",
                    };
                    screen.remark(said).await;
                }
                () = sink.abandoned() => return Ok(Left::OutputClosed),
                () = screen.tick() => {}
            }
        }
    }

    /// The final status: as the log stream told it, or as the server says now.
    async fn end(&self, last: Option<Box<StatusResponse>>) -> Result<StatusResponse, Failure> {
        match last {
            Some(status) if status.status.is_terminal() => Ok(*status),
            _ => Ok(self.client.wait(&self.id, END_LIMIT).await?),
        }
    }
}

/// What is said once the server is asked to kill the execution.
const ASKED: &str = "killing the execution; press Ctrl-C again to detach";

/// How far a kill has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The server was not asked.
    No,
    /// The request is under way, and not answered.
    Unanswered,
    /// The server takes the request.
    Acknowledged,
}

/// The kill that Ctrl-C asks for. It runs beside the log, so that neither waits for the other.
struct Kill<'a> {
    attach: &'a Attach<'a>,
    asked: Asked,
    request: Option<JoinHandle<Result<Killed, ClientError>>>,
}

impl<'a> Kill<'a> {
    fn new(attach: &'a Attach<'a>) -> Self {
        Self { attach, asked: Asked::No, request: None }
    }

    /// Asks the server; `false` where it was asked before, or is not to be asked.
    fn ask(&mut self) -> bool {
        if !self.attach.kill_on_interrupt || self.asked != Asked::No {
            return false;
        }
        let (client, id) = (self.attach.client.clone(), self.attach.id.clone());
        self.request = Some(tokio::spawn(async move { client.kill(&id, false).await }));
        self.asked = Asked::Unanswered;
        true
    }

    /// The server's answer; for ever where none is awaited.
    async fn answer(&mut self) -> Result<Killed, Failure> {
        let Some(request) = &mut self.request else { return std::future::pending().await };
        let answer = request.await;
        self.request = None;
        let answer = answer.map_err(|error| Failure::other("the request to kill it failed").why(error.to_string()))??;
        self.asked = Asked::Acknowledged;
        Ok(answer)
    }

    /// How far it has come by now, also where the answer is there and was not looked at.
    async fn known(&mut self) -> Asked {
        if self.request.as_ref().is_some_and(JoinHandle::is_finished) {
            // A refusal leaves it unanswered.
            let _ = self.answer().await;
        }
        self.asked
    }
}

/// Why following ended.
enum Left {
    Ended(Option<Box<StatusResponse>>),
    Interrupted(Asked),
    OutputClosed,
}

/// What the user sees meanwhile.
struct Screen<'a> {
    sink: &'a Sink,
    printer: Printer,
    spinner: Option<Spinner>,
    clock: Interval,
    started: Instant,
    width: Option<usize>,
    quiet: bool,
    colour: bool,
}

impl<'a> Screen<'a> {
    fn new(attach: &Attach<'_>, sink: &'a Sink) -> Self {
        let (terminal, quiet) = (attach.session.terminal, attach.session.global.quiet > 0);
        let layout = Layout {
            execution_id: attach.id.clone(),
            split: true,
            no_platform: quiet,
            json: attach.session.format() == Format::Json,
            jq: attach.session.jq.clone(),
            guard_stdout: terminal.stdout_tty && !attach.raw,
            guard_stderr: terminal.stderr_tty && !attach.raw,
            stderr_colour: terminal.stderr_colour,
            ..Layout::default()
        };
        let mut clock = interval(PERIOD);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            sink,
            printer: Printer::new(layout),
            spinner: (terminal.moves && !quiet).then(Spinner::new),
            clock,
            started: Instant::now(),
            width: terminal.width,
            quiet,
            colour: terminal.stderr_colour,
        }
    }

    /// Shows one thing that happened; `false` once stdout takes no more.
    async fn show(&mut self, item: Followed, last: &mut Option<Box<StatusResponse>>) -> bool {
        match item {
            Followed::Batch(batch) => {
                let pieces = self.printer.render(&batch);
                if pieces.is_empty() {
                    return true;
                }
                self.clear().await;
                if batch.records().any(|(_, record)| record.stream != runvoy_wire::Stream::Platform) {
                    // From here on the command speaks for itself.
                    self.spinner = None;
                }
                for piece in pieces {
                    if !self.sink.write(piece).await {
                        return false;
                    }
                }
                true
            }
            Followed::Status(status) => {
                if let Some(spinner) = &mut self.spinner {
                    spinner.status(&status);
                }
                *last = Some(status);
                true
            }
            Followed::Gap { from, to } => {
                self.remark(&format!("lines {from} to {} are missing: the server no longer has them", to - 1)).await;
                true
            }
            Followed::Interrupted(error) => {
                match &mut self.spinner {
                    Some(spinner) => spinner.phase("connection lost, reconnecting"),
                    None => self.remark(&format!("connection lost ({error}), reconnecting")).await,
                }
                true
            }
        }
    }

    async fn tick(&mut self) {
        if self.spinner.is_none() {
            return std::future::pending().await;
        }
        self.clock.tick().await;
        if let Some(frame) = self.spinner.as_mut().and_then(|spinner| spinner.turn(self.started.elapsed(), self.width)) {
            self.sink.write(Out::Stderr(frame.into_bytes())).await;
        }
    }

    async fn clear(&mut self) {
        if let Some(erase) = self.spinner.as_mut().and_then(Spinner::clear) {
            self.sink.write(Out::Stderr(erase.as_bytes().to_vec())).await;
        }
    }

    async fn remark(&mut self, text: &str) {
        if !self.quiet {
            self.clear().await;
            let line = format!("{}{}\n", self.printer.break_line(), paint(&format!("### runvoy: {text}"), Tone::Warning, self.colour));
            self.sink.write(Out::Stderr(line.into_bytes())).await;
        }
    }
}

/// What becomes of an execution that Ctrl-C left.
fn left_behind(id: &str, asked: Asked, colour: bool) -> String {
    let (heading, next) = match asked {
        Asked::No => ("Detached. The execution keeps running.", format!("follow it: runvoy logs -f {id}\n  kill it:   runvoy kill {id}")),
        Asked::Unanswered => (
            "Detached. The server has not answered the request to kill it: the execution may still run.",
            format!("check it: runvoy status {id}\n  kill it:  runvoy kill {id}"),
        ),
        Asked::Acknowledged => ("Detached. The server is stopping the execution.", format!("follow it: runvoy logs -f {id}")),
    };
    format!("{}\n  {next}", paint(heading, Tone::Warning, colour))
}
