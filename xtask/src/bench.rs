//! `cargo xtask bench`: the benchmark program against a release build of the server, which it starts itself.

use anyhow::Result;

use crate::tool;

/// Builds the server as it is shipped, then runs `runvoy-bench` with `args`.
pub fn run(args: &[String]) -> Result<()> {
    tool::run(&mut tool::cargo(&["build", "--release", "--package", "runvoy"]))?;
    tool::run(tool::cargo(&["run", "--release", "--package", "runvoy-bench", "--"]).args(args))
}
