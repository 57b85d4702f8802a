//! The limit for executions: a bare loop that starts `sh -c true` and waits for it, on all cores.

use std::fmt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cpu;

/// What the machine can do at best.
#[derive(Debug, Clone, Copy)]
pub struct BareSpawn {
    /// Commands per second, all cores together.
    pub per_second: f64,
    /// CPU of one command and its start, in microseconds.
    pub cpu_us: f64,
}

impl fmt::Display for BareSpawn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "bare spawn of `sh -c true`: {:.0}/s, {:.0} µs CPU each", self.per_second, self.cpu_us)
    }
}

/// Runs the loop for `seconds`.
pub fn measure(seconds: u64) -> Result<BareSpawn> {
    let cpu_before = cpu::of_self_and_children()?;
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    // Two loops a core: while one waits for its command to end, the other starts one.
    let loops: Vec<_> = (0..cpu::cores() * 2).map(|_| thread::spawn(move || run_until(end))).collect();
    let mut count = 0;
    for one in loops {
        count += one.join().expect("the loop does not panic")?;
    }
    let elapsed = start.elapsed().as_secs_f64();
    let cpu = cpu::of_self_and_children()?.saturating_sub(cpu_before).as_secs_f64();
    Ok(BareSpawn { per_second: f64::from(count) / elapsed, cpu_us: cpu * 1e6 / f64::from(count) })
}

fn run_until(end: Instant) -> Result<u32> {
    let mut count = 0;
    while Instant::now() < end {
        let status = Command::new("sh").args(["-c", "true"]).stdin(Stdio::null()).status().context("cannot start sh")?;
        if !status.success() {
            bail!("`sh -c true` ended with {status}");
        }
        count += 1;
    }
    Ok(count)
}
