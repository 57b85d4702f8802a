//! `cargo xtask test`: the inner loop, every test but the promises, the journeys and the clients of others.

use anyhow::Result;

use crate::client::Clients;
use crate::emulator::Emulators;
use crate::suite::Runner;
use crate::{tool, web};

/// Runs the tests that `args` leave, and without any those of the web page too, where its packages are installed.
pub fn run(args: &[String]) -> Result<()> {
    if args.is_empty() && web::is_installed() {
        tool::run(&mut web::unit_tests())?;
    }
    let emulators = Emulators::start_for(args);
    let mut command = Clients::install_for(args).tell(Runner::pick().inner_loop(args));
    emulators.tell(&mut command);
    tool::run(&mut command)
}
