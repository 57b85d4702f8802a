//! `cargo xtask test`: the inner loop, every test but the promises.

use anyhow::Result;

use crate::suite::Runner;
use crate::tool;

/// Runs the tests that `args` leave.
pub fn run(args: &[String]) -> Result<()> {
    tool::run(&mut Runner::pick().inner_loop(args))
}
