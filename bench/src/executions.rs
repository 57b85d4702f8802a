//! Executions per second of `true`, submitted over HTTP with everything durable, and the CPU of one; beside a bare loop
//! that only starts the same command.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::server::Home;
use crate::table::{Goal, Quantity, Row};
use crate::{cpu, load, spawn};

/// Runs `count` executions after a warm-up, then the bare loop for `seconds`.
pub fn measure(binary: &Path, count: usize, seconds: u64) -> Result<Vec<Row>> {
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    load::submit(&server.endpoint, "true", 100)?;
    load::drain(&server.endpoint)?;

    let (server_before, client_before) = (cpu::of_tree(server.pid())?, cpu::of_client()?);
    let start = Instant::now();
    load::submit(&server.endpoint, "true", count)?;
    let submitted = start.elapsed();
    load::drain(&server.endpoint)?;
    let elapsed = start.elapsed();
    let server_cpu = cpu::of_tree(server.pid())?.saturating_sub(server_before);
    let client_cpu = cpu::of_client()?.saturating_sub(client_before);
    server.stop()?;

    let bare = spawn::measure(seconds)?;
    let count = count as f64;
    let rate = Row {
        name: "executions/s".to_owned(),
        ours: Quantity { value: count / cpu::without_client(elapsed, client_cpu).as_secs_f64(), unit: "/s" },
        limit: Some(Quantity { value: bare.per_second, unit: "/s" }),
        goal: Goal::Share(0.6),
        note: format!(
            "{:.0}/s with the client's CPU, submitted at {:.0}/s",
            count / elapsed.as_secs_f64(),
            count / submitted.as_secs_f64()
        ),
    };
    let cost = Row {
        name: "CPU per execution".to_owned(),
        ours: Quantity { value: server_cpu.as_secs_f64() * 1e6 / count, unit: "µs" },
        limit: Some(Quantity { value: bare.cpu_us, unit: "µs" }),
        goal: Goal::Times(1.6),
        note: "server, spawner and commands".to_owned(),
    };
    Ok(vec![rate, cost])
}
