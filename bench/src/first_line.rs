//! From submit to the first log line at a client that follows; beside a bare `sh -c` that is started and read. The two
//! take turns, so that a slow moment of the machine hits both.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::follower::{Follower, Next};
use crate::http::{Connection, Endpoint};
use crate::sample::Sample;
use crate::server::Home;
use crate::table::{Goal, Quantity, Row};

const COMMAND: &str = "echo hello";
const WARM_UP: usize = 20;

/// Takes `rounds` turns after a warm-up.
pub fn measure(binary: &Path, rounds: usize) -> Result<Vec<Row>> {
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    let mut connection = server.endpoint.connect()?;
    let (mut ours, mut bare) = (Sample::default(), Sample::default());
    for round in 0..WARM_UP + rounds {
        let (ours_time, bare_time) = (submitted(&server.endpoint, &mut connection)?, spawned()?);
        if round >= WARM_UP {
            ours.push(ours_time);
            bare.push(bare_time);
        }
    }
    server.stop()?;
    let row = |percent: usize, goal: Goal| Row {
        name: format!("submit to first log line, p{percent}"),
        ours: Quantity { value: ours.percentile_ms(percent), unit: "ms" },
        limit: Some(Quantity { value: bare.percentile_ms(percent), unit: "ms" }),
        goal,
        note: format!("{rounds} rounds"),
    };
    Ok(vec![row(50, Goal::Times(8.0)), row(99, Goal::Above(25.0))])
}

fn submitted(endpoint: &Endpoint, connection: &mut Connection) -> Result<Duration> {
    let body = json!({ "command": COMMAND }).to_string();
    let start = Instant::now();
    let answer = connection.post("/api/v1/run", body.as_bytes())?.json(202)?;
    let mut follower = Follower::open(endpoint, &answer)?;
    let mut first = None;
    // To the end, so that no round overlaps the next.
    loop {
        match follower.next()? {
            Next::Stdout(0) => {}
            Next::Stdout(_) => first = first.or_else(|| Some(start.elapsed())),
            Next::End => return first.context("the log ended without a line of the command"),
        }
    }
}

fn spawned() -> Result<Duration> {
    let start = Instant::now();
    let mut child =
        Command::new("sh").args(["-c", COMMAND]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start sh")?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line).context("cannot read the pipe")?;
    let elapsed = start.elapsed();
    if line.trim() != "hello" || !child.wait().context("cannot wait for sh")?.success() {
        bail!("`{COMMAND}` wrote `{line}`");
    }
    Ok(elapsed)
}
