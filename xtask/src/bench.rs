//! `cargo xtask bench`: the benchmark program against a release build of the server, which it starts itself.

use anyhow::Result;

use crate::{need, tool};

/// Builds the server as it is shipped, then runs `runvoy-bench` with `args`. Where the queue is measured, its peers are installed first.
pub fn run(args: &[String]) -> Result<()> {
    let mut scenarios = args.iter().filter(|arg| arg.starts_with(char::is_alphabetic)).peekable();
    if scenarios.peek().is_none() || scenarios.any(|scenario| scenario == "queue") {
        need::provide_brokers();
    }
    tool::run(&mut tool::cargo(&["build", "--release", "--package", "runvoy"]))?;
    tool::run(tool::cargo(&["run", "--release", "--package", "runvoy-bench", "--"]).args(args))
}
