//! `cargo xtask test`: the inner loop, every test but the promises.

use anyhow::Result;

use crate::emulator::Emulators;
use crate::suite::Runner;
use crate::tool;

/// Runs the tests that `args` leave.
pub fn run(args: &[String]) -> Result<()> {
    let emulators = Emulators::start_for(args);
    let mut command = Runner::pick().inner_loop(args);
    emulators.tell(&mut command);
    tool::run(&mut command)
}
