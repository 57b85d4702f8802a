//! `doctor`: what works between here and the server, step by step, and what the server says about itself.

use std::time::{Duration, Instant};

use clap::Args;
use runvoy_client::{Client, ClientError, Endpoint, Options, Retry, ServerClock};
use runvoy_wire::{DoctorResponse, Probe, ProbeStatus, Rfc3339};

use super::version::VERSION;
use crate::expiry;
use crate::failure::Failure;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::skew;
use crate::table::{Cell, render, wrap};
use crate::terminal::{Terminal, Tone};

const EXAMPLES: &str = "\
Examples:
  runvoy doctor
  runvoy doctor --json | jq '.probes[] | select(.status != \"ok\")'";

/// The widest mark, and the gap behind it.
const MARK_WIDTH: usize = 6;
const CLOCK_WARNING_SECONDS: u64 = 5;
const CLOCK_LIMIT_SECONDS: u64 = 60;

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct DoctorArgs {}

impl DoctorArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let report = DoctorResponse { probes: examine(session).await };
        let failing = || report.probes.iter().filter(|probe| probe.status != ProbeStatus::Ok).map(|probe| probe.name.clone()).collect();
        session.show(&report, failing, || table(&report.probes, session.terminal))?;
        Ok(u8::from(report.probes.iter().any(|probe| probe.status == ProbeStatus::Fail)))
    }
}

async fn examine(session: &Session) -> Vec<Probe> {
    let mut report = Report::default();
    if let Some(broken) = &session.broken {
        // It says which server to ask.
        report.add("configuration", fail(broken));
        return report.probes;
    }
    report.add("configuration", configuration(session));
    let endpoint = match session.endpoint().await {
        Ok(endpoint) => endpoint,
        Err(failure) => {
            report.add("endpoint", fail(failure.text(false).replace('\n', "; ").trim_end_matches("; ")));
            return report.probes;
        }
    };
    report.add("endpoint", ok(format!("{endpoint} ({})", session.settings.endpoint.origin)));
    let local = session.settings.endpoint.value.is_none();
    let options = Options {
        api_key: session.settings.api_key.value.clone().filter(|_| !local),
        ca_file: session.settings.ca_file.value.clone(),
        retry: Retry::NONE,
        ..Options::new(endpoint)
    };
    match Client::new(options) {
        Ok(client) => reach(&client, session.now(), &mut report).await,
        Err(error) => report.add("settings", fail(told(&error))),
    }
    report.probes
}

/// From the name to the server's own probes; what cannot work any more is left out.
async fn reach(client: &Client, now: Rfc3339, report: &mut Report) {
    if let Endpoint::Tcp { tls, .. } = client.endpoint() {
        let name = client.probe_name().await;
        let found = name.is_ok();
        report.add(
            "dns",
            name.map_or_else(
                |error| fail(told(&error)),
                |found| ok(found.iter().map(|at| at.ip().to_string()).collect::<Vec<_>>().join(", ")),
            ),
        );
        if !found {
            return;
        }
        let step = if *tls { "connection and TLS" } else { "connection" };
        if !connect(client, step, report).await {
            return;
        }
    } else if !connect(client, "connection", report).await {
        return;
    }
    match client.probe_health().await {
        Ok((health, clock)) => {
            report.add("version", version_skew(VERSION, &health.version));
            report.add("clock", clock_skew(clock, Duration::from_millis(now.ms_since(Rfc3339(0)))));
        }
        Err(error) => return report.add("health", fail(told(&error))),
    }
    report.add(
        "websocket",
        client.probe_websocket().await.map_or_else(|error| warn(format!("logs are polled instead: {}", told(&error))), |()| ok("works")),
    );
    match client.whoami().await {
        Ok(whoami) => {
            report.add("authentication", ok(format!("{} ({})", whoami.email, whoami.role)));
            if let Some(at) = whoami.key_expires_at {
                report.add("key expiry", expiry::remark(Some(at), now).map_or_else(|| ok(format!("at {at}")), warn));
            }
        }
        Err(error) => return report.add("authentication", fail(told(&error))),
    }
    match client.doctor().await {
        Ok(server) => {
            report.probes.extend(server.probes.into_iter().map(|probe| Probe { name: format!("server {}", probe.name), ..probe }))
        }
        Err(ClientError::Refused(refusal)) if refusal.status == 403 => report.add("server", ok("only admins see the server's checks")),
        Err(error) => report.add("server", warn(told(&error))),
    }
}

