//! Log lines per second from a command, through the store, to one follower; beside a bare pipe that is read by lines
//! and thrown away. Memory is watched meanwhile: it must not grow with the log.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;

use crate::follower::{Follower, Next};
use crate::server::Home;
use crate::table::{Goal, Quantity, Row};
use crate::{cpu, pipe};

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Ingests `lines` lines of 64 bytes.
pub fn measure(binary: &Path, lines: u64) -> Result<Vec<Row>> {
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    let mut connection = server.endpoint.connect()?;
    let body = json!({ "command": pipe::generator(lines) }).to_string();

    let client_before = cpu::of_client()?;
    let start = Instant::now();
    let answer = connection.post("/api/v1/run", body.as_bytes())?.json(202)?;
    let mut follower = Follower::open(&server.endpoint, &answer)?;
    let (mut seen, mut peak_mb, mut looked) = (0, cpu::resident_mb(server.pid())?, start);
    let rest_mb = peak_mb;
    while let Next::Stdout(more) = follower.next()? {
        seen += more;
        if looked.elapsed() >= LOOK_EVERY {
            peak_mb = cpu::resident_mb(server.pid())?.max(peak_mb);
            looked = Instant::now();
        }
    }
    let elapsed = start.elapsed();
    let client_cpu = cpu::of_client()?.saturating_sub(client_before);
    server.stop()?;
    if seen != lines {
        bail!("the follower saw {seen} of {lines} lines");
    }

    let bare = pipe::measure(lines)?;
    let rate = Row {
        name: "log ingest with one follower".to_owned(),
        ours: Quantity { value: lines as f64 / cpu::without_client(elapsed, client_cpu).as_secs_f64(), unit: "lines/s" },
        limit: Some(Quantity { value: bare, unit: "lines/s" }),
        goal: Goal::Share(0.3),
        note: format!("{:.0} lines/s with the client's CPU", lines as f64 / elapsed.as_secs_f64()),
    };
    let memory = Row {
        name: "memory while ingesting".to_owned(),
        ours: Quantity { value: peak_mb, unit: "MB" },
        limit: None,
        goal: Goal::Below(200.0),
        note: format!("{rest_mb:.0} MB before, log of {:.0} MB", lines as f64 * 64.0 / 1e6),
    };
    Ok(vec![rate, memory])
}
