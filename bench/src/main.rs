//! `runvoy-bench`: measures the release build of the server against the limits of the machine it runs on. Both sides
//! are measured in the same run, right after each other, and printed side by side with the goal.
//!
//! It drives the real binary over HTTP/1.1, WebSocket and gRPC and never reaches into the server's crates.

mod cpu;
mod executions;
mod first_line;
mod follower;
mod history;
mod http;
mod ingest;
mod jobs;
mod load;
mod pipe;
mod queue;
mod read;
mod sample;
mod server;
mod spawn;
mod start;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use crate::table::Table;

/// Measures runvoy against the limits of this machine.
#[derive(Parser)]
#[command(name = "runvoy-bench")]
struct Options {
    /// What to measure; everything, if nothing is named.
    scenarios: Vec<Scenario>,
    /// The server to measure; by default the `runvoy` beside this program.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// How long each rate is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// How many executions are run for the rate and the CPU of one.
    #[arg(long, default_value_t = 3_000)]
    executions: usize,
    /// How often the first log line is awaited.
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// How many lines of 64 bytes are ingested.
    #[arg(long, default_value_t = 2_000_000)]
    lines: u64,
    /// How many tasks the largest job has.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..))]
    tasks: u64,
    /// How many old events the history has.
    #[arg(long, default_value_t = 1_000_000)]
    events: usize,
    /// How many executions wait before the queue's cycle is measured, at the most.
    #[arg(long, default_value_t = 1_000_000)]
    waiting: u64,
    /// How many executions are stored before the start is measured.
    #[arg(long, default_value_t = 20_000)]
    stored: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Only the limit: a bare loop of `sh -c true`.
    Spawn,
    /// Only the limit: a bare pipe, read by lines.
    Pipe,
    /// Executions per second, and CPU per execution.
    Executions,
    /// From submit to the first log line at a following client.
    FirstLine,
    /// Log lines per second into the store and to one follower.
    Ingest,
    /// Reads per second.
    Read,
    /// Jobs beside the same tasks one by one.
    Jobs,
    /// The queue's cycle beside RabbitMQ, NATS JetStream and a bare commit.
    Queue,
    /// The same work on an empty store and on one with a long history.
    History,
    /// Time to start, memory at rest, size of the binary.
    Start,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => std::env::current_exe().context("cannot find out where this program is")?.with_file_name("runvoy"),
    };
    let scenarios = if options.scenarios.is_empty() {
        vec![
            Scenario::Start,
            Scenario::Executions,
            Scenario::FirstLine,
            Scenario::Ingest,
            Scenario::Read,
            Scenario::Jobs,
            Scenario::Queue,
            Scenario::History,
        ]
    } else {
        options.scenarios.clone()
    };
    let mut table = Table::default();
    for scenario in scenarios {
        match scenario {
            Scenario::Spawn => println!("{}", spawn::measure(options.seconds)?),
            Scenario::Pipe => println!("bare pipe: {:.0} lines/s", pipe::measure(options.lines)?),
            Scenario::Executions => table.extend(executions::measure(&binary, options.executions, options.seconds)?),
            Scenario::FirstLine => table.extend(first_line::measure(&binary, options.rounds)?),
            Scenario::Ingest => table.extend(ingest::measure(&binary, options.lines)?),
            Scenario::Read => table.extend(read::measure(&binary, options.seconds)?),
            Scenario::Jobs => table.extend(jobs::measure(&binary, usize::try_from(options.tasks)?)?),
            Scenario::Queue => table.extend(queue::measure(&binary, options.seconds, options.waiting)?),
            Scenario::History => table.extend(history::measure(&binary, options.events)?),
            Scenario::Start => table.extend(start::measure(&binary, options.stored)?),
        }
    }
    print!("{table}");
    Ok(())
}