async fn connect(client: &Client, step: &str, report: &mut Report) -> bool {
    let started = Instant::now();
    let connected = client.probe_connection().await;
    let works = connected.is_ok();
    report.add(step, connected.map_or_else(|error| fail(told(&error)), |()| ok(format!("{} ms", started.elapsed().as_millis()))));
    works
}

type Finding = (ProbeStatus, String);

#[derive(Default)]
struct Report {
    probes: Vec<Probe>,
}

impl Report {
    fn add(&mut self, name: &str, (status, detail): Finding) {
        self.probes.push(Probe { name: name.to_owned(), status, detail });
    }
}

fn ok(detail: impl Into<String>) -> Finding {
    (ProbeStatus::Ok, detail.into())
}

fn warn(detail: impl Into<String>) -> Finding {
    (ProbeStatus::Warn, detail.into())
}

fn fail(detail: impl Into<String>) -> Finding {
    (ProbeStatus::Fail, detail.into())
}

fn told(error: &ClientError) -> String {
    std::iter::once(error.to_string()).chain(error.causes()).collect::<Vec<_>>().join(": ")
}

fn configuration(session: &Session) -> Finding {
    let path = session.user_file.path.display();
    if session.user_file.is_exposed() {
        return warn(format!("{path} is readable by other users; run: chmod 600 {path}"));
    }
    let remarks = session.user_file.remarks();
    match &session.settings.withheld {
        _ if !remarks.is_empty() => warn(remarks.join("; ")),
        Some(withheld) => warn(format!("{withheld}, and is not used")),
        None if !session.user_file.path.exists() => ok(format!("{path} does not exist; defaults are used")),
        None => ok(path.to_string()),
    }
}

fn version_skew(client: &str, server: &str) -> Finding {
    if skew::differs(client, server) {
        warn(format!("client {client}, server {server}; use the same release on both sides"))
    } else {
        ok(format!("client {client}, server {server}"))
    }
}

fn clock_skew(clock: Option<ServerClock>, now: Duration) -> Finding {
    let Some(clock) = clock else { return warn("the server's responses have no date") };
    let skew = i64::try_from(now.as_secs()).unwrap_or(i64::MAX).abs_diff(clock.unix_seconds);
    match skew {
        0..=CLOCK_WARNING_SECONDS => ok(format!("{skew} s apart")),
        _ if skew <= CLOCK_LIMIT_SECONDS => warn(format!("{skew} s apart; set both clocks by NTP")),
        _ => fail(format!("{skew} s apart; signed links and times will be wrong: set both clocks by NTP")),
    }
}

/// One row per probe; details are wrapped to the terminal, not cut.
fn table(probes: &[Probe], terminal: Terminal) -> String {
    let longest = probes.iter().map(|probe| probe.name.chars().count()).max().unwrap_or_default();
    let room = terminal.width.map_or(usize::MAX, |width| width.saturating_sub(MARK_WIDTH + longest + 2).max(20));
    let rows = |probe: &Probe| {
        let (mark, tone) = match probe.status {
            ProbeStatus::Ok => ("ok", Tone::Good),
            ProbeStatus::Warn => ("warn", Tone::Warning),
            ProbeStatus::Fail => ("FAIL", Tone::Bad),
        };
        let mut rows: Vec<Vec<Cell>> =
            wrap(&one_line(&probe.detail), room).into_iter().map(|line| vec!["".into(), "".into(), line.into()]).collect();
        if let Some(first) = rows.first_mut() {
            (first[0], first[1]) = (Cell::new(mark, tone), (&probe.name).into());
        }
        rows
    };
    render(&[], &probes.iter().flat_map(rows).collect::<Vec<_>>(), None, terminal.stdout_colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_versions_are_judged_by_their_distance() {
        let now = Duration::from_secs(1_000_000);
        for (server, status) in
            [(1_000_000, ProbeStatus::Ok), (999_995, ProbeStatus::Ok), (1_000_030, ProbeStatus::Warn), (900_000, ProbeStatus::Fail)]
        {
            assert_eq!(clock_skew(Some(ServerClock { unix_seconds: server }), now).0, status, "{server}");
        }
        assert_eq!(clock_skew(None, now).0, ProbeStatus::Warn);
        assert_eq!(version_skew("0.1.0", "0.1.9").0, ProbeStatus::Ok);
        assert_eq!(version_skew("0.1.0", "0.2.0").0, ProbeStatus::Warn);
    }
}
