//! Leases executions, runs them, reports; the same in-process and remote.

mod attempt;
mod checkout;
mod disk;
mod dotenv;
mod environment;
mod exchange;
mod git_failure;
mod material;
mod output;
mod own_key;
mod report;
mod running;
mod transcript;
mod worker;

use runvoy_model::mask;

pub use crate::checkout::Git;
pub use crate::disk::DiskLimits;
pub use crate::own_key::OwnKey;
pub use crate::worker::{Config, Worker};
