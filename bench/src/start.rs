//! From the start of `serve` to ready, on an empty and on a filled store; memory at rest; size of the binary.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::server::Home;
use crate::table::{Goal, Quantity, Row};
use crate::{cpu, load};

/// Long enough for whatever runs once after a start.
const SETTLE: Duration = Duration::from_secs(3);

/// Fills a store with `stored` executions that wait for a worker, and starts on it.
pub fn measure(binary: &Path, stored: usize) -> Result<Vec<Row>> {
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    thread::sleep(SETTLE);
    let rest_mb = cpu::resident_mb(server.pid())?;
    server.stop()?;

    let filling = home.start(&["--no-worker"])?;
    load::submit(&filling.endpoint, "true", stored)?;
    filling.stop()?;
    let filled = home.start(&["--no-worker"])?;
    let filled_start = filled.start_time;
    filled.stop()?;

    let size = fs::metadata(binary).with_context(|| format!("cannot read {}", binary.display()))?.len();
    let row = |name: String, value: f64, unit: &'static str, most: f64| Row {
        name,
        ours: Quantity { value, unit },
        limit: None,
        goal: Goal::Below(most),
        note: String::new(),
    };
    Ok(vec![
        row(format!("start with {stored} executions"), filled_start.as_secs_f64() * 1_000.0, "ms", 1_000.0),
        row("memory at rest".to_owned(), rest_mb, "MB", 50.0),
        row("binary".to_owned(), size as f64 / 1e6, "MB", 40.0),
    ])
}
