//! Leases executions, runs them, reports; the same in-process and remote.

mod attempt;
mod environment;
mod output;
mod report;
mod running;
mod worker;

pub use crate::worker::{Config, Worker};
