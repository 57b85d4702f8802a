//! Leases executions, runs them, reports; the same in-process and remote.

mod attempt;
mod checkout;
mod dotenv;
mod environment;
mod exchange;
mod git_failure;
mod material;
mod output;
mod report;
mod running;
mod transcript;
mod worker;

use runvoy_model::mask;

pub use crate::checkout::Git;
pub use crate::worker::{Config, Worker};
