//! The spawner as a program of its own. The `runvoy` binary carries the same code as a hidden subcommand; this one is for
//! whoever embeds the runner elsewhere, and for this crate's tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    runvoy_runners::spawner::run()
}
